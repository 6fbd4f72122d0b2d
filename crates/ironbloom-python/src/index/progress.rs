//! Progress of long work, told to Python; and Ctrl-C, heard meanwhile.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::errors::of_panic;

/// How often Python is told.
const PAUSE: Duration = Duration::from_millis(100);

/// Error that ends work which cannot be told to stop.
struct Stopped(PyErr);

/// Whom the work tells its progress, and who can end it.
pub(crate) struct Listener<'a> {
    told: Option<&'a Py<PyAny>>,
    last: Cell<Option<Instant>>,
}

impl Listener<'_> {
    /// So many rows are done.
    pub(crate) fn tell(&self, rows: u64) {
        if self.last.get().is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.last.set(Some(Instant::now()));
        Self::stop_if(|py| {
            py.check_signals()?;
            self.told.map_or(Ok(()), |told| told.call1(py, (rows,)).map(drop))
        });
    }

    /// Nothing is done, but time passes.
    pub(crate) fn wait(&self, time: Duration) {
        std::thread::sleep(time);
        Self::stop_if(|py| py.check_signals());
    }

    fn stop_if(ask: impl FnOnce(Python<'_>) -> PyResult<()>) {
        if let Err(error) = Python::attach(ask) {
            resume_unwind(Box::new(Stopped(error)));
        }
    }
}

/// Does work without the interpreter. `told` is called with the progress from time to time; if it raises, or if somebody
/// presses Ctrl-C, the work ends there and the exception is raised.
///
/// The functions of the index that take long have callbacks for their progress and for the lock, but no way to be told to
/// stop. So these unwind them: they are ordinary Rust code that writes nothing before it is done. No panic is reported, and
/// none gets further than this function.
pub(crate) fn with_progress<T: Send>(
    py: Python<'_>,
    told: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Listener<'_>) -> T + Send,
) -> PyResult<T> {
    let told = told.map(|told| told.clone().unbind());
    let done = py.detach(|| {
        let listener = Listener { told: told.as_ref(), last: Cell::new(None) };
        catch_unwind(AssertUnwindSafe(|| work(&listener)))
    });
    done.map_err(|stopped| match stopped.downcast::<Stopped>() {
        Ok(stopped) => stopped.0,
        Err(panic) => of_panic(panic),
    })
}
