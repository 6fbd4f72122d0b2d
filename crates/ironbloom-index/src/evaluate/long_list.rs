//! Lists of many values, such as a file of a million ids.
//!
//! Comparing each cell with each value is out of the question, and even sorting the list takes too long if it is done for
//! every batch. So a list is prepared once, by the fingerprints that the index uses (`encode`): a cell whose fingerprint
//! is not in the list equals none of its values, whatever its type; the few others are compared.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::compare::{Misfit, Test, compare};
use crate::fingerprints::append_fingerprints;
use crate::predicate::Predicate;
use crate::query::fingerprints;
use ironbloom_blocks::Value;

/// A list of this many values is long.
const LONG: usize = 64;

/// The long lists of a predicate, in the order in which it has them.
#[derive(Default)]
pub(crate) struct LongLists(Vec<LongList>);

impl LongLists {
    pub(crate) fn of(predicate: &Predicate) -> Self {
        let mut lists = Self::default();
        lists.add(predicate);
        lists
    }

    fn add(&mut self, predicate: &Predicate) {
        match predicate {
            Predicate::In(_, values) if is_long(values) => self.0.push(LongList::new(values)),
            Predicate::And(parts) | Predicate::Or(parts) => {
                parts.iter().for_each(|part| self.add(part));
            }
            Predicate::Not(part) => self.add(part),
            _ => {}
        }
    }

    /// To be asked for the next one whenever a list is long.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, LongList> {
        self.0.iter()
    }
}

pub(super) fn is_long(values: &[Value]) -> bool {
    values.len() >= LONG
}

/// One list.
pub(super) struct LongList {
    /// By fingerprint, ascending; a value is here once for each that it may have.
    prints: Vec<u32>,
    values: Vec<Value>,
    /// Where the fingerprints with these first 16 bits begin.
    starts: Vec<u32>,
    pub(super) has_null: bool,
}

impl LongList {
    fn new(values: &[Value]) -> Self {
        let mut pairs: Vec<(u32, &Value)> = values
            .iter()
            .flat_map(|value| fingerprints(value).into_iter().map(move |print| (print, value)))
            .collect();
        pairs.sort_by_key(|&(print, _)| print);
        let prints: Vec<u32> = pairs.iter().map(|&(print, _)| print).collect();
        let start = |first: u32| prints.partition_point(|print| print >> 16 < first) as u32;
        Self {
            starts: (0..=1 << 16).map(start).collect(),
            values: pairs.into_iter().map(|(_, value)| value.clone()).collect(),
            has_null: values.contains(&Value::Null),
            prints,
        }
    }

    /// The values that a cell with this fingerprint may equal.
    fn places(&self, print: u32) -> Range<usize> {
        let first = (print >> 16) as usize;
        let (start, end) = (self.starts[first] as usize, self.starts[first + 1] as usize);
        let near = &self.prints[start..end];
        let from = near.partition_point(|&other| other < print);
        let equal = near[from..].iter().take_while(|&&other| other == print).count();
        start + from..start + from + equal
    }

    /// Which cells are in the list; null where the cell is. `None` if cells of this type have no fingerprints.
    pub(super) fn test(&self, column: &ArrayRef) -> Option<Result<BooleanArray, Misfit>> {
        let mut prints = Vec::with_capacity(column.len());
        if !append_fingerprints(column, &mut prints) {
            return None;
        }
        let mut passed = vec![false; column.len()];
        for (row, print) in prints.into_iter().enumerate() {
            let places = self.places(print);
            if !places.is_empty() {
                let test = Test::OneOf(&self.values[places]);
                match compare(&column.slice(row, 1), &test) {
                    Ok(answer) => passed[row] = answer.is_valid(0) && answer.value(0),
                    Err(misfit) => return Some(Err(misfit)),
                }
            }
        }
        Some(Ok(BooleanArray::new(BooleanBuffer::from(passed), column.logical_nulls())))
    }
}
