//! Batches: columns of keys from numpy and Arrow, and columns of answers.

pub(crate) mod capsule;
pub(crate) mod column;
pub(crate) mod mask;
mod numpy;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use self::capsule::Chunks;
use self::column::Chunk;

/// Where the chunks of a column come from.
pub(crate) enum Source {
    Numpy(Option<Chunk>),
    Arrow(Chunks),
}

impl Source {
    /// The keys that an object offers as a column; `None` if it offers none, and must be iterated over.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if numpy::holds_objects(object)? {
            return Ok(None);
        }
        if let Some(chunk) = numpy::chunk_of(object)? {
            return Ok(Some(Self::Numpy(Some(chunk))));
        }
        Ok(Chunks::of(object)?.map(Self::Arrow))
    }

    /// The next chunk. The interpreter is free meanwhile: who fills a stream may need it.
    pub(crate) fn next_chunk(&mut self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        match self {
            Self::Numpy(chunk) => Ok(chunk.take()),
            Self::Arrow(chunks) => {
                let array = py.detach(|| chunks.next_chunk())?;
                array.map(|array| only_column(array).map(Chunk::Arrow)).transpose()
            }
        }
    }
}

/// The column of a table that has one.
fn only_column(array: ArrayRef) -> PyResult<ArrayRef> {
    match array.data_type() {
        DataType::Struct(fields) if fields.len() == 1 => Ok(array.as_struct().column(0).clone()),
        DataType::Struct(fields) => Err(PyTypeError::new_err(format!(
            "a table of {} columns is not a column of keys: select one of them",
            fields.len()
        ))),
        _ => Ok(array),
    }
}
