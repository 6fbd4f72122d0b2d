//! The naive version: rows in a vector, looked at one by one.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int32Array, RecordBatch, StringArray};
use ironbloom_index::{Candidates, Column, Index, Predicate, Value, columns_of};

/// A row of the test tables: an integer, a text, a float and a boolean, each perhaps null.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) int: Option<i32>,
    pub(crate) text: Option<String>,
    pub(crate) float: Option<f64>,
    pub(crate) flag: Option<bool>,
}

impl Row {
    pub(crate) fn get(&self, column: &str) -> Value {
        let value = match column {
            "int" => self.int.map(|number| Value::Int(number.into())),
            "text" => self.text.clone().map(Value::Text),
            "float" => self.float.map(Value::Float),
            "flag" => self.flag.map(Value::Bool),
            other => panic!("no column {other}"),
        };
        value.unwrap_or(Value::Null)
    }
}

pub(crate) const COLUMNS: [&str; 4] = ["int", "text", "float", "flag"];

pub(crate) fn batch(rows: &[Row]) -> RecordBatch {
    let arrays: [ArrayRef; 4] = [
        Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.int))),
        Arc::new(StringArray::from_iter(rows.iter().map(|row| row.text.as_ref()))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.float))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|row| row.flag))),
    ];
    let fields = COLUMNS.into_iter().zip(arrays).map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(fields).unwrap()
}

pub(crate) fn columns() -> Vec<Column> {
    columns_of(&batch(&[]).schema()).unwrap()
}

/// Whether a row matches; `None` is SQL's unknown.
pub(crate) fn holds(predicate: &Predicate, row: &Row) -> Option<bool> {
    let equal = |left: &Value, right: &Value| match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Float(a), Value::Float(b)) if a.is_nan() && b.is_nan() => Some(true),
        (left, right) => Some(left == right),
    };
    match predicate {
        Predicate::Eq(column, value) => equal(&row.get(column), value),
        Predicate::In(column, values) => {
            any(values.iter().map(|value| equal(&row.get(column), value)))
        }
        Predicate::IsNull(column) => Some(row.get(column) == Value::Null),
        Predicate::Range { column, low, high } => match row.get(column) {
            Value::Null => None,
            value => Some(above(&value, low) && below(&value, high)),
        },
        Predicate::Like(column, pattern) => match row.get(column) {
            Value::Text(text) => Some(pattern.matches(text.as_bytes())),
            _ => None,
        },
        Predicate::And(parts) => not(any(parts.iter().map(|part| not(holds(part, row))))),
        Predicate::Or(parts) => any(parts.iter().map(|part| holds(part, row))),
        Predicate::Not(part) => not(holds(part, row)),
        other => panic!("unknown predicate {other:?}"),
    }
}

fn not(truth: Option<bool>) -> Option<bool> {
    truth.map(|truth| !truth)
}

fn any(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let (mut yes, mut unknown) = (false, false);
    for truth in truths {
        yes |= truth == Some(true);
        unknown |= truth.is_none();
    }
    if yes || !unknown { Some(yes) } else { None }
}

fn above(value: &Value, low: &Bound<Value>) -> bool {
    match low {
        Bound::Included(low) => order(value, low).is_ge(),
        Bound::Excluded(low) => order(value, low).is_gt(),
        Bound::Unbounded => true,
    }
}

fn below(value: &Value, high: &Bound<Value>) -> bool {
    match high {
        Bound::Included(high) => order(value, high).is_le(),
        Bound::Excluded(high) => order(value, high).is_lt(),
        Bound::Unbounded => true,
    }
}

fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        // NaN is the largest.
        (Value::Float(a), Value::Float(b)) => {
            a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        other => panic!("{other:?}"),
    }
}

/// The tables as they should be: name and rows.
pub(crate) type Model = Vec<(String, Vec<Row>)>;

/// Every row that matches is in a candidate block; blocks are in order, apart and inside their table.
pub(crate) fn check(index: &Index, model: &Model, predicate: &Predicate) {
    let found = index.candidates(predicate).unwrap();
    check_shape(&found, index, model);
    for (name, rows) in model {
        let source = index.source(name).expect("every table of the model is in the index");
        assert_eq!(index.sources()[source].rows(), rows.len() as u64);
        for (number, row) in (0u64..).zip(rows) {
            let is_candidate = found
                .blocks
                .iter()
                .any(|block| block.source == source && block.range().contains(&number));
            let matches = holds(predicate, row) == Some(true);
            assert!(is_candidate || !matches, "{name} row {number} {row:?} lost for {predicate:?}");
        }
    }
}

fn check_shape(found: &Candidates, index: &Index, model: &Model) {
    for pair in found.blocks.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let apart = before.source < after.source
            || before.source == after.source && before.range().end <= after.first_row;
        assert!(apart, "{before:?} {after:?}");
    }
    assert_eq!(index.sources().len(), model.len());
    for block in &found.blocks {
        assert!(block.rows > 0 && block.rows <= index.params().block_rows());
        assert!(block.range().end <= index.sources()[block.source].rows());
    }
    assert!(found.blocks.len() as u64 <= found.considered);
}
