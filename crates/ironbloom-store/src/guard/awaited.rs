//! The guard for tasks. Needs no particular runtime.

use std::sync::Arc;

use super::Opened;
use super::background::Driver;
use super::core::Core;
use crate::backend::{AsyncBackend, Before};
use crate::error::Error;
use crate::options::Options;
use crate::stats::Stats;

type Result<T, B> = std::result::Result<T, Error<<B as AsyncBackend>::Error>>;

/// A filter in front of an asynchronous store: all of a [`Guard`](crate::Guard), awaited.
///
/// The filter itself is queried without waiting; only the store is awaited. Futures may be dropped at any time: an
/// abandoned put may or may not have been stored, and is found if it was.
///
/// The filter is built in a thread that awaits the store in the runtime of tokio that the guard was opened in, or, for
/// a store that needs none, in the thread itself. With [`Rebuild::Manual`](crate::Rebuild::Manual) nothing runs in the
/// background: spawn [`rebuild`](Self::rebuild) when [`wants_rebuild`](Self::wants_rebuild) says so.
pub struct AsyncGuard<B: AsyncBackend> {
    core: Arc<Core<B>>,
}

impl<B: AsyncBackend> AsyncGuard<B> {
    /// Puts a guard in front of a store; see [`Guard::open`](crate::Guard::open). A large checkpoint is read in a
    /// thread; until then every lookup goes to the store, and [`settle`](Self::settle) waits for it.
    pub async fn open(backend: B, options: Options) -> Result<Self, B> {
        let core = Core::open(backend, options, Driver::current()).await?;
        Ok(Self { core })
    }

    /// How the guard got its filter.
    pub fn opened(&self) -> &Opened {
        self.core.opened()
    }

    /// The value of a key. The store is queried only if the key may be there.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, B> {
        let key = key.as_ref();
        match self.core.look_up(key) {
            Some(question) => self.core.get(key, question).await,
            None => Ok(None),
        }
    }

    /// Whether a key is stored. The store is queried only if it may be.
    pub async fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let key = key.as_ref();
        match self.core.look_up(key) {
            Some(question) => self.core.contains(key, question).await,
            None => Ok(false),
        }
    }

    /// The values of many keys, in their order. The store is queried once, for those that may be there.
    pub async fn get_many<K: AsRef<[u8]> + Sync>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, B> {
        self.core.get_many(keys).await
    }

    /// Stores a value: the filter first, then the store, so that a crash between the two can only cause a false
    /// positive. Returns whether the key was there before.
    ///
    /// After an error it is unknown whether the value was, or will be, stored; lookups of the key go to the store from
    /// then on. An error of a store that knows that nothing was written ([`Failure::NotDone`](crate::Failure::NotDone))
    /// leaves no doubt.
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Before, B> {
        self.core.put(key.as_ref(), value.as_ref()).await
    }

    /// Stores many values; returns for each whether its key was there before. Many times faster than one by one if the
    /// store waits for the disk once instead of for each.
    pub async fn put_many<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<Vec<Before>, B> {
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        self.core.put_many(&pairs).await
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. Returns whether it
    /// was.
    pub async fn remove(&self, key: impl AsRef<[u8]>) -> Result<Before, B> {
        self.core.remove(key.as_ref()).await
    }

    /// Removes many keys; returns for each whether it was stored. The store is queried once, for those that may be
    /// there.
    pub async fn remove_many<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<Before>, B> {
        self.core.remove_many(keys).await
    }

    /// Tells the guard that someone else has stored this key. A key written to the store without the guard is answered
    /// "absent" until this is called or the filter is rebuilt.
    pub async fn note(&self, key: impl AsRef<[u8]>) -> Result<(), B> {
        self.core.note(key.as_ref()).await
    }

    /// Tells the guard that someone else has removed this key. Not needed for correct answers: without it, each lookup
    /// of the key costs a read of the store until the filter is rebuilt.
    pub fn note_removed(&self, key: impl AsRef<[u8]>) {
        self.core.note_removed(key.as_ref());
    }

    /// Tells the guard that others may have written to the store without its notice: from now on every lookup goes to
    /// the store, until the filter has been built from a scan that began after this.
    pub async fn distrust(&self) -> Result<(), B> {
        self.core.distrust().await
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
    pub async fn rebuild(&self) -> Result<(), B> {
        self.core.background_ended().await;
        self.core.rebuild().await
    }

    /// Writes the filter and the statistics to the checkpoint file. Until the next write, opening with it is instant.
    /// Reads and writes continue in the time it takes. Writing the files blocks the thread.
    pub async fn checkpoint(&self) -> Result<(), B> {
        self.core.background_ended().await;
        self.core.checkpoint().await
    }

    /// Writes the filter to the file that [`Options::publish`] names, for other processes: every put that was
    /// acknowledged before this call is in it. A missing filter is built now. Writing the files blocks the thread.
    pub async fn publish(&self) -> Result<(), B> {
        self.core.background_ended().await;
        self.core.publish().await
    }

    /// Waits for background work, and reports its error if it failed. A failed rebuild is retried after a pause
    /// ([`Options::retry_after`]), which this does not wait for.
    pub async fn settle(&self) -> Result<(), B> {
        self.core.background_ended().await;
        self.core.background_failure()
    }

    /// Writes a checkpoint, if the options name a file for it, and closes the guard. Earlier failures in the background
    /// do not matter: a missing filter is built now.
    pub async fn close(self) -> Result<(), B> {
        self.core.background_ended().await;
        self.core.close().await
    }

    /// The store behind the guard. Reading from it directly is harmless; keys written to it directly must be
    /// [noted](Self::note).
    pub fn backend(&self) -> &B {
        &self.core.backend
    }

    pub(crate) fn core(&self) -> &Arc<Core<B>> {
        &self.core
    }
}

impl<B: AsyncBackend> Drop for AsyncGuard<B> {
    /// Stops background work, without waiting for it: a task must not block its runtime. Writes no checkpoint: that
    /// could fail unnoticed.
    fn drop(&mut self) {
        self.core.stop();
    }
}
