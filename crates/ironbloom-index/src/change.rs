//! Changing an index that others change, too.
//!
//! ```text
//!  a file      lock ─► open ─► change ─► save ─► unlock               the others wait
//!  an object          open ─► change ─► put, if it is still what was opened ─┐
//!                      ▲──────────────────── if it is not ──────────────────┘
//! ```
//!
//! Either way, a change is made to what the others have written, and is never reported as done when it is not.

use std::borrow::Borrow;
use std::time::Duration;

use crate::error::Error;
use crate::index::Index;
use crate::location::Location;
use crate::lock::IndexLock;

/// How often a change is tried again: more often than there are writers at the same time.
const TRIES: u32 = 50;

/// Changes the index that is saved as `file`, under the [lock](IndexLock) that `lock` waits for, and returns it as `save` has saved it (with
/// [`IndexLock::save`]). If the index is in a bucket and another writer was faster, all of it is done again.
///
/// # Errors
///
/// What these return; [`Error::Overtaken`] if other writers of a bucket were faster every time.
pub fn change_index<E: From<Error>, L: Borrow<IndexLock>>(
    file: impl Into<Location>,
    mut lock: impl FnMut() -> Result<L, Error>,
    mut change: impl FnMut(&mut Index) -> Result<(), E>,
    mut save: impl FnMut(&L, &mut Index) -> Result<(), Error>,
) -> Result<Index, E> {
    let file = file.into();
    for number in 1.. {
        let lock = lock()?;
        let mut index = lock.borrow().open()?;
        change(&mut index)?;
        match save(&lock, &mut index) {
            Ok(()) => return Ok(index),
            Err(error) if is_worth_another(&error, &file, number) => {
                drop(lock);
                pause(number);
            }
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the last one returns")
}

/// Waits for a time that is not the same for all writers, and longer if there are many.
pub(crate) fn pause(number: u32) {
    let some =
        xxhash_rust::xxh3::xxh3_64(&[std::process::id(), number].map(u32::to_le_bytes).concat());
    std::thread::sleep(Duration::from_millis(10 + some % (20 * u64::from(number.min(25)))));
}

/// Whether to try again after this error.
pub(crate) fn is_worth_another(error: &Error, file: &Location, number: u32) -> bool {
    matches!(error, Error::Overtaken { .. }) && file.is_object() && number < TRIES
}
