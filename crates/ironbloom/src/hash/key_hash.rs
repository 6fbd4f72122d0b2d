//! From a key to the number that a filter of any kind uses for it, or why there is none.

use std::fmt;

use crate::hash::HashFn;
use crate::hash::{Encoded, Key, KeyForm, KeyType};

/// How the keys of a filter become the numbers that its operations take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    /// Keys are hashed; in a filter of integers ([`HashFn::Typed`]), decimal text is the integer that it spells.
    Hash(HashFn),
    /// Keys are integers, or their decimal text, used as they are: a bitmap.
    Integer,
    /// Keys are rows of several attributes, which [`Attributes`](crate::kinds::multi::Attributes) hashes, not bytes.
    Row(HashFn),
    /// Keys are hashed by the rule of another program, to more than one number:
    /// [`Foreign::contains`](crate::Foreign::contains).
    Foreign(HashFn),
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
    /// A key of another type than the filter holds ([`HashFn::Typed`]).
    Type {
        /// The type of the filter's keys.
        wanted: KeyType,
        /// The type of this key.
        found: KeyType,
    },
    /// A single key, in a filter of rows with several attributes.
    Row,
    /// A key of a foreign filter, where a hash of 64 bits is needed.
    Foreign,
    /// A foreign filter, of which nobody has said what its keys are: text or numbers.
    UnknownForm,
    /// Not what the keys of a foreign filter are.
    NotOfForm {
        /// The key.
        key: String,
        /// What they are.
        form: KeyForm,
    },
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
            Self::Type { wanted, found } => write!(f, "the filter holds {wanted}, not {found}"),
            Self::Row => write!(f, "the filter holds rows of several attributes, not keys"),
            Self::Foreign => write!(f, "the filter hashes keys by the rule of another program"),
            Self::UnknownForm => {
                write!(f, "the file does not say what its keys are, text or numbers")
            }
            Self::NotOfForm { key, form } => write!(f, "keys are {form}, not {key:?}"),
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
            Self::Hash(hash_fn) => match hash_fn.try_hash_key(&key) {
                Some(hash) => Ok(hash),
                None => hash_text(hash_fn, key.encoded()),
            },
            Self::Row(_) => Err(KeyError::Row),
            Self::Foreign(_) => Err(KeyError::Foreign),
            Self::Integer => match key.encoded() {
                Encoded::Integer(number) => Ok(number),
                Encoded::Bytes(text) => parse(text),
                Encoded::Hashed(_) => {
                    Err(KeyError::Type { wanted: KeyType::Integer, found: KeyType::Hashed })
                }
            },
        }
    }
}

/// The hash of a key that the function does not take: text, if it is an integer in a filter of those.
#[cold]
fn hash_text(hash_fn: HashFn, key: Encoded<'_>) -> Result<u64, KeyError> {
    match (hash_fn, key) {
        (HashFn::Typed { keys: KeyType::Integer, .. }, Encoded::Bytes(text)) => {
            let number = parse(text).or_else(|error| match parse::<i64>(text) {
                Ok(negative) => Ok(negative as u64),
                Err(_) => Err(error),
            })?;
            Ok(hash_fn.hash(number))
        }
        _ => match hash_fn.accepts(key.key_type()) {
            Err(error) => Err(error),
            Ok(()) => unreachable!("a key that is accepted has a hash"),
        },
    }
}

/// Parses a text as a decimal integer.
fn parse<N: std::str::FromStr>(text: &[u8]) -> Result<N, KeyError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| KeyError::NotAnInteger { key: String::from_utf8_lossy(text).into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hashed;

    #[test]
    fn text_in_a_filter_of_integers_is_a_number_or_an_error() {
        let integers = HashFn::Typed { keys: KeyType::Integer, seed: 3 };
        let hash = KeyHash::Hash(integers);
        assert_eq!(hash.of("1234").unwrap(), integers.hash(1234));
        assert_eq!(hash.of("-5").unwrap(), integers.hash(-5));
        assert_eq!(hash.of(u64::MAX.to_string()).unwrap(), integers.hash(u64::MAX));
        for text in ["", "12.5", "alice", "18446744073709551616", "-9223372036854775809"] {
            assert_eq!(hash.of(text), Err(KeyError::NotAnInteger { key: text.to_owned() }));
        }
        let other = KeyError::Type { wanted: KeyType::Integer, found: KeyType::Hashed };
        assert_eq!(hash.of(Hashed(5)), Err(other.clone()));
        assert_eq!(KeyHash::Integer.of(Hashed(5)), Err(other));
        assert!(KeyHash::Integer.of("-5").is_err(), "a bitmap starts at 0");
    }
}
