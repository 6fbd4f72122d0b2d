//! Stable keys: from a Python object to the bytes or the integer that is hashed, in every process and on every machine.
//!
//! ```text
//!  str                     its UTF-8 bytes
//!  bytes, bytearray, UUID  the bytes
//!  int, bool               an integer: 8 bytes, little-endian, two's complement       as the Rust library has it
//!  float, Decimal          of an integral value: that integer; other: ff 'f', 8 bytes of IEEE 754
//!  other Decimal           ff 'D', digits after the point, 8 bytes; then all its digits, as an int beyond 64 bits
//!  int beyond 64 bits      ff 'i', two's complement, little-endian, as few bytes as hold the sign
//!  None                    ff 'n'
//!  date                    ff 'd', days since 1970-01-01, 8 bytes; also midnight of a datetime without a time zone
//!  datetime                ff 't' with a time zone, ff 'T' without; nanoseconds since 1970-01-01 (of UTC), 16 bytes
//!  time                    ff 'z' with a time zone, ff 'c' without; nanoseconds since midnight (of UTC), 8 bytes
//!  timedelta               ff 'e', nanoseconds, 16 bytes
//!  tuple                   ff '(', then for each value: 'b' (bytes), 'i' (integer) or 'o' (any of the above), its length
//!                          in 8 bytes, its bytes
//! ```
//!
//! All numbers are little-endian. The byte ff begins no UTF-8 text, so what begins with it is never the key of a `str`. The
//! first three lines are keys of the types bytes and integers, which every program has; all others are values, which only
//! Python has: files record which of them a filter holds.
//! Numpy's scalars are the keys of the Python values that they equal.

mod exact;
mod number;
mod time;

pub(crate) use exact::exact_bytes;
use ironbloom::{Encoded, Key, KeyType};
pub(crate) use number::{
    DecimalKey, FloatKey, decimal_key, float_key, integer_bytes, large_float_bytes,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyFloat, PyInt, PyMemoryView, PyString,
    PyTime, PyTuple, PyType,
};
pub(crate) use time::{Nanos, NumpyUnit, date_key, nanos_key};

use crate::errors::named;

/// The first byte of what is neither text nor plain bytes nor an integer.
const OTHER: u8 = 0xff;

/// Tuples in tuples: deeper than anyone nests keys.
const MAX_DEPTH: u32 = 32;

/// A key as it is hashed.
#[derive(Clone, Copy)]
pub(crate) struct Stable<'a>(pub(crate) Encoded<'a>);

impl Key for Stable<'_> {
    #[inline(always)]
    fn encoded(&self) -> Encoded<'_> {
        self.0
    }
}

impl<'a> Stable<'a> {
    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Self(Encoded::Bytes(bytes))
    }

    pub(crate) fn key_type(self) -> KeyType {
        self.0.key_type()
    }

    /// Returns the bytes to be hashed.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self.0 {
            Encoded::Bytes(bytes) | Encoded::Value(bytes) => bytes.to_vec(),
            Encoded::Integer(number) => number.to_le_bytes().to_vec(),
            _ => unreachable!("keys are bytes or integers"),
        }
    }
}

/// Calls a function with the key that an object stands for.
#[inline]
pub(crate) fn with_key<R>(
    object: &Bound<'_, PyAny>,
    use_key: impl FnOnce(Stable<'_>) -> R,
) -> PyResult<R> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(use_key(Stable::bytes(utf8(text)?.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(use_key(Stable::bytes(bytes.as_bytes())));
    }
    if object.is_instance_of::<PyInt>()
        && let Ok(number) = object.extract::<i64>()
    {
        return Ok(use_key(integer(number as u64)));
    }
    let owned = other_key(object, 0)?;
    Ok(use_key(owned.as_key()))
}

/// The bytes of a text.
pub(crate) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str().map_err(|_| {
        invalid(text.py(), "a text with half a surrogate pair has no UTF-8 bytes".to_owned())
    })
}

fn integer(number: u64) -> Stable<'static> {
    Stable(Encoded::Integer(number))
}

/// A key that is none.
fn invalid(py: Python<'_>, what: String) -> PyErr {
    named(py, "InvalidKey", what)
}

/// A key that had to be made.
enum Owned {
    Bytes(Vec<u8>),
    Integer(u64),
    /// Value with a tag.
    Value(Vec<u8>),
}

impl Owned {
    fn as_key(&self) -> Stable<'_> {
        match self {
            Self::Bytes(bytes) => Stable::bytes(bytes),
            Self::Integer(number) => integer(*number),
            Self::Value(bytes) => Stable(Encoded::Value(bytes)),
        }
    }

    fn null() -> Self {
        Self::Value(vec![OTHER, b'n'])
    }
}

