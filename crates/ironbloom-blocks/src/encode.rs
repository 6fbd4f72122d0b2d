//! The one encoding of a value: its meaning as 64 bits, whatever type stores it.
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
//! value's **fingerprint**, the only part that the index stores: with at most 2^30 buckets the other bits would
//! distinguish nothing that reading the table does not. Null has the fingerprint 0, and no value does.
//!
//! The encoding is part of the file format: it never changes within a version.

use ironbloom::hash::mix64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::value::{Value, ValueKind};

/// The fingerprint of null.
pub const NULL: u32 = 0;

/// Digits of pi (as used by Blowfish): nothing-up-my-sleeve numbers.
const fn seed(kind: ValueKind) -> u64 {
    match kind {
        ValueKind::Bool => 0x243f_6a88_85a3_08d3,
        ValueKind::Int => 0x1319_8a2e_0370_7344,
        ValueKind::Float => 0xa409_3822_299f_31d0,
        ValueKind::Text => 0x082e_fa98_ec4e_6c89,
        ValueKind::Bytes => 0x4528_21e6_38d0_1377,
        ValueKind::Date => 0xbe54_66cf_34e9_0c6c,
        ValueKind::Timestamp => 0xc0ac_29b7_c97c_50dd,
        ValueKind::Decimal => 0x3f84_d5b5_b547_0917,
        ValueKind::Null => 0x9216_d5d9_8979_fb1b,
    }
}

/// Hashes a 64-bit number: a boolean, an integer, a day or a moment.
#[inline]
pub fn hash_small(number: i64, kind: ValueKind) -> u64 {
    mix64(number.cast_unsigned() ^ seed(kind))
}

/// Hashes any integer of these kinds. For 64-bit numbers it agrees with [`hash_small`].
#[inline]
pub fn hash_int(number: i128, kind: ValueKind) -> u64 {
    match i64::try_from(number) {
        Ok(small) => hash_small(small, kind),
        Err(_) => hash_bytes(&number.to_le_bytes(), kind),
    }
}

/// Hashes a float.
#[inline]
pub fn hash_float(number: f64) -> u64 {
    let bits = if number.is_nan() {
        f64::NAN.to_bits()
    } else if number == 0.0 {
        0
    } else {
        number.to_bits()
    };
    mix64(bits ^ seed(ValueKind::Float))
}

/// Hashes text or bytes.
#[inline]
pub fn hash_bytes(bytes: &[u8], kind: ValueKind) -> u64 {
    xxh3_64_with_seed(bytes, seed(kind))
}

/// Returns digits and scale of the same number without trailing zeros; zero is (0, 0).
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

/// Hashes `digits` / 10^`scale`.
#[inline]
pub fn hash_decimal(digits: i128, scale: i8) -> u64 {
    let (digits, scale) = without_zeros(digits, scale);
    mix64(hash_int(digits, ValueKind::Decimal) ^ u64::from(scale.cast_unsigned()))
}

/// Returns the 64-bit hash of a value; `None` for null.
///
/// Values with the same meaning have equal hashes, whatever column they come from.
pub fn hash_value(value: &Value) -> Option<u64> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(truth) => hash_small((*truth).into(), ValueKind::Bool),
        Value::Int(number) => hash_int(*number, ValueKind::Int),
        Value::Float(number) => hash_float(*number),
        Value::Text(text) => hash_bytes(text.as_bytes(), ValueKind::Text),
        Value::Bytes(bytes) => hash_bytes(bytes, ValueKind::Bytes),
        Value::Date(days) => hash_small((*days).into(), ValueKind::Date),
        Value::Timestamp(nanoseconds) => hash_int(*nanoseconds, ValueKind::Timestamp),
        Value::Decimal { digits, scale } => hash_decimal(*digits, *scale),
    })
}

/// Returns the part of a hash that the index stores.
#[inline]
pub fn fingerprint(hash: u64) -> u32 {
    // Among 2^32 fingerprints, 1 also stands for hashes that would collide with null's.
    ((hash >> 32) as u32).max(1)
}
