//! Guards over stores that are asked asynchronously. Needs no particular runtime.
//!
//! Everything is as in `guard.rs`, with two differences: nothing runs in the background, since only the caller's runtime
//! can do that, so [`AsyncGuard::rebuild`] is the caller's to spawn when
//! [`AsyncGuard::wants_rebuild`] says so; and every future may be dropped at any `await`, which must not make
//! a stored key "absent".

mod backend;
mod guard;

pub use self::backend::{AsyncBackend, Visit};
pub use self::guard::AsyncGuard;
