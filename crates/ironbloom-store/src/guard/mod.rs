//! A filter in front of a store.

mod background;
mod maintenance;
mod questions;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::background::{Background, Job};
#[cfg(feature = "async")]
pub(crate) use self::maintenance::{BATCH, Unfinished};
pub(crate) use self::questions::{Questions, nanos_since, outcome};
use ironbloom::FileError;

use crate::backend::Backend;
use crate::checkpoint::{self, Arrival, Files, Found, ToLoad, Unusable};
use crate::error::Error;
use crate::events;
use crate::filter;
use crate::front::{Answer, Front};
use crate::options::{Options, Rebuild};
use crate::published::Publisher;
use crate::stats::{Counters, Outcome, Stats};
use crate::stripes::Stripes;

/// Number of writes between two checks whether the filter should be rebuilt.
const LOOK_EVERY: u64 = 64;

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
    inner: Arc<Inner<B>>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// How a guard got its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The generation of the checkpoint is that of the store, and its filter is being read; until it has been read and
    /// verified, every lookup goes to the store. [`Guard::settle`] waits for it.
    Reading,
    /// The checkpoint covers the store.
    FromCheckpoint,
    /// The store is empty.
    Empty,
    /// The filter is being built from a scan (or will be, see [`Rebuild`]); until then every lookup goes to the store.
    /// A window is not built, but filled: every lookup goes to the store until as many keys were put as it remembers.
    WithoutCheckpoint(Unusable),
}

struct Inner<B: Backend> {
    backend: B,
    front: Arc<Front>,
    publisher: Option<Publisher>,
    stripes: Stripes,
    /// Held while giving the store a generation.
    naming: Mutex<()>,
    files: Option<Files>,
    counters: Counters,
    rebuild: Rebuild,
    retry_after: Duration,
    /// Held while building or reading a filter or writing a checkpoint.
    maintaining: Mutex<()>,
    background: Background<B::Error>,
    /// Not set while that is not known.
    opened: OnceLock<Opened>,
    writes: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Backend> Guard<B> {
    /// Puts a guard in front of a store. If the checkpoint covers the store this takes no time; if not, the filter is
    /// built in the background, while lookups go to the store. [`opened`](Self::opened) tells which.
    pub fn open(backend: B, options: Options) -> Result<Self, B> {
        filter::empty(&options.spec, 0)?; // invalid parameters are refused now, not in the background
        let files = options.checkpoint.as_deref().map(Files::new);
        files.as_ref().map_or(Ok(()), Files::check_folder)?;
        let generation = backend.generation().map_err(Error::Store)?;
        let alone = backend.is_exclusive() || options.only_writer;
        let Found { totals, doubts, filter } =
            checkpoint::find(files.as_ref(), &options.spec, generation, alone);
        let front = Arc::new(Front::new(&options, doubts, alone, backend.lands_within()));
        let inner = Arc::new(Inner {
            publisher: publisher(&front, &options)?,
            front,
            stripes: Stripes::new(),
            naming: Mutex::new(()),
            files,
            counters: Counters::new(totals),
            rebuild: options.rebuild,
            retry_after: options.retry_after,
            maintaining: Mutex::new(()),
            background: Background::new(),
            opened: OnceLock::new(),
            writes: AtomicU64::new(0),
            backend,
        });
        let job = inner.first_filter(filter)?;
        let guard = Self { inner, worker: Mutex::new(None) };
        if let Some(job) = job {
            guard.start(job);
        }
        Ok(guard)
    }

    /// How the guard got its filter.
    pub fn opened(&self) -> &Opened {
        self.inner.opened.get().unwrap_or(&Opened::Reading)
    }

    /// The value of a key. The store is queried only if the key may be there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, B> {
        self.ask(key.as_ref(), |key| self.inner.backend.get(key), Option::is_some)
    }

    /// The value of a key, and whether the store was asked for it.
    pub(crate) fn look(&self, key: &[u8]) -> Result<(Option<Vec<u8>>, bool), B> {
        let mut asked = false;
        let read = |key: &[u8]| {
            asked = true;
            self.inner.backend.get(key)
        };
        let value = self.ask(key, read, Option::is_some)?;
        Ok((value, asked))
    }

    /// Whether nobody else writes to the store, so that the filter knows all keys.
    pub(crate) fn is_alone(&self) -> bool {
        self.inner.front.is_alone()
    }

    /// Whether a key is stored. The store is queried only if it may be.
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

    /// The values of many keys, in their order. The store is queried once, for those that may be there.
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

