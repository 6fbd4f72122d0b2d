//! From a key to the number that a filter of any kind uses for it, or the reason why there is none.

use std::fmt;

use crate::hash::HashFn;
use crate::hash::{Encoded, Key, KeyForm, KeyType, KeyTypes};

/// How a filter's keys become the numbers that its operations take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHash {
    /// Keys are hashed; in a filter of integers ([`HashFn::Typed`]), decimal text stands for the integer.
    Hash(HashFn),
    /// Like `Hash`, for a filter that has noted the types of its keys: others are refused.
    Held(HashFn, KeyTypes),
    /// Keys are integers, which are hashed, or their decimal text: [`of_text`](Self::of_text) of a filter of integers.
    Digits(HashFn),
    /// Keys are integers, or their decimal text, used unchanged: a bitmap.
    Integer,
    /// Keys are rows of several attributes, hashed by [`Attributes`](crate::kinds::multi::Attributes), not bytes.
    Row(HashFn),
    /// Keys are hashed by another program's rule, to more than one number:
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
    /// The key has a different type than the filter holds ([`HashFn::Typed`]).
    Type {
        /// The type of the filter's keys.
        wanted: KeyType,
        /// The type of this key.
        found: KeyType,
    },
    /// The key has a different type than those the filter was given ([`KeyTypes`]).
    NotHeld {
        /// The types of the filter's keys.
        held: KeyTypes,
        /// The type of this key.
        found: KeyType,
    },
    /// The filter holds keys of several types, and text could stand for more than one of them.
    Ambiguous {
        /// The types of the filter's keys.
        held: KeyTypes,
    },
    /// A hashed value ([`Hashed`](crate::Hashed)), for a file whose hashed values only an earlier release can compute.
    OldHashed,
    /// The hash key is not in the file, and was not given.
    Locked {
        /// The number that identifies the key: [`HashKey::check`](crate::HashKey::check).
        check: u64,
    },
    /// A single key, in a filter of rows with several attributes.
    Row,
    /// A key of a foreign filter, where a 64-bit hash is needed.
    Foreign,
    /// A foreign filter whose key form is unknown: text or numbers.
    UnknownForm,
    /// The key does not have the form of a foreign filter's keys.
    NotOfForm {
        /// The key.
        key: String,
        /// The form of the filter's keys.
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
            Self::NotHeld { held, found } => write!(f, "the filter holds {held}, not {found}"),
            Self::Ambiguous { held } => {
                write!(f, "the filter holds {held}: text may stand for a key of any of these types")
            }
            Self::OldHashed => write!(
                f,
                "the filter does not say what its keys are, and hashed values are hashed otherwise since release 0.3: \
                 build it again"
            ),
            Self::Locked { check } => write!(
                f,
                "the filter's hash has a secret key that is not in its file: give the key with the check {check:016x}"
            ),
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
    /// How keys are hashed in a filter with this function that has noted these types.
    #[inline]
    pub(crate) fn of_filter(hash_fn: HashFn, held: KeyTypes) -> Self {
        if hash_fn.declared().is_some() || held.is_nothing() {
            Self::Hash(hash_fn)
        } else {
            Self::Held(hash_fn, held)
        }
    }

    /// Returns the number that represents a key.
    #[inline]
    pub fn of(self, key: impl Key) -> Result<u64, KeyError> {
        match self {
            Self::Hash(hash_fn) => match hash_fn.try_hash_key(&key) {
                Some(hash) => Ok(hash),
                None => hash_text(hash_fn, key.encoded()),
            },
            Self::Held(hash_fn, held) => {
                held.accepts(key.encoded().key_type())?;
                Self::Hash(hash_fn).of(key)
            }
            Self::Digits(hash_fn) => match key.encoded() {
                Encoded::Bytes(text) => Self::Hash(hash_fn).of(parse_integer(text)?),
                _ => Self::Held(hash_fn, KeyType::Integer.into()).of(key),
            },
            Self::Row(_) => Err(KeyError::Row),
            Self::Foreign(_) => Err(KeyError::Foreign),
            Self::Integer => match key.encoded() {
                Encoded::Integer(number) => Ok(number),
                Encoded::Bytes(text) => parse(text),
                other => Err(KeyError::Type { wanted: KeyType::Integer, found: other.key_type() }),
            },
        }
    }
}

impl KeyHash {
    /// Returns the filter's hash function; `None` for a bitmap.
    pub fn hash_fn(self) -> Option<HashFn> {
        match self {
            Self::Hash(hash_fn)
            | Self::Held(hash_fn, _)
            | Self::Digits(hash_fn)
            | Self::Row(hash_fn)
            | Self::Foreign(hash_fn) => Some(hash_fn),
            Self::Integer => None,
        }
    }

