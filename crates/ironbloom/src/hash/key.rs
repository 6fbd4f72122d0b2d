//! Keys: bytes, or an integer.
//!
//! ```text
//!  key                     what is hashed
//!  text, bytes             the bytes as they are
//!  integer                 8 bytes: the number in two's complement, little-endian, whatever its type was
//!  Hashed                  what the value writes into a hasher, numbers little-endian
//! ```
//!
//! So `7i32`, `7u16` and `7u64` are one key, and so are the integer and its `u64::to_le_bytes`, which is how a program
//! in another language looks it up; the text "7" is a different key. A negative number is the key of the `u64` that it
//! casts to: if you mix signed and unsigned integers in one filter, you may find `u64::MAX` for -1, but never miss a
//! key.
//!
//! Types are listed one by one rather than by `AsRef<[u8]>`, because the compiler would have to assume that integers
//! might implement it some day. `u8` is left out: `b"abc"` as a slice of keys would be three integers.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use super::hashed::Written;

/// A key: text, bytes or an integer.
///
/// ```
/// use ironbloom::{Bloom, Filter};
/// let mut seen = Bloom::with_rate(1000, 0.01)?;
/// seen.insert("alice");                       // text and bytes as they are
/// seen.insert(b"alice".as_slice());           // the same key
/// seen.insert(1234);                          // an integer
/// assert!(seen.contains(1234u64));            // whatever its type
/// assert!(!seen.contains("1234"));
///
/// seen.insert_keys(&[10, 20, 30]);            // in batches, too
/// let mut found = [false; 3];
/// seen.contains_keys(&[10, 20, 31], &mut found);
/// assert_eq!(found, [true, true, false]);
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
///
/// Implement it for your own types by returning one of these:
///
/// ```
/// use ironbloom::{Bloom, Encoded, Key};
/// struct UserId(u32);
/// impl Key for UserId {
///     fn encoded(&self) -> Encoded<'_> {
///         self.0.encoded()
///     }
/// }
/// let mut users = Bloom::with_rate(1000, 0.01)?;
/// users.insert(UserId(7));
/// assert!(users.contains(UserId(7)) && users.contains(7));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
pub trait Key {
    /// Returns the form that is hashed.
    fn encoded(&self) -> Encoded<'_>;
}

/// A key as the hash function sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Encoded<'a> {
    /// Bytes as they are.
    Bytes(&'a [u8]),
    /// An integer in two's complement: 8 bytes, little-endian.
    Integer(u64),
    /// A value of another type ([`Hashed`](crate::Hashed)), which writes the bytes to hash.
    Hashed(&'a dyn Written),
    /// A value that is neither text nor an integer, in an encoding chosen by a program in another language: Python's
    /// floats, dates and tuples.
    Value(&'a [u8]),
}

impl Encoded<'_> {
    /// The type of the key.
    #[inline(always)]
    pub fn key_type(&self) -> KeyType {
        match self {
            Self::Bytes(_) => KeyType::Bytes,
            Self::Integer(_) => KeyType::Integer,
            Self::Hashed(_) => KeyType::Hashed,
            Self::Value(_) => KeyType::Value,
        }
    }
}

/// The type of a key. A filter takes keys of all types unless its hash function is for one of them
/// ([`HashFn::Typed`](crate::HashFn::Typed)), and notes the types that it was given ([`KeyTypes`](crate::KeyTypes)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// Text or bytes.
    Bytes,
    /// Integers.
    Integer,
    /// Values of another type, hashed ([`Hashed`](crate::Hashed)).
    Hashed,
    /// Values that are neither text nor integers, encoded by a program in another language ([`Encoded::Value`]).
    Value,
    /// Hashed values as releases up to 0.2 hashed them: first without a seed. Found only in their files.
    Digest,
}

impl KeyType {
    /// Returns true if a filter declared to hold keys of this type takes such a key.
    pub(super) fn takes(self, found: Self) -> bool {
        self == found || (self, found) == (Self::Digest, Self::Hashed)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "text or bytes",
            Self::Integer => "integers",
            Self::Hashed => "hashed values",
            Self::Value => "other values, such as floats, dates and tuples",
            Self::Digest => "hashed values of an earlier release",
        })
    }
}

macro_rules! bytes {
    ($($bytes:ty),*) => {$(
        impl Key for $bytes {
            #[inline(always)]
            fn encoded(&self) -> Encoded<'_> {
                Encoded::Bytes(self.as_ref())
            }
        }
    )*};
}

bytes!([u8], str, String, Vec<u8>);

impl<const N: usize> Key for [u8; N] {
    #[inline(always)]
    fn encoded(&self) -> Encoded<'_> {
        Encoded::Bytes(self)
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Key for $integer {
            #[inline(always)]
            fn encoded(&self) -> Encoded<'_> {
                Encoded::Integer(*self as u64) // sign-extends
            }
        }
    )*};
}

integers!(i8, u16, i16, u32, i32, u64, i64, usize, isize);

macro_rules! owners {
    ($($owner:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $owner {
            #[inline(always)]
            fn encoded(&self) -> Encoded<'_> {
                (**self).encoded()
            }
        }
    )*};
}

owners!(&K, &mut K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline(always)]
    fn encoded(&self) -> Encoded<'_> {
        (**self).encoded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashFn;

    #[test]
    fn an_integer_is_one_key_whatever_its_type() {
        let hash_fn = HashFn::Xxh3 { seed: 5 };
        let (seven, reference) = (hash_fn.hash(7u64.to_le_bytes()), &&7u32);
        let all = [
            hash_fn.hash(7i8),
            hash_fn.hash(7u16),
            hash_fn.hash(7i16),
            hash_fn.hash(7u32),
            hash_fn.hash(7),
            hash_fn.hash(7u64),
            hash_fn.hash(7i64),
            hash_fn.hash(7usize),
            hash_fn.hash(7isize),
            hash_fn.hash(reference),
            hash_fn.hash(Box::new(7)),
        ];
        assert_eq!(all, [seven; 11]);
        assert_eq!(hash_fn.hash(-7i8), hash_fn.hash(-7i64));
        assert_ne!(hash_fn.hash(-7), seven);
        assert_ne!(hash_fn.hash("7"), seven);
    }

    #[test]
    fn text_and_bytes_are_their_bytes_whoever_owns_them() {
        let hash_fn = HashFn::default();
        let expected = hash_fn.try_hash(b"alice").unwrap();
        let all = [
            hash_fn.hash("alice"),
            hash_fn.hash(b"alice"),
            hash_fn.hash(*b"alice"),
            hash_fn.hash(b"alice".as_slice()),
            hash_fn.hash("alice".to_owned()),
            hash_fn.hash(b"alice".to_vec()),
            hash_fn.hash(Cow::Borrowed("alice")),
            hash_fn.hash(Rc::<str>::from("alice")),
            hash_fn.hash(Arc::<[u8]>::from(b"alice".as_slice())),
        ];
        assert_eq!(all, [expected; 9]);
    }
}
