//! Ctrl-C: remove the half-written file, then end with the status a shell expects.

use std::path::PathBuf;
use std::sync::Mutex;

/// The temporary name of the file being written, if any.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Ends the program on Ctrl-C (and on SIGTERM and SIGHUP) without leaving a temporary file behind.
pub(crate) fn install() {
    // A second handler would be the only failure, and then the first one does the same.
    let _ = ctrlc::set_handler(|| {
        if let Some(path) = UNFINISHED.lock().ok().and_then(|mut path| path.take()) {
            let _ = std::fs::remove_file(path);
        }
        std::process::exit(INTERRUPTED);
    });
}

/// Runs `write` while the temporary file of `path` is known to the handler.
pub(crate) fn while_writing<T>(path: &std::path::Path, write: impl FnOnce() -> T) -> T {
    let set = |value| *UNFINISHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = value;
    set(Some(ironbloom::format::native::temporary_path(path)));
    let result = write();
    set(None);
    result
}
