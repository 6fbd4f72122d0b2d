//! A bounded pool of connections, for threads and for tasks.
//!
//! - The number of connections in use is limited; further callers wait. Nobody who has a connection waits for another
//!   one, so waiting always ends.
//! - A connection that has failed is closed, and so is one whose user is gone half way (a dropped future): what is still
//!   on its way over it is unknown. The idle ones are closed with a lost one: most likely the server is gone.
//! - When another server has the address, all earlier connections are closed, those in use as soon as they have been used:
//!   they may lead to the one before, which still answers.
//! - A connection that was idle for a while is checked before it is used again, so that a write after a quiet night does
//!   not fail because a firewall or a restart has ended the connection. Nothing is ever sent twice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_lock::{Semaphore, SemaphoreGuard};

/// How long a connection may be idle before it is checked.
const QUIET: Duration = Duration::from_secs(1);

/// A connection that a pool can hold.
pub(super) trait Pooled {
    /// How it fails.
    type Error;

    /// False if the connection cannot be used after this error.
    fn survives(error: &Self::Error) -> bool;
}

/// See the module documentation.
pub(super) struct Pool<C> {
    permits: Semaphore,
    idle: Mutex<Vec<(C, Instant)>>,
    /// How often all connections were given up.
    renewed: AtomicU64,
}

impl<C> std::fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} idle)", self.idle().len())
    }
}

impl<C: Pooled> Pool<C> {
    /// Takes a connection: an idle one that is still alive, or a new one.
    pub(super) fn take<E>(
        &self,
        mut is_alive: impl FnMut(&mut C) -> bool,
        connect: impl FnOnce() -> Result<C, E>,
    ) -> Result<Taken<'_, C>, E> {
        let permit = self.permitted(self.permits.acquire_blocking());
        while let Some((mut connection, quiet)) = permit.idle() {
            if !quiet || is_alive(&mut connection) {
                return Ok(permit.fill(connection));
            }
        }
        Ok(permit.fill(connect()?))
    }
}

impl<C> Pool<C> {
    /// A pool of at most this many connections, and one at least, of which the first is there.
    pub(super) fn new(max: usize, first: C) -> Self {
        let idle = Mutex::new(vec![(first, Instant::now())]);
        Self { permits: Semaphore::new(max.max(1)), idle, renewed: AtomicU64::new(0) }
    }

    /// Another server has the address: no connection that there is, or that is being made, is used again.
    pub(super) fn renew(&self) {
        let mut idle = self.idle();
        self.renewed.fetch_add(1, Ordering::Relaxed);
        idle.clear();
    }

    fn permitted<'p>(&'p self, permit: SemaphoreGuard<'p>) -> Permit<'p, C> {
        Permit { pool: self, permit, renewed: self.renewed.load(Ordering::Relaxed) }
    }

    /// Waits for a permit. The caller looks for an idle connection or makes one.
    #[cfg(any(feature = "async-postgres", feature = "async-redis"))]
    pub(super) async fn permit(&self) -> Permit<'_, C> {
        self.permitted(self.permits.acquire().await)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(C, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to have a connection.
pub(super) struct Permit<'p, C> {
    pool: &'p Pool<C>,
    permit: SemaphoreGuard<'p>,
    renewed: u64,
}

impl<'p, C> Permit<'p, C> {
    /// An idle connection, and whether it should be checked first.
    pub(super) fn idle(&self) -> Option<(C, bool)> {
        let (connection, since) = self.pool.idle().pop()?;
        Some((connection, since.elapsed() >= QUIET))
    }

    pub(super) fn fill(self, connection: C) -> Taken<'p, C> {
        Taken { pool: self.pool, connection, _permit: self.permit, renewed: self.renewed }
    }
}

/// A connection in use. Closed when dropped; [`end`](Self::end) gives it back.
pub(super) struct Taken<'p, C> {
    pool: &'p Pool<C>,
    pub(super) connection: C,
    _permit: SemaphoreGuard<'p>,
    renewed: u64,
}

impl<C: Pooled> Taken<'_, C> {
    /// Gives the connection back, unless this answer says that it is lost.
    pub(super) fn end<T>(self, answer: Result<T, C::Error>) -> Result<T, C::Error> {
        let mut idle = self.pool.idle();
        match &answer {
            Err(error) if !C::survives(error) => idle.clear(),
            _ if self.renewed != self.pool.renewed.load(Ordering::Relaxed) => {}
            _ => idle.push((self.connection, Instant::now())),
        }
        drop(idle);
        answer
    }
}