/// Everything but text, bytes and small integers.
fn other_key(object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Owned> {
    let py = object.py();
    if object.is_none() {
        return Ok(Owned::null());
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(float_key(number.extract()?).into());
    }
    if object.is_instance_of::<PyInt>() {
        return number::integer(object);
    }
    if let Ok(values) = object.cast::<PyTuple>() {
        return tuple(values, depth);
    }
    if let Some(bytes) = plain_bytes(object)? {
        return Ok(Owned::Bytes(bytes));
    }
    if object.get_type().name()?.to_str()? == "NaTType" {
        return Ok(Owned::null()); // of pandas, which says that it is a datetime
    }
    if let Ok(moment) = object.cast::<PyDateTime>() {
        return time::date_time(moment);
    }
    if let Ok(date) = object.cast::<PyDate>() {
        return Ok(time::date(date));
    }
    if let Ok(span) = object.cast::<PyDelta>() {
        return time::span(span);
    }
    if let Ok(clock) = object.cast::<PyTime>() {
        return time::time(clock);
    }
    if is_decimal(object)? {
        return number::decimal(object);
    }
    if let Some(key) = numpy_scalar(object, depth)? {
        return Ok(key);
    }
    let what = format!(
        "{} has no stable bytes: keys are str, bytes, int, float, Decimal, bool, None, UUID, date, datetime, time, \
         timedelta, tuples of these, and numpy's scalars; make one of these of it, for many with key=",
        object.get_type().name()?
    );
    Err(invalid(py, what))
}

/// Bytes of an object that is not a `bytes`.
pub(crate) fn plain_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let py = object.py();
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(bytes.to_vec()));
    }
    if object.is_instance_of::<PyMemoryView>() {
        return object.call_method0(intern!(py, "tobytes"))?.extract().map(Some);
    }
    if is_uuid(object)? {
        return object.getattr(intern!(py, "bytes"))?.extract().map(Some);
    }
    Ok(None)
}

fn is_uuid(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(UUID.import(object.py(), "uuid", "UUID")?)
}

/// Returns true for a `Decimal`. Its module takes long to import, so without it the answer is false.
fn is_decimal(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    match imported(object.py(), "decimal")? {
        Some(decimal) => object.is_instance(&decimal.getattr(intern!(object.py(), "Decimal"))?),
        None => Ok(false),
    }
}

/// A module, if the program has imported it.
fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(modules.get_item(name).ok())
}

fn tuple(values: &Bound<'_, PyTuple>, depth: u32) -> PyResult<Owned> {
    check_depth(values.py(), depth)?;
    let mut bytes = vec![OTHER, b'('];
    for value in values {
        let mut add = |tag: u8, value: &[u8]| {
            bytes.push(tag);
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            bytes.extend_from_slice(value);
        };
        if let Ok(text) = value.cast::<PyString>() {
            add(b'b', utf8(text)?.as_bytes());
        } else if let Ok(plain) = value.cast::<PyBytes>() {
            add(b'b', plain.as_bytes());
        } else if let Some(plain) = plain_bytes(&value)? {
            add(b'b', &plain);
        } else {
            match other_key(&value, depth + 1)? {
                Owned::Integer(number) => add(b'i', &number.to_le_bytes()),
                Owned::Bytes(other) | Owned::Value(other) => add(b'o', &other),
            }
        }
    }
    Ok(Owned::Value(bytes))
}

fn check_depth(py: Python<'_>, depth: u32) -> PyResult<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(named(py, "InvalidParameter", format!("tuples nested more than {MAX_DEPTH} deep")))
}

/// The key of a numpy scalar; `None` if it is none.
fn numpy_scalar(object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Option<Owned>> {
    let py = object.py();
    let Some(numpy) = imported(py, "numpy")? else { return Ok(None) };
    let generic = numpy.getattr(intern!(py, "generic"))?;
    if !object.is_instance(&generic)? {
        return Ok(None);
    }
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "M" || kind == "m" {
        let (unit, steps): (String, i64) =
            numpy.call_method1("datetime_data", (object.getattr("dtype")?,))?.extract()?;
        let count: i64 = object.call_method1("astype", ("int64",))?.extract()?;
        let key = NumpyUnit::new(py, &kind, &unit, steps)?.key(count);
        return Ok(Some(key.map_or_else(Owned::null, Owned::from)));
    }
    let item = object.call_method0(intern!(py, "item"))?;
    if item.is_instance(&generic)? {
        return Ok(None); // what Python has no type for, such as a long double
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Some(Owned::Bytes(utf8(text)?.as_bytes().to_vec())));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Some(Owned::Bytes(bytes.as_bytes().to_vec())));
    }
    other_key(&item, depth).map(Some)
}
