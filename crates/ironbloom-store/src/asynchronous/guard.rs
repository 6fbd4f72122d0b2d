//! A filter in front of an asynchronous store.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_lock::{Mutex, MutexGuard};
use event_listener::Event;

use super::backend::AsyncBackend;
use crate::checkpoint::{self, Arrival, Files, Found};
use crate::error::Error;
use crate::events;
use crate::filter;
use crate::front::{Answer, Front, Next, Pending, Removing};
use crate::generation::Generation;
use crate::guard::{BATCH, Opened, Questions, Unfinished, nanos_since, outcome, publisher};
use crate::options::Options;
use crate::published::Publisher;
use crate::stats::{Counters, Outcome, Stats};
use crate::stripes::{STRIPES, stripe_of, stripes_of};

type Result<T, B> = std::result::Result<T, Error<<B as AsyncBackend>::Error>>;

/// A filter in front of an asynchronous store. Like [`Guard`](crate::Guard), but the store is not asked in the
/// background: see [`rebuild`](Self::rebuild).
///
/// The filter itself is queried without waiting; only the store is awaited. Futures may be dropped at any time: an
/// abandoned put may or may not have been stored, and is found if it was.
pub struct AsyncGuard<B: AsyncBackend> {
    backend: B,
    front: Arc<Front>,
    publisher: Option<Publisher>,
    stripes: [Mutex<()>; STRIPES],
    /// Held while giving the store a generation.
    naming: Mutex<()>,
    files: Option<Files>,
    counters: Counters,
    /// Held while building a filter or writing a checkpoint.
    maintaining: Mutex<()>,
    opened: Arc<Opening>,
}

/// How the guard got its filter, once that is known.
#[derive(Default)]
struct Opening {
    how: OnceLock<Opened>,
    known: Event,
}

impl Opening {
    fn set(&self, how: Opened) {
        let _ = self.how.set(how);
        self.known.notify(usize::MAX);
    }
}

/// Number of checkpoint attempts while others write to the store without the guard.
const MAX_REBUILDS: u32 = 8;

impl<B: AsyncBackend> AsyncGuard<B> {
    /// Puts a guard in front of a store. If no checkpoint covers it, every lookup goes to the store until
    /// [`rebuild`](Self::rebuild) is called. A large checkpoint is read in a thread of its own; until then every lookup
    /// goes to the store as well, and [`settle`](Self::settle) waits for it.
    pub async fn open(backend: B, options: Options) -> Result<Self, B> {
        filter::empty(&options.spec, 0)?; // invalid parameters are refused now
        let files = options.checkpoint.as_deref().map(Files::new);
        files.as_ref().map_or(Ok(()), Files::check_folder)?;
        let generation = backend.generation().await.map_err(Error::Store)?;
        let alone = backend.is_exclusive() || options.only_writer;
        let Found { totals, doubts, filter } =
            checkpoint::find(files.as_ref(), &options.spec, generation, alone);
        let front = Arc::new(Front::new(&options, doubts, alone, backend.lands_within()));
        let opened = Arc::new(Opening::default());
        let loaded = match filter {
            Ok(checkpoint) if checkpoint.is_large() => {
                read_in_background(Arrival::expect(&front, checkpoint), &front, &opened);
                None
            }
            Ok(checkpoint) => Some(checkpoint.load()),
            Err(why) => Some(Err(why)),
        };
        match loaded {
            None => {}
            Some(Ok(loaded)) => {
                front.install(loaded.filter, loaded.dead);
                opened.set(Opened::FromCheckpoint);
            }
            Some(Err(why)) => {
                events::checkpoint_unusable(&why);
                let empty = backend.len_hint().await.map_err(Error::Store)? == Some(0);
                front.start(empty)?;
                opened.set(if empty { Opened::Empty } else { Opened::WithoutCheckpoint(why) });
            }
        }
        Ok(Self {
            backend,
            publisher: publisher(&front, &options)?,
            front,
            stripes: std::array::from_fn(|_| Mutex::new(())),
            naming: Mutex::new(()),
            files,
            counters: Counters::new(totals),
            maintaining: Mutex::new(()),
            opened,
        })
    }

    /// How the guard got its filter.
    pub fn opened(&self) -> &Opened {
        self.opened.how.get().unwrap_or(&Opened::Reading)
    }

    /// Waits until the filter of a checkpoint has been read.
    pub async fn settle(&self) {
        while self.opened.how.get().is_none() {
            let known = self.opened.known.listen();
            if self.opened.how.get().is_none() {
                known.await;
            }
        }
    }

