//! The bounds of the columns of a segment: in memory, in a file, or of rows that still come.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use ironbloom_blocks::bounds::{BlockSpans, Bounds, BoundsHead, ReadBounds, Span};
use ironbloom_blocks::{BlockSet, ReadWords};

use crate::checksum_tree::stored_bytes;
use crate::section::{Fault, Section};

/// What a segment knows about the smallest and the largest values in its blocks, column by column.
#[derive(Debug)]
pub(crate) enum SegmentBounds {
    /// Nothing: files of versions 1 and 2 have no bounds.
    Unknown,
    /// Sealed, and in memory.
    Sealed(Vec<Bounds>),
    /// In its file: read and verified as far as they are used.
    Stored(Box<StoredBounds>),
    /// Of rows that are not sealed yet.
    Growing(Vec<BlockSpans>),
}

/// The bounds of all columns of a segment, one after the other in one section.
#[derive(Debug)]
pub(crate) struct StoredBounds {
    pub(crate) section: Section,
    columns: Vec<StoredColumn>,
}

#[derive(Debug)]
struct StoredColumn {
    head: BoundsHead,
    /// Where its words begin in the section.
    first_word: usize,
    uses: AtomicU32,
    /// All its words, once they are used often.
    loaded: OnceLock<Vec<u64>>,
}

/// A column that is used more often is read completely: that takes a few hundred kilobytes at most.
const FEW_USES: u32 = 16;

/// Words of all columns with these heads.
pub(crate) fn words_of<'a>(heads: impl Iterator<Item = &'a BoundsHead>) -> u64 {
    heads.map(|head| head.words() as u64).sum()
}

impl StoredBounds {
    /// `None` if the section has another length.
    pub(crate) fn new(section: Section, heads: Vec<BoundsHead>) -> Option<Self> {
        if section.len() != 8 * words_of(heads.iter()) {
            return None;
        }
        let mut first_word = 0;
        let column = |head: BoundsHead| {
            let (uses, loaded) = (AtomicU32::new(0), OnceLock::new());
            let column = StoredColumn { head, first_word, uses, loaded };
            first_word += head.words();
            column
        };
        let columns = heads.into_iter().map(column).collect();
        Some(Self { section, columns })
    }

    /// Reads everything again.
    pub(crate) fn verify(&self) -> Result<(), Fault> {
        self.section.all_words()?;
        self.section.verify_tree()
    }

    fn narrow(&self, column: usize, wanted: Span, blocks: BlockSet) -> Result<BlockSet, Fault> {
        let column = &self.columns[column];
        let words = ColumnWords { section: &self.section, column };
        if column.loaded.get().is_none() && column.uses.fetch_add(1, Ordering::Relaxed) >= FEW_USES
        {
            // If a part cannot be read, others still answer.
            if let Ok(all) = words.read(0..column.head.words()) {
                column.loaded.get_or_init(|| all);
            }
        }
        column.head.narrow(wanted, blocks, &words)
    }
}

/// The words of a column in a file, or in memory if all of them are.
struct ColumnWords<'a> {
    section: &'a Section,
    column: &'a StoredColumn,
}

impl ColumnWords<'_> {
    fn read(&self, range: Range<usize>) -> Result<Vec<u64>, Fault> {
        let first = self.column.first_word;
        self.section.words(first + range.start..first + range.end)
    }
}

impl ReadBounds for ColumnWords<'_> {
    type Error = Fault;

    fn words(&self, range: Range<usize>) -> Result<Cow<'_, [u64]>, Fault> {
        match self.column.loaded.get() {
            Some(words) => Ok(Cow::Borrowed(&words[range])),
            None => Ok(Cow::Owned(self.read(range)?)),
        }
    }
}

impl SegmentBounds {
    /// What is known of a column without reading.
    pub(crate) fn head(&self, column: usize) -> Option<&BoundsHead> {
        match self {
            Self::Sealed(columns) => Some(columns[column].head()),
            Self::Stored(stored) => Some(&stored.columns[column].head),
            Self::Unknown | Self::Growing(_) => None,
        }
    }

    /// The span of all values of a column; that of everything if it is not known.
    #[inline]
    pub(crate) fn frame(&self, column: usize) -> Span {
        match self {
            Self::Growing(columns) => columns[column].frame(),
            _ => self.head(column).map_or(Span::ALL, BoundsHead::frame),
        }
    }

    /// Whether bounds narrow down what lists have found.
    #[inline]
    pub(crate) fn is_clustered(&self, column: usize) -> bool {
        match self {
            Self::Growing(_) => true,
            _ => self.head(column).is_some_and(BoundsHead::is_clustered),
        }
    }

    /// Of these blocks, those that may have a value in this span; no other of them has.
    pub(crate) fn narrow(
        &self,
        column: usize,
        wanted: Span,
        blocks: BlockSet,
    ) -> Result<BlockSet, Fault> {
        match self {
            Self::Unknown => Ok(blocks),
            Self::Sealed(columns) => Ok(columns[column].narrow(wanted, blocks)),
            Self::Stored(stored) => stored.narrow(column, wanted, blocks),
            Self::Growing(columns) => Ok(columns[column].narrow(wanted, blocks)),
        }
    }

    /// The spans of all blocks of a column; `None` if they are not known.
    pub(crate) fn spans(&self, column: usize) -> Result<Option<Vec<Span>>, Fault> {
        Ok(match self {
            Self::Unknown => None,
            Self::Sealed(columns) => Some(columns[column].spans()),
            Self::Stored(stored) => {
                let column = &stored.columns[column];
                Some(column.head.spans(&ColumnWords { section: &stored.section, column })?)
            }
            Self::Growing(columns) => Some(columns[column].spans().to_vec()),
        })
    }

    /// Reads a column into memory.
    pub(crate) fn load(&self, column: usize) -> Result<(), Fault> {
        if let Self::Stored(stored) = self {
            let column = &stored.columns[column];
            let words = ColumnWords { section: &stored.section, column };
            let words = words.read(0..column.head.words())?;
            column.loaded.get_or_init(|| words);
        }
        Ok(())
    }

    /// Bytes of a column in a file, or in memory if it is not sealed; without the checksums of the segment's section.
    pub(crate) fn size_in_bytes(&self, column: usize) -> u64 {
        match self {
            Self::Growing(columns) => size_of_val(columns[column].spans()) as u64,
            _ => self.head(column).map_or(0, |head| 8 * head.words() as u64),
        }
    }

    /// Bytes of the checksums of the section.
    pub(crate) fn checksum_bytes(&self, columns: usize) -> u64 {
        let bytes = (0..columns).map(|column| self.size_in_bytes(column)).sum();
        match self {
            Self::Sealed(_) | Self::Stored(_) => stored_bytes(bytes).unwrap_or(bytes) - bytes,
            Self::Unknown | Self::Growing(_) => 0,
        }
    }
}
