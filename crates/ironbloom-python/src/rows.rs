//! Filters whose keys are rows: a tuple with a value for each attribute, a mapping from their names, or rows of a table.

use arrow::array::RecordBatch;
use ironbloom::multi::Attributes;
use ironbloom::{AnyFilter, KeyTypes, RowError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyEllipsis, PyList, PyTuple};

use crate::batch::capsule::{Chunks, record_batch};
use crate::batch::column::{Hasher, Prepared};
use crate::batch::column_of;
use crate::batch::mask::Mask;
use crate::errors::{IntoPython, OrRaise, error};
use crate::filter::{Filter, rows_are_needed};
use crate::interrupt::in_slices;
use crate::key::with_key;
use crate::many::Work;

/// The attributes of a filter of rows.
fn attributes(filter: &AnyFilter) -> &Attributes {
    filter.as_multi().expect("a filter of rows").attributes()
}

/// The hashes of a row's values, and their types.
type Row = (Vec<u64>, Vec<KeyTypes>);

/// Hash of a row that need not be complete.
type Query = (Vec<Option<u64>>, Vec<KeyTypes>);

/// Operation on each row of a table.
type EachRow = fn(&mut AnyFilter, &[KeyTypes], &[u64]) -> Result<bool, RowError>;

fn each_row(work: Work) -> EachRow {
    match work {
        Work::Add => insert,
        Work::Contains => contains,
        Work::Remove => remove,
    }
}

fn insert(filter: &mut AnyFilter, types: &[KeyTypes], row: &[u64]) -> Result<bool, RowError> {
    let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
    let multi = filter.as_multi_mut().expect("a filter of rows");
    let new = !multi.contains_hashed(&query)?;
    multi.insert_hashed_of(types, row)?;
    Ok(new)
}

fn contains(filter: &mut AnyFilter, _: &[KeyTypes], row: &[u64]) -> Result<bool, RowError> {
    let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
    filter.as_multi().expect("a filter of rows").contains_hashed(&query)
}

fn remove(filter: &mut AnyFilter, _: &[KeyTypes], row: &[u64]) -> Result<bool, RowError> {
    filter.as_multi_mut().expect("a filter of rows").remove_hashed(row)
}

impl Filter {
    /// The hashes of a row's values and their types. `...` stands for any value.
    fn row_query(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<Query> {
        let attributes = attributes(&*self.read(py)?).clone();
        let values: Vec<Bound<'_, PyAny>> = if let Ok(row) = row.cast::<PyTuple>() {
            row.iter().collect()
        } else if let Ok(row) = row.cast::<PyList>() {
            row.iter().collect()
        } else if let Ok(row) = row.cast::<PyDict>() {
            for name in row.keys() {
                let known = attributes.position(&name.extract::<String>()?).is_some();
                if !known {
                    return Err(error(
                        "UnknownName",
                        format!("the filter has no attribute {name}"),
                    ));
                }
            }
            let any = || PyEllipsis::get(py).to_owned().into_any();
            let value = |name: &String| Ok(row.get_item(name)?.unwrap_or_else(any));
            attributes.names().iter().map(value).collect::<PyResult<_>>()?
        } else {
            return Err(rows_are_needed());
        };
        if values.len() != attributes.len() {
            let error = RowError::Attributes { given: values.len(), expected: attributes.len() };
            return Err(error.into_python(py));
        }
        let (mut query, mut types) = (Vec::new(), Vec::new());
        for (i, value) in values.iter().enumerate() {
            if value.is_instance_of::<PyEllipsis>() {
                query.push(None);
                types.push(KeyTypes::NONE);
                continue;
            }
            let hasher = Hasher::Hash(attributes.hash_fn_of(i).or_raise(py)?);
            with_key(value, |key| {
                query.push(Some(hasher.of(key)?));
                types.push(key.key_type().into());
                Ok::<_, PyErr>(())
            })??;
        }
        Ok((query, types))
    }

