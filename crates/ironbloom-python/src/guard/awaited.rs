//! The guard in front of a store that is awaited, in asyncio.
//!
//! ```text
//!  Python                                      Rust
//!  op = guard.get(key) ───────────────────────► a future of the guard, not begun
//!  op.step()  ────── polls it ────────────────► … it asks the store, which leaves a question: pending
//!  ("get", key)  ◄────────────────────────────┘
//!  answer = await store.get(key)
//!  op.step(answer)  ── polls it again ────────► … done
//! ```
//!
//! So the store is awaited in the task of the caller, and nothing runs elsewhere. A task that is cancelled drops the future;
//! what that means for a put that was under way, the guard knows.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ironbloom_store::{
    AsyncBackend, AsyncGuard as Awaited, Before, Error, Generation, LoadError, ReadThrough, Visit,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{bytes_of, options, seconds, stats};
use crate::errors::IntoPython;

thread_local! {
    /// The operation that is being polled.
    static CURRENT: RefCell<Option<Arc<Exchange>>> = const { RefCell::new(None) };
}

/// Request of the guard to the store.
#[derive(Clone, Copy)]
enum Question {
    Get,
    Put,
    Remove,
    Keys,
    Size,
    /// Not the store, but the function that knows what is not stored.
    Load,
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Remove => "remove",
            Self::Keys => "keys",
            Self::Size => "size",
            Self::Load => "load",
        }
    }
}

/// Where an operation and its store meet.
struct Exchange {
    key: Option<Py<PyAny>>,
    value: Mutex<Option<Py<PyAny>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    question: Option<Question>,
    /// The last answer to a question.
    answer: Option<PyResult<Py<PyAny>>>,
    /// Value that the operation returns if it found something.
    found: Option<Py<PyAny>>,
    /// Called when the operation can go on.
    wake: Option<Py<PyAny>>,
    /// It can go on; no waker was registered.
    woken: bool,
}

impl Exchange {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Exchange {
    fn wake(self: Arc<Self>) {
        let called = {
            let mut state = self.state();
            state.woken = true;
            state.wake.take()
        };
        if let Some(wake) = called {
            // What asyncio says to a loop that is closed does not matter here.
            Python::attach(|py| drop(wake.call0(py)));
        }
    }
}

/// A store that leaves its questions where Python finds them.
struct Store;

/// Asks, and waits until Python has answered.
async fn ask(question: Question) -> PyResult<Py<PyAny>> {
    let mut asked = false;
    poll_fn(move |_| {
        let exchange = CURRENT.with_borrow(Clone::clone).expect("polled by an operation");
        let mut state = exchange.state();
        if !asked {
            asked = true;
            state.question = Some(question);
            return Poll::Pending;
        }
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    })
    .await
}

fn extracted<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>>(
    answer: &Py<PyAny>,
) -> PyResult<T> {
    Python::attach(|py| answer.extract(py))
}

impl AsyncBackend for Store {
    type Error = PyErr;

    async fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, PyErr> {
        let value = ask(Question::Get).await?;
        let found = Python::attach(|py| !value.is_none(py));
        let exchange = CURRENT.with_borrow(Clone::clone).expect("polled by an operation");
        exchange.state().found = found.then_some(value);
        Ok(found.then(Vec::new))
    }

    async fn put(&self, _: &[u8], _: &[u8]) -> Result<Before, PyErr> {
        Ok(Before::stored(!extracted::<bool>(&ask(Question::Put).await?)?))
    }

