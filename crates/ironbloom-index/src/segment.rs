//! A segment: rows of one source, and what the index holds for each column there. Never changed once sealed.

use std::sync::OnceLock;

use ironbloom_blocks::{ColumnLists, Postings, RowRanges, Slices};

use crate::section::{Fault, Section};

/// Rows of one source, with all columns of the index.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The position of its source among those of the index.
    pub(crate) source: usize,
    pub(crate) rows: RowRanges,
    pub(crate) columns: Vec<SegmentColumn>,
}

/// What a segment holds for a column.
#[derive(Debug)]
pub(crate) enum SegmentColumn {
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
    pub(crate) section: Section,
    /// Blocks of the segment.
    pub(crate) blocks: u32,
    /// Set on first use: from then on changes to the file do not matter.
    pub(crate) loaded: OnceLock<Postings>,
}

impl StoredPostings {
    /// What is in the file now.
    pub(crate) fn read(&self) -> Result<Postings, Fault> {
        Postings::from_words(self.section.words()?, self.blocks).ok_or(Fault::Damaged)
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

impl SegmentColumn {
    /// Read from its file if that has not been done before.
    #[inline]
    pub(crate) fn lists(&self) -> Result<ColumnLists<'_>, Fault> {
        Ok(match self {
            Self::Sealed(postings) => ColumnLists::Postings(postings),
            Self::Stored(column) => ColumnLists::Postings(column.postings()?),
            Self::Growing(slices) => ColumnLists::Slices(slices),
        })
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        match self {
            Self::Sealed(postings) => 8 * postings.words().len() as u64,
            Self::Stored(column) => column.section.len(),
            Self::Growing(slices) => slices.size_in_bytes() as u64,
        }
    }
}
