//! The guard for threads.

use std::sync::Arc;

use super::Opened;
use super::background::Driver;
use super::core::Core;
use crate::backend::{Backend, Before, Blocking, block_on};
use crate::error::Error;
use crate::options::Options;
use crate::stats::Stats;

type Result<T, B> = std::result::Result<T, Error<<B as Backend>::Error>>;

/// A filter in front of a store: lookups of absent keys never reach it. See the [crate's documentation](crate).
///
/// All methods take `&self` and can be called by many threads at once. Lookups take no lock.
///
/// ```
/// use ironbloom_store::{Guard, GuardKind, Memory, Options};
///
/// let guard = Guard::open(Memory::new(), Options::new(GuardKind::Cuckoo, 1000, 0.01))?;
/// guard.put(b"alice", b"1")?;
/// assert_eq!(guard.get(b"alice")?, Some(b"1".to_vec()));
/// assert_eq!(guard.get(b"bob")?, None);               // the store was not asked
/// assert_eq!(guard.stats().skipped(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Guard<B: Backend> {
    core: Arc<Core<Blocking<B>>>,
}

impl<B: Backend> Guard<B> {
    /// Puts a guard in front of a store. If the checkpoint covers the store this takes no time; if not, the filter is
    /// built in the background, while lookups go to the store. [`opened`](Self::opened) tells which.
    pub fn open(backend: B, options: Options) -> Result<Self, B> {
        let core = block_on(Core::open(Blocking(backend), options, Driver::thread()))?;
        Ok(Self { core })
    }

    /// How the guard got its filter.
    pub fn opened(&self) -> &Opened {
        self.core.opened()
    }

    /// The value of a key. The store is queried only if the key may be there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, B> {
        let key = key.as_ref();
        match self.core.look_up(key) {
            Some(question) => block_on(self.core.get(key, question)),
            None => Ok(None),
        }
    }

    /// Whether a key is stored. The store is queried only if it may be.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let key = key.as_ref();
        match self.core.look_up(key) {
            Some(question) => block_on(self.core.contains(key, question)),
            None => Ok(false),
        }
    }

    /// The values of many keys, in their order. The store is queried once, for those that may be there.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, B> {
        block_on(self.core.get_many(keys))
    }

    /// Stores a value: the filter first, then the store, so that a crash between the two can only cause a false
    /// positive. Returns whether the key was there before.
    ///
    /// After an error it is unknown whether the value was, or will be, stored; lookups of the key go to the store from
    /// then on. An error of a store that knows that nothing was written ([`Failure::NotDone`](crate::Failure::NotDone))
    /// leaves no doubt.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Before, B> {
        block_on(self.core.put(key.as_ref(), value.as_ref()))
    }

    /// Stores many values; returns for each whether its key was there before. Many times faster than one by one if the
    /// store waits for the disk once instead of for each.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<Vec<Before>, B> {
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        block_on(self.core.put_many(&pairs))
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. Returns whether it
    /// was.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Before, B> {
        block_on(self.core.remove(key.as_ref()))
    }

    /// Removes many keys; returns for each whether it was stored. The store is queried once, for those that may be
    /// there.
    pub fn remove_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Before>, B> {
        block_on(self.core.remove_many(keys))
    }

    /// Tells the guard that someone else has stored this key. A key written to the store without the guard is answered
    /// "absent" until this is called or the filter is rebuilt.
    pub fn note(&self, key: impl AsRef<[u8]>) -> Result<(), B> {
        block_on(self.core.note(key.as_ref()))
    }

    /// Tells the guard that someone else has removed this key. Not needed for correct answers: without it, each lookup
    /// of the key costs a read of the store until the filter is rebuilt.
    pub fn note_removed(&self, key: impl AsRef<[u8]>) {
        self.core.note_removed(key.as_ref());
    }

    /// Tells the guard that others may have written to the store without its notice: from now on every lookup goes to
    /// the store, until the filter has been built from a scan that began after this.
    pub fn distrust(&self) -> Result<(), B> {
        block_on(self.core.distrust())
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Whether the filter should be rebuilt: it does not exist yet, is over capacity, or has too many dead keys.
    pub fn wants_rebuild(&self) -> bool {
        self.core.front.wants_rebuild()
    }

    /// Rebuilds the filter from a scan of the store, and returns when it is in place. Reads and writes continue in the
    /// time it takes. If it is abandoned, the old filter stays.
    pub fn rebuild(&self) -> Result<(), B> {
        block_on(self.core.background_ended());
        block_on(self.core.rebuild())
    }

    /// Writes the filter and the statistics to the checkpoint file. Until the next write, opening with it is instant.
    /// Reads and writes continue in the time it takes.
    pub fn checkpoint(&self) -> Result<(), B> {
        block_on(self.core.background_ended());
        block_on(self.core.checkpoint())
    }

    /// Writes the filter to the file that [`Options::publish`] names, for other processes: every put that was
    /// acknowledged before this call is in it. A missing filter is built now.
    pub fn publish(&self) -> Result<(), B> {
        block_on(self.core.background_ended());
        block_on(self.core.publish())
    }

    /// Waits for background work, and reports its error if it failed. A failed rebuild is retried after a pause
    /// ([`Options::retry_after`]), which this does not wait for.
    pub fn settle(&self) -> Result<(), B> {
        block_on(self.core.background_ended());
        self.core.background_failure()
    }

    /// Writes a checkpoint, if the options name a file for it, and closes the guard. Earlier failures in the background
    /// do not matter: a missing filter is built now.
    pub fn close(self) -> Result<(), B> {
        block_on(self.core.background_ended());
        block_on(self.core.close())
    }

    /// The store behind the guard. Reading from it directly is harmless; keys written to it directly must be
    /// [noted](Self::note).
    pub fn backend(&self) -> &B {
        &self.core.backend.0
    }

    pub(crate) fn core(&self) -> &Arc<Core<Blocking<B>>> {
        &self.core
    }
}

impl<B: Backend> Drop for Guard<B> {
    /// Stops background work. Writes no checkpoint: that could fail unnoticed.
    fn drop(&mut self) {
        self.core.stop();
        self.core.join();
    }
}
