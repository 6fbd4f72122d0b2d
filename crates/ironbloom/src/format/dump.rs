//! A dump: the chunks of one or several filters as a Redis server returned them, in a file (`.ibd`). This header is its
//! specification.
//!
//! ```text
//!  0  8  magic 89 49 42 44 0d 0a 1a 0a
//!  8  4  version, 1
//! 12  4  shards: 0 for one filter under its own key, otherwise the number of filters that follow
//! 16  8  XXH3-64 of bytes 0..16
//!
//! then the chunks of each filter, and after them one without bytes whose iterator is 0:
//!
//!  0  8  family: 1 BF, 2 CF
//!  8  8  iterator
//! 16  8  length
//! 24  8  XXH3-64 of bytes 0..24 and of the bytes that follow, seeded with the number of the chunk in the file, from 0
//! 32  …  bytes
//! ```
//!
//! Numbers are little-endian. A file that ends early, has bytes after its end, or chunks in another order is refused. A
//! single filter in one of our own layouts needs no dump: its file is the `.ibf` file.
//! [`redis_chunks`](super::redis_chunks) describes the chunks' contents.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The first bytes of a dump.
pub const MAGIC: [u8; 8] = *b"\x89IBD\r\n\x1a\n";
/// Maximum number of shards: more than the servers of any cluster are useless.
pub const MAX_SHARDS: u32 = 1000;

const VERSION: u32 = 1;
const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 32;
/// Maximum length of a chunk, more than any server returns at once: RedisBloom 16 MiB, a server by default 512 MiB.
const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// The two command families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Bloom filters.
    Bloom,
    /// Cuckoo filters.
    Cuckoo,
}

impl Family {
    /// Prefix of its command names.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Bloom => "BF",
            Self::Cuckoo => "CF",
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Bloom => 1,
            Self::Cuckoo => 2,
        }
    }
}

/// A file that is not a complete dump.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The operating system reported an error.
    Io(io::Error),
    /// The first bytes are not those of a dump.
    NotADump,
    /// The checksum of the header is wrong.
    Header,
    /// Written by a later release.
    Version {
        /// The version of the file.
        found: u32,
    },
    /// More than [`MAX_SHARDS`].
    Shards {
        /// The number in the file.
        found: u32,
    },
    /// The file ends before the dump does.
    CutShort,
    /// There are bytes after the end of the dump.
    Trailing,
    /// The length of a chunk is impossible.
    Length {
        /// Number of the chunk.
        chunk: u64,
        /// Its length.
        found: u64,
    },
    /// The checksum of a chunk is wrong.
    Checksum {
        /// Number of the chunk.
        chunk: u64,
    },
    /// A chunk belongs to neither family.
    Family {
        /// Number of the chunk.
        chunk: u64,
        /// Number of the family.
        found: u64,
    },
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "reading the dump: {error}"),
            Self::NotADump => f.write_str("not a dump"),
            Self::Header => f.write_str("the checksum of the dump's header is wrong"),
            Self::Version { found } => {
                write!(f, "a dump of version {found}; this program knows version {VERSION}")
            }
            Self::Shards { found } => {
                write!(f, "a dump of {found} shards; the maximum is {MAX_SHARDS}")
            }
            Self::CutShort => f.write_str("the dump is cut short"),
            Self::Trailing => f.write_str("bytes after the end of the dump"),
            Self::Length { chunk, found } => {
                write!(f, "chunk {chunk} is damaged: its length is {found}")
            }
            Self::Checksum { chunk } => write!(f, "the checksum of chunk {chunk} is wrong"),
            Self::Family { chunk, found } => write!(f, "chunk {chunk}: no family {found}"),
        }
    }
}

/// No source: the system's error is already in the message, and printing the chain would repeat it.
impl std::error::Error for DumpError {}

impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => Self::CutShort,
            _ => Self::Io(error),
        }
    }
}

/// A chunk and the family of its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpChunk {
    /// The command family of its filter.
    pub family: Family,
    /// The iterator that the server returned with it.
    pub iterator: i64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Writes a dump.
#[derive(Debug)]
pub struct DumpWriter<W> {
    out: W,
    /// Number of the next chunk.
    chunk: u64,
}

impl<W: Write> DumpWriter<W> {
    /// Starts a dump of this many shards, or of one filter under its own key.
    pub fn new(mut out: W, shards: Option<u32>) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&shards.unwrap_or(0).to_le_bytes());
        let sum = xxh3_64(&header[..16]);
        header[16..].copy_from_slice(&sum.to_le_bytes());
        out.write_all(&header)?;
        Ok(Self { out, chunk: 0 })
    }

    /// Writes the next chunk of a filter.
    pub fn chunk(&mut self, family: Family, iterator: i64, bytes: &[u8]) -> io::Result<()> {
        let mut record = [0; RECORD_BYTES];
        record[..8].copy_from_slice(&family.number().to_le_bytes());
        record[8..16].copy_from_slice(&iterator.to_le_bytes());
        record[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let sum = checksum(self.chunk, &record, bytes);
        record[24..].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&record)?;
        self.out.write_all(bytes)?;
        self.chunk += 1;
        Ok(())
    }

    /// Ends a filter; called after its last chunk.
    pub fn end_filter(&mut self, family: Family) -> io::Result<()> {
        self.chunk(family, 0, &[])
    }
}

