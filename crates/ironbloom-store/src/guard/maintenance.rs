//! Generations, checkpoints and rebuilds: what a guard does besides serving its callers.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use super::core::{Core, Result};
use crate::backend::AsyncBackend;
use crate::error::Error;
use crate::events;
use crate::front::{Front, Next};
use crate::generation::Generation;

/// Rebuilds in a row without a write that asks for one: each plans for a quarter more, so a few are enough, and a
/// filter that cannot be made large enough is not rebuilt forever.
pub(super) const MAX_REBUILDS: u32 = 8;
/// Number of hashes that a scan collects before inserting them into the filter together.
const BATCH: usize = 1 << 19;

/// Abandons an unfinished filter: the scan has failed, has panicked, or is no longer polled.
struct Unfinished<'f> {
    front: &'f Front,
    next: Arc<Next>,
}

impl Unfinished<'_> {
    /// Installs the filter. False if others have written to the store in between, which makes it useless.
    fn finish(self) -> bool {
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

impl<B: AsyncBackend> Core<B> {
    /// Gives the store a new generation if a checkpoint of the current one may exist. See `generation.rs`.
    pub(super) async fn new_generation(&self) -> Result<(), B> {
        let _naming = self.naming.lock().await;
        if self.front.is_clean() {
            self.name().await?;
        }
        Ok(())
    }

    /// Gives the store a generation that no checkpoint has. Whoever is the only writer claims the store with the
    /// first. The caller holds `naming`.
    async fn name(&self) -> Result<(), B> {
        let generation = Generation::of(self.lineage);
        let noticing = Noticing(self);
        if self.front.is_alone() && !self.claimed.load(Ordering::Acquire) {
            self.claim(generation).await?;
        } else {
            self.asked(self.backend.set_generation(generation)).await.map_err(Error::Store)?;
        }
        self.names.fetch_add(1, Ordering::AcqRel);
        drop(noticing);
        self.front.allow_writes(); // whatever the store holds, no checkpoint has this generation
        Ok(())
    }

    /// If no earlier write can take effect any more, a scan that starts now ends all doubts.
    async fn claim(&self, generation: Generation) -> Result<(), B> {
        if self.asked(self.backend.claim(generation)).await.map_err(Error::Store)? {
            self.front.settle_doubts();
        }
        self.claimed.store(true, Ordering::Release);
        Ok(())
    }

    /// Before a guard starts without a checkpoint: writes of earlier guards may still be on their way, and which ones is
    /// not known. The store is claimed, so that they are refused; if that cannot be done, every key is in doubt for as
    /// long as such a write may land. A store that was never guarded has no such writes.
    pub(super) async fn end_earlier_writes(&self, was_guarded: bool) -> Result<(), B> {
        if self.front.is_alone() && self.backend.can_claim() {
            self.front.doubt_everything();
            let _naming = self.naming.lock().await;
            self.name().await?;
        } else if was_guarded && self.front.lands_late() {
            self.front.doubt_everything();
        }
        // Where others write, keys must be noted, also those of another guard.
        let over = !self.front.is_alone() || self.front.doubts_are_over();
        if self.front.is_all_in_doubt() && over {
            self.front.believe_again();
        }
        Ok(())
    }

    /// Before a scan: ends doubts, if the store can refuse the writes that they are about.
    async fn end_doubts(&self) -> Result<(), B> {
        if self.front.is_alone() && self.backend.can_claim() && !self.front.doubts_are_over() {
            let _naming = self.naming.lock().await;
            self.claimed.store(false, Ordering::Release);
            self.name().await?;
        }
        let lost = self.front.is_all_in_doubt() && !self.front.doubts_are_over();
        if lost { Err(Error::InDoubt) } else { Ok(()) }
    }

    /// Writes a snapshot of the filter to the files, under a generation that the store has had since before any later
    /// write.
    pub(super) async fn checkpoint(&self) -> Result<(), B> {
        self.ensure_outside()?;
        let files = self.files.as_ref().ok_or(Error::NoCheckpointFile)?;
        self.is_open().await;
        let _only = self.maintaining.lock().await;
        for _ in 0..MAX_REBUILDS {
            if self.front.lacks_filter() {
                self.rebuild_alone().await?;
            }
            let naming = self.naming.lock().await;
            let Some(snapshot) = self.front.freeze() else { continue };
            let generation = Generation::of(self.lineage);
            self.names.fetch_add(1, Ordering::AcqRel);
            let noticing = Noticing(self);
            self.asked(self.backend.seal(generation)).await.map_err(Error::Store)?;
            drop(noticing);
            drop(naming);
            if !self.front.is_current(&snapshot) {
                continue; // the store was in another state when it was sealed
            }
            self.asked(self.backend.sync()).await.map_err(Error::Store)?;
            files.write(generation, self.front.spec(), &snapshot, &self.stats())?;
            if let Some(publisher) = &self.publisher {
                publisher.publish().map_err(Error::Publish)?;
            }
            return Ok(());
        }
        Err(Error::Overtaken)
    }

    /// Writes the filter to the file that [`Options::publish`](crate::Options::publish) names.
    pub(super) async fn publish(&self) -> Result<(), B> {
        self.ensure_outside()?;
        let kind = self.front.spec().kind;
        let publisher = self.publisher.as_ref().ok_or(Error::CannotPublish(kind))?;
        self.is_open().await;
        while !publisher.publish().map_err(Error::Publish)? {
            let _only = self.maintaining.lock().await;
            if self.front.lacks_filter() {
                self.rebuild_alone().await?;
            }
        }
        Ok(())
    }

    /// Builds the filter from a scan.
    pub(crate) async fn rebuild(&self) -> Result<(), B> {
        self.ensure_outside()?;
        self.is_open().await;
        let _only = self.maintaining.lock().await;
        self.rebuild_alone().await
    }

    pub(crate) async fn rebuild_if_wanted(&self) -> Result<(), B> {
        self.is_open().await;
        let _only = self.maintaining.lock().await;
        if self.front.wants_rebuild() { self.rebuild_alone().await } else { Ok(()) }
    }

    /// The caller holds `maintaining`.
    async fn rebuild_alone(&self) -> Result<(), B> {
        if !self.front.spec().kind.can_rebuild() {
            return Err(Error::NoRebuild);
        }
        if self.front.is_deaf() {
            return Err(Error::Unheard);
        }
        let _noticing = Noticing(self);
        let built = caught(self.build()).await;
        if !matches!(built, Ok(()) | Err(Error::Closed | Error::InDoubt)) {
            self.front.count_rebuild(false);
        }
        built
    }

    async fn build(&self) -> Result<(), B> {
        self.end_doubts().await?;
        let keys = self.asked(self.backend.len_hint()).await.map_err(Error::Store)?;
        let next = Arc::new(self.front.plan_next(keys)?);
        let unfinished = Unfinished { front: &self.front, next: next.clone() };
        self.front.begin(next.clone());
        self.scan_into(&next).await?;
        self.notice_exchange(); // then this filter is one of a state that is no more
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
            match self.background.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        self.asked(self.backend.scan(&mut visit)).await.map_err(Error::Store)?;
        next.absorb(&mut hashes);
        if self.background.is_stopped() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Others may have written to the store unnoticed.
    pub(crate) async fn distrust(self: &Arc<Self>) -> Result<(), B> {
        self.ensure_outside()?;
        self.front.forget_filter();
        self.new_generation().await?;
        self.rebuild_if_allowed();
        Ok(())
    }

    /// Writes a checkpoint, if the options name a file for it.
    pub(super) async fn close(&self) -> Result<(), B> {
        if self.files.is_some() { self.checkpoint().await } else { Ok(()) }
    }
}

/// A store is given a generation, or scanned. However that ends, it may have been found in another state.
struct Noticing<'g, B: AsyncBackend>(&'g Core<B>);

impl<B: AsyncBackend> Drop for Noticing<'_, B> {
    fn drop(&mut self) {
        self.0.notice_exchange();
    }
}

/// A store that panics has failed, even in the background, where nobody would notice.
async fn caught<T, E>(
    work: impl Future<Output = std::result::Result<T, Error<E>>>,
) -> std::result::Result<T, Error<E>> {
    let mut work = pin!(work);
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(Err(Error::Panicked(words_of(&*panic)))),
        }
    })
    .await
}

/// The message of a panic.
pub(super) fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}
