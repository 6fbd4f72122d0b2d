//! One process at a time reads a filter, changes it and replaces its file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use ironbloom::format::native::{FileLock, Replacing};

use crate::{dash, file, interrupt, output};

/// The right to replace a file, from before it is read. If Ctrl-C is pressed meanwhile, its lock file is removed.
pub(crate) struct Turn {
    /// `None` only once it is dropped.
    lock: Option<FileLock>,
}

impl Turn {
    /// Waits until no other process changes the file, and says so if that takes long.
    pub(crate) fn take(path: &Path) -> Result<Self> {
        Self::wait(path, || Self::try_take(path))
    }

    /// Waits in the same way before a file is replaced by one that does not depend on it. `None` if there is nothing to wait for:
    /// this process has its turn already, or the file is one that no process can lock.
    pub(crate) fn take_to_replace(path: &Path) -> Result<Option<Self>> {
        Self::wait(path, || Self::try_take_to_replace(path))
    }

    fn wait<T>(path: &Path, mut try_take: impl FnMut() -> std::io::Result<Option<T>>) -> Result<T> {
        const PATIENCE: Duration = Duration::from_secs(1);
        const PAUSE: Duration = Duration::from_millis(20);
        let mut patient_until = Some(Instant::now() + PATIENCE);
        loop {
            if let Some(turn) = try_take().map_err(|error| file::named(path, error))? {
                return Ok(turn);
            }
            if patient_until.is_some_and(|end| Instant::now() > end) {
                patient_until = None;
                let waiting = "waiting for another process that is changing it";
                output::note(&format!("{}: {waiting}", path.display()));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a turn only if the file is replaced at all: neither standard output nor another name is what was read.
    pub(crate) fn take_if_same(input: &Path, output: &Path) -> Result<Option<Self>> {
        let is_file = std::fs::metadata(input).is_ok_and(|found| found.is_file());
        if dash::is(input) || !is_file || !file::is_same(input, output) {
            return Ok(None);
        }
        Self::take(input).map(Some)
    }

    /// `None` if it is another process's turn.
    fn try_take(path: &Path) -> std::io::Result<Option<Self>> {
        interrupt::while_locking(|locked| {
            let Some(lock) = FileLock::try_acquire(path)? else { return Ok(None) };
            Ok(Some(Self::of(lock, locked)))
        })
    }

    /// `None` if it is another process's turn, as in [`try_take`](Self::try_take).
    fn try_take_to_replace(path: &Path) -> std::io::Result<Option<Option<Self>>> {
        interrupt::while_locking(|locked| {
            if locked.is_some() && FileLock::lock_file_of(path).ok() == *locked {
                return Ok(Some(None));
            }
            Ok(match FileLock::try_acquire_to_replace(path)? {
                Replacing::Locked(lock) => Some(Some(Self::of(lock, locked))),
                Replacing::Busy => None,
                Replacing::NoLocks => Some(None),
            })
        })
    }

    fn of(lock: FileLock, locked: &mut Option<PathBuf>) -> Self {
        lock.remove_leftovers();
        *locked = Some(lock.lock_file().to_owned());
        Self { lock: Some(lock) }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        interrupt::while_locking(|locked| {
            self.lock = None;
            *locked = None;
        });
    }
}