    /// Stores a value: the filter first, then the store, so that a crash between the two can only cause a false
    /// positive. True if the key was not there before.
    ///
    /// After an error it is unknown whether the value was, or will be, stored; lookups of the key go to the store from
    /// then on.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let key = key.as_ref();
        let hash = front.hash(key);
        let stripe = stripes.lock(hash);
        // Dropped before the stripe, however this function exits.
        let pending = self.inner.begin_put(hash)?;
        let put = backend.put(key, value.as_ref());
        let foreign = match put {
            Ok(new) => pending.end(!new),
            Err(_) => {
                drop(pending);
                false
            }
        };
        drop(stripe);
        self.after_writes(1, foreign);
        put.map_err(Error::Store)
    }

    /// Stores many values; returns for each whether its key was not there before. Many times faster than one by one if
    /// the store waits for the disk once instead of for each.
    pub fn put_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<Vec<bool>, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let pairs: Vec<(&[u8], &[u8])> =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        let hashes: Vec<u64> = pairs.iter().map(|(key, _)| front.hash(key)).collect();
        let held = stripes.lock_many(&hashes);
        let begin = |&hash: &u64| self.inner.begin_put(hash);
        let pending = hashes.iter().map(begin).collect::<Result<Vec<_>, B>>()?;
        let put = backend.put_many(&pairs);
        let mut foreign = false;
        if let Ok(new) = &put {
            for (pending, new) in pending.into_iter().zip(new) {
                foreign |= pending.end(!new);
            }
        } else {
            drop(pending);
        }
        drop(held);
        self.after_writes(pairs.len() as u64, foreign);
        put.map_err(Error::Store)
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. True if it was.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let key = key.as_ref();
        let hash = front.hash(key);
        let stripe = stripes.lock(hash);
        if front.ask(hash) == Answer::Absent && front.spec().kind.can_rebuild() {
            return Ok(false); // a window may have forgotten it, the others know
        }
        let removing = self.inner.begin_remove(hash)?;
        let removed = backend.remove(key).map_err(Error::Store)?;
        if removed {
            front.end_remove(hash, removing);
        }
        drop(stripe);
        self.after_writes(1, false);
        Ok(removed)
    }

    /// Removes many keys; returns for each whether it was stored. The store is queried once, for those that may be
    /// there.
    pub fn remove_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<bool>, B> {
        let Inner { front, stripes, backend, .. } = &*self.inner;
        let hashes: Vec<u64> = keys.iter().map(|key| front.hash(key.as_ref())).collect();
        let held = stripes.lock_many(&hashes);
        let asked = front.may_be_removed(&hashes);
        let begin = |&i: &usize| self.inner.begin_remove(hashes[i]);
        let removing = asked.iter().map(begin).collect::<Result<Vec<_>, B>>()?;
        let texts: Vec<&[u8]> = asked.iter().map(|&i| keys[i].as_ref()).collect();
        let mut answers = vec![false; keys.len()];
        if !texts.is_empty() {
            let removed = backend.remove_many(&texts).map_err(Error::Store)?;
            for ((&i, removing), removed) in asked.iter().zip(removing).zip(removed) {
                answers[i] = removed;
                if removed {
                    front.end_remove(hashes[i], removing);
                }
            }
        }
        drop(held);
        self.after_writes(asked.len() as u64, false);
        Ok(answers)
    }

    /// Tells the guard that someone else has stored this key. A key written to the store without the guard is answered
    /// "absent" until this is called or the filter is rebuilt.
    pub fn note(&self, key: impl AsRef<[u8]>) -> Result<(), B> {
        let Inner { front, stripes, .. } = &*self.inner;
        let hash = front.hash(key.as_ref());
        let _stripe = stripes.lock(hash);
        while !front.note(hash) {
            self.inner.new_generation()?;
        }
        if let Some(publisher) = &self.inner.publisher {
            publisher.changed(1);
        }
        Ok(())
    }

    /// Tells the guard that someone else has removed this key. Not needed for correct answers: without it, each lookup
    /// of the key costs a read of the store until the filter is rebuilt.
    pub fn note_removed(&self, key: impl AsRef<[u8]>) {
        let front = &self.inner.front;
        front.note_removed(front.hash(key.as_ref()));
        self.after_writes(1, false);
    }

    /// The statistics so far.
    pub fn stats(&self) -> Stats {
        self.inner.front.stats(&self.inner.counters)
    }

    /// Writes the filter and the statistics to the checkpoint file. Until the next write, opening with it is instant.
    /// Reads and writes continue meanwhile.
    pub fn checkpoint(&self) -> Result<(), B> {
        self.inner.background.wait();
        self.inner.checkpoint()
    }

    /// Writes the filter to the file that [`Options::publish`] names, for other processes: every put that was
    /// acknowledged before this call is in it. A missing filter is built now.
    pub fn publish(&self) -> Result<(), B> {
        let Some(publisher) = &self.inner.publisher else {
            return Err(Error::CannotPublish(self.inner.front.spec().kind));
        };
        self.inner.background.wait();
        while !publisher.publish().map_err(Error::Publish)? {
            let _only = locked(&self.inner.maintaining);
            if self.inner.front.lacks_filter() {
                self.inner.rebuild()?;
            }
        }
        Ok(())
    }

    /// Rebuilds the filter from a scan of the store, and returns when it is in place. Reads and writes continue
    /// meanwhile.
    pub fn rebuild(&self) -> Result<(), B> {
        self.inner.background.wait();
        let _only = locked(&self.inner.maintaining);
        self.inner.rebuild()
    }

    /// Waits for background work, and reports its error if it failed. A failed rebuild is retried after a pause
    /// ([`Options::retry_after`]), which this does not wait for.
    pub fn settle(&self) -> Result<(), B> {
        self.inner.background.wait();
        self.inner.background.failure().map_or(Ok(()), Err)
    }

    /// Writes a checkpoint, if the options name a file for it, and closes the guard. Earlier failures in the background
    /// do not matter: a missing filter is built now.
    pub fn close(self) -> Result<(), B> {
        if self.inner.files.is_some() { self.checkpoint() } else { Ok(()) }
    }

    /// The store behind the guard. Reading from it directly is harmless; keys written to it directly must be
    /// [noted](Self::note).
    pub fn backend(&self) -> &B {
        &self.inner.backend
    }

    /// Checks from time to time whether the filter should be rebuilt; immediately if others have written to the store.
    fn after_writes(&self, count: u64, foreign: bool) {
        if foreign {
            self.inner.front.distrust();
            events::foreign_row();
            // A checkpoint being written does not know about them either. If the store fails now, the next write fails
            // as well, or sets a new generation.
            let _ = self.inner.new_generation();
        }
        if let Some(publisher) = &self.inner.publisher {
            publisher.changed(count);
        }
        let before = self.inner.writes.fetch_add(count, Ordering::Relaxed);
        let looks = before / LOOK_EVERY != (before + count) / LOOK_EVERY;
        if (looks || foreign)
            && self.inner.rebuild == Rebuild::Background
            && self.inner.front.wants_rebuild()
        {
            self.start(Job::Rebuild);
        }
    }

    /// Starts a background thread, unless one is already running.
    fn start(&self, job: Job) {
        let mut worker = locked(&self.worker);
        if !self.inner.background.claim() {
            return;
        }
        let awaited = match &job {
            Job::Load(arrival) => Some(arrival.clone()),
            Job::Rebuild => None,
        };
        let inner = self.inner.clone();
        let thread = std::thread::Builder::new().name("ironbloom-guard".to_owned());
        match thread.spawn(move || inner.work(job)) {
            Ok(thread) => *worker = Some(thread),
            // Without a thread every lookup is still answered, and a later write tries again.
            Err(_) => {
                if let Some(arrival) = awaited {
                    let _ = self.inner.opened.set(arrival.cancel(&self.inner.front));
                }
                self.inner.background.release(|| false);
            }
        }
    }
}

