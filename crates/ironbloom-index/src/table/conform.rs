//! A column of a file in the type that its table has now.
//!
//! A table of Iceberg or Delta changes its schema without rewriting its files: columns are renamed, added and widened. Its
//! files are read as they are, and what comes out is brought into the current types here. Only conversions that keep every
//! value are made.
//!
//! Not by `arrow`'s `cast`: it knows every pair of types, which adds megabytes to the program.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray as _, BinaryArray, LargeBinaryArray,
    LargeStringArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
    new_null_array,
};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Field, Fields,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

/// What says which column of a file is which column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    /// The name in the file: the column's own, or the one in its metadata ([`NAME_IN_FILES`]).
    Name,
    /// The field id.
    Id,
}

/// The key of the metadata of a column that has another name in files, or several, each on a line.
pub(crate) const NAME_IN_FILES: &str = "name in files";

impl Matching {
    /// The position of a column of the table among those of a file.
    pub(super) fn find(self, wanted: &Field, fields: &Fields) -> Option<usize> {
        match self {
            Self::Name => {
                let names = wanted.metadata().get(NAME_IN_FILES).unwrap_or(wanted.name());
                fields.iter().position(|field| names.split('\n').any(|name| field.name() == name))
            }
            Self::Id => {
                let id = field_id(wanted)?;
                fields.iter().position(|field| field_id(field) == Some(id))
            }
        }
    }
}

pub(super) fn field_id(field: &Field) -> Option<&str> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY).map(String::as_str)
}

/// The same values in the type of this column, if no value is lost by that. Members of structs are found by their names.
pub fn converted(array: &ArrayRef, to: &Field) -> Option<ArrayRef> {
    conform(array, to, Matching::Name).ok()
}

/// The same values in the type of the table; the error says what does not fit.
pub(super) fn conform(array: &ArrayRef, to: &Field, by: Matching) -> Result<ArrayRef, String> {
    use DataType as D;
    let (from, wanted) = (array.data_type(), to.data_type());
    if from == wanted {
        return Ok(Arc::clone(array));
    }
    let fitted = match (from, wanted) {
        (D::Null, to) => Some(new_null_array(to, array.len())),
        (D::Dictionary(..), _) => {
            let dictionary = array.as_any_dictionary();
            let values = take(dictionary.values(), dictionary.keys(), None);
            let values = values.map_err(|error| error.to_string())?;
            return conform(&values, to, by);
        }
        (D::Struct(fields), D::Struct(wanted)) => return structs(array, fields, wanted, by),
        (D::List(_) | D::LargeList(_) | D::FixedSizeList(..), D::List(item)) => {
            return lists(array, item, by);
        }
        (D::Map(..), D::Map(entries, _)) => return maps(array, entries, by),
        (D::Timestamp(..), D::Timestamp(unit, zone)) => timestamps(array, *unit, zone.clone()),
        _ => plain(array, wanted),
    };
    fitted.ok_or_else(|| format!("{from} cannot be read as {wanted}"))
}

