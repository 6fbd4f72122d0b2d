//! The background thread: what it does, when it pauses, and how others wait for it.
//!
//! A failed rebuild is retried after a pause that doubles each time. The thread never gives up: without a filter every
//! lookup goes to the store, so giving up would be the one failure without recovery.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Inner, Result, locked};
use crate::backend::Backend;
use crate::checkpoint::Arrival;
use crate::error::Error;
use crate::events;
use crate::options::Rebuild;

/// Rebuilds in a row without a write that asks for one: each plans for a quarter more, so a few are enough, and a
/// filter that cannot be made large enough is not rebuilt forever.
pub(super) const MAX_REBUILDS: u32 = 8;
/// Maximum factor between the first pause and later ones.
const LONGEST_PAUSE: u32 = 256;

/// What the thread has to do.
pub(super) enum Job {
    Rebuild,
    /// Reads the filter of a checkpoint, which is awaited.
    Load(Arc<Arrival>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    Working,
    Pausing,
}

/// What the thread is doing, and how it failed last.
pub(super) struct Background<E> {
    now: Mutex<(Doing, Option<Error<E>>)>,
    changed: Condvar,
    stop: AtomicBool,
}

impl<E> Background<E> {
    pub(super) fn new() -> Self {
        Self {
            now: Mutex::new((Doing::Nothing, None)),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
        }
    }

    /// True if no thread was running; the caller then starts one.
    pub(super) fn claim(&self) -> bool {
        let mut now = locked(&self.now);
        let idle = now.0 == Doing::Nothing;
        if idle {
            now.0 = Doing::Working;
        }
        idle
    }

    /// Ends the work, unless there is more: requests made while the thread was running are not lost.
    pub(super) fn release(&self, more: impl FnOnce() -> bool) -> bool {
        let mut now = locked(&self.now);
        if more() {
            return false;
        }
        now.0 = Doing::Nothing;
        self.changed.notify_all();
        true
    }

    fn succeeded(&self) {
        locked(&self.now).1 = None;
    }

    /// Records a failure and waits. False if the guard is closed meanwhile.
    fn pause_after(&self, failure: Error<E>, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut now = locked(&self.now);
        *now = (Doing::Pausing, Some(failure));
        self.changed.notify_all();
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                now.0 = Doing::Working;
                return true;
            }
            let waited = self.changed.wait_timeout(now, left);
            now = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        now.0 = Doing::Nothing;
        false
    }

    /// Waits until nothing is in progress. A pause is not waited for.
    pub(super) fn wait(&self) {
        let mut now = locked(&self.now);
        while now.0 == Doing::Working {
            now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The error of the last attempt, if not yet reported.
    pub(super) fn failure(&self) -> Option<Error<E>> {
        locked(&self.now).1.take()
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let _now = locked(&self.now);
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<B: Backend> Inner<B> {
    /// The background thread.
    pub(super) fn work(&self, job: Job) {
        let wanted = match job {
            Job::Rebuild => true,
            Job::Load(arrival) => self.load(&arrival),
        };
        if wanted {
            self.rebuild_until_it_lasts();
        } else {
            self.background.release(|| false);
        }
    }

    /// Installs the filter of a checkpoint. True if it must be built from a scan instead, because the files are
    /// damaged.
    fn load(&self, arrival: &Arrival) -> bool {
        let _only = locked(&self.maintaining);
        let _ = self.opened.set(arrival.take_place(&self.front));
        self.rebuild == Rebuild::Background && self.front.wants_rebuild()
    }

    /// Writers may have outrun the rebuild: then the new filter is over capacity from the start, and nobody else would notice
    /// before the next write.
    fn rebuild_until_it_lasts(&self) {
        let mut pause = self.retry_after;
        let mut rounds = 0;
        loop {
            match self.rebuild_if_wanted() {
                Ok(()) => {
                    self.background.succeeded();
                    (rounds, pause) = (rounds + 1, self.retry_after);
                    let more = || rounds < MAX_REBUILDS && self.front.wants_rebuild();
                    if self.background.release(more) {
                        return;
                    }
                }
                Err(Error::Closed) => {
                    self.background.release(|| false);
                    return;
                }
                Err(error) => {
                    events::rebuild_failed(&error, pause);
                    if !self.background.pause_after(error, pause) {
                        return;
                    }
                    pause =
                        pause.saturating_mul(2).min(self.retry_after.saturating_mul(LONGEST_PAUSE));
                }
            }
        }
    }

    fn rebuild_if_wanted(&self) -> Result<(), B> {
        let _only = locked(&self.maintaining);
        if self.front.wants_rebuild() { self.rebuild() } else { Ok(()) }
    }
}
