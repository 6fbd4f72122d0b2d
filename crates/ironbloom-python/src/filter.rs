//! [`Filter`]: a filter of any kind, shared by threads.
//!
//! Methods that are called once per key are here; the rest of the class is in `_filters.py`, which this one is the base of.
//!
//! How threads share the filter is in `shared.rs`.

use ironbloom::any::{KeyError, KeyHash, Refused};
use ironbloom::describe::FactValue;
use ironbloom::{AnyFilter, Filter as _, HashFn, Insert as _, KeyType, KeyTypes, Persist};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple};

use crate::batch::column::Hasher;
use crate::batch::mask::Mask;
use crate::errors::{IntoPython as _, OrRaise, error, named, without_panic};
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
    /// The filter came from a file: it may have been asked for keys of a type that it does not hold by mistake. One that was
    /// made here answers for all, as a set does.
    pub(crate) strict: bool,
}

impl Filter {
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Reading<'_>> {
        self.filter.read(py)
    }

    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<Writing<'_>> {
        self.filter.write(py)
    }

    /// The number that the filter knows a key by, and the type of the key.
    #[inline(always)]
    pub(crate) fn number(&self, key: &Bound<'_, PyAny>) -> PyResult<(u64, KeyType)> {
        match self.usual_number(key) {
            Some(number) => Ok(number),
            None => self.any_number(key),
        }
    }

    /// Does the same for this work: only lookups take integers that no bitmap holds.
    #[inline(always)]
    pub(crate) fn number_for(
        &self,
        work: Work,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<(u64, KeyType)> {
        let (number, key_type) = self.number(key)?;
        if number == u64::MAX && matches!(self.hasher, Hasher::Integer) && work != Work::Contains {
            return Err(out_of_bounds(key.py(), key.str()?, self.read(key.py())?.capacity()));
        }
        Ok((number, key_type))
    }

    /// Makes a union or an intersection of this filter. Of two that were made here, keys may be of any types, as in a set;
    /// others must hold some of the same types.
    fn combine(
        &self,
        py: Python<'_>,
        other: &Self,
        combine: fn(&mut AnyFilter, &AnyFilter) -> Result<(), Refused>,
    ) -> PyResult<()> {
        let any_types = !self.strict && !other.strict;
        let other = other.read(py)?.clone();
        let combined = self.filter.write_detached(py, |filter| {
            let before = filter.key_types();
            if any_types && !before.is_empty() {
                filter.note_keys(other.key_types());
            }
            combine(filter, &other).inspect_err(|_| filter.set_key_types(before))
        })?;
        combined.or_raise(py)
    }

    /// An error for types that the filter does not hold, if it must not answer for them.
    #[inline(always)]
    pub(crate) fn check_types(&self, held: KeyTypes, found: KeyTypes) -> Result<(), KeyError> {
        if !self.strict || held.is_empty() {
            return Ok(());
        }
        match found.iter().find(|&found| !held.contains(found)) {
            Some(found) => Err(KeyError::NotHeld { held, found }),
            None => Ok(()),
        }
    }

    /// That of a usual key. Errors are large, and would be handed on through memory also where there are none.
    #[inline(always)]
    fn usual_number(&self, key: &Bound<'_, PyAny>) -> Option<(u64, KeyType)> {
        let hash_fn = self.any_key?;
        if let Ok(text) = key.cast::<PyString>() {
            return Some((hash_fn.hash(text.to_str().ok()?), KeyType::Bytes));
        }
        let number: i64 = key.cast::<PyInt>().ok()?.extract().ok()?;
        Some((hash_fn.hash(number), KeyType::Integer))
    }

    #[inline(never)]
    fn any_number(&self, key: &Bound<'_, PyAny>) -> PyResult<(u64, KeyType)> {
        if let Hasher::Integer = self.hasher {
            return Ok((integer_of(key)?, KeyType::Integer));
        }
        if self.rows {
            return Err(rows_are_needed());
        }
        with_key(key, |key| Ok((self.hasher.of(key)?, key.key_type())))?
    }
}

