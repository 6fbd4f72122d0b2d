//! New filters, and filters from files.
//!
//! Functions here return a [`Made`], which the class of its kind (`_kinds.py`) turns into an object.

#![expect(unsafe_code, reason = "mapped files, which the caller promises not to change")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use ironbloom::multi::{Attributes, Joint, ParallelBloom};
use ironbloom::{
    AnyFilter, Arity, BinaryFuse, Bloom, BloomParams, CuckooParams, FuseParams, HashFn, HashKey,
    KeyTypes, ParamError, Persist, Scalable, ScalableParams, StageKind, Windowed, WindowedParams,
    plan,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::batch::column::Hasher;
use crate::errors::{OrRaise, error, named, without_panic};
use crate::groups::each_group;
use crate::key::with_key;

/// A filter on its way to the class of its kind.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct Made {
    filter: Mutex<Option<AnyFilter>>,
    #[pyo3(get)]
    kind: &'static str,
    /// It came from a file.
    strict: bool,
}

impl Made {
    /// A new filter.
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        Self::of(filter.into(), false)
    }

    /// A filter from a file.
    fn read(filter: AnyFilter) -> Self {
        Self::of(filter, true)
    }

    pub(crate) fn of(filter: AnyFilter, strict: bool) -> Self {
        Self { kind: filter.kind().name(), filter: Mutex::new(Some(filter)), strict }
    }

    /// The filter, and whether it came from a file.
    pub(crate) fn take(&self) -> PyResult<(AnyFilter, bool)> {
        let taken = self.filter.lock().ok().and_then(|mut filter| filter.take());
        let taken = taken.ok_or_else(|| error("Refused", "this filter is in use already"))?;
        Ok((taken, self.strict))
    }
}

/// How the keys of a new filter are hashed: a seed, "random", or a secret of 16 bytes.
pub(crate) enum Hashing {
    Seed(u64),
    Function(HashFn),
}

