//! [`Mask`]: an answer for each key of a batch.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PySlice};

use super::capsule::array_capsules;
use super::column::as_arrow;

/// The answers for a batch of keys: true, false, or none for a null.
///
/// `numpy.asarray(mask)` and `pyarrow.array(mask)` read it, and so does everything else that knows their interfaces.
#[pyclass(frozen, sequence, weakref, module = "ironbloom")]
pub(crate) struct Mask {
    answers: Vec<bool>,
    /// Which keys there were; `None` if all.
    there: Option<Vec<bool>>,
}

impl Mask {
    pub(crate) fn new(answers: Vec<bool>, there: Option<Vec<bool>>) -> Self {
        Self { answers, there }
    }

    /// The answer at a place; `None` for a null.
    fn at(&self, place: usize) -> Option<bool> {
        let is_there = self.there.as_ref().is_none_or(|there| there[place]);
        is_there.then_some(self.answers[place])
    }
}

#[pymethods]
impl Mask {
    /// From a list of True, False and None.
    #[new]
    fn from_answers(answers: Vec<Option<bool>>) -> Self {
        let there = answers.iter().any(Option::is_none);
        let there = there.then(|| answers.iter().map(Option::is_some).collect());
        Self::new(answers.iter().map(|answer| answer.unwrap_or(false)).collect(), there)
    }

    fn __len__(&self) -> usize {
        self.answers.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, length) = (index.py(), self.answers.len() as isize);
        if let Ok(slice) = index.cast::<PySlice>() {
            let places = slice.indices(length)?;
            let place = |step: usize| (places.start + step as isize * places.step) as usize;
            let some: Vec<_> = (0..places.slicelength).map(|step| self.at(place(step))).collect();
            return some.into_bound_py_any(py);
        }
        let index: isize = index.extract()?;
        let place = if index < 0 { index + length } else { index };
        if !(0..length).contains(&place) {
            return Err(PyIndexError::new_err("mask index out of range"));
        }
        self.at(place as usize).into_bound_py_any(py)
    }

    fn __repr__(&self) -> String {
        let yes = self.answers.iter().filter(|&&answer| answer).count();
        format!("<Mask: {yes} of {} true>", self.answers.len())
    }

    /// The number of nulls.
    #[getter]
    fn null_count(&self) -> usize {
        self.there.as_ref().map_or(0, |there| there.iter().filter(|&&there| !there).count())
    }

    /// A list of True, False and None.
    fn tolist(&self) -> Vec<Option<bool>> {
        (0..self.answers.len()).map(|place| self.at(place)).collect()
    }

    /// Which keys there were: the same as a mask without nulls.
    fn is_valid(&self) -> Self {
        let there = self.there.clone().unwrap_or_else(|| vec![true; self.answers.len()]);
        Self::new(there, None)
    }

    /// For numpy. A null is false.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", (self.answers.len(),))?;
        interface.set_item("typestr", "|b1")?;
        interface.set_item("data", (self.answers.as_ptr() as usize, true))?;
        Ok(interface)
    }

    /// For Arrow.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema; // a wish, which need not be granted
        array_capsules(py, &as_arrow(&self.answers, self.there.as_deref()))
    }
}
