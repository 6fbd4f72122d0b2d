//! Any part of a file's bytes without the rest: for sending a filter piece by piece without a copy.
//!
//! ```text
//! header │ payload: sections one after the other │ checksums of the chunks, and their own checksum
//! ```
//!
//! Header and payload are copied from the filter. Only the checksums require reading all of it: [`visit_image`] returns
//! them as a [`Table`], for the pieces that reach into them.

use std::borrow::Cow;
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::header::{CHECKSUM_AT, CHUNK_BYTES, HEADER_BYTES, encode_header, get64};
use super::{Image, Persist};

/// Length of the file of a filter.
pub fn image_bytes(filter: &impl Persist) -> u64 {
    filter.encode().header.file_bytes()
}

/// The checksums at the end of a file, and their own checksum, for the filter as it was when they were computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Vec<u8>);

/// Returns at most `most` bytes of that file starting at `offset`; empty past the end. `table` returns what
/// [`visit_image`] returned for this filter, and is called only if the piece reaches that far; nothing else reads more
/// than the piece. If the filter has changed since, the file is refused as damaged.
pub fn image_piece<'t>(
    filter: &impl Persist,
    offset: u64,
    most: usize,
    table: impl FnOnce() -> &'t Table,
) -> Vec<u8> {
    let image = filter.encode();
    let end = image.header.file_bytes().min(offset.saturating_add(most as u64));
    if offset >= end {
        return Vec::new();
    }
    let mut piece = Piece::of(offset..end);
    piece.pass(&encode_header(&image.header));
    for section in &image.sections {
        piece.pass_words(section);
    }
    if end > HEADER_BYTES as u64 + image.header.payload_bytes {
        piece.pass(&table().0);
    }
    piece.into_bytes()
}

/// Start of the table in that file: a piece that ends there or before needs no table.
pub fn table_start(filter: &impl Persist) -> u64 {
    HEADER_BYTES as u64 + filter.encode().header.payload_bytes
}

/// Passes on all bytes of that file, in order and in parts, and returns the last part, the table. The filter is read
/// once and not copied.
pub fn visit_image(filter: &impl Persist, mut visit: impl FnMut(&[u8])) -> Table {
    let mut reading = ImageReading::default();
    loop {
        if let Some(table) = reading.step(filter, usize::MAX, &mut visit) {
            return table;
        }
    }
}

/// [`visit_image`] in steps: for a program that a large filter must not hold up.
#[derive(Clone, Debug, Default)]
pub struct ImageReading {
    /// Checksums of the chunks read so far.
    checksums: Vec<u8>,
}

impl ImageReading {
    /// Passes on the next bytes of the file: at most `most_chunks` chunks of 64 KiB, with the header before the first and the
    /// table after the last; then returns the table. The filter must be the same in every step: if it changes, the file
    /// is refused as damaged, and reading has to restart.
    pub fn step(
        &mut self,
        filter: &impl Persist,
        most_chunks: usize,
        mut visit: impl FnMut(&[u8]),
    ) -> Option<Table> {
        let image = filter.encode();
        let header = encode_header(&image.header);
        if self.checksums.is_empty() {
            visit(&header);
        }
        if !self.read_chunks(&image, most_chunks.max(1), &mut visit) {
            return None;
        }
        let mut table = std::mem::take(&mut self.checksums);
        let seal = xxh3_64_with_seed(&table, get64(&header, CHECKSUM_AT));
        table.extend_from_slice(&seal.to_le_bytes());
        visit(&table);
        Some(Table(table))
    }

    /// Number of chunks read so far.
    pub fn chunks(&self) -> usize {
        self.checksums.len() / 8
    }

    /// Reads the next chunks and keeps their checksums. Passes them to `visit` while they are in the cache. Returns
    /// true if none is left.
    fn read_chunks(
        &mut self,
        image: &Image<'_>,
        most: usize,
        visit: &mut impl FnMut(&[u8]),
    ) -> bool {
        let (mut skip, mut left) = (CHUNK_BYTES / 8 * self.chunks(), most);
        let (mut chunk, mut len) = (Xxh3::with_seed(self.chunks() as u64), 0);
        for section in &image.sections {
            let mut rest: &[u64] = &section[skip.min(section.len())..];
            skip -= section.len() - rest.len();
            while !rest.is_empty() {
                if left == 0 {
                    return false;
                }
                let (part, after) = rest.split_at(((CHUNK_BYTES - len) / 8).min(rest.len()));
                let bytes = little_endian(part);
                chunk.update(&bytes);
                visit(&bytes);
                len += bytes.len();
                rest = after;
                if len == CHUNK_BYTES {
                    self.finish_chunk(&mut chunk);
                    (len, left) = (0, left - 1);
                }
            }
        }
        if len > 0 {
            self.finish_chunk(&mut chunk);
        }
        true
    }

