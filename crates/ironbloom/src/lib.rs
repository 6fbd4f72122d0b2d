//! Bloom filters and friends: fast set membership in a few bits per key.
//!
//! ```
//! use ironbloom::{Bloom, Persist};
//!
//! let mut seen = Bloom::with_rate(1_000_000, 0.01)?;      // capacity, rate
//! assert!(seen.insert("alice"));                          // true: was new
//! assert!(seen.contains("alice"));                        // certain
//! assert!(!seen.contains("bob"));                         // wrong once in a hundred
//! # let path = std::env::temp_dir().join(format!("ironbloom-doc-{}.ibf", std::process::id()));
//! seen.save(&path)?;
//! let seen = Bloom::load(&path)?;                         // every checksum is verified
//! assert!(seen.contains("alice"));
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which filter?
//!
//! | You need | Use | bits/key at 1 % | cache lines touched |
//! |---|---|---|---|
//! | the fastest lookups | [`BlockedBloom`] | 10.1 | 1 |
//! | the fewest bits with inserts, or a rate below 10^-5 | [`Bloom`] | 9.6 | up to 7 |
//! | the fewest bits, all keys known | [`BinaryFuse`] | 7.9 | 3 |
//! | to remove keys | [`Cuckoo`] | 10.5 | 2 |
//! | to remove keys, with inserts that never move other keys | [`DLeft`] | 18.7 | 4 |
//! | to remove keys and merge | [`CountingBloom`] | 38.4 | up to 7 |
//! | an unknown number of keys | [`Scalable`] | 13 to 16 | grows |
//! | old keys to expire | [`Windowed`] | 19.7 | a few |
//! | inserts from many threads | [`AtomicBloom`], [`AtomicBlockedBloom`] | same as the plain kind | |
//! | Parquet's own filter | [`SplitBlock`] | 10.5 | 1 |
//! | rows of several attributes | [`multi::Joint`] | 10.9 | 2 |
//! | no errors at all, keys are small integers | [`Bitmap`] | one bit per possible key | 1 |
//!
//! To read a file of unknown kind, use [`AnyFilter`].
//!
//! # What you can rely on
//!
//! - A filter answers "might this key be in the set?". *No* is certain; *yes* is wrong at a rate you choose.
//! - Keys are text, bytes or integers ([`Key`]), or anything else that can be hashed ([`Hashed`]). A filter can be limited
//!   to one of these, which its file records: [`HashFn::Typed`].
//! - With the feature `serde`, filters can be part of documents in other formats.
//! - All kinds share one hash contract ([`HashFn`]), exact sizing ([`sizing`]) and one file format ([`Persist`]).

mod bits;
mod error;
pub mod format;
pub mod hash;
mod kernel;
mod kinds;
pub mod memory;
pub mod route;
mod shared;
pub mod sizing;

pub use error::{DecodeError, FileError, Full, MergeError, Mismatch, ParamError, RowError};
pub use format::native::Persist;
pub use hash::{Encoded, HashFn, Hashed, Key, KeyType, Scheme};
pub use kinds::*;
pub use shared::atomic::{self, AtomicBlockedBloom, AtomicBloom};
