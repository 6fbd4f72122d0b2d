//! Sketches: counts of keys and quantiles of numbers, in a fixed amount of memory. They are not filters: none of them answers
//! "was this key here?".
//!
//! ```text
//! count_min    how often was this key added? never below the truth, above it by a share of all counts
//! top_k        which keys were added most often?
//! t_digest     below which number do 99 % of all numbers lie?
//! murmur2      the hash that RedisBloom has for the first two
//! file         `.ibs` files, which hold any of them
//! error        why there is no sketch
//! ```
//!
//! Bits, hashes and rounding are those of RedisBloom 8, so that the module for Redis and Valkey keeps these very sketches, and
//! their fields in a server's files ([`Sketch::encode`]) are RedisBloom's to the byte.
//!
//! ```
//! use ironbloom::sketches::CountMin;
//!
//! let mut words = CountMin::with_error(0.001, 0.01)?;       // above the truth by 0.1 % of all counts at most, in 99 % of cases
//! for word in "to be or not to be".split(' ') {
//!     words.add(word, 1);
//! }
//! assert!(words.count("be") >= 2 && words.total() == 6);
//! # Ok::<(), ironbloom::sketches::PlanError>(())
//! ```

mod count_min;
mod error;
mod file;
mod murmur2;
mod t_digest;
mod top_k;

pub use count_min::{CountMin, CountMinPlan};
pub use error::{MergeError, PlanError, SketchFileError};
pub use file::{MAGIC, Sketch};
pub use t_digest::{DEFAULT_COMPRESSION, TDigest};
pub use top_k::{Listed, TopK, TopKPlan};

/// More bytes than a process can address. A sketch of this size is not a matter of limits.
const ADDRESSABLE: u64 = 1 << 47;
