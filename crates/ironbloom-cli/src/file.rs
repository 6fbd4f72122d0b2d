//! Filter files as the commands use them.

use std::path::Path;

use anyhow::{Result, anyhow};
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::{FileError, Persist as _};

use crate::input::Keys;
use crate::{interrupt, number, output};

/// Saves a filter; Ctrl-C meanwhile leaves no temporary file.
pub(crate) fn save(filter: &AnyFilter, path: &Path) -> Result<()> {
    interrupt::while_writing(path, || filter.save(path))?;
    Ok(())
}

/// Reads a filter into memory, which nobody else can change: a map of its file would take about as long, since every
/// checksum is verified, and would end the program by a signal if somebody truncated the file meanwhile.
pub(crate) fn open(path: &Path) -> Result<AnyFilter> {
    Ok(AnyFilter::load(path)?)
}

/// The hashes of some keys.
pub(crate) fn hashes(keys: &Keys, key_hash: KeyHash) -> Result<Vec<u64>> {
    let mut hashes = Vec::with_capacity(keys.len());
    for key in keys.iter() {
        hashes.push(key_hash.of(key)?);
    }
    Ok(hashes)
}

/// An error of the library, with the file it concerns in front.
pub(crate) fn named(path: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(path.display().to_string())
}

/// Says so on standard error if a filter holds more keys than it was planned for.
pub(crate) fn warn_if_over_capacity(path: &Path, filter: &AnyFilter) {
    if filter.is_over_capacity() {
        output::note(&format!(
            "warning: {}: {} keys in a filter planned for {}; the rate is now about {}",
            path.display(),
            number::count(filter.len()),
            number::count(filter.capacity()),
            number::rate(filter.estimate_rate()),
        ));
    }
}

/// Keeps an output from being the input: the file would be gone before it was read.
pub(crate) fn refuse_same(output: &Path, inputs: &[std::path::PathBuf]) -> Result<()> {
    let Ok(output_file) = std::fs::canonicalize(output) else { return Ok(()) };
    if inputs
        .iter()
        .any(|input| std::fs::canonicalize(input).is_ok_and(|input| input == output_file))
    {
        return Err(anyhow!("{}: is both an input and the output", output.display()));
    }
    Ok(())
}

/// Says that there is no place for an output while nothing is done yet, not when all keys have been read.
pub(crate) fn refuse_unwritable(output: &Path) -> Result<()> {
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        _ if output.is_dir() => Err(anyhow!("{}: is a directory", output.display())),
        Some(directory) if !directory.is_dir() => {
            Err(anyhow!("{}: there is no directory {}", output.display(), directory.display()))
        }
        _ => Ok(()),
    }
}

/// Whether a file is not there at all, as opposed to damaged or unreadable.
pub(crate) fn is_missing(error: &FileError) -> bool {
    matches!(error, FileError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}
