//! Checkpoints: the filter in files, with the generation of the store that it covers.
//!
//! ```text
//!  users.ibg                       which generation, which filter, and the statistics; replaced whole, last
//!  users-3f0c…d1.ibf               the filter of that generation (users-3f0c…d1.parts if it has several parts)
//! ```
//!
//! The `.ibg` file, version 3, in little-endian words of 8 bytes:
//!
//! ```text
//!   0  magic 89 49 42 47 0d 0a 1a 0a        8  dead keys
//!   1  version, 3                           9  note (of the kind)
//!   2  generation, two words               10  number of parts, p
//!   4  kind, as in .ibf files              11  statistics, 20 words (`Totals`)
//!   5  rate asked for, as a float          31  words of the keys in doubt, d
//!   6  capacity asked for                  32  words of the hash function, h
//!   7  capacity of the filter              33  length of each part, p words; the keys in doubt, a whole .ibf file, d
//!                                              words; the hash function, a whole .ibf file of an empty filter that
//!                                              has it, h words; XXH3-64 of all before
//! ```
//!
//! A part is a complete `.ibf` file; a file of parts is their concatenation. Version 2 had no hash function: its lengths
//! began at word 32. Version 1 had 16 words of statistics and no keys in doubt either: its lengths began at word 27.
//!
//! **The files are read, not mapped.** A mapping would be changed, or truncated under the reader, by anyone who writes
//! to the file; a file read completely, with checksums verified over the bytes read, belongs to the guard alone. Large
//! filters are read in the background while lookups go to the store, so opening takes no time either way.

mod arrival;
mod sidecar;

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ironbloom::format::native::{is_temporary_suffix, replace_file};
use ironbloom::{FileError, HashFn};

pub(crate) use self::arrival::Arrival;
pub(crate) use self::sidecar::Sidecar;
use crate::doubts::Doubts;
use crate::filter::{self, Image, ImageError, ImageWriter, SharedFilter};
use crate::front::Snapshot;
use crate::generation::Generation;
use crate::options::{FilterSpec, Options};
use crate::stats::{Stats, Totals};

/// A filter up to this size is read when the guard is opened; a larger one in the background, while lookups go to the
/// store.
const READ_AT_ONCE: u64 = 4 << 20;

/// Why a checkpoint was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// There is none.
    Missing,
    /// It cannot be read, or is damaged.
    Damaged(String),
    /// The store was written to after it, or it belongs to another store.
    OtherGeneration,
    /// It holds a filter of another kind, rate, hash function or window than requested.
    OtherFilter,
    /// It belongs to the guard of another store.
    OtherGuard,
    /// Others may have written to the store: see [`Options::only_writer`](crate::Options::only_writer).
    SharedStore,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no checkpoint"),
            Self::Damaged(why) => write!(f, "the checkpoint is damaged: {why}"),
            Self::OtherGeneration => write!(f, "the store was written to after the checkpoint"),
            Self::OtherFilter => write!(f, "the checkpoint holds another filter than asked for"),
            Self::OtherGuard => write!(f, "the checkpoint belongs to the guard of another store"),
            Self::SharedStore => {
                write!(f, "others may have written to the store after the checkpoint")
            }
        }
    }
}

/// The default checkpoint path for a store that is a file: next to it, `users.ibg` for `users.redb`.
pub fn checkpoint_beside(store: impl AsRef<Path>) -> PathBuf {
    store.as_ref().with_extension("ibg")
}

/// A filter from a checkpoint.
pub(crate) struct Loaded {
    pub(crate) filter: Arc<dyn SharedFilter>,
    pub(crate) dead: u64,
}

/// A filter that is still to be read.
pub(crate) struct ToLoad {
    files: Files,
    sidecar: Sidecar,
    spec: FilterSpec,
}

impl ToLoad {
    /// Reads the filter and verifies every checksum.
    pub(crate) fn load(&self) -> Result<Loaded, Unusable> {
        self.files.load(&self.sidecar, &self.spec)
    }

    /// Whether this takes so long that it should be done in the background.
    pub(crate) fn is_large(&self) -> bool {
        self.sidecar.parts.iter().sum::<u64>() > READ_AT_ONCE
    }
}

