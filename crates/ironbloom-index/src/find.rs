//! From candidate blocks to rows: only what may match is read, and only what matches is returned.
//!
//! ```text
//!  candidates        3, 17, 18, 40              blocks, from the index
//!     │ read column a of them, compare          17, 40 have no such a: gone, their b is never read
//!     │ read column b of the rest, compare      3, 18
//!     ▼
//!  matching rows     1540, 9300
//!     │ read the selected columns around them
//!     ▼
//!  Match { rows, batch }
//! ```
//!
//! The parts of an AND are evaluated one after the other, because each page that is not read saves more than all
//! comparisons of a block cost. Everything else is evaluated at once. The search goes through the candidates in steps
//! of bounded size, so that the result of a condition that every row satisfies does not have to fit into memory.

use std::ops::{Deref, Range};
use std::time::{Duration, Instant};

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Schema, SchemaRef};

use crate::evaluate::{LongLists, evaluate, evaluate_with};
use crate::table::{OwnFilters, Reads, Table, TableError};
use crate::{EvaluateError, Predicate};

/// Maximum number of rows read before returning what was found.
const STEP_ROWS: u64 = 1 << 16;

/// Matching rows at most this far apart are read together: starting a new read costs more than decoding a few more
/// rows.
const GAP: u64 = 32;

/// Rows that satisfy a predicate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Match {
    /// Their numbers in the table, counted from 0, ascending.
    pub rows: Vec<u64>,
    /// Their selected columns, with the same number of rows; no columns if none were selected.
    pub batch: RecordBatch,
}

/// What a search did, to see where the time went.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Blocks of this table that the index did not rule out.
    pub candidates: u64,
    /// What the filters in the Parquet file itself excluded of them.
    pub own_filters: OwnFilters,
    /// Rows in these blocks whose values were compared at least once.
    pub rows_verified: u64,
    /// Rows that match.
    pub rows_matched: u64,
    /// What was read for comparing.
    pub verify_reads: Reads,
    /// What was read for the selected columns.
    pub select_reads: Reads,
    /// Time for reading and decoding what is compared.
    pub read_time: Duration,
    /// Time for comparing.
    pub compare_time: Duration,
    /// Time for reading the selected columns of what matches.
    pub select_time: Duration,
}

impl Report {
    /// Adds what another search did.
    pub fn add(&mut self, other: &Self) {
        self.candidates += other.candidates;
        self.own_filters.add(other.own_filters);
        self.rows_verified += other.rows_verified;
        self.rows_matched += other.rows_matched;
        self.verify_reads.add(other.verify_reads);
        self.select_reads.add(other.select_reads);
        self.read_time += other.read_time;
        self.compare_time += other.compare_time;
        self.select_time += other.select_time;
    }
}

/// A search through the candidates of one table, borrowed or shared: an iterator over what matches, in the order of rows.
pub struct Find<T> {
    table: T,
    stages: Vec<Stage>,
    select: Vec<usize>,
    select_schema: SchemaRef,
    /// Candidate rows not examined yet, the last one first.
    left: Vec<Range<u64>>,
    report: Report,
}

/// One part of the conjunction, and the columns it needs.
struct Stage {
    predicate: Predicate,
    lists: LongLists,
    columns: Vec<usize>,
}

impl<T: Deref<Target = Table>> Find<T> {
    /// Starts a search in the blocks that may hold matching rows, according to the index: ascending, non-overlapping
    /// ranges of rows. Rows beyond the table are ignored. `select` lists the columns to return for matching rows; if it
    /// is empty, only row numbers are returned.
    ///
    /// # Errors
    ///
    /// [`TableError`] if a column does not exist, a value does not match its column, or the file has changed since it
    /// was opened.
    ///
    /// # Panics
    ///
    /// If the candidates are not ascending.
    pub fn new(
        table: T,
        predicate: &Predicate,
        candidates: impl IntoIterator<Item = Range<u64>>,
        select: &[&str],
    ) -> Result<Self, TableError> {
        Self::beside_filters(table, predicate, candidates, select, &|_| false)
    }

