//! Checkpoints: the filter in files, with the generation of the store that it covers.
//!
//! ```text
//!  users.ibg                       which generation, which filter, and the statistics; replaced whole, last
//!  users-3f0c…d1.ibf               the filter of that generation (users-3f0c…d1.parts if it has several parts)
//! ```
//!
//! The `.ibg` file, version 1, in little-endian words of 8 bytes:
//!
//! ```text
//!   0  magic 89 49 42 47 0d 0a 1a 0a        7  capacity of the filter
//!   1  version, 1                           8  dead keys
//!   2  generation, two words                9  note (of the kind)
//!   4  kind, as in .ibf files              10  number of parts, p
//!   5  rate asked for, as a float          11  statistics, 16 words (`Totals`)
//!   6  capacity asked for                  27  length of each part, p words; then XXH3-64 of all before
//! ```
//!
//! A part is a whole `.ibf` file; a file of parts is these one behind the other.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use ironbloom::format::native::{replace_file, verify};
use ironbloom::{BlockedBloom, FileError, Persist};
use xxhash_rust::xxh3::xxh3_64;

use crate::filter::{Image, ImageWriter, SharedFilter};
use crate::front::Front;
use crate::generation::Generation;
use crate::kind::Kind;
use crate::options::Plan;
use crate::stats::{Counters, Totals};

const MAGIC: [u8; 8] = *b"\x89IBG\r\n\x1a\n";
const VERSION: u64 = 1;
const WORD: usize = size_of::<u64>();
/// Words before the lengths of the parts.
const HEAD_WORDS: usize = 11 + Totals::WORDS;
/// No filter has more parts than this: a shard is 16 KiB, so these would be half a terabyte.
const MOST_PARTS: u64 = 1 << 25;

/// A mapped filter up to this size is verified before it is used; a larger one in the background, while lookups ask the
/// store.
const VERIFIED_AT_ONCE: u64 = 4 << 20;

/// Why a checkpoint was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// There is none.
    Missing,
    /// It cannot be read, or is not as it was written.
    Damaged(String),
    /// The store was written to after it, or it is that of another store.
    OtherGeneration,
    /// It holds a filter of another kind, rate, hash function or window than asked for.
    OtherPlan,
    /// Others may have written to the store: see [`Options::only_writer`](crate::Options::only_writer).
    SharedStore,
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no checkpoint"),
            Self::Damaged(why) => write!(f, "the checkpoint is damaged: {why}"),
            Self::OtherGeneration => write!(f, "the store was written to after the checkpoint"),
            Self::OtherPlan => write!(f, "the checkpoint holds another filter than asked for"),
            Self::SharedStore => {
                write!(f, "others may have written to the store after the checkpoint")
            }
        }
    }
}

/// Where the checkpoint of a store that is a file is looked for: beside it, `users.ibg` for `users.redb`.
pub fn checkpoint_beside(store: impl AsRef<Path>) -> PathBuf {
    store.as_ref().with_extension("ibg")
}

/// What a `.ibg` file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sidecar {
    pub(crate) generation: Generation,
    pub(crate) kind: Kind,
    pub(crate) rate: f64,
    /// Asked for.
    pub(crate) capacity: u64,
    /// Of the filter.
    pub(crate) filter_capacity: u64,
    pub(crate) dead: u64,
    pub(crate) note: u64,
    pub(crate) totals: Totals,
    pub(crate) parts: Vec<u64>,
}

