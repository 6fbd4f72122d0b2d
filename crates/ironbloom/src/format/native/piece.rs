//! Any part of the bytes of a file without the rest: for sending a filter piece by piece without keeping a copy of it.
//!
//! ```text
//! header │ payload: sections one after the other │ checksums of the chunks, and theirs
//! ```
//!
//! Header and payload are copied from where they are. Only the checksums need the whole filter to be read: [`visit_image`]
//! returns them as a [`Table`], for the pieces that reach into them.

use std::borrow::Cow;
use std::ops::Range;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::header::{CHECKSUM_AT, CHUNK_BYTES, HEADER_BYTES, encode_header, get64};
use super::{Image, Persist};

/// Length of the file that a filter would be saved as.
pub fn image_bytes(filter: &impl Persist) -> u64 {
    filter.encode().header.file_bytes()
}

/// The checksums at the end of a file, and theirs. They are those of the filter as it was when they were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Vec<u8>);

/// The bytes of that file from `offset` on, at most `most`. Empty past the end. `table` is asked for what [`visit_image`]
/// returned for this filter, and only if the piece reaches that far; nothing else reads more than the piece. The table of a
/// filter that has changed since makes a file that is refused as damaged.
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

/// Passes on all bytes of that file, in order and in parts, and returns the last of them, the table. The filter is read once
/// and not copied.
pub fn visit_image(filter: &impl Persist, mut visit: impl FnMut(&[u8])) -> Table {
    let image = filter.encode();
    let header = encode_header(&image.header);
    visit(&header);
    let mut table = checksums(&image, &mut visit);
    let seal = xxh3_64_with_seed(&table, get64(&header, CHECKSUM_AT));
    table.extend_from_slice(&seal.to_le_bytes());
    visit(&table);
    Table(table)
}

/// The wanted range of a sequential stream of bytes.
pub(super) struct Piece {
    wanted: Range<u64>,
    /// Bytes that have passed.
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

    /// The part of the next `len` bytes that is wanted.
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
        // Whole words, the first and last of which may be cut.
        let first = part.start / 8;
        let bytes = little_endian(&words[first..part.end.div_ceil(8)]);
        self.bytes.extend_from_slice(&bytes[part.start - 8 * first..part.end - 8 * first]);
    }
}

/// Words as the bytes in a file: no copy on little-endian machines.
fn little_endian(words: &[u64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytemuck::cast_slice(words));
    }
    Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// The checksums of all chunks. Passes the payload to `visit` on the way, while it is in the cache.
fn checksums(image: &Image<'_>, visit: &mut impl FnMut(&[u8])) -> Vec<u8> {
    let mut checksums: Vec<u8> = Vec::new();
    let (mut chunk, mut len) = (Xxh3::with_seed(0), 0);
    let mut finish = |chunk: &mut Xxh3| {
        checksums.extend_from_slice(&chunk.digest().to_le_bytes());
        *chunk = Xxh3::with_seed(checksums.len() as u64 / 8);
    };
    for section in &image.sections {
        let mut rest: &[u64] = section;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(((CHUNK_BYTES - len) / 8).min(rest.len()));
            let bytes = little_endian(part);
            chunk.update(&bytes);
            visit(&bytes);
            len += bytes.len();
            rest = after;
            if len == CHUNK_BYTES {
                finish(&mut chunk);
                len = 0;
            }
        }
    }
    if len > 0 {
        finish(&mut chunk);
    }
    checksums
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
        growing.insert_hashes(&hashes).unwrap();
        for most in [97, 1000, CHUNK_BYTES, 1 << 30] {
            assert!(pieces(&flat, most) == flat.to_bytes(), "{most}");
            assert!(pieces(&growing, most) == growing.to_bytes(), "{most}");
        }
        let mut visited = Vec::new();
        visit_image(&growing, |part| visited.extend_from_slice(part));
        assert!(visited == growing.to_bytes());
        assert_eq!(image_bytes(&growing), growing.to_bytes().len() as u64);
        let unasked = || unreachable!("the piece does not reach the table");
        assert_eq!(image_piece(&flat, u64::MAX, usize::MAX, unasked), [0u8; 0]);
        let payload_end = HEADER_BYTES as u64 + flat.encode().header.payload_bytes;
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
