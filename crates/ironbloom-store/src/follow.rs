//! Keeps a guard up to date while others write to its store.
//!
//! ```text
//!   others ──► store ──► changes ──► note, note_removed ──► filter
//!
//!   subscribed │ distrust │ scan ───────► filter │ … │ lost │ distrust │ … │ subscribed │ distrust │ scan …
//!              └ from here on, nothing is missed     └ every lookup asks the store ┘
//! ```
//!
//! The order is what matters. **First subscribe, then scan**: what was written before the subscription is in the scan,
//! what was written after it is reported, and what is both is noted twice, which does no harm. Between a lost subscription and
//! the filter built after the next one, nobody knows what is missing, so the filter is not used at all.
//!
//! What remains is the time a message takes: for a moment after a write by somebody else, a lookup may still say "absent".

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use futures_util::future::{Either, select};

use crate::AsyncGuard;
use crate::backend::AsyncBackend;
use crate::error::Error;
use crate::events;

/// How long the proof that a subscription hears may take, at least.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after a lost subscription or a failed rebuild; it doubles up to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a follower checks whether the filter should be rebuilt.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A change to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This key was stored.
    Stored(Vec<u8>),
    /// This key was removed.
    Removed(Vec<u8>),
    /// Something that cannot be expressed as keys: the filter must be rebuilt.
    Unknown,
}

/// When a subscription proves that it would hear of a change.
///
/// A connection that is alive proves nothing: a server can be told to send no events, and a table can lose its triggers.
/// So at intervals, however busy the store is, the subscription causes an event itself, and is lost if that does not
/// arrive.
pub(crate) struct Proof {
    every: Duration,
    due: Instant,
    awaited: Option<Instant>,
}

/// What a subscription does next.
pub(crate) enum Step {
    /// Waits for a message, not longer than this.
    Listen(Instant),
    /// Causes an event.
    Prove,
    /// The event has not arrived.
    Deaf,
}

impl Proof {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, due: Instant::now() + every, awaited: None }
    }

    pub(crate) fn step(&mut self) -> Step {
        let now = Instant::now();
        match self.awaited {
            Some(deadline) if now >= deadline => Step::Deaf,
            Some(deadline) => Step::Listen(deadline),
            None if now >= self.due => {
                self.awaited = Some(now + self.every.max(PATIENCE));
                Step::Prove
            }
            None => Step::Listen(self.due),
        }
    }

    /// The event has arrived.
    pub(crate) fn heard(&mut self) {
        if self.awaited.take().is_some() {
            self.due = Instant::now() + self.every;
        }
    }
}

/// A subscription to the changes of a store.
pub trait Changes: Send {
    /// The error type of the store.
    type Error;

    /// The next change, in the order in which they happened. An error if the subscription is lost, also if changes are
    /// no longer reported although there is a connection. A future that is dropped loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Change, Self::Error>> + Send;
}

/// A store that reports its changes, whoever makes them.
pub trait Watch: AsyncBackend {
    /// A subscription.
    type Changes: Changes<Error = Self::Error>;

    /// Subscribes. Everything written after this returns is reported, or the subscription is lost.
    fn watch(&self) -> impl Future<Output = Result<Self::Changes, Self::Error>> + Send;

    /// Whether a put that replaces the value of a key is reported, too; one that brings a key always is. A window counts the
    /// puts of its own guard when they are acknowledged, and must not count them again when it hears of them.
    fn reports_overwriting(&self) -> bool {
        true
    }
}

/// Keeps a guard up to date while others write to its store: notes what they store and remove, and rebuilds the filter when
/// needed. See `examples/listen.rs` and `examples/keyspace.rs`.
///
/// A key that somebody else has stored is found as soon as the message about it has arrived. If the subscription is
/// lost, every lookup asks the store, until there is a new one and a filter built after it. The same holds once the
/// follower is dropped: a filter that is built then would miss changes that are not reported, so
/// [`AsyncGuard::rebuild`] refuses to.
///
/// The guard is one of a store that others write to: without
/// [`only_writer`](crate::Options::only_writer).
pub struct Follower<B: Watch> {
    guard: Arc<AsyncGuard<B>>,
    changes: Option<B::Changes>,
}

impl<B: Watch> Follower<B> {
    /// Subscribes to the changes of the guard's store.
    pub async fn subscribe(guard: Arc<AsyncGuard<B>>) -> Result<Self, Error<B::Error>> {
        let mut follower = Self { guard, changes: None };
        follower.changes = Some(watch(&follower.guard).await?);
        Ok(follower)
    }

    /// Follows until the future is dropped: spawn it. Errors are retried after a pause, and reported as `tracing` events.
    pub async fn run(mut self) -> Infallible {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.changes.take() {
                Some(changes) => {
                    pause = FIRST_PAUSE;
                    events::following();
                    follow(&self.guard, changes).await
                }
                None => match watch(&self.guard).await {
                    Ok(changes) => {
                        self.changes = Some(changes);
                        continue;
                    }
                    Err(error) => error,
                },
            };
            self.guard.core().front.await_echoes(None);
            events::not_following(&error, pause);
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

impl<B: Watch> Drop for Follower<B> {
    fn drop(&mut self) {
        self.guard.core().front.await_echoes(None);
    }
}

async fn watch<B: Watch>(guard: &AsyncGuard<B>) -> Result<B::Changes, Error<B::Error>> {
    let (front, store) = (&guard.core().front, guard.backend());
    front.await_echoes(Some(store.reports_overwriting()));
    store.watch().await.map_err(Error::Store)
}

/// Follows one subscription to its end. The two parts never wait for each other, so they run side by side.
async fn follow<B: Watch>(guard: &AsyncGuard<B>, changes: B::Changes) -> Error<B::Error> {
    let _until_lost = Unheard(guard);
    guard.core().front.set_hearing(true);
    match select(pin!(note_all(guard, changes)), pin!(keep_built(guard))).await {
        Either::Left((Err(error), _)) => error,
        Either::Left((Ok(never), _)) | Either::Right((never, _)) => match never {},
    }
}

async fn note_all<B: Watch>(
    guard: &AsyncGuard<B>,
    mut changes: B::Changes,
) -> Result<Infallible, Error<B::Error>> {
    loop {
        match changes.next().await.map_err(Error::Store)? {
            Change::Stored(key) => guard.note(key).await?,
            Change::Removed(key) => guard.note_removed(key),
            Change::Unknown => guard.distrust().await?,
        }
    }
}

async fn keep_built<B: AsyncBackend>(guard: &AsyncGuard<B>) -> Infallible {
    let mut pause = FIRST_PAUSE;
    loop {
        if !guard.wants_rebuild() {
            tokio::time::sleep(LOOK_EVERY).await;
            continue;
        }
        match guard.core().rebuild_if_wanted().await {
            Ok(()) => pause = FIRST_PAUSE,
            Err(error) => {
                events::rebuild_failed(&error, pause);
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Distrusts a filter that is no longer kept up to date, however that came about.
struct Unheard<'g, B: AsyncBackend>(&'g AsyncGuard<B>);

impl<B: AsyncBackend> Drop for Unheard<'_, B> {
    fn drop(&mut self) {
        self.0.core().front.set_hearing(false);
    }
}