impl Sidecar {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut word = |word: u64| bytes.extend(word.to_le_bytes());
        word(VERSION);
        for half in self.generation.to_bytes().chunks_exact(WORD) {
            word(u64::from_le_bytes(half.try_into().expect("chunks of eight")));
        }
        word(self.kind.in_files() as u64);
        word(self.rate.to_bits());
        word(self.capacity);
        word(self.filter_capacity);
        word(self.dead);
        word(self.note);
        word(self.parts.len() as u64);
        self.totals.to_words().into_iter().for_each(&mut word);
        self.parts.iter().copied().for_each(&mut word);
        let seal = xxh3_64(&bytes);
        bytes.extend(seal.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        if !bytes.starts_with(&MAGIC) {
            return Err("not a checkpoint of a guard".to_owned());
        }
        let words: Vec<u64> = bytes
            .chunks_exact(WORD)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight")))
            .collect();
        if words.len() < HEAD_WORDS + 1 || bytes.len() != words.len() * WORD {
            return Err(format!("{} bytes are too few or too many", bytes.len()));
        }
        if words[1] != VERSION {
            return Err(format!("version {} is newer than this program understands", words[1]));
        }
        let (body, seal) = bytes.split_at(bytes.len() - WORD);
        if xxh3_64(body).to_le_bytes() != seal {
            return Err("checksum mismatch".to_owned());
        }
        let parts = &words[HEAD_WORDS..words.len() - 1];
        if words[10] != parts.len() as u64 || words[10] > MOST_PARTS {
            return Err(format!("invalid number of parts: {}", words[10]));
        }
        let totals = words[11..HEAD_WORDS].try_into().expect("as many as there are");
        Ok(Self {
            generation: Generation::from_bytes(&bytes[2 * WORD..4 * WORD]).expect("16 bytes"),
            kind: Kind::from_number(words[4])
                .ok_or_else(|| format!("invalid kind: {}", words[4]))?,
            rate: f64::from_bits(words[5]),
            capacity: words[6],
            filter_capacity: words[7],
            dead: words[8],
            note: words[9],
            totals: Totals::from_words(totals),
            parts: parts.to_vec(),
        })
    }

    /// The same filter would be made today: kind, rate and, of a window, its length. The hash stands in the filter itself.
    fn fits(&self, plan: &Plan) -> bool {
        self.kind == plan.kind
            && self.rate == plan.rate
            && (self.kind != Kind::Windowed || self.capacity == plan.capacity)
    }
}

/// A filter out of a checkpoint that covers the store.
pub(crate) struct Loaded {
    pub(crate) filter: SharedFilter,
    pub(crate) dead: u64,
    /// The file whose payload is still to be verified before the filter may say "absent".
    pub(crate) unverified: Option<PathBuf>,
}

