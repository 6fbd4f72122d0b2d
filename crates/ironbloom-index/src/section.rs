//! A section of an index file: bytes that are read on demand, and verified each time.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::ops::Range;

use ironbloom::memory::WordArray;
use ironbloom_blocks::ReadWords;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::checksum_tree::{TreeBuilder, TreeReader, stored_bytes};
use crate::error::{Error, FilePart};
use crate::file_bytes::{FileBytes, PIECE_BYTES, Pieces};

/// How a section is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a whole: the checksum is that of all its bytes.
    Whole,
    /// In pieces: the checksum is the root of a tree of checksums, which is stored after the section.
    Tree,
}

impl Form {
    /// Its number in a file.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Tree => 1,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Whole, Self::Tree].into_iter().find(|form| form.number() == number)
    }
}

/// Words as they are stored.
pub(crate) fn little_endian(words: &[u64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice(words).into()
    } else {
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into()
    }
}

/// The location and the checksum of a section.
#[derive(Debug)]
pub(crate) struct Section {
    file: FileBytes,
    range: Range<u64>,
    checksum: u64,
    /// If it can be read in pieces.
    tree: Option<TreeReader>,
}

/// Why a section cannot be used.
#[derive(Debug)]
pub(crate) enum Fault {
    /// These bytes of the file are not those that were written, or there are none.
    Damaged(Range<u64>),
    /// The system could not read them.
    Io(io::Error),
}

impl Fault {
    /// An error on reading these bytes.
    pub(crate) fn at(error: io::Error, range: Range<u64>) -> Self {
        match error.kind() {
            // Truncated since the file was opened.
            ErrorKind::UnexpectedEof => Self::Damaged(range),
            _ => Self::Io(error),
        }
    }
}

const WORD_BYTES: u64 = size_of::<u64>() as u64;

impl Section {
    /// `range` is that of the section without its tree.
    pub(crate) fn new(file: FileBytes, range: Range<u64>, checksum: u64, form: Form) -> Self {
        let len = range.end - range.start;
        let tree =
            (form == Form::Tree).then(|| TreeReader::new(file.clone(), range.start, len, checksum));
        Self { file, range, checksum, tree }
    }

    /// Where it is in its file, without the tree.
    pub(crate) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The same with the tree.
    pub(crate) fn stored_range(&self) -> Range<u64> {
        let bytes = match self.form() {
            Form::Whole => self.len(),
            Form::Tree => stored_bytes(self.len()).expect("compared with the file's length"),
        };
        self.range.start..self.range.start + bytes
    }

    pub(crate) fn file(&self) -> &FileBytes {
        &self.file
    }

