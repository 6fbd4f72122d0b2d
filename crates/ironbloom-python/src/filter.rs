//! [`Filter`]: a filter of any kind, shared by threads.
//!
//! What is called once per key is here; the rest of the class is in `_filters.py`, which this one is the base of.
//!
//! How threads share the filter is in `shared.rs`.

use ironbloom::any::KeyHash;
use ironbloom::describe::FactValue;
use ironbloom::{AnyFilter, Filter as _, HashFn, Persist};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple};

use crate::batch::column::Hasher;
use crate::batch::mask::Mask;
use crate::errors::{OrRaise, error, named, without_panic};
use crate::groups::out_of_bounds;
use crate::key::with_key;
use crate::make::Made;
use crate::many::Work;
use crate::shared::{Reading, Shared, Writing};

#[pyclass(frozen, subclass, weakref, module = "ironbloom._native")]
pub(crate) struct Filter {
    pub(crate) filter: Shared,
    /// Never changes, so that keys are hashed before a lock is taken.
    pub(crate) hasher: Hasher,
    /// That of the hasher if it takes keys of all types, as nearly always.
    any_key: Option<HashFn>,
    /// Keys are rows of several attributes.
    rows: bool,
    /// Keys are those of another program.
    foreign: bool,
}

impl Filter {
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Reading<'_>> {
        self.filter.read(py)
    }

    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<Writing<'_>> {
        self.filter.write(py)
    }

    /// The number that the filter knows a key by.
    #[inline(always)]
    pub(crate) fn number(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        match self.usual_number(key) {
            Some(number) => Ok(number),
            None => self.any_number(key),
        }
    }

    /// The same for this work: only lookups take integers that no bitmap holds.
    #[inline(always)]
    pub(crate) fn number_for(&self, work: Work, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let number = self.number(key)?;
        if number == u64::MAX && matches!(self.hasher, Hasher::Integer) && work != Work::Contains {
            return Err(out_of_bounds(key.py(), key.str()?, self.read(key.py())?.capacity()));
        }
        Ok(number)
    }

    /// That of a usual key. Errors are large, and would be handed on through memory also where there are none.
    #[inline(always)]
    fn usual_number(&self, key: &Bound<'_, PyAny>) -> Option<u64> {
        let hash_fn = self.any_key?;
        if let Ok(text) = key.cast::<PyString>() {
            return Some(hash_fn.hash(text.to_str().ok()?));
        }
        let number: i64 = key.cast::<PyInt>().ok()?.extract().ok()?;
        Some(hash_fn.hash(number))
    }

    #[inline(never)]
    fn any_number(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        if let Hasher::Integer = self.hasher {
            return integer_of(key);
        }
        if self.rows {
            return Err(rows_are_needed());
        }
        with_key(key, |key| self.hasher.of(key))?
    }
}

/// An integer for a bitmap. One that no bitmap holds is the largest of 64 bits, which none holds either.
fn integer_of(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_key(key, |stable| match stable.0 {
        ironbloom::Encoded::Integer(number) => {
            let negative = key.lt(0).unwrap_or(false);
            Ok(if negative { u64::MAX } else { number })
        }
        ironbloom::Encoded::Bytes([0xff, b'i', ..]) => Ok(u64::MAX),
        _ => {
            let what = format!("a bitmap holds integers, not {}", key.get_type().name()?);
            Err(error("InvalidKey", what))
        }
    })?
}

pub(crate) fn rows_are_needed() -> PyErr {
    error("InvalidKey", "the filter holds rows: a key is a tuple with a value for each attribute")
}

#[pymethods]
impl Filter {
    /// From what `make`, `load` and their like return.
    #[new]
    #[pyo3(signature = (made))]
    fn new(made: &Bound<'_, Made>) -> PyResult<Self> {
        let filter = made.get().take()?;
        let key_hash = filter.key_hash();
        let any_key = match key_hash {
            KeyHash::Hash(hash_fn @ (HashFn::Xxh3 { .. } | HashFn::Xxh64 { .. })) => Some(hash_fn),
            _ => None,
        };
        Ok(Self {
            hasher: Hasher::new(key_hash),
            any_key,
            rows: matches!(key_hash, KeyHash::Row(_)),
            foreign: matches!(key_hash, KeyHash::Foreign(_)),
            filter: Shared::new(made.py(), filter)?,
        })
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rows {
            return self.contains_row(py, key);
        }
        if self.foreign {
            return self.with_foreign(py, Work::Contains, key);
        }
        let number = self.number(key)?;
        self.filter.contains_hash(py, number)
    }

