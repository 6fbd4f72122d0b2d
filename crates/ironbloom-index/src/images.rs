//! The images of Arrow arrays: the smallest and the largest of some rows, for every type that can be indexed.
//!
//! The loops compare numbers as they are stored, and make an image of the two that are left.

use std::ops::Range;

use arrow::array::types::*;
use arrow::array::{Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{ArrowNativeTypeOp, DataType, TimeUnit, i256};
use ironbloom_blocks::bounds::{BlockSpans, Image, Span};

use crate::fingerprints::DAY_IN_MILLISECONDS;

/// Adds the rows of an array, of a type that can be indexed.
pub(crate) fn push_images(array: &dyn Array, spans: &mut BlockSpans) {
    use DataType as T;
    let int = |number: i64| Image::of_int(number.into());
    match array.data_type() {
        T::Null => spans.push(array.len(), |_| Span::NONE),
        T::Boolean => {
            let values = array.as_boolean();
            let image = |row| Image::of_int(values.value(row).into());
            push_each(array.len(), array.nulls(), image, spans);
        }
        T::Int8 => push_ordered::<Int8Type>(array, spans, |n| int(n.into())),
        T::Int16 => push_ordered::<Int16Type>(array, spans, |n| int(n.into())),
        T::Int32 => push_ordered::<Int32Type>(array, spans, |n| int(n.into())),
        T::Int64 => push_ordered::<Int64Type>(array, spans, int),
        T::UInt8 => push_ordered::<UInt8Type>(array, spans, |n| int(n.into())),
        T::UInt16 => push_ordered::<UInt16Type>(array, spans, |n| int(n.into())),
        T::UInt32 => push_ordered::<UInt32Type>(array, spans, |n| int(n.into())),
        T::UInt64 => push_ordered::<UInt64Type>(array, spans, |n| Image::of_int(n.into())),
        T::Float16 => push_floats::<Float16Type>(array, spans),
        T::Float32 => push_floats::<Float32Type>(array, spans),
        T::Float64 => push_floats::<Float64Type>(array, spans),
        T::Utf8 => push_bytes(array.as_string::<i32>(), spans),
        T::LargeUtf8 => push_bytes(array.as_string::<i64>(), spans),
        T::Utf8View => push_bytes(array.as_string_view(), spans),
        T::Binary => push_bytes(array.as_binary::<i32>(), spans),
        T::LargeBinary => push_bytes(array.as_binary::<i64>(), spans),
        T::BinaryView => push_bytes(array.as_binary_view(), spans),
        T::FixedSizeBinary(_) => push_bytes(array.as_fixed_size_binary(), spans),
        T::Date32 => push_ordered::<Date32Type>(array, spans, |days| int(days.into())),
        T::Date64 => push_ordered::<Date64Type>(array, spans, |milliseconds| {
            int(milliseconds.div_euclid(DAY_IN_MILLISECONDS))
        }),
        T::Timestamp(unit, _) => match unit {
            TimeUnit::Second => push_moments::<TimestampSecondType>(array, spans, 1_000_000_000),
            TimeUnit::Millisecond => {
                push_moments::<TimestampMillisecondType>(array, spans, 1_000_000);
            }
            TimeUnit::Microsecond => push_moments::<TimestampMicrosecondType>(array, spans, 1_000),
            TimeUnit::Nanosecond => push_moments::<TimestampNanosecondType>(array, spans, 1),
        },
        T::Decimal32(_, scale) => {
            push_ordered::<Decimal32Type>(array, spans, |n| Image::of_decimal(n.into(), *scale));
        }
        T::Decimal64(_, scale) => {
            push_ordered::<Decimal64Type>(array, spans, |n| Image::of_decimal(n.into(), *scale));
        }
        T::Decimal128(_, scale) => {
            push_ordered::<Decimal128Type>(array, spans, |n| Image::of_decimal(n, *scale));
        }
        T::Decimal256(_, scale) => {
            push_ordered::<Decimal256Type>(array, spans, |n| wide_decimal(n, *scale));
        }
        T::Dictionary(..) => push_dictionary(array, spans),
        // Nothing is known about what has no order here: it may be anything.
        _ => spans.push(array.len(), |_| Span::ALL),
    }
}

/// A number of 256 bits is cut to the decimal places that images keep, and then fits 128 or is beyond all others.
fn wide_decimal(digits: i256, scale: i8) -> Image {
    const PLACES: i8 = 18;
    if let Some(narrow) = digits.to_i128() {
        return Image::of_decimal(narrow, scale);
    }
    let places = u32::try_from(scale.saturating_sub(PLACES)).unwrap_or(0);
    let factor = i256::from_i128(10).checked_pow(places).unwrap_or(i256::MAX);
    let (quotient, rest) = (digits / factor, digits % factor);
    // Division truncates towards zero.
    let floor = if rest.is_negative() { quotient - i256::ONE } else { quotient };
    let end = if digits.is_negative() { i128::MIN } else { i128::MAX };
    Image::of_int(floor.to_i128().unwrap_or(end))
}

/// Rows with an image for each that is not null.
fn push_each(
    rows: usize,
    nulls: Option<&NullBuffer>,
    image: impl Fn(usize) -> Image,
    spans: &mut BlockSpans,
) {
    spans.push(rows, |range| {
        let valid = range.filter(|&row| nulls.is_none_or(|nulls| nulls.is_valid(row)));
        valid.fold(Span::NONE, |all, row| all.with(Span::of(image(row))))
    });
}

/// Numbers whose order is that of their images.
fn push_ordered<T: ArrowPrimitiveType>(
    array: &dyn Array,
    spans: &mut BlockSpans,
    image: impl Fn(T::Native) -> Image,
) where
    T::Native: Ord,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let ends = (T::Native::MAX_TOTAL_ORDER, T::Native::MIN_TOTAL_ORDER);
    let with =
        |(low, high): (T::Native, T::Native), value: T::Native| (value.min(low), value.max(high));
    spans.push(array.len(), |range| {
        let (low, high) = match nulls {
            // Without a branch, so that a processor compares many at once.
            None => values[range].iter().copied().fold(ends, with),
            Some(nulls) => {
                let valid = range.filter(|&row| nulls.is_valid(row));
                valid.map(|row| values[row]).fold(ends, with)
            }
        };
        if low > high { Span::NONE } else { Span { low: image(low), high: image(high) } }
    });
}

