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
    make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{
    ArrowNativeType, ArrowPrimitiveType, DataType, Date32Type, Date64Type, Decimal32Type,
    Decimal64Type, Decimal128Type, Decimal256Type, Field, Float16Type, Float32Type, Float64Type,
    Int8Type, Int32Type, Int64Type, TimeUnit, i256,
};
use ironbloom::any::{KeyError, KeyHash};
use ironbloom::{HashFn, KeyType, KeyTypes};
use pyo3::prelude::*;

use crate::errors::{IntoPython, error};
use crate::key::{
    DecimalKey, FloatKey, Nanos, NumpyUnit, Stable, date_key, decimal_key, float_key,
    integer_bytes, large_float_bytes, nanos_key,
};

/// Where the metadata of a field name the type that its values really have.
pub(crate) const EXTENSION: &str = "ARROW:extension:name";

/// Part of a column.
pub(crate) enum Chunk {
    /// Of Arrow, or of numpy with the same layout.
    Arrow(ArrayRef),
    /// Texts or bytes of a fixed width, as numpy has them.
    Fixed(Fixed),
    /// `datetime64` or `timedelta64` of numpy.
    Times { unit: NumpyUnit, counts: Int64Array },
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
    /// The same, but what is equal in a column is equal in Python, too: a negative number is not the one that it is modulo
    /// 2^64.
    Exact(HashFn),
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
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => hash_fn.accepts(found),
            Self::Integer if found == KeyType::Integer => Ok(()),
            Self::Integer => Err(KeyError::Type { wanted: KeyType::Integer, found }),
        };
        accepted.map_err(|error| Python::attach(|py| error.into_python(py)))
    }

    #[inline(always)]
    fn integer(self, number: u64) -> u64 {
        match self {
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => hash_fn.hash(number),
            Self::Integer => number,
        }
    }

    /// A number that is integral in a column where others are not.
    #[inline(always)]
    fn integral(self, number: u64, negative: bool) -> u64 {
        match self {
            Self::Exact(hash_fn) if negative => {
                let mut bytes = [0xff; 9];
                bytes[..8].copy_from_slice(&number.to_le_bytes());
                hash_fn.hash(integer_bytes(&bytes).as_slice())
            }
            _ => self.integer(number),
        }
    }

    /// Only after [`accept`](Self::accept).
    #[inline(always)]
    fn bytes(self, bytes: &[u8]) -> u64 {
        match self {
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => hash_fn.hash(bytes),
            Self::Integer => unreachable!("bytes are not accepted"),
        }
    }

    /// The hashes of many texts or bytes; only after [`accept`](Self::accept). The function is chosen once for all.
    #[inline]
    fn all_bytes<'a>(self, keys: impl Iterator<Item = &'a [u8]>, hashes: &mut [u64]) {
        match self {
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => hash_fn.hash_keys(keys, hashes),
            Self::Integer => unreachable!("bytes are not accepted"),
        }
    }

    /// The hashes of many integers.
    #[inline]
    fn all_integers(self, keys: impl Iterator<Item = u64>, hashes: &mut [u64]) {
        match self {
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => hash_fn.hash_keys(keys, hashes),
            Self::Integer => hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = key),
        }
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn of(self, key: Stable<'_>) -> PyResult<u64> {
        match self {
            Self::Hash(hash_fn) | Self::Exact(hash_fn) => {
                self.accept(key.key_type())?;
                Ok(hash_fn.hash(key))
            }
            Self::Integer => {
                self.accept(key.key_type())?;
                match key.0 {
                    ironbloom::Encoded::Integer(number) => Ok(number),
                    _ => unreachable!("only integers are accepted"),
                }
            }
        }
    }
}

