//! Writers of a file take turns.
//!
//! ```text
//!  one writer        lock ─► read ─► change ─► write .t.ibf.PID-0.tmp ─► rename to t.ibf ─► unlock
//!  the next one        └─ waits ──────────────────────────────────────────────────────────────► read: the new one …
//!  readers           open t.ibf: the old one or the new one, never waiting
//! ```
//!
//! The lock is on an empty file beside it, `.t.ibf.lock`. Locking the file itself would not work, because each change
//! replaces it with another. The lock belongs to the process and ends with it, however it ends. The writer that held
//! the lock removes the empty file; a killed process leaves it behind, without effect.
//!
//! A temporary file is locked as well, while it is written: what a killed process has left of one is removed, that of a
//! living process never, also if it took no lock for the file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::replace::{beside, is_temporary_suffix, remove_if_abandoned};

/// The right to replace a file, held by one writer at a time across threads and processes. Released when dropped, or
/// when the process ends.
///
/// Readers do not need it. Hold it from before reading the file until after saving it, so that no other writer's change
/// is lost:
///
/// ```
/// use ironbloom::format::native::FileLock;
/// use ironbloom::{AnyFilter, Bloom, Persist};
/// # let path = std::env::temp_dir().join(format!("ironbloom-lock-doc-{}.ibf", std::process::id()));
/// # Bloom::with_rate(1000, 0.01)?.save(&path)?;
/// let lock = FileLock::acquire(&path)?;
/// let mut seen = AnyFilter::load(lock.path())?;
/// seen.insert("alice")?;
/// seen.save(lock.path())?;
/// drop(lock);
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileLock {
    /// The path with all symbolic links resolved.
    path: PathBuf,
    lock_file: PathBuf,
    /// Locked while it is open.
    _file: File,
    /// The process that took the lock. One forked from it has a copy of this, which must leave the lock file alone.
    process: u32,
}

/// The outcome of [`FileLock::try_acquire_to_replace`].
#[derive(Debug)]
pub enum Replacing {
    /// No other writer changes the file until this is dropped.
    Locked(FileLock),
    /// Another writer is changing the file.
    Busy,
    /// No writer could hold a lock there: it is a pipe or a device, no file can be created beside it, or the file system
    /// does not support locks.
    NoLocks,
}

impl FileLock {
    /// Waits until no other writer changes the file that is, or will be, at this path.
    ///
    /// # Errors
    ///
    /// If no file can be created beside it, or if the file system does not support locks.
    pub fn acquire(path: impl AsRef<Path>) -> io::Result<Self> {
        let lock = |file: &File| wait_for_lock(file).map(|()| true);
        Self::with(path.as_ref(), lock).map(|lock| lock.expect("waited for it"))
    }

    /// Like [`acquire`](Self::acquire), but `None` if another writer is changing the file.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    pub fn try_acquire(path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        Self::with(path.as_ref(), try_lock)
    }

    /// Like [`try_acquire`](Self::try_acquire), for a writer that replaces the file with one that does not depend on it. It
    /// waits for those who have read the file and will replace it, if there can be any.
    ///
    /// # Errors
    ///
    /// If there is something else in the place of the lock, or one that belongs to others only.
    pub fn try_acquire_to_replace(path: impl AsRef<Path>) -> io::Result<Replacing> {
        let path = path.as_ref();
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(Replacing::NoLocks);
        }
        match Self::try_acquire(path) {
            Ok(Some(lock)) => Ok(Replacing::Locked(lock)),
            Ok(None) => Ok(Replacing::Busy),
            Err(error) => {
                let is_there = Self::lock_file_of(path)
                    .is_ok_and(|lock_file| fs::symlink_metadata(lock_file).is_ok());
                let is_supported = error.kind() != ErrorKind::Unsupported;
                if is_there && is_supported { Err(error) } else { Ok(Replacing::NoLocks) }
            }
        }
    }

    /// The path of the empty file that is locked for this one.
    ///
    /// # Errors
    ///
    /// If the folder cannot be found.
    pub fn lock_file_of(path: impl AsRef<Path>) -> io::Result<PathBuf> {
        behind_links(path.as_ref()).map(|path| beside(&path, "lock"))
    }

    fn with(path: &Path, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<Self>> {
        let path = behind_links(path)?;
        let lock_file = beside(&path, "lock");
        loop {
            let file = open_lock_file(&lock_file)?;
            let locked = lock(&file).map_err(|error| {
                let what = format!("it cannot be locked against other writers: {error}");
                io::Error::new(error.kind(), what)
            })?;
            if !locked {
                return Ok(None);
            }
            // The previous holder has removed the file, and another writer may have created a new one.
            if is_still_there(&file, &lock_file) {
                let process = std::process::id();
                return Ok(Some(Self { path, lock_file, _file: file, process }));
            }
        }
    }

    /// The file's path, with all symbolic links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The empty file that is locked. A process that ends without dropping the lock may remove it while it still holds the lock,
    /// but not later: it then belongs to another writer.
    pub fn lock_file(&self) -> &Path {
        &self.lock_file
    }

    /// Removes the temporary files of processes that were killed while they wrote this file. Those of living processes stay.
    pub fn remove_leftovers(&self) {
        let prefix = beside(&self.path, "");
        let (Some(folder), Some(prefix)) = (prefix.parent(), prefix.file_name()) else { return };
        let Ok(entries) = fs::read_dir(folder) else { return };
        let prefix = prefix.to_string_lossy();
        let prefix = prefix.strip_suffix('.').unwrap_or(&prefix);
        for entry in entries.flatten() {
            let name = entry.file_name();
            let end = name.to_str().and_then(|name| name.strip_prefix(prefix));
            if end.is_some_and(is_temporary_suffix) {
                remove_if_abandoned(&entry.path());
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // While it is still locked, so no other process can have created this file. On systems without inodes to
        // recognise it by, it stays.
        if cfg!(unix) && std::process::id() == self.process {
            let _ = fs::remove_file(&self.lock_file);
        }
    }
}

/// Resolves a path to its file, which need not exist: all paths to a file must give the same result.
pub fn behind_links(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: u32 = 40; // like Linux
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

/// Opens for writing where possible: some network file systems lock only such files.
fn open_lock_file(path: &Path) -> io::Result<File> {
    match open_plain(path, OpenOptions::new().write(true).create(true).truncate(false)) {
        // Left over from another process.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && path.exists() => {
            open_plain(path, OpenOptions::new().read(true))
        }
        done => done,
    }
}

/// Opens a file that only writers of filters create. Others may have put something else there: a link is not followed, since
/// a file would be created where it leads, and the opening of a pipe does not wait for its other end.
fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let opened = options.open(path).and_then(|file| match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    });
    opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            let what = format!("{}: is not a file, as a lock is", path.display());
            io::Error::new(ErrorKind::InvalidInput, what)
        }
        _ => error,
    })
}

/// Opens an existing file and locks it. `None` if another process or thread has locked it.
pub(super) fn open_locked(path: &Path) -> io::Result<Option<File>> {
    let file = open_plain(path, OpenOptions::new().write(true))?;
    let locked = try_lock(&file)? && is_still_there(&file, path);
    Ok(locked.then_some(file))
}

/// Waits for a lock, whatever signals come meanwhile.
pub(super) fn wait_for_lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(unix)]
pub(super) fn is_still_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(super) fn is_still_there(_: &File, _: &Path) -> bool {
    true // a lock file is never removed, and a temporary file cannot be while it is open
}
