//! What to look for.

use ironbloom_blocks::Value;

/// A condition on a row.
///
/// Nulls follow the rules of SQL's `WHERE`: a comparison with a null cell never holds, nor does its negation; only
/// [`IsNull`](Self::IsNull) finds nulls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Predicate {
    /// The column has this value.
    Eq(String, Value),
    /// The column has one of these values; false, even for nulls, if there are none.
    In(String, Vec<Value>),
    /// The column has no value.
    IsNull(String),
    /// The value of the column lies between these, each of which may be missing. The index does not help here.
    Range {
        /// The column.
        column: String,
        /// At least, or more than, this value.
        low: std::ops::Bound<Value>,
        /// At most, or less than, this value.
        high: std::ops::Bound<Value>,
    },
    /// All of these hold; true if there are none.
    And(Vec<Predicate>),
    /// One of these holds; false if there are none.
    Or(Vec<Predicate>),
    /// This does not hold. The index does not help here.
    Not(Box<Predicate>),
}
