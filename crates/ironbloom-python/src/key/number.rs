//! Numbers as keys: those that Python finds equal are one key, whatever their types.
//!
//! ```text
//!  integral                      that integer
//!  other, exact in a float       that float
//!  other Decimal                 ff 'D', digits after the point, 8 bytes; then all digits as an integer, two's complement
//! ```

use arrow::datatypes::i256;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{OTHER, Owned, invalid};

/// As many digits as Python reads of an integer.
const MAX_DIGITS: i64 = 4300;

/// A float as a key: an integer if it is one of 64 bits.
pub(crate) enum FloatKey {
    Integer(u64),
    /// An integer of more than 64 bits.
    Large(f64),
    Bytes([u8; 10]),
}

#[inline]
pub(crate) fn float_key(number: f64) -> FloatKey {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 {
        return if (-TWO_63..TWO_63).contains(&number) {
            FloatKey::Integer(number as i64 as u64)
        } else if (TWO_63..2.0 * TWO_63).contains(&number) {
            FloatKey::Integer(number as u64)
        } else {
            FloatKey::Large(number)
        };
    }
    // All NaN are one key, as in the index.
    let number = if number.is_nan() { f64::NAN } else { number };
    let mut bytes = [OTHER, b'f', 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..].copy_from_slice(&number.to_bits().to_le_bytes());
    FloatKey::Bytes(bytes)
}

impl From<FloatKey> for Owned {
    fn from(key: FloatKey) -> Self {
        match key {
            FloatKey::Integer(number) => Self::Integer(number),
            FloatKey::Large(number) => Self::Value(large_float_bytes(number)),
            FloatKey::Bytes(bytes) => Self::Value(bytes.into()),
        }
    }
}

/// The key of a float beyond 64 bits that is an integer: that integer, as Python writes it.
pub(crate) fn large_float_bytes(number: f64) -> Vec<u8> {
    // |number| = mantissa * 2^exponent, exponent > 0.
    let bits = number.abs().to_bits();
    let exponent = (bits >> 52) as usize - 1075;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52) << (exponent % 8);
    let mut bytes = vec![0; exponent / 8];
    bytes.extend_from_slice(&mantissa.to_le_bytes());
    if number < 0.0 {
        let mut carry = true;
        for byte in &mut bytes {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    integer_bytes(&bytes)
}

/// The key of an integer beyond 64 bits, in two's complement.
pub(crate) fn integer_bytes(bytes: &[u8]) -> Vec<u8> {
    [&[OTHER, b'i'], shortest(bytes)].concat()
}

/// A number in two's complement without the bytes that only repeat its sign.
fn shortest(bytes: &[u8]) -> &[u8] {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let filler = if negative { 0xff } else { 0 };
    let mut length = bytes.len();
    while length > 1 && bytes[length - 1] == filler && (bytes[length - 2] & 0x80 != 0) == negative {
        length -= 1;
    }
    &bytes[..length]
}

fn decimal_bytes(scale: u64, digits: &[u8]) -> Vec<u8> {
    [&[OTHER, b'D'], scale.to_le_bytes().as_slice(), shortest(digits)].concat()
}

/// An `int` of Python.
pub(super) fn integer(number: &Bound<'_, PyAny>) -> PyResult<Owned> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(Owned::Integer(number as u64));
    }
    if let Ok(number) = number.extract::<u64>() {
        return Ok(Owned::Integer(number));
    }
    Ok(Owned::Value(integer_bytes(&two_s_complement(number)?)))
}

/// The bytes of an `int` of Python.
fn two_s_complement(number: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = number.py();
    let bits: usize = number.call_method0(intern!(py, "bit_length"))?.extract()?;
    let arguments = PyDict::new(py);
    arguments.set_item("signed", true)?;
    number.call_method("to_bytes", (bits / 8 + 1, "little"), Some(&arguments))?.extract()
}

