//! The Bloom filters that a Parquet file itself has, asked for columns that are not indexed.
//!
//! ```text
//!  city = 'Oslo', not indexed      row group 0: its filter says no      ──► its candidate rows are dropped unread
//!                                  row group 1: maybe; or has no filter ──► they are read and compared
//! ```
//!
//! Rows are dropped only where a filter is certain. A filter that is damaged or cannot be read may hold anything, and so may one
//! of a type about whose bytes writers do not agree: decimals, INT96, booleans, half-precision floats, NaN, and timestamps whose
//! unit in the file is another one than in the table. How values become bytes, and the filter itself, are the library's
//! (`ironbloom::format::parquet_file`).
//!
//! A question reads a header of some 20 bytes, once, and 32 bytes for each value. Of a file that costs less than any page; of an
//! object it is a request or two more, and filters are asked only if they can save some megabytes.

use std::ops::Range;
use std::sync::PoisonError;

use arrow::datatypes::{DataType, TimeUnit};
use ironbloom::format::parquet_file::{Physical, Plain, StoredFilter};
use ironbloom_blocks::{Value, ValueKind};
use parquet::basic::{LogicalType, TimeUnit as StoredUnit, Type};
use parquet::schema::types::ColumnDescriptor;

use super::Table;
use super::parquet::ParquetTable;
use crate::predicate::Predicate;
use crate::schema::kind_of;

/// Bytes of pages that asking a filter of an object must be able to save: about what a request takes.
const LEAST_SAVED: u64 = 2 << 20;
/// What one value costs of an object, the unit in which it is requested.
const OBJECT_PIECE: u64 = 32 << 10;
/// Bytes that are read in the time of one more call of the system: with many values, a filter is read as a whole.
const FILE_PIECE: u64 = 512;

/// What the filters did for a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnFilters {
    /// Row groups one of whose own filters was asked.
    pub asked: u64,
    /// Those of them that cannot have matching rows.
    pub excluded: u64,
}

impl OwnFilters {
    /// Adds what the filters did for another search.
    pub fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.excluded += other.excluded;
    }
}

/// What is asked of the filters of a row group.
#[derive(Debug, PartialEq)]
pub(super) enum Question {
    /// No filter can exclude it.
    Anything,
    /// Has this column one of these keys?
    Has {
        leaf: usize,
        hashes: Vec<u64>,
    },
    All(Vec<Question>),
    Any(Vec<Question>),
}

impl Question {
    fn all(parts: impl Iterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.filter(|part| *part != Self::Anything).collect();
        if parts.is_empty() { Self::Anything } else { Self::All(parts) }
    }

    fn any(parts: impl Iterator<Item = Self>) -> Self {
        let parts: Vec<Self> = parts.collect();
        // Of nothing, the condition is false; that is not for a filter to say.
        let is_open = parts.is_empty() || parts.contains(&Self::Anything);
        if is_open { Self::Anything } else { Self::Any(parts) }
    }

    /// The columns that are asked, and the keys of each.
    fn keys(&self) -> Vec<(usize, &[u64])> {
        match self {
            Self::Anything => Vec::new(),
            Self::Has { leaf, hashes } => vec![(*leaf, hashes)],
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::keys).collect(),
        }
    }
}

impl Table {
    /// These rows without those of row groups in which the predicate cannot hold, by the file's own filters of some columns.
    pub(crate) fn without_excluded(
        &self,
        predicate: &Predicate,
        is_asked: &dyn Fn(&str) -> bool,
        rows: Vec<Range<u64>>,
        did: &mut OwnFilters,
    ) -> Vec<Range<u64>> {
        let super::Format::Parquet(table) = &self.format else { return rows };
        match self.question(table, predicate, is_asked, false) {
            Question::Anything => rows,
            question => table.without_excluded(&question, rows, did),
        }
    }

