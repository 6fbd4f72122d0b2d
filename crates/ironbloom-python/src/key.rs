//! Stable keys: from a Python object to the bytes or the integer that is hashed, in every process and on every machine.
//!
//! ```text
//!  str                     its UTF-8 bytes
//!  bytes, bytearray, UUID  the bytes
//!  int, bool               an integer: 8 bytes, little-endian, two's complement       as the Rust library has it
//!  float                   of an integral value: that integer; other: ff 'f', 8 bytes of IEEE 754
//!  int beyond 64 bits      ff 'i', two's complement, little-endian, as few bytes as hold the sign
//!  None                    ff 'n'
//!  date                    ff 'd', days since 1970-01-01, 8 bytes
//!  datetime                ff 't' with a time zone, ff 'T' without; nanoseconds since 1970-01-01 (of UTC), 16 bytes
//!  timedelta               ff 'e', nanoseconds, 16 bytes
//!  tuple                   ff '(', then for each value: 'b' (bytes), 'i' (integer) or 'o' (any of the above), its length
//!                          in 8 bytes, its bytes
//! ```
//!
//! All numbers are little-endian. The byte ff begins no UTF-8 text, so what begins with it is never the key of a `str`.
//! Numpy's scalars are the keys of the Python values that they equal.

use ironbloom::{Encoded, Key, KeyType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt,
    PyMemoryView, PyString, PyTimeAccess, PyTuple, PyType,
};

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

    /// What is hashed.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self.0 {
            Encoded::Bytes(bytes) => bytes.to_vec(),
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
        return Ok(use_key(Stable::bytes(text.to_str()?.as_bytes())));
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

fn integer(number: u64) -> Stable<'static> {
    Stable(Encoded::Integer(number))
}

/// A key that had to be made.
enum Owned {
    Bytes(Vec<u8>),
    Integer(u64),
}

impl Owned {
    fn as_key(&self) -> Stable<'_> {
        match self {
            Self::Bytes(bytes) => Stable::bytes(bytes),
            Self::Integer(number) => integer(*number),
        }
    }

    fn tagged(tag: u8, payload: &[u8]) -> Self {
        let mut bytes = vec![OTHER, tag];
        bytes.extend_from_slice(payload);
        Self::Bytes(bytes)
    }
}

/// A float as a key: an integer if it is one of 64 bits.
pub(crate) enum FloatKey {
    Integer(u64),
    /// An integer of more than 64 bits.
    Large(f64),
    Bytes([u8; 10]),
}

#[inline]
pub(crate) fn float_key(number: f64) -> FloatKey {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 {
        return if (-TWO_63..TWO_63).contains(&number) {
            FloatKey::Integer(number as i64 as u64)
        } else if (TWO_63..2.0 * TWO_63).contains(&number) {
            FloatKey::Integer(number as u64)
        } else {
            FloatKey::Large(number)
        };
    }
    // All NaN are one key, as in the index.
    let number = if number.is_nan() { f64::NAN } else { number };
    let mut bytes = [OTHER, b'f', 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..].copy_from_slice(&number.to_bits().to_le_bytes());
    FloatKey::Bytes(bytes)
}

