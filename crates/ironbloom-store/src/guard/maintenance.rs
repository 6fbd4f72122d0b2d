//! Generations, checkpoints and rebuilds: what a guard does besides serving its callers.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::background::MAX_REBUILDS;
use super::{Inner, Result, locked};
use crate::backend::Backend;
use crate::error::Error;
use crate::events;
use crate::front::{Front, Next, Pending, Removing};
use crate::generation::Generation;

/// Number of hashes that a scan collects before inserting them into the filter together.
pub(crate) const BATCH: usize = 1 << 19;

/// Abandons an unfinished filter: the scan has failed, has panicked, or is no longer polled.
pub(crate) struct Unfinished<'f> {
    pub(crate) front: &'f Front,
    pub(crate) next: Arc<Next>,
}

impl Unfinished<'_> {
    /// Installs the filter. False if others have written to the store meanwhile, which makes it useless.
    pub(crate) fn finish(self) -> bool {
        let finished = self.front.finish(&self.next);
        if finished {
            self.front.count_rebuild(true);
            events::rebuilt(self.front.len());
        }
        finished
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.front.abandon(&self.next); // nothing, if it is in place
    }
}

impl<B: Backend> Inner<B> {
    /// Gives the store a new generation if a checkpoint of the current one may exist. See `generation.rs`.
    pub(super) fn new_generation(&self) -> Result<(), B> {
        let _naming = locked(&self.naming);
        if self.front.is_clean() {
            self.backend.set_generation(Generation::fresh()).map_err(Error::Store)?;
            self.front.allow_writes();
        }
        Ok(())
    }

    /// A put begins, in a generation that no checkpoint has. The caller holds the stripe of its key.
    pub(super) fn begin_put(&self, hash: u64) -> Result<Pending<'_>, B> {
        loop {
            if let Some(pending) = self.front.begin_put(hash) {
                return Ok(pending);
            }
            self.new_generation()?;
        }
    }

    /// The same for a remove.
    pub(super) fn begin_remove(&self, hash: u64) -> Result<Removing, B> {
        loop {
            if let Some(removing) = self.front.begin_remove(hash) {
                return Ok(removing);
            }
            self.new_generation()?;
        }
    }

    /// Writes a snapshot of the filter to the files, under a generation that the store has had since before any later
    /// write.
    pub(super) fn checkpoint(&self) -> Result<(), B> {
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        let _only = locked(&self.maintaining);
        for _ in 0..MAX_REBUILDS {
            if self.front.lacks_filter() {
                self.rebuild()?;
            }
            let naming = locked(&self.naming);
            let Some(snapshot) = self.front.freeze() else { continue };
            let generation = Generation::fresh();
            self.backend.seal(generation).map_err(Error::Store)?;
            drop(naming);
            self.backend.sync().map_err(Error::Store)?;
            let stats = self.front.stats(&self.counters);
            files.write(generation, self.front.spec(), &snapshot, &stats)?;
            if let Some(publisher) = &self.publisher {
                publisher.publish().map_err(Error::Publish)?;
            }
            return Ok(());
        }
        Err(Error::Overtaken)
    }

    /// Builds the filter from a scan. The caller holds `maintaining`.
    pub(super) fn rebuild(&self) -> Result<(), B> {
        if !self.front.spec().kind.can_rebuild() {
            return Err(Error::NoRebuild);
        }
        // A store that panics has failed, even in the background, where nobody would notice.
        let built = catch_unwind(AssertUnwindSafe(|| self.build()));
        let built = built.unwrap_or_else(|panic| Err(Error::Panicked(words_of(&*panic))));
        if !matches!(built, Ok(()) | Err(Error::Closed)) {
            self.front.count_rebuild(false);
        }
        built
    }

    fn build(&self) -> Result<(), B> {
        let keys = self.backend.len_hint().map_err(Error::Store)?;
        let next = Arc::new(self.front.plan_next(keys)?);
        let unfinished = Unfinished { front: &self.front, next: next.clone() };
        self.front.begin(next.clone());
        self.scan_into(&next)?;
        if unfinished.finish() { Ok(()) } else { Err(Error::Overtaken) }
    }

    fn scan_into(&self, next: &Next) -> Result<(), B> {
        let mut hashes = Vec::with_capacity(BATCH);
        let mut visit = |key: &[u8]| {
            hashes.push(self.front.hash(key));
            if hashes.len() == BATCH {
                next.absorb(&mut hashes);
                hashes.clear();
            }
            match self.background.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.backend.scan(&mut visit).map_err(Error::Store)?;
        next.absorb(&mut hashes);
        if self.background.is_stopped() { Err(Error::Closed) } else { Ok(()) }
    }
}

/// The message of a panic.
fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
