//! A test on numbers, as intervals in the numbers that the column stores.
//!
//! Integers, days, moments and decimals are all stored as integers, in some unit: milliseconds, hundredths. The value
//! sought, in its own unit (nanoseconds, thousandths), covers an interval of them, which may be empty: no value in
//! seconds equals half a second. Both ends are included.
//!
//! ```text
//!  day = 1970-01-02   in milliseconds   [86 400 000, 172 799 999]
//!  x < 1.255          in hundredths     [-∞, 125]
//! ```

use std::ops::Bound;

use arrow::datatypes::{DataType, TimeUnit, i256};

use super::compare::{Misfit, Test};
use crate::Value;

/// Stored numbers from one to the other, both included; empty if the first is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: i256,
    pub(super) high: i256,
}

/// The stored numbers that pass a test; `None` in place of a null value, which nothing equals.
pub(super) fn intervals(data_type: &DataType, test: &Test<'_>) -> Result<Vec<Interval>, Misfit> {
    match test {
        Test::OneOf(values) => {
            let known = values.iter().filter(|value| **value != Value::Null);
            known.map(|value| stored(data_type, value)).collect()
        }
        Test::Between(low, high) => Ok(between(data_type, *low, *high)?.into_iter().collect()),
    }
}

fn between(
    data_type: &DataType,
    low: Bound<&Value>,
    high: Bound<&Value>,
) -> Result<Option<Interval>, Misfit> {
    if [low, high]
        .iter()
        .any(|bound| matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null)))
    {
        return Ok(None);
    }
    let one = i256::ONE;
    // An interval that is empty because the value lies between two stored numbers has the upper one as its low end and
    // the lower one as its high end, so that "at least" and "more than" are both correct with these ends.
    let low = match low {
        Bound::Unbounded => i256::MIN,
        Bound::Included(value) => stored(data_type, value)?.low,
        Bound::Excluded(value) => match stored(data_type, value)?.high.checked_add(one) {
            Some(low) => low,
            None => return Ok(None),
        },
    };
    let high = match high {
        Bound::Unbounded => i256::MAX,
        Bound::Included(value) => stored(data_type, value)?.high,
        Bound::Excluded(value) => match stored(data_type, value)?.low.checked_sub(one) {
            Some(high) => high,
            None => return Ok(None),
        },
    };
    Ok(Some(Interval { low, high }))
}

/// The stored numbers that mean this value: one, several, or none, and then the neighbours in the wrong order.
fn stored(data_type: &DataType, value: &Value) -> Result<Interval, Misfit> {
    const DAY: i64 = 86_400_000;
    let wide = i256::from_i128;
    Ok(match (data_type, value) {
        (of, Value::Int(number)) if of.is_integer() => exactly(wide(*number)),
        (DataType::Date32, Value::Date(days)) => exactly(wide((*days).into())),
        (DataType::Date64, Value::Date(days)) => {
            let low = i64::from(*days) * DAY;
            Interval { low: wide(low.into()), high: wide((low + DAY - 1).into()) }
        }
        (DataType::Timestamp(unit, _), Value::Timestamp(nanoseconds)) => {
            divided(wide(*nanoseconds), wide(nanoseconds_per(*unit)))
        }
        (
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale),
            Value::Decimal { digits, scale: of },
        ) => rescaled(wide(*digits), i32::from(*scale) - i32::from(*of)),
        _ => return Err(Misfit::Value(value.clone())),
    })
}

fn exactly(number: i256) -> Interval {
    Interval { low: number, high: number }
}

/// `number` / `unit`, or its neighbours.
fn divided(number: i256, unit: i256) -> Interval {
    let (quotient, remainder) = (number / unit, number % unit);
    match remainder.cmp(&i256::ZERO) {
        std::cmp::Ordering::Equal => exactly(quotient),
        // Division truncates towards zero: the other neighbour is away from it.
        std::cmp::Ordering::Greater => Interval { low: quotient + i256::ONE, high: quotient },
        std::cmp::Ordering::Less => Interval { low: quotient, high: quotient - i256::ONE },
    }
}

/// `digits` with `places` more decimal places.
fn rescaled(digits: i256, places: i32) -> Interval {
    let Some(factor) = i256::from_i128(10).checked_pow(places.unsigned_abs()) else {
        return if places >= 0 { beyond(digits) } else { near_zero(digits) };
    };
    if places < 0 {
        return divided(digits, factor);
    }
    digits.checked_mul(factor).map_or_else(|| beyond(digits), exactly)
}

/// A number larger, or smaller, than any that can be stored.
fn beyond(digits: i256) -> Interval {
    match digits.cmp(&i256::ZERO) {
        std::cmp::Ordering::Equal => exactly(i256::ZERO),
        std::cmp::Ordering::Greater => Interval { low: i256::MAX, high: i256::MAX - i256::ONE },
        std::cmp::Ordering::Less => Interval { low: i256::MIN + i256::ONE, high: i256::MIN },
    }
}

/// A number so small that it lies between 0 and its neighbour.
fn near_zero(digits: i256) -> Interval {
    divided(digits, i256::MAX)
}

fn nanoseconds_per(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
