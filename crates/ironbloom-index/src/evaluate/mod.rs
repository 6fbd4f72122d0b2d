//! Which rows of a batch satisfy a predicate, exactly.
//!
//! Inside, a row is true, false or unknown (SQL's three values): a comparison with a null cell is unknown, `not` leaves
//! it unknown, `and` and `or` have an answer if the other side decides it. In the end only true counts.
//!
//! ```text
//!  Eq, In, Range ──► compare.rs: a loop over the values of the column; nulls are those of the column
//!  Like          ──► compare.rs, likewise
//!  In, long      ──► long_list.rs: by fingerprint, prepared once for all batches
//!  IsNull        ──► the null bits themselves, never unknown
//!  And, Or, Not  ──► Kleene's tables, 64 rows at a time
//! ```

mod compare;
mod interval;
mod long_list;

use std::fmt;
use std::ops::Bound;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::boolean::{and_kleene, not, or_kleene};
use arrow::datatypes::DataType;

use self::compare::Test;
use self::long_list::LongList;
pub(crate) use self::long_list::LongLists;
use crate::{Predicate, Value};

/// A predicate that does not match a batch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The batch has no such column.
    NoColumn {
        /// The requested name.
        column: String,
    },
    /// The value is of another kind than the column.
    Type {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
        /// What it was compared with.
        value: Value,
    },
    /// Values of this type cannot be compared.
    Incomparable {
        /// The column.
        column: String,
        /// Its type.
        data_type: DataType,
    },
}

impl fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoColumn { column } => write!(f, "no column {column}"),
            Self::Type { column, data_type, value } => {
                write!(f, "column {column} is {data_type}, which {value:?} is not")
            }
            Self::Incomparable { column, data_type } => {
                write!(f, "column {column} is {data_type}, which can only be compared with null")
            }
        }
    }
}

impl std::error::Error for EvaluateError {}

/// The rows of a batch for which a predicate is true.
///
/// Text and bytes are ordered by their bytes; of floats, NaN is the largest and 0.0 and -0.0 are the same.
///
/// # Errors
///
/// [`EvaluateError`] if a column is missing, or of another kind than the value it is compared with.
pub fn evaluate(
    predicate: &Predicate,
    batch: &RecordBatch,
) -> Result<BooleanBuffer, EvaluateError> {
    evaluate_with(predicate, &LongLists::default(), batch)
}

/// As [`evaluate`], with the long lists of the predicate prepared. All values must be known to match their columns.
pub(crate) fn evaluate_with(
    predicate: &Predicate,
    lists: &LongLists,
    batch: &RecordBatch,
) -> Result<BooleanBuffer, EvaluateError> {
    let truth = truth(predicate, batch, &mut lists.iter())?;
    let (values, nulls) = truth.into_parts();
    Ok(match nulls {
        Some(nulls) => &values & nulls.inner(),
        None => values,
    })
}

/// True, false, or null for unknown. `lists` are the long lists of the predicate from here on, or none of them.
fn truth(
    predicate: &Predicate,
    batch: &RecordBatch,
    lists: &mut std::slice::Iter<'_, LongList>,
) -> Result<BooleanArray, EvaluateError> {
    match predicate {
        Predicate::Eq(column, value) => {
            compare(batch, column, Test::OneOf(std::slice::from_ref(value)))
        }
        Predicate::In(column, values) => {
            let list = if long_list::is_long(values) { lists.next() } else { None };
            let column_found = find(batch, column)?;
            match list.map(|list| (list, list.test(column_found))) {
                Some((list, Some(truth))) => {
                    let truth = truth.map_err(|misfit| told(misfit, column, batch))?;
                    Ok(if list.has_null { unknown_unless_true(truth) } else { truth })
                }
                _ => compare(batch, column, Test::OneOf(values)),
            }
        }
        Predicate::Range { column, low, high } => {
            compare(batch, column, Test::Between(low.as_ref(), high.as_ref()))
        }
        Predicate::Like(column, pattern) => {
            let truth = compare::like(find(batch, column)?, pattern);
            truth.map_err(|misfit| told(misfit, column, batch))
        }
        Predicate::IsNull(column) => Ok(is_null(find(batch, column)?)),
        Predicate::And(parts) => combine(parts, batch, lists, true, and_kleene),
        Predicate::Or(parts) => combine(parts, batch, lists, false, or_kleene),
        Predicate::Not(part) => Ok(not(&truth(part, batch, lists)?).expect("negation cannot fail")),
    }
}

fn combine(
    parts: &[Predicate],
    batch: &RecordBatch,
    lists: &mut std::slice::Iter<'_, LongList>,
    of_none: bool,
    both: impl Fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, arrow::error::ArrowError>,
) -> Result<BooleanArray, EvaluateError> {
    let mut all: Option<BooleanArray> = None;
    for part in parts {
        let next = truth(part, batch, lists)?;
        all = Some(match all {
            Some(all) => both(&all, &next).expect("both are as long as the batch"),
            None => next,
        });
    }
    Ok(all.unwrap_or_else(|| constant(of_none, batch.num_rows())))
}

fn constant(value: bool, rows: usize) -> BooleanArray {
    let values = if value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
    BooleanArray::new(values, None)
}

fn is_null(column: &ArrayRef) -> BooleanArray {
    match column.logical_nulls() {
        Some(valid) => BooleanArray::new(!valid.inner(), None),
        None => constant(false, column.len()),
    }
}

fn compare(batch: &RecordBatch, name: &str, test: Test<'_>) -> Result<BooleanArray, EvaluateError> {
    let column = find(batch, name)?;
    // Nothing is in an empty list, not even an unknown value.
    if matches!(test, Test::OneOf([])) {
        return Ok(constant(false, batch.num_rows()));
    }
    let truth = compare::compare(column, &test).map_err(|misfit| told(misfit, name, batch))?;
    // A list containing a null either holds the value, or the result is unknown: `x not in (1, null)` is never true.
    // Bounds alike.
    Ok(if has_null(&test) { unknown_unless_true(truth) } else { truth })
}

fn told(misfit: compare::Misfit, name: &str, batch: &RecordBatch) -> EvaluateError {
    let column = name.to_owned();
    let data_type = match find(batch, name) {
        Ok(found) => found.data_type().clone(),
        Err(error) => return error,
    };
    match misfit {
        compare::Misfit::Value(value) => EvaluateError::Type { column, data_type, value },
        compare::Misfit::Column => EvaluateError::Incomparable { column, data_type },
    }
}

fn has_null(test: &Test<'_>) -> bool {
    let is_null = |bound: &Bound<&Value>| {
        matches!(bound, Bound::Included(Value::Null) | Bound::Excluded(Value::Null))
    };
    match test {
        Test::OneOf(values) => values.contains(&Value::Null),
        Test::Between(low, high) => is_null(low) || is_null(high),
    }
}

fn unknown_unless_true(truth: BooleanArray) -> BooleanArray {
    let (values, nulls) = truth.into_parts();
    let known = NullBuffer::new(values.clone());
    BooleanArray::new(values, NullBuffer::union(nulls.as_ref(), Some(&known)))
}

fn find<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, EvaluateError> {
    batch.column_by_name(name).ok_or_else(|| EvaluateError::NoColumn { column: name.to_owned() })
}
