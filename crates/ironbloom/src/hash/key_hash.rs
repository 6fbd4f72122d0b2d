//! From a key to the number that a filter of any kind uses for it, or why there is none.

use std::fmt;

use crate::hash::HashFn;
use crate::hash::{Encoded, Key};

/// How the keys of a filter become the numbers that its operations take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    /// Bytes are hashed.
    Hash(HashFn),
    /// Keys are integers, or their decimal text, used as they are: a bitmap.
    Integer,
    /// Keys are rows of several attributes, which [`Attributes`](crate::kinds::multi::Attributes) hashes, not bytes.
    Row(HashFn),
}

/// A key that cannot be converted to a number for this filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The filter holds hashes that only the program that created it can compute.
    External {
        /// The number that program assigned to its hash function.
        id: u64,
    },
    /// A single key, in a filter of rows with several attributes.
    Row,
    /// Not a decimal integer, in a filter of integers.
    NotAnInteger {
        /// The key.
        key: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External { id } => write!(
                f,
                "the filter was built from hashes of another program (external hash {id}), keys cannot be looked up"
            ),
            Self::Row => write!(f, "the filter holds rows of several attributes, not keys"),
            Self::NotAnInteger { key } => write!(f, "not an integer: {key:?}"),
        }
    }
}

impl std::error::Error for KeyError {}

impl KeyHash {
    /// The number that represents a key.
    #[inline]
    pub fn of(self, key: impl Key) -> Result<u64, KeyError> {
        match self {
            Self::Hash(hash_fn) => {
                hash_fn.try_hash_key(&key).ok_or(KeyError::External { id: hash_fn.seed() })
            }
            Self::Row(_) => Err(KeyError::Row),
            Self::Integer => match key.encoded() {
                Encoded::Integer(number) => Ok(number),
                Encoded::Bytes(text) => integer(text),
            },
        }
    }
}

/// Parses a text as an integer.
fn integer(text: &[u8]) -> Result<u64, KeyError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| KeyError::NotAnInteger { key: String::from_utf8_lossy(text).into() })
}
