//! Arrow's C data interface, in PyCapsules: columns and tables in and out without a copy and without pyarrow.
//!
//! An object that offers `__arrow_c_array__` or `__arrow_c_stream__` gives capsules with pointers to structs of the C data
//! interface. Whoever takes such a struct moves it out and leaves an empty one behind, which the capsule then does not
//! release.

#![expect(unsafe_code, reason = "structs of the C data interface arrive as pointers in capsules")]

use std::ffi::CStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray, make_array, new_empty_array,
};
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type, to_ffi};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::column::EXTENSION;
use crate::errors::error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

pub(crate) fn raised(reason: ArrowError) -> PyErr {
    error("InvalidColumn", reason)
}

/// A column, or a table as a column of structs, in chunks that come one after the other.
pub(crate) enum Chunks {
    Array(FieldRef, Option<ArrayRef>),
    Stream(FieldRef, Stream),
}

/// A stream of another library. It is asked for one chunk at a time.
pub(crate) struct Stream(FFI_ArrowArrayStream);

impl Chunks {
    /// Data that an object offers; `None` if it offers no Arrow data.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Some(method) = object.getattr_opt("__arrow_c_array__")? {
            let capsules = method.call0()?;
            let capsules = capsules.cast::<PyTuple>()?;
            let schema = capsules.get_item(0)?;
            let array = capsules.get_item(1)?;
            return Self::from_array(schema.cast()?, array.cast()?).map(Some);
        }
        if let Some(method) = object.getattr_opt("__arrow_c_stream__")? {
            let capsule = method.call0()?;
            return Self::from_stream(capsule.cast()?).map(Some);
        }
        Ok(None)
    }

    fn from_array(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: the name of the capsule says that it points to a schema of the C data interface, which lives as long as the
        // capsule does; it is read within this call.
        let field = field_of(unsafe { schema.as_ref() })?;
        // SAFETY: likewise for the array, which is moved out: the capsule is left with one that is released.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        let array = import(array, field.data_type())?;
        Ok(Self::Array(field, Some(array)))
    }

    fn from_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: the name of the capsule says what it points to; the stream is moved out.
        let mut stream = Stream(unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) });
        let schema = stream.schema()?;
        Ok(Self::Stream(field_of(&schema)?, stream))
    }

    /// The type of the column.
    pub(crate) fn field(&self) -> &FieldRef {
        match self {
            Self::Array(field, _) | Self::Stream(field, _) => field,
        }
    }

    /// The next chunk.
    pub(crate) fn next_chunk(&mut self) -> PyResult<Option<ArrayRef>> {
        match self {
            Self::Array(_, array) => Ok(array.take()),
            Self::Stream(field, stream) => {
                let array = stream.next_array()?;
                if array.is_released() {
                    return Ok(None);
                }
                import(array, field.data_type()).map(Some)
            }
        }
    }
}

impl Stream {
    fn schema(&mut self) -> PyResult<FFI_ArrowSchema> {
        let mut schema = FFI_ArrowSchema::empty();
        let get = self.0.get_schema.ok_or_else(released)?;
        // SAFETY: the stream is not released, and the schema is one that it may overwrite.
        let status = unsafe { get(&mut self.0, &mut schema) };
        self.check(status)?;
        Ok(schema)
    }

    /// The next array; one that is released at the end.
    fn next_array(&mut self) -> PyResult<FFI_ArrowArray> {
        let mut array = FFI_ArrowArray::empty();
        let get = self.0.get_next.ok_or_else(released)?;
        // SAFETY: the stream is not released, and the array is one that it may overwrite.
        let status = unsafe { get(&mut self.0, &mut array) };
        self.check(status)?;
        Ok(array)
    }

    fn check(&mut self, status: i32) -> PyResult<()> {
        if status == 0 {
            return Ok(());
        }
        let mut message = format!("the stream failed with error {status}");
        if let Some(last_error) = self.0.get_last_error {
            // SAFETY: the stream is not released, and has just failed.
            let said = unsafe { last_error(&mut self.0) };
            if !said.is_null() {
                // SAFETY: what it says is a C string that lives until the next call.
                message = unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned();
            }
        }
        Err(error("InvalidColumn", message))
    }
}

fn released() -> PyErr {
    error("InvalidColumn", "the stream was used already")
}

fn field_of(schema: &FFI_ArrowSchema) -> PyResult<FieldRef> {
    let field = Field::try_from(schema).map_err(raised)?;
    let DataType::Struct(fields) = field.data_type() else {
        return Ok(Arc::new(with_extension(field, schema)));
    };
    let fields = fields.iter().enumerate();
    let fields = fields.map(|(i, field)| with_extension(field.as_ref().clone(), schema.child(i)));
    let data_type = DataType::Struct(fields.collect());
    Ok(Arc::new(field.with_data_type(data_type)))
}

/// The field of a dictionary says what its values stand for, which a type of Arrow in Rust does not.
fn with_extension(mut field: Field, schema: &FFI_ArrowSchema) -> Field {
    let values = schema.dictionary().and_then(|values| values.metadata().ok());
    if let Some(name) = values.and_then(|mut values| values.remove(EXTENSION)) {
        field.metadata_mut().entry(EXTENSION.to_owned()).or_insert(name);
    }
    field
}

fn import(array: FFI_ArrowArray, data_type: &DataType) -> PyResult<ArrayRef> {
    // Of a slice without values, offsets may point behind what was handed over.
    if array.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    // SAFETY: the array comes from a library that promises the C data interface, with a schema of this type.
    let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) }.map_err(raised)?;
    // Offsets and texts that lie outside their buffers would be undefined behaviour later; other libraries are believed about
    // the contents of texts, as they are among each other.
    data.validate().map_err(raised)?;
    Ok(make_array(data))
}

/// A chunk of a table as a batch of rows.
pub(crate) fn record_batch(chunk: &ArrayRef) -> PyResult<RecordBatch> {
    let rows = chunk.as_any().downcast_ref::<StructArray>();
    let rows = rows.ok_or_else(|| {
        PyTypeError::new_err(format!("a table is needed, not a column of {}", chunk.data_type()))
    })?;
    if rows.null_count() > 0 {
        return Err(PyTypeError::new_err("a table is needed, not a column of structs with nulls"));
    }
    Ok(RecordBatch::from(rows))
}

/// The two capsules of `__arrow_c_array__`.
pub(crate) fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let (array, schema) = to_ffi(&array.to_data()).map_err(raised)?;
    Ok((
        PyCapsule::new_with_value(py, schema, SCHEMA)?,
        PyCapsule::new_with_value(py, array, ARRAY)?,
    ))
}

/// The capsule of `__arrow_c_stream__`.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), STREAM)
}

/// The capsule of `__arrow_c_schema__`.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &arrow::datatypes::Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(raised)?, SCHEMA)
}
