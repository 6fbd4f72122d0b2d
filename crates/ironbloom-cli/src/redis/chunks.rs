//! A filter as it goes over the wire: the pairs of iterator and bytes that SCANDUMP gives and LOADCHUNK takes.
//!
//! ```text
//! RedisBloom's layout    1, header        then  1 + end, bytes      for each piece of its bit arrays
//! ours                   1, announcement  then  1 + end, bytes      for each piece of the .ibf file
//!
//! announcement           8  "IBLOOM01"
//!                        8  bytes of the file
//!                        8  XXH3-64 of them, seed 0
//!                        of a cuckoo filter on a server also: 8 whether it grows, 8 keys removed
//! ```
//!
//! A scan ends with iterator 0. The server keeps nothing between two calls, so a filter that is changed meanwhile comes in
//! pieces of different ages, and keys could be missing from the copy. That shows: our announcement has a checksum, and
//! RedisBloom's header has the number of keys, so it is fetched a second time at the end.

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use ironbloom::Persist as _;
use ironbloom::any::AnyFilter;
use xxhash_rust::xxh3::Xxh3Default;

use super::server::{Family, Server};

/// The first bytes of an announcement.
const MAGIC: &[u8; 8] = b"IBLOOM01";
/// The iterator of the first chunk.
pub(super) const FIRST: i64 = 1;
/// Bytes of a file that are sent at once: few enough to stay in the cache on their way, and that others wait for a server.
const CHUNK_BYTES: usize = 1 << 20;

/// What is said of a `.ibf` file before its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    bytes: u64,
    checksum: u64,
}

/// What the first chunk of a filter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    RedisBloom,
    /// What follows is a `.ibf` file.
    File(Announcement),
    /// What follows may be several of them: a cuckoo filter that grows by parts.
    Files(Announcement),
}

impl Header {
    pub(super) fn parse(chunk: &[u8]) -> Self {
        let Some(numbers) = chunk.strip_prefix(MAGIC) else { return Self::RedisBloom };
        let number = |i: usize| Some(u64::from_le_bytes(*numbers.get(8 * i..)?.first_chunk()?));
        match (number(0), number(1), number(2)) {
            (Some(bytes), Some(checksum), None | Some(0)) => {
                Self::File(Announcement { bytes, checksum })
            }
            (Some(bytes), Some(checksum), Some(_)) => Self::Files(Announcement { bytes, checksum }),
            _ => Self::RedisBloom,
        }
    }
}

impl Announcement {
    fn encode(self) -> [u8; 24] {
        let mut header = [0; 24];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        header[16..].copy_from_slice(&self.checksum.to_le_bytes());
        header
    }
}

/// Walks through the chunks of a filter on a server.
pub(super) struct Scan<'a> {
    family: Family,
    key: &'a str,
    iterator: i64,
}

impl<'a> Scan<'a> {
    pub(super) fn new(family: Family, key: &'a str) -> Self {
        Self { family, key, iterator: 0 }
    }

    /// The next chunk with its iterator, or `None` at the end.
    pub(super) fn next(&mut self, server: &mut Server) -> Result<Option<(i64, Vec<u8>)>> {
        let mut command = self.family.command("SCANDUMP", self.key);
        let (iterator, bytes): (i64, Option<Vec<u8>>) = server.ask(command.arg(self.iterator))?;
        if iterator == 0 {
            return Ok(None);
        }
        if iterator <= self.iterator {
            // It would go on for ever.
            let before = self.iterator;
            return Err(anyhow!("{}: chunk {iterator} came behind chunk {before}", self.key));
        }
        self.iterator = iterator;
        Ok(Some((iterator, bytes.unwrap_or_default())))
    }
}

