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
//! of bounded size, so that the result of a condition that every row satisfies does not have to fit into memory. If there are many
//! candidates, several steps are taken at the same time, by a thread each, and their rows are returned in order.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Schema, SchemaRef};

use crate::evaluate::{LongLists, evaluate, evaluate_with};
use crate::table::{OwnFilters, Reads, Table, TableError};
use crate::{EvaluateError, Predicate};

/// Maximum number of rows read before returning what was found. DuckDB's row groups are a little smaller.
const STEP_ROWS: u64 = 1 << 17;

/// Steps for each thread at a time if nothing is selected, so that no thread waits for the slowest one for long. What is found then
/// is a number for each row.
const STEPS_AHEAD: usize = 4;

/// With more rows of candidates than this, all processors search.
const MANY_ROWS: u64 = 2 * STEP_ROWS;

/// The most threads of a search: more would only hold more rows at the same time.
const MAX_THREADS: usize = 8;

/// Matching rows at most this far apart are read together: starting a new read costs more than decoding a few more
/// rows.
const GAP: u64 = 32;

/// Rows that satisfy a predicate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Match {
    /// Their numbers in the table, counted from 0, ascending; none if they are only [counted](crate::Search::count_only).
    pub rows: Vec<u64>,
    /// Their selected columns, with as many rows as match; no columns if none were selected.
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
    question: Question,
    /// Candidate rows not examined yet, the last one first.
    left: Vec<Range<u64>>,
    /// Matches that are not returned yet.
    ready: VecDeque<Match>,
    /// An error that comes after them.
    failed: Option<TableError>,
    threads: usize,
    report: Report,
}

/// A question to the rows of a table.
struct Question {
    /// Nothing is wanted but how many rows match.
    only_counts: bool,
    /// Candidate rows that need not be compared: the index knows that all of them match.
    certain: Vec<Range<u64>>,
    stages: Vec<Stage>,
    select: Vec<usize>,
    select_schema: SchemaRef,
}

