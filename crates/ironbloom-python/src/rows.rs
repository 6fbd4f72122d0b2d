//! Filters whose keys are rows: a tuple with a value for each attribute, a mapping from their names, or rows of a table.

use arrow::array::RecordBatch;
use ironbloom::multi::Attributes;
use ironbloom::{AnyFilter, RowError};
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

/// What is done with each row of a table.
type EachRow = fn(&mut AnyFilter, &[u64]) -> Result<bool, RowError>;

fn insert(filter: &mut AnyFilter, row: &[u64]) -> Result<bool, RowError> {
    let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
    let multi = filter.as_multi_mut().expect("a filter of rows");
    let new = !multi.contains_hashed(&query)?;
    multi.insert_hashed(row)?;
    Ok(new)
}

fn contains(filter: &mut AnyFilter, row: &[u64]) -> Result<bool, RowError> {
    let query: Vec<Option<u64>> = row.iter().copied().map(Some).collect();
    filter.as_multi().expect("a filter of rows").contains_hashed(&query)
}

fn remove(filter: &mut AnyFilter, row: &[u64]) -> Result<bool, RowError> {
    filter.as_multi_mut().expect("a filter of rows").remove_hashed(row)
}

impl Filter {
    /// The hashes of a row's values. `...` stands for any value.
    fn row_query(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<Vec<Option<u64>>> {
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
        let hash = |(i, value): (usize, &Bound<'_, PyAny>)| {
            if value.is_instance_of::<PyEllipsis>() {
                return Ok(None);
            }
            with_key(value, |key| attributes.hash(i, key))?.or_raise(py).map(Some)
        };
        values.iter().enumerate().map(hash).collect()
    }

    /// The same for a row that must be complete.
    fn whole_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let query = self.row_query(py, row)?;
        let given = query.iter().flatten().count();
        let expected = query.len();
        query
            .into_iter()
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| RowError::Attributes { given, expected }.into_python(py))
    }

    pub(crate) fn contains_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let query = self.row_query(py, row)?;
        self.read(py)?.as_multi().expect("a filter of rows").contains_hashed(&query).or_raise(py)
    }

    pub(crate) fn add_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let row = self.whole_row(py, row)?;
        insert(&mut *self.write(py)?, &row).or_raise(py)
    }

    pub(crate) fn remove_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let row = self.whole_row(py, row)?;
        remove(&mut *self.write(py)?, &row).or_raise(py)
    }

    /// As [`many`](Self::many) for rows.
    pub(crate) fn many_rows(
        &self,
        py: Python<'_>,
        work: Work,
        rows: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Mask> {
        self.each_row(
            py,
            rows,
            key,
            match work {
                Work::Add => insert,
                Work::Contains => contains,
                Work::Remove => remove,
            },
        )
    }

    /// Does something with each row of a table, or of an iterable of rows.
    fn each_row(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        work: EachRow,
    ) -> PyResult<Mask> {
        let mut answers = Vec::new();
        if key.is_none()
            && let Some(mut chunks) = Chunks::of(rows)?
        {
            while let Some(chunk) = py.detach(|| chunks.next_chunk())? {
                self.each_row_of(py, &record_batch(&chunk)?, &mut answers, work)?;
            }
            return Ok(Mask::new(answers, None));
        }
        for (count, row) in rows.try_iter()?.enumerate() {
            let row = match key {
                Some(make) => make.call1((row?,))?,
                None => row?,
            };
            let row = self.whole_row(py, &row)?;
            answers.push(work(&mut *self.write(py)?, &row).or_raise(py)?);
            if count % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(Mask::new(answers, None))
    }

    fn each_row_of(
        &self,
        py: Python<'_>,
        batch: &RecordBatch,
        answers: &mut Vec<bool>,
        work: EachRow,
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
            let mut filter = user.writing(None);
            for i in 0..rows.len() {
                for (value, hashes) in row.iter_mut().zip(&hashes) {
                    *value = hashes[i];
                }
                answers.push(work(&mut filter, &row)?);
            }
            Ok::<_, RowError>(())
        })?;
        worked.or_raise(py)
    }
}