/// The filter of the checkpoint, if it covers the store; and what was counted before in any case. `trusted` says that
/// nobody else has written to the store, whose generation this is.
pub(crate) fn find(
    files: Option<&Files>,
    plan: &Plan,
    generation: Option<Generation>,
    trusted: bool,
) -> (Totals, Result<Loaded, Unusable>) {
    let read = files.ok_or(Unusable::Missing).and_then(|files| Ok((files, files.read()?)));
    let (files, sidecar) = match read {
        Ok(read) => read,
        Err(why) => return (Totals::default(), Err(why)),
    };
    let loaded = if generation != Some(sidecar.generation) {
        Err(Unusable::OtherGeneration)
    } else if !trusted {
        Err(Unusable::SharedStore)
    } else {
        files.load(&sidecar, plan)
    };
    (sidecar.totals, loaded)
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
        let suffix = if parts == 1 { "ibf" } else { "parts" };
        self.sidecar.with_file_name(format!("{}-{generation}.{suffix}", self.stem()))
    }

    fn stem(&self) -> String {
        self.sidecar.file_stem().unwrap_or_default().to_string_lossy().into_owned()
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
    pub(crate) fn load(&self, sidecar: &Sidecar, plan: &Plan) -> Result<Loaded, Unusable> {
        if !sidecar.fits(plan) {
            return Err(Unusable::OtherPlan);
        }
        let path = self.filter(sidecar.generation, sidecar.parts.len());
        let damaged =
            |why: &dyn std::fmt::Display| Unusable::Damaged(format!("{}: {why}", path.display()));
        let dead = sidecar.dead;
        if plan.kind == Kind::Blocked && sidecar.parts.len() == 1 {
            // SAFETY: checkpoints are the guard's own files, which it replaces and never changes.
            #[expect(unsafe_code, reason = "opens at once whatever the size")]
            let plain = unsafe { BlockedBloom::map_private(&path) };
            let plain = plain.map_err(|error| damaged(&error))?;
            if plain.hash_fn() != plan.hash_fn {
                return Err(Unusable::OtherPlan);
            }
            let size = plain.size_in_bytes() as u64;
            let filter = SharedFilter::Blocked(plain.into());
            if size > VERIFIED_AT_ONCE {
                return Ok(Loaded { filter, dead, unverified: Some(path) });
            }
            find_damage(&path).map_err(|why| damaged(&why))?;
            return Ok(Loaded { filter, dead, unverified: None });
        }
        let bytes = fs::read(&path).map_err(|error| damaged(&error))?;
        let parts = cut(&bytes, &sidecar.parts).ok_or_else(|| damaged(&"cut short or too long"))?;
        let image = Image { parts, note: sidecar.note };
        let filter = SharedFilter::from_image(plan, sidecar.filter_capacity, &image);
        let filter = filter.map_err(|why| damaged(&why))?;
        Ok(Loaded { filter, dead, unverified: None })
    }

    /// Writes the filter, then the sidecar that makes it the checkpoint, then removes what is no longer needed. All
    /// writes of the generation are in the filter.
    pub(crate) fn write(
        &self,
        generation: Generation,
        front: &Front,
        counters: &Counters,
    ) -> Result<(), FileError> {
        let filter = front.current();
        let stats = front.stats(counters);
        let mut sidecar = Sidecar {
            generation,
            kind: stats.kind,
            rate: stats.rate,
            capacity: front.plan().capacity,
            filter_capacity: stats.capacity,
            dead: stats.dead,
            note: 0,
            totals: stats.totals,
            parts: Vec::new(),
        };
        // Whether there is one part or there are several is known when they are written.
        let path = self.filter(sidecar.generation, 0);
        let in_file = |path: &Path, error| FileError::Io { path: path.to_owned(), error };
        replace_file(&path, |file| {
            let mut out = ImageWriter::new(BufWriter::with_capacity(1 << 20, file));
            sidecar.note = filter.write_image(&mut out)?;
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

    /// Removes filters of other generations, and what a process that died has left half written. A file that cannot be
    /// removed does no harm.
    pub(crate) fn sweep(&self, keep: Option<Generation>) {
        let kept = keep.map(|generation| generation.to_string());
        let parent = self.sidecar.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else { return };
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
        let digits = rest.strip_suffix(".ibf").or_else(|| rest.strip_suffix(".parts"))?;
        (digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then_some(digits)
    }

    /// Whether this is what [`replace_file`] calls a file of ours before it is whole: a point, the first 40 letters of
    /// its name, and more.
    fn is_temporary(&self, name: &str) -> bool {
        let Some(inner) = name.strip_prefix('.').filter(|_| name.ends_with(".tmp")) else {
            return false;
        };
        let sidecar = self.sidecar.file_name().unwrap_or_default().to_string_lossy();
        let sidecar: String = sidecar.chars().take(40).collect();
        let of_filter = inner.strip_prefix(&self.stem()).and_then(|rest| rest.strip_prefix('-'));
        let digits = of_filter.and_then(|rest| rest.split('.').next());
        inner.strip_prefix(&sidecar).is_some_and(|rest| rest.starts_with('.'))
            || digits.is_some_and(|digits| {
                digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    }
}

/// What is damaged in a filter's file, if anything.
pub(crate) fn find_damage(path: &Path) -> Result<(), String> {
    let verification = verify(path).map_err(|error| error.to_string())?;
    match verification.damaged.first() {
        None => Ok(()),
        Some(damage) => Err(damage.to_string()),
    }
}

/// Cuts bytes into parts of these lengths. `None` if these are not the bytes.
fn cut<'a>(mut bytes: &'a [u8], lengths: &[u64]) -> Option<Vec<&'a [u8]>> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        parts.push(part);
        bytes = rest;
    }
    bytes.is_empty().then_some(parts)
}