    fn question(
        &self,
        table: &ParquetTable,
        predicate: &Predicate,
        is_asked: &dyn Fn(&str) -> bool,
        negated: bool,
    ) -> Question {
        let part = |part: &Predicate| self.question(table, part, is_asked, negated);
        match predicate {
            Predicate::And(parts) if !negated => Question::all(parts.iter().map(part)),
            Predicate::Or(parts) if negated => Question::all(parts.iter().map(part)),
            Predicate::And(parts) | Predicate::Or(parts) => Question::any(parts.iter().map(part)),
            Predicate::Not(part) => self.question(table, part, is_asked, !negated),
            Predicate::Eq(name, value) if !negated && is_asked(name) => {
                self.has(table, name, std::slice::from_ref(value))
            }
            Predicate::In(name, values) if !negated && is_asked(name) => {
                self.has(table, name, values)
            }
            _ => Question::Anything,
        }
    }

    fn has(&self, table: &ParquetTable, name: &str, values: &[Value]) -> Question {
        let known = || {
            let column = self.column(name).ok()?;
            let place = match &self.view {
                Some(view) => view.in_file(&[column]).first().copied()?,
                None => column,
            };
            table.keys(place, self.schema().field(column).data_type(), values)
        };
        known().unwrap_or(Question::Anything)
    }
}

impl ParquetTable {
    /// The question whether a column of the file, seen as this type, has one of these values; `None` if its filter cannot
    /// answer it.
    fn keys(&self, column: usize, seen: &DataType, values: &[Value]) -> Option<Question> {
        let descriptor = self.descriptor();
        let is_of_column = |&leaf: &usize| descriptor.get_column_root_idx(leaf) == column;
        let leaf = (0..descriptor.num_columns()).find(is_of_column)?;
        let stored = descriptor.column(leaf);
        if stored.path().parts().len() != 1 || stored.max_rep_level() != 0 {
            return None;
        }
        let in_file = self.schema().field(column).data_type();
        let mut hashes = Vec::new();
        // Nothing is equal to null.
        for value in values.iter().filter(|value| **value != Value::Null) {
            let forms = forms(value, &stored, in_file, seen)?;
            hashes.extend(forms.iter().map(|form| StoredFilter::hash(form)));
        }
        // Of nulls alone, none is left, which is not for a filter to say.
        (!hashes.is_empty()).then_some(Question::Has { leaf, hashes })
    }

    fn without_excluded(
        &self,
        question: &Question,
        rows: Vec<Range<u64>>,
        did: &mut OwnFilters,
    ) -> Vec<Range<u64>> {
        let keys = question.keys();
        let groups = self.by_group(&rows);
        let groups = groups.iter().filter(|(group, rows)| self.is_worthwhile(&keys, *group, rows));
        let groups: Vec<usize> = groups.map(|(group, _)| *group).collect();
        self.request(&keys, &groups);
        let mut excluded = Vec::new();
        for group in groups {
            let mut was_asked = false;
            if !self.may_match(question, group, &mut was_asked) {
                excluded.push(self.group_starts[group]..self.group_starts[group + 1]);
            }
            did.asked += u64::from(was_asked);
        }
        did.excluded += excluded.len() as u64;
        without(rows, &excluded)
    }

    fn may_match(&self, question: &Question, group: usize, was_asked: &mut bool) -> bool {
        match question {
            Question::Anything => true,
            Question::Has { leaf, hashes } => {
                let answer = self.filter_has(group, *leaf, hashes);
                *was_asked |= answer.is_some();
                answer.unwrap_or(true)
            }
            Question::All(parts) => parts.iter().all(|part| self.may_match(part, group, was_asked)),
            Question::Any(parts) => parts.iter().any(|part| self.may_match(part, group, was_asked)),
        }
    }

