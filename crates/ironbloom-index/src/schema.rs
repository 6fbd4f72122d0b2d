//! The columns of an index, by meaning.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Schema, TimeUnit};

use ironbloom_blocks::ValueKind;

use crate::error::Error;

/// The kind of an Arrow type; `None` if it cannot be indexed (lists, structs, times of day, …).
pub fn kind_of(data_type: &DataType) -> Option<ValueKind> {
    use DataType as T;
    Some(match data_type {
        T::Boolean => ValueKind::Bool,
        integer if integer.is_integer() => ValueKind::Int,
        float if float.is_floating() => ValueKind::Float,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => ValueKind::Text,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => ValueKind::Bytes,
        T::Date32 | T::Date64 => ValueKind::Date,
        T::Timestamp(..) => ValueKind::Timestamp,
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => {
            ValueKind::Decimal
        }
        T::Null => ValueKind::Null,
        T::Dictionary(_, values) => return kind_of(values),
        _ => return None,
    })
}

/// A type that holds values of this kind, for columns without a type.
pub(crate) fn type_of(kind: ValueKind) -> DataType {
    match kind {
        ValueKind::Bool => DataType::Boolean,
        ValueKind::Int => DataType::Int64,
        ValueKind::Float => DataType::Float64,
        ValueKind::Text => DataType::Utf8,
        ValueKind::Bytes => DataType::Binary,
        ValueKind::Date => DataType::Date32,
        ValueKind::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
        ValueKind::Decimal => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        _ => DataType::Null,
    }
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as in the table.
    pub name: String,
    /// The kind of its values.
    pub kind: ValueKind,
}

/// Gives a kind to columns that have had only nulls so far: that of the values that come now.
pub(crate) fn adopt_kinds(columns: &mut [Column], kinds: impl Iterator<Item = Option<ValueKind>>) {
    for (column, kind) in columns.iter_mut().zip(kinds) {
        if let (ValueKind::Null, Some(kind)) = (column.kind, kind) {
            column.kind = kind;
        }
    }
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
        let kind = kind_of(found)
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
    let fields = schema.fields().iter().filter(|field| kind_of(field.data_type()).is_some());
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