    async fn remove(&self, _: &[u8]) -> Result<Before, PyErr> {
        Ok(Before::stored(extracted(&ask(Question::Remove).await?)?))
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), PyErr> {
        let keys = ask(Question::Keys).await?;
        Python::attach(|py| {
            for key in keys.bind(py).try_iter()? {
                if visit(&bytes_of(&key?)?).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    async fn len_hint(&self) -> Result<Option<u64>, PyErr> {
        extracted(&ask(Question::Size).await?)
    }

    async fn generation(&self) -> Result<Option<Generation>, PyErr> {
        Ok(None)
    }

    async fn set_generation(&self, _: Generation) -> Result<(), PyErr> {
        Ok(())
    }
}

/// Result of an operation.
enum Outcome {
    Nothing,
    Flag(bool),
    /// Value that was found.
    Value,
    Guard(Box<Awaited<Store>>),
}

type Work = Pin<Box<dyn Future<Output = Result<Outcome, Error<PyErr>>> + Send>>;

/// An operation under way.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct Operation {
    exchange: Arc<Exchange>,
    work: Mutex<Option<Work>>,
    /// Of the guard that it opens.
    negative_ttl: Option<Duration>,
}

impl Operation {
    fn new(key: Option<Py<PyAny>>, value: Option<Py<PyAny>>, work: Work) -> Self {
        let exchange =
            Arc::new(Exchange { key, value: Mutex::new(value), state: Mutex::default() });
        Self { exchange, work: Mutex::new(Some(work)), negative_ttl: None }
    }
}

#[pymethods]
impl Operation {
    /// Goes on with an answer or an exception of the store. Returns `("done", result)`, or a question for the store and
    /// its arguments, or `("wait",)` if another operation must end first.
    #[pyo3(signature = (*answer, raised=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        answer: &Bound<'py, PyTuple>,
        raised: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        {
            let mut state = self.exchange.state();
            state.woken = false;
            state.answer = match (answer.get_item(0), raised) {
                (_, Some(raised)) => Some(Err(PyErr::from_value(raised))),
                (Ok(answer), None) => Some(Ok(answer.unbind())),
                (Err(_), None) => None, // it was not asked, and goes on
            };
        }
        let polled = py.detach(|| {
            let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            let future = work.as_mut()?;
            let before = CURRENT.replace(Some(self.exchange.clone()));
            let waker = Waker::from(self.exchange.clone());
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            CURRENT.set(before);
            if polled.is_ready() {
                *work = None;
            }
            Some(polled)
        });
        match polled {
            None => Err(PyRuntimeError::new_err("this operation has ended")),
            Some(Poll::Ready(done)) => {
                let done = done.map_err(|error| error.into_python(py))?;
                let result = match done {
                    Outcome::Nothing => py.None().into_bound(py),
                    Outcome::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
                    Outcome::Value => {
                        let found = self.exchange.state().found.take();
                        found.map_or_else(|| py.None().into_bound(py), |found| found.into_bound(py))
                    }
                    Outcome::Guard(guard) => {
                        let mut guard = ReadThrough::new(*guard);
                        if let Some(ttl) = self.negative_ttl {
                            guard = guard.negative_ttl(ttl);
                        }
                        Bound::new(py, AsyncGuard { guard: Arc::new(guard) })?.into_any()
                    }
                };
                Ok(("done", result).into_pyobject(py)?.into_any())
            }
            Some(Poll::Pending) => {
                let question = self.exchange.state().question.take();
                let key = &self.exchange.key;
                Ok(match question {
                    None => ("wait",).into_pyobject(py)?.into_any(),
                    Some(question @ (Question::Get | Question::Remove | Question::Load)) => {
                        (question.name(), key).into_pyobject(py)?.into_any()
                    }
                    Some(Question::Put) => {
                        let value = self.exchange.value.lock();
                        let value = value.unwrap_or_else(PoisonError::into_inner).take();
                        ("put", key, value).into_pyobject(py)?.into_any()
                    }
                    Some(question) => (question.name(),).into_pyobject(py)?.into_any(),
                })
            }
        }
    }

    /// Asks to be called when the operation can go on. False if it can already.
    fn call_when_ready(&self, wake: Py<PyAny>) -> bool {
        let mut state = self.exchange.state();
        if state.woken {
            return false;
        }
        state.wake = Some(wake);
        true
    }
}

/// A guard in front of a store that is awaited.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct AsyncGuard {
    guard: Arc<ReadThrough<Awaited<Store>>>,
}

/// Opens a guard; its operation returns it.
#[pyfunction]
pub(crate) fn open_async_guard(
    py: Python<'_>,
    kind: &str,
    capacity: u64,
    rate: f64,
    only_writer: bool,
    negative_ttl: Option<f64>,
) -> PyResult<Operation> {
    let options = options(py, kind, capacity, rate, only_writer)?;
    let negative_ttl = negative_ttl.map(seconds).transpose()?;
    let work = async move {
        Awaited::open(Store, options).await.map(|guard| Outcome::Guard(Box::new(guard)))
    };
    Ok(Operation { negative_ttl, ..Operation::new(None, None, Box::pin(work)) })
}

/// The function that knows what is not stored, asked as the store is.
async fn load() -> PyResult<Option<Vec<u8>>> {
    let value = ask(Question::Load).await?;
    let exchange = CURRENT.with_borrow(Clone::clone).expect("polled by an operation");
    Python::attach(|py| {
        if value.is_none(py) {
            return Ok(None);
        }
        *exchange.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value.clone_ref(py));
        exchange.state().found = Some(value);
        Ok(Some(Vec::new()))
    })
}

#[pymethods]
impl AsyncGuard {
    /// The value of a key, or what the function has for it. None for what was found nowhere, also a while ago.
    fn get_or_load(&self, key: Bound<'_, PyAny>) -> PyResult<Operation> {
        let (guard, bytes) = (self.guard.clone(), bytes_of(&key)?);
        let work = async move {
            let found = guard.get_or_load(&bytes, load).await.map_err(|error| match error {
                LoadError::Guard(error) => error,
                LoadError::Load(raised) => Error::Store(raised),
            })?;
            let exchange = CURRENT.with_borrow(Clone::clone).expect("polled by an operation");
            let waited = found.is_some() && exchange.state().found.is_none();
            if waited {
                // Another task has loaded it, and its value is there: this one asks for its own.
                load().await.map_err(Error::Store)?;
            }
            Ok(Outcome::Value)
        };
        Ok(Operation::new(Some(key.unbind()), None, Box::pin(work)))
    }