/// A `Decimal` of Python.
pub(super) fn decimal(number: &Bound<'_, PyAny>) -> PyResult<Owned> {
    let py = number.py();
    let as_float = || -> PyResult<f64> { number.call_method0(intern!(py, "__float__"))?.extract() };
    let parts = number.call_method0(intern!(py, "as_tuple"))?;
    let (negative, digits, exponent) = parts
        .extract::<(u8, Bound<'_, PyTuple>, Bound<'_, PyAny>)>()
        .map(|(sign, digits, exponent)| (sign == 1, digits, exponent))?;
    let Ok(mut exponent) = exponent.extract::<i64>() else {
        // "F" for infinity, "n" and "N" for what is not a number.
        let infinite: bool = number.call_method0(intern!(py, "is_infinite"))?.extract()?;
        return Ok(float_key(if infinite { as_float()? } else { f64::NAN }).into());
    };
    let mut text = String::with_capacity(digits.len() + 1);
    if negative {
        text.push('-');
    }
    for digit in digits {
        text.push(char::from(b'0' + digit.extract::<u8>()?));
    }
    while exponent < 0 && text.ends_with('0') {
        text.pop();
        exponent += 1;
    }
    if !text.ends_with(|last: char| last.is_ascii_digit()) {
        return Ok(Owned::Integer(0)); // all digits were zeros
    }
    if text.len() as i64 > MAX_DIGITS || exponent.max(0) > MAX_DIGITS - text.len() as i64 {
        let what = format!("a Decimal of more than {MAX_DIGITS} digits is not a key");
        return Err(invalid(py, what));
    }
    let integral = exponent >= 0;
    text.extend(std::iter::repeat_n('0', exponent.max(0) as usize));
    let digits = py.get_type::<pyo3::types::PyInt>().call1((PyString::new(py, &text),))?;
    if integral {
        return integer(&digits);
    }
    let float = as_float()?;
    if number.eq(float)? {
        return Ok(float_key(float).into());
    }
    Ok(Owned::Value(decimal_bytes(exponent.unsigned_abs(), &two_s_complement(&digits)?)))
}

/// A value of a column of decimals: an integer of at most 76 digits, and how many of them are after the point.
pub(crate) enum DecimalKey {
    Integer { number: u64, negative: bool },
    Bytes(Vec<u8>),
}

pub(crate) fn decimal_key(mut digits: i256, scale: u8) -> DecimalKey {
    let ten = i256::from_i128(10);
    let mut scale = u32::from(scale);
    while scale > 0 && digits.wrapping_rem(ten) == i256::ZERO {
        digits = digits.wrapping_div(ten);
        scale = if digits == i256::ZERO { 0 } else { scale - 1 };
    }
    if scale == 0 {
        let negative = digits.is_negative();
        let number = match digits.to_i128() {
            Some(number) => i64::try_from(number)
                .map(|number| number as u64)
                .or_else(|_| u64::try_from(number))
                .ok(),
            None => None,
        };
        return match number {
            Some(number) => DecimalKey::Integer { number, negative },
            None => DecimalKey::Bytes(integer_bytes(&digits.to_le_bytes())),
        };
    }
    // digits / 10^scale is exact in binary if 5^scale divides the digits; what is left is odd, and must fit a mantissa.
    let fives = i256::from_i128(5).wrapping_pow(scale);
    if digits.wrapping_rem(fives) == i256::ZERO {
        let mantissa = digits.wrapping_div(fives).to_i128();
        if let Some(mantissa) = mantissa.filter(|mantissa| mantissa.unsigned_abs() < 1 << 53) {
            let number = mantissa as f64 / 2f64.powi(scale as i32);
            if let FloatKey::Bytes(bytes) = float_key(number) {
                return DecimalKey::Bytes(bytes.into());
            }
        }
    }
    DecimalKey::Bytes(decimal_bytes(scale.into(), &digits.to_le_bytes()))
}
