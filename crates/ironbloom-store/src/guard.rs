//! A filter in front of a store.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::backend::Backend;
use crate::checkpoint::{self, Files, Unusable, find_damage};
use crate::error::Error;
use crate::filter::SharedFilter;
use crate::front::{Answer, Front, Next};
use crate::generation::Generation;
use crate::options::{Options, Rebuild};
use crate::stats::{Counters, Outcome, Stats};
use crate::stripes::Stripes;

/// Hashes that a scan collects before they go into the filter together.
pub(crate) const BATCH: usize = 1 << 19;
/// Writes between two looks whether the filter should be built anew.
pub(crate) const LOOK_EVERY: u64 = 64;
/// Writes after a rebuild that failed before another is tried.
const PATIENCE: u64 = 10_000;
/// Rebuilds in a row without a write that asks for one: each plans for a quarter more, so a few are enough, and a filter that
/// cannot be made large enough is not built for ever.
const MOST_REBUILDS: u32 = 8;

type Result<T, B> = std::result::Result<T, Error<<B as Backend>::Error>>;

/// A filter in front of a store: what is not there is not asked for. See the [crate's documentation](crate).
///
/// All methods take `&self` and can be called by many threads at once. Lookups take no lock.
///
/// ```
/// use ironbloom_store::{Guard, Kind, Memory, Options};
///
/// let guard = Guard::open(Memory::new(), Options::new(Kind::Cuckoo, 1000, 0.01))?;
/// guard.put(b"alice", b"1")?;
/// assert_eq!(guard.get(b"alice")?, Some(b"1".to_vec()));
/// assert_eq!(guard.get(b"bob")?, None);               // the store was not asked
/// assert_eq!(guard.stats().skipped(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Guard<B: Backend> {
    inner: Arc<Inner<B>>,
    worker: Mutex<Option<JoinHandle<()>>>,
    opened: Opened,
}

/// How a guard came by its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The checkpoint covers the store.
    FromCheckpoint,
    /// The store is empty.
    Empty,
    /// The filter is being built from a scan (or will be, see [`Rebuild`]); until then every lookup asks the store. A
    /// window is not built, but filled: every lookup asks the store until as many keys were put as it remembers.
    Anew(Unusable),
}

struct Inner<B: Backend> {
    backend: B,
    front: Front,
    stripes: Stripes,
    mark: Mark,
    files: Option<Files>,
    counters: Counters,
    rebuild: Rebuild,
    /// Held by who builds a filter or writes a checkpoint.
    maintaining: Mutex<()>,
    stop: AtomicBool,
    writes: AtomicU64,
    /// The number of writes before which no rebuild is tried in the background.
    patient_until: AtomicU64,
    failure: Mutex<Option<Error<B::Error>>>,
}

/// Which generation the store has, and whether a checkpoint of it might be there: then the next write needs a new one.
struct Mark {
    clean: AtomicBool,
    generation: Mutex<Option<Generation>>,
}

/// What the thread in the background has to do.
enum Job {
    Rebuild,
    /// Believe a mapped filter once its file is seen to be whole.
    Verify {
        path: PathBuf,
        next: Arc<Next>,
    },
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend> Guard<B> {
    /// Puts a guard in front of a store. If the checkpoint covers the store this takes no time; if not, the filter is
    /// built in the background, while lookups ask the store. [`opened`](Self::opened) tells.
    pub fn open(backend: B, options: Options) -> Result<Self, B> {
        SharedFilter::new(&options.plan, 0)?; // what cannot be is refused now, not in the background
        let files = options.checkpoint.as_deref().map(Files::new);
        let generation = backend.generation().map_err(Error::Store)?;
        let trusted = backend.is_exclusive() || options.only_writer;
        let (before, loaded) = checkpoint::find(files.as_ref(), &options.plan, generation, trusted);
        let inner = Arc::new(Inner {
            front: Front::new(&options),
            stripes: Stripes::new(),
            // Clean also if no checkpoint was used: there may be one of this generation that was refused, and would be
            // accepted after a write that it has not seen.
            mark: Mark { clean: AtomicBool::new(true), generation: Mutex::new(generation) },
            files,
            counters: Counters::new(before),
            rebuild: options.rebuild,
            maintaining: Mutex::new(()),
            stop: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            patient_until: AtomicU64::new(0),
            failure: Mutex::new(None),
            backend,
        });
        let mut job = None;
        let opened = match loaded {
            Ok(loaded) => {
                match loaded.unverified {
                    None => inner.front.install(loaded.filter, loaded.dead),
                    Some(path) => {
                        let next = Arc::new(Next::new(loaded.filter).with_dead(loaded.dead));
                        inner.front.begin(next.clone());
                        job = Some(Job::Verify { path, next });
                    }
                }
                Opened::FromCheckpoint
            }
            Err(why) => {
                let empty = inner.backend.len_hint().map_err(Error::Store)? == Some(0);
                inner.front.start(empty)?;
                let buildable = !empty && options.plan.kind.can_rebuild();
                if buildable && options.rebuild == Rebuild::Background {
                    job = Some(Job::Rebuild);
                }
                if empty { Opened::Empty } else { Opened::Anew(why) }
            }
        };
        let guard = Self { inner, worker: Mutex::new(None), opened };
        if let Some(job) = job {
            guard.start(job);
        }
        Ok(guard)
    }

    /// How the guard came by its filter.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The value of a key. The store is only asked if the key may be there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, B> {
        self.ask(key.as_ref(), |key| self.inner.backend.get(key), Option::is_some)
    }

