//! Memory-mapped files, whose pages are the filter.

#![expect(
    unsafe_code,
    reason = "maps of files that others could change: the caller promises that nobody does"
)]

use std::fs::File;
use std::io;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::header::{CHUNK_BYTES, HEADER_BYTES, Header};
use super::read::{read_start, table_damage};
use super::{Parts, Persist, ReadError};
use crate::error::{DecodeError, FileError};
use crate::kernel::{Mapping, Words};

/// A mapped file whose header and length are valid.
pub(super) struct Mapped {
    file: File,
    map: Mapping,
    header: Header,
    header_checksum: u64,
}

impl Mapped {
    /// # Safety
    ///
    /// Same as [`Persist::map`].
    unsafe fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        if metadata.len() == 0 {
            return Err(DecodeError::NotAFilter.into());
        }
        // SAFETY: guaranteed by the caller.
        let map = unsafe { Mapping::open(&file)? };
        let found = map.bytes().len() as u64;
        let start = read_start(&mut map.bytes(), Some(found))?;
        Ok(Self { file, map, header: start.header, header_checksum: start.checksum })
    }

    /// End of the payload and start of the table. The length of the map has been checked.
    fn payload_end(&self) -> usize {
        HEADER_BYTES + self.header.payload_bytes as usize
    }

    /// Returns an error if a checksum does not match.
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        let (payload, table) =
            self.map.bytes()[HEADER_BYTES..].split_at(self.payload_end() - HEADER_BYTES);
        let mut checksums = Vec::new();
        for (i, chunk) in payload.chunks(CHUNK_BYTES).enumerate() {
            checksums.extend_from_slice(&xxh3_64_with_seed(chunk, i as u64).to_le_bytes());
        }
        let damaged = table_damage(&self.header, self.header_checksum, &checksums, table);
        damaged.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Maps a file.
///
/// # Safety
///
/// Same as [`Persist::map`].
pub(super) unsafe fn map_checked<T: Persist>(
    path: &Path,
    check: impl Fn(&Mapped) -> Result<(), DecodeError>,
) -> Result<T, FileError> {
    let words = |mapped: &Mapped| {
        check(mapped)?;
        Ok(Words::mapped(&mapped.map, HEADER_BYTES, mapped.payload_end()))
    };
    // SAFETY: guaranteed by the caller.
    unsafe { map_words(path, words) }
}

/// Maps a file copy-on-write: a page becomes the filter's own when it is written.
///
/// # Safety
///
/// Same as [`Persist::map`].
pub(super) unsafe fn map_private<T: Persist>(path: &Path) -> Result<T, FileError> {
    let words = |mapped: &Mapped| {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { Words::private(&mapped.file, HEADER_BYTES, mapped.payload_end())? })
    };
    // SAFETY: guaranteed by the caller.
    unsafe { map_words(path, words) }
}

/// # Safety
///
/// Same as [`Persist::map`].
unsafe fn map_words<T: Persist>(
    path: &Path,
    words: impl Fn(&Mapped) -> Result<Option<Words>, ReadError>,
) -> Result<T, FileError> {
    if cfg!(target_endian = "big") {
        return T::load(path); // the file is little-endian, so its pages cannot be the filter
    }
    let parts = || -> Result<Parts, ReadError> {
        // SAFETY: guaranteed by the caller.
        let mapped = unsafe { Mapped::open(path)? };
        let words = words(&mapped)?.expect("maps are page-aligned and the header is whole lines");
        Ok(Parts { header: mapped.header, words })
    };
    parts().and_then(|parts| Ok(T::decode(parts)?)).map_err(|error| error.at(path))
}
