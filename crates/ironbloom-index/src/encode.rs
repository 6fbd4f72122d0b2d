//! The single encoding of a value: its meaning as 64 bits, whatever type stored it.
//!
//! ```text
//!  kind         what is hashed                                           with
//!  boolean      0 or 1                                                   mix64
//!  integer      the number: any width, signed or not                     mix64; XXH3 of 16 bytes beyond 64 bits
//!  float        the bits of the f64 it widens to; one NaN, one zero      mix64
//!  text, bytes  the bytes                                                XXH3
//!  date         days since 1970                                          mix64
//!  timestamp    nanoseconds since 1970                                   as integers
//!  decimal      digits without trailing zeros, then the scale            as integers, mixed with the scale
//! ```
//!
//! Each kind has its own seed, so that the text "7" and the integer 7 differ. The high 32 bits of the hash are the
//! value's **fingerprint**, all that the index keeps of it: with at most 2^30 buckets the other bits would distinguish
//! nothing that reading the table does not. Null has the fingerprint 0, and no value does.
//!
//! The encoding is part of the file format: it never changes within a version.

use arrow::array::types::*;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, TimeUnit, i256};
use ironbloom::hash::mix64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::schema::Kind;
use crate::value::Value;

/// The fingerprint of null.
pub(crate) const NULL: u32 = 0;

const DAY_IN_MILLISECONDS: i64 = 86_400_000;

/// Digits of pi (as used by Blowfish): nothing-up-my-sleeve numbers.
const fn seed(kind: Kind) -> u64 {
    match kind {
        Kind::Bool => 0x243f_6a88_85a3_08d3,
        Kind::Int => 0x1319_8a2e_0370_7344,
        Kind::Float => 0xa409_3822_299f_31d0,
        Kind::Text => 0x082e_fa98_ec4e_6c89,
        Kind::Bytes => 0x4528_21e6_38d0_1377,
        Kind::Date => 0xbe54_66cf_34e9_0c6c,
        Kind::Timestamp => 0xc0ac_29b7_c97c_50dd,
        Kind::Decimal => 0x3f84_d5b5_b547_0917,
        Kind::Null => 0x9216_d5d9_8979_fb1b,
    }
}

#[inline]
fn hash_small(number: i64, seed: u64) -> u64 {
    mix64(number.cast_unsigned() ^ seed)
}

#[inline]
fn hash_int(number: i128, seed: u64) -> u64 {
    match i64::try_from(number) {
        Ok(small) => hash_small(small, seed),
        Err(_) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
    }
}

#[inline]
fn hash_float(number: f64) -> u64 {
    let bits = if number.is_nan() {
        f64::NAN.to_bits()
    } else if number == 0.0 {
        0
    } else {
        number.to_bits()
    };
    mix64(bits ^ seed(Kind::Float))
}

#[inline]
fn hash_bytes(bytes: &[u8], kind: Kind) -> u64 {
    xxh3_64_with_seed(bytes, seed(kind))
}

/// Digits and scale of the same number without trailing zeros; zero is (0, 0).
fn without_zeros(mut digits: i128, mut scale: i8) -> (i128, i8) {
    if digits == 0 {
        return (0, 0);
    }
    // Most decimals fit 64 bits, whose division is many times faster.
    if let Ok(mut small) = i64::try_from(digits) {
        while small % 10 == 0 && scale > i8::MIN {
            (small, scale) = (small / 10, scale - 1);
        }
        return (small.into(), scale);
    }
    while digits % 10 == 0 && scale > i8::MIN {
        (digits, scale) = (digits / 10, scale - 1);
    }
    (digits, scale)
}

fn hash_decimal(digits: i128, scale: i8) -> u64 {
    let (digits, scale) = without_zeros(digits, scale);
    mix64(hash_int(digits, seed(Kind::Decimal)) ^ u64::from(scale.cast_unsigned()))
}

/// A number of 256 bits that fits 128 without its trailing zeros is hashed as such. No [`Value`] can express the
/// others, so any hash will do for them.
fn hash_wide_decimal(mut digits: i256, mut scale: i8) -> u64 {
    let ten = i256::from_i128(10);
    while digits.to_i128().is_none() && digits % ten == i256::ZERO && scale > i8::MIN {
        (digits, scale) = (digits / ten, scale - 1);
    }
    match digits.to_i128() {
        Some(narrow) => hash_decimal(narrow, scale),
        None => xxh3_64_with_seed(&digits.to_le_bytes(), seed(Kind::Decimal)),
    }
}

/// The 64-bit hash of a value; `None` for null.
///
/// Equal for values that mean the same, whatever column they come from.
pub fn hash_value(value: &Value) -> Option<u64> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(truth) => hash_small((*truth).into(), seed(Kind::Bool)),
        Value::Int(number) => hash_int(*number, seed(Kind::Int)),
        Value::Float(number) => hash_float(*number),
        Value::Text(text) => hash_bytes(text.as_bytes(), Kind::Text),
        Value::Bytes(bytes) => hash_bytes(bytes, Kind::Bytes),
        Value::Date(days) => hash_small((*days).into(), seed(Kind::Date)),
        Value::Timestamp(nanoseconds) => hash_int(*nanoseconds, seed(Kind::Timestamp)),
        Value::Decimal { digits, scale } => hash_decimal(*digits, *scale),
    })
}

/// What the index keeps of a hash.
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u32 {
    // Of 2^32 fingerprints, value 1 shares with what would have been null's.
    ((hash >> 32) as u32).max(1)
}