    /// Whether a key is stored. The store is only asked if it may be.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        self.ask(key.as_ref(), |key| self.inner.backend.contains(key), |&found| found)
    }

    #[inline]
    fn ask<T: Default>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> std::result::Result<T, B::Error>,
        found: impl FnOnce(&T) -> bool,
    ) -> Result<T, B> {
        let Inner { front, counters, .. } = &*self.inner;
        let sample = counters.begin();
        let answer = front.ask(front.hash(key));
        if answer == Answer::Absent {
            counters.end(sample, Outcome::Skipped);
            return Ok(T::default());
        }
        let result = read(key).map_err(Error::Store)?;
        counters.end(sample, outcome(answer, found(&result)));
        Ok(result)
    }

    /// The values of many keys, in their order. The store is asked once, for those that may be there.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, B> {
        let Inner { front, counters, backend, .. } = &*self.inner;
        let questions = Questions::sort_out(front, counters, keys);
        if questions.asked.is_empty() {
            return Ok(questions.answered(counters, Vec::new(), 0));
        }
        let start = Instant::now();
        let values = backend.get_many(&questions.asked).map_err(Error::Store)?;
        Ok(questions.answered(counters, values, nanos_since(start)))
    }

    /// Stores a value: the filter first, then the store, so that a crash between them can only be a false positive. True
    /// if the key was not there before.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let key = key.as_ref();
        let hash = front.hash(key);
        let stripe = stripes.lock(hash);
        self.inner.new_generation()?;
        let looked_new = front.before_put(hash);
        let put = backend.put(key, value.as_ref());
        front.after_put(hash, looked_new, put.as_ref().ok().map(|new| !new));
        drop(stripe);
        self.after_writes(1);
        put.map_err(Error::Store)
    }

    /// Stores many values; for each, whether its key was not there before. Many times as fast as one by one where the store
    /// waits for the disk once and not for each.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<Vec<bool>, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        let hashes: Vec<u64> = pairs.iter().map(|(key, _)| front.hash(key)).collect();
        let held = stripes.lock_many(&hashes);
        self.inner.new_generation()?;
        let looked_new: Vec<bool> = hashes.iter().map(|&hash| front.before_put(hash)).collect();
        let put = backend.put_many(&pairs);
        for (i, (&hash, &looked_new)) in hashes.iter().zip(&looked_new).enumerate() {
            front.after_put(hash, looked_new, put.as_ref().ok().map(|new| !new[i]));
        }
        drop(held);
        self.after_writes(pairs.len() as u64);
        put.map_err(Error::Store)
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. True if it was. So a
    /// key that was never stored does no harm here, unlike in a filter alone.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let key = key.as_ref();
        let hash = front.hash(key);
        let stripe = stripes.lock(hash);
        if front.ask(hash) == Answer::Absent && front.plan().kind.can_rebuild() {
            return Ok(false); // a window may have forgotten it, the others know
        }
        self.inner.new_generation()?;
        let removed = backend.remove(key).map_err(Error::Store)?;
        if removed {
            front.after_remove(hash);
        }
        drop(stripe);
        self.after_writes(1);
        Ok(removed)
    }

    /// Tells the guard that somebody else has stored this key. A key that comes into the store without the guard is
    /// answered "absent" until this is called, or the filter is built anew.
    pub fn note(&self, key: impl AsRef<[u8]>) -> Result<(), B> {
        let Inner { front, stripes, .. } = &*self.inner;
        let hash = front.hash(key.as_ref());
        let _stripe = stripes.lock(hash);
        self.inner.new_generation()?;
        front.note(hash);
        Ok(())
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.inner.front.stats(&self.inner.counters)
    }

    /// Writes the filter and the statistics to the checkpoint file. Opening with it takes no time, until the next write.
    /// Reads and writes go on meanwhile.
    pub fn checkpoint(&self) -> Result<(), B> {
        if self.inner.files.is_none() {
            return Err(Error::NoCheckpointFile);
        }
        self.settle()?;
        self.inner.checkpoint()
    }

    /// Builds the filter anew from a scan of the store, and returns when it is in place. Reads and writes go on
    /// meanwhile.
    pub fn rebuild(&self) -> Result<(), B> {
        self.settle()?;
        let _only = locked(&self.inner.maintaining);
        self.inner.rebuild()
    }

    /// Waits for what runs in the background, and tells how it failed if it did.
    pub fn settle(&self) -> Result<(), B> {
        let worker = locked(&self.worker).take();
        if let Some(Err(panic)) = worker.map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        locked(&self.inner.failure).take().map_or(Ok(()), Err)
    }

    /// Writes a checkpoint, if there is a file for it, and ends the guard.
    pub fn close(self) -> Result<(), B> {
        if self.inner.files.is_some() { self.checkpoint() } else { Ok(()) }
    }

    /// The store behind the guard. Reading from it directly does no harm; keys that are written to it directly must be
    /// [noted](Self::note).
    pub fn backend(&self) -> &B {
        &self.inner.backend
    }

    /// Looks now and then whether the filter should be built anew.
    fn after_writes(&self, count: u64) {
        let before = self.inner.writes.fetch_add(count, Ordering::Relaxed);
        let after = before + count;
        if before / LOOK_EVERY == after / LOOK_EVERY
            || self.inner.rebuild == Rebuild::Manual
            || after < self.inner.patient_until.load(Ordering::Relaxed)
            || !self.inner.front.wants_rebuild()
        {
            return;
        }
        self.start(Job::Rebuild);
    }

    /// Starts a thread in the background, unless one is at work.
    fn start(&self, job: Job) {
        let mut worker = locked(&self.worker);
        if worker.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let inner = self.inner.clone();
        let verifying = matches!(job, Job::Verify { .. });
        let thread = std::thread::Builder::new().name("ironbloom-guard".to_owned());
        match thread.spawn(move || inner.work(job)) {
            Ok(thread) => *worker = Some(thread),
            // Without a thread every lookup is still answered, and a later write tries again.
            Err(_) if verifying => self.inner.front.abandon(),
            Err(_) => {}
        }
    }
}