/// What the files of a checkpoint say when a guard is opened.
pub(crate) struct Found {
    /// The filter to be used, with the hash function that was chosen or found.
    pub(crate) spec: FilterSpec,
    /// What was counted before.
    pub(crate) totals: Totals,
    /// What was in doubt, even if the filter cannot be used: everything, if that cannot be read.
    pub(crate) doubts: Doubts,
    /// The filter, if it covers the store.
    pub(crate) filter: Result<ToLoad, Unusable>,
    /// Whose generations they are; see [`Generation::lineage`].
    pub(crate) lineage: u64,
}

/// Looks for a checkpoint. `trusted` says that nobody else has written to the store, whose generation this is.
pub(crate) fn find(
    files: Option<&Files>,
    options: &Options,
    generation: Option<Generation>,
    trusted: bool,
) -> Found {
    let read = files.ok_or(Unusable::Missing).and_then(|files| Ok((files, files.read()?)));
    let lineage = generation.unwrap_or_else(Generation::fresh).lineage();
    let (files, sidecar) = match read {
        Ok(read) => read,
        Err(why) => return without(why, options, lineage),
    };
    let ours = generation.map(Generation::lineage) == Some(sidecar.generation.lineage());
    if !ours && generation.is_some() {
        return without(Unusable::OtherGuard, options, lineage);
    }
    let hash_fn = options.hash_fn.unwrap_or(sidecar.hash_fn);
    let spec = FilterSpec { hash_fn, ..options.spec };
    // What was counted is kept only if it was counted in front of this store.
    let totals = if ours { sidecar.totals } else { Totals::default() };
    // Doubts are hashes, so those of another hash function are meaningless.
    let doubts = Doubts::from_bytes(&sidecar.doubts, hash_fn);
    let filter = if generation != Some(sidecar.generation) {
        Err(Unusable::OtherGeneration)
    } else if !trusted {
        Err(Unusable::SharedStore)
    } else if !sidecar.fits(&spec) || doubts.is_err() {
        Err(Unusable::OtherFilter)
    } else {
        Ok(ToLoad { files: files.clone(), sidecar, spec })
    };
    let doubts = doubts.unwrap_or_else(|_| Doubts::everything(hash_fn));
    Found { spec, totals, doubts, filter, lineage }
}

/// No checkpoint that could be used. If there is one, what it says about doubts is lost.
fn without(why: Unusable, options: &Options, lineage: u64) -> Found {
    let hash_fn = options.hash_fn.unwrap_or_else(HashFn::random);
    let doubts = match why {
        Unusable::Missing => Doubts::new(hash_fn),
        _ => Doubts::everything(hash_fn),
    };
    let spec = FilterSpec { hash_fn, ..options.spec };
    Found { spec, totals: Totals::default(), doubts, filter: Err(why), lineage }
}

/// The files of a guard's checkpoint.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    sidecar: PathBuf,
}

impl Files {
    pub(crate) fn new(sidecar: &Path) -> Self {
        Self { sidecar: sidecar.to_owned() }
    }

    /// The file of the filter, of one part or of several.
    fn filter(&self, generation: Generation, parts: usize) -> PathBuf {
        let [one, several] = self.suffixes();
        let suffix = if parts == 1 { one } else { several };
        self.sidecar.with_file_name(format!("{}-{generation}.{suffix}", self.stem()))
    }

    /// Prefix of the filter file names.
    fn stem(&self) -> String {
        let name = if self.is_ibg() { self.sidecar.file_stem() } else { self.sidecar.file_name() };
        name.unwrap_or_default().to_string_lossy().into_owned()
    }

    fn is_ibg(&self) -> bool {
        self.sidecar.extension().is_some_and(|extension| extension == "ibg")
    }

    /// Extensions of a filter of one part and of one of several. Together with the stem they are different for each
    /// checkpoint in a folder: `users.ibg` and `users` have the same stem.
    fn suffixes(&self) -> [&'static str; 2] {
        if self.is_ibg() { ["ibf", "parts"] } else { ["filter", "filters"] }
    }

