//! Lists of many values, such as a file of a million ids.
//!
//! Comparing each cell with each value is out of the question, and even sorting the list takes too long if it is done for
//! every batch. So a list is prepared once, by the fingerprints that the index uses (`encode`): a cell whose fingerprint
//! is not in the list equals none of its values, whatever its type; the few others are compared.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::BooleanBuffer;

use super::compare::{Misfit, Test, compare, equality};
use crate::fingerprints::append_fingerprints;
use crate::predicate::Predicate;
use crate::query::fingerprints;
use ironbloom_blocks::Value;

/// A list of this many values is long.
const LONG: usize = 64;

/// More bits of the sieve: 2^this for each value, so that one cell in sixteen passes by chance.
const SIEVE_BITS: u32 = 4;

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
    /// Where the fingerprints of each bin begin: there are about as many bins as fingerprints.
    starts: Vec<u32>,
    /// The bin of a fingerprint is its high bits.
    bin_shift: u32,
    /// A bit for all fingerprints with the same high bits. Most cells are in no list, and learn so from a few bits per value, which
    /// stay in the cache.
    sieve: Vec<u64>,
    sieve_shift: u32,
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
        let bits = prints.len().next_power_of_two().ilog2().clamp(6, 24);
        let (bin_shift, sieve_shift) = (32 - bits, 32 - (bits + SIEVE_BITS));
        let mut starts = vec![0; (1 << bits) + 1];
        let mut sieve = vec![0; (1 << (bits + SIEVE_BITS)) / 64];
        for &print in &prints {
            starts[(print >> bin_shift) as usize + 1] += 1;
            let bit = print >> sieve_shift;
            sieve[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self {
            starts,
            bin_shift,
            sieve,
            sieve_shift,
            values: pairs.into_iter().map(|(_, value)| value.clone()).collect(),
            has_null: values.contains(&Value::Null),
            prints,
        }
    }

    /// The values that a cell with this fingerprint may equal.
    fn places(&self, print: u32) -> Range<usize> {
        let bit = print >> self.sieve_shift;
        if self.sieve[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
            return 0..0;
        }
        let bin = (print >> self.bin_shift) as usize;
        let (start, end) = (self.starts[bin] as usize, self.starts[bin + 1] as usize);
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
        let equals = equality(column);
        for (row, print) in prints.into_iter().enumerate() {
            let places = self.places(print);
            if places.is_empty() {
                continue;
            }
            let values = &self.values[places];
            passed[row] = match &equals {
                Some(equals) => values.iter().any(|value| equals(row, value)),
                None => match compare(&column.slice(row, 1), &Test::OneOf(values)) {
                    Ok(answer) => answer.is_valid(0) && answer.value(0),
                    Err(misfit) => return Some(Err(misfit)),
                },
            };
        }
        Some(Ok(BooleanArray::new(BooleanBuffer::from(passed), column.logical_nulls())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch, StringArray};
    use arrow::compute::cast;
    use arrow::datatypes::{DataType, TimeUnit};

    use super::*;
    use crate::evaluate::{evaluate, evaluate_with};

    /// Whether a long list gives what comparing with each of its values gives.
    fn same_as_comparing(column: ArrayRef, values: Vec<Value>) -> usize {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        let list = Predicate::In("x".into(), values);
        let mut found = 0;
        for predicate in [list.clone(), Predicate::Not(Box::new(list))] {
            let lists = LongLists::of(&predicate);
            assert_eq!(lists.0.len(), 1);
            let by_list = evaluate_with(&predicate, &lists, &batch).unwrap();
            assert_eq!(by_list, evaluate(&predicate, &batch).unwrap(), "{:?}", batch.schema());
            found += by_list.count_set_bits();
        }
        found
    }

    fn numbers(data_type: &DataType) -> ArrayRef {
        let numbers = (0..2000i64).map(|i| (i % 7 != 3).then_some(i * 5 % 120));
        cast(&Int64Array::from_iter(numbers), data_type).unwrap()
    }

    #[test]
    fn lists_of_numbers_find_what_comparing_finds() {
        use DataType as D;
        let integers = [D::Int8, D::Int16, D::Int32, D::Int64, D::UInt8, D::UInt32, D::UInt64];
        let ints: Vec<Value> = (0..100).map(|i| Value::Int(i * 3 - 50)).collect();
        for data_type in integers {
            assert!(same_as_comparing(numbers(&data_type), ints.clone()) > 0);
            let with_null = ints.iter().cloned().chain([Value::Null]).collect();
            same_as_comparing(numbers(&data_type), with_null);
        }
        let floats = (0..100).map(|i| Value::Float(f64::from(i) * 1.5)).collect::<Vec<_>>();
        for data_type in [D::Float32, D::Float64] {
            assert!(same_as_comparing(numbers(&data_type), floats.clone()) > 0);
        }
        let decimals = (0..100).map(|i| Value::Decimal { digits: i * 3 + 1, scale: 0 }).collect();
        assert!(same_as_comparing(numbers(&D::Decimal128(12, 2)), decimals) > 0);
        let moments = (0..100).map(|i| Value::Timestamp(i * 3_000_000)).collect();
        let millis = D::Timestamp(TimeUnit::Millisecond, None);
        assert!(same_as_comparing(numbers(&millis), moments) > 0);
        assert_eq!(same_as_comparing(numbers(&D::Int32), vec![Value::Null; 100]), 0);
    }

    #[test]
    fn lists_of_texts_find_what_comparing_finds() {
        use DataType as D;
        let texts = (0..2000).map(|i| (i % 11 != 5).then(|| format!("text {}", i % 150)));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let values: Vec<Value> = (0..80).map(|i| Value::Text(format!("text {}", i * 2))).collect();
        let dictionary = D::Dictionary(Box::new(D::Int32), Box::new(D::Utf8));
        for data_type in [D::Utf8, D::LargeUtf8, D::Utf8View, dictionary] {
            assert!(same_as_comparing(cast(&texts, &data_type).unwrap(), values.clone()) > 0);
        }
    }
}
