//! Bytes of an index file that are read on demand, and verified each time.

use std::io::{self, ErrorKind};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Part};
use crate::file_bytes::{FileBytes, Pieces};
use crate::words::Words;

/// A chunk of an index file: its location and checksum.
#[derive(Debug)]
pub(crate) struct Stored {
    file: FileBytes,
    range: Range<u64>,
    checksum: u64,
}

/// Why a chunk cannot be used.
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

impl Stored {
    pub(crate) fn new(file: FileBytes, range: Range<u64>, checksum: u64) -> Self {
        Self { file, range, checksum }
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The chunk as words, if it is what was written.
    pub(crate) fn words(&self) -> Result<Words, Fault> {
        if !self.len().is_multiple_of(size_of::<u64>() as u64) {
            return Err(Fault::Damaged);
        }
        let (words, checksum) = Words::read(&self.file, self.range.clone())?;
        if checksum == self.checksum { Ok(words) } else { Err(Fault::Damaged) }
    }

    /// The chunk as bytes, if it is what was written.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, Fault> {
        let bytes = self.file.read(self.range.clone())?;
        if xxh3_64(&bytes) == self.checksum { Ok(bytes) } else { Err(Fault::Damaged) }
    }

    /// The chunk as it is, damaged or not.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        self.file.pieces(self.range.clone())
    }

    /// The fault as an error that names the file and the part.
    pub(crate) fn error(&self, fault: Fault, part: Part) -> Error {
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
