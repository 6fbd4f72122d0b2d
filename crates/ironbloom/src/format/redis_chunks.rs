//! A filter on its way to or from a Redis server: the pairs of iterator and bytes that SCANDUMP returns and LOADCHUNK
//! takes.
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
//! A scan ends with iterator 0. The server keeps nothing between two calls, so a filter that changes during the scan
//! arrives in pieces of different ages, and keys could be missing from the copy. This is detected: our announcement has
//! a checksum, and RedisBloom's header has the number of keys.

use std::io::{self, Write};

use xxhash_rust::xxh3::Xxh3Default;

use crate::Persist;

/// The first bytes of an announcement. RedisBloom's header begins with its number of keys, which is never this large.
pub const MAGIC: [u8; 8] = *b"IBLOOM01";
/// The iterator of the first chunk.
pub const FIRST: i64 = 1;
/// Bytes of a file sent at once: few enough to stay in the cache, and not to hold up a server.
pub const CHUNK_BYTES: usize = 1 << 20;

/// The announcement that precedes the bytes of a `.ibf` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Its length.
    pub bytes: u64,
    /// Its XXH3-64, seed 0.
    pub checksum: u64,
}

/// The content of a filter's first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkHeader {
    /// RedisBloom's layout follows.
    RedisBloom,
    /// A `.ibf` file follows.
    File(Announcement),
    /// Possibly several files follow: a cuckoo filter that grows by adding filters.
    Files(Announcement),
}

impl ChunkHeader {
    /// Reads a first chunk.
    pub fn parse(chunk: &[u8]) -> Self {
        let Some(numbers) = chunk.strip_prefix(&MAGIC) else { return Self::RedisBloom };
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
    /// Encodes the first chunk of the filter.
    pub fn encode(self) -> [u8; 24] {
        let mut header = [0; 24];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&self.bytes.to_le_bytes());
        header[16..].copy_from_slice(&self.checksum.to_le_bytes());
        header
    }
}

/// Passes the chunks of a filter to `take`, one after the other, until it fails.
pub fn for_each_chunk<E>(
    filter: &impl Persist,
    mut take: impl FnMut(i64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    // The bytes are produced twice: the checksum comes first, and keeping a large filter's bytes would take as much
    // memory again.
    let mut sum = ChunkSum::default();
    filter.write_to(&mut sum).expect("summing cannot fail");
    take(FIRST, &sum.announcement().encode())?;
    let mut chunks = Chunks { buffer: Vec::new(), sent: 0, take, failure: None };
    let written = filter.write_to(&mut chunks).and_then(|()| chunks.send());
    match chunks.failure {
        Some(failure) => Err(failure),
        None => {
            written.expect("only the receiver can fail");
            Ok(())
        }
    }
}

/// Length and checksum of a `.ibf` file, computed from its chunks.
#[derive(Default)]
pub struct ChunkSum {
    bytes: u64,
    sum: Xxh3Default,
}

impl ChunkSum {
    /// Adds the next chunk.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }

    /// The announcement that these chunks require.
    pub fn announcement(&self) -> Announcement {
        Announcement { bytes: self.bytes, checksum: self.sum.digest() }
    }
}

impl std::fmt::Debug for ChunkSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkSum({:?})", self.announcement())
    }
}

impl Write for ChunkSum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Cuts its input into chunks.
struct Chunks<F, E> {
    buffer: Vec<u8>,
    sent: i64,
    take: F,
    /// The reason why a chunk was not taken: a writer can only report that something failed.
    failure: Option<E>,
}

impl<E, F: FnMut(i64, &[u8]) -> Result<(), E>> Chunks<F, E> {
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

impl<E, F: FnMut(i64, &[u8]) -> Result<(), E>> Write for Chunks<F, E> {
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
    use crate::BlockedBloom;
    use std::convert::Infallible;

    #[test]
    fn the_chunks_of_a_filter_are_its_file() {
        let mut filter = BlockedBloom::with_rate(10_000_000, 0.001).unwrap();
        filter.insert_keys(&["alice", "bob"]);
        let (mut chunks, mut image) = (Vec::new(), Vec::new());
        for_each_chunk(&filter, |iterator, bytes| {
            if iterator > FIRST {
                image.extend_from_slice(bytes);
                assert_eq!(iterator, FIRST + image.len() as i64);
            }
            chunks.push((iterator, bytes.to_vec()));
            Ok::<(), Infallible>(())
        })
        .unwrap();
        assert_eq!(image, filter.to_bytes());
        assert_eq!(chunks.len(), 1 + image.len().div_ceil(CHUNK_BYTES));
        assert_eq!(chunks[1].1.len(), CHUNK_BYTES);
        let checksum = xxhash_rust::xxh3::xxh3_64(&image);
        let announced = Announcement { bytes: image.len() as u64, checksum };
        let header = ChunkHeader::parse(&chunks[0].1);
        assert_eq!((chunks[0].0, header), (FIRST, ChunkHeader::File(announced)));
        assert_eq!(chunks[0].1[..8], *b"IBLOOM01");
    }

    #[test]
    fn headers_are_told_apart() {
        let header = |numbers: &[u64]| {
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
            ChunkHeader::parse(&MAGIC.into_iter().chain(numbers).collect::<Vec<u8>>())
        };
        let announced = Announcement { bytes: 1, checksum: 2 };
        assert_eq!(header(&[1, 2]), ChunkHeader::File(announced));
        assert_eq!(header(&[1, 2, 0, 7]), ChunkHeader::File(announced));
        assert_eq!(header(&[1, 2, 1, 0]), ChunkHeader::Files(announced));
        assert_eq!(header(&[1]), ChunkHeader::RedisBloom);
        assert_eq!(ChunkHeader::parse(&[0; 24]), ChunkHeader::RedisBloom);
        assert_eq!(ChunkHeader::parse(&[1; 73]), ChunkHeader::RedisBloom);
    }

    #[test]
    fn an_error_of_the_receiver_is_the_one_that_is_reported() {
        let filter = BlockedBloom::with_rate(1000, 0.01).unwrap();
        for refused in [FIRST, FIRST + filter.to_bytes().len() as i64] {
            let result = for_each_chunk(&filter, |iterator, _| match iterator {
                it if it == refused => Err("no room"),
                _ => Ok(()),
            });
            assert_eq!(result, Err("no room"));
        }
    }
}