/// An integer for a bitmap. One that no bitmap holds is the largest of 64 bits, which none holds either.
fn integer_of(key: &Bound<'_, PyAny>) -> PyResult<u64> {
    with_key(key, |stable| match stable.0 {
        ironbloom::Encoded::Integer(number) => {
            let negative = key.lt(0).unwrap_or(false);
            Ok(if negative { u64::MAX } else { number })
        }
        ironbloom::Encoded::Value([0xff, b'i', ..]) => Ok(u64::MAX),
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
        let (filter, strict) = made.get().take()?;
        let key_hash = filter.key_hash();
        let any_key = match key_hash {
            KeyHash::Hash(hash_fn) | KeyHash::Held(hash_fn, _) => Some(hash_fn).filter(|hash_fn| {
                matches!(
                    hash_fn,
                    HashFn::Xxh3 { .. } | HashFn::Xxh64 { .. } | HashFn::SipHash13 { .. }
                )
            }),
            _ => None,
        };
        Ok(Self {
            strict,
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
        let (number, key_type) = self.number(key)?;
        let found = self.filter.look(py, |filter| {
            if self.strict {
                self.check_types(filter.key_types(), key_type.into())?;
            }
            Ok(filter.contains_hash(number))
        })?;
        found.map_err(|error: KeyError| error.into_python(py))
    }

    /// Adds a key. True if it was new; False if it might have been there before.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rows {
            return self.with_row(py, Work::Add, key);
        }
        if self.foreign {
            return self.with_foreign(py, Work::Add, key);
        }
        let (number, key_type) = self.number_for(Work::Add, key)?;
        let added = self.filter.change(py, |filter| {
            if filter.key_types().contains(key_type) {
                return filter.insert_hash(number);
            }
            filter.insert_hash_of(key_type, number)
        })?;
        added.or_raise(py)
    }

    /// Removes a key that was added, once. False, changing nothing, if it is certainly not there.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rows {
            return self.with_row(py, Work::Remove, key);
        }
        if self.foreign {
            return self.with_foreign(py, Work::Remove, key);
        }
        let (number, key_type) = self.number_for(Work::Remove, key)?;
        let removed = self.filter.change(py, |filter| {
            self.check_types(filter.key_types(), key_type.into())?;
            filter.remove_hash(number)
        })?;
        removed.or_raise(py)
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
        self.combine(py, other.get(), AnyFilter::union_with)
    }

    fn _intersect(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.combine(py, other.get(), AnyFilter::intersect_with)
    }

    fn _equals(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<bool> {
        if std::ptr::eq(self, other.get()) {
            return Ok(true);
        }
        let other = other.get().read(py)?.clone();
        self.filter.read_detached(py, |filter| *filter == other)
    }

    fn _copy(&self, py: Python<'_>) -> PyResult<Made> {
        self.filter.read_detached(py, |filter| Made::of(filter.clone(), self.strict))
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

    /// The types of the keys, as far as they are known: "text or bytes", "integers", "values". Of rows, a tuple of them for each
    /// attribute.
    #[getter]
    fn key_types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        fn names(types: KeyTypes) -> Vec<String> {
            types.iter().map(|key_type| key_type.to_string()).collect()
        }
        let filter = self.read(py)?;
        match filter.as_multi() {
            Some(multi) => {
                let attributes = multi.attributes();
                let each =
                    (0..attributes.len()).map(|i| PyTuple::new(py, names(attributes.key_types(i))));
                PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)
            }
            None => PyTuple::new(py, names(filter.key_types())),
        }
    }

    /// Returns true if the key of the hash is not in its file.
    #[getter]
    fn _is_secret(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(matches!(self.read(py)?.hash_fn(), HashFn::SipHash13 { in_files: false, .. }))
    }

    /// Returns true if the filter came from a file.
    #[getter]
    fn _is_strict(&self) -> bool {
        self.strict
    }

    /// Abilities of the kind.
    fn abilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::plan::abilities(py, self.read(py)?.abilities())
    }

    /// Properties that only this kind has.
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

    /// Writes the filter to a file: under a temporary name, synced, then renamed. Waits for writers that have the file's lock.
    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        let _turn = crate::lock::to_replace(py, &path)?;
        self.filter.read_detached(py, |filter| filter.save(path))?.or_raise(py)
    }

    /// The bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.filter.read_detached(py, |filter| filter.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns true if a list of keys to remove can be right.
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
