//! Columns of keys, and their hashes, many at a time: no Python object per key, and no need for the interpreter.
//!
//! ```text
//!  numpy array, Arrow array or stream ──► Chunk ──► Prepared ──► hashes of rows a..b, and which of them are null
//! ```
//!
//! A value of a column has the hash of the Python object that stands for it: `key.rs` says which bytes that are. The values
//! of a dictionary are hashed once.

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, downcast_integer_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    ArrowNativeType, DataType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type,
    TimeUnit,
};
use ironbloom::any::KeyHash;
use ironbloom::{HashFn, KeyType};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::key::{self, FloatKey, Nanos, NumpyTime, Stable, date_bytes, float_key, nanos_bytes};

/// Part of a column.
pub(crate) enum Chunk {
    /// Of Arrow, or of numpy with the same layout.
    Arrow(ArrayRef),
    /// Texts or bytes of a fixed width, as numpy has them.
    Fixed(Fixed),
    /// `datetime64` or `timedelta64` of numpy.
    Times { kind: &'static str, unit: String, steps: i64, counts: Int64Array },
}

/// Values of a fixed width, with zeros after shorter ones.
pub(crate) enum Fixed {
    /// Bytes: memory, width, values.
    Bytes(Buffer, usize, usize),
    /// Code points of 4 bytes.
    Ucs4(Buffer, usize, usize),
}

/// How the numbers of a filter are made.
#[derive(Clone, Copy)]
pub(crate) enum Hasher {
    Hash(HashFn),
    /// Integers stand for themselves.
    Integer,
}

impl Hasher {
    pub(crate) fn new(key_hash: KeyHash) -> Self {
        match key_hash {
            // Another program's hash refuses all keys: they are asked for by `ironbloom check`.
            KeyHash::Hash(hash_fn)
            | KeyHash::Held(hash_fn, _)
            | KeyHash::Digits(hash_fn)
            | KeyHash::Row(hash_fn)
            | KeyHash::Foreign(hash_fn) => Self::Hash(hash_fn),
            KeyHash::Integer => Self::Integer,
        }
    }

    /// An error unless keys of this type can be hashed.
    pub(crate) fn accept(self, found: KeyType) -> PyResult<()> {
        let accepted = match self {
            Self::Hash(hash_fn) => hash_fn.accepts(found).map_err(|error| error.to_string()),
            Self::Integer if found == KeyType::Integer => Ok(()),
            Self::Integer => Err(format!("the filter holds integers, not {found}")),
        };
        accepted.map_err(PyTypeError::new_err)
    }

    #[inline(always)]
    fn integer(self, number: u64) -> u64 {
        match self {
            Self::Hash(hash_fn) => hash_fn.hash(number),
            Self::Integer => number,
        }
    }

    /// Only after [`accept`](Self::accept).
    #[inline(always)]
    fn bytes(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Hash(hash_fn) => hash_fn.hash(bytes),
            Self::Integer => unreachable!("bytes are not accepted"),
        }
    }

    /// The hashes of many texts or bytes; only after [`accept`](Self::accept). The function is chosen once for all.
    #[inline]
    fn all_bytes<'a>(self, keys: impl Iterator<Item = &'a [u8]>, hashes: &mut [u64]) {
        match self {
            Self::Hash(hash_fn) => hash_fn.hash_keys(keys, hashes),
            Self::Integer => unreachable!("bytes are not accepted"),
        }
    }

    /// The hashes of many integers.
    #[inline]
    fn all_integers(self, keys: impl Iterator<Item = u64>, hashes: &mut [u64]) {
        match self {
            Self::Hash(hash_fn) => hash_fn.hash_keys(keys, hashes),
            Self::Integer => hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = key),
        }
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn of(self, key: Stable<'_>) -> PyResult<u64> {
        match self {
            Self::Hash(hash_fn @ (HashFn::Xxh3 { .. } | HashFn::Xxh64 { .. })) => {
                Ok(hash_fn.hash(key))
            }
            _ => {
                self.accept(key.key_type())?;
                Ok(match key.0 {
                    ironbloom::Encoded::Integer(number) => self.integer(number),
                    _ => self.bytes(&key.to_bytes()),
                })
            }
        }
    }
}

impl Chunk {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Arrow(array) => array.len(),
            Self::Fixed(Fixed::Bytes(_, _, len) | Fixed::Ucs4(_, _, len)) => *len,
            Self::Times { counts, .. } => counts.len(),
        }
    }
}

/// A chunk whose hashes can be computed for a filter.
pub(crate) struct Prepared<'a> {
    chunk: &'a Chunk,
    hasher: Hasher,
    /// Of the values of a dictionary.
    dictionary: Option<Vec<u64>>,
    nulls: Option<NullBuffer>,
}

