//! A value of a column, by its meaning, not its storage.

use std::fmt;

/// A value to look for. Types with the same meaning are merged: an `Int32` 7 and a `UInt64` 7 are both `Int(7)`, a
/// dictionary's "x", a `LargeUtf8` "x" and a `Utf8View` "x" are all `Text("x")`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// Any integer.
    Int(i128),
    /// Any float. It is compared with the values of a narrower column after rounding to that width: 0.1 equals a
    /// `Float32` 0.1. All NaNs are one value, and so are 0.0 and -0.0.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes, of a fixed length or not.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since 1970-01-01T00:00:00 (UTC if the column has a time zone), whatever the unit of the column.
    Timestamp(i128),
    /// A decimal number, `digits` / 10^`scale`, without trailing zeros: 1.50 is (15, 1).
    Decimal {
        /// All digits, as an integer.
        digits: i128,
        /// Number of decimal places; negative for multiples of ten.
        scale: i8,
    },
}

/// The kind of a column's values. One kind has one encoding, whatever the width of its numbers and the storage of its
/// texts. The discriminants are those of index files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ValueKind {
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

impl ValueKind {
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

    /// Returns the kind of a value; `None` for null, which fits every column.
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

    /// Returns the kind with this number in files.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }
}

impl fmt::Display for ValueKind {
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
