//! Operations on many keys at once.

use ironbloom::any::Refused;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::batch::mask::Mask;
use crate::filter::Filter;
use crate::groups::{Group, each_group};

/// Operation on keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Add,
    Contains,
    Remove,
}

impl<'py> FromPyObject<'_, 'py> for Work {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match name.extract()? {
            "add" => Ok(Self::Add),
            "contains" => Ok(Self::Contains),
            "remove" => Ok(Self::Remove),
            other => Err(PyValueError::new_err(format!("nothing is called {other:?}"))),
        }
    }
}

impl Filter {
    /// Does it with all keys of a column or an iterable. There is an answer for each, unless they are added.
    pub(crate) fn many(
        &self,
        py: Python<'_>,
        work: Work,
        keys: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Mask> {
        let mut answers = Answers::default();
        let mut found = Vec::new();
        let user = self.filter.user(py)?;
        each_group(
            py,
            keys,
            key,
            self.hasher,
            |key| self.number_for(work, key),
            |group| {
                if work == Work::Add {
                    let mut filter = user.writing(group.py);
                    return filter.insert_hashes_of(group.types, group.numbers);
                }
                found.clear();
                found.resize(group.numbers.len(), false);
                if work == Work::Contains {
                    let filter = user.reading(group.py);
                    self.check_types(filter.key_types(), group.types)?;
                    filter.contains_hashes(group.numbers, &mut found);
                } else {
                    let mut filter = user.writing(group.py);
                    self.check_types(filter.key_types(), group.types)?;
                    for (&number, removed) in group.numbers.iter().zip(&mut found) {
                        *removed = filter.remove_hash(number)?;
                    }
                }
                answers.add(&group, &found);
                Ok(())
            },
        )?;
        Ok(Mask::new(answers.answers, answers.there))
    }

    /// The numbers of all keys.
    pub(crate) fn numbers(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let mut numbers = Vec::new();
        let held = self.read(py)?.key_types();
        each_group(
            py,
            keys,
            None,
            self.hasher,
            |key| self.number(key),
            |group| {
                self.check_types(held, group.types)?;
                numbers.extend_from_slice(group.numbers);
                Ok::<_, Refused>(())
            },
        )?;
        Ok(numbers)
    }
}

/// An answer for each place, and which places have a key.
#[derive(Default)]
struct Answers {
    answers: Vec<bool>,
    there: Option<Vec<bool>>,
}

impl Answers {
    /// `found` has an answer for each key that is there.
    fn add(&mut self, group: &Group<'_, '_>, found: &[bool]) {
        let before = self.answers.len();
        if before == self.answers.capacity() {
            self.answers.reserve(group.left);
        }
        match group.there {
            None => {
                self.answers.extend_from_slice(found);
                if let Some(there) = &mut self.there {
                    there.resize(self.answers.len(), true);
                }
            }
            Some(places) => {
                let mut found = found.iter().copied();
                let answer = |&is_there: &bool| is_there && found.next().unwrap_or(false);
                self.answers.extend(places.iter().map(answer));
                let there = self.there.get_or_insert_with(|| vec![true; before]);
                there.extend_from_slice(places);
            }
        }
    }
}
