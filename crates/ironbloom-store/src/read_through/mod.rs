//! "Get, else load and put": a store as a cache of something slower.

mod flights;
mod negatives;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::flights::{Boarding, Flights};
use self::negatives::Negatives;
#[cfg(feature = "async")]
use crate::AsyncGuard;
use crate::backend::{AsyncBackend, Backend, block_on};
use crate::error::Error;
use crate::guard::{Core, Guard};

/// A [`Guard`] or `AsyncGuard` that loads what its store does not have, and stores it.
///
/// ```
/// use ironbloom_store::{Guard, GuardKind, Memory, Options, ReadThrough};
///
/// let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 1000, 0.01))?;
/// let pages = ReadThrough::new(guard);
/// let fetch = || std::fs::read("Cargo.toml").map(Some);           // or from far away
/// assert!(pages.get_or_load("Cargo.toml", fetch)?.is_some());     // loaded and stored
/// assert!(pages.guard().contains("Cargo.toml")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Single flight.** While one caller loads a key, the others that ask for it wait and get the same value. If the load
/// fails, panics, or its future is dropped, one of those that wait loads in turn; the error goes only to the caller
/// whose load it was. Waiting callers hold no lock. A load must not ask for its own key: it would wait for itself.
///
/// **What "not there" means.** Without a [time to live](Self::negative_ttl), the load is called for each key that the
/// guard does not find, so an answer of `None` is what the load said during the call. With one, the answer may be that
/// old: some moment between that long ago and the end of the call lies after the store (not only the filter) and then
/// the load were asked for the key, and neither had it. So a key that others write to the store is found once the time
/// has passed, although the filter does not know it; without a time to live it is loaded instead, and overwritten.
/// If nobody else writes to the store ([`Options::only_writer`](crate::Options::only_writer), or a store that is
/// exclusive) the filter is certain, and the store is not asked to confirm it.
///
/// A value that is put while a load of its key runs may be overwritten by what was loaded.
pub struct ReadThrough<G> {
    guard: G,
    flights: Flights,
    negatives: Negatives,
}

/// An error from [`ReadThrough::get_or_load`]: of the guard (`E` is the error type of its store) or of the load.
#[derive(Debug)]
pub enum LoadError<E, L> {
    /// The store failed, or a value could not be encoded or decoded. What was loaded may not be stored.
    Guard(Error<E>),
    /// The load failed.
    Load(L),
}

impl<E, L> From<Error<E>> for LoadError<E, L> {
    fn from(error: Error<E>) -> Self {
        Self::Guard(error)
    }
}

impl<E: fmt::Display, L: fmt::Display> fmt::Display for LoadError<E, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guard(error) => error.fmt(f),
            Self::Load(error) => write!(f, "the load has failed: {error}"),
        }
    }
}

impl<E, L> std::error::Error for LoadError<E, L>
where
    E: std::error::Error + 'static,
    L: std::error::Error + 'static,
{
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Guard(error) => Some(error),
            Self::Load(error) => Some(error),
        }
    }
}

/// What a call has loaded, or why not.
type Outcome<E, L> = Result<Option<Vec<u8>>, LoadError<E, L>>;

/// An error of a load that cannot fail.
fn of_guard<E>(error: LoadError<E, Infallible>) -> Error<E> {
    match error {
        LoadError::Guard(error) => error,
        LoadError::Load(never) => match never {},
    }
}

impl<G> ReadThrough<G> {
    /// Wraps a guard.
    pub fn new(guard: G) -> Self {
        Self { guard, flights: Flights::default(), negatives: Negatives::none() }
    }

    /// Remembers for this long that a key was found neither in the store nor by its load, and asks the store itself if
    /// others write to it; see [above](Self). The 65,536 most recent keys are remembered.
    pub fn negative_ttl(mut self, ttl: Duration) -> Self {
        self.negatives.set_ttl(ttl);
        self
    }

    /// The clock for the time to live, for tests. Default: `Instant::now`.
    pub fn clock(mut self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.negatives.set_clock(Box::new(clock));
        self
    }

    /// The guard. What is put through it is found here at once.
    pub fn guard(&self) -> &G {
        &self.guard
    }

