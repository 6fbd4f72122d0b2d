//! A cell for people and programs: as text, or as JSON.

use anyhow::{Context as _, Result};
use ironbloom_index::arrow::array::{
    Array, ArrayAccessor, ArrayRef, ArrowPrimitiveType, AsArray as _, RecordBatch,
};
use ironbloom_index::arrow::compute::take;
use ironbloom_index::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use ironbloom_index::arrow::error::ArrowError;
use ironbloom_index::arrow::util::display::{ArrayFormatter, FormatOptions};
use ironbloom_index::{show_date, show_moment};
use serde_json::{Map, Value};

/// The cells of a batch as text, row by row; `None` is null.
pub(super) fn texts(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>> {
    by_rows(batch, |column| {
        let cells = Cells::new(column)?;
        let cell = |row| {
            let mut text = String::new();
            Ok(cells.append(row, &mut text)?.then_some(text))
        };
        (0..column.len()).map(cell).collect()
    })
}

/// The cells of a column as text.
pub(super) struct Cells<'a> {
    column: &'a dyn Array,
    form: Form<'a>,
}

/// Appends the cell of a row to a text.
type Append<'a> = Box<dyn Fn(usize, &mut String) + 'a>;

/// How cells become text.
enum Form<'a> {
    /// Integers and text, without the detour over a formatter: of millions of cells, it would take most of the time.
    Direct(Append<'a>),
    /// Of a type that `arrow` writes as we want it.
    Plain(ArrayFormatter<'a>),
    /// Nested values, as JSON.
    Nested,
}

impl<'a> Form<'a> {
    fn of(column: &'a dyn Array) -> Result<Self> {
        fn integers<T: ArrowPrimitiveType<Native: itoa::Integer>>(column: &dyn Array) -> Form<'_> {
            let numbers = column.as_primitive::<T>().values();
            Form::Direct(Box::new(move |row, to| {
                to.push_str(itoa::Buffer::new().format(numbers[row]));
            }))
        }
        fn words<'a>(texts: impl ArrayAccessor<Item = &'a str> + 'a) -> Form<'a> {
            Form::Direct(Box::new(move |row, to| to.push_str(texts.value(row))))
        }
        use DataType as D;
        Ok(match column.data_type() {
            D::Int8 => integers::<Int8Type>(column),
            D::Int16 => integers::<Int16Type>(column),
            D::Int32 => integers::<Int32Type>(column),
            D::Int64 => integers::<Int64Type>(column),
            D::UInt8 => integers::<UInt8Type>(column),
            D::UInt16 => integers::<UInt16Type>(column),
            D::UInt32 => integers::<UInt32Type>(column),
            D::UInt64 => integers::<UInt64Type>(column),
            D::Utf8 => words(column.as_string::<i32>()),
            D::LargeUtf8 => words(column.as_string::<i64>()),
            D::Utf8View => words(column.as_string_view()),
            other if is_plain(other) => {
                Self::Plain(ArrayFormatter::try_new(column, &FormatOptions::default())?)
            }
            _ => Self::Nested,
        })
    }
}

impl<'a> Cells<'a> {
    pub(super) fn new(column: &'a dyn Array) -> Result<Self> {
        Ok(Self { column, form: Form::of(column)? })
    }

    /// Says that no cell has a comma, a quote or a line break, and that none is empty.
    pub(super) fn are_numbers(&self) -> bool {
        self.column.data_type().is_numeric()
    }

    /// Appends a cell to a text; false if it is null.
    pub(super) fn append(&self, row: usize, to: &mut String) -> Result<bool> {
        if is_null(self.column, row) {
            return Ok(false);
        }
        match &self.form {
            Form::Direct(write) => write(row, to),
            Form::Plain(formatter) => {
                let start = to.len();
                if let Err(error) = formatter.value(row).write(to) {
                    to.truncate(start);
                    to.push_str(&shown(self.column, row, Err(error))?);
                }
            }
            Form::Nested => match json(self.column, row)? {
                Value::String(text) => to.push_str(&text),
                nested => to.push_str(&nested.to_string()),
            },
        }
        Ok(true)
    }
}

/// The cells of a batch as JSON, row by row.
pub(super) fn values(batch: &RecordBatch) -> Result<Vec<Vec<Value>>> {
    by_rows(batch, |column| (0..column.len()).map(|row| json(column, row)).collect())
}