    /// How text of unknown type, such as a line of a file, becomes a number: as text, or as an integer if the filter
    /// holds nothing else. `Err` if it could be either, or if the filter takes no text at all.
    ///
    /// ```
    /// use ironbloom::{AnyFilter, Bloom};
    /// let mut filter = Bloom::with_rate(1000, 0.01)?;
    /// filter.insert(7);
    /// assert!(AnyFilter::from(filter.clone()).key_hash().of_text().is_ok());
    /// filter.insert("7");
    /// assert!(AnyFilter::from(filter).key_hash().of_text().is_err());     // is a line "7" the text or the number?
    /// # Ok::<(), ironbloom::ParamError>(())
    /// ```
    pub fn of_text(self) -> Result<Self, KeyError> {
        if let Some(HashFn::Locked { check }) = self.hash_fn() {
            return Err(KeyError::Locked { check });
        }
        match self {
            Self::Held(hash_fn, held) if held.is_empty() => {
                hash_fn.accepts(KeyType::Bytes).map(|()| self)
            }
            Self::Held(hash_fn, held) => match held.only() {
                Some(KeyType::Bytes) => Ok(self),
                Some(KeyType::Integer) => Ok(Self::Digits(hash_fn)),
                Some(_) => Err(KeyError::NotHeld { held, found: KeyType::Bytes }),
                None => Err(KeyError::Ambiguous { held }),
            },
            Self::Hash(HashFn::Typed { keys: KeyType::Integer, .. })
            | Self::Digits(_)
            | Self::Integer => Ok(self),
            Self::Hash(hash_fn) => hash_fn.accepts(KeyType::Bytes).map(|()| self),
            Self::Row(_) => Err(KeyError::Row),
            Self::Foreign(_) => Err(KeyError::Foreign),
        }
    }

    /// Like [`of_text`](Self::of_text), if the caller knows that text stands for keys of this type.
    pub fn of_text_as(self, keys: KeyType) -> Result<Self, KeyError> {
        let Some(hash_fn) = self.hash_fn() else { return self.of_text() };
        if let HashFn::Locked { check } = hash_fn {
            return Err(KeyError::Locked { check });
        }
        match self {
            Self::Held(_, held) => held.accepts(keys)?,
            _ => hash_fn.accepts(keys)?,
        }
        Ok(if keys == KeyType::Integer {
            Self::Digits(hash_fn)
        } else {
            Self::Held(hash_fn, keys.into())
        })
    }
}

/// Hashes a key that the function does not take: text, if it spells an integer in a filter of integers.
#[cold]
fn hash_text(hash_fn: HashFn, key: Encoded<'_>) -> Result<u64, KeyError> {
    match (hash_fn, key) {
        (HashFn::Typed { keys: KeyType::Integer, .. }, Encoded::Bytes(text)) => {
            Ok(hash_fn.hash(parse_integer(text)?))
        }
        _ => match hash_fn.accepts(key.key_type()) {
            Err(error) => Err(error),
            Ok(()) => unreachable!("a key that is accepted has a hash"),
        },
    }
}

/// Parses text as a 64-bit number, signed or unsigned.
fn parse_integer(text: &[u8]) -> Result<u64, KeyError> {
    parse(text).or_else(|error| match parse::<i64>(text) {
        Ok(negative) => Ok(negative as u64),
        Err(_) => Err(error),
    })
}

/// Parses text as a decimal integer in its canonical form: blanks, a plus sign and leading zeros make it text, since
/// two texts must not be one key.
pub(crate) fn parse<N: std::str::FromStr>(text: &[u8]) -> Result<N, KeyError> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        b"0" => text.len() == 1,
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    let number = std::str::from_utf8(text).ok().filter(|_| plain);
    let number = number.and_then(|text| text.parse().ok());
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
        for text in [
            "",
            "12.5",
            "alice",
            "7 ",
            " 7",
            "+7",
            "007",
            "-0",
            "--7",
            "-",
            "7\n",
            "18446744073709551616",
            "-9223372036854775809",
        ] {
            assert_eq!(hash.of(text), Err(KeyError::NotAnInteger { key: text.to_owned() }));
        }
        let other = KeyError::Type { wanted: KeyType::Integer, found: KeyType::Hashed };
        assert_eq!(hash.of(Hashed(5)), Err(other.clone()));
        assert_eq!(KeyHash::Integer.of(Hashed(5)), Err(other));
        assert!(KeyHash::Integer.of("-5").is_err(), "a bitmap starts at 0");
    }
}