/// Types that are not nested.
fn plain(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    use DataType as D;
    let array = array.as_ref();
    Some(match (array.data_type(), to) {
        (from, to) if from.is_integer() && to.is_integer() => return integers(array, to),
        (from, D::Float64) if from.is_integer() => return floats(array),
        (D::Float16, D::Float32) => widened::<Float16Type, Float32Type>(array),
        (D::Float16, D::Float64) => widened::<Float16Type, Float64Type>(array),
        (D::Float32, D::Float64) => widened::<Float32Type, Float64Type>(array),
        (D::Decimal32(p, s), D::Decimal128(..)) => {
            decimals(&widened::<Decimal32Type, Decimal128Type>(array), *p, *s, to)?
        }
        (D::Decimal64(p, s), D::Decimal128(..)) => {
            decimals(&widened::<Decimal64Type, Decimal128Type>(array), *p, *s, to)?
        }
        (D::Decimal128(p, s), D::Decimal128(..)) => decimals(array, *p, *s, to)?,
        (from, D::Decimal128(..)) if from.is_integer() => {
            let digits = match from {
                D::Int8 => 3,
                D::Int16 => 5,
                D::Int32 => 10,
                _ => 20,
            };
            let integers = integers(array, &D::Int64)?;
            decimals(&widened::<Int64Type, Decimal128Type>(&integers), digits, 0, to)?
        }
        // Midnight. Further days than a timestamp reaches are refused.
        (D::Date32, D::Timestamp(unit, None)) => {
            let days = array.as_primitive::<Date32Type>();
            let midnights = days.unary::<_, TimestampSecondType>(|day| i64::from(day) * 86_400);
            timestamps(&(Arc::new(midnights) as ArrayRef), *unit, None)?
        }
        (D::Date64, D::Date32) => {
            let days = array.as_primitive::<Date64Type>();
            Arc::new(days.unary::<_, Date32Type>(|ms| ms.div_euclid(86_400_000) as i32))
        }
        (D::LargeUtf8, D::Utf8) => {
            Arc::new(array.as_string::<i64>().iter().collect::<StringArray>())
        }
        (D::Utf8View, D::Utf8) => Arc::new(array.as_string_view().iter().collect::<StringArray>()),
        (D::Utf8, D::LargeUtf8) => {
            Arc::new(array.as_string::<i32>().iter().collect::<LargeStringArray>())
        }
        (D::Utf8View, D::LargeUtf8) => {
            Arc::new(array.as_string_view().iter().collect::<LargeStringArray>())
        }
        (D::LargeBinary, D::Binary) => {
            Arc::new(array.as_binary::<i64>().iter().collect::<BinaryArray>())
        }
        (D::BinaryView, D::Binary) => {
            Arc::new(array.as_binary_view().iter().collect::<BinaryArray>())
        }
        (D::FixedSizeBinary(_), D::Binary) => {
            Arc::new(array.as_fixed_size_binary().iter().collect::<BinaryArray>())
        }
        (D::Binary, D::LargeBinary) => {
            Arc::new(array.as_binary::<i32>().iter().collect::<LargeBinaryArray>())
        }
        _ => return None,
    })
}

fn widened<F, T>(array: &dyn Array) -> ArrayRef
where
    F: ArrowPrimitiveType,
    T: ArrowPrimitiveType,
    F::Native: Into<T::Native>,
{
    Arc::new(array.as_primitive::<F>().unary::<_, T>(Into::into))
}

/// With more digits, before and after the decimal point.
fn decimals(array: &dyn Array, precision: u8, scale: i8, to: &DataType) -> Option<ArrayRef> {
    let &DataType::Decimal128(wanted, places) = to else { return None };
    let more = u32::try_from(i16::from(places) - i16::from(scale)).ok()?;
    if i16::from(wanted) - i16::from(places) < i16::from(precision) - i16::from(scale) {
        return None;
    }
    let factor = 10i128.checked_pow(more)?;
    let decimals = array.as_primitive::<Decimal128Type>();
    let decimals = decimals
        .try_unary::<_, Decimal128Type, ()>(|digits| digits.checked_mul(factor).ok_or(()))
        .ok()?;
    Some(Arc::new(decimals.with_precision_and_scale(wanted, places).ok()?))
}

/// Integers as floats; `None` if there is none for one of them.
fn floats(array: &dyn Array) -> Option<ArrayRef> {
    let integers = integers(array, &DataType::Int64)?;
    let exact = |integer: i64| {
        let float = integer as f64;
        // The largest integers are rounded to 2^63, which is none of them.
        if float < i64::MAX as f64 && float as i64 == integer { Ok(float) } else { Err(()) }
    };
    let integers = integers.as_primitive::<Int64Type>();
    Some(Arc::new(integers.try_unary::<_, Float64Type, ()>(exact).ok()?))
}

