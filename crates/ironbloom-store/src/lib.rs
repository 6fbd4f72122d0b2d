//! A filter in front of a slow store: lookups of absent keys never reach it.
//!
//! ```text
//!            absent: answered from memory, certainly right
//!          ┌───────────────────────────────────────────────►
//!  get ──► filter ── maybe ──► store ──► value, or a false positive
//!
//!  put ──► filter, then store            remove ──► store, then filter
//! ```
//!
//! A [`Guard`] sits in front of any [`Backend`]: a `redb` file, a PostgreSQL table, a Redis server, objects in S3
//! (through an `AsyncGuard`), or your own store.
//!
//! ```
//! use ironbloom_store::{Guard, GuardKind, Options, Redb, checkpoint_beside};
//! # let directory = tempfile::tempdir()?;
//! # let file = directory.path().join("users.redb");
//!
//! let options = Options::new(GuardKind::Blocked, 1_000_000, 0.005)         // kind, capacity, rate
//!     .checkpoint(checkpoint_beside(&file));
//! let users = Guard::open(Redb::create(&file)?, options)?;
//! users.put("alice", "1")?;
//! assert!(users.get("alice")?.is_some());                             // asks the store
//! assert!(users.get("bob")?.is_none());                               // does not
//! println!("saved {:?}", users.stats().time_saved());
//! users.close()?;                                                     // writes a checkpoint
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - **A stored key is never answered "absent"**: not while writers, rebuilds and checkpoints run, not after a crash at
//!   any point, and not if the store returns errors, panics, stalls, or later completes a write it had reported as
//!   failed. The one exception is opt-in: [`GuardKind::Windowed`].
//! - **Lookups take no lock.** Writers take one of 64 locks, by key; a slow write blocks only those that share its
//!   lock.
//! - **The filter is derived data.** It can be lost, damaged or out of date: then it is built from a scan of the store,
//!   in the background, while every lookup goes to the store. [`Options::checkpoint`] makes that rare; [`Generation`]
//!   explains how a checkpoint proves that it has seen every write. A failed rebuild is retried.
//! - **All keys must come through the guard.** What others write to the store must be [noted](Guard::note); a `Follower`
//!   does that for PostgreSQL and Redis. Stores that others can write to are scanned when they are opened, unless you
//!   promise to be the [only writer](Options::only_writer). If a key written by others is put through the guard, the
//!   guard notices and rebuilds the filter.
//!
//! # Which kind?
//!
//! | You | Use | bits/key at 1 % |
//! |---|---|---|
//! | put and look up, rarely remove | [`GuardKind::Blocked`] | 10.1 |
//! | remove, too | [`GuardKind::Cuckoo`] | 11 |
//! | remove, too, at a rate far below 1 % | [`GuardKind::DLeft`] | 20 |
//! | do not know the number of keys | [`GuardKind::Scalable`] | 13 to 16 |
//! | only care about recent keys, and may forget others | [`GuardKind::Windowed`] | 17 |
//!
//! # More
//!
//! - [`Typed`]: keys and values of your own types, with serde if you like (feature `serde`).
//! - [`ReadThrough`]: "get, else load and put", with one load however many callers ask.
//! - [`Published`]: the filter of one process, read by many.
//!
//! # What does it save?
//!
//! [`Guard::stats`] counts and times lookups by outcome, and says what other rates and kinds would have cost:
//! [`Stats::choices`]. The feature `metrics` exports that to Prometheus; the feature `tracing` reports failed rebuilds
//! and keys written by others.

#![forbid(unsafe_code)]

mod backend;
mod backends;
mod checkpoint;
mod doubts;
mod error;
mod events;
mod filter;
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
mod follow;
mod front;
mod generation;
mod guard;
mod kind;
#[cfg(feature = "metrics")]
mod metrics;
mod options;
mod published;
mod read_through;
mod stats;
mod typed;

pub use backend::{AsyncBackend, Backend, Before, Failure, Visit};
pub use backends::*;
pub use checkpoint::{Unusable, checkpoint_beside};
pub use error::Error;
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
pub use follow::{Change, Changes, Follower, Watch};
pub use generation::Generation;
#[cfg(feature = "async")]
pub use guard::AsyncGuard;
pub use guard::{Guard, Opened};
pub use ironbloom::HashFn;
pub use kind::{GuardKind, UnknownKind};
pub use options::{Options, Rebuild};
pub use published::Published;
pub use read_through::{LoadError, ReadThrough};
pub use stats::{Choice, Stats};
#[cfg(feature = "serde")]
pub use typed::Serde;
pub use typed::{Bytes, CodecError, Decode, Encode, Typed};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
