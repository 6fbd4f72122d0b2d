//! A value from text, as it stands in a path or in the log of a table: an array of one row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Decimal128Array, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, StringArray, new_null_array,
};
use arrow::compute::kernels::cast_utils::{Parser, parse_decimal};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

/// The value that a text is in a column of this type; `None` if it is not one.
pub(crate) fn constant(text: Option<&str>, data_type: &DataType) -> Option<ArrayRef> {
    use DataType as D;
    let Some(text) = text else { return Some(new_null_array(data_type, 1)) };
    Some(match data_type {
        D::Boolean => {
            Arc::new(BooleanArray::from(vec![text.to_ascii_lowercase().parse::<bool>().ok()?]))
        }
        D::Int8 => number::<Int8Type>(text)?,
        D::Int16 => number::<Int16Type>(text)?,
        D::Int32 => number::<Int32Type>(text)?,
        D::Int64 => number::<Int64Type>(text)?,
        D::Float32 => number::<Float32Type>(text)?,
        D::Float64 => number::<Float64Type>(text)?,
        D::Date32 => number::<Date32Type>(text)?,
        D::Utf8 => Arc::new(StringArray::from(vec![text])),
        D::LargeUtf8 => Arc::new(LargeStringArray::from(vec![text])),
        D::Binary => Arc::new(BinaryArray::from(vec![text.as_bytes()])),
        D::LargeBinary => Arc::new(LargeBinaryArray::from(vec![text.as_bytes()])),
        D::Decimal128(precision, scale) => {
            let digits = parse_decimal::<Decimal128Type>(text, *precision, *scale).ok()?;
            let array = Decimal128Array::from(vec![digits]);
            Arc::new(array.with_precision_and_scale(*precision, *scale).ok()?)
        }
        D::Timestamp(unit, zone) => {
            let zone = zone.clone();
            match unit {
                TimeUnit::Second => {
                    Arc::new(value::<TimestampSecondType>(text)?.with_timezone_opt(zone))
                }
                TimeUnit::Millisecond => {
                    Arc::new(value::<TimestampMillisecondType>(text)?.with_timezone_opt(zone))
                }
                TimeUnit::Microsecond => {
                    Arc::new(value::<TimestampMicrosecondType>(text)?.with_timezone_opt(zone))
                }
                TimeUnit::Nanosecond => {
                    Arc::new(value::<TimestampNanosecondType>(text)?.with_timezone_opt(zone))
                }
            }
        }
        _ => return None,
    })
}

fn number<T: ArrowPrimitiveType + Parser>(text: &str) -> Option<ArrayRef> {
    Some(Arc::new(value::<T>(text)?))
}

fn value<T: ArrowPrimitiveType + Parser>(text: &str) -> Option<PrimitiveArray<T>> {
    Some(PrimitiveArray::from_iter_values([T::parse(text)?]))
}