    pub(crate) fn read(&self) -> Result<Sidecar, Unusable> {
        match fs::read(&self.sidecar) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unusable::Missing),
            Err(error) => Err(self.damaged(&error)),
            Ok(bytes) => Sidecar::from_bytes(&bytes).map_err(|why| self.damaged(&why)),
        }
    }

    fn damaged(&self, why: &dyn std::fmt::Display) -> Unusable {
        Unusable::Damaged(format!("{}: {why}", self.sidecar.display()))
    }

    /// The filter of a sidecar.
    fn load(&self, sidecar: &Sidecar, spec: &FilterSpec) -> Result<Loaded, Unusable> {
        let path = self.filter(sidecar.generation, sidecar.parts.len());
        let damaged =
            |why: &dyn std::fmt::Display| Unusable::Damaged(format!("{}: {why}", path.display()));
        let bytes = fs::read(&path).map_err(|error| damaged(&error))?;
        let parts = cut(&bytes, &sidecar.parts).ok_or_else(|| damaged(&"cut short or too long"))?;
        let image = Image { parts, note: sidecar.note };
        match filter::from_image(spec, sidecar.filter_capacity, &image) {
            Ok(filter) => Ok(Loaded { filter, dead: sidecar.dead }),
            Err(ImageError::OtherHash) => Err(Unusable::OtherFilter),
            Err(why) => Err(damaged(&why)),
        }
    }

    /// The folder must exist: it is better to learn that a checkpoint cannot be written when the guard is opened.
    pub(crate) fn check_folder(&self) -> Result<(), FileError> {
        let folder = self.folder();
        let error = match fs::metadata(folder) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => io::ErrorKind::NotADirectory.into(),
            Err(error) => error,
        };
        Err(FileError::Io { path: folder.to_owned(), error })
    }

    fn folder(&self) -> &Path {
        folder_of(&self.sidecar)
    }

    /// Writes the filter, then the sidecar that makes it the checkpoint, then removes what is no longer needed. The
    /// snapshot holds every key that the store can hold while it has this generation.
    pub(crate) fn write(
        &self,
        generation: Generation,
        spec: &FilterSpec,
        snapshot: &Snapshot,
        stats: &Stats,
    ) -> Result<(), FileError> {
        let mut sidecar = Sidecar {
            generation,
            kind: spec.kind,
            rate: spec.rate,
            capacity: spec.capacity,
            filter_capacity: snapshot.filter.capacity(),
            dead: snapshot.dead,
            note: 0,
            totals: stats.totals,
            parts: Vec::new(),
            doubts: snapshot.doubts(),
            hash_fn: spec.hash_fn,
        };
        // Whether there is one part or there are several is known when they are written.
        let path = self.filter(sidecar.generation, 0);
        let in_file = |path: &Path, error| FileError::Io { path: path.to_owned(), error };
        replace_file(&path, |file| {
            let mut buffered = BufWriter::with_capacity(1 << 20, file);
            let mut out = ImageWriter::new(&mut buffered);
            sidecar.note = snapshot.filter.write_image(&mut out)?;
            sidecar.parts = out.finish()?;
            Ok(())
        })
        .map_err(|error| in_file(&path, error))?;
        let named = self.filter(sidecar.generation, sidecar.parts.len());
        fs::rename(&path, &named).map_err(|error| in_file(&named, error))?;
        let bytes = sidecar.to_bytes();
        replace_file(&self.sidecar, |mut file| io::Write::write_all(&mut file, &bytes))
            .map_err(|error| in_file(&self.sidecar, error))?;
        self.sweep(Some(sidecar.generation));
        Ok(())
    }

    /// Removes filters of other generations, and files that a dead process left half written. A file that cannot be
    /// removed does no harm.
    pub(crate) fn sweep(&self, keep: Option<Generation>) {
        let kept = keep.map(|generation| generation.to_string());
        let Ok(entries) = fs::read_dir(self.folder()) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let old = self.generation_of(&name).is_some_and(|found| Some(found) != kept.as_deref());
            if old || self.is_temporary(&name) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The generation in the name of a filter of ours.
    fn generation_of<'a>(&self, name: &'a str) -> Option<&'a str> {
        let rest = name.strip_prefix(&self.stem())?.strip_prefix('-')?;
        let (digits, suffix) = rest.split_once('.')?;
        self.suffixes().contains(&suffix).then_some(())?;
        (digits.len() == DIGITS && is_hex(digits)).then_some(digits)
    }

    /// Whether this is the temporary name that [`replace_file`] gives one of our files: a dot, the first 40 characters
    /// of its name, the number of the process and another one, `.tmp`. Truncated names that might belong to
    /// others are not ours.
    fn is_temporary(&self, name: &str) -> bool {
        let Some(inner) = name.strip_prefix('.') else { return false };
        if is_temporary_of(name, &self.sidecar) {
            return true;
        }
        let stem = self.stem();
        let kept = CUT_AT.saturating_sub(stem.chars().count() + 1).min(DIGITS);
        let of_filter = inner.strip_prefix(&stem).and_then(|rest| rest.strip_prefix('-'));
        let Some((digits, rest)) = of_filter.and_then(|rest| rest.split_at_checked(kept)) else {
            return false;
        };
        // After all digits comes the extension, or what truncation has left of it.
        let several = format!(".{}", self.suffixes()[1]);
        let ending =
            rest.find(|letter: char| letter == '.' && kept < DIGITS).unwrap_or_else(|| {
                CUT_AT.saturating_sub(stem.chars().count() + 1 + kept).min(several.len())
            });
        kept >= LEAST_DIGITS
            && is_hex(digits)
            && rest.split_at_checked(ending).is_some_and(|(ending, rest)| {
                several.starts_with(ending) && is_temporary_suffix(rest)
            })
    }
}

