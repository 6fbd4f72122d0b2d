//! One column compared with values: the loops.

use std::cmp::Ordering;
use std::ops::Bound;

use arrow::array::types::*;
use arrow::array::{
    Array, ArrayAccessor, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::take;
use arrow::datatypes::{ArrowNativeTypeOp, DataType, TimeUnit, i256};

use super::interval::{Interval, intervals};
use crate::float::rounded;
use crate::{Pattern, Value};

/// The test applied to a cell.
pub(super) enum Test<'a> {
    OneOf(&'a [Value]),
    Between(Bound<&'a Value>, Bound<&'a Value>),
}

/// Why a column cannot be tested.
#[derive(Debug)]
pub(super) enum Misfit {
    /// This value is of another kind.
    Value(Value),
    /// Nothing can be compared with the column.
    Column,
}

type Compared = Result<BooleanArray, Misfit>;

/// Tests every cell; null where the cell is null.
pub(super) fn compare(array: &dyn Array, test: &Test<'_>) -> Compared {
    use DataType as D;
    match array.data_type() {
        D::Null => Ok(BooleanArray::new_null(array.len())),
        D::Boolean => booleans(array, test),
        D::Int8 => integers::<Int8Type>(array, test),
        D::Int16 => integers::<Int16Type>(array, test),
        D::Int32 => integers::<Int32Type>(array, test),
        D::Int64 => integers::<Int64Type>(array, test),
        D::UInt8 => integers::<UInt8Type>(array, test),
        D::UInt16 => integers::<UInt16Type>(array, test),
        D::UInt32 => integers::<UInt32Type>(array, test),
        D::UInt64 => integers::<UInt64Type>(array, test),
        D::Date32 => integers::<Date32Type>(array, test),
        D::Date64 => integers::<Date64Type>(array, test),
        D::Timestamp(TimeUnit::Second, _) => integers::<TimestampSecondType>(array, test),
        D::Timestamp(TimeUnit::Millisecond, _) => integers::<TimestampMillisecondType>(array, test),
        D::Timestamp(TimeUnit::Microsecond, _) => integers::<TimestampMicrosecondType>(array, test),
        D::Timestamp(TimeUnit::Nanosecond, _) => integers::<TimestampNanosecondType>(array, test),
        D::Decimal32(..) => integers::<Decimal32Type>(array, test),
        D::Decimal64(..) => integers::<Decimal64Type>(array, test),
        D::Decimal128(..) => integers::<Decimal128Type>(array, test),
        D::Decimal256(..) => wide_decimals(array, test),
        D::Float16 => floats::<Float16Type>(array, test),
        D::Float32 => floats::<Float32Type>(array, test),
        D::Float64 => floats::<Float64Type>(array, test),
        D::Utf8 => texts(array.as_string::<i32>(), test),
        D::LargeUtf8 => texts(array.as_string::<i64>(), test),
        D::Utf8View => texts(array.as_string_view(), test),
        D::Binary => byte_strings(array.as_binary::<i32>(), test),
        D::LargeBinary => byte_strings(array.as_binary::<i64>(), test),
        D::BinaryView => byte_strings(array.as_binary_view(), test),
        D::FixedSizeBinary(_) => byte_strings(array.as_fixed_size_binary(), test),
        D::Dictionary(..) => dictionary(array, |entries| compare(entries, test)),
        _ => Err(Misfit::Column),
    }
}

/// Whether the cell of a row, which is not null, equals a value.
pub(super) type Equality<'a> = Box<dyn Fn(usize, &Value) -> bool + 'a>;

/// Whether a cell equals a value of the right kind: for the types that ids usually have. Testing a
/// single cell by [`compare`] makes arrays for it.
pub(super) fn equality(array: &dyn Array) -> Option<Equality<'_>> {
    fn integers<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array) -> Equality<'_> {
        let array: &PrimitiveArray<T> = array.as_primitive();
        Box::new(
            move |row, value| matches!(value, Value::Int(wanted) if *wanted == array.value(row).into()),
        )
    }
    fn texts<'a>(array: impl ArrayAccessor<Item = &'a str> + 'a) -> Equality<'a> {
        Box::new(
            move |row, value| matches!(value, Value::Text(wanted) if wanted == array.value(row)),
        )
    }
    use DataType as D;
    Some(match array.data_type() {
        D::Int8 => integers::<Int8Type>(array),
        D::Int16 => integers::<Int16Type>(array),
        D::Int32 => integers::<Int32Type>(array),
        D::Int64 => integers::<Int64Type>(array),
        D::UInt8 => integers::<UInt8Type>(array),
        D::UInt16 => integers::<UInt16Type>(array),
        D::UInt32 => integers::<UInt32Type>(array),
        D::UInt64 => integers::<UInt64Type>(array),
        D::Utf8 => texts(array.as_string::<i32>()),
        D::LargeUtf8 => texts(array.as_string::<i64>()),
        D::Utf8View => texts(array.as_string_view()),
        _ => return None,
    })
}

