//! A file for the `parquet` crate: some bytes are held in memory, the others are in the file.
//!
//! What is held was read once and verified; the crate must not read it again, since someone may have changed the file
//! in between.

use std::io::{self, BufReader, ErrorKind, Read};
use std::ops::Range;

use bytes::{Buf as _, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::file_bytes::FileBytes;

/// Bytes in memory, and perhaps the file that they are from.
#[derive(Clone)]
pub(super) struct HeldBytes {
    start: u64,
    held: Bytes,
    /// Where the other bytes are; `None` if they must not be read.
    file: Option<FileBytes>,
    file_len: u64,
}

impl HeldBytes {
    /// The whole file, of which the bytes from `start` on are in memory.
    pub(super) fn of_file(file: FileBytes, start: u64, held: Bytes) -> Self {
        let file_len = file.len();
        Self { start, held, file: Some(file), file_len }
    }

    /// These bytes from `start` on, and no others.
    pub(super) fn alone(start: u64, held: Bytes) -> Self {
        let file_len = start + held.len() as u64;
        Self { start, held, file: None, file_len }
    }

    /// These bytes, if they are all held.
    fn held(&self, start: u64, length: u64) -> Option<Bytes> {
        let from = start.checked_sub(self.start)?;
        let to = from.checked_add(length)?;
        (to <= self.held.len() as u64).then(|| self.held.slice(from as usize..to as usize))
    }

    /// These bytes, from memory if they are held.
    pub(super) fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        match (self.held(range.start, range.end - range.start), &self.file) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(file)) => file.read(range).map(Bytes::from),
            (None, None) => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn file(&self, start: u64) -> Result<&FileBytes> {
        let file = self.file.as_ref().filter(|_| start <= self.file_len);
        file.ok_or_else(|| ParquetError::EOF(format!("no byte {start} where it was looked for")))
    }
}

impl Length for HeldBytes {
    fn len(&self) -> u64 {
        self.file_len
    }
}

impl ChunkReader for HeldBytes {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let held_end = self.start + self.held.len() as u64;
        if let Some(bytes) = self.held(start, held_end.saturating_sub(start)) {
            return Ok(Box::new(bytes.reader()));
        }
        Ok(Box::new(BufReader::new(self.file(start)?.reader(start))))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if let Some(bytes) = self.held(start, length as u64) {
            return Ok(bytes);
        }
        let end = start.saturating_add(length as u64);
        if end > self.file_len {
            let what = format!("bytes {start}..{end} of a file of {} bytes", self.file_len);
            return Err(ParquetError::EOF(what));
        }
        self.file(start)?.read(start..end).map(Bytes::from).map_err(failed)
    }
}

/// A failed read as an error of the `parquet` crate. Truncation must be recognisable from the text, because errors
/// become text on the way.
pub(super) fn failed(error: io::Error) -> ParquetError {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::StaleNetworkFileHandle => {
            ParquetError::EOF(error.to_string())
        }
        _ => ParquetError::External(Box::new(error)),
    }
}
