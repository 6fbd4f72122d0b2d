//! One schema for all tables of an index: their columns united by name, whatever the order of the tables.
//!
//! ```text
//!  a.parquet   id: int32   name: text                         id: int64   name: text   x: float64
//!  b.parquet   id: int64                 x: int32     ──►     (a has no x: it is null there; b has no name)
//!  c.parquet   id: int32   name: text    x: float64
//! ```
//!
//! Numbers of one kind keep the width of their file when they are compared; where the kinds of a file and of the index differ,
//! its values are converted, if that loses nothing.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::indexed_error::IndexedError;
use crate::location::Location;
use crate::table::{CsvOptions, Peeked, Table, TableError};

/// Tables that stay open between a look at their columns and their turn to be read.
const KEPT: usize = 32;
/// Objects that are looked at at the same time.
const AT_ONCE: usize = 16;

/// The columns of some tables.
pub(crate) struct United {
    pub(crate) schema: SchemaRef,
    /// True if a table does not have just these columns.
    pub(crate) is_mixed: bool,
    opened: Mutex<HashMap<Location, Table>>,
}

impl United {
    /// Looks at the columns of these tables, in addition to those that are known already.
    pub(crate) fn of(
        tables: &[Location],
        csv: &CsvOptions,
        known: Option<SchemaRef>,
    ) -> Result<Self, IndexedError> {
        let mut opened = HashMap::new();
        let mut schema = known;
        let mut is_mixed = false;
        for some in tables.chunks(AT_ONCE) {
            for (path, peeked) in some.iter().zip(peek(some, csv)) {
                let table = match (peeked?, &schema) {
                    (Peeked::Table(table), _) => *table,
                    (Peeked::Names(names), Some(schema)) if are_known(&names, schema) => {
                        is_mixed |= !names.is_empty() && names.len() != schema.fields().len();
                        continue;
                    }
                    _ => Table::open_with(path, csv)?,
                };
                schema = Some(match schema {
                    None => Arc::clone(table.schema()),
                    Some(known) => {
                        let both = united(&known, table.schema());
                        is_mixed |= !is_same(&known, &both) || !is_same(table.schema(), &both);
                        both
                    }
                });
                if opened.len() < KEPT {
                    opened.insert(path.clone(), table);
                }
            }
        }
        let schema = schema.ok_or(IndexedError::NoTables)?;
        Ok(Self { schema, is_mixed, opened: Mutex::new(opened) })
    }

    /// Keeps a table open until its turn comes.
    pub(crate) fn keep(&self, path: &Location, table: Table) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(path.clone(), table.without_view());
    }

    /// A table, opened now if it was not before.
    pub(crate) fn open(&self, path: &Location, csv: &CsvOptions) -> Result<Table, TableError> {
        let kept = self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        kept.map_or_else(|| Table::open_with(path, csv), Ok)
    }
}