/// Which texts look like this; null where the cell is null.
pub(super) fn like(array: &dyn Array, pattern: &Pattern) -> Compared {
    use DataType as D;
    Ok(match array.data_type() {
        D::Null => BooleanArray::new_null(array.len()),
        D::Utf8 => strings(array.as_string::<i32>(), |text| pattern.matches(text.as_bytes())),
        D::LargeUtf8 => strings(array.as_string::<i64>(), |text| pattern.matches(text.as_bytes())),
        D::Utf8View => strings(array.as_string_view(), |text| pattern.matches(text.as_bytes())),
        D::Binary => strings(array.as_binary::<i32>(), |bytes| pattern.matches(bytes)),
        D::LargeBinary => strings(array.as_binary::<i64>(), |bytes| pattern.matches(bytes)),
        D::BinaryView => strings(array.as_binary_view(), |bytes| pattern.matches(bytes)),
        D::FixedSizeBinary(_) => {
            strings(array.as_fixed_size_binary(), |bytes| pattern.matches(bytes))
        }
        D::Dictionary(..) => return dictionary(array, |entries| like(entries, pattern)),
        _ => return Err(Misfit::Value(Value::Text(pattern.to_string()))),
    })
}

/// The entries are tested, and each row gets the result of its entry.
fn dictionary(array: &dyn Array, test: impl FnOnce(&dyn Array) -> Compared) -> Compared {
    let dictionary = array.as_any_dictionary();
    let answers = test(dictionary.values())?;
    if answers.is_empty() {
        return Ok(BooleanArray::new_null(array.len()));
    }
    let rows = take(&answers, dictionary.keys(), None).expect("keys are entries");
    Ok(rows.as_boolean().clone())
}

fn booleans(array: &dyn Array, test: &Test<'_>) -> Compared {
    let wanted = Wanted::new(test, |value| match value {
        Value::Bool(value) => Some(value),
        _ => None,
    })?;
    let passes = [false, true].map(|value| wanted.accepts(|other| value.cmp(other)));
    let array = array.as_boolean();
    let values = match passes {
        [true, true] => BooleanBuffer::new_set(array.len()),
        [false, false] => BooleanBuffer::new_unset(array.len()),
        [true, false] => !array.values(),
        [false, true] => array.values().clone(),
    };
    Ok(BooleanArray::new(values, array.nulls().cloned()))
}