    /// The value of a key. The store is queried only if the key may be there.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, B> {
        Ok(self.look(key.as_ref()).await?.0)
    }

    /// The value of a key, and whether the store was asked for it.
    pub(crate) async fn look(&self, key: &[u8]) -> Result<(Option<Vec<u8>>, bool), B> {
        let sample = self.counters.begin();
        let answer = self.front.ask(self.front.hash(key));
        if answer == Answer::Absent {
            self.counters.end(sample, Outcome::Skipped);
            return Ok((None, false));
        }
        let value = self.backend.get(key).await.map_err(Error::Store)?;
        self.counters.end(sample, outcome(answer, value.is_some()));
        Ok((value, true))
    }

    /// Whether nobody else writes to the store, so that the filter knows all keys.
    pub(crate) fn is_alone(&self) -> bool {
        self.front.is_alone()
    }

    /// Whether a key is stored. The store is queried only if it may be.
    pub async fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let key = key.as_ref();
        let sample = self.counters.begin();
        let answer = self.front.ask(self.front.hash(key));
        if answer == Answer::Absent {
            self.counters.end(sample, Outcome::Skipped);
            return Ok(false);
        }
        let found = self.backend.contains(key).await.map_err(Error::Store)?;
        self.counters.end(sample, outcome(answer, found));
        Ok(found)
    }

    /// The values of many keys, in their order. The store is queried once, for those that may be there.
    pub async fn get_many<K: AsRef<[u8]> + Sync>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, B> {
        let questions = Questions::sort_out(&self.front, &self.counters, keys);
        if questions.asked.is_empty() {
            return Ok(questions.answered(&self.counters, Vec::new(), 0));
        }
        let start = Instant::now();
        let values = self.backend.get_many(&questions.asked).await.map_err(Error::Store)?;
        Ok(questions.answered(&self.counters, values, nanos_since(start)))
    }

    /// Stores a value: the filter first, then the store. True if the key was not there before.
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, B> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        // Dropped before the stripe, even if this future is dropped while it waits.
        let pending = self.begin_put(hash).await?;
        let new = self.backend.put(key, value).await.map_err(Error::Store)?;
        self.changed(1);
        if pending.end(!new) {
            self.found_foreign().await;
        }
        Ok(new)
    }

    /// Stores many values; returns for each whether its key was not there before.
    pub async fn put_many<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<Vec<bool>, B> {
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        let hashes: Vec<u64> = pairs.iter().map(|(key, _)| self.front.hash(key)).collect();
        let _held = self.lock_many(&hashes).await;
        let mut pending = Vec::with_capacity(hashes.len());
        for &hash in &hashes {
            pending.push(self.begin_put(hash).await?);
        }
        let new = self.backend.put_many(&pairs).await.map_err(Error::Store)?;
        self.changed(new.len());
        let mut foreign = false;
        for (pending, new) in pending.into_iter().zip(&new) {
            foreign |= pending.end(!new);
        }
        if foreign {
            self.found_foreign().await;
        }
        Ok(new)
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. True if it was.
    pub async fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let removed = self.remove_many(&[key.as_ref()]).await?;
        Ok(removed == [true])
    }

    /// Removes many keys; returns for each whether it was stored. The store is queried once, for those that may be
    /// there.
    pub async fn remove_many<K: AsRef<[u8]> + Sync>(&self, keys: &[K]) -> Result<Vec<bool>, B> {
        let hashes: Vec<u64> = keys.iter().map(|key| self.front.hash(key.as_ref())).collect();
        let _held = self.lock_many(&hashes).await;
        let asked = self.front.may_be_removed(&hashes);
        let mut removing = Vec::with_capacity(asked.len());
        for &i in &asked {
            removing.push(self.begin_remove(hashes[i]).await?);
        }
        let mut answers = vec![false; keys.len()];
        let texts: Vec<&[u8]> = asked.iter().map(|&i| keys[i].as_ref()).collect();
        if !texts.is_empty() {
            let removed = self.backend.remove_many(&texts).await.map_err(Error::Store)?;
            self.changed(removed.len());
            for ((&i, removing), removed) in asked.iter().zip(removing).zip(removed) {
                answers[i] = removed;
                if removed {
                    self.front.end_remove(hashes[i], removing);
                }
            }
        }
        Ok(answers)
    }

    /// Tells the guard that someone else has stored this key.
    pub async fn note(&self, key: impl AsRef<[u8]>) -> Result<(), B> {
        let hash = self.front.hash(key.as_ref());
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        while !self.front.note(hash) {
            self.new_generation().await?;
        }
        self.changed(1);
        Ok(())
    }

    fn changed(&self, count: usize) {
        if let Some(publisher) = &self.publisher {
            publisher.changed(count as u64);
        }
    }

    /// Tells the guard that someone else has removed this key. Not needed for correct answers.
    pub fn note_removed(&self, key: impl AsRef<[u8]>) {
        self.front.note_removed(self.front.hash(key.as_ref()));
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        self.front.stats(&self.counters)
    }

    /// Whether the filter should be rebuilt: it does not exist yet, is over capacity, or has too many dead keys.
    pub fn wants_rebuild(&self) -> bool {
        self.front.wants_rebuild()
    }

    /// Rebuilds the filter from a scan of the store. Reads and writes continue meanwhile. If the future is dropped, the
    /// old filter stays.
    pub async fn rebuild(&self) -> Result<(), B> {
        self.settle().await;
        let _only = self.maintaining.lock().await;
        self.rebuild_alone().await
    }

    async fn rebuild_alone(&self) -> Result<(), B> {
        if !self.front.spec().kind.can_rebuild() {
            return Err(Error::NoRebuild);
        }
        let built = self.build().await;
        if built.is_err() {
            self.front.count_rebuild(false);
        }
        built
    }

    async fn build(&self) -> Result<(), B> {
        let keys = self.backend.len_hint().await.map_err(Error::Store)?;
        let next = Arc::new(self.front.plan_next(keys)?);
        let unfinished = Unfinished { front: &self.front, next: next.clone() };
        self.front.begin(next.clone());
        self.scan_into(&next).await?;
        if unfinished.finish() { Ok(()) } else { Err(Error::Overtaken) }
    }

    async fn scan_into(&self, next: &Next) -> Result<(), B> {
        let mut hashes = Vec::with_capacity(BATCH);
        let mut visit = |key: &[u8]| {
            hashes.push(self.front.hash(key));
            if hashes.len() == BATCH {
                next.absorb(&mut hashes);
                hashes.clear();
            }
            ControlFlow::Continue(())
        };
        self.backend.scan(&mut visit).await.map_err(Error::Store)?;
        next.absorb(&mut hashes);
        Ok(())
    }

    /// Writes the filter and the statistics to the checkpoint file, blocking the thread.
    pub async fn checkpoint(&self) -> Result<(), B> {
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        self.settle().await;
        let _only = self.maintaining.lock().await;
        for _ in 0..MAX_REBUILDS {
            if self.front.lacks_filter() {
                self.rebuild_alone().await?;
            }
            let naming = self.naming.lock().await;
            let Some(snapshot) = self.front.freeze() else { continue };
            let generation = Generation::fresh();
            self.backend.seal(generation).await.map_err(Error::Store)?;
            drop(naming);
            self.backend.sync().await.map_err(Error::Store)?;
            let stats = self.front.stats(&self.counters);
            files.write(generation, self.front.spec(), &snapshot, &stats)?;
            if let Some(publisher) = &self.publisher {
                publisher.publish().map_err(Error::Publish)?;
            }
            return Ok(());
        }
        Err(Error::Overtaken)
    }

    /// Writes the filter to the file that [`Options::publish`] names, for other processes, blocking the thread; see
    /// [`Guard::publish`](crate::Guard::publish).
    pub async fn publish(&self) -> Result<(), B> {
        let kind = self.front.spec().kind;
        let publisher = self.publisher.as_ref().ok_or(Error::CannotPublish(kind))?;
        self.settle().await;
        while !publisher.publish().map_err(Error::Publish)? {
            let _only = self.maintaining.lock().await;
            if self.front.lacks_filter() {
                self.rebuild_alone().await?;
            }
        }
        Ok(())
    }

    /// Writes a checkpoint, if the options name a file for it, and closes the guard.
    pub async fn close(self) -> Result<(), B> {
        if self.files.is_some() { self.checkpoint().await } else { Ok(()) }
    }

    /// Tells the guard that others may have written to the store without its notice: from now on every lookup goes to
    /// the store, until [`rebuild`](Self::rebuild) has built a filter from a scan that began after this.
    pub async fn distrust(&self) -> Result<(), B> {
        self.forget_filter();
        self.new_generation().await
    }

    pub(super) fn forget_filter(&self) {
        self.front.forget_filter();
    }

    /// The store behind the guard.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Others have written to the store: like [`Guard`](crate::Guard), but the caller rebuilds.
    async fn found_foreign(&self) {
        self.front.distrust();
        events::foreign_row();
        // A checkpoint being written does not know about them either.
        let _ = self.new_generation().await;
    }

    async fn lock_many(&self, hashes: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        let mut held = Vec::new();
        for stripe in stripes_of(hashes) {
            held.push(self.stripes[stripe].lock().await);
        }
        held
    }

    /// As in [`Guard`](crate::Guard): before the first write after a checkpoint.
    async fn new_generation(&self) -> Result<(), B> {
        let _naming = self.naming.lock().await;
        if self.front.is_clean() {
            self.backend.set_generation(Generation::fresh()).await.map_err(Error::Store)?;
            self.front.allow_writes();
        }
        Ok(())
    }

    async fn begin_put(&self, hash: u64) -> Result<Pending<'_>, B> {
        loop {
            if let Some(pending) = self.front.begin_put(hash) {
                return Ok(pending);
            }
            self.new_generation().await?;
        }
    }

    async fn begin_remove(&self, hash: u64) -> Result<Removing, B> {
        loop {
            if let Some(removing) = self.front.begin_remove(hash) {
                return Ok(removing);
            }
            self.new_generation().await?;
        }
    }
}

/// Reads the filter of a checkpoint in a thread: a runtime must not be blocked, and it is not known which one it is.
fn read_in_background(arrival: Arrival, front: &Arc<Front>, opened: &Arc<Opening>) {
    let arrival = Arc::new(arrival);
    let thread = std::thread::Builder::new().name("ironbloom-guard".to_owned());
    let work = {
        let (arrival, front, opened) = (arrival.clone(), front.clone(), opened.clone());
        move || opened.set(arrival.take_place(&front))
    };
    if thread.spawn(work).is_err() {
        opened.set(arrival.cancel(front));
    }
}
