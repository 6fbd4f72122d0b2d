//! A filter in front of a store.
//!
//! ```text
//!   Guard ───── block_on ──┐
//!                          ├──► Core ──► Front: the filter, gates, doubts
//!   AsyncGuard ── await ───┘     └─────► the store
//! ```
//!
//! The core is written once, as futures. A store that blocks is one whose futures are ready ([`Blocking`]), so a thread
//! that calls a [`Guard`] waits only where others hold a lock that it needs.
//!
//! [`Blocking`]: crate::backend::Blocking

#[cfg(feature = "async")]
mod awaited;
mod background;
mod blocking;
mod core;
mod locks;
mod maintenance;
mod questions;
mod reentry;
mod writes;

#[cfg(feature = "async")]
pub use self::awaited::AsyncGuard;
pub use self::blocking::Guard;
pub(crate) use self::core::Core;
pub(crate) use self::locks::{STRIPES, stripe_of};
use crate::checkpoint::Unusable;

/// How a guard got its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The generation of the checkpoint is that of the store, and its filter is being read; until it has been read and
    /// verified, every lookup goes to the store. [`Guard::settle`] waits for it.
    Reading,
    /// The checkpoint covers the store.
    FromCheckpoint,
    /// The store is empty.
    Empty,
    /// The filter is being built from a scan (or will be, see [`Rebuild`](crate::Rebuild)); until then every lookup
    /// goes to the store. A window is not built, but filled: every lookup goes to the store until as many keys were put
    /// as it remembers.
    WithoutCheckpoint(Unusable),
}