/// Everything that is stored as an integer of up to 128 bits. The common case, so it has no branches: a processor compares
/// many cells at once.
fn integers<T: ArrowPrimitiveType>(array: &dyn Array, test: &Test<'_>) -> Compared
where
    T::Native: Into<i128> + TryFrom<i128> + Ord,
{
    let intervals = intervals(array.data_type(), test)?;
    let intervals: Vec<_> = intervals.into_iter().filter_map(narrow::<T::Native>).collect();
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    let passed = match intervals.as_slice() {
        [] => BooleanBuffer::new_unset(values.len()),
        &[(low, high)] if low == high => which(values, |value| value == low),
        &[(low, high)] => which(values, |value| (low <= value) & (value <= high)),
        many => {
            let set = IntervalSet::new(many.to_vec());
            BooleanBuffer::collect_bool(values.len(), |row| set.contains(values[row]))
        }
    };
    Ok(BooleanArray::new(passed, array.nulls().cloned()))
}

/// The part of an interval that fits a column of this width, if any.
fn narrow<N: ArrowNativeTypeOp + Into<i128> + TryFrom<i128>>(interval: Interval) -> Option<(N, N)> {
    let (least, greatest) = (N::MIN_TOTAL_ORDER.into(), N::MAX_TOTAL_ORDER.into());
    let low = interval.low.max(i256::from_i128(least)).to_i128()?;
    let high = interval.high.min(i256::from_i128(greatest)).to_i128()?;
    if low > high {
        return None;
    }
    Some((N::try_from(low).ok()?, N::try_from(high).ok()?))
}

/// Many intervals, by binary search.
struct IntervalSet<N>(Vec<(N, N)>);

impl<N: Ord + Copy> IntervalSet<N> {
    fn new(mut intervals: Vec<(N, N)>) -> Self {
        // Values of a list are points, or days: they overlap only if they are equal.
        intervals.sort_unstable();
        Self(intervals)
    }

    fn contains(&self, value: N) -> bool {
        let after = self.0.partition_point(|&(low, _)| low <= value);
        after > 0 && value <= self.0[after - 1].1
    }
}

fn wide_decimals(array: &dyn Array, test: &Test<'_>) -> Compared {
    let intervals = intervals(array.data_type(), test)?;
    let intervals = intervals.into_iter().filter(|interval| interval.low <= interval.high);
    let set = IntervalSet::new(intervals.map(|interval| (interval.low, interval.high)).collect());
    let array: &PrimitiveArray<Decimal256Type> = array.as_primitive();
    let values = array.values();
    let passed = BooleanBuffer::collect_bool(values.len(), |row| set.contains(values[row]));
    Ok(BooleanArray::new(passed, array.nulls().cloned()))
}

fn floats<T: ArrowPrimitiveType>(array: &dyn Array, test: &Test<'_>) -> Compared
where
    T::Native: Into<f64>,
{
    let wanted = Wanted::new(test, |value| match value {
        Value::Float(value) => Some(rounded(*value, &T::DATA_TYPE)),
        _ => None,
    })?;
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    let passed = match wanted {
        Wanted::OneOf(ref values_wanted) if matches!(values_wanted[..], [value] if !value.is_nan()) =>
        {
            let wanted = values_wanted[0];
            // Float equality is the same as ours except for NaN: 0.0 equals -0.0.
            which(values, |value| value.into() == wanted)
        }
        wanted => match ends(&wanted) {
            Some((low, Some(high))) => which(values, |value| {
                let value: f64 = value.into();
                (low <= value) & (value <= high)
            }),
            // NaN is above everything.
            Some((low, None)) => which(values, |value| {
                let value: f64 = value.into();
                (low <= value) | value.is_nan()
            }),
            None => BooleanBuffer::collect_bool(values.len(), |row| {
                let value: f64 = values[row].into();
                wanted.accepts(|other| order(value, *other))
            }),
        },
    };
    Ok(BooleanArray::new(passed, array.nulls().cloned()))
}

/// Which values pass a test without branches. Flags of a byte each come first, many at a time; setting bits one after the other
/// takes longer than comparing.
fn which<T: Copy>(values: &[T], passes: impl Fn(T) -> bool) -> BooleanBuffer {
    let word = |values: &[T]| {
        let mut flags = [0u8; 64];
        for (flag, &value) in flags.iter_mut().zip(values) {
            *flag = u8::from(passes(value));
        }
        packed(&flags)
    };
    let (whole, rest) = values.as_chunks::<64>();
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    words.extend(whole.iter().map(|values| word(values)));
    words.extend((!rest.is_empty()).then(|| word(rest)));
    BooleanBuffer::new(Buffer::from_vec(words), 0, values.len())
}

/// The lowest bits of these bytes, that of the first one lowest.
fn packed(flags: &[u8; 64]) -> u64 {
    /// Moves the lowest bit of byte i to bit 56 + i; no two products meet, so there is no carry.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = flags.as_chunks::<8>();
    let bits = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    eights.iter().rev().fold(0, |word, eight| word << 8 | bits(eight))
}

/// The least and the greatest number between bounds, for a loop without branches; of no upper bound `None`. None at all for the
/// bounds that no number but NaN satisfies.
fn ends(wanted: &Wanted<f64>) -> Option<(f64, Option<f64>)> {
    let Wanted::Between(low, high) = wanted else { return None };
    let low = match *low {
        Bound::Unbounded => f64::NEG_INFINITY,
        Bound::Included(low) => low,
        Bound::Excluded(low) if low == f64::INFINITY => return None,
        Bound::Excluded(low) => low.next_up(),
    };
    let high = match *high {
        Bound::Unbounded => None,
        Bound::Included(high) => Some(high),
        Bound::Excluded(high) if high == f64::NEG_INFINITY => return None,
        Bound::Excluded(high) => Some(high.next_down()),
    };
    (!low.is_nan() && !high.is_some_and(f64::is_nan)).then_some((low, high))
}

/// NaN is equal to itself and above everything, 0.0 is equal to -0.0.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn texts<'a>(array: impl ArrayAccessor<Item = &'a str>, test: &Test<'_>) -> Compared {
    let wanted = Wanted::new(test, |value| match value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    })?;
    Ok(strings(array, |text| wanted.accepts(|other| text.cmp(other))))
}