impl Chunk {
    /// A column of Arrow. Its type says what the values stand for, unless an extension says something else.
    pub(crate) fn of_field(field: &Field, array: ArrayRef) -> PyResult<Self> {
        match field.metadata().get(EXTENSION).map(String::as_str) {
            None | Some("arrow.uuid" | "arrow.json") => Ok(Self::Arrow(array)),
            Some("arrow.bool8") if *array.data_type() == DataType::Int8 => {
                let bytes = array.as_primitive::<Int8Type>();
                let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes.value(i) != 0);
                let array = BooleanArray::new(bits, bytes.nulls().cloned());
                Ok(Self::Arrow(std::sync::Arc::new(array)))
            }
            Some(name) => {
                let what = format!(
                    "columns of the type {name} are not keys: cast them to text, bytes, integers, floats or times"
                );
                Err(error("InvalidKey", what))
            }
        }
    }

    pub(crate) fn has_nulls(&self) -> bool {
        matches!(self, Self::Arrow(array) if array.logical_null_count() > 0)
    }

    /// Returns true if its values are integers that may be negative.
    pub(crate) fn is_signed(&self) -> bool {
        matches!(self, Self::Arrow(array) if array.data_type().is_signed_integer())
    }

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
        hasher.accept(match key_type(chunk)? {
            Types::One(key_type) => key_type,
            Types::Mixed => KeyType::Value,
        })?;
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
            Chunk::Fixed(Fixed::Ucs4(memory, _, _)) => {
                let is_text = |&point: &u32| char::from_u32(point).is_some();
                if !memory.typed_data::<u32>().iter().all(is_text) {
                    return Err(error("InvalidKey", "a text that is not Unicode is not a key"));
                }
            }
            Chunk::Fixed(_) => {}
        }
        Ok(prepared)
    }

    /// The types of the keys in these rows.
    pub(crate) fn types(&self, rows: Range<usize>) -> KeyTypes {
        let types = key_type(self.chunk).unwrap_or(Types::Mixed);
        let mut there = rows.filter(|&row| !self.is_null(row));
        match (types, self.chunk) {
            (Types::One(key_type), _) => there.next().map_or(KeyTypes::NONE, |_| key_type.into()),
            (Types::Mixed, Chunk::Arrow(array)) => {
                let is_integer = is_integer_at(array);
                there.fold(KeyTypes::NONE, |types, row| types.union(number_type(is_integer(row))))
            }
            (Types::Mixed, _) => KeyTypes::NONE, // only Arrow has such columns
        }
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
                    let points = &points[row * width..(row + 1) * width];
                    text.extend(points.iter().filter_map(|&point| char::from_u32(point)));
                    *hash = hasher.bytes(text.trim_end_matches('\0').as_bytes());
                }
            }
            Chunk::Times { unit, counts } => {
                for (&count, hash) in counts.values()[rows].iter().zip(hashes) {
                    // What is not a time is a null.
                    *hash = unit.key(count).map_or(0, |key| hasher.bytes(key.as_slice()));
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
                hasher.bytes(date_key(v.into()).as_slice())
            }),
            DataType::Date64 => of_values!(array.as_primitive::<Date64Type>(), |v| {
                hasher.bytes(date_key(v.div_euclid(86_400_000)).as_slice())
            }),
            DataType::Decimal32(_, scale) => {
                of_values!(array.as_primitive::<Decimal32Type>(), |v| {
                    decimal_hash(hasher, i256::from_i128(v.into()), *scale)
                })
            }
            DataType::Decimal64(_, scale) => {
                of_values!(array.as_primitive::<Decimal64Type>(), |v| {
                    decimal_hash(hasher, i256::from_i128(v.into()), *scale)
                })
            }
            DataType::Decimal128(_, scale) => {
                of_values!(array.as_primitive::<Decimal128Type>(), |v| {
                    decimal_hash(hasher, i256::from_i128(v), *scale)
                });
            }
            DataType::Decimal256(_, scale) => {
                of_values!(array.as_primitive::<Decimal256Type>(), |v| {
                    decimal_hash(hasher, v, *scale)
                });
            }
            DataType::Timestamp(unit, zone) => {
                let what = if zone.is_some() { Nanos::Moment } else { Nanos::Clock };
                hash_nanos::<Int64Type>(hasher, array, what, *unit, rows, hashes);
            }
            DataType::Duration(unit) => {
                hash_nanos::<Int64Type>(hasher, array, Nanos::Span, *unit, rows, hashes);
            }
            DataType::Time32(unit) => {
                hash_nanos::<Int32Type>(hasher, array, Nanos::OfDay, *unit, rows, hashes);
            }
            DataType::Time64(unit) => {
                hash_nanos::<Int64Type>(hasher, array, Nanos::OfDay, *unit, rows, hashes);
            }
            _ => downcast_integer_array!(
                array => of_integers!(array),
                other => unreachable!("columns of {other} were refused")
            ),
        }
    }
}

/// The nanoseconds of a column of times.
fn hash_nanos<T: ArrowPrimitiveType<Native: Into<i128>>>(
    hasher: Hasher,
    array: &ArrayRef,
    what: Nanos,
    unit: TimeUnit,
    rows: Range<usize>,
    hashes: &mut [u64],
) {
    let data = array.to_data().into_builder().data_type(T::DATA_TYPE).build();
    let counts = make_array(data.expect("times are numbers of this width"));
    let counts: &PrimitiveArray<T> = counts.as_primitive();
    let nanos = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    for (&count, hash) in counts.values()[rows].iter().zip(hashes) {
        *hash = hasher.bytes(nanos_key(what, count.into() * nanos).as_slice());
    }
}

