//! Ctrl-C and other signals that end the program: remove the incomplete file and the lock that others wait for, then exit with
//! the status that a shell expects.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The temporary name of the file being written, if any.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that this program holds locked, if any.
static LOCKED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Runs `change`, which locks or unlocks a file, and is given the path of the one that is locked. A signal in the middle waits for
/// its end, so that a file is never locked without being known here; it must therefore be short.
pub(crate) fn while_locking<T>(change: impl FnOnce(&mut Option<PathBuf>) -> T) -> T {
    change(&mut LOCKED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends the program after removing its temporary file.
fn end(status: i32) {
    loop {
        let unfinished = unfinished();
        match &*unfinished {
            // Not created yet, or already renamed: in a moment the writer has created it, or has finished.
            Some(path) if std::fs::remove_file(path).is_err() => {}
            // Still locked, so that the writer, whose file is gone, cannot report that as an error.
            _ => {
                unlock();
                std::process::exit(status)
            }
        }
        drop(unfinished);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Removes the file that is locked. Last of all: from then on, others may write.
fn unlock() {
    let locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = &*locked {
        let _ = std::fs::remove_file(path);
    }
    // Held to the end, so that it is not unlocked, and taken by others, before it is removed.
    std::mem::forget(locked);
}

/// Ends the program in order on SIGINT (Ctrl-C), SIGTERM and SIGHUP, with status 128 + the signal's number. Called before
/// any thread is started, since threads inherit what is blocked here.
#[cfg(unix)]
pub(crate) fn install() {
    use nix::sys::signal::{SigSet, Signal};

    // Blocked in all threads, and awaited by one: nothing runs inside a signal handler, where little is allowed. Before anything
    // else: a signal that comes earlier ends the program without its status.
    let all: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    let blocked = all.thread_block();
    let ignored = ignored_signals();
    let (ignored, signals): (Vec<Signal>, Vec<Signal>) =
        all.iter().partition(|&signal| ignored & (1 << (signal as u32 - 1)) != 0);
    let _ = ignored.into_iter().collect::<SigSet>().thread_unblock();
    let signals: SigSet = signals.into_iter().collect();
    if blocked.is_ok() {
        std::thread::spawn(move || {
            if let Ok(signal) = signals.wait() {
                end(128 + signal as i32);
            }
        });
    }
}

/// The signals that are ignored since the start of the program (`nohup`, a shell's `&`), as bits.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Ends the program in order on Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn install() {
    const INTERRUPTED: i32 = 130;
    // Fails only if there is a handler already, which then does the same.
    let _ = ctrlc::set_handler(|| end(INTERRUPTED));
}

/// Runs `write` while the temporary file of `path` is known to the thread that waits for signals.
pub(crate) fn while_writing<T>(path: &Path, write: impl FnOnce() -> T) -> T {
    // A pipe or a device is written to directly. Through a symbolic link, the file is created where the link points.
    if std::fs::metadata(path).map_or(true, |existing| existing.is_file()) {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        *unfinished() = Some(ironbloom::format::native::temporary_path(&target));
    }
    let result = write();
    *unfinished() = None;
    result
}
