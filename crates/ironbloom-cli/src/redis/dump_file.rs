//! A dump: the chunks of one or several filters as a server gave them, in a file. This header is its specification.
//!
//! ```text
//!  0  8  magic 89 49 42 44 0d 0a 1a 0a
//!  8  4  version, 1
//! 12  4  shards: 0 for one filter under its own key, else the number of filters that follow
//! 16  8  XXH3-64 of bytes 0..16
//!
//! then for each filter its chunks, and behind them one without bytes whose iterator is 0:
//!
//!  0  8  family: 1 BF, 2 CF
//!  8  8  iterator
//! 16  8  length
//! 24  8  XXH3-64 of bytes 0..24 and of the bytes that follow, seeded with the number of the chunk in the file, from 0
//! 32  …  bytes
//! ```
//!
//! Numbers are little-endian. A file that ends early, has bytes behind its end, or chunks in another order is refused.
//! A filter in one of our own layouts under one key needs no dump: its file is the `.ibf` file.

use std::io::{ErrorKind, Read, Write};

use anyhow::{Context as _, Result, anyhow};
use xxhash_rust::xxh3::Xxh3;

use super::names::MOST_SHARDS;
use super::server::Family;

pub(super) const MAGIC: [u8; 8] = *b"\x89IBD\r\n\x1a\n";
const VERSION: u32 = 1;
const HEADER: usize = 24;
const RECORD: usize = 32;
/// More than any server gives at once: RedisBloom 16 MiB, a server by default 512 MiB.
const MOST_BYTES: u64 = 1 << 30;

/// A chunk with the family of its filter.
#[derive(Debug, PartialEq)]
pub(super) struct Record {
    pub(super) family: Family,
    pub(super) iterator: i64,
    pub(super) bytes: Vec<u8>,
}

/// Filters in a file.
pub(super) fn filters(shards: Option<u32>) -> u32 {
    shards.unwrap_or(1)
}

pub(super) struct Writer<W> {
    out: W,
    chunk: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(mut out: W, shards: Option<u32>) -> Result<Self> {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&shards.unwrap_or(0).to_le_bytes());
        let sum = xxhash_rust::xxh3::xxh3_64(&header[..16]);
        header[16..].copy_from_slice(&sum.to_le_bytes());
        out.write_all(&header)?;
        Ok(Self { out, chunk: 0 })
    }

    pub(super) fn chunk(&mut self, family: Family, iterator: i64, bytes: &[u8]) -> Result<()> {
        let mut record = [0; RECORD];
        let family: u64 = if family == Family::Bloom { 1 } else { 2 };
        record[..8].copy_from_slice(&family.to_le_bytes());
        record[8..16].copy_from_slice(&iterator.to_le_bytes());
        record[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let sum = checksum(self.chunk, &record, bytes);
        record[24..].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&record)?;
        self.out.write_all(bytes)?;
        self.chunk += 1;
        Ok(())
    }

    /// Behind the last chunk of a filter.
    pub(super) fn end_filter(&mut self, family: Family) -> Result<()> {
        self.chunk(family, 0, &[])
    }
}

fn checksum(chunk: u64, record: &[u8; RECORD], bytes: &[u8]) -> u64 {
    let mut sum = Xxh3::with_seed(chunk);
    sum.update(&record[..24]);
    sum.update(bytes);
    sum.digest()
}

pub(super) struct Reader<R> {
    input: R,
    chunk: u64,
    shards: Option<u32>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(mut input: R) -> Result<Self> {
        let mut header = [0; HEADER];
        fill(&mut input, &mut header)?;
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let sum = xxhash_rust::xxh3::xxh3_64(&header[..16]).to_le_bytes();
        if header[..8] != MAGIC {
            return Err(anyhow!("not a dump"));
        }
        if header[16..] != sum {
            return Err(anyhow!("the checksum of the dump's header is wrong"));
        }
        if number(8) != VERSION {
            return Err(anyhow!("a dump of version {}, this program knows {VERSION}", number(8)));
        }
        let shards = match number(12) {
            0 => None,
            shards @ 1..=MOST_SHARDS => Some(shards),
            shards => return Err(anyhow!("a dump of {shards} shards; {MOST_SHARDS} are the most")),
        };
        Ok(Self { input, chunk: 0, shards })
    }

