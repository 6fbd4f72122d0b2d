//! New filters, and filters from files.
//!
//! Functions here return a [`Made`], which the class of its kind (`_kinds.py`) turns into an object.

#![expect(unsafe_code, reason = "mapped files, which the caller promises not to change")]

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use ironbloom::multi::{Attributes, Joint, ParallelBloom};
use ironbloom::{
    AnyFilter, Arity, BinaryFuse, Bloom, BloomParams, CuckooParams, FuseParams, HashFn, ParamError,
    Persist, Scalable, ScalableParams, StageKind, Windowed, WindowedParams, plan,
};
use pyo3::prelude::*;

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
}

impl Made {
    pub(crate) fn new(filter: impl Into<AnyFilter>) -> Self {
        let filter = filter.into();
        Self { kind: filter.kind().name(), filter: Mutex::new(Some(filter)) }
    }

    pub(crate) fn take(&self) -> PyResult<AnyFilter> {
        let taken = self.filter.lock().ok().and_then(|mut filter| filter.take());
        taken.ok_or_else(|| error("Refused", "this filter is in use already"))
    }
}

/// A filter of a plan that is made empty.
#[pyfunction]
pub(crate) fn make(
    py: Python<'_>,
    name: &str,
    capacity: u64,
    rate: f64,
    seed: u64,
) -> PyResult<Made> {
    let plan = plan::named(name)
        .ok_or_else(|| error("InvalidParameter", format!("there is no kind {name:?}")))?;
    py.detach(|| plan.create(capacity, rate, seed)).map(Made::new).or_raise(py)
}

/// A Bloom filter of exactly this shape.
#[pyfunction]
pub(crate) fn make_bloom_of_bits(
    py: Python<'_>,
    bits: u64,
    probes: u32,
    seed: u64,
) -> PyResult<Made> {
    let make = || Bloom::new(BloomParams::for_bits(bits, probes)?, HashFn::Xxh3 { seed });
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
    seed: u64,
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
        Scalable::new(params, HashFn::Xxh3 { seed })
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
    seed: u64,
) -> PyResult<Made> {
    let span = Duration::try_from_secs_f64(seconds)
        .map_err(|error| named(py, "InvalidParameter", error))?;
    let make =
        || Windowed::new(WindowedParams::for_time(span, capacity, rate)?, HashFn::Xxh3 { seed });
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
    seed: u64,
) -> PyResult<Made> {
    let make = || -> Result<AnyFilter, ParamError> {
        let attributes = Attributes::new(attributes, HashFn::Xxh3 { seed })?;
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
    seed: u64,
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
    let hash_fn = HashFn::Xxh3 { seed };
    let (mut hashes, hasher) = (Vec::new(), Hasher::Hash(hash_fn));
    let number = |object: &Bound<'_, PyAny>| with_key(object, |key| hasher.of(key))?;
    without_panic(|| {
        each_group(py, keys, key, hasher, number, |group| {
            hashes.extend_from_slice(group.numbers);
            Ok(())
        })
    })?;
    let make = || {
        hashes.sort_unstable();
        hashes.dedup();
        BinaryFuse::from_hashes(&hashes, params, hash_fn)
    };
    py.detach(make).map(Made::new).or_raise(py)
}

/// A filter of any kind from a file.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Made> {
    without_panic(|| py.detach(|| AnyFilter::load(path)).map(Made::new).or_raise(py))
}

/// A filter whose memory is the file.
#[pyfunction]
pub(crate) fn load_mapped(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<Made> {
    py.detach(|| {
        // SAFETY: the documentation of `open` makes its caller promise that nobody changes the file in place while a filter
        // maps it. Python has no way to say so in the code.
        unsafe { if verify { AnyFilter::map(path) } else { AnyFilter::map_unverified(path) } }
    })
    .map(Made::new)
    .or_raise(py)
}

/// A filter of any kind from the bytes of a file.
#[pyfunction]
pub(crate) fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Made> {
    without_panic(|| py.detach(|| AnyFilter::from_bytes(bytes)).map(Made::new).or_raise(py))
}

/// The bytes that are hashed for a key.
#[pyfunction]
pub(crate) fn key_bytes<'py>(
    py: Python<'py>,
    key: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
    Ok(pyo3::types::PyBytes::new(py, &with_key(key, |key| key.to_bytes())?))
}
