//! A segment: rows of one source, and what the index holds for each column there. Never changed once sealed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ironbloom_blocks::{List, Outline, Postings, ReadWords, RowRanges, Slices};

use crate::checksum_tree::{NODE_BYTES, stored_bytes};
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
    /// In its file: read and verified as far as it is used.
    Stored(Box<StoredPostings>),
    /// Of rows that are not sealed yet.
    Growing(Slices),
}

/// A column in a file.
#[derive(Debug)]
pub(crate) struct StoredPostings {
    pub(crate) section: Section,
    /// Blocks of the segment.
    blocks: u32,
    /// Set when it is first read in pieces.
    outline: OnceLock<Outline>,
    /// Set when all of it has been read: from then on changes to the file do not matter.
    loaded: OnceLock<Postings>,
    /// It could not be read completely. What is not damaged still answers.
    is_partly_damaged: AtomicBool,
}

impl StoredPostings {
    pub(crate) fn new(section: Section, blocks: u32) -> Self {
        let (outline, loaded) = (OnceLock::new(), OnceLock::new());
        Self { section, blocks, outline, loaded, is_partly_damaged: AtomicBool::new(false) }
    }

    /// All that is in the file now.
    fn read(&self) -> Result<Postings, Fault> {
        let words = self.section.all_words()?;
        Postings::from_words(words, self.blocks).ok_or_else(|| self.section.invalid())
    }

    /// Whether all that is in the file now is what was written.
    pub(crate) fn verify(&self) -> Result<(), Fault> {
        self.read()?;
        self.section.verify_tree()
    }

    /// What is in memory, if all of it is.
    #[inline]
    pub(crate) fn loaded(&self) -> Option<&Postings> {
        self.loaded.get()
    }

    /// In memory: read completely if that has not been done before.
    pub(crate) fn load(&self) -> Result<&Postings, Fault> {
        if let Some(postings) = self.loaded.get() {
            return Ok(postings);
        }
        let postings = self.read()?;
        let postings = self.loaded.get_or_init(|| postings);
        if let Some(tree) = self.section.tree() {
            tree.clear();
        }
        Ok(postings)
    }

    /// A list, from all of the column if that is in memory, or else from the pieces that are needed.
    #[inline]
    fn lookup<'a>(
        &'a self,
        of_all: impl Fn(&'a Postings) -> List<'a>,
        of_pieces: impl Fn(&Outline, &Section) -> Result<List<'static>, Fault>,
    ) -> Result<List<'a>, Fault> {
        match self.loaded.get() {
            Some(postings) => Ok(of_all(postings)),
            None if !self.is_in_pieces() => Ok(of_all(self.load()?)),
            None => {
                let list = of_pieces(self.outline()?, &self.section)?;
                self.load_if_used_much();
                Ok(list)
            }
        }
    }

    /// Whether a part of it can be read. A single piece is all of it.
    fn is_in_pieces(&self) -> bool {
        self.section.tree().is_some() && self.section.len() > NODE_BYTES
    }

    fn outline(&self) -> Result<&Outline, Fault> {
        if let Some(outline) = self.outline.get() {
            return Ok(outline);
        }
        let words = (self.section.len() / size_of::<u64>() as u64) as usize;
        let outline = Outline::read(&self.section, words, self.blocks)?;
        Ok(self.outline.get_or_init(|| outline))
    }

    /// Once half of a column has been read for answers, the rest costs no more than that, and answers from memory are
    /// faster.
    fn load_if_used_much(&self) {
        let is_used_much = self.section.tree().is_some_and(|tree| tree.is_half_read());
        if is_used_much && !self.is_partly_damaged.load(Ordering::Relaxed) && self.load().is_err() {
            self.is_partly_damaged.store(true, Ordering::Relaxed);
        }
    }
}

impl SegmentColumn {
    /// The blocks that may hold a value of this fingerprint; no other block does.
    #[inline]
    pub(crate) fn list(&self, print: u32) -> Result<List<'_>, Fault> {
        match self {
            Self::Sealed(postings) => Ok(postings.list(print)),
            Self::Stored(column) => column.lookup(
                |postings| postings.list(print),
                |outline, words| outline.list(print, words),
            ),
            Self::Growing(slices) => Ok(List::Blocks(slices.blocks(print))),
        }
    }

    /// The blocks that hold nulls.
    pub(crate) fn nulls(&self) -> Result<List<'_>, Fault> {
        match self {
            Self::Sealed(postings) => Ok(postings.nulls()),
            Self::Stored(column) => {
                column.lookup(Postings::nulls, |outline, words| outline.nulls(words))
            }
            Self::Growing(slices) => Ok(List::Blocks(slices.null_blocks().to_vec())),
        }
    }

    /// See [`Postings::touch`].
    #[inline]
    pub(crate) fn touch(&self, print: u32, stage: u32) -> u64 {
        match self {
            Self::Sealed(postings) => postings.touch(print, stage),
            Self::Stored(column) => {
                column.loaded().map_or(0, |postings| postings.touch(print, stage))
            }
            Self::Growing(_) => 0,
        }
    }

    /// All of a sealed column, in memory.
    pub(crate) fn postings(&self) -> Result<&Postings, Fault> {
        match self {
            Self::Sealed(postings) => Ok(postings),
            Self::Stored(column) => column.load(),
            Self::Growing(_) => unreachable!("segments in the list are sealed"),
        }
    }

    /// Bytes in a file, with checksums, or in memory if it is not sealed.
    pub(crate) fn size_in_bytes(&self) -> u64 {
        let stored = |bytes| stored_bytes(bytes).unwrap_or(bytes);
        match self {
            Self::Sealed(postings) => stored(8 * postings.words().len() as u64),
            Self::Stored(column) => stored(column.section.len()),
            Self::Growing(slices) => slices.size_in_bytes() as u64,
        }
    }
}