impl<'a> Prepared<'a> {
    /// An error if the filter does not take keys of this type.
    pub(crate) fn new(chunk: &'a Chunk, hasher: Hasher) -> PyResult<Self> {
        hasher.accept(key_type(chunk)?)?;
        let mut prepared = Self { chunk, hasher, dictionary: None, nulls: None };
        match chunk {
            Chunk::Arrow(array) => {
                prepared.nulls = array.logical_nulls();
                if let Some(dictionary) = array.as_any_dictionary_opt() {
                    let values = Chunk::Arrow(dictionary.values().clone());
                    let values = Prepared::new(&values, hasher)?;
                    let mut hashes = vec![0; values.chunk.len()];
                    values.hash(0..hashes.len(), &mut hashes);
                    prepared.dictionary = Some(hashes);
                }
            }
            Chunk::Times { counts, .. } => {
                let there = counts.values().iter().map(|&count| count != i64::MIN);
                prepared.nulls = Some(NullBuffer::from_iter(there)).filter(|n| n.null_count() > 0);
            }
            Chunk::Fixed(_) => {}
        }
        Ok(prepared)
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0)
    }

    /// The hashes of these rows. That of a null means nothing.
    pub(crate) fn hash(&self, rows: Range<usize>, hashes: &mut [u64]) {
        let hasher = self.hasher;
        match self.chunk {
            Chunk::Arrow(array) => self.hash_arrow(array, rows, hashes),
            Chunk::Fixed(Fixed::Bytes(memory, width, _)) => {
                for (row, hash) in rows.zip(hashes) {
                    let padded = &memory.as_slice()[row * width..(row + 1) * width];
                    let len = padded.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    *hash = hasher.bytes(&padded[..len]);
                }
            }
            Chunk::Fixed(Fixed::Ucs4(memory, width, _)) => {
                let mut text = String::new();
                let (points, width) = (memory.typed_data::<u32>(), width / 4);
                for (row, hash) in rows.zip(hashes) {
                    text.clear();
                    // What is no character is in no `str` that can be a key, either.
                    let or_other = |point| char::from_u32(point).unwrap_or('\u{fffd}');
                    let points = &points[row * width..(row + 1) * width];
                    text.extend(points.iter().map(|&point| or_other(point)));
                    *hash = hasher.bytes(text.trim_end_matches('\0').as_bytes());
                }
            }
            Chunk::Times { kind, unit, steps, counts } => {
                for (&count, hash) in counts.values()[rows].iter().zip(hashes) {
                    *hash = match key::numpy_time(kind, unit, *steps, count) {
                        Ok(Some(NumpyTime::Day(days))) => hasher.bytes(&date_bytes(days)),
                        Ok(Some(NumpyTime::Nanos(what, nanos))) => {
                            hasher.bytes(&nanos_bytes(what, nanos))
                        }
                        _ => 0, // no time; the unit was checked
                    };
                }
            }
        }
    }

    fn hash_arrow(&self, array: &ArrayRef, rows: Range<usize>, hashes: &mut [u64]) {
        let hasher = self.hasher;
        if let Some(values) = &self.dictionary {
            let keys = array.as_any_dictionary().keys();
            downcast_integer_array!(
                keys => {
                    for (key, hash) in keys.values()[rows].iter().zip(hashes) {
                        *hash = values.get(key.as_usize()).copied().unwrap_or(0); // of a null
                    }
                }
                other => unreachable!("keys of a dictionary are integers, not {other}")
            );
            return;
        }
        /// Texts or bytes, by their offsets in one buffer.
        macro_rules! of_offsets {
            ($array:expr) => {{
                let array = $array;
                let (data, offsets) = (array.value_data(), array.value_offsets());
                let ends = offsets[rows.start..=rows.end].windows(2);
                // What lies outside of the buffer is a panic: offsets are other libraries' numbers.
                let values = ends.map(|ends| &data[ends[0].as_usize()..ends[1].as_usize()]);
                hasher.all_bytes(values, hashes);
            }};
        }
        macro_rules! of_values {
            ($values:expr, |$value:ident| $hash:expr) => {
                for (&$value, hash) in $values.values()[rows].iter().zip(hashes) {
                    *hash = $hash;
                }
            };
        }
        macro_rules! of_integers {
            ($values:expr) => {
                hasher.all_integers($values.values()[rows].iter().map(|&v| v as u64), hashes)
            };
        }
        match array.data_type() {
            DataType::Null => hashes.fill(0),
            DataType::Boolean => {
                let values = array.as_boolean();
                hasher.all_integers(rows.map(|row| values.value(row).into()), hashes);
            }
            DataType::Utf8 => of_offsets!(array.as_string::<i32>()),
            DataType::LargeUtf8 => of_offsets!(array.as_string::<i64>()),
            DataType::Binary => of_offsets!(array.as_binary::<i32>()),
            DataType::LargeBinary => of_offsets!(array.as_binary::<i64>()),
            DataType::Utf8View => {
                let values = array.as_string_view();
                hasher.all_bytes(rows.map(|row| values.value(row).as_bytes()), hashes);
            }
            DataType::BinaryView => {
                let values = array.as_binary_view();
                hasher.all_bytes(rows.map(|row| values.value(row)), hashes);
            }
            DataType::FixedSizeBinary(_) => {
                let values = array.as_fixed_size_binary();
                hasher.all_bytes(rows.map(|row| values.value(row)), hashes);
            }
            DataType::Float16 => of_values!(array.as_primitive::<Float16Type>(), |v| {
                float_hash(hasher, v.to_f64())
            }),
            DataType::Float32 => of_values!(array.as_primitive::<Float32Type>(), |v| {
                float_hash(hasher, v.into())
            }),
            DataType::Float64 => {
                of_values!(array.as_primitive::<Float64Type>(), |v| float_hash(hasher, v));
            }
            DataType::Date32 => of_values!(array.as_primitive::<Date32Type>(), |v| {
                hasher.bytes(&date_bytes(v.into()))
            }),
            DataType::Date64 => of_values!(array.as_primitive::<Date64Type>(), |v| {
                hasher.bytes(&date_bytes(v.div_euclid(86_400_000)))
            }),
            DataType::Timestamp(unit, zone) => {
                let what = if zone.is_some() { Nanos::Moment } else { Nanos::Clock };
                hash_nanos(hasher, array, what, *unit, rows, hashes);
            }
            DataType::Duration(unit) => {
                hash_nanos(hasher, array, Nanos::Span, *unit, rows, hashes);
            }
            _ => downcast_integer_array!(
                array => of_integers!(array),
                other => unreachable!("columns of {other} were refused")
            ),
        }
    }
}