    /// As [`new`](Self::new), after the filters that the file itself has of some columns were asked: those that the index
    /// does not know.
    pub(crate) fn beside_filters(
        table: T,
        predicate: &Predicate,
        candidates: impl IntoIterator<Item = Range<u64>>,
        select: &[&str],
        is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Self, TableError> {
        let stages = stages(&table, predicate)?;
        let select = select.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<_> =
            select.iter().map(|&column| table.schema().fields()[column].clone()).collect();
        let (left, candidates) = join(candidates, table.rows());
        let mut own_filters = OwnFilters::default();
        let mut left = table.without_excluded(predicate, is_asked, left, &mut own_filters);
        if table.is_object() {
            prefetch(&table, &left, &stages, &select)?;
        }
        left.reverse();
        table.check_unchanged()?;
        let report = Report { candidates, own_filters, ..Report::default() };
        let select_schema = std::sync::Arc::new(Schema::new(fields));
        Ok(Self { table, stages, select, select_schema, left, report })
    }

    /// What has been done so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// All matches in one piece, and what the search cost.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file is damaged or was changed.
    pub fn collect_all(mut self) -> Result<(Match, Report), TableError> {
        let mut rows = Vec::new();
        let mut batches = Vec::new();
        while let Some(found) = self.step()? {
            rows.extend(found.rows);
            batches.push(found.batch);
        }
        let batch = self.joined(&batches, rows.len())?;
        Ok((Match { rows, batch }, self.report))
    }

    /// The matches of the next step that has any.
    fn step(&mut self) -> Result<Option<Match>, TableError> {
        while !self.left.is_empty() {
            let ranges = self.next_ranges();
            let rows = self.verify(ranges)?;
            if !rows.is_empty() {
                self.report.rows_matched += rows.len() as u64;
                let batch = self.fetch(&rows)?;
                return Ok(Some(Match { rows, batch }));
            }
        }
        Ok(None)
    }

    /// Takes up to [`STEP_ROWS`] rows of candidates.
    fn next_ranges(&mut self) -> Vec<Range<u64>> {
        let mut room = STEP_ROWS;
        let mut ranges = Vec::new();
        while room > 0
            && let Some(next) = self.left.pop()
        {
            let length = (next.end - next.start).min(room);
            let cut = next.start + length;
            if cut < next.end {
                self.left.push(cut..next.end);
            }
            ranges.push(next.start..cut);
            room -= length;
        }
        ranges
    }

    /// The rows of these ranges that pass all stages.
    fn verify(&mut self, mut ranges: Vec<Range<u64>>) -> Result<Vec<u64>, TableError> {
        self.report.rows_verified +=
            ranges.iter().map(|range| range.end - range.start).sum::<u64>();
        let mut passed: Option<Vec<bool>> = None;
        for stage in 0..self.stages.len() {
            let mask = self.ask(stage, &ranges)?;
            let mut both = mask;
            if let Some(before) = passed {
                both.iter_mut().zip(before).for_each(|(now, before)| *now &= before);
            }
            passed = Some(keep_live(&mut ranges, &both));
            if ranges.is_empty() {
                return Ok(Vec::new());
            }
        }
        let rows = ranges.into_iter().flatten();
        let mut rows: Vec<u64> = match passed {
            Some(passed) => {
                rows.zip(passed).filter_map(|(row, passed)| passed.then_some(row)).collect()
            }
            // No stages: an AND of nothing, which is true.
            None => rows.collect(),
        };
        if self.table.has_deleted_rows() {
            rows.retain(|&row| !self.table.is_deleted(row));
        }
        Ok(rows)
    }

    /// Which rows of these ranges pass one stage.
    fn ask(&mut self, stage: usize, ranges: &[Range<u64>]) -> Result<Vec<bool>, TableError> {
        let Stage { predicate, lists, columns } = &self.stages[stage];
        let start = Instant::now();
        let batches = self.read(ranges, columns)?;
        let read = Instant::now();
        let mut mask = Vec::new();
        for batch in &batches.batches {
            let passed = evaluate_with(predicate, lists, batch);
            let passed = passed.map_err(|error| misfit(&self.table, error))?;
            mask.extend(passed.iter());
        }
        self.report.read_time += read - start;
        self.report.compare_time += read.elapsed();
        self.report.verify_reads.add(batches.reads);
        Ok(mask)
    }

    fn read(&self, ranges: &[Range<u64>], columns: &[usize]) -> Result<Batches, TableError> {
        let mut reads = Reads::default();
        let batches = if columns.is_empty() {
            // A constant such as `not ()`, which needs rows but no columns.
            let rows = ranges.iter().map(|range| (range.end - range.start) as usize).sum();
            vec![empty_batch(&Schema::empty().into(), rows)]
        } else {
            self.table.read_rows(ranges, columns, &mut reads)?
        };
        Ok(Batches { batches, reads })
    }

    /// The selected columns of these rows.
    fn fetch(&mut self, rows: &[u64]) -> Result<RecordBatch, TableError> {
        if self.select.is_empty() {
            return Ok(empty_batch(&self.select_schema, rows.len()));
        }
        let start = Instant::now();
        let ranges = runs(rows);
        let Batches { batches, reads } = self.read(&ranges, &self.select)?;
        let around = self.joined(&batches, 0)?;
        let mut wanted = rows.iter().peekable();
        let mask: BooleanArray = ranges
            .into_iter()
            .flatten()
            .map(|row| Some(wanted.next_if(|&&wanted| wanted == row).is_some()))
            .collect();
        let batch = if around.num_rows() == rows.len() {
            around
        } else {
            filter_record_batch(&around, &mask).map_err(|error| damaged(&self.table, &error))?
        };
        self.report.select_time += start.elapsed();
        self.report.select_reads.add(reads);
        Ok(batch)
    }

    /// Batches of selected columns as one; of `rows` rows if there are no columns.
    fn joined(&self, batches: &[RecordBatch], rows: usize) -> Result<RecordBatch, TableError> {
        match batches {
            _ if self.select.is_empty() => Ok(empty_batch(&self.select_schema, rows)),
            [] => Ok(RecordBatch::new_empty(self.select_schema.clone())),
            [only] => Ok(only.clone()),
            many => concat_batches(&many[0].schema(), many)
                .map_err(|error| damaged(&self.table, &error)),
        }
    }
}

impl<T: Deref<Target = Table>> Iterator for Find<T> {
    type Item = Result<Match, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.left.clear();
        }
        step.transpose()
    }
}

