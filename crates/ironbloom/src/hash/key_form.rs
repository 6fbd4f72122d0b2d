//! The form of the keys of another program's filter, and the bytes that it hashes of each.
//!
//! ```text
//!  form      a key is            what is hashed
//!  text      text or bytes       the bytes as they are: UTF-8 for text
//!  chars     text                its UTF-16 code units, little-endian
//!  long      an integer          8 bytes, little-endian, two's complement
//!  int       an integer          4 bytes, little-endian, two's complement
//!  double    a number            8 bytes, little-endian: IEEE 754, with one NaN; zero has two forms
//!  hex       digits, 0x optional the bytes that they spell
//! ```
//!
//! Few formats record it, and a wrong guess makes every key "absent". So a filter whose file does not record it refuses
//! all keys until the caller specifies it.

use std::fmt;

use super::{Encoded, KeyError, KeyType};

/// The form of the keys of a foreign filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyForm {
    /// Text or bytes, as they are.
    Text,
    /// Text, as UTF-16 code units in little-endian order: Java's `char`s.
    Chars,
    /// Signed 64-bit integers.
    Long,
    /// Signed 32-bit integers.
    Int,
    /// 64-bit floating-point numbers.
    Double,
    /// Bytes, written as hexadecimal digits.
    Hex,
}

impl KeyForm {
    /// All forms. Their positions here, from 1, are their numbers in files.
    pub const ALL: [Self; 6] =
        [Self::Text, Self::Chars, Self::Long, Self::Int, Self::Double, Self::Hex];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Chars => "chars",
            Self::Long => "long",
            Self::Int => "int",
            Self::Double => "double",
            Self::Hex => "hex",
        }
    }

    pub(crate) fn number(form: Option<Self>) -> u16 {
        let place = Self::ALL.iter().position(|&other| Some(other) == form);
        place.map_or(0, |place| place as u16 + 1)
    }

    /// Returns the form with a number in a file. `None` if the number is unknown; `Some(None)` if no form is recorded.
    pub(crate) fn from_number(number: u16) -> Option<Option<Self>> {
        match number.checked_sub(1) {
            None => Some(None),
            Some(place) => Self::ALL.get(usize::from(place)).map(|&form| Some(form)),
        }
    }

    /// Calls `hash` with the bytes of a key that are hashed. Text may spell a number.
    #[inline]
    pub(crate) fn with_bytes<R>(
        self,
        key: Encoded<'_>,
        hash: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, KeyError> {
        match (self, key) {
            (Self::Text, Encoded::Bytes(bytes)) => Ok(hash(bytes)),
            (Self::Long, key) => Ok(hash(&self.integer(key)?.to_le_bytes())),
            (Self::Int, key) => match i32::try_from(self.integer(key)?) {
                Ok(number) => Ok(hash(&number.to_le_bytes())),
                Err(_) => Err(self.refused(key)),
            },
            (Self::Chars, Encoded::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
                    Ok(hash(&units))
                }
                Err(_) => Err(self.refused(key)),
            },
            (Self::Double, Encoded::Bytes(bytes)) => match parse_double(bytes) {
                Some(number) if number.is_nan() => Ok(hash(&NAN.to_le_bytes())),
                Some(number) => Ok(hash(&number.to_le_bytes())),
                None => Err(self.refused(key)),
            },
            (Self::Hex, Encoded::Bytes(bytes)) => match from_hex(bytes) {
                Some(bytes) => Ok(hash(&bytes)),
                None => Err(self.refused(key)),
            },
            (Self::Text | Self::Chars | Self::Double | Self::Hex, key) => {
                Err(KeyError::Type { wanted: KeyType::Bytes, found: key.key_type() })
            }
        }
    }

    /// Returns both forms of a zero, if the key is one and has two: some programs hash 0 and −0 alike, others do not,
    /// and a file does not say which.
    pub(crate) fn zeros(self, key: Encoded<'_>) -> Option<[&'static [u8]; 2]> {
        match (self, key) {
            (Self::Double, Encoded::Bytes(text)) if parse_double(text) == Some(0.0) => {
                Some([b"0", b"-0"])
            }
            _ => None,
        }
    }

    #[inline]
    fn integer(self, key: Encoded<'_>) -> Result<i64, KeyError> {
        match key {
            Encoded::Integer(number) => Ok(number.cast_signed()),
            Encoded::Bytes(text) => self.parsed(text),
            Encoded::Hashed(_) | Encoded::Value(_) => {
                Err(KeyError::Type { wanted: KeyType::Integer, found: key.key_type() })
            }
        }
    }

    fn parsed(self, text: &[u8]) -> Result<i64, KeyError> {
        super::key_hash::parse(text).map_err(|_| self.refused(Encoded::Bytes(text)))
    }

    #[cold]
    fn refused(self, key: Encoded<'_>) -> KeyError {
        let key = match key {
            Encoded::Bytes(text) => String::from_utf8_lossy(text).into(),
            Encoded::Integer(number) => number.cast_signed().to_string(),
            Encoded::Hashed(_) | Encoded::Value(_) => key.key_type().to_string(),
        };
        KeyError::NotOfForm { key, form: self }
    }
}