/// The nanoseconds of a column of times.
fn hash_nanos(
    hasher: Hasher,
    array: &ArrayRef,
    what: Nanos,
    unit: TimeUnit,
    rows: Range<usize>,
    hashes: &mut [u64],
) {
    let data = array.to_data();
    let counts = PrimitiveArray::<arrow::datatypes::Int64Type>::from(
        data.into_builder().data_type(DataType::Int64).build().expect("times are 64-bit numbers"),
    );
    let nanos = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    for (&count, hash) in counts.values()[rows].iter().zip(hashes) {
        *hash = hasher.bytes(&nanos_bytes(what, i128::from(count) * nanos));
    }
}

#[inline]
fn float_hash(hasher: Hasher, number: f64) -> u64 {
    match float_key(number) {
        FloatKey::Integer(number) => hasher.integer(number),
        FloatKey::Large(number) => hasher.bytes(&key::large_float_bytes(number)),
        FloatKey::Bytes(bytes) => hasher.bytes(&bytes),
    }
}

/// The type of the keys in a column. Floats may be both: they are refused where only integers are taken, although some of
/// them are.
fn key_type(chunk: &Chunk) -> PyResult<KeyType> {
    let Chunk::Arrow(array) = chunk else { return Ok(KeyType::Bytes) };
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            key_type(&Chunk::Arrow(array.as_any_dictionary().values().clone()))
        }
        DataType::Boolean | DataType::Null => Ok(KeyType::Integer),
        integer if integer.is_integer() => Ok(KeyType::Integer),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_)
        | DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => Ok(KeyType::Bytes),
        other => Err(PyTypeError::new_err(format!(
            "columns of {other} are not keys: cast them to text, bytes, integers, floats or times"
        ))),
    }
}

/// One answer for each key, and for a null none.
pub(crate) fn as_arrow(answers: &[bool], there: Option<&[bool]>) -> BooleanArray {
    BooleanArray::new(packed(answers), there.map(packed).map(NullBuffer::new))
}

/// A bit for each answer.
fn packed(answers: &[bool]) -> BooleanBuffer {
    /// The product has byte i, 0 or 1, as bit 56 + i.
    fn bits(eight: &[bool; 8]) -> u8 {
        let bytes = u64::from_le_bytes(eight.map(u8::from));
        (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    }
    let (eights, rest) = answers.as_chunks();
    let mut bytes = Vec::with_capacity(eights.len() + 1);
    bytes.extend(eights.iter().map(bits));
    let mut last = [false; 8];
    last[..rest.len()].copy_from_slice(rest);
    bytes.push(bits(&last));
    BooleanBuffer::new(bytes.into(), 0, answers.len())
}
