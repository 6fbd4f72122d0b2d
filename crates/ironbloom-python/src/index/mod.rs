//! The index on tables.

#![expect(
    clippy::result_large_err,
    reason = "errors of the index name files, and become exceptions here"
)]

pub(crate) mod change;
pub(crate) mod expression;
mod progress;
pub(crate) mod search;
pub(crate) mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use ironbloom_index::{Block, Explanation, Indexed, IndexedError, Location, Predicate};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::change::Limits;
use self::expression::condition;
use self::progress::with_progress;
use self::search::{Batches, Found, Question};
use self::table::{Table, row_groups, with_schema};
use crate::batch::capsule::raised;
use crate::errors::{OrRaise, named};

/// A search of at most this many blocks takes a fraction of a second: it is not worth a thread.
const SHORT: u64 = 1024;

/// An index with its tables.
#[pyclass(frozen, subclass, module = "ironbloom._native")]
pub(crate) struct Index {
    file: Location,
    /// Replaced when the index is changed.
    indexed: RwLock<Arc<Indexed>>,
}

/// Ranges of rows, each from its first to before its end.
type Ranges = Vec<(u64, u64)>;

/// The tables that have candidates, by their numbers in the index.
type Candidates = Vec<(usize, Ranges)>;

impl Index {
    fn current(&self) -> Arc<Indexed> {
        self.indexed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Opens the index again, after it was changed.
    fn reopen(&self, py: Python<'_>) -> PyResult<()> {
        let opened = py.detach(|| Indexed::open(&self.file)).or_raise(py)?;
        *self.indexed.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
        Ok(())
    }

    fn predicate(py: Python<'_>, given: &Bound<'_, PyAny>, schema: &Schema) -> PyResult<Predicate> {
        let condition = condition(given)?;
        py.detach(|| condition.typed(schema)).or_raise(py)
    }

    fn question(
        &self,
        py: Python<'_>,
        given: &Bound<'_, PyAny>,
        select: Option<Vec<String>>,
        skip_changed: bool,
    ) -> PyResult<Question> {
        let indexed = self.current();
        let all = py.detach(|| indexed.schema()).or_raise(py)?;
        let predicate = Self::predicate(py, given, &all)?;
        let select = select
            .unwrap_or_else(|| all.fields().iter().map(|field| field.name().clone()).collect());
        let mut fields = Vec::new();
        for name in &select {
            let field = all.field_with_name(name).map_err(|_| {
                let known: Vec<&str> =
                    all.fields().iter().map(|field| field.name().as_str()).collect();
                let what = format!("no column {name}; there are {}", known.join(", "));
                named(py, "InvalidCondition", what)
            })?;
            fields.push(Field::new(name, field.data_type().clone(), true));
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        Ok(Question { indexed, predicate, select, schema, skip_changed })
    }

    /// All that is found, in this thread if that takes a moment.
    fn run(py: Python<'_>, question: &Question) -> PyResult<(Table, Option<Explanation>)> {
        let blocks = py
            .detach(|| question.indexed.candidates(&question.predicate))
            .or_raise(py)?
            .blocks
            .len() as u64;
        let (mut batches, mut end) = (Vec::new(), None);
        let mut take = |found: Found| -> Result<(), IndexedError> {
            match found {
                Found::Batch(batch) => batches.push(batch),
                Found::Failed(error) => return Err(error),
                Found::Done(done) => end = Some(*done),
            }
            Ok(())
        };
        if blocks <= SHORT {
            let mut failed = Ok(());
            py.detach(|| {
                question.search(&mut |found| {
                    failed = take(found);
                    failed.is_ok()
                });
            });
            failed.or_raise(py)?;
        } else {
            let search = Batches::start(question.clone())?;
            while let Some(found) = search.next(py)? {
                take(found).or_raise(py)?;
            }
        }
        let batches = batches.iter().map(|batch| with_schema(batch, &question.schema));
        let batches = batches.collect::<Result<_, _>>().map_err(raised)?;
        let (explanation, skipped) = match end {
            Some((explanation, skipped)) => (Some(explanation), skipped),
            None => (None, Vec::new()),
        };
        Ok((Table::new(question.schema.clone(), batches, skipped), explanation))
    }

    /// Ranges of rows that may match.
    fn ranges(
        py: Python<'_>,
        indexed: &Indexed,
        condition: &Bound<'_, PyAny>,
    ) -> PyResult<Candidates> {
        let schema = py.detach(|| indexed.schema()).or_raise(py)?;
        let predicate = Self::predicate(py, condition, &schema)?;
        let blocks = py.detach(|| indexed.candidates(&predicate)).or_raise(py)?.blocks;
        Ok(blocks.iter().fold(Vec::new(), with_block))
    }

    /// Where a table of the index is, as Python names it.
    fn table_path(&self, indexed: &Indexed, number: usize) -> OsString {
        let table = self.file.folder().join(indexed.index().sources()[number].name());
        as_path(&table)
    }
}

/// A file or a URL for Python, as a `str`: a `Path` would drop one slash of `s3://`.
fn as_path(location: &Location) -> OsString {
    location.as_file().map_or_else(|| location.to_string().into(), OsString::from)
}

/// One block more, at the end of the last range if it follows that.
fn with_block(mut tables: Candidates, block: &Block) -> Candidates {
    let range = block.range();
    match tables.last_mut() {
        Some((source, ranges)) if *source == block.source => match ranges.last_mut() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => ranges.push((range.start, range.end)),
        },
        _ => tables.push((block.source, vec![(range.start, range.end)])),
    }
    tables
}

/// Columns that have one value in a table, as a table of one row.
fn constants(columns: Vec<(String, ArrayRef)>) -> PyResult<Table> {
    if columns.is_empty() {
        return Ok(Table::new(Arc::new(Schema::empty()), Vec::new(), Vec::new()));
    }
    let row = RecordBatch::try_from_iter(columns).map_err(raised)?;
    Ok(Table::new(row.schema(), vec![row], Vec::new()))
}

#[pymethods]
impl Index {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = Location::from(path);
        let opened = py.detach(|| Indexed::open(&file)).or_raise(py)?;
        Ok(Self { file, indexed: RwLock::new(Arc::new(opened)) })
    }

