//! Writers of an index take turns.
//!
//! ```text
//!  one writer        lock ─► open ─► change ─► write .t.ibx.PID.tmp ─► rename to t.ibx ─► unlock
//!  the next one        └─ waits ────────────────────────────────────────────────────────────► open: the new one …
//!  readers           open t.ibx: the old one or the new one, never waiting
//! ```
//!
//! What is locked is an empty file beside the index, `.t.ibx.lock`. The index itself would not do, because each change
//! replaces it by another file. The lock belongs to the process and ends with it, however it ends. The empty file is removed by
//! the writer that held the lock; a killed process leaves it, and it then means nothing.
//!
//! Whoever writes temporary files for an index holds its lock. So those that exist when a writer has just taken the lock were
//! left by killed processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ironbloom::format::native::temporary_path;

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
    lock: Option<LockFile>,
}

/// The file that is locked.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    /// Locked while it is open.
    _file: File,
}

impl IndexLock {
    /// Waits until no other writer changes the index that is, or will be, at this path.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if no file can be created beside the index, or if the file system does not support locks.
    pub fn acquire(index: impl Into<Location>) -> Result<Self, Error> {
        let lock = |file: &File| loop {
            match file.lock() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done.map(|()| true),
            }
        };
        Self::with(index.into(), lock).map(|lock| lock.expect("waited for it"))
    }

    /// As [`acquire`](Self::acquire), but `None` if another writer is changing the index.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(index: impl Into<Location>) -> Result<Option<Self>, Error> {
        let lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
        Self::with(index.into(), lock)
    }

    fn with(
        index: Location,
        lock: impl Fn(&File) -> io::Result<bool>,
    ) -> Result<Option<Self>, Error> {
        let Some(path) = index.as_file() else {
            return Ok(Some(Self { location: index, lock: None }));
        };
        let failed = |error| Error::Io { path: index.clone(), error };
        let path = behind_links(path).map_err(failed)?;
        let lock_file = beside(&path, "lock");
        loop {
            let file = open_lock_file(&lock_file).map_err(failed)?;
            let locked = lock(&file).map_err(|error| {
                let what = format!("it cannot be locked against other writers: {error}");
                failed(io::Error::new(error.kind(), what))
            })?;
            if !locked {
                return Ok(None);
            }
            // The writer that held it before has removed the file, and another one may have created a new one.
            if is_still_there(&file, &lock_file) {
                let lock = Some(LockFile { path: lock_file, _file: file });
                return Ok(Some(Self { location: path.into(), lock }));
            }
        }
    }

    /// The index, with all symbolic links resolved.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The empty file that is locked, if the index is a file. A process that ends without dropping the lock may remove it while it still holds the
    /// lock, but not later: then it belongs to another writer.
    pub fn lock_file(&self) -> Option<&Path> {
        self.lock.as_ref().map(|lock| lock.path.as_path())
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
        self.remove_leftovers();
        index.save_locked(self)
    }

    /// Removes the temporary files of processes that were killed while they wrote this index. What cannot be removed does
    /// no harm.
    fn remove_leftovers(&self) {
        let Some(path) = self.location.as_file() else { return };
        let prefix = beside(path, "");
        let (Some(folder), Some(prefix)) = (prefix.parent(), prefix.file_name()) else { return };
        let Ok(entries) = fs::read_dir(folder) else { return };
        let prefix = prefix.to_string_lossy();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number =
                name.to_str().and_then(|name| name.strip_prefix(&*prefix)?.strip_suffix(".tmp"));
            // The number of a process, and perhaps one more.
            let is_ours = |number: &str| {
                !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            if number.is_some_and(is_ours) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        // While it is still locked: no other process can have created this file. Where files have no numbers to recognise
        // them by, it stays.
        if let Some(lock) = self.lock.as_ref().filter(|_| cfg!(unix)) {
            let _ = fs::remove_file(&lock.path);
        }
    }
}

/// `.NAME.` and this, beside the index: `NAME` is what its temporary files have, too. It is cut if it is very long, so that
/// such indexes may share a lock, and then they share it for the same temporary files.
fn beside(target: &Path, end: &str) -> PathBuf {
    let temporary = temporary_path(target);
    let name = temporary.file_name().unwrap_or_default().to_string_lossy();
    let own = format!("{}.tmp", std::process::id());
    target.with_file_name(format!("{}{end}", name.strip_suffix(&own).unwrap_or(&name)))
}

/// The file that a path leads to, which need not exist: all paths to it must give the same.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: u32 = 40; // as Linux
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
        match fs::read_link(&path) {
            Ok(link) => path = folder.join(link),
            Err(_) => {
                let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
                return Ok(folder.join(name));
            }
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Opened for writing where possible: some network file systems lock only such files.
fn open_lock_file(path: &Path) -> io::Result<File> {
    match OpenOptions::new().write(true).create(true).truncate(false).open(path) {
        // Left over from another process.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && path.exists() => {
            File::open(path)
        }
        done => done,
    }
}

#[cfg(unix)]
fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_still_there(_: &File, _: &Path) -> bool {
    true // it is never removed
}