/// Whether this is a temporary name that [`replace_file`] gives this file, and no other.
fn is_temporary_of(name: &str, file: &Path) -> bool {
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix('.').and_then(|inner| inner.strip_prefix(&*file));
    file.chars().count() <= CUT_AT && rest.is_some_and(is_temporary_suffix)
}

/// Removes what processes that died while they wrote this file have left. Only its one writer may call this.
pub(crate) fn sweep_temporary(file: &Path) {
    let Ok(entries) = fs::read_dir(folder_of(file)) else { return };
    for entry in entries.flatten() {
        if is_temporary_of(&entry.file_name().to_string_lossy(), file) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Number of characters of a name that [`replace_file`] keeps.
const CUT_AT: usize = 40;
/// Digits of a generation, and how many of them make a name certainly one of ours.
const DIGITS: usize = 32;
const LEAST_DIGITS: usize = 8;

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Cuts bytes into parts of these lengths. `None` if the total does not match.
fn cut<'a>(mut bytes: &'a [u8], lengths: &[u64]) -> Option<Vec<&'a [u8]>> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        parts.push(part);
        bytes = rest;
    }
    bytes.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the library calls the file before it is whole, and a second one of the same process.
    fn temporary_names(files: &Files) -> Vec<String> {
        let filter = files.filter(Generation::fresh(), 0);
        let name = |path: &Path| {
            let path = ironbloom::format::native::temporary_path(path);
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        let first = [name(&files.sidecar), name(&filter)];
        let second = first.each_ref().map(|name| name.replace("-0.tmp", "-7.tmp"));
        [first, second].concat()
    }

    #[test]
    fn temporary_files_of_ours_are_known_and_no_others() {
        for name in ["g.ibg", "users.ibg", "a-name-of-twenty-six-let.ibg", "checkpoint"] {
            let files = Files::new(Path::new("folder").join(name).as_path());
            for ours in temporary_names(&files) {
                assert!(files.is_temporary(&ours), "{ours} of {name}");
            }
        }
        let files = Files::new(Path::new("g.ibg"));
        let others = [
            ".g.ibg.backup.tmp",
            ".g.ibg.tmp",
            ".g.ibg.1.2-0.tmp",
            "g.ibg.1-0.tmp",
            ".g.ibg.1-0.tmpx",
        ];
        let near =
            [".g-notes.1-0.tmp", ".g-0123456789abcdef.1-0.tmp", ".gg.ibg.1-0.tmp", ".g-.1-0.tmp"];
        for name in others.into_iter().chain(near) {
            assert!(!files.is_temporary(name), "{name}");
        }
        for other in ["gg.ibg", "g.old", "h.ibg"] {
            for name in temporary_names(&Files::new(Path::new(other))) {
                assert!(!files.is_temporary(&name), "{name}");
            }
        }
        // Truncated, they might be anyone's.
        let long = Files::new(Path::new("a-name-that-is-longer-than-forty-letters-1.ibg"));
        let twin = Files::new(Path::new("a-name-that-is-longer-than-forty-letters-2.ibg"));
        assert!(!temporary_names(&twin).iter().any(|name| long.is_temporary(name)));
    }

    #[test]
    fn filters_of_another_checkpoint_in_the_folder_are_not_ours() {
        let name = |files: &Files| {
            let path = files.filter(Generation::fresh(), 1);
            path.file_name().unwrap().to_string_lossy().into_owned()
        };
        let [ours, other] = ["users.ibg", "users.old"].map(|name| Files::new(Path::new(name)));
        assert!(ours.generation_of(&name(&ours)).is_some());
        assert!(other.generation_of(&name(&other)).is_some());
        assert!(ours.generation_of(&name(&other)).is_none());
        assert!(other.generation_of(&name(&ours)).is_none());
    }
}
