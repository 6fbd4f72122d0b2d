//! Replacing files atomically: written under another name, synced, renamed.
//!
//! A process that reads or maps the old file keeps it, and a crash in between leaves it unchanged.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::lock::{is_still_there, open_locked, wait_for_lock};

/// The name under which [`replace_file`] writes before renaming, `.NAME.PROCESS-0.tmp`. An interrupted program may remove
/// it. (If the name is taken, by a save in another thread, the last number is a higher one.)
pub fn temporary_path(path: &Path) -> PathBuf {
    numbered(path, 0)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!("{}-{number}.tmp", std::process::id()))
}

/// Returns `.NAME.` plus this suffix, beside the file. Very long names are truncated: a prefix of the name is enough, and
/// would otherwise leave no room for the rest. Such files may share a lock, and then also share it for their temporary
/// files.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let stem: String =
        path.file_name().unwrap_or_default().to_string_lossy().chars().take(40).collect();
    path.with_file_name(format!(".{stem}.{end}"))
}

/// Returns true for the end of a [temporary name](temporary_path), after the name of the file: `.PROCESS-NUMBER.tmp`. A
/// file name that ends with numbers cannot be mistaken for a part of it, since exactly one hyphen stands between digits.
pub fn is_temporary_suffix(end: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = end.strip_prefix('.').and_then(|end| end.strip_suffix(".tmp"));
    numbers
        .and_then(|numbers| numbers.split_once('-'))
        .is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes a temporary file unless its writer lives: it is locked as long as it is written. One that cannot be locked or
/// removed stays, and does no harm.
pub fn remove_if_abandoned(path: &Path) {
    // Locked while it is removed: a writer that has created it at this moment then notices, and creates another.
    if let Ok(Some(_locked)) = open_locked(path) {
        let _ = fs::remove_file(path);
    }
}

/// Replaces a file with the output of `write`, or creates a new one. The real name always refers to the complete old or
/// new file; permissions are kept.
pub fn replace_file(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    replace_file_at(path, |file, _| write(file))
}

/// Like [`replace_file`], for callers who already have the new content in a file: `write` also receives the temporary
/// name, at which it may put another, synced file instead of writing to the one it gets.
pub fn replace_file_at(
    path: &Path,
    write: impl FnOnce(&File, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    let target = behind_links(path);
    let (temporary, file) = create_temporary(&target)?;
    // Before the first byte: a private file must never be readable by others.
    let protected = existing.map_or(Ok(()), |found| file.set_permissions(found.permissions()));
    let written = protected
        .and_then(|()| write(&file, &temporary))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, &target));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_directory(&target);
    Ok(())
}

/// Resolves the file that a name refers to: for a symbolic link the target changes, not the link, even if the target
/// does not exist yet.
fn behind_links(path: &Path) -> PathBuf {
    const MAX_LINKS: u32 = 40; // like Linux
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&target) else { return target };
        target = target.parent().map_or_else(|| link.clone(), |parent| parent.join(&link));
    }
    target
}

/// Creates a file with no other writer, not even another thread that saves under the same name.
fn create_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    const TRIES: u32 = 1000;
    for number in 0..TRIES {
        let path = numbered(target, number);
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => {
                // Until it is closed, so that other writers leave it alone. They remove none that cannot be locked.
                if wait_for_lock(&file).is_err() || is_still_there(&file, &path) {
                    return Ok((path, file));
                }
            }
        }
    }
    let first = temporary_path(target);
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} exists", first.display())))
}

/// Makes the rename itself survive a power cut. A file system that cannot sync a directory is not an error.
fn sync_directory(path: &Path) {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(parent) {
        let _ = directory.sync_all();
    }
}