/// The key of a float beyond 64 bits that is an integer: that integer, as Python writes it.
pub(crate) fn large_float_bytes(number: f64) -> Vec<u8> {
    // |number| = mantissa * 2^exponent, exponent > 0.
    let bits = number.abs().to_bits();
    let exponent = (bits >> 52) as usize - 1075;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52) << (exponent % 8);
    let mut bytes = vec![0; exponent / 8];
    bytes.extend_from_slice(&mantissa.to_le_bytes());
    if number < 0.0 {
        let mut carry = true;
        for byte in &mut bytes {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    tagged_integer(&bytes)
}

/// A two's complement number without the bytes that only repeat its sign.
fn tagged_integer(bytes: &[u8]) -> Vec<u8> {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let filler = if negative { 0xff } else { 0 };
    let mut length = bytes.len();
    while length > 1 && bytes[length - 1] == filler && (bytes[length - 2] & 0x80 != 0) == negative {
        length -= 1;
    }
    [&[OTHER, b'i'], &bytes[..length]].concat()
}

/// The key of a day.
pub(crate) fn date_bytes(days: i64) -> [u8; 10] {
    let mut bytes = [OTHER, b'd', 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[2..].copy_from_slice(&days.to_le_bytes());
    bytes
}

/// What nanoseconds are counted for.
#[derive(Clone, Copy)]
pub(crate) enum Nanos {
    /// A moment of UTC.
    Moment,
    /// The time on a clock nobody knows the zone of.
    Clock,
    /// A time between two moments.
    Span,
}

/// The key of a moment or a span.
pub(crate) fn nanos_bytes(what: Nanos, nanos: i128) -> [u8; 18] {
    let tag = match what {
        Nanos::Moment => b't',
        Nanos::Clock => b'T',
        Nanos::Span => b'e',
    };
    let mut bytes = [0; 18];
    bytes[..2].copy_from_slice(&[OTHER, tag]);
    bytes[2..].copy_from_slice(&nanos.to_le_bytes());
    bytes
}

/// Everything but text, bytes and small integers.
fn other_key(object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Owned> {
    let py = object.py();
    if object.is_none() {
        return Ok(Owned::tagged(b'n', &[]));
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(match float_key(number.extract()?) {
            FloatKey::Integer(number) => Owned::Integer(number),
            FloatKey::Large(number) => Owned::Bytes(large_float_bytes(number)),
            FloatKey::Bytes(bytes) => Owned::Bytes(bytes.into()),
        });
    }
    if object.is_instance_of::<PyInt>() {
        return large_integer(object);
    }
    if let Ok(values) = object.cast::<PyTuple>() {
        return tuple(values, depth);
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Owned::Bytes(bytes.to_vec()));
    }
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(Owned::Bytes(object.call_method0(intern!(py, "tobytes"))?.extract()?));
    }
    if object.get_type().name()?.to_str()? == "NaTType" {
        return Ok(Owned::tagged(b'n', &[])); // of pandas, which says that it is a datetime
    }
    if let Ok(moment) = object.cast::<PyDateTime>() {
        return date_time(moment);
    }
    if let Ok(date) = object.cast::<PyDate>() {
        return Ok(Owned::Bytes(date_bytes(days(date)).into()));
    }
    if let Ok(span) = object.cast::<PyDelta>() {
        let nanos = microseconds(span) * 1000 + extra_nanoseconds(span)?;
        return Ok(Owned::Bytes(nanos_bytes(Nanos::Span, nanos).into()));
    }
    if object.is_instance(uuid_type(py)?)? {
        return Ok(Owned::Bytes(object.getattr(intern!(py, "bytes"))?.extract()?));
    }
    if let Some(key) = numpy_scalar(object, depth)? {
        return Ok(key);
    }
    Err(PyTypeError::new_err(format!(
        "{} has no stable bytes: keys are str, bytes, int, float, bool, None, UUID, date, datetime, timedelta, \
         tuples of these, and numpy's scalars; make one of these of it, for many with key=",
        object.get_type().name()?
    )))
}

fn uuid_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    UUID.import(py, "uuid", "UUID")
}

/// An integer that an `i64` does not hold.
fn large_integer(number: &Bound<'_, PyAny>) -> PyResult<Owned> {
    if let Ok(number) = number.extract::<i64>() {
        return Ok(Owned::Integer(number as u64));
    }
    if let Ok(number) = number.extract::<u64>() {
        return Ok(Owned::Integer(number));
    }
    let py = number.py();
    let bits: usize = number.call_method0(intern!(py, "bit_length"))?.extract()?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("signed", true)?;
    let length = bits / 8 + 1;
    let bytes: Vec<u8> =
        number.call_method("to_bytes", (length, "little"), Some(&arguments))?.extract()?;
    Ok(Owned::Bytes(tagged_integer(&bytes)))
}

fn tuple(values: &Bound<'_, PyTuple>, depth: u32) -> PyResult<Owned> {
    if depth >= MAX_DEPTH {
        return Err(PyValueError::new_err(format!("tuples nested more than {MAX_DEPTH} deep")));
    }
    let mut bytes = vec![OTHER, b'('];
    for value in values {
        let mut add = |tag: u8, value: &[u8]| {
            bytes.push(tag);
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
            bytes.extend_from_slice(value);
        };
        if let Ok(text) = value.cast::<PyString>() {
            add(b'b', text.to_str()?.as_bytes());
        } else if let Ok(plain) = value.cast::<PyBytes>() {
            add(b'b', plain.as_bytes());
        } else {
            match other_key(&value, depth + 1)? {
                Owned::Integer(number) => add(b'i', &number.to_le_bytes()),
                Owned::Bytes(other) => {
                    let plain = value.is_instance_of::<PyByteArray>()
                        || value.is_instance_of::<PyMemoryView>()
                        || value.is_instance(uuid_type(value.py())?)?;
                    add(if plain { b'b' } else { b'o' }, &other);
                }
            }
        }
    }
    Ok(Owned::Bytes(bytes))
}