/// `None` if one does not fit.
fn integers(array: &dyn Array, to: &DataType) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::Int8 => integers_of::<Int8Type>(array, to),
        DataType::Int16 => integers_of::<Int16Type>(array, to),
        DataType::Int32 => integers_of::<Int32Type>(array, to),
        DataType::Int64 => integers_of::<Int64Type>(array, to),
        DataType::UInt8 => integers_of::<UInt8Type>(array, to),
        DataType::UInt16 => integers_of::<UInt16Type>(array, to),
        DataType::UInt32 => integers_of::<UInt32Type>(array, to),
        DataType::UInt64 => integers_of::<UInt64Type>(array, to),
        _ => None,
    }
}

fn integers_of<F>(array: &dyn Array, to: &DataType) -> Option<ArrayRef>
where
    F: ArrowPrimitiveType<Native: Into<i128>>,
{
    match to {
        DataType::Int8 => narrowed::<F, Int8Type>(array),
        DataType::Int16 => narrowed::<F, Int16Type>(array),
        DataType::Int32 => narrowed::<F, Int32Type>(array),
        DataType::Int64 => narrowed::<F, Int64Type>(array),
        DataType::UInt8 => narrowed::<F, UInt8Type>(array),
        DataType::UInt16 => narrowed::<F, UInt16Type>(array),
        DataType::UInt32 => narrowed::<F, UInt32Type>(array),
        DataType::UInt64 => narrowed::<F, UInt64Type>(array),
        _ => None,
    }
}

fn narrowed<F, T>(array: &dyn Array) -> Option<ArrayRef>
where
    F: ArrowPrimitiveType<Native: Into<i128>>,
    T: ArrowPrimitiveType<Native: TryFrom<i128>>,
{
    let fitted = array
        .as_primitive::<F>()
        .try_unary::<_, T, ()>(|integer| T::Native::try_from(integer.into()).map_err(|_| ()));
    Some(Arc::new(fitted.ok()?))
}

/// Without loss: a finer unit always, a coarser one if nothing is cut off. Zones only say how a moment is shown.
fn timestamps(array: &ArrayRef, unit: TimeUnit, zone: Option<Arc<str>>) -> Option<ArrayRef> {
    let DataType::Timestamp(from, _) = array.data_type() else { return None };
    let (from, to) = (nanoseconds(*from), nanoseconds(unit));
    let counts: PrimitiveArray<Int64Type> =
        array.to_data().into_builder().data_type(DataType::Int64).build().ok()?.into();
    let counts = counts
        .try_unary::<_, Int64Type, ()>(|count| {
            let moment = i128::from(count) * from;
            if moment % to != 0 {
                return Err(());
            }
            i64::try_from(moment / to).map_err(|_| ())
        })
        .ok()?;
    Some(match unit {
        TimeUnit::Second => {
            Arc::new(counts.reinterpret_cast::<TimestampSecondType>().with_timezone_opt(zone))
        }
        TimeUnit::Millisecond => {
            Arc::new(counts.reinterpret_cast::<TimestampMillisecondType>().with_timezone_opt(zone))
        }
        TimeUnit::Microsecond => {
            Arc::new(counts.reinterpret_cast::<TimestampMicrosecondType>().with_timezone_opt(zone))
        }
        TimeUnit::Nanosecond => {
            Arc::new(counts.reinterpret_cast::<TimestampNanosecondType>().with_timezone_opt(zone))
        }
    })
}

fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Members are matched like columns; those that the file lacks are null.
fn structs(
    array: &ArrayRef,
    fields: &Fields,
    wanted: &Fields,
    by: Matching,
) -> Result<ArrayRef, String> {
    let array = array.as_struct();
    let member = |to: &Arc<Field>| match by.find(to, fields) {
        Some(place) => {
            conform(array.column(place), to, by).map_err(|what| format!("{}: {what}", to.name()))
        }
        None => Ok(new_null_array(to.data_type(), array.len())),
    };
    let members = wanted.iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let nulls = array.nulls().cloned();
    let made = if wanted.is_empty() {
        Ok(StructArray::new_empty_fields(array.len(), nulls))
    } else {
        StructArray::try_new(nullable(wanted), members, nulls)
    };
    Ok(Arc::new(made.map_err(|error| error.to_string())?))
}