    /// The file, or the URL.
    #[getter]
    fn path(&self) -> OsString {
        as_path(&self.file)
    }

    #[pyo3(signature = (condition, select=None, skip_changed=false))]
    fn _find(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyAny>,
        select: Option<Vec<String>>,
        skip_changed: bool,
    ) -> PyResult<Table> {
        let question = self.question(py, condition, select, skip_changed)?;
        Ok(Self::run(py, &question)?.0)
    }

    #[pyo3(signature = (condition, select=None, skip_changed=false))]
    fn _find_batches(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyAny>,
        select: Option<Vec<String>>,
        skip_changed: bool,
    ) -> PyResult<Batches> {
        Ok(Batches::start(self.question(py, condition, select, skip_changed)?)?)
    }

    #[pyo3(signature = (condition, select=None))]
    fn _explain<'py>(
        &self,
        py: Python<'py>,
        condition: &Bound<'py, PyAny>,
        select: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let question = self.question(py, condition, select, false)?;
        let (table, explanation) = Self::run(py, &question)?;
        let explanation = explanation.unwrap_or_default();
        let tables = &explanation.tables;
        let said = PyDict::new(py);
        said.set_item("blocks", explanation.considered)?;
        said.set_item("candidate_blocks", explanation.candidates)?;
        said.set_item("row_groups_excluded", tables.own_filters.excluded)?;
        said.set_item("rows_compared", tables.rows_verified)?;
        said.set_item("rows_found", table.rows())?;
        said.set_item("pages_read", tables.verify_reads.pages + tables.select_reads.pages)?;
        said.set_item("bytes_read", tables.verify_reads.bytes + tables.select_reads.bytes)?;
        said.set_item("index_seconds", explanation.index_time.as_secs_f64())?;
        said.set_item("read_seconds", tables.read_time.as_secs_f64())?;
        said.set_item("compare_seconds", tables.compare_time.as_secs_f64())?;
        said.set_item("select_seconds", tables.select_time.as_secs_f64())?;
        Ok(said)
    }

    /// For each table with candidates its path and ranges of rows.
    fn _candidates(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<(OsString, Ranges)>> {
        let indexed = self.current();
        let tables = Self::ranges(py, &indexed, condition)?.into_iter();
        Ok(tables.map(|(number, ranges)| (self.table_path(&indexed, number), ranges)).collect())
    }

    /// For each Parquet file with candidates its path, the row groups, and the columns that its folders say.
    fn _row_groups(
        &self,
        py: Python<'_>,
        condition: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<(OsString, Vec<usize>, Table)>> {
        let indexed = self.current();
        if let Some((format, _, _)) = indexed.followed() {
            let what = format!(
                "{}: the files of a {format} table also hold rows that were deleted; find returns those that are there",
                self.file
            );
            return Err(named(py, "Refused", what));
        }
        let mut found = Vec::new();
        for (number, ranges) in Self::ranges(py, &indexed, condition)? {
            let path = self.table_path(&indexed, number);
            if Location::from(path.clone()).is_object() {
                let what = format!("{}: is in a bucket; find reads it there", path.display());
                return Err(named(py, "Refused", what));
            }
            let groups = row_groups(py, path.as_ref(), &ranges)?;
            let constant = indexed.constants(number).or_raise(py)?;
            found.push((path, groups, constants(constant)?));
        }
        Ok(found)
    }

    /// The schema of the tables, as an empty table.
    fn _schema(&self, py: Python<'_>) -> PyResult<Table> {
        let schema = py.detach(|| self.current().schema()).or_raise(py)?;
        Ok(Table::new(schema, Vec::new(), Vec::new()))
    }

    fn _info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let indexed = self.current();
        let index = indexed.index();
        let info = index.info();
        let said = PyDict::new(py);
        said.set_item("rows", info.rows)?;
        said.set_item("blocks", info.blocks)?;
        said.set_item("segments", info.segments)?;
        said.set_item("bytes", info.bytes)?;
        said.set_item("block_rows", index.params().block_rows())?;
        said.set_item("selectivity", index.params().selectivity())?;
        let columns = PyDict::new(py);
        for column in &info.columns {
            let about = PyDict::new(py);
            about.set_item("kind", format!("{:?}", column.kind).to_lowercase())?;
            about.set_item("bytes", column.bytes)?;
            about.set_item("bits_per_cell", column.bits_per_cell)?;
            columns.set_item(&column.name, about)?;
        }
        said.set_item("columns", columns)?;
        let tables = PyDict::new(py);
        for source in index.sources() {
            tables.set_item(source.name(), source.rows())?;
        }
        said.set_item("tables", tables)?;
        if let Some((format, table, snapshot)) = indexed.followed() {
            let follows = PyDict::new(py);
            follows.set_item("format", format.to_string().to_lowercase())?;
            follows.set_item("table", as_path(&table))?;
            follows.set_item("snapshot", snapshot)?;
            said.set_item("follows", follows)?;
        }
        Ok(said)
    }

    #[pyo3(signature = (tables, csv=None, progress=None))]
    fn _append(
        &self,
        py: Python<'_>,
        tables: Vec<PathBuf>,
        csv: Option<&Bound<'_, PyDict>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        change::append(py, &self.file, &tables, csv, progress)?;
        self.reopen(py)
    }

    fn _compact(&self, py: Python<'_>, limits: Limits) -> PyResult<()> {
        change::compact(py, &self.file, limits)?;
        self.reopen(py)
    }

    fn _drop(&self, py: Python<'_>, tables: Vec<PathBuf>) -> PyResult<()> {
        if self.current().followed().is_some() {
            return Err(IndexedError::Following { path: self.file.clone() }).or_raise(py);
        }
        change::drop_tables(py, &self.file, &tables)?;
        self.reopen(py)
    }

    #[pyo3(signature = (table, only_check, progress=None))]
    fn _refresh<'py>(
        &self,
        py: Python<'py>,
        table: Option<PathBuf>,
        only_check: bool,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let said = change::refresh(py, &self.file, table, only_check, progress)?;
        self.reopen(py)?;
        Ok(said)
    }

    /// Problems found, and which columns of which tables could not be compared.
    #[pyo3(signature = (tables, progress=None))]
    fn _verify<'py>(
        &self,
        py: Python<'py>,
        tables: bool,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let indexed = self.current();
        let mut wrong: Vec<String> =
            py.detach(|| indexed.index().verify().iter().map(ToString::to_string).collect());
        let unchecked = PyDict::new(py);
        if tables {
            let check = with_progress(py, progress, |listener| {
                indexed.verify_tables(&mut |rows| listener.tell(rows))
            })?;
            wrong.extend(check.errors.iter().map(ToString::to_string));
            for (table, columns) in check.unchecked {
                unchecked.set_item(table, columns)?;
            }
        }
        let said = PyDict::new(py);
        said.set_item("errors", wrong)?;
        said.set_item("unchecked", unchecked)?;
        Ok(said)
    }
}