/// Days since 1970-01-01, in the proleptic Gregorian calendar that Python uses.
fn days(date: &impl PyDateAccess) -> i64 {
    days_from_civil(i64::from(date.get_year()), date.get_month().into(), date.get_day().into())
}

/// Howard Hinnant's `days_from_civil`: years begin in March, so that a leap day is the last of its year.
/// 2000-03-01 is day 11,017.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn date_time(moment: &Bound<'_, PyDateTime>) -> PyResult<Owned> {
    let seconds = days(moment) * 86_400
        + i64::from(moment.get_hour()) * 3600
        + i64::from(moment.get_minute()) * 60
        + i64::from(moment.get_second());
    let micros = i128::from(seconds) * 1_000_000 + i128::from(moment.get_microsecond());
    let offset = moment.call_method0(intern!(moment.py(), "utcoffset"))?;
    let (what, micros) = match offset.cast::<PyDelta>() {
        Ok(offset) => (Nanos::Moment, micros - microseconds(offset)),
        Err(_) => (Nanos::Clock, micros),
    };
    let nanos = micros * 1000 + extra_nanoseconds(moment)?;
    Ok(Owned::Bytes(nanos_bytes(what, nanos).into()))
}

fn microseconds(span: &Bound<'_, PyDelta>) -> i128 {
    let seconds = i128::from(span.get_days()) * 86_400 + i128::from(span.get_seconds());
    seconds * 1_000_000 + i128::from(span.get_microseconds())
}

/// What `Timestamp` and `Timedelta` of pandas have beyond microseconds.
fn extra_nanoseconds(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let py = value.py();
    for name in [intern!(py, "nanosecond"), intern!(py, "nanoseconds")] {
        if let Some(nanos) = value.getattr_opt(name)? {
            return nanos.extract();
        }
    }
    Ok(0)
}

/// The key of a numpy scalar; `None` if it is none.
fn numpy_scalar(object: &Bound<'_, PyAny>, depth: u32) -> PyResult<Option<Owned>> {
    let py = object.py();
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let Ok(numpy) = modules.get_item("numpy") else { return Ok(None) };
    if !object.is_instance(&numpy.getattr(intern!(py, "generic"))?)? {
        return Ok(None);
    }
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind == "M" || kind == "m" {
        let (unit, steps): (String, i64) =
            numpy.call_method1("datetime_data", (object.getattr("dtype")?,))?.extract()?;
        let count: i64 = object.call_method1("astype", ("int64",))?.extract()?;
        return Ok(Some(match numpy_time(&kind, &unit, steps, count)? {
            Some(NumpyTime::Day(days)) => Owned::Bytes(date_bytes(days).into()),
            Some(NumpyTime::Nanos(what, nanos)) => Owned::Bytes(nanos_bytes(what, nanos).into()),
            None => Owned::tagged(b'n', &[]),
        }));
    }
    let item = object.call_method0(intern!(py, "item"))?;
    if item.is_instance(&numpy.getattr(intern!(py, "generic"))?)? {
        return Ok(None); // what Python has no type for, such as a long double
    }
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(Some(Owned::Bytes(text.to_str()?.as_bytes().to_vec())));
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(Some(Owned::Bytes(bytes.as_bytes().to_vec())));
    }
    other_key(&item, depth).map(Some)
}

/// A time of numpy.
pub(crate) enum NumpyTime {
    Day(i64),
    Nanos(Nanos, i128),
}

/// A `datetime64` (kind M) or `timedelta64` (m) that counts this many steps of a unit. `None` if it is no time (NaT).
///
/// What counts days is a date, as in Python and Arrow; everything finer has no time zone.
pub(crate) fn numpy_time(
    kind: &str,
    unit: &str,
    steps: i64,
    count: i64,
) -> PyResult<Option<NumpyTime>> {
    if count == i64::MIN {
        return Ok(None);
    }
    let count = i128::from(count) * i128::from(steps);
    let nanos = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "D" => 86_400_000_000_000_i128,
        "W" => 7 * 86_400_000_000_000,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "numpy's times in units of {unit} have no stable bytes: convert them to \
                 datetime64[D], [s], [ms], [us] or [ns]"
            )));
        }
    };
    Ok(Some(match (kind, unit) {
        ("M", "D") => NumpyTime::Day(count as i64),
        ("M", "W") => NumpyTime::Day((count * 7) as i64),
        ("M", _) => NumpyTime::Nanos(Nanos::Clock, count * nanos),
        _ => NumpyTime::Nanos(Nanos::Span, count * nanos),
    }))
}
