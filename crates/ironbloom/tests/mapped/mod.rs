//! Maps of files that only the test knows, so that nothing else changes them.
#![allow(dead_code, reason = "each test file uses its own part")]
#![expect(unsafe_code, reason = "a map trusts that its file does not change")]

use std::path::Path;

use ironbloom::{FileError, Persist};

pub(crate) fn map<F: Persist>(path: impl AsRef<Path>) -> Result<F, FileError> {
    // SAFETY: the file belongs to the test, which at most replaces it.
    unsafe { F::map(path) }
}

pub(crate) fn map_unverified<F: Persist>(path: impl AsRef<Path>) -> Result<F, FileError> {
    // SAFETY: as above.
    unsafe { F::map_unverified(path) }
}

pub(crate) fn map_private<F: Persist>(path: impl AsRef<Path>) -> Result<F, FileError> {
    // SAFETY: as above.
    unsafe { F::map_private(path) }
}