    /// Whether a filter may hold one of these keys; `None` if there is none, or it is damaged.
    fn filter_has(&self, group: usize, leaf: usize, hashes: &[u64]) -> Option<bool> {
        let filter = self.own_filter(group, leaf)?;
        let bits = filter.bits();
        let is_small = bits.end - bits.start <= FILE_PIECE * hashes.len() as u64;
        let whole = is_small.then(|| self.file().read(bits.clone())).transpose().ok()?;
        let read = |block: Range<u64>| match &whole {
            Some(whole) => {
                let start = (block.start - bits.start) as usize;
                Ok(whole[start..start + (block.end - block.start) as usize].to_vec())
            }
            None => self.file().read(block),
        };
        filter.has_any(hashes, read).ok()
    }

    /// The filter of a chunk, if it has one that can be read.
    fn own_filter(&self, group: usize, leaf: usize) -> Option<StoredFilter> {
        let mut known = self.own_filters.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((group, leaf)).or_insert_with(|| {
            let offset = self.filter_offset(group, leaf)?;
            StoredFilter::open(offset, self.file().len(), |range| self.file().read(range)).ok()
        })
    }

    fn filter_offset(&self, group: usize, leaf: usize) -> Option<u64> {
        let chunk = self.group(group).ok()?.row_group().column(leaf);
        u64::try_from(chunk.bloom_filter_offset()?).ok()
    }

    /// Whether asking costs less than what it may save.
    fn is_worthwhile(&self, keys: &[(usize, &[u64])], group: usize, rows: &[Range<usize>]) -> bool {
        if !self.file().is_object() {
            return true;
        }
        let pages = |leaf: usize| -> Option<u64> {
            self.filter_offset(group, leaf)?;
            let pages = self.chunk_pages(group, leaf).ok()?;
            Some(match pages {
                Some(pages) => pages.spots(rows).map(|spot| u64::from(spot.bytes)).sum(),
                None => self.group(group).ok()?.row_group().column(leaf).byte_range().1,
            })
        };
        let saved: u64 = keys.iter().filter_map(|&(leaf, _)| pages(leaf)).sum();
        let keys: usize = keys.iter().map(|(_, hashes)| hashes.len()).sum();
        saved >= LEAST_SAVED.max(4 * OBJECT_PIECE * keys as u64)
    }

    /// Of an object, requests the headers of these filters together, and then the blocks of these keys. What goes wrong here
    /// goes wrong again when it is read.
    fn request(&self, keys: &[(usize, &[u64])], groups: &[usize]) {
        if !self.file().is_object() {
            return;
        }
        let length = self.file().len();
        let chunks = || groups.iter().flat_map(|&group| keys.iter().map(move |key| (group, key)));
        let header = |(group, (leaf, _)): (usize, &(usize, &[u64]))| {
            let start = self.filter_offset(group, *leaf)?.min(length);
            Some(start..(start + StoredFilter::HEADER).min(length))
        };
        let headers: Vec<Range<u64>> = chunks().filter_map(header).collect();
        let _ = self.file().prefetch(&headers);
        let mut blocks = Vec::new();
        for (group, (leaf, hashes)) in chunks() {
            if let Some(filter) = self.own_filter(group, *leaf) {
                blocks.extend(hashes.iter().map(|&hash| filter.block(hash)));
            }
        }
        let _ = self.file().prefetch(&blocks);
    }
}

