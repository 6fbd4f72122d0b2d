//! Batches: columns of keys from numpy and Arrow, and columns of answers.

pub(crate) mod capsule;
pub(crate) mod column;
pub(crate) mod mask;
mod numpy;

use arrow::array::{ArrayRef, AsArray, RecordBatch, new_empty_array};
use arrow::datatypes::{DataType, Field};
use pyo3::prelude::*;

use self::capsule::Chunks;
use self::column::{Chunk, Hasher, Prepared};
use crate::errors::error;

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

    /// An error unless its keys can be hashed, also if there are none.
    pub(crate) fn check(&self, hasher: Hasher) -> PyResult<()> {
        match self {
            Self::Numpy(_) => Ok(()), // it has one chunk, which is checked
            Self::Arrow(chunks) => {
                let nothing = new_empty_array(chunks.field().data_type());
                Prepared::new(&only_column(chunks.field(), nothing)?, hasher).map(drop)
            }
        }
    }

    /// The next chunk. The interpreter is free meanwhile: who fills a stream may need it.
    pub(crate) fn next_chunk(&mut self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        match self {
            Self::Numpy(chunk) => Ok(chunk.take()),
            Self::Arrow(chunks) => {
                let array = py.detach(|| chunks.next_chunk())?;
                array.map(|array| only_column(chunks.field(), array)).transpose()
            }
        }
    }
}

/// A column of a table as keys.
pub(crate) fn column_at(batch: &RecordBatch, place: usize) -> PyResult<Chunk> {
    Chunk::of_field(batch.schema_ref().field(place), batch.column(place).clone())
}

/// Finds a column by its name, which no other may have.
pub(crate) fn column_of(batch: &RecordBatch, name: &str) -> PyResult<Chunk> {
    let fields = batch.schema_ref().fields().iter().enumerate();
    let places: Vec<usize> =
        fields.filter(|(_, field)| field.name() == name).map(|(place, _)| place).collect();
    match places.as_slice() {
        [place] => column_at(batch, *place),
        [] => Err(error("UnknownName", format!("the table has no column {name}"))),
        several => {
            let what =
                format!("the table has {} columns {name}: rename all but one", several.len());
            Err(error("InvalidColumn", what))
        }
    }
}

/// The column of a table that has one.
fn only_column(field: &Field, array: ArrayRef) -> PyResult<Chunk> {
    match field.data_type() {
        DataType::Struct(fields) if fields.len() == 1 => {
            Chunk::of_field(&fields[0], array.as_struct().column(0).clone())
        }
        DataType::Struct(fields) => {
            let what = format!(
                "a table of {} columns is not a column of keys: select one of them",
                fields.len()
            );
            Err(error("InvalidKey", what))
        }
        _ => Chunk::of_field(field, array),
    }
}