    /// Hashes a row that must be complete.
    fn whole_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<Row> {
        let (query, types) = self.row_query(py, row)?;
        let given = query.iter().flatten().count();
        let expected = query.len();
        let row = query.into_iter().collect::<Option<Vec<u64>>>();
        let row = row.ok_or_else(|| RowError::Attributes { given, expected }.into_python(py))?;
        Ok((row, types))
    }

    /// An error for types of values that the filter does not hold, unless they are added.
    fn check_for(
        &self,
        filter: &AnyFilter,
        work: Work,
        types: &[KeyTypes],
    ) -> Result<(), RowError> {
        if work == Work::Add {
            return Ok(());
        }
        self.check_row(attributes(filter), types)
    }

    fn check_row(&self, held: &Attributes, types: &[KeyTypes]) -> Result<(), RowError> {
        for (i, &found) in types.iter().enumerate() {
            self.check_types(held.key_types(i), found).map_err(RowError::Key)?;
        }
        Ok(())
    }

    /// Does something with one row.
    pub(crate) fn with_row(
        &self,
        py: Python<'_>,
        work: Work,
        row: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (row, types) = self.whole_row(py, row)?;
        let mut filter = self.write(py)?;
        let done = self
            .check_for(&filter, work, &types)
            .and_then(|()| each_row(work)(&mut filter, &types, &row));
        drop(filter);
        done.or_raise(py)
    }

    pub(crate) fn contains_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (query, types) = self.row_query(py, row)?;
        let filter = self.read(py)?;
        let multi = filter.as_multi().expect("a filter of rows");
        let checked = self.check_row(multi.attributes(), &types);
        let found = checked.and_then(|()| multi.contains_hashed(&query));
        drop(filter);
        found.or_raise(py)
    }

    /// As [`many`](Self::many) for rows: those of a table, or of an iterable.
    pub(crate) fn many_rows(
        &self,
        py: Python<'_>,
        work: Work,
        rows: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Mask> {
        let mut answers = Vec::new();
        if key.is_none()
            && let Some(mut chunks) = Chunks::of(rows)?
        {
            while let Some(chunk) = py.detach(|| chunks.next_chunk())? {
                self.each_row_of(py, work, &record_batch(&chunk)?, &mut answers)?;
            }
            return Ok(Mask::new(answers, None));
        }
        for (count, row) in rows.try_iter()?.enumerate() {
            let row = match key {
                Some(make) => make.call1((row?,))?,
                None => row?,
            };
            answers.push(self.with_row(py, work, &row)?);
            if count % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(Mask::new(answers, None))
    }

    fn each_row_of(
        &self,
        py: Python<'_>,
        work: Work,
        batch: &RecordBatch,
        answers: &mut Vec<bool>,
    ) -> PyResult<()> {
        let attributes = attributes(&*self.read(py)?).clone();
        let mut chunks = Vec::new();
        for name in attributes.names() {
            let column = column_of(batch, name)?;
            if column.has_nulls() {
                let what = format!(
                    "column {name} has nulls, which are no values: fill or drop them first"
                );
                return Err(error("InvalidKey", what));
            }
            chunks.push(column);
        }
        let mut columns = Vec::new();
        for (i, chunk) in chunks.iter().enumerate() {
            let hash_fn = attributes.hash_fn_of(i).or_raise(py)?;
            columns.push(Prepared::new(chunk, Hasher::Hash(hash_fn))?);
        }
        let mut hashes = vec![Vec::new(); columns.len()];
        let mut row = vec![0; columns.len()];
        let user = self.filter.user(py)?;
        let worked = in_slices(py, batch.num_rows(), |rows| {
            for (column, hashes) in columns.iter().zip(&mut hashes) {
                hashes.resize(rows.len(), 0);
                column.hash(rows.clone(), hashes);
            }
            let types: Vec<_> = columns.iter().map(|column| column.types(rows.clone())).collect();
            let mut filter = user.writing(None);
            self.check_for(&filter, work, &types)?;
            for i in 0..rows.len() {
                for (value, hashes) in row.iter_mut().zip(&hashes) {
                    *value = hashes[i];
                }
                answers.push(each_row(work)(&mut filter, &types, &row)?);
            }
            Ok::<_, RowError>(())
        })?;
        worked.or_raise(py)
    }
}