    /// Adds a key. True if it was new; False if it might have been there before.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rows {
            return self.add_row(py, key);
        }
        if self.foreign {
            return self.with_foreign(py, Work::Add, key);
        }
        let number = self.number_for(Work::Add, key)?;
        self.filter.insert_hash(py, number)
    }

    /// Removes a key that was added, once. False, changing nothing, if it is certainly not there.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rows {
            return self.remove_row(py, key);
        }
        if self.foreign {
            return self.with_foreign(py, Work::Remove, key);
        }
        let number = self.number_for(Work::Remove, key)?;
        self.filter.remove_hash(py, number)
    }

    /// Adds, looks up or removes the keys of a column or an iterable.
    #[pyo3(signature = (work, keys, key=None))]
    fn _many(
        &self,
        py: Python<'_>,
        work: Work,
        keys: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Mask> {
        without_panic(|| match self.rows {
            true => self.many_rows(py, work, keys, key),
            false => self.many(py, work, keys, key),
        })
    }

    /// Removes all keys.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.write(py)?.clear().or_raise(py)
    }

    /// Adds the keys of another filter of the same kind, shape and hash.
    fn merge(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get().read(py)?.clone();
        self.filter.write_detached(py, |filter| filter.union_with(&other))?.or_raise(py)
    }

    fn _intersect(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get().read(py)?.clone();
        self.filter.write_detached(py, |filter| filter.intersect_with(&other))?.or_raise(py)
    }

    fn _equals(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        if std::ptr::eq(self, other.get()) {
            return Ok(true);
        }
        let other = other.get().read(py)?.clone();
        self.filter.read_detached(py, |filter| *filter == other)
    }

    fn _copy(&self, py: Python<'_>) -> PyResult<Made> {
        self.filter.read_detached(py, |filter| Made::new(filter.clone()))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.read(py)?.is_empty())
    }

    /// The kind, as the program and reports name it.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.read(py)?.kind().name())
    }

    /// Keys counted: adds of keys that were new, minus removals. Exact for some kinds, see `len_is_exact`.
    #[getter]
    fn counted(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.len())
    }

    #[getter]
    fn len_is_exact(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.abilities().exact_len)
    }

    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.capacity())
    }

    #[getter]
    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.read(py)?.size_in_bytes())
    }

    #[getter]
    fn is_over_capacity(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.is_over_capacity())
    }

    fn estimate_len(&self, py: Python<'_>) -> PyResult<f64> {
        self.filter.read_detached(py, |filter| filter.estimate_len())
    }

    fn rate(&self, py: Python<'_>) -> PyResult<f64> {
        self.filter.read_detached(py, |filter| filter.estimate_rate())
    }

    /// The hash function and its seed.
    #[getter]
    fn hash_function(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.read(py)?.hash_fn().to_string())
    }

    /// What the kind can do.
    fn abilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::plan::abilities(py, self.read(py)?.abilities())
    }

    /// What only this kind has.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let facts = self.filter.read_detached(py, |filter| filter.describe())?;
        let described = PyDict::new(py);
        for (name, value) in facts {
            match value {
                FactValue::Count(count) => described.set_item(name, count)?,
                FactValue::Rate(rate) | FactValue::Ratio(rate) => described.set_item(name, rate)?,
                FactValue::Flag(flag) => described.set_item(name, flag)?,
                FactValue::Text(text) => described.set_item(name, text)?,
                FactValue::Counts(counts) => {
                    let each = PyDict::new(py);
                    counts.into_iter().try_for_each(|(name, count)| each.set_item(name, count))?;
                    described.set_item(name, each)?;
                }
                _ => {}
            }
        }
        Ok(described)
    }

    /// Writes the filter to a file: under a temporary name, synced, then renamed.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        self.filter.read_detached(py, |filter| filter.save(path))?.or_raise(py)
    }

    /// The bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.filter.read_detached(py, |filter| filter.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Whether a list of keys to remove can be right.
    fn _check_removal<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let all = self.numbers(py, keys)?;
        let check =
            self.filter.read_detached(py, |filter| filter.check_removal(&all))?.or_raise(py)?;
        let said = PyDict::new(py);
        said.set_item(intern!(py, "present"), check.present())?;
        said.set_item(intern!(py, "absent"), check.absent())?;
        said.set_item(intern!(py, "expected_wrong"), check.expected_wrong())?;
        said.set_item(intern!(py, "is_wrong"), check.verdict().is_wrong())?;
        Ok(said)
    }

    /// The names of the attributes of a row; none if keys are not rows.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names = match self.read(py)?.as_multi() {
            Some(multi) => multi.attributes().names().to_vec(),
            None => Vec::new(),
        };
        PyTuple::new(py, names)
    }

    /// Windows only: moves the window to this moment, in seconds since one that the caller has chosen.
    fn _advance_to(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let now = std::time::Duration::try_from_secs_f64(seconds)
            .map_err(|error| named(py, "InvalidParameter", error))?;
        if let AnyFilter::Windowed(window) = &mut *self.write(py)? {
            window.advance_to(now);
        }
        Ok(())
    }

    /// Foreign filters only: the same filter, whose keys are of this form.
    fn _with_form(&self, py: Python<'_>, form: &str) -> PyResult<Made> {
        self.with_form(py, form)
    }

    /// Bitmaps only: the integers, ascending.
    fn _integers(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        Ok(match &*self.read(py)? {
            AnyFilter::Bitmap(bitmap) => bitmap.iter().collect(),
            _ => Vec::new(),
        })
    }
}
