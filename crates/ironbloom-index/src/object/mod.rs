//! Objects in buckets: S3, Google Cloud Storage, Azure Blob Storage, and servers of HTTP.
//!
//! ```text
//!  bytes.rs        an object as FileBytes reads it: tiles of 32 KiB, in memory and in the cache
//!  ranges.rs       which requests get these tiles
//!  cache.rs        a folder of tiles that outlives the process, bounded
//!  replace.rs      puts that lose no other writer's change      listing.rs   what is under a prefix
//!  stores.rs       a bucket ──► its store, with credentials from the environment and from profiles (profile.rs)
//!  connection.rs   requests over hyper and rustls               runtime.rs   the thread that waits for them
//!  errors.rs       what a store answers, without secrets
//! ```
//!
//! Everything above this reads synchronously: a caller waits in its own thread while one thread of ours does the input and
//! output of all.

mod bytes;
mod cache;
mod connection;
mod errors;
mod listing;
mod profile;
mod ranges;
mod replace;
mod runtime;
mod stores;

pub(crate) use bytes::{ObjectBytes, planned};
pub use connection::object_requests;
pub use listing::list_objects;
pub(crate) use replace::{check_replaceable, current, replace};
