//! Querying an index: the slices of the keys are ANDed and ORed in each section.
//!
//! ```text
//! section   of each key: slice ∧ slice ∧ slice     of each clause: key ∨ key ∨ …     of the question: clause ∧ clause ∧ …
//! ```

use std::fmt;
use std::io;
use std::ops::RangeInclusive;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::read_at::ReadAt;
use super::transpose::slice_bytes;
use super::write::{CHECKSUM, HEAD, MAGIC, RUN, Run, SECTION, TAIL, VERSION, head, slice_seed};
use super::{BITS, LogQuery};

/// An index of logs blooms, in a file or in other bytes.
#[derive(Debug)]
pub struct Index<F> {
    file: F,
    blocks: u64,
    runs: Vec<Run>,
}

/// An index that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum IndexError {
    /// The operating system reported an error.
    Io(io::Error),
    /// The first bytes are not those of an index.
    NotAnIndex,
    /// Written by a later release.
    Version {
        /// The version of the file.
        found: u32,
    },
    /// A part is damaged or missing.
    Damaged {
        /// The part.
        part: &'static str,
        /// The byte at which it begins.
        offset: u64,
    },
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotAnIndex => write!(f, "not an index of logs blooms"),
            Self::Version { found } => {
                write!(f, "format version {found} is newer than this program understands")
            }
            Self::Damaged { part, offset } => write!(f, "{part} at byte {offset} is damaged"),
        }
    }
}

