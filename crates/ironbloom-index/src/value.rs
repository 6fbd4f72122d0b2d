//! One value of a column, by its meaning, not its storage.

/// A value to look for. Types with the same meaning are one: an `Int32` 7 and a `UInt64` 7 are both `Int(7)`, a
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
    /// Any float. It is compared with the values of a narrower column after rounding to that width: 0.1 equals what a
    /// `Float32` makes of 0.1. All NaN are one value, and so are 0.0 and -0.0.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes, of a fixed length or not.
    Bytes(Vec<u8>),
    /// A day: days since 1970-01-01.
    Date(i32),
    /// A moment: nanoseconds since 1970-01-01T00:00:00 (of UTC if the column has a time zone), whatever the unit of the
    /// column.
    Timestamp(i128),
    /// A decimal number, `digits` / 10^`scale`, without trailing zeros: 1.50 is (15, 1).
    Decimal {
        /// All digits as an integer.
        digits: i128,
        /// How many of them are decimal places; negative for multiples of ten.
        scale: i8,
    },
}
