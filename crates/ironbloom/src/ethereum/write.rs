//! The `.ibe` file, version 1: the logs blooms of many blocks, by bit. This header is its specification.
//!
//! ```text
//!  0  8  magic 89 49 42 45 0d 0a 1a 0a
//!  8  4  version, 1
//! 12  4  blocks of a section, 32768
//!
//! then the sections: section s has blocks 32768·s to 32768·s + n − 1, n = 32768, in the last one what is left. It is 2048
//! slices; slice i, i = 0 … 2047, is
//!
//!  0  c  bit b is bit i of the logs bloom of block b of the section; c = 8·⌈n / 64⌉ bytes, bits from n on are zero
//!  c  8  XXH3-64 of these bytes, seeded with 2048·s + i
//!
//! then the end:
//!
//!  0 16r runs of blocks with consecutive numbers: the number of the first one, and its place among all blocks
//!    8   blocks
//!    8   runs r
//!    8   XXH3-64 of bytes 0 to 15 of the file and of the end up to here
//! ```
//!
//! Numbers are little-endian. Blocks are in ascending order of their numbers; gaps begin a run. The length of the file
//! follows from the end, and a query reads and checks only the slices it needs: three per key and section.

use std::fmt;
use std::io::{self, Write};

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::LogsBloom;
use super::transpose::{slice_bytes, slices};

/// The first bytes of an index.
pub const MAGIC: [u8; 8] = *b"\x89IBE\r\n\x1a\n";

pub(super) const VERSION: u32 = 1;
pub(super) const SECTION: usize = 32_768;
pub(super) const HEAD: u64 = 16;
/// Blocks, runs, checksum.
pub(super) const TAIL: u64 = 24;
pub(super) const RUN: u64 = 16;
pub(super) const CHECKSUM: usize = 8;

/// Blocks with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The number of the first one.
    pub(super) number: u64,
    /// Its position among all blocks.
    pub(super) place: u64,
}

pub(super) fn head() -> [u8; HEAD as usize] {
    let mut head = [0; HEAD as usize];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..].copy_from_slice(&(SECTION as u32).to_le_bytes());
    head
}

/// Seed of a slice's checksum, so that a misplaced slice is detected like a damaged one.
pub(super) fn slice_seed(section: u64, slice: u64) -> u64 {
    super::BITS * section + slice
}

/// A block whose number is not above the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// The number of the block.
    pub number: u64,
    /// The number of the previous block.
    pub previous: u64,
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} after block {}: numbers must ascend", self.number, self.previous)
    }
}

impl std::error::Error for OutOfOrder {}

/// Writes an index. Keeps the blooms of one section, 8 MiB, in memory.
#[derive(Debug)]
pub struct IndexWriter<W> {
    out: W,
    blooms: Vec<LogsBloom>,
    sections: u64,
    blocks: u64,
    runs: Vec<Run>,
    previous: Option<u64>,
}

impl<W: Write> IndexWriter<W> {
    /// Starts an index without blocks.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&head())?;
        let blooms = Vec::new();
        Ok(Self { out, blooms, sections: 0, blocks: 0, runs: Vec::new(), previous: None })
    }

    /// Adds a block. Its number must be above the previous one; otherwise nothing is added, and the error wraps an
    /// [`OutOfOrder`].
    pub fn push(&mut self, number: u64, bloom: &LogsBloom) -> io::Result<()> {
        match self.previous {
            Some(previous) if number <= previous => {
                return Err(io::Error::other(OutOfOrder { number, previous }));
            }
            Some(previous) if number == previous + 1 => {}
            _ => self.runs.push(Run { number, place: self.blocks }),
        }
        self.previous = Some(number);
        self.blocks += 1;
        self.blooms.push(*bloom);
        if self.blooms.len() == SECTION {
            self.write_section()?;
        }
        Ok(())
    }

    /// Number of blocks so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    fn write_section(&mut self) -> io::Result<()> {
        let slices = slices(&self.blooms);
        let bytes = slice_bytes(self.blooms.len());
        for (i, slice) in slices.chunks(bytes).enumerate() {
            let checksum = xxh3_64_with_seed(slice, slice_seed(self.sections, i as u64));
            self.out.write_all(slice)?;
            self.out.write_all(&checksum.to_le_bytes())?;
        }
        self.sections += 1;
        self.blooms.clear();
        Ok(())
    }

    /// Writes the remaining blocks and the end.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.blooms.is_empty() {
            self.write_section()?;
        }
        let mut end = Vec::with_capacity(self.runs.len() * RUN as usize + TAIL as usize);
        for run in &self.runs {
            end.extend(run.number.to_le_bytes());
            end.extend(run.place.to_le_bytes());
        }
        end.extend(self.blocks.to_le_bytes());
        end.extend((self.runs.len() as u64).to_le_bytes());
        let mut checksum = Xxh3::new();
        checksum.update(&head());
        checksum.update(&end);
        end.extend(checksum.digest().to_le_bytes());
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
