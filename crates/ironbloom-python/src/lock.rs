//! Writers of a file take turns, as the program does: `with ironbloom.lock(path)`, and [`to_replace`] for each save.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use ironbloom::format::native::{FileLock, Replacing};
use pyo3::prelude::*;

use crate::errors::{error, os_error};

/// A lock that a `with` block holds: the process and the thread that wait for no one else to save there, and the lock file.
type Holder = (u32, ThreadId, PathBuf);

/// All that are held. Only threads that have the interpreter take this, and none gives the interpreter away meanwhile: no
/// process is forked while it is taken.
static HELD: Mutex<Vec<Holder>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<Holder>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This thread as the holder of a file's lock.
fn this_thread(lock_file: PathBuf) -> Holder {
    (std::process::id(), std::thread::current().id(), lock_file)
}

/// Returns true if this thread holds the lock of a file.
fn holds(path: &Path) -> bool {
    FileLock::lock_file_of(path).is_ok_and(|lock_file| held().contains(&this_thread(lock_file)))
}

/// Tries until there is a lock. The interpreter is free meanwhile, and Ctrl-C ends it.
fn wait<T>(
    py: Python<'_>,
    path: &Path,
    mut try_acquire: impl FnMut() -> std::io::Result<Option<T>>,
) -> PyResult<T> {
    const PAUSE: Duration = Duration::from_millis(20);
    loop {
        if let Some(lock) = try_acquire().map_err(|error| os_error(py, &error, path))? {
            return Ok(lock);
        }
        py.detach(|| std::thread::sleep(PAUSE));
        py.check_signals()?;
    }
}

/// Waits until no other writer changes the file that is to be replaced. `None` if this thread holds its lock, or there is
/// none to hold.
pub(crate) fn to_replace(py: Python<'_>, path: &Path) -> PyResult<Option<FileLock>> {
    if holds(path) {
        return Ok(None);
    }
    wait(py, path, || {
        Ok(match FileLock::try_acquire_to_replace(path)? {
            Replacing::Locked(lock) => {
                lock.remove_leftovers();
                Some(Some(lock))
            }
            Replacing::Busy => None,
            Replacing::NoLocks => Some(None),
        })
    })
}

/// The right to replace a file, for a `with` block.
#[pyclass(frozen, module = "ironbloom._native")]
pub(crate) struct Lock {
    path: PathBuf,
    lock: Mutex<Option<(FileLock, Holder)>>,
}

impl Lock {
    fn lock(&self) -> MutexGuard<'_, Option<(FileLock, Holder)>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Lock {
    #[new]
    fn new(path: PathBuf) -> Self {
        Self { path, lock: Mutex::new(None) }
    }

    /// Waits until no other writer changes the file.
    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        if holds(&self.path) {
            let what = format!("{}: this thread holds its lock already", self.path.display());
            return Err(error("Refused", what));
        }
        let lock = wait(py, &self.path, || FileLock::try_acquire(&self.path))?;
        lock.remove_leftovers();
        let holder = this_thread(lock.lock_file().to_owned());
        held().push(holder.clone());
        *self.lock() = Some((lock, holder));
        Ok(())
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        if let Some((lock, holder)) = self.lock().take() {
            held().retain(|other| *other != holder);
            drop(lock);
        }
    }
}
