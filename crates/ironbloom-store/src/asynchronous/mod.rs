//! Guards for asynchronous stores. Needs no particular runtime.
//!
//! Everything works as in `guard.rs`, with two differences: the store is not asked in the background, since only the
//! caller's runtime can do that, so the caller must spawn [`AsyncGuard::rebuild`] when [`AsyncGuard::wants_rebuild`] says so;
//! and every future may be dropped at any `await`, which must not make a stored key "absent".

mod backend;
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
mod follow;
mod guard;

pub use self::backend::{AsyncBackend, Visit};
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
pub(crate) use self::follow::PATIENCE;
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
pub use self::follow::{Change, Changes, Follower, Watch};
pub use self::guard::AsyncGuard;
