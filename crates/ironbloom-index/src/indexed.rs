//! An index and its tables together: files in, rows out.
//!
//! ```text
//!  build     tables ──► Index ──► t.ibx
//!  open      t.ibx ──► Index
//!  find      predicate ──► candidates (index) ──► rows (tables that have candidates, compared with what they were)
//! ```
//!
//! A table that is missing or has changed is an error for the questions whose answer may be in it, and for no others.
//!
//! Tables are remembered by their path relative to the folder of the index if they are in it, and by their full path if
//! not: a folder with both can be moved.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;

use crate::error::Error;
use crate::find::{Find, Match, Report};
use crate::index::Index;
use crate::lock::IndexLock;
use crate::open_tables::{OpenTables, with_types};
use crate::predicate::Predicate;
use crate::schema::{Column, columns_named, columns_of};
use crate::source::{Source, SourceMeta};
use crate::table::{Compared, CsvOptions, Identity, Table, TableError, csv_options_in};
use crate::{Block, Candidates, IndexBuilder};
use ironbloom_blocks::Params;

/// Rows read at a time while an index is built.
const BATCH_ROWS: usize = 1 << 16;

/// An error from an index or its tables.
#[derive(Debug)]
#[non_exhaustive]
pub enum IndexedError {
    /// From the index.
    Index(Error),
    /// From a table; the error names it.
    Table(TableError),
    /// From the index, because of this table.
    Indexing {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Error,
    },
    /// A table path that an index cannot store: it is not UTF-8, or has no folder.
    Path {
        /// The file.
        path: PathBuf,
    },
    /// No table was given.
    NoTables,
}

impl fmt::Display for IndexedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::Indexing { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Path { path } => {
                write!(f, "{}: an index keeps only paths that are UTF-8", path.display())
            }
            Self::NoTables => f.write_str("an index needs a table"),
        }
    }
}

impl std::error::Error for IndexedError {}

impl IndexedError {
    /// Whether a single table is missing or has changed, and the others may be intact.
    pub fn is_of_one_table(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_of_the_file())
    }
}

