//! A filter in front of a store that is asked asynchronously.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use async_lock::{Mutex, MutexGuard};

use super::backend::AsyncBackend;
use crate::checkpoint::{self, Files, find_damage};
use crate::error::Error;
use crate::filter::SharedFilter;
use crate::front::{Answer, Front, Next};
use crate::generation::Generation;
use crate::guard::{BATCH, Opened, Questions, nanos_since, outcome};
use crate::options::Options;
use crate::stats::{Counters, Outcome, Stats};
use crate::stripes::{STRIPES, stripe_of};

type Result<T, B> = std::result::Result<T, Error<<B as AsyncBackend>::Error>>;

/// A filter in front of a store that is asked asynchronously. As [`Guard`](crate::Guard), but nothing runs in the
/// background: see [`rebuild`](Self::rebuild).
///
/// The filter itself is asked without waiting; only the store is awaited. Futures may be dropped at any time: a put that
/// was given up may or may not have been stored, and is answered if it was.
pub struct AsyncGuard<B: AsyncBackend> {
    backend: B,
    front: Front,
    stripes: [Mutex<()>; STRIPES],
    /// Whether a checkpoint of the store's generation may be there: then the next write needs a new one.
    clean: AtomicBool,
    generation: Mutex<Option<Generation>>,
    files: Option<Files>,
    counters: Counters,
    /// Held by who builds a filter or writes a checkpoint.
    maintaining: Mutex<()>,
    opened: Opened,
}

/// A put between its filter and the end of its store, which may be never.
struct Pending<'f> {
    front: &'f Front,
    hash: u64,
    looked_new: bool,
    /// Whether the key was stored before, once that is known.
    stored_before: Option<bool>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.front.after_put(self.hash, self.looked_new, self.stored_before);
    }
}

/// Gives up a filter that is not finished.
struct Unfinished<'f>(&'f Front);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl<B: AsyncBackend> AsyncGuard<B> {
    /// Puts a guard in front of a store. If no checkpoint covers it, every lookup asks the store until
    /// [`rebuild`](Self::rebuild) was called. Reads the checkpoint while it blocks the thread: some milliseconds for a
    /// hundred megabytes.
    pub async fn open(backend: B, options: Options) -> Result<Self, B> {
        SharedFilter::new(&options.plan, 0)?; // what cannot be is refused now
        let files = options.checkpoint.as_deref().map(Files::new);
        let generation = backend.generation().await.map_err(Error::Store)?;
        let trusted = backend.is_exclusive() || options.only_writer;
        let (before, loaded) = checkpoint::find(files.as_ref(), &options.plan, generation, trusted);
        let loaded = loaded.and_then(|loaded| match &loaded.unverified {
            None => Ok(loaded),
            Some(path) => match find_damage(path) {
                Ok(()) => Ok(loaded),
                Err(why) => Err(checkpoint::Unusable::Damaged(why)),
            },
        });
        let front = Front::new(&options);
        let opened = match loaded {
            Ok(loaded) => {
                front.install(loaded.filter, loaded.dead);
                Opened::FromCheckpoint
            }
            Err(why) => {
                let empty = backend.len_hint().await.map_err(Error::Store)? == Some(0);
                front.start(empty)?;
                if empty { Opened::Empty } else { Opened::Anew(why) }
            }
        };
        Ok(Self {
            backend,
            front,
            stripes: std::array::from_fn(|_| Mutex::new(())),
            clean: AtomicBool::new(true),
            generation: Mutex::new(generation),
            files,
            counters: Counters::new(before),
            maintaining: Mutex::new(()),
            opened,
        })
    }

