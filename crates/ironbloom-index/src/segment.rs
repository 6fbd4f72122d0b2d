//! A segment: rows of sources, and what the index holds for each column there. Never changed once sealed.

use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "object_store")]
use ironbloom_blocks::{BlockSet, Key, Lookup, bounds::Span};
use ironbloom_blocks::{List, Outline, Postings, ReadWords, Slices};

use crate::checksum_tree::{NODE_BYTES, stored_bytes};
use crate::section::{Fault, Section};
use crate::segment_bounds::SegmentBounds;
use crate::segment_rows::SegmentRows;

/// Rows of sources, with all columns of the index.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) rows: SegmentRows,
    pub(crate) columns: Vec<SegmentColumn>,
    pub(crate) bounds: SegmentBounds,
}

impl Segment {
    /// Whether it has rows of one of these sources.
    pub(crate) fn has_any_of(&self, is_meant: &dyn Fn(usize) -> bool) -> bool {
        self.rows.present().any(|(source, _)| is_meant(source))
    }

    /// Reads what a part of a lookup needs: lists, and bounds.
    #[cfg(feature = "object_store")]
    pub(crate) fn read_for(&self, part: &Lookup) -> Result<(), Fault> {
        let key = |column: usize, key: &Key| -> Result<(), Fault> {
            if self.bounds.frame(column).contains(key.image) {
                let list = self.columns[column].list(key.print)?;
                if self.bounds.is_clustered(column) {
                    let found = BlockSet::from_list(list);
                    self.bounds.narrow(column, Span::of(key.image), found)?;
                }
            }
            Ok(())
        };
        match part {
            Lookup::Is(column, wanted) => key(*column, wanted),
            // Errors of one must not keep the others from being requested.
            Lookup::In(column, keys) => {
                keys.iter().map(|wanted| key(*column, wanted)).fold(Ok(()), Result::and)
            }
            Lookup::Null(column) => self.columns[*column].nulls().map(drop),
            Lookup::Between(column, span) => {
                self.bounds.narrow(*column, *span, BlockSet::All).map(drop)
            }
            Lookup::Any | Lookup::Nothing | Lookup::And(_) | Lookup::Or(_) => Ok(()),
        }
    }
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

/// About as many bytes as come in the time of a request.
const REQUEST_BYTES: u64 = 256 << 10;
/// The same for the requests, one after the other, of a lookup in pieces.
const FEW_REQUESTS_BYTES: u64 = 4 << 20;

/// A column in a file.
#[derive(Debug)]
pub(crate) struct StoredPostings {
    pub(crate) section: Section,
    /// Blocks of the segment.
    blocks: u32,
    /// In a bucket, a column of at most this many bytes is read as a whole.
    whole_bytes: u64,
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
        let whole_bytes = REQUEST_BYTES;
        let is_partly_damaged = AtomicBool::new(false);
        Self { section, blocks, whole_bytes, outline, loaded, is_partly_damaged }
    }

    /// As one of this many segments. In pieces, a column takes several requests, one after the other: for a few
    /// segments, some megabytes may come sooner.
    pub(crate) fn among(self, segments: usize) -> Self {
        let share = FEW_REQUESTS_BYTES / segments.max(1) as u64;
        Self { whole_bytes: share.max(REQUEST_BYTES), ..self }
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

    /// Whether a part of it is read alone. A single piece is all of it; and a request takes as long as some hundred KiB.
    fn is_in_pieces(&self) -> bool {
        let least = if self.section.is_far() { self.whole_bytes } else { NODE_BYTES };
        self.section.tree().is_some() && self.section.len() > least
    }

    fn outline(&self) -> Result<&Outline, Fault> {
        if let Some(outline) = self.outline.get() {
            return Ok(outline);
        }
        // What is read next, the samples of a list, is behind the head: of most columns, near enough to come with it.
        self.section.prefetch_start(REQUEST_BYTES)?;
        let words = (self.section.len() / size_of::<u64>() as u64) as usize;
        let outline = Outline::read(&self.section, words, self.blocks)?;
        Ok(self.outline.get_or_init(|| outline))
    }

    /// Once half of a column has been read for answers, the rest costs no more than that, and answers from memory are
    /// faster.
    fn load_if_used_much(&self) {
        let is_used_much =
            !self.section.is_far() && self.section.tree().is_some_and(|tree| tree.is_half_read());
        if is_used_much && !self.is_partly_damaged.load(Ordering::Relaxed) && self.load().is_err() {
            self.is_partly_damaged.store(true, Ordering::Relaxed);
        }
    }
}

/// Postings that were in memory, or have been read.
pub(crate) enum ReadPostings<'a> {
    Held(&'a Postings),
    Read(Box<Postings>),
}

impl Deref for ReadPostings<'_> {
    type Target = Postings;

    fn deref(&self) -> &Postings {
        match self {
            Self::Held(postings) => postings,
            Self::Read(postings) => postings,
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

    /// All of a sealed column, for one use: what was not in memory before will not stay there.
    pub(crate) fn read(&self) -> Result<ReadPostings<'_>, Fault> {
        match self {
            Self::Stored(column) if column.loaded().is_none() => {
                column.read().map(|postings| ReadPostings::Read(Box::new(postings)))
            }
            _ => self.postings().map(ReadPostings::Held),
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
