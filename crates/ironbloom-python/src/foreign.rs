//! Filters of other programs. Their keys are what that program has, in its form, and are hashed by its rule.
//!
//! A `str` is a text and an `int` is an integer: neither stands for the other. Other numbers are keys if
//! they equal one of the form: `True` and `Decimal(1)`, but not `Decimal("0.1")`, which no float equals.

use ironbloom::any::{KeyError, Operation, Refused};
use ironbloom::hash::KeyForm;
use ironbloom::{AnyFilter, Encoded, Filter as _, HashFn};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::errors::{IntoPython, OrRaise, error, named};
use crate::filter::Filter;
use crate::key::{Stable, plain_bytes, utf8};
use crate::make::Made;
use crate::many::Work;

impl Filter {
    /// Does something with one key. The answer is what `add`, `in` and `remove` return.
    pub(crate) fn with_foreign(
        &self,
        py: Python<'_>,
        work: Work,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let form = match self.read(py)?.hash_fn() {
            HashFn::Foreign { form, .. } => {
                form.ok_or_else(|| KeyError::UnknownForm.into_python(py))?
            }
            _ => return Err(KeyError::Foreign.into_python(py)),
        };
        match KeyOfForm::new(form, key)? {
            KeyOfForm::Integer(number) => {
                self.do_with(py, work, Stable(Encoded::Integer(number as u64)))
            }
            KeyOfForm::Bytes(bytes) => self.do_with(py, work, Stable::bytes(&bytes)),
        }
    }

    fn do_with(&self, py: Python<'_>, work: Work, key: Stable<'_>) -> PyResult<bool> {
        match work {
            Work::Contains => {
                let found = self.read(py)?.contains(key);
                found.or_raise(py)
            }
            Work::Add => {
                let inserted = self.write(py)?.insert(key);
                inserted.or_raise(py)
            }
            Work::Remove => {
                let kind = self.read(py)?.kind();
                let operation = Operation::Remove;
                Err(Refused::Unsupported { kind, operation }.into_python(py))
            }
        }
    }

    /// Adds to the filter what the caller knows of its keys.
    pub(crate) fn with_form(&self, py: Python<'_>, name: &str) -> PyResult<Made> {
        let form = KeyForm::ALL.into_iter().find(|form| form.name() == name);
        let form = form.ok_or_else(|| {
            let known = KeyForm::ALL.map(KeyForm::name).join(", ");
            named(py, "InvalidParameter", format!("keys are {known}, not {name:?}"))
        })?;
        match self.read(py)?.clone() {
            AnyFilter::Foreign(filter) => match filter.with_form(form) {
                Ok(filter) => Ok(Made::of(filter.into(), self.strict)),
                Err(mismatch) => Err(named(py, "Mismatch", mismatch)),
            },
            other => {
                let what = format!("a {} filter says itself what its keys are", other.kind());
                Err(named(py, "Refused", what))
            }
        }
    }
}

/// A key as the library reads one of a form.
enum KeyOfForm {
    Integer(i64),
    Bytes(Vec<u8>),
}

impl KeyOfForm {
    fn new(form: KeyForm, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = key.cast::<PyString>().ok();
        let bytes = match key.cast::<PyBytes>() {
            Ok(bytes) => Some(bytes.as_bytes().to_vec()),
            Err(_) => plain_bytes(key)?,
        };
        let made = match (form, text, bytes) {
            (KeyForm::Text | KeyForm::Chars | KeyForm::Hex, Some(text), _) => {
                Some(Self::Bytes(utf8(text)?.as_bytes().to_vec()))
            }
            (KeyForm::Text, _, Some(bytes)) => Some(Self::Bytes(bytes)),
            (KeyForm::Hex, _, Some(bytes)) => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(Self::Bytes(digits.into_bytes()))
            }
            (KeyForm::Long | KeyForm::Int, None, None) => key.extract().ok().map(Self::Integer),
            (KeyForm::Double, None, None) => {
                let number: Option<f64> = key.extract().ok();
                // A number that no float equals, such as 2^53 + 1, would be taken for its neighbour.
                let equal = |&number: &f64| number.is_nan() || key.eq(number).unwrap_or(false);
                number.filter(equal).map(|number| Self::Bytes(number.to_string().into_bytes()))
            }
            _ => None,
        };
        made.ok_or_else(|| match key.repr() {
            Ok(shown) => error("InvalidKey", format!("keys are {form}, not {shown}")),
            Err(error) => error,
        })
    }
}