impl From<Error> for IndexedError {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl From<TableError> for IndexedError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

/// Indexes whole tables: these columns of each, or all that can be indexed. `progress` is called with the number of
/// rows read so far. The index will be saved as `file`.
pub fn index_tables(
    tables: &[PathBuf],
    columns: Option<&[String]>,
    params: Params,
    file: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, IndexedError> {
    index_tables_with(tables, columns, params, file, &CsvOptions::default(), progress)
}

/// As [`index_tables`], with CSV read by these options.
pub fn index_tables_with(
    tables: &[PathBuf],
    columns: Option<&[String]>,
    params: Params,
    file: &Path,
    csv: &CsvOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, IndexedError> {
    let first = Table::open_with(tables.first().ok_or(IndexedError::NoTables)?, csv)?;
    let columns = match columns {
        Some(names) => columns_named(first.schema(), names),
        None => columns_of(first.schema()),
    };
    let columns = columns.map_err(|error| about(&first, error))?;
    let mut builder = IndexBuilder::new(columns.clone(), params)?;
    drop(first);
    let mut rows = 0;
    for path in tables {
        let progress = &mut |more| progress(rows + more);
        rows += add_table(&mut builder, &columns, path, file, csv, progress)?;
    }
    Ok(builder.finish()?)
}

/// Indexes more tables, or the new rows of tables that have grown, to be [appended](Index::append) to an index that is saved
/// as `file`.
///
/// CSV is read like the CSV files of the index. (If those were read differently: like the first of them.)
pub fn index_more_tables(
    index: &Index,
    tables: &[PathBuf],
    file: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, IndexedError> {
    let csv = remembered_options(index)?.unwrap_or_default();
    index_more_tables_with(index, tables, file, &csv, progress)
}

/// As [`index_more_tables`], with new CSV files read by these options.
pub fn index_more_tables_with(
    index: &Index,
    tables: &[PathBuf],
    file: &Path,
    csv: &CsvOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Index, IndexedError> {
    let mut builder = IndexBuilder::like(index)?;
    let columns = index.columns().to_vec();
    let mut rows = 0;
    for path in tables {
        let progress = &mut |more| progress(rows + more);
        rows += match index.source(&source_name(path, file)?) {
            None => add_table(&mut builder, &columns, path, file, csv, progress)?,
            Some(source) => add_rows(&mut builder, index, source, path, progress)?,
        };
    }
    Ok(builder.finish()?)
}

/// Adds tables, or the new rows of tables that have grown, to the index that is saved as `file`, and returns it with the
/// lock under which it must be [saved](IndexLock::save). `csv` makes the options of new CSV files from those of the index.
///
/// The tables are read before `lock` is called, so that others can change the index meanwhile; the rows are then appended to
/// the changed index. Tables are read again only if those changes concern them.
pub fn append_tables(
    file: &Path,
    tables: &[PathBuf],
    csv: impl Fn(CsvOptions) -> CsvOptions,
    lock: impl FnOnce() -> Result<IndexLock, Error>,
    progress: &mut dyn FnMut(u64),
) -> Result<(IndexLock, Index), IndexedError> {
    let mut rows_of = |index: &Index| {
        let csv = csv(remembered_options(index)?.unwrap_or_default());
        index_more_tables_with(index, tables, file, &csv, progress)
    };
    let seen = Index::open(file)?;
    let more = rows_of(&seen)?;
    let lock = lock()?;
    let mut index = lock.open()?;
    let more = if still_fits(&more, &seen, &index) { more } else { rows_of(&index)? };
    index.append(more)?;
    Ok((lock, index))
}

/// Whether rows that were indexed to be appended to `seen` can be appended to its current state.
fn still_fits(more: &Index, seen: &Index, now: &Index) -> bool {
    let state = |index: &Index, name: &str| {
        let source = &index.sources()[index.source(name)?];
        Some((source.bytes(), source.fingerprint(), source.rows()))
    };
    let unchanged = |source: &Source| state(seen, source.name()) == state(now, source.name());
    seen.is_same_state(now)
        || (seen.columns() == now.columns()
            && seen.params() == now.params()
            && more.sources().iter().all(unchanged))
}

/// How the first CSV file of an index was read; `None` if it has none.
pub fn remembered_options(index: &Index) -> Result<Option<CsvOptions>, IndexedError> {
    for source in 0..index.sources().len() {
        if let Some((options, _)) = csv_options_in(index.blob(source)?) {
            return Ok(Some(options));
        }
    }
    Ok(None)
}

/// Adds all rows of a table, and returns their number.
fn add_table(
    builder: &mut IndexBuilder,
    columns: &[Column],
    path: &Path,
    file: &Path,
    csv: &CsvOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, IndexedError> {
    let table = Table::open_with(path, csv)?;
    builder.start(source_name(path, file)?).map_err(|error| about(&table, error))?;
    read(builder, columns, &table, 0, progress)
}

/// Adds the rows that were appended to a table since it was indexed, and returns their number.
fn add_rows(
    builder: &mut IndexBuilder,
    index: &Index,
    number: usize,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, IndexedError> {
    let source = &index.sources()[number];
    let known = Identity { length: source.bytes(), fingerprint: source.fingerprint() };
    let table = Table::open_grown(path, index.blob(number)?)?;
    if table.identity() == known {
        return Err(about(&table, Error::TwoSources { source: source.name().to_owned() }));
    }
    let first_row = table.rows_before(index.blob(number)?)?;
    builder.start_at(source.name(), first_row).map_err(|error| about(&table, error))?;
    read(builder, index.columns(), &table, first_row, progress)
}

/// Reads a table from this row on, and ends its source.
fn read(
    builder: &mut IndexBuilder,
    columns: &[Column],
    table: &Table,
    first_row: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, IndexedError> {
    let numbers: Vec<usize> =
        columns.iter().map(|column| table.column(&column.name)).collect::<Result<_, _>>()?;
    let mut rows = 0;
    for batch in table.scan_from(first_row, &numbers, BATCH_ROWS)? {
        let batch = batch?;
        builder.push(&batch).map_err(|error| about(table, error))?;
        rows += batch.num_rows() as u64;
        progress(rows);
    }
    let Identity { length, fingerprint } = table.identity();
    let blob = table.notes(&numbers)?;
    table.check_unchanged()?;
    builder.end(SourceMeta { bytes: length, fingerprint, blob })?;
    Ok(rows)
}

fn about(table: &Table, error: Error) -> IndexedError {
    IndexedError::Indexing { path: table.path().into(), error }
}

/// The name under which an index saved as `file` keeps a table.
pub fn source_name(table: &Path, file: &Path) -> Result<String, IndexedError> {
    let unknown = || IndexedError::Path { path: table.into() };
    let full = std::fs::canonicalize(table)
        .map_err(|error| TableError::Io { path: table.into(), error })?;
    let name = match folder_of(file).canonicalize() {
        Ok(folder) => full.strip_prefix(folder).unwrap_or(&full),
        Err(_) => &full,
    };
    Ok(name.to_str().ok_or_else(unknown)?.to_owned())
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// An index with its tables, ready for queries. See the module documentation.
pub struct Indexed {
    index: Index,
    tables: OpenTables,
}

impl Indexed {
    /// Opens an index. Its tables are opened when a question needs them.
    pub fn open(file: impl AsRef<Path>) -> Result<Self, IndexedError> {
        let file = file.as_ref();
        let index = Index::open(file)?;
        Ok(Self { index, tables: OpenTables::new(folder_of(file).to_owned()) })
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// A table by its position in [`Index::sources`].
    ///
    /// # Errors
    ///
    /// [`IndexedError::Table`] if it is missing or has changed: it must be indexed again.
    ///
    /// # Panics
    ///
    /// If there is no such table.
    pub fn table(&self, number: usize) -> Result<Arc<Table>, IndexedError> {
        self.tables.get(&self.index, number)
    }

    /// Names and types of columns: those of the first table that exists and is unchanged. A column in which it has only nulls
    /// has its type in other tables.
    ///
    /// # Errors
    ///
    /// What is wrong with the first table if there is no such table, and [`IndexedError::NoTables`] if there are none.
    pub fn schema(&self) -> Result<SchemaRef, IndexedError> {
        let first = self.any_table()?;
        let others = (0..self.index.sources().len()).filter_map(|number| self.table(number).ok());
        Ok(with_types(first.schema(), self.index.columns(), others))
    }

    fn any_table(&self) -> Result<Arc<Table>, IndexedError> {
        let mut first_error = None;
        for number in 0..self.index.sources().len() {
            match self.table(number) {
                Ok(table) => return Ok(table),
                Err(error) if error.is_of_one_table() => {
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(first_error.unwrap_or(IndexedError::NoTables))
    }

    /// The rows that match, table by table in the order of rows, with these columns. Columns that are not indexed may be in the
    /// predicate, too: they are compared, but exclude no blocks.
    pub fn find<'a>(
        &'a self,
        predicate: &Predicate,
        select: &[&str],
    ) -> Result<Search<'a>, IndexedError> {
        let start = Instant::now();
        let known = |column: &str| self.index.columns().iter().any(|known| known.name == column);
        let Candidates { blocks, considered } =
            self.index.candidates(&relaxed(predicate, &known))?;
        let explanation = Explanation {
            considered,
            candidates: blocks.len() as u64,
            index_time: start.elapsed(),
            tables: Report::default(),
        };
        let (predicate, select) = (predicate.clone(), select.iter().map(|&s| s.into()).collect());
        let search = Search {
            indexed: self,
            predicate,
            select,
            left: by_source(&blocks),
            current: None,
            explanation,
            skipped: None,
        };
        // A value or column that does not match is an error even if there is nothing to search.
        if search.left.is_empty()
            && let Ok(table) = self.any_table()
        {
            search.within(table, Vec::new())?;
        }
        Ok(search)
    }

    /// Reads all tables and compares them with what they were when they were indexed. `progress` is called with the number
    /// of rows of the tables that are done.
    pub fn verify_tables(&self, progress: &mut dyn FnMut(u64)) -> TableCheck {
        let mut check = TableCheck::default();
        let mut rows = 0;
        for (number, source) in self.index.sources().iter().enumerate() {
            match self.tables.open(&self.index, number) {
                Ok(table) => {
                    let Compared { errors, unchecked } = table.verify();
                    check.errors.extend(errors.into_iter().map(IndexedError::Table));
                    if !unchecked.is_empty() {
                        check.unchecked.push((source.name().to_owned(), unchecked));
                    }
                }
                Err(error) => check.errors.push(error),
            }
            rows += source.rows();
            progress(rows);
        }
        check
    }
}

/// What reading all tables has shown.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TableCheck {
    /// Every table that is missing or has changed, and how; once for each of its columns.
    pub errors: Vec<IndexedError>,
    /// Tables with columns that could not be compared because there are no checksums: neither of the index, which has them
    /// for indexed columns, nor of the writer of the table.
    pub unchecked: Vec<(String, Vec<String>)>,
}

/// The same predicate with "true" for what the index does not know: it may match more, but never less. (Under a `Not`
/// the index is not used at all.)
fn relaxed(predicate: &Predicate, known: &dyn Fn(&str) -> bool) -> Predicate {
    let all = |parts: &[Predicate]| parts.iter().map(|part| relaxed(part, known)).collect();
    match predicate {
        Predicate::And(parts) => Predicate::And(all(parts)),
        Predicate::Or(parts) => Predicate::Or(all(parts)),
        Predicate::Eq(column, _)
        | Predicate::In(column, _)
        | Predicate::IsNull(column)
        | Predicate::Range { column, .. }
            if !known(column) =>
        {
            Predicate::And(Vec::new())
        }
        Predicate::Not(_) => Predicate::And(Vec::new()),
        known => known.clone(),
    }
}

fn by_source(blocks: &[Block]) -> VecDeque<(usize, Vec<Range<u64>>)> {
    let groups = blocks.chunk_by(|a, b| a.source == b.source);
    groups.map(|group| (group[0].source, group.iter().map(Block::range).collect())).collect()
}

/// What a search did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// Blocks of all tables.
    pub considered: u64,
    /// Blocks that the index did not rule out.
    pub candidates: u64,
    /// Time the index took.
    pub index_time: Duration,
    /// What was done with the tables.
    pub tables: Report,
}

/// A search in progress: an iterator over the matches, each with the number of its table.
pub struct Search<'a> {
    indexed: &'a Indexed,
    predicate: Predicate,
    select: Vec<String>,
    left: VecDeque<(usize, Vec<Range<u64>>)>,
    current: Option<(usize, Find<Arc<Table>>)>,
    explanation: Explanation,
    /// Why tables were skipped, if that is wanted.
    skipped: Option<Vec<TableError>>,
}

impl Search<'_> {
    /// What has been done so far. Tables are counted when they are done.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// Continues with the next table if one is missing, has changed or cannot be read. Then matches may be missing: see
    /// [`skipped`](Self::skipped).
    pub fn skip_changed(&mut self) {
        self.skipped.get_or_insert_default();
    }

    /// What is wrong with the tables that were skipped so far. Matches that they returned before are right.
    pub fn skipped(&self) -> &[TableError] {
        self.skipped.as_deref().unwrap_or_default()
    }

    /// A search through these rows of a table.
    fn within(
        &self,
        table: Arc<Table>,
        ranges: Vec<Range<u64>>,
    ) -> Result<Find<Arc<Table>>, TableError> {
        let select: Vec<&str> = self.select.iter().map(String::as_str).collect();
        Find::new(table, &self.predicate, ranges, &select)
    }

    fn step(&mut self) -> Result<Option<(usize, Match)>, IndexedError> {
        loop {
            if let Some((number, find)) = &mut self.current {
                if let Some(found) = find.next().transpose()? {
                    return Ok(Some((*number, found)));
                }
                self.end_table();
            }
            let Some((number, ranges)) = self.left.pop_front() else { return Ok(None) };
            let table = self.indexed.table(number)?;
            self.current = Some((number, self.within(table, ranges)?));
        }
    }

    fn end_table(&mut self) {
        if let Some((_, find)) = self.current.take() {
            self.explanation.tables.add(find.report());
        }
    }

    /// As [`step`](Self::step), but skips tables if that is wanted.
    fn step_over(&mut self) -> Result<Option<(usize, Match)>, IndexedError> {
        loop {
            match (self.step(), &mut self.skipped) {
                (Err(IndexedError::Table(error)), Some(skipped)) if error.is_of_the_file() => {
                    skipped.push(error);
                    self.end_table();
                }
                (done, _) => return done,
            }
        }
    }
}

impl Iterator for Search<'_> {
    type Item = Result<(usize, Match), IndexedError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step_over();
        if step.is_err() {
            (self.left, self.current) = (VecDeque::new(), None);
        }
        step.transpose()
    }
}
