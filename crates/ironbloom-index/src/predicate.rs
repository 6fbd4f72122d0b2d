//! What to look for.

use ironbloom_blocks::Value;

use crate::pattern::Pattern;

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
    /// The value of the column lies between these, each of which may be missing.
    Range {
        /// The column.
        column: String,
        /// At least, or more than, this value.
        low: std::ops::Bound<Value>,
        /// At most, or less than, this value.
        high: std::ops::Bound<Value>,
    },
    /// The text of the column looks like this.
    Like(String, Pattern),
    /// All of these hold; true if there are none.
    And(Vec<Predicate>),
    /// One of these holds; false if there are none.
    Or(Vec<Predicate>),
    /// This does not hold.
    Not(Box<Predicate>),
}

impl Predicate {
    /// The columns that are named in it, some perhaps several times.
    pub fn columns(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.add_columns(&mut names);
        names
    }

    fn add_columns<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::Eq(column, _)
            | Self::In(column, _)
            | Self::IsNull(column)
            | Self::Range { column, .. }
            | Self::Like(column, _) => names.push(column),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.add_columns(names));
            }
            Self::Not(part) => part.add_columns(names),
        }
    }
}
