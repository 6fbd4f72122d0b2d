//! Filter files as the commands use them.

use std::path::Path;

use anyhow::{Result, anyhow};
use ironbloom::any::{AnyFilter, KeyError, KeyHash, Refused};
use ironbloom::hash::KeyForm;
use ironbloom::{FileError, KeyType, KeyTypes, Persist as _};

use crate::failure::Advice;
use crate::input::{BadKey, Keys};
use crate::turn::Turn;
use crate::{dash, info, interrupt, number, output};

/// Saves a filter; if Ctrl-C is pressed meanwhile, the temporary file is removed.
pub(crate) fn save(filter: &AnyFilter, path: &Path) -> Result<()> {
    if dash::is(path) {
        return dash::write(filter);
    }
    replacing(path, || Ok(filter.save(path)?))
}

/// Runs `replace`, which writes a new file of this name, when no other process is changing the old one. If Ctrl-C is pressed
/// meanwhile, the temporary file is removed.
pub(crate) fn replacing<T>(path: &Path, replace: impl FnOnce() -> Result<T>) -> Result<T> {
    let _turn = Turn::take_to_replace(path)?;
    interrupt::while_writing(path, replace)
}

/// Reads a filter into memory, where no other process can change it. Mapping the file would take half the time (every
/// checksum is verified either way), but would kill the program if another process truncated the file.
pub(crate) fn load(path: &Path) -> Result<AnyFilter> {
    if dash::is(path) { dash::read() } else { Ok(AnyFilter::load(path)?) }
}

/// How lines become keys of this filter: text, or integers where it holds nothing else. `keys` is what the user says of a filter
/// that holds more than one type.
pub(crate) fn text_hash(path: &Path, filter: &AnyFilter, keys: Option<KeyType>) -> Result<KeyHash> {
    let key_hash = match keys {
        Some(keys) => filter.key_hash().of_text_as(keys),
        None => filter.key_hash().of_text(),
    };
    key_hash.map_err(|error| key_error(path, error))
}

/// An error about keys of a filter, with the option that helps.
pub(crate) fn key_error(path: &Path, error: KeyError) -> anyhow::Error {
    let hint = match error {
        KeyError::Locked { .. } => "say where the key is: --secret-file FILE",
        KeyError::Ambiguous { .. } => "say what lines are: --keys text or --keys long",
        _ => return named(path, error),
    };
    Advice::error(format!("{}: {error}", dash::input_name(path)), hint)
}

/// Names the type of lines that are hashed in this way.
pub(crate) fn line_types(key_hash: KeyHash) -> KeyTypes {
    match key_hash {
        KeyHash::Digits(_) | KeyHash::Integer => KeyType::Integer.into(),
        _ => KeyType::Bytes.into(),
    }
}

/// Interprets `--keys` for a filter of ours.
pub(crate) fn key_type(form: Option<KeyForm>) -> Result<Option<KeyType>> {
    match form {
        None => Ok(None),
        Some(KeyForm::Text) => Ok(Some(KeyType::Bytes)),
        Some(KeyForm::Long) => Ok(Some(KeyType::Integer)),
        Some(other) => Err(Advice::error(
            format!("--keys {} is for filters that hash as another program does", other.name()),
            "keys of ours are text or integers: --keys text or --keys long",
        )),
    }
}

/// The hashes of some keys.
pub(crate) fn hashes(keys: &Keys, key_hash: KeyHash) -> Result<Vec<u64>> {
    let mut hashes = Vec::with_capacity(keys.len());
    for (place, key) in keys.iter().enumerate() {
        hashes.push(key_hash.of(key).map_err(|error| BadKey::error(place, shortened(error)))?);
    }
    Ok(hashes)
}

/// The error with a long key cut off: a line of a gigabyte would not help.
pub(crate) fn shortened(error: KeyError) -> KeyError {
    const MOST: usize = 100;
    let cut = |key: String| match key.chars().nth(MOST) {
        Some(_) => key.chars().take(MOST).chain(['…']).collect(),
        None => key,
    };
    match error {
        KeyError::NotAnInteger { key } => KeyError::NotAnInteger { key: cut(key) },
        KeyError::NotOfForm { key, form } => KeyError::NotOfForm { key: cut(key), form },
        other => other,
    }
}

/// Adds keys by their hashes. A key that cannot be inserted is named.
pub(crate) fn insert(filter: &mut AnyFilter, hashes: &[u64]) -> Result<()> {
    filter.insert_hashes(hashes).map_err(|refused| match refused {
        Refused::OutOfBounds(error) => {
            let place = hashes.iter().position(|&hash| hash >= error.bound);
            BadKey::error(place.unwrap_or(0), refused)
        }
        other => other.into(),
    })
}

/// An error of the library, preceded by the file it concerns.
pub(crate) fn named(path: &Path, error: impl Into<anyhow::Error>) -> anyhow::Error {
    error.into().context(path.display().to_string())
}

/// Warns on standard error if a filter holds more keys than its capacity.
pub(crate) fn warn_if_over_capacity(path: &Path, filter: &AnyFilter) {
    if filter.is_over_capacity() {
        output::note(&format!(
            "warning: {}: {} in a filter planned for {}; the rate is now about {}",
            dash::output_name(path),
            info::counted_keys(filter),
            number::count(filter.capacity()),
            number::rate(filter.estimate_rate()),
        ));
    }
}

/// Returns true if two paths lead to the same existing file.
pub(crate) fn is_same(one: &Path, two: &Path) -> bool {
    match (std::fs::canonicalize(one), std::fs::canonicalize(two)) {
        (Ok(one), Ok(two)) => one == two,
        _ => false,
    }
}

/// Refuses an output that is also an input: the file would be lost before it was read.
pub(crate) fn refuse_same(output: &Path, inputs: &[std::path::PathBuf]) -> Result<()> {
    if inputs.iter().any(|input| is_same(input, output)) {
        return Err(anyhow!("{}: is both an input and the output", output.display()));
    }
    Ok(())
}

/// Fails at the start if the output cannot be written, not after all keys have been read.
pub(crate) fn refuse_unwritable(output: &Path) -> Result<()> {
    if dash::is(output) {
        return dash::refuse_terminal();
    }
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    match directory {
        _ if output.is_dir() => Err(anyhow!("{}: is a directory", output.display())),
        Some(directory) if !directory.is_dir() => {
            Err(anyhow!("{}: there is no directory {}", output.display(), directory.display()))
        }
        _ => Ok(()),
    }
}

/// Returns true if a file does not exist, as opposed to being damaged or unreadable.
pub(crate) fn is_missing(error: &FileError) -> bool {
    matches!(error, FileError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound)
}