/// What the table says about nulls is not enforced in its files.
fn nullable(fields: &Fields) -> Fields {
    fields.iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect()
}

fn lists(array: &ArrayRef, item: &Arc<Field>, by: Matching) -> Result<ArrayRef, String> {
    let (offsets, values) = match array.data_type() {
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            (lists.offsets().clone(), Arc::clone(lists.values()))
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let offsets = lists.offsets().iter().map(|&at| i32::try_from(at));
            let offsets = offsets.collect::<Result<Vec<i32>, _>>();
            let offsets = offsets.map_err(|_| "a list is too long".to_owned())?;
            (OffsetBuffer::new(ScalarBuffer::from(offsets)), Arc::clone(lists.values()))
        }
        _ => {
            let lists = array.as_fixed_size_list();
            let length = lists.value_length() as usize;
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(length, lists.len()));
            (offsets, Arc::clone(lists.values()))
        }
    };
    let values = conform(&values, item, by).map_err(|what| format!("items: {what}"))?;
    let made = ListArray::try_new(Arc::clone(item), offsets, values, array.nulls().cloned());
    Ok(Arc::new(made.map_err(|error| error.to_string())?))
}

/// Keys and values are matched by position: their names differ between writers.
fn maps(array: &ArrayRef, entries: &Arc<Field>, by: Matching) -> Result<ArrayRef, String> {
    let DataType::Struct(wanted) = entries.data_type() else {
        return Err("a map without entries".to_owned());
    };
    let map = array.as_map();
    let parts = [map.keys(), map.values()].into_iter().zip(wanted);
    let parts = parts.map(|(part, to)| conform(part, to, by)).collect::<Result<Vec<_>, _>>()?;
    let entry_arrays =
        StructArray::try_new(wanted.clone(), parts, None).map_err(|error| error.to_string())?;
    let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
    let made = MapArray::try_new(Arc::clone(entries), offsets, entry_arrays, nulls, false);
    Ok(Arc::new(made.map_err(|error| error.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Date32Array, Decimal128Array, Int32Array, TimestampMicrosecondArray};

    fn read_as(array: impl Array + 'static, to: DataType) -> Option<ArrayRef> {
        converted(&(Arc::new(array) as ArrayRef), &Field::new("x", to, true))
    }

    /// As Delta widens types.
    #[test]
    fn integers_become_decimals_and_days_become_midnights() {
        let integers = || Int32Array::from(vec![Some(i32::MIN), None, Some(7), Some(i32::MAX)]);
        let decimals = read_as(integers(), DataType::Decimal128(12, 2)).unwrap();
        let hundredths = |number: i32| i128::from(number) * 100;
        let wanted = [Some(hundredths(i32::MIN)), None, Some(700), Some(hundredths(i32::MAX))];
        let wanted = Decimal128Array::from(wanted.to_vec());
        assert_eq!(
            decimals.as_ref(),
            &wanted.with_precision_and_scale(12, 2).unwrap() as &dyn Array
        );
        assert!(read_as(integers(), DataType::Decimal128(11, 2)).is_none(), "nine digits");

        let days = || Date32Array::from(vec![Some(-1), None, Some(19_000)]);
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        let midnights = read_as(days(), micros.clone()).unwrap();
        let wanted = [Some(-86_400_000_000), None, Some(19_000 * 86_400_000_000)];
        assert_eq!(
            midnights.as_ref(),
            &TimestampMicrosecondArray::from(wanted.to_vec()) as &dyn Array
        );
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        assert!(read_as(Date32Array::from(vec![i32::MAX]), seconds).is_some());
        assert!(read_as(Date32Array::from(vec![i32::MAX]), micros).is_none());
        let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert!(read_as(days(), zoned).is_none());
    }
}