fn byte_strings<'a>(array: impl ArrayAccessor<Item = &'a [u8]>, test: &Test<'_>) -> Compared {
    let wanted = Wanted::new(test, |value| match value {
        Value::Bytes(bytes) => Some(bytes.as_slice()),
        _ => None,
    })?;
    Ok(strings(array, |bytes| wanted.accepts(|other| bytes.cmp(*other))))
}

fn strings<A: ArrayAccessor>(array: A, passes: impl Fn(A::Item) -> bool) -> BooleanArray {
    let passed = BooleanBuffer::collect_bool(array.len(), |row| passes(array.value(row)));
    BooleanArray::new(passed, array.nulls().cloned())
}

/// A test in the terms of the column.
enum Wanted<V> {
    OneOf(Vec<V>),
    Between(Bound<V>, Bound<V>),
    Nothing,
}

impl<V> Wanted<V> {
    /// `take` gives what is compared out of a value of the right kind.
    fn new<'a>(test: &Test<'a>, take: impl Fn(&'a Value) -> Option<V>) -> Result<Self, Misfit> {
        let required = |value: &'a Value| take(value).ok_or_else(|| Misfit::Value(value.clone()));
        let bound = |bound: Bound<&'a Value>| {
            Ok(match bound {
                Bound::Included(value) => Bound::Included(required(value)?),
                Bound::Excluded(value) => Bound::Excluded(required(value)?),
                Bound::Unbounded => Bound::Unbounded,
            })
        };
        let is_null = |bound: &Bound<&Value>| {
            matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
        };
        match test {
            Test::OneOf(values) => {
                let known = values.iter().filter(|value| **value != Value::Null);
                Ok(Self::OneOf(known.map(required).collect::<Result<_, _>>()?))
            }
            Test::Between(low, high) if is_null(low) || is_null(high) => Ok(Self::Nothing),
            Test::Between(low, high) => Ok(Self::Between(bound(*low)?, bound(*high)?)),
        }
    }

    /// Whether a cell passes, of which `order` says how it compares with a value.
    #[inline]
    fn accepts(&self, order: impl Fn(&V) -> Ordering) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|value| order(value).is_eq()),
            Self::Between(low, high) => {
                let above = match low {
                    Bound::Included(value) => order(value).is_ge(),
                    Bound::Excluded(value) => order(value).is_gt(),
                    Bound::Unbounded => true,
                };
                above
                    && match high {
                        Bound::Included(value) => order(value).is_le(),
                        Bound::Excluded(value) => order(value).is_lt(),
                        Bound::Unbounded => true,
                    }
            }
            Self::Nothing => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_values_that_pass() {
        for length in [0, 1, 7, 8, 63, 64, 65, 127, 128, 1000] {
            let mut random = ironbloom_testing::Random(length);
            let values: Vec<u64> = (0..length).map(|_| random.below(100)).collect();
            for limit in [0, 1, 50, 100] {
                let passed = which(&values, |value| value < limit);
                let wanted: Vec<bool> = values.iter().map(|value| *value < limit).collect();
                assert_eq!(passed.iter().collect::<Vec<_>>(), wanted, "{length} below {limit}");
            }
        }
        for bit in 0..64 {
            let mut flags = [0; 64];
            flags[bit] = 1;
            assert_eq!(packed(&flags), 1 << bit);
            assert_eq!(packed(&flags.map(|flag| 1 - flag)), !(1 << bit));
        }
    }

    /// All bounds and values of floats, compared one by one.
    #[test]
    fn ranges_of_floats_have_the_values_in_the_order_of_floats() {
        let numbers =
            [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 5e-324, 1.5, f64::MAX, f64::INFINITY, f64::NAN];
        let bounds =
            |value: f64| [Bound::Included(value), Bound::Excluded(value), Bound::Unbounded];
        let array: PrimitiveArray<Float64Type> = numbers.to_vec().into();
        for low in numbers.into_iter().flat_map(bounds) {
            for high in numbers.into_iter().flat_map(bounds) {
                let [from, to] = [low, high].map(|bound| bound.map(Value::Float));
                let test = Test::Between(from.as_ref(), to.as_ref());
                let passed = compare(&array, &test).unwrap();
                let wanted = Wanted::Between(low, high);
                for (row, value) in numbers.iter().enumerate() {
                    let passes = wanted.accepts(|other| order(*value, *other));
                    assert_eq!(passed.value(row), passes, "{value} in {low:?} to {high:?}");
                }
            }
        }
    }
}