/// What publishes the filter, if the options ask for it.
pub(crate) fn publisher<E>(
    front: &Arc<Front>,
    options: &Options,
) -> std::result::Result<Option<Publisher>, Error<E>> {
    let Some(publish) = &options.publish else { return Ok(None) };
    let kind = options.spec.kind;
    if publish.path.as_os_str().is_empty() || !kind.maker().can_publish {
        return Err(Error::CannotPublish(kind));
    }
    let in_file = |error| FileError::Io { path: publish.path.clone(), error };
    Publisher::start(front, publish).map(Some).map_err(|error| Error::Publish(in_file(error)))
}

impl<B: Backend> Inner<B> {
    /// The filter that the guard starts with, or the background work needed to get one.
    fn first_filter(&self, found: std::result::Result<ToLoad, Unusable>) -> Result<Option<Job>, B> {
        let loaded = match found {
            Ok(checkpoint) if checkpoint.is_large() => {
                return Ok(Some(Job::Load(Arc::new(Arrival::expect(&self.front, checkpoint)))));
            }
            Ok(checkpoint) => checkpoint.load(),
            Err(why) => Err(why),
        };
        let opened = match loaded {
            Ok(loaded) => {
                self.front.install(loaded.filter, loaded.dead);
                Opened::FromCheckpoint
            }
            Err(why) => {
                events::checkpoint_unusable(&why);
                let empty = self.backend.len_hint().map_err(Error::Store)? == Some(0);
                self.front.start(empty)?;
                if empty { Opened::Empty } else { Opened::WithoutCheckpoint(why) }
            }
        };
        let wanted = matches!(opened, Opened::WithoutCheckpoint(_)) && self.front.wants_rebuild();
        let _ = self.opened.set(opened);
        Ok((wanted && self.rebuild == Rebuild::Background).then_some(Job::Rebuild))
    }
}

impl<B: Backend> Drop for Guard<B> {
    /// Stops background work. Writes no checkpoint: that could fail unnoticed.
    fn drop(&mut self) {
        self.inner.background.stop();
        if let Some(worker) = locked(&self.worker).take() {
            let _ = worker.join();
        }
    }
}
