//! A segment: rows of one source, never changed once sealed, with one chunk per column.

use std::sync::OnceLock;

use crate::postings::{List, Postings};
use crate::slices::Slices;
use crate::stored::{Fault, Stored};

/// Rows that follow each other in a source. Each run starts a new block.
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
    /// The position of its source among those of the index.
    pub(crate) source: usize,
    /// Ascending. One, unless segments were merged whose last block was not full.
    pub(crate) runs: Vec<Run>,
    pub(crate) chunks: Vec<Chunk>,
}

/// Maximum number of blocks in a segment, so that numbers of blocks and of entries fit 32 bits.
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
        unreachable!("no list names a block that the segment lacks")
    }
}

/// What a segment holds for a column.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Sealed, and in memory.
    Sealed(Postings),
    /// In its file: read and verified when first used.
    Stored(StoredPostings),
    /// Of rows that are not sealed yet.
    Growing(Slices),
}

/// A column in a file.
#[derive(Debug)]
pub(crate) struct StoredPostings {
    pub(crate) stored: Stored,
    /// Blocks of the segment.
    pub(crate) blocks: u32,
    /// Set on first use: from then on changes to the file do not matter.
    pub(crate) loaded: OnceLock<Postings>,
}

impl StoredPostings {
    /// What is in the file now.
    pub(crate) fn read(&self) -> Result<Postings, Fault> {
        Postings::from_words(self.stored.words()?, self.blocks).ok_or(Fault::Damaged)
    }

    #[inline]
    fn postings(&self) -> Result<&Postings, Fault> {
        if let Some(postings) = self.loaded.get() {
            return Ok(postings);
        }
        let postings = self.read()?;
        Ok(self.loaded.get_or_init(|| postings))
    }
}

/// A chunk that can be queried.
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
    /// Read from its file if that has not been done before.
    #[inline]
    pub(crate) fn reader(&self) -> Result<Reader<'_>, Fault> {
        Ok(match self {
            Self::Sealed(postings) => Reader::Postings(postings),
            Self::Stored(column) => Reader::Postings(column.postings()?),
            Self::Growing(slices) => Reader::Slices(slices),
        })
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        match self {
            Self::Sealed(postings) => 8 * postings.words().len() as u64,
            Self::Stored(column) => column.stored.len(),
            Self::Growing(slices) => slices.size_in_bytes() as u64,
        }
    }
}
