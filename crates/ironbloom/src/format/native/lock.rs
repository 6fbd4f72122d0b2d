//! Writers of a file take turns.
//!
//! ```text
//!  one writer        lock ─► read ─► change ─► write .t.ibf.PID.tmp ─► rename to t.ibf ─► unlock
//!  the next one        └─ waits ────────────────────────────────────────────────────────────► read: the new one …
//!  readers           open t.ibf: the old one or the new one, never waiting
//! ```
//!
//! The lock is on an empty file beside it, `.t.ibf.lock`. Locking the file itself would not work, because each change
//! replaces it with another. The lock belongs to the process and ends with it, however it ends. The writer that held
//! the lock removes the empty file; a killed process leaves it behind, without effect.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::replace::temporary_path;

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
}

impl FileLock {
    /// Waits until no other writer changes the file that is, or will be, at this path.
    ///
    /// # Errors
    ///
    /// If no file can be created beside it, or if the file system does not support locks.
    pub fn acquire(path: impl AsRef<Path>) -> io::Result<Self> {
        let lock = |file: &File| loop {
            match file.lock() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done.map(|()| true),
            }
        };
        Self::with(path.as_ref(), lock).map(|lock| lock.expect("waited for it"))
    }

    /// Like [`acquire`](Self::acquire), but `None` if another writer is changing the file.
    ///
    /// # Errors
    ///
    /// Same as [`acquire`](Self::acquire).
    pub fn try_acquire(path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        let lock = |file: &File| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        };
        Self::with(path.as_ref(), lock)
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
                return Ok(Some(Self { path, lock_file, _file: file }));
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

    /// Removes the temporary files of processes that were killed while they wrote this file: writers hold the lock, so
    /// any that exist now are leftovers. Files that cannot be removed do no harm.
    pub fn remove_leftovers(&self) {
        let prefix = beside(&self.path, "");
        let (Some(folder), Some(prefix)) = (prefix.parent(), prefix.file_name()) else { return };
        let Ok(entries) = fs::read_dir(folder) else { return };
        let prefix = prefix.to_string_lossy();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let number =
                name.to_str().and_then(|name| name.strip_prefix(&*prefix)?.strip_suffix(".tmp"));
            // A process ID, and possibly another number.
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

impl Drop for FileLock {
    fn drop(&mut self) {
        // While it is still locked, so no other process can have created this file. On systems without inodes to
        // recognise it by, it stays.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.lock_file);
        }
    }
}

/// Returns `.NAME.` plus this suffix, beside the file; `NAME` is also used for its temporary files. Very long names are
/// truncated: such files may share a lock, and then also share it for their temporary files.
fn beside(target: &Path, end: &str) -> PathBuf {
    let temporary = temporary_path(target);
    let name = temporary.file_name().unwrap_or_default().to_string_lossy();
    let own = format!("{}.tmp", std::process::id());
    target.with_file_name(format!("{}{end}", name.strip_suffix(&own).unwrap_or(&name)))
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