fn push_moments<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    spans: &mut BlockSpans,
    nanoseconds: i64,
) {
    let image = |count: i64| Image::of_int(i128::from(count) * i128::from(nanoseconds));
    push_ordered::<T>(array, spans, image);
}

fn push_floats<T: ArrowPrimitiveType>(array: &dyn Array, spans: &mut BlockSpans)
where
    T::Native: Into<f64>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    let image = |row: usize| Image::of_float(values[row].into());
    push_each(array.len(), array.nulls(), image, spans);
}

fn push_bytes<A: ArrayAccessor>(array: A, spans: &mut BlockSpans)
where
    A::Item: AsRef<[u8]>,
{
    let image = |row: usize| Image::of_bytes(array.value(row).as_ref());
    push_each(array.len(), array.nulls(), image, spans);
}

/// Every entry gets its image once, however often it is used.
fn push_dictionary(array: &dyn Array, spans: &mut BlockSpans) {
    let dictionary = array.as_any_dictionary();
    let values: &ArrayRef = dictionary.values();
    // Entries are blocks of one row.
    let mut entries = BlockSpans::new(1);
    push_images(values, &mut entries);
    if values.is_empty() {
        return spans.push(array.len(), |_| Span::NONE);
    }
    let keys = dictionary.normalized_keys();
    let nulls = dictionary.keys().nulls();
    let entry = |row: usize| entries.spans()[keys[row]];
    let is_valid = |row: &usize| nulls.is_none_or(|nulls| nulls.is_valid(*row));
    spans.push(array.len(), |range: Range<usize>| {
        range.filter(is_valid).fold(Span::NONE, |all, row| all.with(entry(row)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_256_bits_are_in_the_order_of_the_others() {
        let ten = |power: u32| i256::from_i128(10).wrapping_pow(power);
        let one = i256::ONE;
        // Each is digits and scale, ascending.
        let ascending = [
            (-ten(75), 0),
            (-ten(60), 38),
            (-(ten(60) + one), 55),
            (-ten(60), 55),
            (-(ten(50) + one), 60),
            (-ten(50), 60),
            (i256::from_i128(-1), 18),
            (i256::ZERO, 3),
            (ten(45), 70),
            (ten(50), 60),
            (ten(50) + one, 60),
            (ten(60), 55),
            (ten(60), 38),
            (ten(75), 0),
            (ten(75), -3),
        ];
        let images: Vec<Image> =
            ascending.iter().map(|&(n, scale)| wide_decimal(n, scale)).collect();
        assert!(images.is_sorted(), "{images:?}");
        assert_eq!(wide_decimal(ten(60), 55), Image::of_decimal(100_000, 0));
        assert!(wide_decimal(-(ten(50) + one), 60) < wide_decimal(i256::ZERO, 0));
    }
}
