//! The keys of a column or of any iterable, as numbers, in groups: what is done with them is done for many at once.

use std::ops::Range;
use std::time::{Duration, Instant};

use ironbloom::any::Refused;
use ironbloom::{KeyType, KeyTypes};
use pyo3::prelude::*;

use crate::batch::Source;
use crate::batch::column::{Hasher, Prepared};
use crate::errors::{IntoPython, OrRaise, named};
use crate::interrupt::in_slices;

/// How long other threads may have to wait: as long as for Python code.
const TURN: Duration = Duration::from_millis(5);

/// Keys that are hashed before they are used together: their hashes stay in the first-level cache.
const GROUP: usize = 1024;

/// Some keys, one after the other.
pub(crate) struct Group<'a, 'py> {
    /// The numbers of the keys that are there.
    pub(crate) numbers: &'a [u64],
    /// Their types.
    pub(crate) types: KeyTypes,
    /// Which places have a key; `None` if all.
    pub(crate) there: Option<&'a [bool]>,
    /// Places that are left in the column, with these.
    pub(crate) left: usize,
    /// The interpreter, if this thread has it.
    pub(crate) py: Option<Python<'py>>,
}

/// Calls `then` with all keys, in groups. What came before an error is worked on, too; then the error is raised.
///
/// `number` is the number of a Python object, `hasher` makes those of a column. With `key`, keys are what that makes of each
/// object.
pub(crate) fn each_group(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    hasher: Hasher,
    number: impl Fn(&Bound<'_, PyAny>) -> PyResult<(u64, KeyType)>,
    mut then: impl FnMut(Group<'_, '_>) -> Result<(), Refused> + Send,
) -> PyResult<()> {
    let Some(mut source) = Source::of(keys)?.filter(|_| key.is_none()) else {
        return each_of_objects(py, keys, key, number, |numbers, types| {
            let group = Group { numbers, types, there: None, left: numbers.len(), py: Some(py) };
            then(group).or_raise(py)
        });
    };
    source.check(hasher)?;
    while let Some(chunk) = source.next_chunk(py)? {
        let prepared = Prepared::new(&chunk, hasher)?;
        let (mut hashes, mut there) = (vec![0; GROUP.min(chunk.len())], Vec::new());
        let worked = in_slices(py, chunk.len(), |slice| {
            for start in slice.clone().step_by(GROUP) {
                let rows = start..slice.end.min(start + GROUP);
                let left = chunk.len() - start;
                let hashes = &mut hashes[..rows.len()];
                prepared.hash(rows.clone(), hashes);
                let types = prepared.types(rows.clone());
                then(if prepared.has_nulls() {
                    let kept = without_nulls(&prepared, rows, hashes, &mut there);
                    Group { numbers: &hashes[..kept], types, there: Some(&there), left, py: None }
                } else {
                    Group { numbers: hashes, types, there: None, left, py: None }
                })?;
            }
            Ok::<_, Refused>(())
        })?;
        worked.map_err(|refused| match refused {
            Refused::OutOfBounds(error) if chunk.is_signed() => {
                out_of_bounds(py, error.index.cast_signed(), error.bound)
            }
            other => other.into_python(py),
        })?;
    }
    Ok(())
}

/// An integer outside of a bitmap, as the caller has it.
pub(crate) fn out_of_bounds(py: Python<'_>, key: impl std::fmt::Display, bound: u64) -> PyErr {
    let what = format!("{key} is outside the bitmap, which holds integers below {bound}");
    named(py, "OutOfBounds", what)
}

/// Moves the hashes of what is not null to the front, and returns their number.
fn without_nulls(
    prepared: &Prepared<'_>,
    rows: Range<usize>,
    hashes: &mut [u64],
    there: &mut Vec<bool>,
) -> usize {
    there.clear();
    there.extend(rows.map(|row| !prepared.is_null(row)));
    let mut kept = 0;
    for (i, &there) in there.iter().enumerate() {
        hashes[kept] = hashes[i];
        kept += usize::from(there);
    }
    kept
}

/// The iterator is Python code that may do anything, also with the filter: no lock is held while it runs.
fn each_of_objects(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    number: impl Fn(&Bound<'_, PyAny>) -> PyResult<(u64, KeyType)>,
    mut then: impl FnMut(&[u64], KeyTypes) -> PyResult<()>,
) -> PyResult<()> {
    let (mut numbers, mut types) = (Vec::with_capacity(GROUP), KeyTypes::NONE);
    let mut last = Instant::now();
    let mut failed = None;
    for object in keys.try_iter()? {
        let made = object.and_then(|object| match key {
            Some(make) => number(&make.call1((object,))?),
            None => number(&object),
        });
        match made {
            Ok((number, key_type)) => {
                numbers.push(number);
                types = types.union(key_type.into());
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        if numbers.len() == GROUP {
            then(&numbers, types)?;
            numbers.clear();
            types = KeyTypes::NONE;
            // Iterating over a list or a range never gives the interpreter away by itself.
            if last.elapsed() > TURN {
                py.detach(|| ());
                last = Instant::now();
            }
            py.check_signals()?;
        }
    }
    then(&numbers, types)?;
    failed.map_or(Ok(()), Err)
}
