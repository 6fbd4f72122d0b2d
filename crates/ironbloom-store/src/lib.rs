//! A filter in front of a slow store: what is not there is not asked for.
//!
//! ```text
//!            absent: answered from memory, certainly right
//!          ┌───────────────────────────────────────────────►
//!  get ──► filter ── maybe ──► store ──► value, or a false positive
//!
//!  put ──► filter, then store            remove ──► store, then filter
//! ```
//!
//! A [`Guard`] stands before anything that is a [`Backend`]: a file of `redb`, a table of PostgreSQL, a Redis server, objects
//! in S3 (those through an `AsyncGuard`), or a store of your own.
//!
//! ```
//! use ironbloom_store::{Guard, Kind, Options, Redb, checkpoint_beside};
//! # let directory = std::env::temp_dir().join(format!("ironbloom-store-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! # let file = directory.join("users.redb");
//!
//! let options = Options::new(Kind::Blocked, 1_000_000, 0.005)         // kind, capacity, rate
//!     .checkpoint(checkpoint_beside(&file));
//! let users = Guard::open(Redb::create(&file)?, options)?;
//! users.put("alice", "1")?;
//! assert!(users.get("alice")?.is_some());                             // asks the store
//! assert!(users.get("bob")?.is_none());                               // does not
//! println!("saved {:?}", users.stats().time_saved());
//! users.close()?;                                                     // writes a checkpoint
//! # std::fs::remove_dir_all(directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! - **A stored key is never answered "absent"**: not while writers, rebuilds and checkpoints run, not after a crash at
//!   any instant, and not if the store errs, panics, stalls, or carries out late what it had reported as failed. The one
//!   exception is chosen by name: [`Kind::Windowed`].
//! - **Lookups take no lock.** Writers take one of 64, by key; a slow write holds up only those that share it.
//! - **The filter is derived data.** It can be lost, damaged or out of date: then it is built from a scan of the store, in
//!   the background, while every lookup asks the store. [`Options::checkpoint`] makes that rare; [`Generation`] tells how a
//!   checkpoint proves that it has seen every write. A rebuild that fails is tried again.
//! - **All keys must come through the guard.** What others write to the store must be [noted](Guard::note). Stores that
//!   others can write to are scanned when they are opened, unless you promise to be [alone](Options::only_writer). A
//!   foreign key that is put through the guard is noticed: the filter is then built again.
//!
//! # Which kind?
//!
//! | You | Take | bits/key at 1 % |
//! |---|---|---|
//! | put and look up, seldom remove | [`Kind::Blocked`] | 10.1 |
//! | remove, too | [`Kind::Cuckoo`] | 11 |
//! | remove, too, at a rate far below 1 % | [`Kind::DLeft`] | 20 |
//! | do not know how many keys will come | [`Kind::Scalable`] | 13 to 16 |
//! | only care for recent keys, and may forget others | [`Kind::Windowed`] | 17 |
//!
//! # What does it save?
//!
//! [`Guard::stats`] counts and times lookups by what became of them, and says what other rates and kinds would have cost:
//! [`Stats::choices`]. The feature `metrics` hands that to Prometheus; the feature `tracing` tells of rebuilds that fail and
//! of foreign keys.

#![forbid(unsafe_code)]

#[cfg(feature = "async")]
mod asynchronous;
mod backend;
mod backends;
mod checkpoint;
mod doubts;
mod error;
mod events;
mod filter;
mod front;
mod generation;
mod guard;
mod kind;
#[cfg(feature = "metrics")]
mod metrics;
mod options;
mod stats;
mod stripes;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncBackend, AsyncGuard, Visit};
pub use backend::Backend;
pub use backends::*;
pub use checkpoint::{Unusable, checkpoint_beside};
pub use error::Error;
pub use generation::Generation;
pub use guard::{Guard, Opened};
pub use kind::{Kind, UnknownKind};
pub use options::{Options, Rebuild};
pub use stats::{Choice, Stats};