/// Appends the fingerprint of every row, [`NULL`] for nulls. False, and nothing appended, if the type cannot be indexed.
pub(crate) fn append_fingerprints(array: &dyn Array, out: &mut Vec<u32>) -> bool {
    let start = out.len();
    if !append_values(array, out) {
        return false;
    }
    // Where a null is, a value array holds anything.
    if let Some(nulls) = array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        for (print, valid) in out[start..].iter_mut().zip(nulls.iter()) {
            *print = if valid { *print } else { NULL };
        }
    }
    true
}

/// As [`append_fingerprints`], but with arbitrary values in place of nulls.
fn append_values(array: &dyn Array, out: &mut Vec<u32>) -> bool {
    use DataType as T;
    match array.data_type() {
        T::Null => out.resize(out.len() + array.len(), NULL),
        T::Boolean => {
            let hashes = [false, true].map(|b| hash_small(b.into(), seed(Kind::Bool)));
            let values = array.as_boolean().values().iter();
            out.extend(values.map(|b| fingerprint(hashes[usize::from(b)])));
        }
        T::Int8 => integers::<Int8Type>(array, out),
        T::Int16 => integers::<Int16Type>(array, out),
        T::Int32 => integers::<Int32Type>(array, out),
        T::Int64 => integers::<Int64Type>(array, out),
        T::UInt8 => integers::<UInt8Type>(array, out),
        T::UInt16 => integers::<UInt16Type>(array, out),
        T::UInt32 => integers::<UInt32Type>(array, out),
        T::UInt64 => primitives::<UInt64Type>(array, out, |n| hash_int(n.into(), seed(Kind::Int))),
        T::Float16 => primitives::<Float16Type>(array, out, |x| hash_float(x.into())),
        T::Float32 => primitives::<Float32Type>(array, out, |x| hash_float(x.into())),
        T::Float64 => primitives::<Float64Type>(array, out, hash_float),
        T::Utf8 => texts(array.as_string::<i32>().iter(), out),
        T::LargeUtf8 => texts(array.as_string::<i64>().iter(), out),
        T::Utf8View => texts(array.as_string_view().iter(), out),
        T::Binary => byte_strings(array.as_binary::<i32>().iter(), out),
        T::LargeBinary => byte_strings(array.as_binary::<i64>().iter(), out),
        T::BinaryView => byte_strings(array.as_binary_view().iter(), out),
        T::FixedSizeBinary(_) => byte_strings(array.as_fixed_size_binary().iter(), out),
        T::Date32 => primitives::<Date32Type>(array, out, |days| hash_date(days.into())),
        T::Date64 => primitives::<Date64Type>(array, out, |milliseconds| {
            hash_date(milliseconds.div_euclid(DAY_IN_MILLISECONDS))
        }),
        T::Timestamp(unit, _) => match unit {
            TimeUnit::Second => timestamps::<TimestampSecondType>(array, out, 1_000_000_000),
            TimeUnit::Millisecond => timestamps::<TimestampMillisecondType>(array, out, 1_000_000),
            TimeUnit::Microsecond => timestamps::<TimestampMicrosecondType>(array, out, 1_000),
            TimeUnit::Nanosecond => timestamps::<TimestampNanosecondType>(array, out, 1),
        },
        T::Decimal32(_, scale) => {
            primitives::<Decimal32Type>(array, out, |n| hash_decimal(n.into(), *scale));
        }
        T::Decimal64(_, scale) => {
            primitives::<Decimal64Type>(array, out, |n| hash_decimal(n.into(), *scale));
        }
        T::Decimal128(_, scale) => {
            primitives::<Decimal128Type>(array, out, |n| hash_decimal(n, *scale));
        }
        T::Decimal256(_, scale) => {
            primitives::<Decimal256Type>(array, out, |n| hash_wide_decimal(n, *scale));
        }
        T::Dictionary(..) => return dictionary(array, out),
        _ => return false,
    }
    true
}

fn primitives<T: ArrowPrimitiveType>(
    array: &dyn Array,
    out: &mut Vec<u32>,
    hash: impl Fn(T::Native) -> u64,
) {
    let array: &PrimitiveArray<T> = array.as_primitive();
    out.extend(array.values().iter().map(|&value| fingerprint(hash(value))));
}

fn integers<T: ArrowPrimitiveType>(array: &dyn Array, out: &mut Vec<u32>)
where
    T::Native: Into<i64>,
{
    primitives::<T>(array, out, |number| hash_small(number.into(), seed(Kind::Int)));
}

fn timestamps<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    out: &mut Vec<u32>,
    nanoseconds: i64,
) {
    primitives::<T>(array, out, |count| {
        hash_int(i128::from(count) * i128::from(nanoseconds), seed(Kind::Timestamp))
    });
}

fn hash_date(days: i64) -> u64 {
    hash_small(days, seed(Kind::Date))
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a str>>, out: &mut Vec<u32>) {
    let bytes = texts.map(|text| text.unwrap_or_default().as_bytes());
    out.extend(bytes.map(|text| fingerprint(hash_bytes(text, Kind::Text))));
}

fn byte_strings<'a>(strings: impl Iterator<Item = Option<&'a [u8]>>, out: &mut Vec<u32>) {
    let bytes = strings.map(Option::unwrap_or_default);
    out.extend(bytes.map(|bytes| fingerprint(hash_bytes(bytes, Kind::Bytes))));
}

/// Every entry is hashed once, however often it is used.
fn dictionary(array: &dyn Array, out: &mut Vec<u32>) -> bool {
    let dictionary = array.as_any_dictionary();
    let values: &ArrayRef = dictionary.values();
    if Kind::of(values.data_type()).is_none() {
        return false;
    }
    if values.is_empty() {
        out.resize(out.len() + array.len(), NULL);
        return true;
    }
    let mut prints = Vec::with_capacity(values.len());
    if !append_fingerprints(values, &mut prints) {
        return false;
    }
    out.extend(dictionary.normalized_keys().into_iter().map(|key| prints[key]));
    true
}