impl std::error::Error for IndexError {}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<F: ReadAt> Index<F> {
    /// Opens an index: reads and checks its beginning and its end. Slices are checked whenever they are read.
    pub fn open(file: F) -> Result<Self, IndexError> {
        let length = file.length()?;
        let mut start = [0; HEAD as usize];
        if length < 8 {
            return Err(IndexError::NotAnIndex);
        }
        file.read_at(&mut start[..8], 0)?;
        if start[..8] != MAGIC {
            return Err(IndexError::NotAnIndex);
        }
        let damaged = |part, offset| IndexError::Damaged { part, offset };
        if length < HEAD + TAIL {
            return Err(damaged("the end, which is missing,", length));
        }
        file.read_at(&mut start[8..], 8)?;
        let version = u32::from_le_bytes(std::array::from_fn(|i| start[8 + i]));
        if version != VERSION {
            return Err(IndexError::Version { found: version });
        }
        if start != head() {
            return Err(damaged("the beginning", 0));
        }
        let mut tail = [0; TAIL as usize];
        file.read_at(&mut tail, length - TAIL)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| tail[at + i]));
        let (blocks, runs, checksum) = (number(0), number(8), number(16));
        // The length must follow from these numbers before memory is allocated for them.
        let expected = file_bytes(blocks, runs);
        if expected != Some(length) {
            return Err(damaged("the end", length - TAIL));
        }
        let end = length - TAIL - RUN * runs;
        let mut bytes = vec![0; (RUN * runs) as usize];
        file.read_at(&mut bytes, end)?;
        let mut hasher = Xxh3::new();
        hasher.update(&start);
        hasher.update(&bytes);
        hasher.update(&tail[..16]);
        if hasher.digest() != checksum {
            return Err(damaged("the end", end));
        }
        let runs = parse_runs(&bytes, blocks).ok_or(damaged("the end", end))?;
        Ok(Self { file, blocks, runs })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Numbers of the first and the last block; `None` without blocks.
    pub fn range(&self) -> Option<(u64, u64)> {
        let last = self.runs.last()?;
        Some((self.runs.first()?.number, last.number + (self.blocks - 1 - last.place)))
    }

    /// Returns the blocks in this range that may hold such a log, in ascending order. Damage to slices that the query
    /// does not need goes unnoticed; [`verify`](Self::verify) reads everything.
    pub fn find(
        &self,
        query: &LogQuery,
        numbers: RangeInclusive<u64>,
    ) -> Result<Vec<u64>, IndexError> {
        let places = self.place_of(*numbers.start())..self.place_after(*numbers.end());
        let mut found = Vec::new();
        if places.is_empty() {
            return Ok(found);
        }
        let mut slices = Slices::default();
        for section in places.start / SECTION as u64..=(places.end - 1) / SECTION as u64 {
            self.find_in(section, query, &mut slices)?;
            let first = section * SECTION as u64;
            for (i, &word) in slices.all.iter().enumerate() {
                let mut word = word;
                while word != 0 {
                    let place = first + 64 * i as u64 + u64::from(word.trailing_zeros());
                    word &= word - 1;
                    if places.contains(&place) {
                        found.push(self.number_of(place));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads all slices and returns an error for the first damaged one.
    pub fn verify(&self) -> Result<(), IndexError> {
        let mut words = Vec::new();
        for section in 0..self.blocks.div_ceil(SECTION as u64) {
            for slice in 0..BITS as u16 {
                self.read_slice(section, slice, &mut words)?;
            }
        }
        Ok(())
    }

    /// Finds the matching blocks of a section, as a bit each in `slices.all`.
    fn find_in(
        &self,
        section: u64,
        query: &LogQuery,
        slices: &mut Slices,
    ) -> Result<(), IndexError> {
        let blocks = self.blocks_of(section);
        let Slices { all, any, key, slice } = slices;
        all.clear();
        all.resize(slice_bytes(blocks) / 8, u64::MAX);
        if !blocks.is_multiple_of(64) {
            all[blocks / 64] = (1 << (blocks % 64)) - 1;
        }
        for clause in &query.clauses {
            // No block is left.
            if all.iter().all(|&word| word == 0) {
                return Ok(());
            }
            if let [positions] = clause[..] {
                self.read_key(section, positions, key, slice)?;
                combine(all, key, |a, b| a & b);
                continue;
            }
            any.clear();
            any.resize(all.len(), 0);
            for &positions in clause {
                self.read_key(section, positions, key, slice)?;
                combine(any, key, |a, b| a | b);
            }
            combine(all, any, |a, b| a & b);
        }
        Ok(())
    }

    /// Finds the blocks of a section that may have a key.
    fn read_key(
        &self,
        section: u64,
        [first, second, third]: [u16; 3],
        key: &mut Vec<u64>,
        slice: &mut Vec<u64>,
    ) -> Result<(), IndexError> {
        self.read_slice(section, first, key)?;
        for other in [second, third] {
            self.read_slice(section, other, slice)?;
            combine(key, slice, |a, b| a & b);
        }
        Ok(())
    }

    /// Number of blocks in a section.
    fn blocks_of(&self, section: u64) -> usize {
        (self.blocks - section * SECTION as u64).min(SECTION as u64) as usize
    }

    /// Reads and checks a slice of a section.
    fn read_slice(&self, section: u64, slice: u16, words: &mut Vec<u64>) -> Result<(), IndexError> {
        let blocks = self.blocks_of(section);
        let bytes = slice_bytes(blocks);
        let record = (bytes + CHECKSUM) as u64;
        let start = HEAD + section * BITS * (slice_bytes(SECTION) + CHECKSUM) as u64;
        let offset = start + u64::from(slice) * record;
        // The read overwrites all of it: old content need not be cleared.
        words.resize(record as usize / 8, 0);
        self.file.read_at(bytemuck::cast_slice_mut(words), offset)?;
        let stored = words.pop().map(u64::from_le).unwrap_or_default();
        let seed = slice_seed(section, slice.into());
        let is_whole = xxh3_64_with_seed(bytemuck::cast_slice(words), seed) == stored;
        words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        let rest = words.get(blocks / 64).map_or(0, |&word| word >> (blocks % 64));
        if !is_whole || (!blocks.is_multiple_of(64) && rest != 0) {
            return Err(IndexError::Damaged { part: "a slice", offset });
        }
        Ok(())
    }

    /// Returns the number of a block by its position.
    fn number_of(&self, place: u64) -> u64 {
        let run = self.runs[self.runs.partition_point(|run| run.place <= place) - 1];
        run.number + (place - run.place)
    }

    /// Returns the position of the first block whose number is at least this one.
    fn place_of(&self, number: u64) -> u64 {
        let next = self.runs.partition_point(|run| run.number <= number);
        let Some(run) = next.checked_sub(1).map(|i| self.runs[i]) else { return 0 };
        let end = self.runs.get(next).map_or(self.blocks, |next| next.place);
        run.place.saturating_add(number - run.number).min(end)
    }

    fn place_after(&self, number: u64) -> u64 {
        number.checked_add(1).map_or(self.blocks, |next| self.place_of(next))
    }
}

/// Memory for the slices of a section, reused for the next.
#[derive(Default)]
struct Slices {
    /// Blocks that match the query so far.
    all: Vec<u64>,
    /// Blocks that match a clause.
    any: Vec<u64>,
    /// Blocks that match a key.
    key: Vec<u64>,
    slice: Vec<u64>,
}

fn combine(to: &mut [u64], from: &[u64], op: impl Fn(u64, u64) -> u64) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = op(*to, from));
}

/// Length of a file with this many blocks and runs, if possible.
fn file_bytes(blocks: u64, runs: u64) -> Option<u64> {
    let section = |blocks: u64| BITS * (slice_bytes(blocks as usize) + CHECKSUM) as u64;
    let whole = (blocks / SECTION as u64).checked_mul(section(SECTION as u64))?;
    let last = match blocks % SECTION as u64 {
        0 => 0,
        rest => section(rest),
    };
    let sections = whole.checked_add(last)?;
    HEAD.checked_add(sections)?.checked_add(runs.checked_mul(RUN)?)?.checked_add(TAIL)
}

/// Parses the runs; `None` if they are out of order or a number is too large.
fn parse_runs(bytes: &[u8], blocks: u64) -> Option<Vec<Run>> {
    let (pairs, _) = bytes.as_chunks::<{ RUN as usize }>();
    let word = |pair: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|i| pair[at + i]));
    let runs: Vec<Run> =
        pairs.iter().map(|pair| Run { number: word(pair, 0), place: word(pair, 8) }).collect();
    let starts = runs.first().map_or(blocks == 0, |first| first.place == 0);
    let ends = runs.iter().skip(1).map(|run| (run.number, run.place)).chain([(u64::MAX, blocks)]);
    let in_order = runs.iter().zip(ends).all(|(run, (number, place))| {
        // The next run begins after the last block of this one, at least one number further.
        place > run.place
            && run.number.checked_add(place - run.place - 1).is_some_and(|last| last < number)
    });
    (starts && in_order).then_some(runs)
}