/// Of an object, what is needed of a few rows is requested at once, rather than column by column: what one column rules out
/// costs less than another request.
fn prefetch(
    table: &Table,
    ranges: &[Range<u64>],
    stages: &[Stage],
    select: &[usize],
) -> Result<(), TableError> {
    const FEW: u64 = 1 << 13;
    let rows: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    if rows == 0 || rows > FEW {
        return Ok(());
    }
    let compared = stages.iter().flat_map(|stage| &stage.columns);
    let columns: Vec<usize> = compared.chain(select).copied().collect();
    table.prefetch(ranges, &columns)
}

struct Batches {
    batches: Vec<RecordBatch>,
    reads: Reads,
}

/// The parts of the conjunction, each with its columns. Parts on the same columns are evaluated together.
fn stages(table: &Table, predicate: &Predicate) -> Result<Vec<Stage>, TableError> {
    let mut parts = Vec::new();
    flatten(predicate, &mut parts);
    let mut stages: Vec<Stage> = Vec::new();
    for part in parts {
        let names = part.columns();
        let mut columns =
            names.into_iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
        columns.sort_unstable();
        columns.dedup();
        check_types(table, part, &columns)?;
        match stages.iter_mut().find(|stage| stage.columns == columns) {
            Some(stage) => {
                let before = std::mem::replace(&mut stage.predicate, Predicate::And(Vec::new()));
                stage.predicate = Predicate::And(vec![before, part.clone()]);
            }
            None => {
                let (predicate, lists) = (part.clone(), LongLists::default());
                stages.push(Stage { predicate, lists, columns });
            }
        }
    }
    for stage in &mut stages {
        stage.lists = LongLists::of(&stage.predicate);
    }
    Ok(stages)
}

/// Reports a mismatched value before anything is read, even if there is nothing to read.
fn check_types(table: &Table, part: &Predicate, columns: &[usize]) -> Result<(), TableError> {
    let schema = table.schema().project(columns).map_err(|error| damaged(table, &error))?;
    let nothing = empty_batch(&schema.into(), 0);
    evaluate(part, &nothing).map(|_| ()).map_err(|error| misfit(table, error))
}

fn flatten<'a>(predicate: &'a Predicate, parts: &mut Vec<&'a Predicate>) {
    match predicate {
        Predicate::And(inner) => inner.iter().for_each(|part| flatten(part, parts)),
        other => parts.push(other),
    }
}

/// The rows of the candidates, neighbours joined; and how many candidates there were.
fn join(candidates: impl IntoIterator<Item = Range<u64>>, rows: u64) -> (Vec<Range<u64>>, u64) {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let (mut count, mut free) = (0, 0);
    for range in candidates {
        assert!(range.start >= free, "candidates must rise");
        (count, free) = (count + 1, range.end);
        let (start, end) = (range.start.min(rows), range.end.min(rows));
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ if start < end => ranges.push(start..end),
            _ => {}
        }
    }
    (ranges, count)
}

/// Drops pieces of the ranges in which nothing passed, and returns the mask of what is left.
fn keep_live(ranges: &mut Vec<Range<u64>>, passed: &[bool]) -> Vec<bool> {
    /// Pieces are about as large as a block: smaller ones would not save a page.
    const PIECE: u64 = 512;
    let mut live: Vec<Range<u64>> = Vec::new();
    let mut mask = Vec::new();
    let mut at = 0;
    for range in ranges.iter() {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + PIECE);
            let piece = &passed[at..at + (end - start) as usize];
            if piece.contains(&true) {
                match live.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => live.push(start..end),
                }
                mask.extend_from_slice(piece);
            }
            at += piece.len();
            start = end;
        }
    }
    *ranges = live;
    mask
}

/// Ranges that hold all of these rows and few others.
fn runs(rows: &[u64]) -> Vec<Range<u64>> {
    let near = rows.chunk_by(|a, b| b - a <= GAP);
    near.map(|run| run[0]..run[run.len() - 1] + 1).collect()
}

fn empty_batch(schema: &SchemaRef, rows: usize) -> RecordBatch {
    if !schema.fields().is_empty() {
        return RecordBatch::new_empty(schema.clone());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), Vec::new(), &options)
        .expect("no columns have any number of rows")
}

fn misfit(table: &Table, error: EvaluateError) -> TableError {
    TableError::Condition { path: table.location().into(), error }
}

fn damaged(table: &Table, error: &arrow::error::ArrowError) -> TableError {
    TableError::damaged(table.location(), error)
}