    fn finish_chunk(&mut self, chunk: &mut Xxh3) {
        self.checksums.extend_from_slice(&chunk.digest().to_le_bytes());
        *chunk = Xxh3::with_seed(self.chunks() as u64);
    }
}

/// The wanted range of a sequential stream of bytes.
pub(super) struct Piece {
    wanted: Range<u64>,
    /// Number of bytes that have passed.
    at: u64,
    bytes: Vec<u8>,
}

impl Piece {
    pub(super) fn of(wanted: Range<u64>) -> Self {
        let mut bytes = Vec::new();
        bytes.reserve_exact((wanted.end - wanted.start) as usize);
        Self { wanted, at: 0, bytes }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the wanted part of the next `len` bytes.
    fn part_of(&mut self, len: usize) -> Range<usize> {
        let start = self.at;
        self.at += len as u64;
        let clamped = |bound: u64| (bound.clamp(start, self.at) - start) as usize;
        clamped(self.wanted.start)..clamped(self.wanted.end)
    }

    pub(super) fn pass(&mut self, bytes: &[u8]) {
        let part = self.part_of(bytes.len());
        self.bytes.extend_from_slice(&bytes[part]);
    }

    pub(super) fn pass_words(&mut self, words: &[u64]) {
        let part = self.part_of(8 * words.len());
        if part.is_empty() {
            return;
        }
        // Whole words, the first and last possibly cut.
        let first = part.start / 8;
        let bytes = little_endian(&words[first..part.end.div_ceil(8)]);
        self.bytes.extend_from_slice(&bytes[part.start - 8 * first..part.end - 8 * first]);
    }
}

/// Words as bytes of a file: without a copy on little-endian machines.
fn little_endian(words: &[u64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytemuck::cast_slice(words));
    }
    Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::{Bloom, Scalable};

    fn pieces(filter: &impl Persist, most: usize) -> Vec<u8> {
        let table = visit_image(filter, |_| {});
        let mut bytes = Vec::new();
        loop {
            let piece = image_piece(filter, bytes.len() as u64, most, || &table);
            if piece.is_empty() {
                return bytes;
            }
            assert!(piece.len() <= most);
            bytes.extend(piece);
        }
    }

    #[test]
    fn pieces_of_any_length_are_the_file() {
        let hashes: Vec<u64> = (0..40_000).map(mix64).collect();
        let mut flat = Bloom::with_rate(100_000, 0.001).unwrap();
        flat.insert_hashes(&hashes);
        let mut growing = Scalable::with_rate(1000, 0.01).unwrap();
        // More than three chunks.
        growing.insert_hashes(&(0..200_000).map(mix64).collect::<Vec<_>>()).unwrap();
        for most in [97, 1000, CHUNK_BYTES, 1 << 30] {
            assert!(pieces(&flat, most) == flat.to_bytes(), "{most}");
            assert!(pieces(&growing, most) == growing.to_bytes(), "{most}");
        }
        for most in [1, 3, usize::MAX] {
            let (mut reading, mut visited) = (ImageReading::default(), Vec::new());
            let mut steps = 1;
            while reading.step(&growing, most, |part| visited.extend_from_slice(part)).is_none() {
                steps += 1;
                assert_eq!(reading.chunks(), (steps - 1) * most);
            }
            assert!(visited == growing.to_bytes(), "{most} chunks at a time");
            let chunks = growing.encode().header.payload_bytes.div_ceil(CHUNK_BYTES as u64);
            assert!(chunks > 1 && steps == (chunks as usize).div_ceil(most));
        }
        assert_eq!(image_bytes(&growing), growing.to_bytes().len() as u64);
        let unasked = || unreachable!("the piece does not reach the table");
        assert_eq!(image_piece(&flat, u64::MAX, usize::MAX, unasked), [0u8; 0]);
        let payload_end = table_start(&flat);
        let all_but_table = image_piece(&flat, 0, payload_end as usize, unasked);
        assert!(flat.to_bytes().starts_with(&all_but_table));
        assert_eq!(all_but_table.len() as u64, payload_end);
    }

    #[test]
    fn the_table_of_another_state_makes_a_damaged_file() {
        let mut filter = Bloom::with_rate(100_000, 0.001).unwrap();
        let old = visit_image(&filter, |_| {});
        filter.insert("alice");
        let new = visit_image(&filter, |_| {});
        assert!(Bloom::from_bytes(&image_piece(&filter, 0, 1 << 30, || &old)).is_err());
        assert!(Bloom::from_bytes(&image_piece(&filter, 0, 1 << 30, || &new)).unwrap() == filter);
    }
}