fn checksum(chunk: u64, record: &[u8; RECORD_BYTES], bytes: &[u8]) -> u64 {
    let mut sum = Xxh3::with_seed(chunk);
    sum.update(&record[..24]);
    sum.update(bytes);
    sum.digest()
}

/// Reads a dump, filter by filter.
#[derive(Debug)]
pub struct DumpReader<R> {
    input: R,
    /// Number of the next chunk.
    chunk: u64,
    shards: Option<u32>,
}

impl<R: Read> DumpReader<R> {
    /// Reads the header.
    pub fn new(mut input: R) -> Result<Self, DumpError> {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header)?;
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if header[..8] != MAGIC {
            return Err(DumpError::NotADump);
        }
        if header[16..] != xxh3_64(&header[..16]).to_le_bytes() {
            return Err(DumpError::Header);
        }
        if number(8) != VERSION {
            return Err(DumpError::Version { found: number(8) });
        }
        let shards = match number(12) {
            0 => None,
            shards @ 1..=MAX_SHARDS => Some(shards),
            found => return Err(DumpError::Shards { found }),
        };
        Ok(Self { input, chunk: 0, shards })
    }

    /// The number of shards, or `None` for one filter under its own key.
    pub fn shards(&self) -> Option<u32> {
        self.shards
    }

    /// Number of filters.
    pub fn filters(&self) -> u32 {
        self.shards.unwrap_or(1)
    }

    /// Returns the next chunk of a filter; `None` after its last.
    pub fn next_chunk(&mut self) -> Result<Option<DumpChunk>, DumpError> {
        let mut record = [0; RECORD_BYTES];
        self.input.read_exact(&mut record)?;
        let [family, iterator, len, sum] = numbers(&record);
        let chunk = self.chunk;
        if len > MAX_CHUNK_BYTES {
            return Err(DumpError::Length { chunk, found: len });
        }
        let mut bytes = Vec::new();
        // Allocates memory as bytes arrive: the length is only a claim.
        self.input.by_ref().take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len {
            return Err(DumpError::CutShort);
        }
        if checksum(chunk, &record, &bytes) != sum {
            return Err(DumpError::Checksum { chunk });
        }
        let family = [Family::Bloom, Family::Cuckoo]
            .into_iter()
            .find(|known| known.number() == family)
            .ok_or(DumpError::Family { chunk, found: family })?;
        self.chunk += 1;
        let iterator = iterator.cast_signed();
        Ok((iterator != 0).then_some(DumpChunk { family, iterator, bytes }))
    }

    /// Ends the dump; called after the last filter. Nothing may follow.
    pub fn finish(mut self) -> Result<(), DumpError> {
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(DumpError::Trailing),
        }
    }
}

fn numbers(record: &[u8; RECORD_BYTES]) -> [u64; 4] {
    let (words, _) = record.as_chunks();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_filters() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = DumpWriter::new(&mut bytes, Some(2)).unwrap();
        writer.chunk(Family::Bloom, 1, b"header").unwrap();
        writer.chunk(Family::Bloom, 4, b"abc").unwrap();
        writer.end_filter(Family::Bloom).unwrap();
        writer.chunk(Family::Bloom, 1, b"second").unwrap();
        writer.end_filter(Family::Bloom).unwrap();
        bytes
    }

    /// Reads all chunks of all filters.
    fn read(bytes: &[u8]) -> Result<Vec<(i64, Vec<u8>)>, DumpError> {
        let mut reader = DumpReader::new(bytes)?;
        let mut chunks = Vec::new();
        for _ in 0..reader.filters() {
            while let Some(chunk) = reader.next_chunk()? {
                chunks.push((chunk.iterator, chunk.bytes));
            }
        }
        reader.finish()?;
        Ok(chunks)
    }

    #[test]
    fn what_is_written_is_read() {
        let chunks = read(&two_filters()).unwrap();
        let texts: Vec<_> = chunks.iter().map(|(it, bytes)| (*it, bytes.as_slice())).collect();
        assert_eq!(texts, [(1, &b"header"[..]), (4, b"abc"), (1, b"second")]);
        assert_eq!(DumpReader::new(&two_filters()[..]).unwrap().shards(), Some(2));
    }

    #[test]
    fn every_byte_matters() {
        let whole = two_filters();
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                assert!(read(&bytes).is_err(), "byte {at}");
            }
        }
    }

    #[test]
    fn a_dump_that_is_too_short_or_too_long_is_refused() {
        let whole = two_filters();
        for len in 0..whole.len() {
            assert!(matches!(read(&whole[..len]), Err(DumpError::CutShort)), "{len} bytes");
        }
        assert!(matches!(read(&[&whole[..], b"x"].concat()), Err(DumpError::Trailing)));
    }

    #[test]
    fn chunks_in_another_order_are_refused() {
        let whole = two_filters();
        let (first, second) = (
            HEADER_BYTES..HEADER_BYTES + RECORD_BYTES + 6,
            HEADER_BYTES + RECORD_BYTES + 6..HEADER_BYTES + 2 * RECORD_BYTES + 9,
        );
        let (header, rest) = (&whole[..HEADER_BYTES], &whole[second.end..]);
        let swapped = [header, &whole[second.clone()], &whole[first], rest].concat();
        assert_eq!(swapped.len(), whole.len());
        assert!(matches!(read(&swapped), Err(DumpError::Checksum { chunk: 0 })));
        let without = [header, &whole[second.end - RECORD_BYTES - 3..]].concat();
        assert!(read(&without).is_err());
    }
}
