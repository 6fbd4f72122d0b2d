//! How keys and values of a program's own types become bytes, and back.
//!
//! ```text
//!  type                            bytes
//!  text, bytes                     as they are
//!  integer                         8: two's complement, little-endian, whatever its type (as `ironbloom::Key` hashes it)
//!  bool                            1: 0 or 1
//!  ()                              none
//!  Serde<T>, feature `serde`       postcard, version 1 of its wire format
//! ```
//!
//! What is stored outlives the program that stored it, so an encoding never changes.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use ironbloom::{Encoded, Key};

/// A key or value that can be stored.
///
/// **The bytes of a key must stay the same for ever**, from one run and release of the program to the next, and equal
/// keys must have equal bytes: a key that is encoded differently is another key, which is not there.
///
/// ```
/// use ironbloom_store::{Bytes, CodecError, Encode};
///
/// struct Session { user: u32, device: u16 }
///
/// impl Encode for Session {
///     fn encode(&self) -> Result<Bytes<'_>, CodecError> {
///         let mut bytes = self.user.to_le_bytes().to_vec();
///         bytes.extend(self.device.to_le_bytes());
///         Ok(bytes.into())
///     }
/// }
/// ```
pub trait Encode {
    /// The bytes to be stored.
    fn encode(&self) -> Result<Bytes<'_>, CodecError>;
}

/// A value that can be made from what was stored.
pub trait Decode: Sized {
    /// The value that these bytes encode. Bytes that no value has are an error.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;
}

/// Encoded bytes: borrowed where the value already has them.
#[derive(Clone, Debug)]
pub struct Bytes<'a>(Repr<'a>);

#[derive(Clone, Debug)]
enum Repr<'a> {
    Borrowed(&'a [u8]),
    Word([u8; 8]),
    Owned(Vec<u8>),
}

impl AsRef<[u8]> for Bytes<'_> {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Repr::Borrowed(bytes) => bytes,
            Repr::Word(bytes) => bytes,
            Repr::Owned(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(Repr::Borrowed(bytes))
    }
}

impl From<u64> for Bytes<'_> {
    /// 8 bytes, little-endian.
    fn from(number: u64) -> Self {
        Self(Repr::Word(number.to_le_bytes()))
    }
}

impl From<Vec<u8>> for Bytes<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Repr::Owned(bytes))
    }
}

/// Why a key or value has no bytes, or bytes are not a value.
#[derive(Debug)]
#[non_exhaustive]
pub enum CodecError {
    /// Another number of bytes than every value of the type has.
    Length {
        /// Bytes of a value.
        expected: usize,
        /// Bytes stored.
        found: usize,
    },
    /// An integer outside the range of the type.
    Range {
        /// The integer, in two's complement.
        value: u64,
        /// The type.
        wanted: &'static str,
    },
    /// Not text.
    Text(std::str::Utf8Error),
    /// A codec of the program, or serde's, has failed.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => {
                write!(f, "{found} bytes are stored where there should be {expected}")
            }
            Self::Range { value, wanted } => {
                write!(f, "{} is stored where there should be a {wanted}", *value as i64)
            }
            Self::Text(error) => write!(f, "no text is stored: {error}"),
            Self::Other(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Text(error) => Some(error),
            Self::Other(error) => Some(&**error),
            Self::Length { .. } | Self::Range { .. } => None,
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], CodecError> {
    bytes.try_into().map_err(|_| CodecError::Length { expected: N, found: bytes.len() })
}

/// The library decides what a key is; a filter that hashed one of these keys knows it by these bytes.
fn as_key(key: &(impl Key + ?Sized)) -> Bytes<'_> {
    match key.encoded() {
        Encoded::Integer(number) => number.into(),
        Encoded::Bytes(bytes) => bytes.into(),
        _ => unreachable!("text, bytes and integers have no other form"),
    }
}

macro_rules! keys {
    ($($key:ty),*) => {$(
        impl Encode for $key {
            fn encode(&self) -> Result<Bytes<'_>, CodecError> {
                Ok(as_key(self))
            }
        }
    )*};
}

keys!([u8], str, String, Vec<u8>, i8, u16, i16, u32, i32, u64, i64, usize, isize);

impl<const N: usize> Encode for [u8; N] {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        Ok(as_key(self))
    }
}

impl Encode for u8 {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        Ok(u64::from(*self).into())
    }
}

macro_rules! integers {
    ($($integer:ident),*) => {$(
        impl Decode for $integer {
            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                let value = u64::from_le_bytes(array(bytes)?);
                let number = value as $integer;
                if number as u64 == value { // which extends the sign
                    Ok(number)
                } else {
                    Err(CodecError::Range { value, wanted: stringify!($integer) })
                }
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

impl Decode for String {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(CodecError::Text)
    }
}

impl Decode for Vec<u8> {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(bytes.to_vec())
    }
}

impl<const N: usize> Decode for [u8; N] {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        array(bytes)
    }
}

impl Encode for bool {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        Ok(if *self { &[1][..] } else { &[0] }.into())
    }
}

impl Decode for bool {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match array(bytes)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(CodecError::Range { value: other.into(), wanted: "bool" }),
        }
    }
}

/// For stores whose keys are all there is to know.
impl Encode for () {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        Ok((&[][..]).into())
    }
}

impl Decode for () {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        array::<0>(bytes).map(|_| ())
    }
}

macro_rules! owners {
    ($($owner:ty),*) => {$(
        impl<T: Encode + ?Sized> Encode for $owner {
            fn encode(&self) -> Result<Bytes<'_>, CodecError> {
                (**self).encode()
            }
        }
    )*};
}

owners!(&T, Box<T>, Rc<T>, Arc<T>);

impl<T: Encode + ToOwned + ?Sized> Encode for Cow<'_, T> {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        (**self).encode()
    }
}

/// A key or value of any type that serde knows, in [postcard](https://postcard.jamesmunns.com)'s format: compact, and
/// fixed by a specification. What may change is the type: fields that are added, removed or reordered change the bytes.
///
/// As keys, take types whose equal values always have equal bytes: no `HashMap`, whose order is random. Integers are
/// stored in as few bytes as they need, so the key `Serde(7)` is not the key `7`.
#[cfg(feature = "serde")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serde<T>(pub T);

#[cfg(feature = "serde")]
impl<T: serde::Serialize> Encode for Serde<T> {
    fn encode(&self) -> Result<Bytes<'_>, CodecError> {
        let bytes = postcard::to_stdvec(&self.0);
        Ok(bytes.map_err(|error| CodecError::Other(error.into()))?.into())
    }
}

#[cfg(feature = "serde")]
impl<T: serde::de::DeserializeOwned> Decode for Serde<T> {
    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(Self(value)),
            Ok((_, rest)) => {
                let expected = bytes.len() - rest.len();
                Err(CodecError::Length { expected, found: bytes.len() })
            }
            Err(error) => Err(CodecError::Other(error.into())),
        }
    }
}
