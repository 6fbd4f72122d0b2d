//! The guard in front of a store of Python.
//!
//! Everything that a guard promises is in `ironbloom-store`; here is only a store that asks Python. That library knows keys
//! and values as bytes, so the objects go beside it: a call puts its key and value where the store finds them
//! ([`Call`]), and the store puts there what Python answered.

pub(crate) mod awaited;
mod store;

use std::time::Duration;

use ironbloom_store::{
    Before, Error, Guard as Blocking, GuardKind, LoadError, Options, ReadThrough, Rebuild, Stats,
};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::store::{Adapter, Call, Store};
use crate::errors::{self, IntoPython, named};
use crate::key::with_key;

impl IntoPython for Error<PyErr> {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Store(raised) => raised,
            Self::Params(error) => error.into_python(py),
            Self::Checkpoint(error) | Self::Publish(error) => error.into_python(py),
            Self::Panicked(words) => named(py, "Error", words),
            other => named(py, "Refused", other),
        }
    }
}

/// The options that Python has given.
pub(crate) fn options(
    py: Python<'_>,
    kind: &str,
    capacity: u64,
    rate: f64,
    only_writer: bool,
) -> PyResult<Options> {
    let kind = GuardKind::ALL.into_iter().find(|known| known.name() == kind).ok_or_else(|| {
        let known: Vec<&str> = GuardKind::ALL.iter().map(|kind| kind.name()).collect();
        let what = format!("a guard has a filter of kind {}, not {kind:?}", known.join(", "));
        named(py, "InvalidParameter", what)
    })?;
    // Stores of Python are asked in the thread of the caller: many of them may be used in no other one.
    let options = Options::new(kind, capacity, rate).rebuild(Rebuild::Manual).measured_share(0.0);
    Ok(if only_writer { options.only_writer() } else { options })
}

/// A number of seconds.
pub(crate) fn seconds(number: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(number).map_err(|error| errors::error("InvalidParameter", error))
}

/// Counts of a guard.
pub(crate) fn stats(py: Python<'_>, stats: &Stats) -> PyResult<Py<PyDict>> {
    let said = PyDict::new(py);
    said.set_item("lookups", stats.lookups())?;
    said.set_item("skipped", stats.skipped())?;
    said.set_item("false_positives", stats.false_positives())?;
    said.set_item("hits", stats.hits())?;
    said.set_item("unguarded", stats.unguarded())?;
    said.set_item("measured_rate", stats.measured_rate())?;
    said.set_item("seconds_saved", stats.time_saved().as_secs_f64())?;
    said.set_item("bits_per_key", stats.bits_per_key())?;
    Ok(said.unbind())
}

/// The bytes of a key.
pub(crate) fn bytes_of(key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    with_key(key, |key| key.to_bytes())
}

/// A guard in front of an adapter (`_guard.py`) with the methods `get`, `put`, `remove`, `keys` and `size`.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct Guard {
    guard: ReadThrough<Blocking<Store>>,
    adapter: Adapter,
}

#[pymethods]
impl Guard {
    #[new]
    #[pyo3(signature = (adapter, kind, capacity, rate, only_writer, negative_ttl=None))]
    fn new(
        py: Python<'_>,
        adapter: Py<PyAny>,
        kind: &str,
        capacity: u64,
        rate: f64,
        only_writer: bool,
        negative_ttl: Option<f64>,
    ) -> PyResult<Self> {
        let options = options(py, kind, capacity, rate, only_writer)?;
        let adapter = Adapter::new(adapter);
        let store = Store::new(adapter.clone());
        let opened = py.detach(|| Blocking::open(store, options));
        let guard = opened.map_err(|error| error.into_python(py))?;
        let mut guard = ReadThrough::new(guard);
        if let Some(ttl) = negative_ttl {
            guard = guard.negative_ttl(seconds(ttl)?);
        }
        Ok(Self { guard, adapter })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.adapter.traverse(&visit)
    }

    fn __clear__(&self) {
        self.adapter.clear();
    }

    /// The value of a key, or None.
    fn get(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let bytes = bytes_of(&key)?;
        let call = Call::start(key.unbind(), None);
        let found = self.guard.guard().get(bytes);
        found.map_err(|error| error.into_python(py))?;
        Ok(call.answer())
    }

    /// Returns true if a key is stored.
    fn contains(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(&key)?;
        let _call = Call::start(key.unbind(), None);
        self.guard.guard().contains(bytes).map_err(|error| error.into_python(py))
    }

    /// True if the key was not there before.
    fn put(&self, py: Python<'_>, key: Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(&key)?;
        let _call = Call::start(key.unbind(), Some(value));
        let put = py.detach(|| self.guard.guard().put(bytes, []));
        put.map(Before::may_be_new).map_err(|error| error.into_python(py))
    }

    fn remove(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = bytes_of(&key)?;
        let _call = Call::start(key.unbind(), None);
        let removed = py.detach(|| self.guard.guard().remove(bytes));
        removed.map(Before::was_present).map_err(|error| error.into_python(py))
    }

    /// The value of a key; if it is not stored, what `load(key)` returns, which is then put. What was found nowhere is not
    /// loaded again before its time.
    fn get_or_load(
        &self,
        py: Python<'_>,
        key: Bound<'_, PyAny>,
        load: Py<PyAny>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let bytes = bytes_of(&key)?;
        let call = Call::start(key.unbind(), None);
        let loaded = py.detach(|| {
            self.guard.get_or_load(&bytes, || call.load(&load).map(|found| found.then(Vec::new)))
        });
        let found = loaded.map_err(|error| match error {
            LoadError::Guard(error) => error.into_python(py),
            LoadError::Load(raised) => raised,
        })?;
        match (found, call.answer()) {
            // Another thread has loaded it, and its value is there: this one asks for its own.
            (Some(_), None) => {
                call.load(&load)?;
                Ok(call.answer())
            }
            (_, answer) => Ok(answer),
        }
    }

    fn note(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(&key)?;
        py.detach(|| self.guard.guard().note(bytes)).map_err(|error| error.into_python(py))
    }

    fn note_removed(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(&key)?;
        py.detach(|| self.guard.guard().note_removed(bytes));
        Ok(())
    }

    fn rebuild(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.guard.guard().rebuild()).map_err(|error| error.into_python(py))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        stats(py, &self.guard.guard().stats())
    }
}
