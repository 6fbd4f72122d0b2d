//! The bytes of a filter in a checkpoint.

use std::fmt;
use std::io::{self, Write};

use ironbloom::{DecodeError, HashFn, Kind, ParamError, Persist};
use xxhash_rust::xxh3::xxh3_64;

use crate::options::FilterSpec;

/// A filter as read from a checkpoint.
pub(crate) struct Image<'a> {
    /// Each the bytes of a `.ibf` file.
    pub(crate) parts: Vec<&'a [u8]>,
    /// One more number, whose meaning depends on the kind.
    pub(crate) note: u64,
}

/// Takes the parts of a filter for a checkpoint one by one.
pub(crate) struct ImageWriter<'w> {
    out: &'w mut dyn Write,
    lengths: Vec<u64>,
    written: u64,
}

impl<'w> ImageWriter<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self { out, lengths: Vec::new(), written: 0 }
    }

    pub(super) fn filter(&mut self, filter: &impl Persist) -> io::Result<()> {
        filter.write_to(&mut *self)?;
        self.end_part();
        Ok(())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)?;
        self.end_part();
        Ok(())
    }

    fn end_part(&mut self) {
        self.lengths.push(std::mem::take(&mut self.written));
    }

    /// The bytes of each part.
    pub(crate) fn finish(self) -> io::Result<Vec<u64>> {
        self.out.flush()?;
        Ok(self.lengths)
    }
}

impl Write for ImageWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Why an image is not the requested filter.
#[derive(Debug)]
pub(crate) enum ImageError {
    /// Its keys were hashed differently.
    OtherHash,
    /// Another number of parts than the kind has.
    PartCount(usize),
    /// A part is not a filter.
    Part { number: usize, error: DecodeError },
    /// A part is a filter of a kind that no part has.
    PartKind { number: usize, found: Kind },
    /// The part that is not a filter fails its checksum or has the wrong length.
    Counts,
    /// The filter to put the parts into cannot be made.
    Params(ParamError),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherHash => write!(f, "its keys were hashed by another function"),
            Self::PartCount(found) => write!(f, "invalid number of parts: {found}"),
            Self::Part { number, error } => write!(f, "part {number}: {error}"),
            Self::PartKind { number, found } => {
                write!(f, "part {number}: unexpected filter of kind {found}")
            }
            Self::Counts => write!(f, "the counts are damaged"),
            Self::Params(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImageError {}

pub(super) fn check_hash(spec: &FilterSpec, found: HashFn) -> Result<(), ImageError> {
    if found == spec.hash_fn { Ok(()) } else { Err(ImageError::OtherHash) }
}

/// The part of an image that is not a filter: words, sealed by a checksum.
pub(super) fn sealed(mut words: Vec<u64>) -> Vec<u8> {
    let bytes =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    words.push(xxh3_64(&bytes(&words)));
    bytes(&words)
}

/// The words of such a part, of which there are `count`.
pub(super) fn unsealed(bytes: &[u8], count: u64) -> Result<Vec<u64>, ImageError> {
    let whole = bytes.split_last_chunk::<8>().filter(|(body, seal)| {
        body.len() as u64 == count.saturating_mul(8) && xxh3_64(body).to_le_bytes() == **seal
    });
    let (body, _) = whole.ok_or(ImageError::Counts)?;
    let (words, _) = body.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
