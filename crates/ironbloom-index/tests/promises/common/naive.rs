//! The definition of right: cell by cell, by what values mean.

use std::cmp::Ordering;
use std::ops::Bound;

use arrow::array::types::*;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, i256};
use ironbloom_index::{Predicate, Value};

/// The rows that satisfy a predicate.
pub(crate) fn matching_rows(predicate: &Predicate, batch: &RecordBatch) -> Vec<u64> {
    (0..batch.num_rows())
        .filter(|&row| truth(predicate, batch, row) == Some(true))
        .map(|row| row as u64)
        .collect()
}

/// `None` is unknown.
fn truth(predicate: &Predicate, batch: &RecordBatch, row: usize) -> Option<bool> {
    let cell = |name: &str| value(batch.column_by_name(name).unwrap(), row);
    match predicate {
        Predicate::Eq(column, wanted) => {
            Some(compare(&cell(column), &fitted(batch, column, wanted))?.is_eq())
        }
        Predicate::In(column, wanted) => {
            let cell = cell(column);
            let wanted = wanted.iter().map(|wanted| fitted(batch, column, wanted));
            let answers: Vec<_> =
                wanted.map(|wanted| Some(compare(&cell, &wanted)?.is_eq())).collect();
            any(&answers)
        }
        Predicate::Like(column, pattern) => match cell(column) {
            Value::Text(text) => Some(pattern.matches(text.as_bytes())),
            Value::Bytes(bytes) => Some(pattern.matches(&bytes)),
            _ => None,
        },
        Predicate::IsNull(column) => Some(cell(column) == Value::Null),
        Predicate::Range { column, low, high } => {
            let cell = cell(column);
            if cell == Value::Null {
                return None;
            }
            let above = match low {
                Bound::Included(low) => compare(&cell, &fitted(batch, column, low))?.is_ge(),
                Bound::Excluded(low) => compare(&cell, &fitted(batch, column, low))?.is_gt(),
                Bound::Unbounded => true,
            };
            let below = match high {
                Bound::Included(high) => compare(&cell, &fitted(batch, column, high))?.is_le(),
                Bound::Excluded(high) => compare(&cell, &fitted(batch, column, high))?.is_lt(),
                Bound::Unbounded => true,
            };
            Some(above && below)
        }
        Predicate::And(parts) => {
            let negated: Vec<_> =
                parts.iter().map(|part| truth(part, batch, row).map(|truth| !truth)).collect();
            any(&negated).map(|truth| !truth)
        }
        Predicate::Or(parts) => {
            any(&parts.iter().map(|part| truth(part, batch, row)).collect::<Vec<_>>())
        }
        Predicate::Not(part) => truth(part, batch, row).map(|truth| !truth),
        other => panic!("{other:?}"),
    }
}

/// A float as the column would hold it: asked in its own width.
fn fitted(batch: &RecordBatch, column: &str, value: &Value) -> Value {
    let Value::Float(number) = *value else { return value.clone() };
    let held = match batch.column_by_name(column).unwrap().data_type() {
        DataType::Float16 => {
            <Float16Type as arrow::array::ArrowPrimitiveType>::Native::from_f64(number).to_f64()
        }
        DataType::Float32 => f64::from(number as f32),
        _ => number,
    };
    Value::Float(if held.is_infinite() { number } else { held })
}

fn any(answers: &[Option<bool>]) -> Option<bool> {
    if answers.contains(&Some(true)) {
        Some(true)
    } else if answers.contains(&None) {
        None
    } else {
        Some(false)
    }
}

/// `None` if one of them is null.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => return None,
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) if a.is_nan() || b.is_nan() => {
            a.is_nan().cmp(&b.is_nan())
        }
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b)?,
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Decimal { digits: a, scale: s }, Value::Decimal { digits: b, scale: t }) => {
            let scale = *s.max(t);
            let wide = |digits: i128, of: i8| {
                let factor = i256::from_i128(10).checked_pow((scale - of) as u32).unwrap();
                i256::from_i128(digits).checked_mul(factor).unwrap()
            };
            wide(*a, *s).cmp(&wide(*b, *t))
        }
        (a, b) => panic!("{a:?} and {b:?} are different kinds"),
    })
}