    /// How the guard came by its filter.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The value of a key. The store is only asked if the key may be there.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, B> {
        let sample = self.counters.begin();
        let answer = self.front.ask(self.front.hash(key));
        if answer == Answer::Absent {
            self.counters.end(sample, Outcome::Skipped);
            return Ok(None);
        }
        let value = self.backend.get(key).await.map_err(Error::Store)?;
        self.counters.end(sample, outcome(answer, value.is_some()));
        Ok(value)
    }

    /// The values of many keys, in their order. The store is asked once, for those that may be there.
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
    pub async fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, B> {
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        self.new_generation().await?;
        // Ends before the stripe does, also if this future is dropped while it waits.
        let mut pending = Pending {
            looked_new: self.front.before_put(hash),
            front: &self.front,
            hash,
            stored_before: None,
        };
        let new = self.backend.put(key, value).await.map_err(Error::Store)?;
        pending.stored_before = Some(!new);
        Ok(new)
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. True if it was.
    pub async fn remove(&self, key: &[u8]) -> Result<bool, B> {
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        if self.front.ask(hash) == Answer::Absent && self.front.plan().kind.can_rebuild() {
            return Ok(false);
        }
        self.new_generation().await?;
        let removed = self.backend.remove(key).await.map_err(Error::Store)?;
        if removed {
            self.front.after_remove(hash);
        }
        Ok(removed)
    }

    /// Tells the guard that somebody else has stored this key.
    pub async fn note(&self, key: &[u8]) -> Result<(), B> {
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        self.new_generation().await?;
        self.front.note(hash);
        Ok(())
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        self.front.stats(&self.counters)
    }

    /// Whether the filter should be built anew: it is not there yet, over capacity, or has too many dead keys.
    pub fn wants_rebuild(&self) -> bool {
        self.front.wants_rebuild()
    }

    /// Builds the filter anew from a scan of the store. Reads and writes go on meanwhile. If the future is dropped, the old
    /// filter stays.
    pub async fn rebuild(&self) -> Result<(), B> {
        let _only = self.maintaining.lock().await;
        self.rebuild_alone().await
    }

    async fn rebuild_alone(&self) -> Result<(), B> {
        if !self.front.plan().kind.can_rebuild() {
            return Err(Error::NoRebuild);
        }
        let keys = self.backend.len_hint().await.map_err(Error::Store)?;
        let next = Arc::new(self.front.plan_next(keys)?);
        let unfinished = Unfinished(&self.front);
        {
            let _all = self.lock_all().await;
            self.front.begin(next.clone());
        }
        self.scan_into(&next).await?;
        let _all = self.lock_all().await;
        self.front.finish(&next);
        self.front.count_rebuild();
        std::mem::forget(unfinished);
        Ok(())
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

    /// Writes the filter and the statistics to the checkpoint file, while it blocks the thread.
    pub async fn checkpoint(&self) -> Result<(), B> {
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        let _only = self.maintaining.lock().await;
        if matches!(*self.front.current(), SharedFilter::Open) {
            self.rebuild_alone().await?;
        }
        let generation = self.end_generation().await?;
        self.backend.sync().await.map_err(Error::Store)?;
        Ok(files.write(generation, &self.front, &self.counters)?)
    }

    /// The store behind the guard.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    async fn lock_all(&self) -> Vec<MutexGuard<'_, ()>> {
        let mut held = Vec::with_capacity(STRIPES);
        for stripe in &self.stripes {
            held.push(stripe.lock().await);
        }
        held
    }

    /// As [`Guard`](crate::Guard)'s: before the first write after a checkpoint.
    async fn new_generation(&self) -> Result<(), B> {
        if !self.clean.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut generation = self.generation.lock().await;
        if self.clean.load(Ordering::Acquire) {
            let fresh = Generation::fresh();
            *generation = None; // if this fails, or the future ends here, nobody knows which one the store has
            self.backend.set_generation(fresh).await.map_err(Error::Store)?;
            *generation = Some(fresh);
            self.clean.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// As [`Guard`](crate::Guard)'s: all writes of the generation that is returned are in the filter.
    async fn end_generation(&self) -> Result<Generation, B> {
        let mut generation = self.generation.lock().await;
        let ended = match *generation {
            Some(generation) => generation,
            None => {
                let fresh = Generation::fresh();
                self.backend.set_generation(fresh).await.map_err(Error::Store)?;
                fresh
            }
        };
        *generation = Some(ended);
        self.clean.store(true, Ordering::Release);
        drop(generation);
        drop(self.lock_all().await);
        Ok(ended)
    }
}
