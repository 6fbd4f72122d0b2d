//! Writers of an index take turns.
//!
//! ```text
//!  one writer        lock ─► open ─► change ─► write .t.ibx.PID-0.tmp ─► rename to t.ibx ─► unlock
//!  the next one        └─ waits ──────────────────────────────────────────────────────────────► open: the new one …
//!  readers           open t.ibx: the old one or the new one, never waiting
//! ```
//!
//! The lock of a file is `ironbloom::format::native::FileLock`; an index in a bucket is changed by conditional puts instead.

use std::path::Path;

use ironbloom::format::native::FileLock;

use crate::error::Error;
use crate::index::Index;
use crate::location::Location;

/// The right to change an index file, held by one writer at a time, of all threads and processes. It ends when this is
/// dropped, or with the process.
///
/// Readers need none. [`Index::save`] takes one for itself; hold one from before [`open`](Self::open) to after
/// [`save`](Self::save) so that no other writer changes the index in between.
#[derive(Debug)]
pub struct IndexLock {
    /// The index, with all symbolic links resolved.
    location: Location,
    /// Of an index in a file.
    lock: Option<FileLock>,
}

impl IndexLock {
    /// Waits until no other writer changes the index that is, or will be, at this path.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if no file can be created beside the index, or if the file system does not support locks.
    pub fn acquire(index: impl Into<Location>) -> Result<Self, Error> {
        let lock = Self::with(index.into(), |path| FileLock::acquire(path).map(Some));
        lock.map(|lock| lock.expect("waited for it"))
    }

    /// As [`acquire`](Self::acquire), but `None` if another writer is changing the index.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(index: impl Into<Location>) -> Result<Option<Self>, Error> {
        Self::with(index.into(), |path| FileLock::try_acquire(path))
    }

    fn with(
        index: Location,
        lock: impl FnOnce(&Path) -> std::io::Result<Option<FileLock>>,
    ) -> Result<Option<Self>, Error> {
        let Some(path) = index.as_file() else {
            return Ok(Some(Self { location: index, lock: None }));
        };
        let lock = lock(path).map_err(|error| Error::Io { path: index.clone(), error })?;
        Ok(lock.map(|lock| Self { location: lock.path().to_owned().into(), lock: Some(lock) }))
    }

    /// The index, with all symbolic links resolved.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The empty file that is locked, if the index is a file. A process that ends without dropping the lock may remove it while it still holds the
    /// lock, but not later: then it belongs to another writer.
    pub fn lock_file(&self) -> Option<&Path> {
        self.lock.as_ref().map(FileLock::lock_file)
    }

    /// Opens the index as it is now. No other writer changes it while this lock is held.
    ///
    /// # Errors
    ///
    /// As [`Index::open`].
    pub fn open(&self) -> Result<Index, Error> {
        Index::open(&self.location)
    }

    /// Writes an index to the file that is locked. See [`Index::save`].
    ///
    /// # Errors
    ///
    /// As [`Index::save`].
    pub fn save(&self, index: &mut Index) -> Result<(), Error> {
        if let Some(lock) = &self.lock {
            lock.remove_leftovers();
        }
        index.save_locked(self)
    }
}
