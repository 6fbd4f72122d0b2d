//! A section of an index file: bytes that are read on demand, and verified each time.

use std::io::{self, ErrorKind};
use std::ops::Range;

use ironbloom::memory::WordArray;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, FilePart};
use crate::file_bytes::{FileBytes, PIECE_BYTES, Pieces};

/// The location and the checksum of a section.
#[derive(Debug)]
pub(crate) struct Section {
    file: FileBytes,
    range: Range<u64>,
    checksum: u64,
}

/// Why a section cannot be used.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Not the bytes that were written, or none at all.
    Damaged,
    /// The system could not read them.
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Truncated since the file was opened.
            ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}

impl Section {
    pub(crate) fn new(file: FileBytes, range: Range<u64>, checksum: u64) -> Self {
        Self { file, range, checksum }
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The section as words, if it is what was written.
    pub(crate) fn words(&self) -> Result<WordArray, Fault> {
        if !self.len().is_multiple_of(size_of::<u64>() as u64) {
            return Err(Fault::Damaged);
        }
        let (words, checksum) = self.read_words()?;
        if checksum == self.checksum { Ok(words) } else { Err(Fault::Damaged) }
    }

    /// The words, and their XXH3-64. The hash is that of the bytes that are returned, whatever happens to the file.
    fn read_words(&self) -> io::Result<(WordArray, u64)> {
        let out_of_memory = || io::Error::from(ErrorKind::OutOfMemory);
        let len = usize::try_from(self.len() / size_of::<u64>() as u64);
        let len = len.map_err(|_| out_of_memory())?;
        let mut words = WordArray::zeroed(len).map_err(|_| out_of_memory())?;
        let mut hasher = Xxh3::new();
        let mut at = self.range.start;
        // Hashed while it is still in the cache.
        for piece in bytemuck::cast_slice_mut(&mut words[..]).chunks_mut(PIECE_BYTES) {
            self.file.read_into(piece, at)?;
            hasher.update(piece);
            at += piece.len() as u64;
        }
        if cfg!(target_endian = "big") {
            words.iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
        Ok((words, hasher.digest()))
    }

    /// The section as bytes, if it is what was written.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Fault> {
        let bytes = self.file.read(self.range.clone())?;
        if xxh3_64(&bytes) == self.checksum { Ok(bytes) } else { Err(Fault::Damaged) }
    }

    /// The section as it is, damaged or not.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        self.file.pieces(self.range.clone())
    }

    /// The fault as an error that names the file and the part.
    pub(crate) fn error(&self, fault: Fault, part: FilePart) -> Error {
        let path = self.file.path().to_owned();
        match fault {
            Fault::Damaged => {
                Error::Damaged { path, part, offset: self.range.start, len: self.len() }
            }
            Fault::Io(error) => {
                let error = io::Error::new(error.kind(), format!("{part}: {error}"));
                Error::Io { path, error }
            }
        }
    }
}