/// The matches of a step, if there are any, and what it cost.
type Examined = Result<(Option<Match>, Report), TableError>;

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
        let rows: u64 = left.iter().map(|range| range.end - range.start).sum();
        // Requests for parts of an object are made together anyway.
        let threads = match rows > MANY_ROWS && !table.is_object() {
            true => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS))
            }
            false => 1,
        };
        let select_schema = std::sync::Arc::new(Schema::new(fields));
        let certain = Vec::new();
        let question = Question { only_counts: false, certain, stages, select, select_schema };
        let (ready, failed) = (VecDeque::new(), None);
        Ok(Self { table, question, left, ready, failed, threads, report })
    }

    /// Leaves out the numbers of rows, if no columns were selected.
    pub(crate) fn count_only(&mut self) {
        self.question.only_counts = self.question.select.is_empty();
    }

    /// Names rows that need not be compared: ascending ranges in which all match.
    pub(crate) fn without_comparing(&mut self, certain: impl IntoIterator<Item = Range<u64>>) {
        self.question.certain = join(certain, self.table.rows()).0;
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
        let batch = self.question.joined(&self.table, &batches, rows.len())?;
        Ok((Match { rows, batch }, self.report))
    }

    /// The matches of the next step that has any.
    fn step(&mut self) -> Result<Option<Match>, TableError> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Ok(Some(found));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.left.is_empty() {
                return Ok(None);
            }
            self.steps();
        }
    }

    /// Takes the next steps, each by the first thread that is free.
    fn steps(&mut self) {
        let ahead = if self.question.select.is_empty() { STEPS_AHEAD } else { 1 };
        let count = if self.threads > 1 { self.threads * ahead } else { 1 };
        let parts: Vec<Vec<Range<u64>>> = std::iter::repeat_with(|| self.next_ranges())
            .take(count)
            .take_while(|ranges| !ranges.is_empty())
            .collect();
        let (table, question, next) = (&*self.table, &self.question, AtomicUsize::new(0));
        let work = || {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let mine = mine.map_while(|number| Some((number, parts.get(number)?.clone())));
            mine.map(|(number, ranges)| (number, question.examine(table, ranges))).collect()
        };
        let mut examined: Vec<(usize, Examined)> = std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..self.threads.min(parts.len())).map(|_| scope.spawn(work)).collect();
            let mut examined: Vec<_> = work();
            for other in others {
                let panicked = |panic| std::panic::resume_unwind(panic);
                examined.extend(other.join().unwrap_or_else(panicked));
            }
            examined
        });
        examined.sort_unstable_by_key(|(number, _)| *number);
        for (_, part) in examined {
            match part {
                Ok((found, report)) => {
                    self.report.add(&report);
                    self.ready.extend(found);
                }
                Err(error) => {
                    self.left.clear();
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }

    /// Takes up to [`STEP_ROWS`] rows of candidates, of one row group unless groups are small: two threads in the same one would
    /// both decompress its pages.
    fn next_ranges(&mut self) -> Vec<Range<u64>> {
        let (mut room, mut group_end) = (STEP_ROWS, 0);
        let mut ranges = Vec::new();
        while room > 0
            && let Some(next) = self.left.pop()
        {
            if next.start >= group_end {
                if room <= STEP_ROWS / 2 {
                    self.left.push(next);
                    break;
                }
                group_end = self.table.group_end(next.start);
            }
            let cut = next.end.min(group_end).min(next.start + room);
            if cut < next.end {
                self.left.push(cut..next.end);
            }
            room -= cut - next.start;
            ranges.push(next.start..cut);
        }
        ranges
    }
}

impl Question {
    /// The matches among these rows, if there are any, and what it cost.
    fn examine(&self, table: &Table, ranges: Vec<Range<u64>>) -> Examined {
        let mut report = Report::default();
        let (certain, open) = split(ranges, &self.certain);
        let (ranges, passed) = self.verify(table, open, &mut report)?;
        if self.only_counts && !table.has_deleted_rows() {
            let compared = passed.map_or(rows_of(&ranges), |passed| passed.count_set_bits() as u64);
            let count = rows_of(&certain) + compared;
            report.rows_matched += count;
            let batch = empty_batch(&self.select_schema, count as usize);
            return Ok(((count > 0).then_some(Match { rows: Vec::new(), batch }), report));
        }
        let mut rows: Vec<u64> = match passed {
            Some(passed) => rows_that(&ranges, &passed),
            // No stages: an AND of nothing, which is true.
            None => ranges.into_iter().flatten().collect(),
        };
        if !certain.is_empty() {
            rows.extend(certain.into_iter().flatten());
            // Two runs that rise.
            rows.sort();
        }
        if table.has_deleted_rows() {
            rows.retain(|&row| !table.is_deleted(row));
        }
        if rows.is_empty() {
            return Ok((None, report));
        }
        report.rows_matched += rows.len() as u64;
        let batch = self.fetch(table, &rows, &mut report)?;
        Ok((Some(Match { rows, batch }), report))
    }

    /// Those of these ranges that may have rows which pass all stages, and which rows do; `None` if all do.
    fn verify(
        &self,
        table: &Table,
        mut ranges: Vec<Range<u64>>,
        report: &mut Report,
    ) -> Result<(Vec<Range<u64>>, Option<BooleanBuffer>), TableError> {
        let mut passed: Option<BooleanBuffer> = None;
        if ranges.is_empty() {
            return Ok((ranges, passed));
        }
        report.rows_verified += rows_of(&ranges);
        for (number, stage) in self.stages.iter().enumerate() {
            let mut both = stage.ask(table, &ranges, report)?;
            if let Some(before) = passed {
                both = &both & &before;
            }
            let is_last = number + 1 == self.stages.len();
            passed = Some(if is_last { both } else { keep_live(&mut ranges, &both) });
            if ranges.is_empty() {
                break;
            }
        }
        Ok((ranges, passed))
    }

    /// The selected columns of these rows.
    fn fetch(
        &self,
        table: &Table,
        rows: &[u64],
        report: &mut Report,
    ) -> Result<RecordBatch, TableError> {
        if self.select.is_empty() {
            return Ok(empty_batch(&self.select_schema, rows.len()));
        }
        let start = Instant::now();
        let ranges = runs(rows);
        let Batches { batches, reads } = read(table, &ranges, &self.select)?;
        let around = self.joined(table, &batches, 0)?;
        let batch = if around.num_rows() == rows.len() {
            around
        } else {
            let mask = BooleanArray::new(mask_of(&ranges, rows), None);
            filter_record_batch(&around, &mask).map_err(|error| damaged(table, &error))?
        };
        report.select_time += start.elapsed();
        report.select_reads.add(reads);
        Ok(batch)
    }

    /// Batches of selected columns as one; of `rows` rows if there are no columns.
    fn joined(
        &self,
        table: &Table,
        batches: &[RecordBatch],
        rows: usize,
    ) -> Result<RecordBatch, TableError> {
        match batches {
            _ if self.select.is_empty() => Ok(empty_batch(&self.select_schema, rows)),
            [] => Ok(RecordBatch::new_empty(self.select_schema.clone())),
            [only] => Ok(only.clone()),
            many => concat_batches(&many[0].schema(), many).map_err(|error| damaged(table, &error)),
        }
    }
}

impl Stage {
    /// Which rows of these ranges pass.
    fn ask(
        &self,
        table: &Table,
        ranges: &[Range<u64>],
        report: &mut Report,
    ) -> Result<BooleanBuffer, TableError> {
        let start = Instant::now();
        let Batches { batches, reads } = read(table, ranges, &self.columns)?;
        let read = Instant::now();
        let mut mask = BooleanBufferBuilder::new(rows_of(ranges) as usize);
        for batch in &batches {
            let passed = evaluate_with(&self.predicate, &self.lists, batch);
            mask.append_buffer(&passed.map_err(|error| misfit(table, error))?);
        }
        report.read_time += read - start;
        report.compare_time += read.elapsed();
        report.verify_reads.add(reads);
        Ok(mask.finish())
    }
}

fn read(table: &Table, ranges: &[Range<u64>], columns: &[usize]) -> Result<Batches, TableError> {
    let mut reads = Reads::default();
    let batches = if columns.is_empty() {
        // A constant such as `not ()`, which needs rows but no columns.
        vec![empty_batch(&Schema::empty().into(), rows_of(ranges) as usize)]
    } else {
        table.read_rows(ranges, columns, &mut reads)?
    };
    Ok(Batches { batches, reads })
}

fn rows_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

/// The rows of the ranges that passed.
fn rows_that(ranges: &[Range<u64>], passed: &BooleanBuffer) -> Vec<u64> {
    let mut rows = Vec::with_capacity(passed.count_set_bits());
    let mut at = 0;
    for range in ranges {
        let length = (range.end - range.start) as usize;
        let within = passed.slice(at, length);
        rows.extend(within.set_indices().map(|place| range.start + place as u64));
        at += length;
    }
    rows
}

/// Which rows of the ranges are these, which are all in them.
fn mask_of(ranges: &[Range<u64>], rows: &[u64]) -> BooleanBuffer {
    let mut mask = BooleanBufferBuilder::new(0);
    let mut rows = rows.iter().copied().peekable();
    for range in ranges {
        let start = mask.len();
        mask.append_n((range.end - range.start) as usize, false);
        while let Some(row) = rows.next_if(|row| *row < range.end) {
            mask.set_bit(start + (row - range.start) as usize, true);
        }
    }
    mask.finish()
}

impl<T: Deref<Target = Table>> Iterator for Find<T> {
    type Item = Result<Match, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.left.clear();
            self.ready.clear();
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
    let mut stages: Vec<(Vec<usize>, Vec<Predicate>)> = Vec::new();
    for part in parts {
        let names = part.columns();
        let mut columns =
            names.into_iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
        columns.sort_unstable();
        columns.dedup();
        check_types(table, part, &columns)?;
        match stages.iter_mut().find(|(of, _)| *of == columns) {
            Some((_, parts)) => parts.push(part.clone()),
            None => stages.push((columns, vec![part.clone()])),
        }
    }
    let stage = |(columns, parts)| {
        // Side by side, as deep as they were written: thousands of parts, one inside the other, would not fit onto a stack.
        let predicate = Predicate::And(parts);
        Stage { lists: LongLists::of(&predicate), predicate, columns }
    };
    Ok(stages.into_iter().map(stage).collect())
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

/// Divides ranges into what lies in others, and what does not; all of them rise.
fn split(ranges: Vec<Range<u64>>, others: &[Range<u64>]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    if others.is_empty() {
        return (inside, ranges);
    }
    for range in ranges {
        let mut start = range.start;
        let first = others.partition_point(|other| other.end <= start);
        for other in others[first..].iter().take_while(|other| other.start < range.end) {
            let (low, high) = (other.start.max(start), other.end.min(range.end));
            outside.extend((start < low).then_some(start..low));
            inside.push(low..high);
            start = high;
        }
        outside.extend((start < range.end).then_some(start..range.end));
    }
    (inside, outside)
}

/// Drops pieces of the ranges in which nothing passed, and returns the mask of what is left.
fn keep_live(ranges: &mut Vec<Range<u64>>, passed: &BooleanBuffer) -> BooleanBuffer {
    /// Pieces are about as large as a block: smaller ones would not save a page.
    const PIECE: u64 = 512;
    let mut live: Vec<Range<u64>> = Vec::new();
    let mut mask = BooleanBufferBuilder::new(0);
    let mut at = 0;
    for range in ranges.iter() {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + PIECE);
            let piece = passed.slice(at, (end - start) as usize);
            if piece.count_set_bits() > 0 {
                match live.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => live.push(start..end),
                }
                mask.append_buffer(&piece);
            }
            at += piece.len();
            start = end;
        }
    }
    *ranges = live;
    mask.finish()
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
