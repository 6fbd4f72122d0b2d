//! A segment: rows of one source, never changed once sealed, with one chunk a column.

use std::ops::Range;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::postings::{List, Postings};
use crate::slices::Slices;
use crate::words::{Mapping, Words};

/// Rows that follow each other in a source. Each run starts a block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
}

impl Run {
    pub(crate) fn blocks(self, block_rows: u32) -> u64 {
        self.rows.div_ceil(block_rows.into())
    }
}

/// Rows of one source, with a chunk for each column of the index.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The place of its source among those of the index.
    pub(crate) source: usize,
    /// Ascending. One, unless segments were merged whose last block was not full.
    pub(crate) runs: Vec<Run>,
    pub(crate) chunks: Vec<Chunk>,
}

/// Most blocks of a segment, so that numbers of blocks and of entries fit 32 bits.
pub(crate) const MOST_ROWS: u64 = 1 << 30;

impl Segment {
    pub(crate) fn rows(&self) -> u64 {
        self.runs.iter().map(|run| run.rows).sum()
    }

    pub(crate) fn blocks(&self, block_rows: u32) -> u32 {
        self.runs.iter().map(|run| run.blocks(block_rows)).sum::<u64>() as u32
    }

    /// The rows of a block: the first, and how many.
    pub(crate) fn block(&self, mut block: u64, block_rows: u32) -> (u64, u32) {
        for run in &self.runs {
            let blocks = run.blocks(block_rows);
            if block < blocks {
                let skip = block * u64::from(block_rows);
                return (run.first_row + skip, (run.rows - skip).min(block_rows.into()) as u32);
            }
            block -= blocks;
        }
        unreachable!("no list names a block that the segment has not")
    }
}

/// What a segment holds of a column.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Sealed, and at hand.
    Sealed(Postings),
    /// Still in its file: read and verified when first used.
    Stored(Stored),
    /// Of rows that are not sealed yet.
    Growing(Slices),
}

/// A chunk of a file.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) map: Mapping,
    pub(crate) bytes: Range<usize>,
    pub(crate) checksum: u64,
    /// Blocks of the segment.
    pub(crate) blocks: u32,
    pub(crate) loaded: OnceLock<Postings>,
}

impl Stored {
    /// Are the bytes those that were written?
    pub(crate) fn is_whole(&self) -> bool {
        let bytes = self.map.bytes().get(self.bytes.clone());
        bytes.is_some_and(|bytes| xxh3_64(bytes) == self.checksum)
    }

    /// The postings, or `None` if the chunk is damaged.
    #[inline]
    pub(crate) fn postings(&self) -> Option<&Postings> {
        if let Some(postings) = self.loaded.get() {
            return Some(postings);
        }
        if !self.is_whole() {
            return None;
        }
        let words = Words::mapped(&self.map, self.bytes.clone())?;
        let postings = Postings::from_words(words, self.blocks)?;
        Some(self.loaded.get_or_init(|| postings))
    }
}

/// A chunk that can be asked.
pub(crate) enum Reader<'a> {
    Postings(&'a Postings),
    Slices(&'a Slices),
}

impl<'a> Reader<'a> {
    /// The blocks that may hold a value of this fingerprint; no other block does.
    #[inline]
    pub(crate) fn list(&self, print: u32) -> List<'a> {
        match self {
            Self::Postings(postings) => postings.list(print),
            Self::Slices(slices) => List::Blocks(slices.blocks(print)),
        }
    }

    /// Reads what a lookup will wait for first, then (`stage` 1) what it will wait for next.
    #[inline]
    pub(crate) fn touch(&self, print: u32, stage: u32) -> u64 {
        match (self, stage) {
            (Self::Postings(postings), 0) => postings.touch_sample(print),
            (Self::Postings(postings), _) => postings.touch_number(print),
            (Self::Slices(_), _) => 0,
        }
    }

    /// The blocks that hold nulls.
    pub(crate) fn nulls(&self) -> List<'a> {
        match self {
            Self::Postings(postings) => postings.nulls(),
            Self::Slices(slices) => List::Blocks(slices.null_blocks().to_vec()),
        }
    }
}

impl Chunk {
    /// `None` if it is damaged.
    #[inline]
    pub(crate) fn reader(&self) -> Option<Reader<'_>> {
        Some(match self {
            Self::Sealed(postings) => Reader::Postings(postings),
            Self::Stored(stored) => Reader::Postings(stored.postings()?),
            Self::Growing(slices) => Reader::Slices(slices),
        })
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        match self {
            Self::Sealed(postings) => 8 * postings.words().len() as u64,
            Self::Stored(stored) => stored.bytes.len() as u64,
            Self::Growing(slices) => slices.size_in_bytes() as u64,
        }
    }
}
