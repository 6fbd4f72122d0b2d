//! Bloom filters and relatives: fast set membership in a few bits per key.
//!
//! ```
//! use ironbloom::Bloom;
//!
//! let mut seen = Bloom::with_rate(1_000_000, 0.01)?;              // capacity, rate
//! seen.insert("alice");
//! assert!(seen.contains("alice") && !seen.contains("bob"));
//! # Ok::<(), ironbloom::ParamError>(())
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
//! | an unknown number of keys | [`Scalable`] | 14, up to 42 just after it has grown | grows |
//! | old keys to expire | [`Windowed`] | 19.7 | a few |
//! | inserts from many threads | [`AtomicBloom`], [`AtomicBlockedBloom`] | same as the plain kind | |
//! | Parquet's own filter | [`SplitBlock`] | 10.5 | 1 |
//! | rows of several attributes | [`multi::Joint`] | 10.9 | 2 |
//! | no errors at all, keys are small integers | [`Bitmap`] | one bit per possible key | 1 |
//!
//! # What you can rely on
//!
//! - **A filter answers "might this key be in the set?"** *No* is certain; *yes* is wrong at the rate you chose.
//! - **Keys** are text, bytes or integers ([`Key`]), or anything else that can be hashed ([`Hashed`]). A filter notes which of
//!   these it was given, and its file records it ([`KeyTypes`]); it can be limited to one of them ([`HashFn::Typed`]).
//! - **Adversaries** who know the source cannot choose false positives if the hash is secret: [`HashFn::random`].
//! - **The same answers everywhere**: one hash contract ([`HashFn`]) and exact sizing ([`sizing`]) for all kinds, on every
//!   platform and in every release.
//! - **One interface**: [`Filter`] answers, [`Insert`] takes keys, [`Remove`] removes them. `insert` returns whether
//!   the key was new; a filter that can be full says so in its type. [`plan`] compares the cost of all kinds.
//! - **Files** ([`Persist`]) are checked completely when they are read. A filter of unknown kind is an [`AnyFilter`].
//!
//! ```
//! use ironbloom::{AnyFilter, Bloom, Persist};
//!
//! let mut seen = Bloom::with_rate(1_000_000, 0.01)?;
//! assert!(seen.insert("alice"));                                  // true: was new
//! # let path = std::env::temp_dir().join(format!("ironbloom-doc-{}.ibf", std::process::id()));
//! seen.save(&path)?;
//! let seen = AnyFilter::load(&path)?;                             // every checksum is verified
//! assert!(seen.contains("alice")?);
//! # std::fs::remove_file(path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! - `simd`, on by default: vector instructions, chosen at run time. Without it, plain code gives the same answers.
//! - `mmap`, on by default: memory-mapped filters, and large arrays on large pages.
//! - `serde`: filters inside documents of other formats.

mod bits;
pub mod dedup;
mod error;
pub mod ethereum;
pub mod format;
pub mod hash;
mod kernel;
mod kinds;
pub mod memory;
pub mod redisbloom;
pub mod route;
mod shared;
pub mod sizing;
pub mod sketches;

pub use error::{DecodeError, FileError, Full, MergeError, Mismatch, ParamError, RowError};
pub use format::native::Persist;
pub use hash::{Encoded, HashFn, HashKey, Hashed, Key, KeyType, KeyTypes, Scheme};
pub use kinds::*;
pub use shared::atomic::{self, AtomicBlockedBloom, AtomicBloom};

/// Runs the README's examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
