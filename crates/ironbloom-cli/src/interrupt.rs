//! Ctrl-C: remove the half-written file, then end with the status a shell expects.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The temporary name of the file being written, if any.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Ends the program on Ctrl-C (and on SIGTERM and SIGHUP) without leaving a temporary file behind.
pub(crate) fn install() {
    // A second handler would be the only failure, and then the first one does the same.
    let _ = ctrlc::set_handler(|| {
        // Kept locked to the end: the writer, whose file is gone, waits here and cannot report that as an error.
        let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &*unfinished {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Runs `write` while the temporary file of `path` is known to the handler.
pub(crate) fn while_writing<T>(path: &std::path::Path, write: impl FnOnce() -> T) -> T {
    let set = |value| *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = value;
    // Behind a symbolic link the file is written where the link points.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    set(Some(ironbloom::format::native::temporary_path(&target)));
    let result = write();
    set(None);
    result
}
