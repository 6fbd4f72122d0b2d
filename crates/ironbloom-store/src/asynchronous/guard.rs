//! A filter in front of a store that is asked asynchronously.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use async_lock::Mutex;

use super::backend::AsyncBackend;
use crate::checkpoint::{self, Files, Found};
use crate::error::Error;
use crate::events;
use crate::filter::SharedFilter;
use crate::front::{Answer, Front, Next, Pending, Removing};
use crate::generation::Generation;
use crate::guard::{BATCH, Opened, Questions, Unfinished, nanos_since, outcome};
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
    /// Held by who gives the store a generation.
    naming: Mutex<()>,
    files: Option<Files>,
    counters: Counters,
    /// Held by who builds a filter or writes a checkpoint.
    maintaining: Mutex<()>,
    opened: Opened,
}

/// Checkpoints that are tried while others write to the store without the guard.
const MOST_REBUILDS: u32 = 8;

impl<B: AsyncBackend> AsyncGuard<B> {
    /// Puts a guard in front of a store. If no checkpoint covers it, every lookup asks the store until
    /// [`rebuild`](Self::rebuild) was called. Reads the checkpoint while it blocks the thread: some milliseconds for a
    /// hundred megabytes.
    pub async fn open(backend: B, options: Options) -> Result<Self, B> {
        SharedFilter::new(&options.plan, 0)?; // what cannot be is refused now
        let files = options.checkpoint.as_deref().map(Files::new);
        files.as_ref().map_or(Ok(()), Files::check_folder)?;
        let generation = backend.generation().await.map_err(Error::Store)?;
        let alone = backend.is_exclusive() || options.only_writer;
        let Found { totals, doubts, filter } =
            checkpoint::find(files.as_ref(), &options.plan, generation, alone);
        let front = Front::new(&options, doubts, alone, backend.lands_within());
        let opened = match filter.and_then(|checkpoint| checkpoint.load()) {
            Ok(loaded) => {
                front.install(loaded.filter, loaded.dead);
                Opened::FromCheckpoint
            }
            Err(why) => {
                events::checkpoint_unusable(&why);
                let empty = backend.len_hint().await.map_err(Error::Store)? == Some(0);
                front.start(empty)?;
                if empty { Opened::Empty } else { Opened::Anew(why) }
            }
        };
        Ok(Self {
            backend,
            front,
            stripes: std::array::from_fn(|_| Mutex::new(())),
            naming: Mutex::new(()),
            files,
            counters: Counters::new(totals),
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
        // Ends before the stripe does, also if this future is dropped while it waits.
        let pending = self.begin_put(hash).await?;
        let new = self.backend.put(key, value).await.map_err(Error::Store)?;
        if pending.end(!new) {
            self.front.distrust();
            events::foreign_row();
            // As the other guard: a checkpoint that is being written is not to be believed.
            let _ = self.new_generation().await;
        }
        Ok(new)
    }

    /// Removes a key: from the store first, then from the filter, and from that only if it was stored. True if it was.
    pub async fn remove(&self, key: &[u8]) -> Result<bool, B> {
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        if self.front.ask(hash) == Answer::Absent && self.front.plan().kind.can_rebuild() {
            return Ok(false);
        }
        let removing = self.begin_remove(hash).await?;
        let removed = self.backend.remove(key).await.map_err(Error::Store)?;
        if removed {
            self.front.end_remove(hash, removing);
        }
        Ok(removed)
    }

    /// Tells the guard that somebody else has stored this key.
    pub async fn note(&self, key: &[u8]) -> Result<(), B> {
        let hash = self.front.hash(key);
        let _stripe = self.stripes[stripe_of(hash)].lock().await;
        while !self.front.note(hash) {
            self.new_generation().await?;
        }
        Ok(())
    }

    /// Tells the guard that somebody else has removed this key. Not needed for right answers.
    pub fn note_removed(&self, key: &[u8]) {
        self.front.note_removed(self.front.hash(key));
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

    /// Writes the filter and the statistics to the checkpoint file, while it blocks the thread.
    pub async fn checkpoint(&self) -> Result<(), B> {
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        let _only = self.maintaining.lock().await;
        for _ in 0..MOST_REBUILDS {
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
            return Ok(files.write(generation, self.front.plan(), &snapshot, &stats)?);
        }
        Err(Error::Overtaken)
    }

    /// The store behind the guard.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// As [`Guard`](crate::Guard)'s: before the first write after a checkpoint.
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