impl<B: Backend> Drop for Guard<B> {
    /// Ends what runs in the background. Writes no checkpoint: that could fail, and nobody would know.
    fn drop(&mut self) {
        self.inner.stop.store(true, Ordering::Relaxed);
        if let Some(worker) = locked(&self.worker).take() {
            let _ = worker.join();
        }
    }
}

impl<B: Backend> Inner<B> {
    /// Gives the store a new generation if a checkpoint of the present one may be there. The caller holds a stripe, and
    /// writes nothing before.
    fn new_generation(&self) -> Result<(), B> {
        if !self.mark.clean.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut generation = locked(&self.mark.generation);
        if self.mark.clean.load(Ordering::Acquire) {
            let fresh = Generation::fresh();
            *generation = None; // if this fails, nobody knows which one the store has
            self.backend.set_generation(fresh).map_err(Error::Store)?;
            *generation = Some(fresh);
            self.mark.clean.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// From here on every write begins with a new generation; all writes of the one that is returned are in the filter.
    fn end_generation(&self) -> Result<Generation, B> {
        let mut generation = locked(&self.mark.generation);
        let ended = match *generation {
            Some(generation) => generation,
            None => {
                let fresh = Generation::fresh();
                self.backend.set_generation(fresh).map_err(Error::Store)?;
                fresh
            }
        };
        *generation = Some(ended);
        self.mark.clean.store(true, Ordering::Release);
        drop(generation);
        // Who has not seen the mark holds its stripe until its key is in the filter and in the store.
        drop(self.stripes.lock_all());
        Ok(ended)
    }

    fn checkpoint(&self) -> Result<(), B> {
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        let _only = locked(&self.maintaining);
        if matches!(*self.front.current(), SharedFilter::Open) {
            self.rebuild()?;
        }
        let generation = self.end_generation()?;
        self.backend.sync().map_err(Error::Store)?;
        Ok(files.write(generation, &self.front, &self.counters)?)
    }

    /// Builds the filter from a scan. The caller holds `maintaining`.
    fn rebuild(&self) -> Result<(), B> {
        if !self.front.plan().kind.can_rebuild() {
            return Err(Error::NoRebuild);
        }
        let keys = self.backend.len_hint().map_err(Error::Store)?;
        let next = Arc::new(self.front.plan_next(keys)?);
        {
            let _all = self.stripes.lock_all();
            self.front.begin(next.clone());
        }
        let scanned = self.scan_into(&next);
        let _all = self.stripes.lock_all();
        match scanned {
            Ok(()) => {
                self.front.finish(&next);
                self.front.count_rebuild();
            }
            Err(_) => self.front.abandon(),
        }
        scanned
    }

    fn scan_into(&self, next: &Next) -> Result<(), B> {
        let mut hashes = Vec::with_capacity(BATCH);
        let mut visit = |key: &[u8]| {
            hashes.push(self.front.hash(key));
            if hashes.len() == BATCH {
                next.absorb(&mut hashes);
                hashes.clear();
            }
            match self.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.backend.scan(&mut visit).map_err(Error::Store)?;
        next.absorb(&mut hashes);
        if self.stop.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The thread in the background.
    fn work(&self, job: Job) {
        let _only = locked(&self.maintaining);
        let done = match job {
            Job::Rebuild => self.rebuild_until_it_lasts(),
            Job::Verify { path, next } => self.verify(&path, &next),
        };
        match done {
            Ok(()) | Err(Error::Closed) => {}
            Err(error) => {
                let writes = self.writes.load(Ordering::Relaxed);
                self.patient_until.store(writes + PATIENCE, Ordering::Relaxed);
                *locked(&self.failure) = Some(error);
            }
        }
    }

    /// Writers may have outrun the rebuild: then the new filter is over capacity as soon as it is there, and nobody else would
    /// notice before the next write.
    fn rebuild_until_it_lasts(&self) -> Result<(), B> {
        for _ in 0..MOST_REBUILDS {
            if !self.front.wants_rebuild() {
                break;
            }
            self.rebuild()?;
        }
        Ok(())
    }

    /// Puts a mapped filter in place once its file is seen to be whole. If it is not, a new one is built.
    fn verify(&self, path: &std::path::Path, next: &Arc<Next>) -> Result<(), B> {
        let whole = find_damage(path).is_ok();
        {
            let _all = self.stripes.lock_all();
            if whole {
                self.front.finish(next);
                return Ok(());
            }
            self.front.abandon();
        }
        self.rebuild()
    }
}

/// Lookups in one call, sorted out by the filter.
pub(crate) struct Questions<'k> {
    /// Those that the store must be asked for.
    pub(crate) asked: Vec<&'k [u8]>,
    found: Vec<bool>,
    answer: Answer,
    filter_nanos: u64,
}

impl<'k> Questions<'k> {
    pub(crate) fn sort_out<K: AsRef<[u8]>>(
        front: &Front,
        counters: &Counters,
        keys: &'k [K],
    ) -> Self {
        let start = Instant::now();
        let hashes: Vec<u64> = keys.iter().map(|key| front.hash(key.as_ref())).collect();
        let mut found = vec![false; keys.len()];
        let answer = front.ask_many(&hashes, &mut found);
        let asked = keys.iter().zip(&found).filter(|(_, found)| **found);
        let asked: Vec<&[u8]> = asked.map(|(key, _)| key.as_ref()).collect();
        let skipped = (keys.len() - asked.len()) as u64;
        let filter_nanos = nanos_since(start) / keys.len().max(1) as u64;
        counters.add(Outcome::Skipped, skipped, skipped * filter_nanos);
        Self { asked, found, answer, filter_nanos }
    }

    /// The values in the order of the keys. `values` are those of the keys asked for, `nanos` the time of all.
    pub(crate) fn answered(
        self,
        counters: &Counters,
        values: Vec<Option<Vec<u8>>>,
        nanos: u64,
    ) -> Vec<Option<Vec<u8>>> {
        let nanos = nanos / self.asked.len().max(1) as u64 + self.filter_nanos;
        for hit in [true, false] {
            let count = values.iter().filter(|value| value.is_some() == hit).count() as u64;
            counters.add(outcome(self.answer, hit), count, count * nanos);
        }
        let mut values = values.into_iter();
        let value = |found| if found { values.next().flatten() } else { None };
        self.found.into_iter().map(value).collect()
    }
}

/// What became of a lookup that asked the store.
pub(crate) fn outcome(answer: Answer, found: bool) -> Outcome {
    match (answer, found) {
        (Answer::Unknown, _) => Outcome::Unguarded,
        (_, true) => Outcome::Hit,
        (_, false) => Outcome::FalsePositive,
    }
}

pub(crate) fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