/// Looks at some tables, at the same time if they are objects.
fn peek(tables: &[Location], csv: &CsvOptions) -> Vec<Result<Peeked, TableError>> {
    if !tables.iter().any(Location::is_object) {
        return tables.iter().map(|path| Table::peek(path, csv)).collect();
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            tables.iter().map(|path| scope.spawn(move || Table::peek(path, csv))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// True if the schema has columns of all these names, with types.
fn are_known(names: &[String], schema: &Schema) -> bool {
    let is_known = |name: &String| {
        schema.field_with_name(name).is_ok_and(|field| *field.data_type() != DataType::Null)
    };
    names.iter().all(is_known)
}

/// Compares two schemas: the same columns, in any order.
fn is_same(left: &Schema, right: &Schema) -> bool {
    left.fields().len() == right.fields().len()
        && left.fields().iter().all(|field| {
            let other = right.field_with_name(field.name());
            other.is_ok_and(|other| other.data_type() == field.data_type())
        })
}

/// The columns of both, those of the first one first.
pub(crate) fn united(left: &Schema, right: &Schema) -> SchemaRef {
    let both = |field: &FieldRef| {
        let other = right.field_with_name(field.name()).ok();
        let wider = other.and_then(|other| united_type(field.data_type(), other.data_type()));
        let data_type = wider.unwrap_or_else(|| field.data_type().clone());
        Arc::new(Field::new(field.name(), data_type, true))
    };
    let mut fields: Vec<FieldRef> = left.fields().iter().map(both).collect();
    for field in right.fields() {
        if left.field_with_name(field.name()).is_err() {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Arc::new(Schema::new(fields))
}

/// A type that holds the values of both; `None` if there is none.
fn united_type(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as T;
    if left == right {
        return Some(left.clone());
    }
    Some(match (left, right) {
        (T::Null, other) | (other, T::Null) => other.clone(),
        (T::Dictionary(_, values), other) | (other, T::Dictionary(_, values)) => {
            return united_type(values, other);
        }
        (a, b) if a.is_integer() && b.is_integer() => wider_integer(a, b),
        (a, b) if a.is_floating() && b.is_floating() => {
            if [a, b].contains(&&T::Float64) {
                T::Float64
            } else {
                T::Float32
            }
        }
        (a, b) if (a.is_integer() || a.is_floating()) && (b.is_integer() || b.is_floating()) => {
            T::Float64
        }
        (T::Date32, T::Date64) | (T::Date64, T::Date32) => T::Date32,
        (T::Timestamp(a, one), T::Timestamp(b, other)) => {
            let zone = match (one, other) {
                (Some(one), Some(other)) if one != other => Some("UTC".into()),
                (one, other) => one.clone().or(other.clone()),
            };
            T::Timestamp(finer(*a, *b), zone)
        }
        (a, b) if is_text(a) && is_text(b) => {
            if [a, b].contains(&&T::LargeUtf8) {
                T::LargeUtf8
            } else {
                T::Utf8
            }
        }
        (T::Binary, T::LargeBinary) | (T::LargeBinary, T::Binary) => T::LargeBinary,
        (a, b) if is_bytes(a) && is_bytes(b) => T::Binary,
        (a, b) => return wider_decimal(a, b),
    })
}

fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(of: &DataType) -> bool {
    use DataType as T;
    matches!(of, T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_))
}

/// The narrowest that holds both. Nothing holds all of UInt64 and negative integers: then what does not fit is an error.
fn wider_integer(left: &DataType, right: &DataType) -> DataType {
    use DataType as T;
    const SIGNED: [DataType; 4] = [T::Int8, T::Int16, T::Int32, T::Int64];
    const UNSIGNED: [DataType; 4] = [T::UInt8, T::UInt16, T::UInt32, T::UInt64];
    let width = |of: &DataType| {
        let signed = SIGNED.iter().position(|known| known == of);
        (signed.is_some(), signed.or(UNSIGNED.iter().position(|known| known == of)).unwrap_or(3))
    };
    match (width(left), width(right)) {
        ((true, a), (true, b)) => SIGNED[a.max(b)].clone(),
        ((false, a), (false, b)) => UNSIGNED[a.max(b)].clone(),
        ((true, signed), (false, unsigned)) | ((false, unsigned), (true, signed)) => {
            SIGNED[signed.max(unsigned + 1).min(3)].clone()
        }
    }
}

fn finer(left: TimeUnit, right: TimeUnit) -> TimeUnit {
    const UNITS: [TimeUnit; 4] =
        [TimeUnit::Nanosecond, TimeUnit::Microsecond, TimeUnit::Millisecond, TimeUnit::Second];
    *UNITS.iter().find(|unit| [left, right].contains(unit)).unwrap_or(&left)
}

fn wider_decimal(left: &DataType, right: &DataType) -> Option<DataType> {
    use DataType as T;
    let digits = |of: &DataType| match of {
        T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s) => {
            Some((i16::from(*p) - i16::from(*s), i16::from(*s)))
        }
        _ => None,
    };
    let ((before, places), (other, more)) = (digits(left)?, digits(right)?);
    let places = places.max(more);
    let precision = u8::try_from(before.max(other) + places).ok()?;
    (precision <= 38).then_some(T::Decimal128(precision, i8::try_from(places).ok()?))
}

/// A schema as an index keeps it: a stream of Arrow without rows, in hexadecimal digits.
pub(crate) fn write_schema(schema: &Schema) -> String {
    let mut bytes = Vec::new();
    let written = StreamWriter::try_new(&mut bytes, schema).and_then(|mut writer| writer.finish());
    written.expect("writing to memory does not fail");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `None` if it is invalid.
pub(crate) fn read_schema(text: &str) -> Option<SchemaRef> {
    let digits = text.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).ok());
    let bytes: Vec<u8> =
        digits.map(|two| u8::from_str_radix(two?, 16).ok()).collect::<Option<_>>()?;
    Some(StreamReader::try_new(Cursor::new(bytes), None).ok()?.schema())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_united_whatever_comes_first() {
        use DataType as T;
        let cases = [
            (T::Int32, T::Int64, Some(T::Int64)),
            (T::UInt8, T::Int8, Some(T::Int16)),
            (T::UInt32, T::UInt16, Some(T::UInt32)),
            (T::Int32, T::Float32, Some(T::Float64)),
            (T::Float16, T::Float32, Some(T::Float32)),
            (T::Null, T::Utf8, Some(T::Utf8)),
            (T::Utf8View, T::LargeUtf8, Some(T::LargeUtf8)),
            (T::FixedSizeBinary(2), T::LargeBinary, Some(T::Binary)),
            (T::Decimal128(9, 2), T::Decimal128(5, 4), Some(T::Decimal128(11, 4))),
            (T::Decimal128(38, 0), T::Decimal128(5, 4), None),
            (T::Utf8, T::Int64, None),
        ];
        for (left, right, wanted) in cases {
            assert_eq!(united_type(&left, &right), wanted, "{left} and {right}");
            assert_eq!(united_type(&right, &left), wanted, "{right} and {left}");
        }
    }

    #[test]
    fn a_schema_is_read_as_it_was_written() {
        let list = DataType::List(Field::new("item", DataType::Int32, true).into());
        let schema = Schema::new(vec![
            Field::new(
                "å",
                DataType::Timestamp(TimeUnit::Second, Some("Europe/Oslo".into())),
                true,
            ),
            Field::new("list", list, true),
        ]);
        assert_eq!(read_schema(&write_schema(&schema)).as_deref(), Some(&schema));
        assert_eq!(read_schema("00zz"), None);
        assert_eq!(read_schema("é"), None);
    }
}
