//! A filter that stays in its file: a lookup reads only the 32 bytes that hold all bits of a key.
//!
//! ```text
//!  offset ─► header │ block 0 │ block 1 │ … │ block n−1          open reads the header, has_any the blocks of its keys
//! ```

use std::io;
use std::ops::Range;

use super::ParquetError;
use crate::format::foreign::parquet;
use crate::kinds::blocked::SplitBlockParams;

/// A filter in a Parquet file, of which only the header has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFilter {
    offset: u64,
    /// Offset of its bits.
    start: u64,
    params: SplitBlockParams,
}

impl StoredFilter {
    /// Enough bytes for any header.
    pub const HEADER: u64 = parquet::MAX_HEADER;

    /// Reads the header of the filter at an offset in a file of this length. A filter that extends beyond the file is
    /// an error, since its contents are unknown.
    pub fn open(
        offset: u64,
        length: u64,
        read: impl FnOnce(Range<u64>) -> io::Result<Vec<u8>>,
    ) -> Result<Self, ParquetError> {
        let damaged = |error| ParquetError::Filter { offset, error };
        let left = length.saturating_sub(offset);
        let head = read(offset..offset + left.min(Self::HEADER))?;
        let (header, bits) = parquet::head(&head).map_err(damaged)?;
        if header + bits > left {
            return Err(damaged(parquet::cut_short(left, header + bits)));
        }
        let params = parquet::params(bits).expect("the length was checked with the header");
        Ok(Self { offset, start: offset + header, params })
    }

    /// Hashes a value in [plain encoding](super::Plain).
    pub fn hash(form: &[u8]) -> u64 {
        parquet::HASH.hash(form)
    }

    /// Range of its bits in the file.
    pub fn bits(&self) -> Range<u64> {
        self.start..self.start + parquet::BLOCK_BYTES * self.params.blocks()
    }

    /// Range of a key's bits in the file.
    pub fn block(&self, hash: u64) -> Range<u64> {
        let start = self.start + parquet::BLOCK_BYTES * self.params.block_of(hash);
        start..start + parquet::BLOCK_BYTES
    }

    /// Returns true if it may hold one of the keys with these hashes. Reads one block after the other until a key is
    /// found.
    pub fn has_any(
        &self,
        hashes: &[u64],
        mut read: impl FnMut(Range<u64>) -> io::Result<Vec<u8>>,
    ) -> Result<bool, ParquetError> {
        for &hash in hashes {
            let bytes = read(self.block(hash))?;
            let block = <&[u8; _]>::try_from(&bytes[..]);
            let block = block.map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            let damaged = |error| ParquetError::Filter { offset: self.offset, error };
            if parquet::of_block(block).map_err(damaged)?.contains_hash(hash) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::foreign::Format;
    use crate::kinds::{AnyFilter, SplitBlock};

    /// Builds a file with a filter of these keys at byte 7, and the filter.
    fn file(blocks: u64, keys: impl Iterator<Item = u64>) -> (Vec<u8>, SplitBlock) {
        let params = SplitBlockParams::checked(blocks, 1).unwrap();
        let mut filter = SplitBlock::new(params, parquet::HASH).unwrap();
        for key in keys {
            filter.insert(&key.to_le_bytes()[..]);
        }
        let bytes = Format::Parquet.write(&AnyFilter::SplitBlock(filter.clone())).unwrap();
        ([&b"before "[..], &bytes, b"after"].concat(), filter)
    }

    fn reader(file: &[u8]) -> impl FnMut(Range<u64>) -> io::Result<Vec<u8>> {
        |range| Ok(file[range.start as usize..range.end as usize].to_vec())
    }

    #[test]
    fn one_block_answers_as_the_whole_filter() {
        for blocks in [1, 2, 3, 97, 1000] {
            let (file, filter) = file(blocks, (0..blocks * 20).map(|i| i * i));
            let stored = StoredFilter::open(7, file.len() as u64, reader(&file)).unwrap();
            assert_eq!(stored.bits().end, file.len() as u64 - 5);
            let mut found = 0;
            for key in 0..5000u64 {
                let hash = StoredFilter::hash(&key.to_le_bytes());
                let has = stored.has_any(&[hash], reader(&file)).unwrap();
                assert_eq!(has, filter.contains(&key.to_le_bytes()[..]), "{blocks} blocks, {key}");
                found += u64::from(has);
            }
            assert!(found > 0 && found < 5000, "{found}");
        }
    }

    #[test]
    fn any_of_several_keys_is_enough() {
        let (file, _) = file(50, 0..10);
        let stored = StoredFilter::open(7, file.len() as u64, reader(&file)).unwrap();
        let hash = |key: u64| StoredFilter::hash(&key.to_le_bytes());
        assert!(stored.has_any(&[hash(500), hash(501), hash(7)], reader(&file)).unwrap());
        assert!(!stored.has_any(&[hash(500), hash(501)], reader(&file)).unwrap());
        assert!(!stored.has_any(&[], reader(&file)).unwrap());
    }

    #[test]
    fn what_is_cut_short_or_unreadable_is_an_error() {
        let (file, _) = file(4, 0..10);
        let end = file.len() as u64 - 5;
        assert!(StoredFilter::open(7, end, reader(&file)).is_ok());
        for length in 0..end {
            let opened = StoredFilter::open(7, length, |range: Range<u64>| {
                Ok(file[range.start.min(length) as usize..range.end.min(length) as usize].to_vec())
            });
            assert!(matches!(opened, Err(ParquetError::Filter { .. })), "{length} bytes");
        }
        let stored = StoredFilter::open(7, end, reader(&file)).unwrap();
        assert!(stored.has_any(&[1], |_| Ok(vec![0; 31])).is_err());
        assert!(stored.has_any(&[1], |_| Err(io::ErrorKind::Other.into())).is_err());
        assert!(StoredFilter::open(u64::MAX, end, |_| Ok(vec![])).is_err());
    }
}
