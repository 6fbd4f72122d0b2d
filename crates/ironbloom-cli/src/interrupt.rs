//! Ctrl-C: remove the half-written file, then end with the status a shell expects.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The temporary name of the file being written, if any.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// 128 + SIGINT.
const INTERRUPTED: i32 = 130;

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the program on Ctrl-C (and on SIGTERM and SIGHUP) without leaving a temporary file behind.
pub(crate) fn install() {
    // A second handler would be the only failure, and then the first one does the same.
    let _ = ctrlc::set_handler(|| {
        loop {
            let unfinished = unfinished();
            match &*unfinished {
                // Not there yet, or renamed already: in a moment the writer has made it, or has finished.
                Some(path) if std::fs::remove_file(path).is_err() => {}
                // Still locked, so that the writer, whose file is gone, cannot report that as an error.
                _ => std::process::exit(INTERRUPTED),
            }
            drop(unfinished);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Runs `write` while the temporary file of `path` is known to the handler.
pub(crate) fn while_writing<T>(path: &Path, write: impl FnOnce() -> T) -> T {
    // A pipe or a device is written to directly. Behind a symbolic link the file is made where the link points.
    if std::fs::metadata(path).map_or(true, |existing| existing.is_file()) {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        *unfinished() = Some(ironbloom::format::native::temporary_path(&target));
    }
    let result = write();
    *unfinished() = None;
    result
}
