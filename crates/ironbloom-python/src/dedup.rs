//! Which keys come for the first time?

use std::sync::{Mutex, PoisonError};

use arrow::array::RecordBatch;
use ironbloom::HashFn;
use ironbloom::dedup::Deduplicator;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::batch::capsule::{Chunks, record_batch};
use crate::batch::column::{Chunk, Hasher, Prepared};
use crate::batch::mask::Mask;
use crate::batch::{column_at, column_of};
use crate::errors::{OrRaise, without_panic};
use crate::interrupt::in_slices;
use crate::key::exact_bytes;

/// Number that stands for a null in a row: any number will do, as long as it is always the same.
const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

/// Remembers keys: exactly while they are few, in a filter when they are many.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct Dedup {
    seen: Mutex<Deduplicator>,
    hash_fn: HashFn,
}

#[pymethods]
impl Dedup {
    #[new]
    #[pyo3(signature = (rate, window=None))]
    fn new(py: Python<'_>, rate: f64, window: Option<u64>) -> PyResult<Self> {
        let seen = match window {
            None => Deduplicator::of_all(rate),
            Some(keys) => Deduplicator::of_window(keys, rate),
        };
        let seen = seen.or_raise(py)?;
        Ok(Self { hash_fn: seen.hash_fn(), seen: Mutex::new(seen) })
    }

    /// True if the key comes for the first time.
    fn is_new(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut bytes = Vec::with_capacity(64);
        exact_bytes(key, &mut bytes)?;
        let hash = self.hash_fn.hash(bytes.as_slice());
        let mut new = [false];
        let mut seen = self.seen.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        seen.insert_each(&[hash], &mut new).or_raise(py)?;
        Ok(new[0])
    }

    /// Which rows of a table come for the first time, by these columns; all of them if none are named. A null is a value.
    #[pyo3(signature = (table, columns=None))]
    fn new_rows(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
    ) -> PyResult<Option<Mask>> {
        without_panic(|| {
            let Some(mut chunks) = Chunks::of(table)? else { return Ok(None) };
            let mut new = Vec::new();
            while let Some(chunk) = py.detach(|| chunks.next_chunk())? {
                self.new_rows_of(py, &record_batch(&chunk)?, columns.as_deref(), &mut new)?;
            }
            Ok(Some(Mask::new(new, None)))
        })
    }
}

impl Dedup {
    fn new_rows_of(
        &self,
        py: Python<'_>,
        batch: &RecordBatch,
        columns: Option<&[String]>,
        new: &mut Vec<bool>,
    ) -> PyResult<()> {
        let chosen: PyResult<Vec<Chunk>> = match columns {
            None => (0..batch.num_columns()).map(|i| column_at(batch, i)).collect(),
            Some(names) => names.iter().map(|name| column_of(batch, name)).collect(),
        };
        let chosen = chosen?;
        let prepared: Vec<Prepared<'_>> = chosen
            .iter()
            .map(|chunk| Prepared::new(chunk, Hasher::Exact(self.hash_fn)))
            .collect::<PyResult<_>>()?;
        let (mut column, mut joined) = (Vec::new(), Vec::new());
        let done = in_slices(py, batch.num_rows(), |rows| {
            column.resize(rows.len(), 0);
            joined.clear();
            joined.resize(rows.len(), 0);
            for (place, prepared) in prepared.iter().enumerate() {
                prepared.hash(rows.clone(), &mut column);
                for (i, (joined, &hash)) in joined.iter_mut().zip(&column).enumerate() {
                    let hash = if prepared.is_null(rows.start + i) { NULL } else { hash };
                    *joined = if place == 0 { hash } else { join(*joined, hash) };
                }
            }
            let start = new.len();
            new.resize(start + rows.len(), false);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert_each(&joined, &mut new[start..])
        })?;
        done.or_raise(py)
    }
}

/// One hash of two, in their order.
fn join(one: u64, two: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&one.to_le_bytes());
    bytes[8..].copy_from_slice(&two.to_le_bytes());
    HashFn::default().hash(bytes.as_slice())
}
