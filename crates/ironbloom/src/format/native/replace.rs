//! Replacing files atomically: written under another name, synced, renamed.
//!
//! A process that reads or maps the old file keeps it, and a crash in between leaves it unchanged.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The name under which [`replace_file`] writes before renaming. An interrupted program may remove it. (If the name is
/// taken, by a save in another thread, a number is added.)
pub fn temporary_path(path: &Path) -> PathBuf {
    // A prefix of the name is enough; a long one would leave no room for the rest.
    let stem: String =
        path.file_name().unwrap_or_default().to_string_lossy().chars().take(40).collect();
    path.with_file_name(format!(".{stem}.{}.tmp", std::process::id()))
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
    let first = temporary_path(target);
    for number in 0..TRIES {
        let path =
            if number == 0 { first.clone() } else { first.with_extension(format!("{number}.tmp")) };
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (path, file)),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} exists", first.display())))
}

/// Makes the rename itself survive a power cut. A file system that cannot sync a directory is not an error.
fn sync_directory(path: &Path) {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(parent) {
        let _ = directory.sync_all();
    }
}