impl Hashing {
    fn hash_fn(&self) -> HashFn {
        match *self {
            Self::Seed(seed) => HashFn::Xxh3 { seed },
            Self::Function(hash_fn) => hash_fn,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Hashing {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(secret) = given.cast::<PyBytes>() {
            return Ok(Self::Function(HashFn::secret(hash_key(secret.as_bytes())?)));
        }
        if given.is_instance_of::<PyString>() {
            return Ok(Self::Function(HashFn::random()));
        }
        Ok(Self::Seed(given.extract()?))
    }
}

/// The key of a secret. What it is must not be in the message.
fn hash_key(secret: &[u8]) -> PyResult<HashKey> {
    HashKey::parse(secret)
        .ok_or_else(|| error("InvalidParameter", "a secret is 16 bytes, or 32 hexadecimal digits"))
}

/// A filter of a plan that is made empty.
#[pyfunction]
pub(crate) fn make(
    py: Python<'_>,
    name: &str,
    capacity: u64,
    rate: f64,
    seed: Hashing,
) -> PyResult<Made> {
    let plan = plan::named(name)
        .ok_or_else(|| error("InvalidParameter", format!("there is no kind {name:?}")))?;
    let hash_fn = match (&seed, plan.hash_fn(0)) {
        (&Hashing::Seed(seed), _) => plan.hash_fn(seed),
        (_, HashFn::Xxh64 { .. }) => {
            let what = format!("the hash of a {name} filter is prescribed, and knows no secret");
            return Err(error("InvalidParameter", what));
        }
        (hashing, _) => hashing.hash_fn(),
    };
    py.detach(|| plan.create_with(capacity, rate, hash_fn)).map(Made::new).or_raise(py)
}

/// A Bloom filter of exactly this shape.
#[pyfunction]
pub(crate) fn make_bloom_of_bits(
    py: Python<'_>,
    bits: u64,
    probes: u32,
    seed: Hashing,
) -> PyResult<Made> {
    let make = || Bloom::new(BloomParams::for_bits(bits, probes)?, seed.hash_fn());
    py.detach(make).map(Made::new).or_raise(py)
}

/// A growing filter; `stages` is "bloom" or "blocked".
#[pyfunction]
pub(crate) fn make_scalable(
    py: Python<'_>,
    capacity: u64,
    rate: f64,
    growth: u64,
    tightening: f64,
    stages: &str,
    seed: Hashing,
) -> PyResult<Made> {
    let stages = match stages {
        "bloom" => StageKind::Bloom,
        "blocked" => StageKind::Blocked,
        other => {
            let what = format!("stages are \"bloom\" or \"blocked\", not {other:?}");
            return Err(error("InvalidParameter", what));
        }
    };
    let make = || {
        let params = ScalableParams::new(capacity, rate)?
            .with_growth(growth)?
            .with_tightening(tightening)?
            .with_stages_of(stages);
        Scalable::new(params, seed.hash_fn())
    };
    py.detach(make).map(Made::new).or_raise(py)
}

/// A window of time.
#[pyfunction]
pub(crate) fn make_window_of_time(
    py: Python<'_>,
    seconds: f64,
    capacity: u64,
    rate: f64,
    seed: Hashing,
) -> PyResult<Made> {
    let span = Duration::try_from_secs_f64(seconds)
        .map_err(|error| named(py, "InvalidParameter", error))?;
    let make = || Windowed::new(WindowedParams::for_time(span, capacity, rate)?, seed.hash_fn());
    py.detach(make).map(Made::new).or_raise(py)
}

/// A filter of rows: "joint", "joint-partial" or "parallel".
#[pyfunction]
pub(crate) fn make_rows(
    py: Python<'_>,
    name: &str,
    capacity: u64,
    rate: f64,
    attributes: Vec<String>,
    seed: Hashing,
) -> PyResult<Made> {
    let make = || -> Result<AnyFilter, ParamError> {
        let attributes = Attributes::new(attributes, seed.hash_fn())?;
        Ok(match name {
            "joint" => Joint::new(CuckooParams::for_rate(capacity, rate)?, attributes)?.into(),
            "joint-partial" => {
                Joint::new_partial(CuckooParams::for_rate(capacity, rate)?, attributes)?.into()
            }
            _ => {
                let params = BloomParams::segmented_for_rate(capacity, rate)?;
                ParallelBloom::new(params, attributes)?.into()
            }
        })
    };
    py.detach(make).map(Made::new).or_raise(py)
}

/// A binary fuse filter of all these keys.
#[pyfunction]
#[pyo3(signature = (keys, rate, arity, seed, key=None))]
pub(crate) fn make_fuse(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    rate: f64,
    arity: u32,
    seed: Hashing,
    key: Option<&Bound<'_, PyAny>>,
) -> PyResult<Made> {
    let arity = match arity {
        3 => Arity::Three,
        4 => Arity::Four,
        other => {
            return Err(error("InvalidParameter", format!("arity is 3 or 4, not {other}")));
        }
    };
    let params = FuseParams::for_rate(rate).or_raise(py)?.with_arity(arity);
    let hash_fn = seed.hash_fn();
    let (mut hashes, hasher) = (Vec::new(), Hasher::Hash(hash_fn));
    let mut types = KeyTypes::NONE;
    let number =
        |object: &Bound<'_, PyAny>| with_key(object, |key| Ok((hasher.of(key)?, key.key_type())))?;
    without_panic(|| {
        each_group(py, keys, key, hasher, number, |group| {
            hashes.extend_from_slice(group.numbers);
            types = types.union(group.types);
            Ok(())
        })
    })?;
    let make = || {
        hashes.sort_unstable();
        hashes.dedup();
        let mut filter = AnyFilter::from(BinaryFuse::from_hashes(&hashes, params, hash_fn)?);
        filter.set_key_types(types);
        Ok::<_, ParamError>(filter)
    };
    py.detach(make).map(Made::new).or_raise(py)
}

/// A filter of any kind from a file.
#[pyfunction]
#[pyo3(signature = (path, secret=None))]
pub(crate) fn load(py: Python<'_>, path: PathBuf, secret: Option<&[u8]>) -> PyResult<Made> {
    let key = secret.map(hash_key).transpose()?;
    let load = || match key {
        None => AnyFilter::load(path),
        Some(key) => AnyFilter::load_with_key(path, key),
    };
    without_panic(|| py.detach(load).map(Made::read).or_raise(py))
}

/// A filter whose memory is the file.
#[pyfunction]
pub(crate) fn load_mapped(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<Made> {
    py.detach(|| {
        // SAFETY: the documentation of `open` makes its caller promise not to change the file in place while a filter
        // maps it. Python has no way to say so in the code.
        unsafe { if verify { AnyFilter::map(path) } else { AnyFilter::map_unverified(path) } }
    })
    .map(Made::read)
    .or_raise(py)
}

/// A filter of any kind from the bytes of a file; not `strict`, if it is a copy of one that was made here.
#[pyfunction]
#[pyo3(signature = (bytes, secret=None, strict=true))]
pub(crate) fn from_bytes(
    py: Python<'_>,
    bytes: &[u8],
    secret: Option<&[u8]>,
    strict: bool,
) -> PyResult<Made> {
    let key = secret.map(hash_key).transpose()?;
    let read = || match key {
        None => AnyFilter::from_bytes(bytes),
        Some(key) => AnyFilter::from_bytes_with_key(bytes, key),
    };
    without_panic(|| py.detach(read).map(|filter| Made::of(filter, strict)).or_raise(py))
}

/// The bytes that are hashed for a key.
#[pyfunction]
pub(crate) fn key_bytes<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    Ok(pyo3::types::PyBytes::new(py, &with_key(key, |key| key.to_bytes())?))
}
