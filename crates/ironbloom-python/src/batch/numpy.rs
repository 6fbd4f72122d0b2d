//! Arrays of numpy as columns, by `__array_interface__`: the memory is used where it is.
//!
//! The array is kept alive by the column. The caller promises not to write to it meanwhile, as with every
//! function that releases the interpreter's lock; the documentation says so.

#![expect(unsafe_code, reason = "the memory of an array is a pointer and a length")]

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use pyo3::prelude::*;

use super::column::{Chunk, Fixed};
use crate::errors::error;
use crate::key::NumpyUnit;

/// Contents of `__array_interface__`.
struct Interface<'py> {
    object: Bound<'py, PyAny>,
    /// Byte order, kind and width, such as `<i8`.
    typestr: String,
    address: usize,
    len: usize,
}

/// An array as a column; `None` if it is not one of numpy's.
pub(crate) fn chunk_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Chunk>> {
    if object.getattr_opt("__array_interface__")?.is_none() {
        return Ok(None);
    }
    if object.hasattr("mask")? && object.hasattr("filled")? {
        let what = "a masked array has keys that are not there: give .compressed(), or an Arrow array with nulls";
        return Err(error("InvalidKey", what));
    }
    let interface = Interface::of(&contiguous(object)?)?;
    let (kind, width) = interface.typestr.split_at(2);
    let width: usize = width.split('[').next().unwrap_or(width).parse().map_err(|_| {
        error("InvalidKey", format!("arrays of {} are not keys", interface.typestr))
    })?;
    let kind = &kind[1..];
    let array: ArrayRef = match (kind, width) {
        // Any byte but 0 is true.
        ("b", 1) => {
            let bytes: ScalarBuffer<u8> = interface.values();
            let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes[i] != 0);
            Arc::new(BooleanArray::new(bits, None))
        }
        ("u", 1) => interface.primitive::<UInt8Type>(),
        ("u", 2) => interface.primitive::<UInt16Type>(),
        ("u", 4) => interface.primitive::<UInt32Type>(),
        ("u", 8) => interface.primitive::<UInt64Type>(),
        ("i", 1) => interface.primitive::<Int8Type>(),
        ("i", 2) => interface.primitive::<Int16Type>(),
        ("i", 4) => interface.primitive::<Int32Type>(),
        ("i", 8) => interface.primitive::<Int64Type>(),
        ("f", 2) => interface.primitive::<Float16Type>(),
        ("f", 4) => interface.primitive::<Float32Type>(),
        ("f", 8) => interface.primitive::<Float64Type>(),
        ("S", _) => return Ok(Some(Chunk::Fixed(interface.fixed(width, Fixed::Bytes)))),
        ("U", _) => return Ok(Some(Chunk::Fixed(interface.fixed(4 * width, Fixed::Ucs4)))),
        ("M" | "m", 8) => {
            let numpy = object.py().import("numpy")?;
            let (unit, steps): (String, i64) =
                numpy.call_method1("datetime_data", (object.getattr("dtype")?,))?.extract()?;
            let unit = NumpyUnit::new(object.py(), kind, &unit, steps)?;
            let counts = PrimitiveArray::<Int64Type>::new(interface.values(), None);
            return Ok(Some(Chunk::Times { unit, counts }));
        }
        _ => {
            let what = format!("arrays of {} are not keys", object.getattr("dtype")?);
            return Err(error("InvalidKey", what));
        }
    };
    Ok(Some(Chunk::Arrow(array)))
}

/// Returns true if the array holds Python objects, or texts in a layout that only numpy knows, which are taken one by one.
pub(crate) fn holds_objects(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(interface) = object.getattr_opt("__array_interface__")? else { return Ok(false) };
    let typestr: String = interface.get_item("typestr")?.extract()?;
    // The last is what numpy 2.2 says for texts.
    Ok(["|O", "StringDType", "|T"].iter().any(|start| typestr.starts_with(start)))
}

/// The array itself if its values lie one after the other in the machine's order; a copy otherwise.
fn contiguous<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let interface = object.getattr("__array_interface__")?;
    let typestr: String = interface.get_item("typestr")?.extract()?;
    let swapped = typestr.starts_with(if cfg!(target_endian = "little") { '>' } else { '<' });
    let shape: Vec<usize> = interface.get_item("shape")?.extract()?;
    let Ok([_]) = <[usize; 1]>::try_from(shape.as_slice()) else {
        let what = format!("an array of keys has one dimension, not {}", shape.len());
        return Err(error("InvalidKey", what));
    };
    let strided = !interface.call_method1("get", ("strides",))?.is_none();
    let aligned = object.getattr("flags").and_then(|flags| flags.get_item("ALIGNED"));
    let misaligned = !aligned.and_then(|aligned| aligned.extract::<bool>()).unwrap_or(true);
    if !swapped && !strided && !misaligned {
        return Ok(object.clone());
    }
    let numpy = py.import("numpy")?;
    let native = object.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    numpy.call_method1("ascontiguousarray", (object, native))?.call_method0("copy")
}

impl<'py> Interface<'py> {
    fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let interface = object.getattr("__array_interface__")?;
        let shape: Vec<usize> = interface.get_item("shape")?.extract()?;
        let (address, _read_only): (usize, bool) = interface.get_item("data")?.extract()?;
        let typestr = interface.get_item("typestr")?.extract()?;
        Ok(Self { object: object.clone(), typestr, address, len: shape[0] })
    }

    /// The memory of this many bytes, which keeps the array alive.
    fn buffer(&self, bytes: usize) -> Buffer {
        let Some(start) = NonNull::new(self.address as *mut u8).filter(|_| bytes > 0) else {
            return Buffer::from(Vec::<u64>::new());
        };
        // (A reference cannot be left half changed by a panic.)
        let owner = Arc::new(AssertUnwindSafe(self.object.clone().unbind()));
        // SAFETY: numpy says that the array's values begin here, one after the other, as many as its shape has; the array
        // lives as long as the buffer, which owns a reference to it, and an array with a second owner cannot be resized.
        unsafe { Buffer::from_custom_allocation(start, bytes, owner) }
    }

    fn values<T: arrow::datatypes::ArrowNativeType>(&self) -> ScalarBuffer<T> {
        ScalarBuffer::new(self.buffer(self.len * size_of::<T>()), 0, self.len)
    }

    fn primitive<T: ArrowPrimitiveType>(&self) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(self.values(), None))
    }

    fn fixed(&self, width: usize, what: fn(Buffer, usize, usize) -> Fixed) -> Fixed {
        what(self.buffer(self.len * width), width, self.len)
    }
}