    fn get(&self, key: Bound<'_, PyAny>) -> PyResult<Operation> {
        let (guard, bytes) = (self.guard.clone(), bytes_of(&key)?);
        let work = async move { guard.guard().get(bytes).await.map(|_| Outcome::Value) };
        Ok(Operation::new(Some(key.unbind()), None, Box::pin(work)))
    }

    fn put(&self, key: Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<Operation> {
        let (guard, bytes) = (self.guard.clone(), bytes_of(&key)?);
        let work = async move {
            guard.guard().put(bytes, []).await.map(|before| Outcome::Flag(before.may_be_new()))
        };
        Ok(Operation::new(Some(key.unbind()), Some(value), Box::pin(work)))
    }

    fn remove(&self, key: Bound<'_, PyAny>) -> PyResult<Operation> {
        let (guard, bytes) = (self.guard.clone(), bytes_of(&key)?);
        let work = async move {
            guard.guard().remove(bytes).await.map(|before| Outcome::Flag(before.was_present()))
        };
        Ok(Operation::new(Some(key.unbind()), None, Box::pin(work)))
    }

    fn note(&self, key: Bound<'_, PyAny>) -> PyResult<Operation> {
        let (guard, bytes) = (self.guard.clone(), bytes_of(&key)?);
        let work = async move { guard.guard().note(bytes).await.map(|()| Outcome::Nothing) };
        Ok(Operation::new(Some(key.unbind()), None, Box::pin(work)))
    }

    fn rebuild(&self) -> Operation {
        let guard = self.guard.clone();
        let work = async move { guard.guard().rebuild().await.map(|()| Outcome::Nothing) };
        Operation::new(None, None, Box::pin(work))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        stats(py, &self.guard.guard().stats())
    }
}