/// Gives the chunks of a filter, one after the other.
pub(super) fn of_filter(
    filter: &AnyFilter,
    mut take: impl FnMut(i64, &[u8]) -> Result<()>,
) -> Result<()> {
    // The bytes are made twice: the checksum comes first, and a second copy of a big filter would need its memory.
    let mut summed = Summed::default();
    filter.write_to(&mut summed)?;
    take(FIRST, &summed.announcement().encode())?;
    let mut pieces = Pieces { buffer: Vec::new(), sent: 0, take, failure: None };
    let written = filter.write_to(&mut pieces).and_then(|()| pieces.send());
    match pieces.failure {
        Some(failure) => Err(failure),
        None => Ok(written?),
    }
}

/// Counts bytes and sums them up.
#[derive(Default)]
pub(super) struct Summed {
    bytes: u64,
    sum: Xxh3Default,
}

impl Summed {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }

    pub(super) fn announcement(&self) -> Announcement {
        Announcement { bytes: self.bytes, checksum: self.sum.digest() }
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts what is written into chunks.
struct Pieces<F> {
    buffer: Vec<u8>,
    sent: i64,
    take: F,
    /// Why a chunk was not taken. A writer can only say that something failed.
    failure: Option<anyhow::Error>,
}

impl<F: FnMut(i64, &[u8]) -> Result<()>> Pieces<F> {
    fn send(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.sent += self.buffer.len() as i64;
        if let Err(error) = (self.take)(FIRST + self.sent, &self.buffer) {
            self.failure = Some(error);
            return Err(io::Error::other("not taken"));
        }
        self.buffer.clear();
        Ok(())
    }
}

impl<F: FnMut(i64, &[u8]) -> Result<()>> Write for Pieces<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(CHUNK_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..fits]);
        if self.buffer.len() == CHUNK_BYTES {
            self.send()?;
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironbloom::BlockedBloom;

    #[test]
    fn the_chunks_of_a_filter_are_its_file() {
        let mut filter = BlockedBloom::with_rate(10_000_000, 0.001).unwrap();
        filter.insert_keys(&["alice", "bob"]);
        let filter = AnyFilter::Blocked(filter);
        let (mut chunks, mut image) = (Vec::new(), Vec::new());
        of_filter(&filter, |iterator, bytes| {
            if iterator > FIRST {
                image.extend_from_slice(bytes);
                assert_eq!(iterator, FIRST + image.len() as i64);
            }
            chunks.push((iterator, bytes.to_vec()));
            Ok(())
        })
        .unwrap();
        assert_eq!(image, filter.to_bytes());
        assert_eq!(chunks.len(), 1 + image.len().div_ceil(CHUNK_BYTES));
        assert_eq!(chunks[1].1.len(), CHUNK_BYTES);
        let checksum = xxhash_rust::xxh3::xxh3_64(&image);
        let announced = Announcement { bytes: image.len() as u64, checksum };
        assert_eq!((chunks[0].0, Header::parse(&chunks[0].1)), (FIRST, Header::File(announced)));
        assert_eq!(chunks[0].1[..8], *b"IBLOOM01");
    }

    #[test]
    fn headers_are_told_apart() {
        let header = |numbers: &[u64]| {
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
            Header::parse(&MAGIC.iter().copied().chain(numbers).collect::<Vec<u8>>())
        };
        let announced = Announcement { bytes: 1, checksum: 2 };
        assert_eq!(header(&[1, 2]), Header::File(announced));
        assert_eq!(header(&[1, 2, 0, 7]), Header::File(announced));
        assert_eq!(header(&[1, 2, 1, 0]), Header::Files(announced));
        assert_eq!(header(&[1]), Header::RedisBloom);
        assert_eq!(Header::parse(&[0; 24]), Header::RedisBloom);
        assert_eq!(Header::parse(&[1; 73]), Header::RedisBloom);
    }

    #[test]
    fn an_error_of_the_receiver_is_the_one_that_is_reported() {
        let filter = AnyFilter::Blocked(BlockedBloom::with_rate(1000, 0.01).unwrap());
        for refused in [FIRST, FIRST + filter.to_bytes().len() as i64] {
            let result = of_filter(&filter, |iterator, _| match iterator {
                it if it == refused => Err(anyhow!("no room")),
                _ => Ok(()),
            });
            assert_eq!(result.unwrap_err().to_string(), "no room");
        }
    }
}
