//! The columns of an index, by meaning.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::error::Error;
use crate::table::Table;
use crate::value::Value;

/// The kind of the values of a column. One kind has one encoding, whatever the width of its numbers and the storage of
/// its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// [`Value::Bool`]
    Bool = 1,
    /// [`Value::Int`]
    Int = 2,
    /// [`Value::Float`]
    Float = 3,
    /// [`Value::Text`]
    Text = 4,
    /// [`Value::Bytes`]
    Bytes = 5,
    /// [`Value::Date`]
    Date = 6,
    /// [`Value::Timestamp`]
    Timestamp = 7,
    /// [`Value::Decimal`]
    Decimal = 8,
    /// Only [`Value::Null`]: a column without a type.
    Null = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Bool,
        Self::Int,
        Self::Float,
        Self::Text,
        Self::Bytes,
        Self::Date,
        Self::Timestamp,
        Self::Decimal,
        Self::Null,
    ];

    /// The kind of an Arrow type; `None` if it cannot be indexed (lists, structs, times of day, …).
    pub fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Boolean => Self::Bool,
            integer if integer.is_integer() => Self::Int,
            float if float.is_floating() => Self::Float,
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::Text,
            T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => Self::Bytes,
            T::Date32 | T::Date64 => Self::Date,
            T::Timestamp(..) => Self::Timestamp,
            T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => {
                Self::Decimal
            }
            T::Null => Self::Null,
            T::Dictionary(_, values) => return Self::of(values),
            _ => return None,
        })
    }

    /// The kind of a value; `None` for null, which fits every column.
    pub fn of_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Bool,
            Value::Int(_) => Self::Int,
            Value::Float(_) => Self::Float,
            Value::Text(_) => Self::Text,
            Value::Bytes(_) => Self::Bytes,
            Value::Date(_) => Self::Date,
            Value::Timestamp(_) => Self::Timestamp,
            Value::Decimal { .. } => Self::Decimal,
        })
    }

    /// A type that holds values of this kind, for columns that have none of their own.
    fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Self::Decimal => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            Self::Null => DataType::Null,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "booleans",
            Self::Int => "integers",
            Self::Float => "floats",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Date => "dates",
            Self::Timestamp => "timestamps",
            Self::Decimal => "decimals",
            Self::Null => "nulls",
        })
    }
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as in the table.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
}

/// Columns without a kind, because there were only nulls so far, take the one of the values that come now.
pub(crate) fn adopt_kinds(columns: &mut [Column], kinds: impl Iterator<Item = Option<Kind>>) {
    for (column, kind) in columns.iter_mut().zip(kinds) {
        if let (Kind::Null, Some(kind)) = (column.kind, kind) {
            column.kind = kind;
        }
    }
}

/// The schema of a table, with the types of the index or of the other tables for columns in which it has only nulls.
/// These are opened only if there is such a column.
pub(crate) fn with_types(
    schema: &SchemaRef,
    columns: &[Column],
    others: impl Iterator<Item = Arc<Table>> + Clone,
) -> SchemaRef {
    let is_null = |field: &Field| *field.data_type() == DataType::Null;
    if !schema.fields().iter().any(|field| is_null(field)) {
        return Arc::clone(schema);
    }
    let typed = |field: &Arc<Field>| {
        if !is_null(field) {
            return Arc::clone(field);
        }
        let mut others = others.clone().filter_map(|table| {
            let other = table.schema().field_with_name(field.name()).ok()?;
            (!is_null(other)).then(|| other.data_type().clone())
        });
        let other = others.next();
        let indexed = columns.iter().find(|column| column.name == *field.name());
        let data_type = other.or(indexed.map(|column| column.kind.data_type()));
        Arc::new(Field::new(field.name(), data_type.unwrap_or(DataType::Null), true))
    };
    Arc::new(Schema::new(schema.fields().iter().map(typed).collect::<Vec<_>>()))
}

/// The columns of these names in a table, in this order. Each must exist exactly once and have a type that can be
/// indexed.
pub fn columns_named(schema: &Schema, names: &[impl AsRef<str>]) -> Result<Vec<Column>, Error> {
    let known = || schema.fields().iter().map(|field| field.name().clone()).collect();
    let column = |name: &str| {
        let mut fields = schema.fields().iter().filter(|field| field.name() == name);
        let field = fields
            .next()
            .ok_or_else(|| Error::NoColumn { column: name.to_owned(), known: known() })?;
        if fields.next().is_some() {
            return Err(Error::TwoColumns { column: name.to_owned() });
        }
        let found = field.data_type();
        let kind = Kind::of(found)
            .ok_or_else(|| Error::Type { column: name.to_owned(), found: found.to_string() })?;
        Ok(Column { name: name.to_owned(), kind })
    };
    let columns: Vec<_> =
        names.iter().map(|name| column(name.as_ref())).collect::<Result<_, _>>()?;
    check_columns(&columns)?;
    Ok(columns)
}

/// All columns of a table whose type can be indexed.
pub fn columns_of(schema: &Schema) -> Result<Vec<Column>, Error> {
    let fields = schema.fields().iter().filter(|field| Kind::of(field.data_type()).is_some());
    columns_named(schema, &fields.map(|field| field.name()).collect::<Vec<_>>())
}

pub(crate) fn check_columns(columns: &[Column]) -> Result<(), Error> {
    if columns.is_empty() {
        return Err(Error::NoColumns);
    }
    for (i, column) in columns.iter().enumerate() {
        if columns[..i].iter().any(|other| other.name == column.name) {
            return Err(Error::TwoColumns { column: column.name.clone() });
        }
    }
    Ok(())
}