    /// The number of shards, or `None` for one filter under its own key.
    pub(super) fn shards(&self) -> Option<u32> {
        self.shards
    }

    /// The next chunk of a filter, or `None` behind its last.
    pub(super) fn next(&mut self) -> Result<Option<Record>> {
        let mut record = [0; RECORD];
        fill(&mut self.input, &mut record)?;
        let [family, iterator, len, sum] = numbers(&record);
        if len > MOST_BYTES {
            return Err(anyhow!("chunk {} is damaged: its length is {len}", self.chunk));
        }
        let mut bytes = Vec::new();
        // Takes memory as bytes arrive: the length is a claim.
        self.input.by_ref().take(len).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < len {
            return Err(cut_short());
        }
        if checksum(self.chunk, &record, &bytes) != sum {
            return Err(anyhow!("the checksum of chunk {} is wrong", self.chunk));
        }
        let family = match family {
            1 => Family::Bloom,
            2 => Family::Cuckoo,
            other => return Err(anyhow!("chunk {}: no family {other}", self.chunk)),
        };
        self.chunk += 1;
        let iterator = iterator as i64;
        Ok((iterator != 0).then_some(Record { family, iterator, bytes }))
    }

    /// That nothing follows.
    pub(super) fn finish(mut self) -> Result<()> {
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(anyhow!("bytes behind the end of the dump")),
        }
    }
}

fn numbers(record: &[u8; RECORD]) -> [u64; 4] {
    let (words, _) = record.as_chunks();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<()> {
    match input.read_exact(buffer) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(cut_short()),
        other => other.context("reading the dump"),
    }
}

fn cut_short() -> anyhow::Error {
    anyhow!("the dump is cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_filters() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, Some(2)).unwrap();
        writer.chunk(Family::Bloom, 1, b"header").unwrap();
        writer.chunk(Family::Bloom, 4, b"abc").unwrap();
        writer.end_filter(Family::Bloom).unwrap();
        writer.chunk(Family::Bloom, 1, b"second").unwrap();
        writer.end_filter(Family::Bloom).unwrap();
        bytes
    }

    /// All chunks of all filters, or why not.
    fn read(bytes: &[u8]) -> Result<Vec<(i64, Vec<u8>)>> {
        let mut reader = Reader::new(bytes)?;
        let mut chunks = Vec::new();
        for _ in 0..filters(reader.shards()) {
            while let Some(record) = reader.next()? {
                chunks.push((record.iterator, record.bytes));
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
        assert_eq!(Reader::new(&two_filters()[..]).unwrap().shards(), Some(2));
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
            assert!(read(&whole[..len]).is_err(), "{len} bytes");
        }
        let error = read(&whole[..whole.len() - 40]).unwrap_err().to_string();
        assert_eq!(error, "the dump is cut short");
        let error = read(&[&whole[..], b"x"].concat()).unwrap_err().to_string();
        assert_eq!(error, "bytes behind the end of the dump");
    }

    #[test]
    fn chunks_in_another_order_are_refused() {
        let whole = two_filters();
        let (first, second) =
            (HEADER..HEADER + RECORD + 6, HEADER + RECORD + 6..HEADER + 2 * RECORD + 9);
        let rest = &whole[second.end..];
        let swapped = [&whole[..HEADER], &whole[second.clone()], &whole[first], rest].concat();
        assert_eq!(swapped.len(), whole.len());
        assert_eq!(read(&swapped).unwrap_err().to_string(), "the checksum of chunk 0 is wrong");
        let without = [&whole[..HEADER], &whole[second.end - RECORD - 3..]].concat();
        assert!(read(&without).is_err());
    }
}