/// The bytes under which a filter hashes a value of a column that the file stores like this, reads as one type and shows as
/// another; `None` if that is in doubt.
fn forms(
    value: &Value,
    stored: &ColumnDescriptor,
    in_file: &DataType,
    seen: &DataType,
) -> Option<Vec<Vec<u8>>> {
    let physical = match stored.physical_type() {
        Type::INT32 => Physical::Int32,
        Type::INT64 => Physical::Int64,
        Type::FLOAT => Physical::Float,
        Type::DOUBLE => Physical::Double,
        Type::BYTE_ARRAY => Physical::ByteArray,
        Type::FIXED_LEN_BYTE_ARRAY => Physical::Fixed,
        Type::BOOLEAN | Type::INT96 => return None,
    };
    let (in_file, seen) = (values_of(in_file), values_of(seen));
    if kind_of(in_file) != kind_of(seen) || kind_of(seen) != ValueKind::of_value(value) {
        return None;
    }
    let plain = match value {
        Value::Int(number) => Plain::Integer(*number),
        Value::Float(number) if *in_file != DataType::Float16 => Plain::Number(*number),
        Value::Text(text) => Plain::Bytes(text.as_bytes()),
        Value::Bytes(bytes) => match in_file {
            // All values have this length: of another one, there is none, which is not for a filter to say.
            DataType::FixedSizeBinary(length) if usize::try_from(*length) != Ok(bytes.len()) => {
                return None;
            }
            _ => Plain::Bytes(bytes),
        },
        Value::Date(days) if *in_file == DataType::Date32 && seen == in_file => {
            Plain::Integer((*days).into())
        }
        Value::Timestamp(nanoseconds) if seen == in_file => {
            let tick = tick(stored, in_file)?;
            // Between two ticks there is no value, which is not for a filter to say either.
            (nanoseconds % tick == 0).then_some(Plain::Integer(nanoseconds / tick))?
        }
        _ => return None,
    };
    physical.plain(plain)
}

/// The type of the values of a column that may have a dictionary.
fn values_of(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Nanoseconds in a tick, if the file stores the unit in which it is read.
fn tick(stored: &ColumnDescriptor, in_file: &DataType) -> Option<i128> {
    let Some(LogicalType::Timestamp(stored)) = stored.logical_type_ref() else { return None };
    match (&stored.unit, in_file) {
        (StoredUnit::MILLIS, DataType::Timestamp(TimeUnit::Millisecond, _)) => Some(1_000_000),
        (StoredUnit::MICROS, DataType::Timestamp(TimeUnit::Microsecond, _)) => Some(1_000),
        (StoredUnit::NANOS, DataType::Timestamp(TimeUnit::Nanosecond, _)) => Some(1),
        _ => None,
    }
}

/// What is left of ascending ranges without others, ascending as well.
fn without(ranges: Vec<Range<u64>>, excluded: &[Range<u64>]) -> Vec<Range<u64>> {
    if excluded.is_empty() {
        return ranges;
    }
    let mut left = Vec::new();
    for range in ranges {
        let mut start = range.start;
        let first = excluded.partition_point(|out| out.end <= start);
        for out in excluded[first..].iter().take_while(|out| out.start < range.end) {
            if start < out.start {
                left.push(start..out.start);
            }
            start = out.end;
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lose_what_is_excluded_and_nothing_else() {
        let rows = |ranges: &[Range<u64>]| ranges.iter().cloned().flatten().collect::<Vec<u64>>();
        let ranges = [0..5, 7..20, 25..30, 40..41];
        for excluded in [
            vec![],
            vec![0..3, 3..7],
            vec![2..3, 8..9, 19..26],
            vec![5..7, 20..25],
            vec![0..49, 49..50],
            vec![29..31, 31..41],
        ] {
            let out = rows(&excluded);
            let expected: Vec<u64> =
                rows(&ranges).into_iter().filter(|row| !out.contains(row)).collect();
            let left = without(ranges.to_vec(), &excluded);
            assert_eq!(rows(&left), expected, "{excluded:?}");
            assert!(left.iter().all(|range| range.start < range.end));
        }
    }

    #[test]
    fn a_part_that_no_filter_answers_opens_an_or_and_leaves_an_and() {
        let has = || Question::Has { leaf: 1, hashes: vec![7] };
        assert_eq!(Question::any([has(), Question::Anything].into_iter()), Question::Anything);
        assert_eq!(Question::any([].into_iter()), Question::Anything);
        assert_eq!(Question::all([Question::Anything].into_iter()), Question::Anything);
        let both = Question::all([has(), Question::Anything].into_iter());
        assert_eq!(both, Question::All(vec![has()]));
    }
}