#[inline]
fn float_hash(hasher: Hasher, number: f64) -> u64 {
    match float_key(number) {
        FloatKey::Integer(bits) => hasher.integral(bits, number < 0.0),
        FloatKey::Large(number) => hasher.bytes(&large_float_bytes(number)),
        FloatKey::Bytes(bytes) => hasher.bytes(&bytes),
    }
}

/// Only with a scale that [`key_type`] takes.
#[inline]
fn decimal_hash(hasher: Hasher, digits: i256, scale: i8) -> u64 {
    match decimal_key(digits, scale.unsigned_abs()) {
        DecimalKey::Integer { number, negative } => hasher.integral(number, negative),
        DecimalKey::Bytes(bytes) => hasher.bytes(&bytes),
    }
}

/// The types of the keys in a column.
#[derive(Clone, Copy)]
enum Types {
    One(KeyType),
    /// Numbers, some of which may be integers: all are refused where only integers are taken.
    Mixed,
}

fn key_type(chunk: &Chunk) -> PyResult<Types> {
    let array = match chunk {
        Chunk::Arrow(array) => array,
        Chunk::Fixed(_) => return Ok(Types::One(KeyType::Bytes)),
        Chunk::Times { .. } => return Ok(Types::One(KeyType::Value)),
    };
    Ok(match array.data_type() {
        DataType::Dictionary(_, _) => {
            key_type(&Chunk::Arrow(array.as_any_dictionary().values().clone()))?
        }
        DataType::Boolean | DataType::Null => Types::One(KeyType::Integer),
        integer if integer.is_integer() => Types::One(KeyType::Integer),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Types::One(KeyType::Bytes),
        DataType::Date32
        | DataType::Date64
        | DataType::Timestamp(_, _)
        | DataType::Duration(_)
        | DataType::Time32(_)
        | DataType::Time64(_) => Types::One(KeyType::Value),
        DataType::Float16
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal32(_, 0..)
        | DataType::Decimal64(_, 0..)
        | DataType::Decimal128(_, 0..)
        | DataType::Decimal256(_, 0..) => Types::Mixed,
        other => {
            let what = format!(
                "columns of {other} are not keys: cast them to text, bytes, integers, floats or times"
            );
            return Err(error("InvalidKey", what));
        }
    })
}

fn number_type(is_integer: bool) -> KeyTypes {
    if is_integer { KeyType::Integer.into() } else { KeyType::Value.into() }
}

/// Returns true if the number in a row is an integer of 64 bits, for the columns that have others, too.
fn is_integer_at(array: &ArrayRef) -> Box<dyn Fn(usize) -> bool + '_> {
    fn is_integer(number: f64) -> bool {
        matches!(float_key(number), FloatKey::Integer(_))
    }
    macro_rules! decimals {
        ($type:ty, $scale:expr, $digits:expr) => {{
            let (values, scale) = (array.as_primitive::<$type>(), $scale.unsigned_abs());
            Box::new(move |row| {
                let digits = $digits(values.value(row));
                matches!(decimal_key(digits, scale), DecimalKey::Integer { .. })
            })
        }};
    }
    match array.data_type() {
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Box::new(|_| false); // all rows are null
            }
            let keys = dictionary.normalized_keys();
            let of_value = is_integer_at(dictionary.values());
            Box::new(move |row| of_value(keys[row]))
        }
        DataType::Float16 => {
            let values = array.as_primitive::<Float16Type>();
            Box::new(|row| is_integer(values.value(row).to_f64()))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            Box::new(|row| is_integer(values.value(row).into()))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            Box::new(|row| is_integer(values.value(row)))
        }
        DataType::Decimal32(_, scale) => {
            decimals!(Decimal32Type, scale, |v: i32| i256::from_i128(v.into()))
        }
        DataType::Decimal64(_, scale) => {
            decimals!(Decimal64Type, scale, |v: i64| i256::from_i128(v.into()))
        }
        DataType::Decimal128(_, scale) => decimals!(Decimal128Type, scale, i256::from_i128),
        DataType::Decimal256(_, scale) => decimals!(Decimal256Type, scale, |v: i256| v),
        other => unreachable!("all keys in columns of {other} are of one type"),
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