    /// Bytes without the tree.
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }

    pub(crate) fn form(&self) -> Form {
        if self.tree.is_some() { Form::Tree } else { Form::Whole }
    }

    /// For reading it in pieces, if that is possible.
    pub(crate) fn tree(&self) -> Option<&TreeReader> {
        self.tree.as_ref()
    }

    fn damaged(&self) -> Fault {
        Fault::Damaged(self.range.clone())
    }

    fn failed(&self, error: io::Error) -> Fault {
        Fault::at(error, self.range.clone())
    }

    /// All words of the section, if it is what was written.
    pub(crate) fn all_words(&self) -> Result<WordArray, Fault> {
        if !self.len().is_multiple_of(WORD_BYTES) {
            return Err(self.damaged());
        }
        let (words, checksum) = match self.form() {
            Form::Whole => {
                let mut hasher = Xxh3::new();
                let words = self.read_words(|piece| hasher.update(piece))?;
                (words, hasher.digest())
            }
            Form::Tree => {
                let mut builder = TreeBuilder::default();
                let words = self.read_words(|piece| builder.update(piece))?;
                (words, builder.finish().1)
            }
        };
        if checksum == self.checksum { Ok(words) } else { Err(self.damaged()) }
    }

    /// Whether the stored tree is the one that was written. (Its root is that of the section.)
    pub(crate) fn verify_tree(&self) -> Result<(), Fault> {
        self.tree().map_or(Ok(()), TreeReader::verify_checksums)
    }

    /// The words; `hash` sees the bytes that are returned, whatever happens to the file.
    fn read_words(&self, mut hash: impl FnMut(&[u8])) -> Result<WordArray, Fault> {
        let out_of_memory = || Fault::Io(io::Error::from(ErrorKind::OutOfMemory));
        let len = usize::try_from(self.len() / WORD_BYTES).map_err(|_| out_of_memory())?;
        self.prefetch()?;
        let mut words = WordArray::zeroed(len).map_err(|_| out_of_memory())?;
        let mut at = self.range.start;
        // Hashed while it is still in the cache.
        for piece in bytemuck::cast_slice_mut(&mut words[..]).chunks_mut(PIECE_BYTES) {
            self.file.read_into(piece, at).map_err(|error| self.failed(error))?;
            hash(piece);
            at += piece.len() as u64;
        }
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
        Ok(words)
    }

    /// Requests all of it, if it is not too long to be kept.
    fn prefetch(&self) -> Result<(), Fault> {
        const MOST: u64 = 16 << 20;
        if self.len() > MOST {
            return Ok(());
        }
        self.file.prefetch(std::slice::from_ref(&self.range)).map_err(|error| self.failed(error))
    }

    /// Requests this many bytes from its start, and the checksums of all of it if they are no more than that, if it is an object.
    pub(crate) fn prefetch_start(&self, bytes: u64) -> Result<(), Fault> {
        let Some(tree) = self.tree().filter(|_| self.is_far()) else { return Ok(()) };
        let start = self.range.start..self.range.end.min(self.range.start + bytes);
        let above = tree.checksums();
        let above = if above.end - above.start <= bytes { above } else { 0..0 };
        self.file.prefetch(&[start, above]).map_err(|error| self.failed(error))
    }

    /// Whether it is so far away that all of it, if it is not long, costs no more than a piece.
    pub(crate) fn is_far(&self) -> bool {
        self.file.is_object()
    }

    /// The section as bytes, if it is what was written. Of sections without a tree.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Fault> {
        let bytes = self.file.read(self.range.clone()).map_err(|error| self.failed(error))?;
        if xxh3_64(&bytes) == self.checksum { Ok(bytes) } else { Err(self.damaged()) }
    }

    /// The section as it is, damaged or not, with its tree if it has one.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        self.file.pieces(self.stored_range())
    }

    /// An error of [`pieces`](Self::pieces).
    pub(crate) fn piece_error(&self, error: io::Error, part: FilePart) -> Error {
        self.error(self.failed(error), part)
    }

    /// The fault as an error that names the file and the part.
    pub(crate) fn error(&self, fault: Fault, part: FilePart) -> Error {
        let path = self.file.location().clone();
        match fault {
            Fault::Damaged(range) => {
                Error::Damaged { path, part, offset: range.start, len: range.end - range.start }
            }
            Fault::Io(error) => {
                let error = io::Error::new(error.kind(), format!("{part}: {error}"));
                Error::Io { path, error }
            }
        }
    }
}

impl ReadWords for Section {
    type Error = Fault;

    fn words(&self, range: Range<usize>) -> Result<Vec<u64>, Fault> {
        let tree = self.tree().expect("only sections with a tree are read in pieces");
        let bytes = tree.read(range.start as u64 * WORD_BYTES..range.end as u64 * WORD_BYTES)?;
        let words = bytes.chunks_exact(size_of::<u64>());
        Ok(words.map(|word| u64::from_le_bytes(std::array::from_fn(|i| word[i]))).collect())
    }

    fn prepare(&self, ranges: &[Range<usize>]) -> Result<(), Fault> {
        let Some(tree) = self.tree().filter(|_| self.is_far()) else { return Ok(()) };
        let bytes =
            |range: &Range<usize>| range.start as u64 * WORD_BYTES..range.end as u64 * WORD_BYTES;
        tree.prefetch(ranges.iter().map(bytes))
    }

    fn invalid(&self) -> Fault {
        self.damaged()
    }
}
