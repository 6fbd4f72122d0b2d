//! The background thread: what it does, when it pauses, and how others wait for it.
//!
//! A failed rebuild is retried after a pause that doubles each time. The thread never gives up: without a filter every
//! lookup goes to the store, so giving up would be the one failure without recovery.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use event_listener::{Event, Listener as _};

use super::core::{Core, Result};
use super::maintenance::{MAX_REBUILDS, words_of};
use crate::backend::{AsyncBackend, block_on};
use crate::checkpoint::Arrival;
use crate::error::Error;
use crate::events;
use crate::options::Rebuild;

/// Maximum factor between the first pause and later ones.
const LONGEST_PAUSE: u32 = 256;

/// What the thread has to do.
pub(super) enum Job {
    Rebuild,
    /// Reads the filter of a checkpoint, which is awaited.
    Load(Arc<Arrival>),
}

/// Where the futures of a store are run: in the runtime that the guard was opened in, if there was one.
pub(super) enum Driver {
    Thread,
    #[cfg(feature = "async")]
    Tokio(tokio::runtime::Handle),
}

impl Driver {
    /// For futures that are ready.
    pub(super) fn thread() -> Self {
        Self::Thread
    }

    /// The runtime that this is called in.
    #[cfg(feature = "async")]
    pub(super) fn current() -> Self {
        tokio::runtime::Handle::try_current().map_or(Self::Thread, Self::Tokio)
    }

    fn run<T>(&self, work: impl Future<Output = T>) -> T {
        match self {
            Self::Thread => block_on(work),
            #[cfg(feature = "async")]
            Self::Tokio(runtime) => runtime.block_on(work),
        }
    }
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
    changed: Event,
    stop: AtomicBool,
    driver: Driver,
    worker: Mutex<Option<JoinHandle<()>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E> Background<E> {
    pub(super) fn new(driver: Driver) -> Self {
        Self {
            now: Mutex::new((Doing::Nothing, None)),
            changed: Event::new(),
            stop: AtomicBool::new(false),
            driver,
            worker: Mutex::new(None),
        }
    }

    fn set(&self, doing: Doing) {
        locked(&self.now).0 = doing;
        self.changed.notify(usize::MAX);
    }

    /// True if no thread was running; the caller then starts one.
    fn claim(&self) -> bool {
        let mut now = locked(&self.now);
        let idle = now.0 == Doing::Nothing;
        if idle {
            now.0 = Doing::Working;
        }
        idle
    }

    /// Ends the work, unless there is more: requests made while the thread was running are not lost.
    fn release(&self, more: impl FnOnce() -> bool) -> bool {
        let mut now = locked(&self.now);
        if more() {
            return false;
        }
        now.0 = Doing::Nothing;
        drop(now);
        self.changed.notify(usize::MAX);
        true
    }

    fn succeeded(&self) {
        locked(&self.now).1 = None;
    }

    /// Records a failure and waits. False if the guard is closed in between.
    fn pause_after(&self, failure: Error<E>, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        locked(&self.now).1 = Some(failure);
        self.set(Doing::Pausing);
        loop {
            let changed = self.changed.listen();
            if self.is_stopped() {
                self.set(Doing::Nothing);
                return false;
            }
            if until <= Instant::now() || changed.wait_deadline(until).is_none() {
                self.set(Doing::Working);
                return true;
            }
        }
    }

    /// Waits until nothing is in progress. A pause is not waited for.
    pub(super) async fn wait(&self) {
        loop {
            let changed = self.changed.listen();
            if locked(&self.now).0 != Doing::Working {
                return;
            }
            changed.await;
        }
    }

    /// The error of the last attempt, if not yet reported.
    pub(super) fn failure(&self) -> Option<Error<E>> {
        locked(&self.now).1.take()
    }

    /// The thread ends as soon as it can.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.changed.notify(usize::MAX);
    }

    /// Waits for its end.
    pub(super) fn join(&self) {
        if let Some(worker) = locked(&self.worker).take() {
            let _ = worker.join();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The answer to this, unless the guard is closed first.
    async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = std::result::Result<T, Error<E>>>,
    ) -> std::result::Result<T, Error<E>> {
        let mut work = pin!(work);
        let mut changed = self.changed.listen();
        std::future::poll_fn(move |context| {
            loop {
                if self.is_stopped() {
                    return Poll::Ready(Err(Error::Closed));
                }
                match pin!(&mut changed).poll(context) {
                    Poll::Ready(()) => changed = self.changed.listen(),
                    Poll::Pending => return work.as_mut().poll(context),
                }
            }
        })
        .await
    }
}

impl<B: AsyncBackend> Core<B> {
    /// Starts a background thread, unless one is already running.
    pub(super) fn start(self: &Arc<Self>, job: Job) {
        let mut worker = locked(&self.background.worker);
        if self.background.is_stopped() || !self.background.claim() {
            return;
        }
        let awaited = match &job {
            Job::Load(arrival) => Some(arrival.clone()),
            Job::Rebuild => None,
        };
        let core = self.clone();
        let thread = std::thread::Builder::new().name("ironbloom-guard".to_owned());
        match thread.spawn(move || core.work(job)) {
            Ok(thread) => *worker = Some(thread),
            // Without a thread every lookup is still answered, and a later write tries again.
            Err(_) => {
                if let Some(arrival) = awaited {
                    self.set_opened(arrival.cancel(&self.front));
                }
                self.background.release(|| false);
            }
        }
    }

    /// The background thread.
    fn work(&self, job: Job) {
        let wanted = match job {
            Job::Rebuild => true,
            Job::Load(arrival) => self.background.driver.run(self.load(&arrival)),
        };
        if wanted {
            self.rebuild_until_it_lasts();
        } else {
            self.background.release(|| false);
        }
    }

    /// Installs the filter of a checkpoint. True if it must be built from a scan instead, because the files are
    /// damaged.
    async fn load(&self, arrival: &Arrival) -> bool {
        let _only = self.maintaining.lock().await;
        self.set_opened(arrival.take_place(&self.front));
        self.rebuild == Rebuild::Background && self.front.wants_rebuild()
    }

    /// Writers may have outrun the rebuild: then the new filter is over capacity from the start, and nobody else would
    /// notice before the next write.
    fn rebuild_until_it_lasts(&self) {
        let mut pause = self.retry_after;
        let mut rounds = 0;
        loop {
            match self.attempt() {
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

    /// A panic has failed, too: a runtime that ends panics in its timers.
    fn attempt(&self) -> Result<(), B> {
        let work =
            || self.background.driver.run(self.background.unless_stopped(self.rebuild_if_wanted()));
        let done = catch_unwind(AssertUnwindSafe(work));
        done.unwrap_or_else(|panic| Err(Error::Panicked(words_of(&*panic))))
    }
}

impl<B: AsyncBackend> Core<B> {
    /// Waits until nothing is in progress in the background.
    pub(super) async fn background_ended(&self) {
        self.background.wait().await;
    }

    pub(super) fn background_failure(&self) -> Result<(), B> {
        self.background.failure().map_or(Ok(()), Err)
    }

    pub(super) fn stop(&self) {
        self.background.stop();
    }

    pub(super) fn join(&self) {
        self.background.join();
    }
}
