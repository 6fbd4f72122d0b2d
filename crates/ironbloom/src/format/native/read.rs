//! Reading: every length is checked against the bytes present, every chunk against its checksum.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::header::{CHUNK_BYTES, HEADER_BYTES, Header, file_bytes, read_header};
use super::{Parts, ReadError};
use crate::error::{DecodeError, FileError, ParamError};
use crate::kernel::WordsBuilder;

/// Opens a file; returns its length too, unless it is a pipe or the like.
pub(super) fn open(path: &Path) -> Result<(File, Option<u64>), FileError> {
    let file = File::open(path).map_err(|error| FileError::Io { path: path.to_owned(), error })?;
    let available = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
    Ok((file, available))
}

/// Fills as much of `buffer` as the input allows.
pub(super) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Reads and verifies a whole filter. `available` is the length of the input if it is known; otherwise memory is
/// allocated only as bytes arrive, so that a header alone can never trigger a large allocation.
pub(super) fn read_parts(mut input: impl Read, available: Option<u64>) -> Result<Parts, ReadError> {
    let start = read_start(&mut input, available)?;
    let mut words = WordsBuilder::new(available.map_or(0, |_| start.header.payload_bytes))
        .map_err(DecodeError::from)?;
    let damaged = start.read_rest(input, |chunk| words.push(chunk))?;
    match damaged.into_iter().next() {
        Some(damage) => Err(damage.into()),
        None => Ok(Parts { header: start.header, words: words.finish() }),
    }
}

/// Reads a whole filter without keeping it, and returns every damaged part.
pub(super) fn read_damage(
    mut input: impl Read,
    available: Option<u64>,
) -> Result<(Header, Vec<DecodeError>), ReadError> {
    let start = read_start(&mut input, available)?;
    let damaged = start.read_rest(input, |_| Ok(()))?;
    Ok((start.header, damaged))
}

/// The start of a file, whose length (if known) matches its header.
pub(super) struct Start {
    pub(super) header: Header,
    pub(super) checksum: u64,
    file_bytes: u64,
}

pub(super) fn read_start(
    input: &mut impl Read,
    available: Option<u64>,
) -> Result<Start, ReadError> {
    let (header, checksum) = read_header(input)?;
    let file_bytes = file_bytes(header.payload_bytes).expect("checked with the header");
    match available {
        Some(found) if found != file_bytes => {
            Err(DecodeError::Length { expected: file_bytes, found }.into())
        }
        _ => Ok(Start { header, checksum, file_bytes }),
    }
}

impl Start {
    /// Reads the payload, chunk by chunk, and the checksums after it. Returns every damaged part.
    fn read_rest(
        &self,
        mut input: impl Read,
        mut take: impl FnMut(&[u8]) -> Result<(), ParamError>,
    ) -> Result<Vec<DecodeError>, ReadError> {
        let cut_short = |found| DecodeError::Length { expected: self.file_bytes, found };
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut checksums = Vec::new();
        let mut offset = HEADER_BYTES as u64;
        let end = offset + self.header.payload_bytes;
        while offset < end {
            let want = (end - offset).min(CHUNK_BYTES as u64) as usize;
            let got = read_up_to(&mut input, &mut buffer[..want])?;
            if got < want {
                return Err(cut_short(offset + got as u64).into());
            }
            let checksum = xxh3_64_with_seed(&buffer[..want], checksums.len() as u64 / 8);
            checksums.extend_from_slice(&checksum.to_le_bytes());
            take(&buffer[..want]).map_err(DecodeError::from)?;
            offset += want as u64;
        }
        let mut table = vec![0; checksums.len() + 8 + 1];
        let got = read_up_to(&mut input, &mut table)?;
        if got != checksums.len() + 8 {
            return Err(cut_short(offset + got as u64).into());
        }
        table.truncate(got);
        Ok(table_damage(&self.header, self.checksum, &checksums, &table))
    }
}

/// Compares the stored table with the actual checksums of the chunks.
pub(super) fn table_damage(
    header: &Header,
    header_checksum: u64,
    actual: &[u8],
    stored: &[u8],
) -> Vec<DecodeError> {
    let payload_bytes = header.payload_bytes;
    let (stored, seal) = stored.split_at(actual.len());
    let sealed = xxh3_64_with_seed(stored, header_checksum).to_le_bytes() == seal;
    let table = (!sealed).then(|| DecodeError::Damaged {
        part: "checksum table",
        offset: HEADER_BYTES as u64 + payload_bytes,
        len: actual.len() as u64 + 8,
    });
    let chunks = actual
        .chunks_exact(8)
        .zip(stored.chunks_exact(8))
        .enumerate()
        .filter(|(_, (actual, stored))| actual != stored)
        .map(|(i, _)| {
            let start = i as u64 * CHUNK_BYTES as u64;
            let len = (payload_bytes - start).min(CHUNK_BYTES as u64);
            DecodeError::Damaged { part: "payload", offset: HEADER_BYTES as u64 + start, len }
        });
    table.into_iter().chain(chunks).collect()
}