/// Applies `cells` to each column, row by row; an error names the column.
fn by_rows<T>(
    batch: &RecordBatch,
    cells: impl Fn(&dyn Array) -> Result<Vec<T>>,
) -> Result<Vec<Vec<T>>> {
    let mut rows: Vec<Vec<T>> = (0..batch.num_rows()).map(|_| Vec::new()).collect();
    for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
        let cells = cells(column.as_ref()).with_context(|| format!("column {}", field.name()))?;
        rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }
    Ok(rows)
}

/// Returns true if `arrow` writes this type as we want it: not nested, and without a time zone.
fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_plain(values),
        DataType::Timestamp(_, zone) => zone.is_none(),
        other => !other.is_nested(),
    }
}

fn is_null(column: &dyn Array, row: usize) -> bool {
    column.is_null(row) || matches!(column.data_type(), DataType::Null)
}

fn plain(column: &dyn Array, row: usize) -> Result<String> {
    let options = FormatOptions::default();
    let text = ArrayFormatter::try_new(column, &options)?.value(row).try_to_string();
    shown(column, row, text)
}

/// The text that `arrow` makes of a cell. It has none for days beyond the years that it knows, which are indexed like others.
fn shown(column: &dyn Array, row: usize, text: Result<String, ArrowError>) -> Result<String> {
    match (text, column.data_type()) {
        (Ok(text), _) => Ok(text),
        (Err(_), DataType::Date32) => {
            Ok(show_date(column.as_primitive::<Date32Type>().value(row).into()))
        }
        (Err(_), DataType::Date64) => {
            let milliseconds = column.as_primitive::<Date64Type>().value(row);
            Ok(show_date(milliseconds.div_euclid(86_400_000)))
        }
        (Err(_), DataType::Timestamp(unit, None)) => {
            Ok(moment(column, row, *unit, "UTC").trim_end_matches('Z').to_owned())
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Numbers, booleans and null stay what they are, lists become arrays, structs and maps objects. Everything else is text, and
/// so is a float that JSON cannot represent.
fn json(column: &dyn Array, row: usize) -> Result<Value> {
    macro_rules! number {
        ($type:ty) => {
            column.as_primitive::<$type>().value(row).into()
        };
    }
    if is_null(column, row) {
        return Ok(Value::Null);
    }
    let value: Value = match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).into(),
        DataType::Utf8View => column.as_string_view().value(row).into(),
        DataType::Timestamp(unit, Some(zone)) => moment(column, row, *unit, zone).into(),
        DataType::List(_) => list(&column.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&column.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(&column.as_fixed_size_list().value(row))?,
        DataType::Struct(fields) => {
            let members = column.as_struct().columns().iter().zip(fields);
            let members =
                members.map(|(member, field)| Ok((field.name().clone(), json(member, row)?)));
            Value::Object(members.collect::<Result<_>>()?)
        }
        DataType::Map(..) => map(column, row)?,
        DataType::Dictionary(..) => {
            let dictionary = column.as_any_dictionary();
            let key = dictionary.keys().slice(row, 1);
            json(take(dictionary.values(), &key, None)?.as_ref(), 0)?
        }
        _ => Value::Null,
    };
    if value.is_null() { Ok(plain(column, row)?.into()) } else { Ok(value) }
}

fn list(items: &ArrayRef) -> Result<Value> {
    let items = (0..items.len()).map(|item| json(items.as_ref(), item));
    Ok(Value::Array(items.collect::<Result<_>>()?))
}

/// An object: keys in JSON are always text.
fn map(column: &dyn Array, row: usize) -> Result<Value> {
    let entries = column.as_map().value(row);
    let (keys, values) = (entries.column(0), entries.column(1));
    let mut object = Map::new();
    for entry in 0..entries.len() {
        let mut key = String::new();
        Cells { column: keys.as_ref(), form: Form::Nested }.append(entry, &mut key)?;
        object.insert(key, json(values.as_ref(), entry)?);
    }
    Ok(Value::Object(object))
}

/// As clocks of its zone show it.
fn moment(column: &dyn Array, row: usize, unit: TimeUnit, zone: &str) -> String {
    let (count, nanoseconds) = match unit {
        TimeUnit::Second => {
            (column.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000)
        }
        TimeUnit::Millisecond => {
            (column.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000)
        }
        TimeUnit::Microsecond => {
            (column.as_primitive::<TimestampMicrosecondType>().value(row), 1_000)
        }
        TimeUnit::Nanosecond => (column.as_primitive::<TimestampNanosecondType>().value(row), 1),
    };
    show_moment(i128::from(count) * nanoseconds, zone)
}
