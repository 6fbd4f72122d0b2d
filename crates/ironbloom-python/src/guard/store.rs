//! A store that asks Python.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use ironbloom_store::{Backend, Before, Generation};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use super::bytes_of;
use crate::errors::named;

thread_local! {
    /// The calls that this thread is in: a store may ask another guard, or the same one for another key.
    static CALLS: RefCell<Vec<Arc<Objects>>> = const { RefCell::new(Vec::new()) };
}

/// The objects of a call.
struct Objects {
    key: Py<PyAny>,
    value: Mutex<Option<Py<PyAny>>>,
    answer: Mutex<Option<Py<PyAny>>>,
}

/// A call, from its start until it is dropped.
pub(super) struct Call(Arc<Objects>);

impl Call {
    pub(super) fn start(key: Py<PyAny>, value: Option<Py<PyAny>>) -> Self {
        let objects = Arc::new(Objects { key, value: Mutex::new(value), answer: Mutex::new(None) });
        CALLS.with_borrow_mut(|calls| calls.push(objects.clone()));
        Self(objects)
    }

    /// Python's answer, if it was asked.
    pub(super) fn answer(&self) -> Option<Py<PyAny>> {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks a function for the value, which becomes the answer and what is put next. False if there is none.
    pub(super) fn load(&self, load: &Py<PyAny>) -> PyResult<bool> {
        Python::attach(|py| {
            let value = load.call1(py, (&self.0.key,))?;
            if value.is_none(py) {
                return Ok(false);
            }
            *self.0.value.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(value.clone_ref(py));
            *self.0.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(true)
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(|calls| calls.pop());
    }
}

/// The call that this thread is in.
fn current() -> Arc<Objects> {
    CALLS.with_borrow(|calls| calls.last().cloned()).expect("stores are asked within a call")
}

/// An adapter of `_guard.py`, owned by a guard and its store. Python's garbage collector may take it away: a store that
/// refers to its guard is a circle.
#[derive(Clone)]
pub(super) struct Adapter(Arc<Mutex<Option<Py<PyAny>>>>);

impl Adapter {
    pub(super) fn new(adapter: Py<PyAny>) -> Self {
        Self(Arc::new(Mutex::new(Some(adapter))))
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let adapter = adapter.as_ref().map(|adapter| adapter.bind(py).clone());
        adapter.ok_or_else(|| named(py, "Refused", "the store of this guard was collected"))
    }

    /// Shows the collector what is referred to; later, if it is in use now.
    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.0.try_lock() {
            Ok(adapter) => visit.call(&*adapter),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn clear(&self) {
        let adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(adapter); // without the lock: it may run code of the store
    }
}

pub(super) struct Store {
    adapter: Adapter,
}

impl Store {
    pub(super) fn new(adapter: Adapter) -> Self {
        Self { adapter }
    }
}

impl Backend for Store {
    type Error = PyErr;

    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, PyErr> {
        let call = current();
        Python::attach(|py| {
            let value = self.adapter.get(py)?.call_method1(intern!(py, "get"), (&call.key,))?;
            let (found, value) = (!value.is_none(), value.unbind());
            *call.answer.lock().unwrap_or_else(PoisonError::into_inner) = found.then_some(value);
            Ok(found.then(Vec::new))
        })
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<Before, PyErr> {
        let call = current();
        Python::attach(|py| {
            let value = call.value.lock().unwrap_or_else(PoisonError::into_inner).take();
            let value = value.unwrap_or_else(|| py.None());
            let put = self.adapter.get(py)?.call_method1(intern!(py, "put"), (&call.key, value))?;
            put.extract::<bool>().map(|new| Before::stored(!new))
        })
    }

    fn remove(&self, _: &[u8]) -> Result<Before, PyErr> {
        let call = current();
        Python::attach(|py| {
            let removed =
                self.adapter.get(py)?.call_method1(intern!(py, "remove"), (&call.key,))?;
            removed.extract::<bool>().map(Before::stored)
        })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), PyErr> {
        Python::attach(|py| {
            let keys = self.adapter.get(py)?.call_method0(intern!(py, "keys"))?;
            for (count, key) in keys.try_iter()?.enumerate() {
                if visit(&bytes_of(&key?)?).is_break() {
                    break;
                }
                if count % 1024 == 0 {
                    py.check_signals()?;
                }
            }
            Ok(())
        })
    }

    fn len_hint(&self) -> Result<Option<u64>, PyErr> {
        Python::attach(|py| self.adapter.get(py)?.call_method0(intern!(py, "size"))?.extract())
    }

    /// A store of Python has no place for one: the filter is built whenever a guard is made.
    fn generation(&self) -> Result<Option<Generation>, PyErr> {
        Ok(None)
    }

    fn set_generation(&self, _: Generation) -> Result<(), PyErr> {
        Ok(())
    }
}