/// The bits that stand for every NaN.
const NAN: u64 = 0x7ff8_0000_0000_0000;

fn parse_double(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Decodes an even number of hexadecimal digits, with or without `0x`.
pub(crate) fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

impl fmt::Display for KeyForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text or bytes",
            Self::Chars => "text, as UTF-16 code units",
            Self::Long => "integers of 64 bits",
            Self::Int => "integers of 32 bits",
            Self::Double => "floating-point numbers",
            Self::Hex => "bytes, in hexadecimal digits",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Key as _;

    fn bytes(form: KeyForm, key: impl crate::Key) -> Result<Vec<u8>, KeyError> {
        form.with_bytes(key.encoded(), <[u8]>::to_vec)
    }

    #[test]
    fn a_key_is_hashed_by_its_form() {
        assert_eq!(bytes(KeyForm::Text, "é").unwrap(), [0xc3, 0xa9]);
        assert_eq!(bytes(KeyForm::Chars, "é€").unwrap(), [0xe9, 0, 0xac, 0x20]);
        assert_eq!(bytes(KeyForm::Long, -2).unwrap(), (-2i64).to_le_bytes());
        assert_eq!(bytes(KeyForm::Long, "-2").unwrap(), (-2i64).to_le_bytes());
        assert_eq!(bytes(KeyForm::Int, "-2").unwrap(), (-2i32).to_le_bytes());
        assert_eq!(bytes(KeyForm::Int, -2i64).unwrap(), (-2i32).to_le_bytes());
        assert_eq!(bytes(KeyForm::Double, "1.5").unwrap(), 1.5f64.to_le_bytes());
        assert_eq!(bytes(KeyForm::Double, "-0").unwrap(), (-0.0f64).to_le_bytes());
        assert_eq!(bytes(KeyForm::Double, "-nan").unwrap(), NAN.to_le_bytes());
        assert!(KeyForm::Double.zeros("0.0".encoded()).is_some());
        assert!(KeyForm::Double.zeros("1".encoded()).is_none());
        assert_eq!(bytes(KeyForm::Hex, "0x00fF").unwrap(), [0, 255]);
    }

    #[test]
    fn a_key_that_is_not_of_the_form_is_an_error_and_never_absent() {
        for (form, key) in [
            (KeyForm::Long, "alice"),
            (KeyForm::Long, "9223372036854775808"),
            (KeyForm::Int, "2147483648"),
            (KeyForm::Double, "one"),
            (KeyForm::Hex, "0xabc"),
            (KeyForm::Hex, "zz"),
        ] {
            let expected = KeyError::NotOfForm { key: key.to_owned(), form };
            assert_eq!(bytes(form, key), Err(expected));
        }
        assert!(bytes(KeyForm::Chars, [0xff, 0xfe]).is_err());
        assert!(bytes(KeyForm::Text, 7).is_err());
    }

    #[test]
    fn numbers_in_files_stay() {
        let numbers = KeyForm::ALL.map(|form| (KeyForm::number(Some(form)), form.name()));
        let expected =
            [(1, "text"), (2, "chars"), (3, "long"), (4, "int"), (5, "double"), (6, "hex")];
        assert_eq!(numbers, expected);
        assert_eq!((KeyForm::number(None), KeyForm::from_number(0)), (0, Some(None)));
        assert_eq!(KeyForm::from_number(7), None);
    }
}