    /// The guard, for instance to close it.
    pub fn into_guard(self) -> G {
        self.guard
    }
}

impl<G> ReadThrough<G> {
    /// The value of a key, loaded if it is not stored; the same for threads and for tasks.
    async fn through<B: AsyncBackend, F, L>(
        &self,
        core: &Arc<Core<B>>,
        key: &[u8],
        load: impl FnOnce() -> F,
    ) -> Outcome<B::Error, L>
    where
        F: Future<Output = Outcome<B::Error, L>>,
    {
        loop {
            let (value, _) = core.look(key).await?;
            if value.is_some() || self.negatives.recall(key) {
                return Ok(value);
            }
            match self.flights.board(key) {
                Boarding::Wait(flight) => {
                    if let Some(answer) = flight.landed().await {
                        return Ok(answer);
                    }
                }
                Boarding::Lead(lead) => {
                    let answer = self.fetch(core, key, load).await?;
                    lead.land(answer.clone());
                    return Ok(answer);
                }
            }
        }
    }

    /// Only for the one that leads. Another may have landed since the guard was asked, so it is asked again.
    async fn fetch<B: AsyncBackend, F, L>(
        &self,
        core: &Arc<Core<B>>,
        key: &[u8],
        load: impl FnOnce() -> F,
    ) -> Outcome<B::Error, L>
    where
        F: Future<Output = Outcome<B::Error, L>>,
    {
        let start = self.negatives.now();
        let (mut value, asked) = core.look(key).await?;
        if value.is_some() || self.negatives.recall(key) {
            return Ok(value);
        }
        if !asked && self.negatives.are_kept() && !core.front.is_alone() {
            value = core.backend.get(key).await.map_err(Error::Store)?;
            if value.is_some() {
                core.note(key).await?;
                return Ok(value);
            }
        }
        match load().await? {
            Some(value) => {
                core.put(key, &value).await?;
                Ok(Some(value))
            }
            None => {
                self.negatives.remember(key, start);
                Ok(None)
            }
        }
    }
}

impl<B: Backend> ReadThrough<Guard<B>> {
    /// The value of a key; `None` as [explained above](Self).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error<B::Error>> {
        self.get_or_load(key, || Ok(None)).map_err(of_guard)
    }

    /// The value of a key. If it is not stored, it is loaded, and stored if the load has found one.
    pub fn get_or_load<L>(
        &self,
        key: impl AsRef<[u8]>,
        load: impl FnOnce() -> Result<Option<Vec<u8>>, L>,
    ) -> Result<Option<Vec<u8>>, LoadError<B::Error, L>> {
        self.get_or_try(key.as_ref(), || load().map_err(LoadError::Load))
    }

    pub(crate) fn get_or_try<L>(
        &self,
        key: &[u8],
        load: impl FnOnce() -> Outcome<B::Error, L>,
    ) -> Outcome<B::Error, L> {
        block_on(self.through(self.guard.core(), key, || async { load() }))
    }
}

/// The same for tasks.
#[cfg(feature = "async")]
impl<B: AsyncBackend> ReadThrough<AsyncGuard<B>> {
    /// The value of a key; `None` as [explained above](Self).
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error<B::Error>> {
        self.get_or_load(key, || async { Ok(None) }).await.map_err(of_guard)
    }

    /// The value of a key. If it is not stored, it is loaded, and stored if the load has found one.
    pub async fn get_or_load<F, L>(
        &self,
        key: impl AsRef<[u8]>,
        load: impl FnOnce() -> F,
    ) -> Result<Option<Vec<u8>>, LoadError<B::Error, L>>
    where
        F: Future<Output = Result<Option<Vec<u8>>, L>>,
    {
        let load = || async { load().await.map_err(LoadError::Load) };
        self.get_or_try(key.as_ref(), load).await
    }

    pub(crate) async fn get_or_try<F, L>(
        &self,
        key: &[u8],
        load: impl FnOnce() -> F,
    ) -> Outcome<B::Error, L>
    where
        F: Future<Output = Outcome<B::Error, L>>,
    {
        self.through(self.guard.core(), key, load).await
    }
}
