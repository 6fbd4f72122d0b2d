//! Rows that were found, as Arrow: for pyarrow, pandas, polars, DuckDB and whoever else reads Arrow.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::batch::capsule::{Chunks, raised, record_batch, schema_capsule, stream_capsule};
use crate::errors::{error, named, os_error, without_panic};

/// A table of Arrow: `pyarrow.table(t)`, `polars.DataFrame(t)` and DuckDB read it without a copy.
#[pyclass(frozen, module = "ironbloom")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Problems of the tables that were skipped.
    skipped: Vec<String>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>, skipped: Vec<String>) -> Self {
        Self { schema, batches, skipped }
    }

    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A batch with the columns of a schema: a column that is only nulls in one table has its type in another.
pub(crate) fn with_schema(
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns.collect::<Result<_, _>>()?, &options)
}

#[pymethods]
impl Table {
    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.schema.fields().iter().map(|field| field.name()))
    }

    /// Problems of the tables that were skipped, if asked for.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        let fields = self.schema.fields().iter();
        let columns: Vec<String> =
            fields.map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!("<Table: {} rows of {}>", self.rows(), columns.join(", "))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a wish, which need not be granted
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// A table of pyarrow.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// A DataFrame of pandas, by way of pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// A DataFrame of polars.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// A list with a dict for each row, by way of pyarrow.
    fn to_pylist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pylist")
    }
}

/// A field as it is written: dictionaries of views, which polars has for categories, are written as their values.
fn written(field: &FieldRef) -> FieldRef {
    match field.data_type() {
        DataType::Dictionary(_, values) if **values == DataType::Utf8View => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8))
        }
        DataType::Dictionary(_, values) if **values == DataType::BinaryView => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Binary))
        }
        _ => field.clone(),
    }
}

/// The rows as they are written.
fn unpacked(batch: &RecordBatch, schema: &SchemaRef) -> PyResult<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
        true => Ok(column.clone()),
        false => cast(column, field.data_type()),
    });
    let columns: Result<Vec<ArrayRef>, ArrowError> = columns.collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(schema.clone(), columns, &options))
        .map_err(raised)
}

/// All of a table that another library offers, written to a Parquet file.
#[pyfunction]
pub(crate) fn write_parquet(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    path: PathBuf,
) -> PyResult<u64> {
    let Some(mut chunks) = Chunks::of(table)? else {
        return Err(PyTypeError::new_err("a table that speaks Arrow is needed"));
    };
    let DataType::Struct(fields) = chunks.field().data_type().clone() else {
        return Err(PyTypeError::new_err("a table is needed, not a column"));
    };
    let schema = Arc::new(Schema::new(fields.iter().map(written).collect::<Vec<_>>()));
    let failed = |reason: ParquetError| {
        let what = format!("{}: {reason}", path.display());
        match reason {
            ParquetError::External(_) => PyOSError::new_err(what),
            _ => error("InvalidColumn", what), // of a type that Parquet does not have
        }
    };
    // An existing file is not replaced: it may be the only copy.
    let file = File::create_new(&path).map_err(|error| os_error(py, &error, &path))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let written = without_panic(|| {
        let mut writer =
            ArrowWriter::try_new(&file, schema.clone(), Some(properties)).map_err(failed)?;
        let mut rows = 0;
        while let Some(chunk) = py.detach(|| chunks.next_chunk())? {
            let batch = unpacked(&record_batch(&chunk)?, &schema)?;
            py.detach(|| writer.write(&batch)).map_err(failed)?;
            rows += batch.num_rows() as u64;
            py.check_signals()?;
        }
        py.detach(|| writer.close()).map_err(failed)?;
        py.detach(|| file.sync_all()).map_err(|error| os_error(py, &error, &path))?;
        Ok(rows)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&path); // it is ours, and incomplete
    }
    written
}

/// The row groups of a Parquet file that hold any of these rows.
pub(crate) fn row_groups(
    py: Python<'_>,
    path: &Path,
    ranges: &[(u64, u64)],
) -> PyResult<Vec<usize>> {
    let file = File::open(path).map_err(|error| os_error(py, &error, path))?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|error| {
        named(py, "Refused", format!("{}: has no row groups: {error}", path.display()))
    })?;
    let (mut groups, mut start) = (Vec::new(), 0);
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let end = start + group.num_rows().max(0) as u64;
        if ranges.iter().any(|&(first, last)| first < end && last > start) {
            groups.push(number);
        }
        start = end;
    }
    Ok(groups)
}
