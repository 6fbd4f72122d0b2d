//! The fingerprints of Arrow arrays: every type that can be indexed, by the encoding of [`ironbloom_blocks::encode`].

use arrow::array::types::*;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, TimeUnit, i256};
use ironbloom_blocks::ValueKind;
use ironbloom_blocks::encode::{
    NULL, fingerprint, hash_bytes, hash_decimal, hash_float, hash_int, hash_small,
};

use crate::schema::kind_of;

pub(crate) const DAY_IN_MILLISECONDS: i64 = 86_400_000;

/// A number of 256 bits that fits 128 without its trailing zeros is hashed as such. No [`Value`] can express the
/// others, so any hash will do for them.
fn hash_wide_decimal(mut digits: i256, mut scale: i8) -> u64 {
    let ten = i256::from_i128(10);
    while digits.to_i128().is_none() && digits % ten == i256::ZERO && scale > i8::MIN {
        (digits, scale) = (digits / ten, scale - 1);
    }
    match digits.to_i128() {
        Some(narrow) => hash_decimal(narrow, scale),
        None => hash_bytes(&digits.to_le_bytes(), ValueKind::Decimal),
    }
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
            let hashes = [false, true].map(|b| hash_small(b.into(), ValueKind::Bool));
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
        T::UInt64 => primitives::<UInt64Type>(array, out, |n| hash_int(n.into(), ValueKind::Int)),
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
    primitives::<T>(array, out, |number| hash_small(number.into(), ValueKind::Int));
}

fn timestamps<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    out: &mut Vec<u32>,
    nanoseconds: i64,
) {
    primitives::<T>(array, out, |count| {
        hash_int(i128::from(count) * i128::from(nanoseconds), ValueKind::Timestamp)
    });
}

fn hash_date(days: i64) -> u64 {
    hash_small(days, ValueKind::Date)
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a str>>, out: &mut Vec<u32>) {
    let bytes = texts.map(|text| text.unwrap_or_default().as_bytes());
    out.extend(bytes.map(|text| fingerprint(hash_bytes(text, ValueKind::Text))));
}

fn byte_strings<'a>(strings: impl Iterator<Item = Option<&'a [u8]>>, out: &mut Vec<u32>) {
    let bytes = strings.map(Option::unwrap_or_default);
    out.extend(bytes.map(|bytes| fingerprint(hash_bytes(bytes, ValueKind::Bytes))));
}

/// Every entry is hashed once, however often it is used.
fn dictionary(array: &dyn Array, out: &mut Vec<u32>) -> bool {
    let dictionary = array.as_any_dictionary();
    let values: &ArrayRef = dictionary.values();
    if kind_of(values.data_type()).is_none() {
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
