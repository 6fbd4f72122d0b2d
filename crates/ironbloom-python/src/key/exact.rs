//! Keys that are told apart as Python tells values apart.
//!
//! A filter takes some values for one that differ in Python: text and bytes, an integer and its eight bytes, -1 and
//! 2^64 - 1, a day and its midnight. That costs a filter nothing but a false positive; whoever drops what was seen before
//! must not.

use ironbloom::Encoded;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyString, PyTuple};

use super::{check_depth, is_uuid, plain_bytes, utf8, with_key};

/// Appends bytes that are equal for objects that are equal, and for no others (but all NaN are one). A `datetime64` of
/// numpy's equals both a date and its midnight, which differ: it is taken for the latter.
pub(crate) fn exact_bytes(object: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<()> {
    append(object, bytes, 0)
}

fn append(object: &Bound<'_, PyAny>, bytes: &mut Vec<u8>, depth: u32) -> PyResult<()> {
    if let Ok(text) = object.cast::<PyString>() {
        bytes.push(b's');
        bytes.extend_from_slice(utf8(text)?.as_bytes());
    } else if let Ok(plain) = object.cast::<PyBytes>() {
        bytes.push(b'b');
        bytes.extend_from_slice(plain.as_bytes());
    } else if let Ok(values) = object.cast::<PyTuple>() {
        check_depth(object.py(), depth)?;
        bytes.push(b'(');
        for value in values {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 8]);
            append(&value, bytes, depth + 1)?;
            let len = (bytes.len() - start - 8) as u64;
            bytes[start..start + 8].copy_from_slice(&len.to_le_bytes());
        }
    } else if let Some(plain) = plain_bytes(object)? {
        bytes.push(if is_uuid(object)? { b'u' } else { b'b' });
        bytes.extend_from_slice(&plain);
    } else {
        other(object, bytes)?;
    }
    Ok(())
}

fn other(object: &Bound<'_, PyAny>, bytes: &mut Vec<u8>) -> PyResult<()> {
    let day = object.is_instance_of::<PyDate>() && !object.is_instance_of::<PyDateTime>();
    // Only an integer beyond i64 can be taken for a negative one.
    let negative = || object.lt(0).unwrap_or(false);
    with_key(object, |key| match key.0 {
        Encoded::Integer(number) => {
            bytes.push(if number >> 63 == 1 && negative() { b'-' } else { b'+' });
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        Encoded::Bytes(other) | Encoded::Value(other) => {
            bytes.push(if day { b'd' } else { b'o' });
            bytes.extend_from_slice(other);
        }
        _ => {}
    })
}
