//! Errors of the library as exceptions of Python.
//!
//! The classes are in `_errors.py`: most have two base classes (`Mismatch` is a `ValueError`, too), which a class made here
//! cannot have. What the operating system reports becomes an `OSError` with its number and file, as everywhere in Python.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow::error::ArrowError;
use ironbloom::any::{KeyError, Refused};
use ironbloom::{DecodeError, FileError, ParamError, RowError};
use ironbloom_index::{
    ConditionError, Error as IndexError, IndexedError, Location, PathError, TableError,
};
use pyo3::exceptions::{PyFileNotFoundError, PyMemoryError, PyOSError};
use pyo3::prelude::*;

/// The exception of this name in `_errors.py`, with a message.
pub(crate) fn named(py: Python<'_>, name: &str, message: impl ToString) -> PyErr {
    let class = py.import("ironbloom._errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1((message.to_string(),))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// As [`named`], for threads that may lack the interpreter. They must have no guard of a filter.
pub(crate) fn error(name: &str, message: impl ToString) -> PyErr {
    Python::attach(|py| named(py, name, message))
}

/// Makes an error of a panic: of this package, or of a library below it that was given what it cannot read.
pub(crate) fn without_panic<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of_panic(panic)))
}

/// The error of a panic.
pub(crate) fn of_panic(panic: Box<dyn Any + Send>) -> PyErr {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
    error("Error", format!("an error in ironbloom, please report it: {words}"))
}

/// Error with a separate exception class.
pub(crate) trait IntoPython {
    fn into_python(self, py: Python<'_>) -> PyErr;
}

impl IntoPython for ParamError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Memory { .. } => PyMemoryError::new_err(self.to_string()),
            _ => named(py, "InvalidParameter", self),
        }
    }
}

impl IntoPython for Refused {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Params(error) => error.into_python(py),
            Self::Key(error) => error.into_python(py),
            Self::Full(_) => named(py, "Full", self),
            Self::Mismatch(_) => named(py, "Mismatch", self),
            Self::OutOfBounds(_) => named(py, "OutOfBounds", self),
            _ => named(py, "Refused", self),
        }
    }
}

impl IntoPython for RowError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Params(error) => error.into_python(py),
            Self::Key(error) => error.into_python(py),
            Self::Full(_) => named(py, "Full", self),
            _ => named(py, "Refused", self),
        }
    }
}

impl IntoPython for KeyError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        named(py, "InvalidKey", self)
    }
}

impl IntoPython for ArrowError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        named(py, "InvalidColumn", self)
    }
}

impl IntoPython for DecodeError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Params(error) => error.into_python(py),
            Self::Kind { .. } | Self::HashKey { .. } => named(py, "Mismatch", self),
            _ => named(py, "DamagedFile", self),
        }
    }
}

impl IntoPython for FileError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Io { path, error } => os_error(py, &error, &path),
            Self::Decode { error: DecodeError::Params(error), .. } => error.into_python(py),
            Self::Decode {
                error: DecodeError::Kind { .. } | DecodeError::HashKey { .. }, ..
            } => named(py, "Mismatch", self),
            _ => named(py, "DamagedFile", self),
        }
    }
}

impl IntoPython for IndexError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Io { path, error } => located(py, &error, &path),
            Self::NotAnIndex { .. }
            | Self::Version { .. }
            | Self::Length { .. }
            | Self::Damaged { .. } => named(py, "DamagedFile", self),
            Self::Overtaken { .. } => named(py, "Overtaken", self),
            Self::Mismatch { .. } => named(py, "Mismatch", self),
            Self::Param(_) => named(py, "InvalidParameter", self),
            Self::NoColumn { .. } | Self::Kind { .. } => named(py, "InvalidCondition", self),
            _ => named(py, "Refused", self),
        }
    }
}

impl IntoPython for TableError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Io { path, error } => located(py, &error, &path),
            Self::Changed { .. } | Self::Grown { .. } | Self::Missing { .. } => {
                named(py, "TableChanged", self)
            }
            Self::NotATable { .. }
            | Self::Damaged { .. }
            | Self::Line { .. }
            | Self::Notes { .. } => named(py, "DamagedFile", self),
            Self::UnknownColumn { .. } | Self::AmbiguousColumn { .. } | Self::Condition { .. } => {
                named(py, "InvalidCondition", self)
            }
            _ => named(py, "Refused", self),
        }
    }
}

impl IntoPython for IndexedError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Index(error) => error.into_python(py),
            Self::Table(error) => error.into_python(py),
            Self::Indexing { error: IndexError::NoColumn { .. }, .. } => {
                named(py, "InvalidParameter", self)
            }
            _ => named(py, "Refused", self),
        }
    }
}

impl IntoPython for PathError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Io { path, error } => located(py, &error, &path),
            Self::Followed { .. } => named(py, "Refused", self),
            _ => PyFileNotFoundError::new_err(self.to_string()),
        }
    }
}

impl IntoPython for ConditionError {
    fn into_python(self, py: Python<'_>) -> PyErr {
        named(py, "InvalidCondition", self)
    }
}

/// As [`os_error`], for a file or an object.
fn located(py: Python<'_>, error: &io::Error, location: &Location) -> PyErr {
    match location.as_file() {
        Some(path) => os_error(py, error, path),
        None => PyOSError::new_err(format!("{location}: {error}")),
    }
}

/// The `OSError` for a file: `FileNotFoundError` and its like follow from the number.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return PyOSError::new_err(format!("{}: {error}", path.display()));
    };
    let made = py
        .import("os")
        .and_then(|os| os.call_method1("strerror", (number,)))
        .and_then(|text| py.get_type::<PyOSError>().call1((number, text, path.as_os_str())));
    made.map_or_else(|failed| failed, PyErr::from_value)
}

/// Results whose error becomes an exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: IntoPython> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.into_python(py))
    }
}