/// What a cell means.
pub(crate) fn value(column: &ArrayRef, row: usize) -> Value {
    use DataType as D;
    if let D::Dictionary(_, values) = column.data_type() {
        return value(&cast(column, values).unwrap(), row);
    }
    if column.is_null(row) || *column.data_type() == D::Null {
        return Value::Null;
    }
    let nanoseconds = |count: i64, each: i128| Value::Timestamp(i128::from(count) * each);
    let decimal = |digits: i128, scale: i8| {
        let (mut digits, mut scale) = (digits, scale);
        while digits != 0 && digits % 10 == 0 {
            (digits, scale) = (digits / 10, scale - 1);
        }
        Value::Decimal { digits, scale: if digits == 0 { 0 } else { scale } }
    };
    match column.data_type() {
        D::Boolean => Value::Bool(column.as_boolean().value(row)),
        D::Int8 => Value::Int(column.as_primitive::<Int8Type>().value(row).into()),
        D::Int16 => Value::Int(column.as_primitive::<Int16Type>().value(row).into()),
        D::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(row).into()),
        D::Int64 => Value::Int(column.as_primitive::<Int64Type>().value(row).into()),
        D::UInt8 => Value::Int(column.as_primitive::<UInt8Type>().value(row).into()),
        D::UInt16 => Value::Int(column.as_primitive::<UInt16Type>().value(row).into()),
        D::UInt32 => Value::Int(column.as_primitive::<UInt32Type>().value(row).into()),
        D::UInt64 => Value::Int(column.as_primitive::<UInt64Type>().value(row).into()),
        D::Float16 => Value::Float(column.as_primitive::<Float16Type>().value(row).to_f64()),
        D::Float32 => Value::Float(column.as_primitive::<Float32Type>().value(row).into()),
        D::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        D::Utf8 => Value::Text(column.as_string::<i32>().value(row).into()),
        D::LargeUtf8 => Value::Text(column.as_string::<i64>().value(row).into()),
        D::Utf8View => Value::Text(column.as_string_view().value(row).into()),
        D::Binary => Value::Bytes(column.as_binary::<i32>().value(row).into()),
        D::LargeBinary => Value::Bytes(column.as_binary::<i64>().value(row).into()),
        D::BinaryView => Value::Bytes(column.as_binary_view().value(row).into()),
        D::FixedSizeBinary(_) => Value::Bytes(column.as_fixed_size_binary().value(row).into()),
        D::Date32 => Value::Date(column.as_primitive::<Date32Type>().value(row)),
        D::Date64 => {
            let milliseconds = column.as_primitive::<Date64Type>().value(row);
            Value::Date(milliseconds.div_euclid(86_400_000) as i32)
        }
        D::Timestamp(TimeUnit::Second, _) => {
            nanoseconds(column.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000)
        }
        D::Timestamp(TimeUnit::Millisecond, _) => {
            nanoseconds(column.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000)
        }
        D::Timestamp(TimeUnit::Microsecond, _) => {
            nanoseconds(column.as_primitive::<TimestampMicrosecondType>().value(row), 1_000)
        }
        D::Timestamp(TimeUnit::Nanosecond, _) => {
            nanoseconds(column.as_primitive::<TimestampNanosecondType>().value(row), 1)
        }
        D::Decimal32(_, scale) => {
            decimal(column.as_primitive::<Decimal32Type>().value(row).into(), *scale)
        }
        D::Decimal64(_, scale) => {
            decimal(column.as_primitive::<Decimal64Type>().value(row).into(), *scale)
        }
        D::Decimal128(_, scale) => {
            decimal(column.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        D::Decimal256(_, scale) => {
            let digits = column.as_primitive::<Decimal256Type>().value(row);
            decimal(digits.to_i128().expect("tests stay within 128 bits"), *scale)
        }
        other => panic!("{other} has no value"),
    }
}
