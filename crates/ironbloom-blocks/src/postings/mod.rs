//! Sealed postings: the blocks that hold each value, for one column of a segment.
//!
//! ```text
//! fingerprint ──► dense keys?    ──► bitmap over the blocks          values in a large part of all blocks
//!             ──► private keys?  ──► list H + rank of the key        values too frequent to share a bucket
//!             ──► bucket         ──► list (high bits)                everything else, several values per list
//!
//! one Elias–Fano sequence:   list 0 │ list 1 │ … │ list H-1 │ private lists │ nulls      x = list · blocks + block
//! ```
//!
//! Buckets need neither keys nor a directory: list g is the range g·NB .. (g+1)·NB of the sequence, found by one select
//! (Elias 1974, Fano 1971). Where all values are frequent, there are no buckets (H = 0), all lists are private and the
//! answer is exact. Nulls have their own list, so that they do not affect other values.
//!
//! The words of a column, in memory and in the file:
//!
//! ```text
//!  0  1 (this layout)      5  dense keys                 16  private keys, ascending, two per word
//!  1  blocks               6  nulls: 0 none, 1 list,      …  dense keys, the same
//!  2  bucket bits, 0 none     2 bitmap                    …  bitmaps of the dense keys, then of the nulls
//!  3  numbers in the       7  cells that are not null     …  Elias–Fano: samples, high part, low parts
//!     sequence             8  nulls
//!  4  private keys         9..16 zero
//! ```

mod build;
mod elias_fano;
mod merge;
mod outline;
mod private_lists;
pub mod run;

pub use build::{EncodedPart, Remainder};
pub use elias_fano::PartMemory;
pub use merge::{Move, Placed};
pub use outline::{Outline, ReadWords};

use std::ops::Range;

use ironbloom::memory::WordArray;

use self::elias_fano::{Cursor, EliasFano, Shape};
use crate::cells::SealedCells;
use crate::params::Params;

const LAYOUT: u64 = 1;
const HEADER_WORDS: usize = 16;

/// How the nulls of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nulls {
    None,
    List,
    Bitmap,
}

/// The numbers at the start, which determine all offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    blocks: u32,
    /// Bits of a bucket number; `None` if all values have private lists.
    bucket_bits: Option<u32>,
    entries: u64,
    private: usize,
    dense: usize,
    nulls: Nulls,
    cells: u64,
    null_cells: u64,
}

impl Head {
    fn buckets(&self) -> u64 {
        self.bucket_bits.map_or(0, |bits| 1 << bits)
    }

    fn shape(&self) -> Shape {
        let lists = self.buckets() + self.private as u64 + u64::from(self.nulls == Nulls::List);
        Shape::new(self.entries, lists * u64::from(self.blocks))
    }

    fn bitmap_words(&self) -> usize {
        self.blocks.div_ceil(64) as usize
    }

    fn private_words(&self) -> Range<usize> {
        HEADER_WORDS..HEADER_WORDS + self.private.div_ceil(2)
    }

    fn dense_words(&self) -> Range<usize> {
        let start = self.private_words().end;
        start..start + self.dense.div_ceil(2)
    }

    /// Range of bitmap i; the nulls' bitmap follows those of the dense keys.
    fn bitmap(&self, i: usize) -> Range<usize> {
        let start = self.dense_words().end + i * self.bitmap_words();
        start..start + self.bitmap_words()
    }

    fn sequence(&self) -> Range<usize> {
        let bitmaps = self.dense + usize::from(self.nulls == Nulls::Bitmap);
        let start = self.bitmap(bitmaps).start;
        start..start + self.shape().words()
    }

    /// Number of words in total.
    fn words(&self) -> usize {
        self.sequence().end
    }

    fn write(&self, words: &mut [u64]) {
        words[0] = LAYOUT;
        words[1] = self.blocks.into();
        words[2] = self.bucket_bits.unwrap_or(0).into();
        words[3] = self.entries;
        words[4] = self.private as u64;
        words[5] = self.dense as u64;
        words[6] = match self.nulls {
            Nulls::None => 0,
            Nulls::List => 1,
            Nulls::Bitmap => 2,
        };
        words[7] = self.cells;
        words[8] = self.null_cells;
    }

    /// Reads the head of postings of `len` words that begin with these. `None` if it is invalid.
    fn read(words: &[u64], len: usize) -> Option<Self> {
        let head = words.get(..HEADER_WORDS)?;
        // No part is longer than the words that contain it, so these sums cannot overflow.
        let most = (len as u64).saturating_mul(64);
        let within = |value: u64| (value <= most).then_some(value as usize);
        if head[0] != LAYOUT || head[9..].iter().any(|&word| word != 0) {
            return None;
        }
        let bucket_bits = match head[2] {
            0 => None,
            bits @ 9..=30 => Some(bits as u32),
            _ => return None,
        };
        let head = Self {
            blocks: u32::try_from(head[1]).ok()?,
            bucket_bits,
            entries: within(head[3])? as u64,
            private: within(head[4])?,
            dense: within(head[5])?,
            nulls: match head[6] {
                0 => Nulls::None,
                1 => Nulls::List,
                2 => Nulls::Bitmap,
                _ => return None,
            },
            cells: head[7],
            null_cells: head[8],
        };
        // The products that follow from the head fit 128 bits; compare them there before using them here.
        let lists = u128::from(head.buckets()) + head.private as u128 + 1;
        let bitmaps = (head.dense as u128 + 1) * head.bitmap_words() as u128;
        if lists * u128::from(head.blocks) >= 1 << 62 || bitmaps >= 1 << 58 {
            return None;
        }
        head.shape().fits().then_some(head)
    }
}

/// Reads key i of an array of 32-bit keys, two per word.
#[inline]
fn key(words: &[u64], i: usize) -> u32 {
    (words[i / 2] >> (32 * (i % 2))) as u32
}

fn put_key(words: &mut [u64], i: usize, key: u32) {
    words[i / 2] |= u64::from(key) << (32 * (i % 2));
}

/// Finds the position of a key among `len` ascending ones. Fingerprints are spread evenly, so the search starts at the
/// interpolated position and widens.
#[inline]
fn find_key(words: &[u64], len: usize, wanted: u32) -> Option<usize> {
    if len == 0 {
        return None;
    }
    let guess = ((u64::from(wanted) * len as u64) >> 32) as usize;
    let (mut low, mut high, mut step) = (guess, guess + 1, 8);
    while low > 0 && key(words, low) > wanted {
        low = low.saturating_sub(step);
        step *= 2;
    }
    step = 8;
    while high < len && key(words, high) <= wanted {
        high += step;
        step *= 2;
    }
    high = high.min(len);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if key(words, middle) <= wanted { low = middle } else { high = middle }
    }
    (key(words, low) == wanted).then_some(low)
}

/// The postings of one column in one segment.
#[derive(Debug)]
pub struct Postings {
    head: Head,
    /// Derived from the head, computed once because it takes divisions.
    shape: Shape,
    sequence: Range<usize>,
    words: WordArray,
}

/// The blocks of one value, not yet read.
pub enum List<'a> {
    /// No blocks.
    Empty,
    /// One bit per block.
    Bitmap(&'a [u64]),
    /// A range of the sequence.
    Sequence(SequenceList<'a>),
    /// These blocks, ascending and distinct.
    Blocks(Vec<u32>),
}

/// A list in the sequence: blocks ascending and distinct.
pub struct SequenceList<'a> {
    cursor: Cursor<'a>,
    first: u64,
    /// Approximate number of blocks.
    pub(crate) estimate: u64,
}

impl SequenceList<'_> {
    /// Skips the blocks below this one.
    #[inline]
    pub(crate) fn seek(&mut self, block: u32) {
        self.cursor.seek(self.first + u64::from(block));
    }

    /// Capacity that usually suffices for all its blocks: bucket lengths vary by their square root.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        let estimate = self.estimate.min(1 << 16);
        (estimate + 4 * estimate.isqrt() + 8) as usize
    }

    /// Calls back with all remaining blocks, at most 64 at a time.
    #[inline]
    pub(crate) fn each_some(self, call: impl FnMut(&[u32])) {
        self.cursor.each_some(self.first, call);
    }
}

impl Iterator for SequenceList<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.cursor.next().map(|number| (number - self.first) as u32)
    }
}

impl Postings {
    /// Seals a column of `blocks` blocks, with bucket numbers of this many [bits](Params::bucket_bits).
    pub fn build(cells: &SealedCells, blocks: u32, bucket_bits: u32) -> Self {
        build::build(cells, blocks, bucket_bits)
    }

    /// Joins all [`CELL_PARTS`](crate::CELL_PARTS) parts of a column, in order. The result is that of
    /// [`build`](Self::build). Also returns the memory of the parts.
    pub fn join(
        parts: Vec<EncodedPart>,
        rest: &Remainder,
        bucket_bits: u32,
    ) -> (Self, Vec<PartMemory>) {
        build::join(parts, rest, bucket_bits)
    }

    /// Merges the postings of consecutive segments into those of one with `blocks` blocks. If their numbers of buckets
    /// differ, the result has the smallest: values that shared a bucket can no longer be told apart.
    pub fn merge(segments: &[Placed<'_>], blocks: u32, params: Params) -> Self {
        merge::merge(segments, blocks, params)
    }

    fn new(head: Head, words: WordArray) -> Self {
        Self { head, shape: head.shape(), sequence: head.sequence(), words }
    }

    /// Takes the postings in these words of a file, whose checksum was right. `None` if they are invalid.
    pub fn from_words(words: WordArray, blocks: u32) -> Option<Self> {
        let head = Head::read(&words, words.len())?;
        if head.blocks != blocks || head.words() != words.len() {
            return None;
        }
        let postings = Self::new(head, words);
        postings.is_sound().then_some(postings)
    }

    /// Checks what lookups rely on: keys ascend, bitmaps name only existing blocks, and the sequence can be read to its
    /// end.
    fn is_sound(&self) -> bool {
        let ascend = |keys: &[u64], len: usize| (1..len).all(|i| key(keys, i - 1) < key(keys, i));
        let bitmaps = &self.words[self.head.bitmap(0).start..self.head.sequence().start];
        let used = self.head.blocks % 64;
        let beyond = |bitmap: &[u64]| used != 0 && bitmap[bitmap.len() - 1] >> used != 0;
        ascend(&self.words[self.head.private_words()], self.head.private)
            && ascend(&self.words[self.head.dense_words()], self.head.dense)
            && !bitmaps.chunks(self.head.bitmap_words().max(1)).any(beyond)
            && self.sequence().is_sound()
    }

    /// All words, as stored.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Numbers of cells that are not null, and of cells that are.
    pub fn cells(&self) -> (u64, u64) {
        (self.head.cells, self.head.null_cells)
    }

    /// Returns true if every fingerprint has its own list, so that values with different fingerprints are never
    /// confused.
    pub fn is_exact(&self) -> bool {
        self.head.bucket_bits.is_none()
    }

    #[inline]
    fn sequence(&self) -> EliasFano<'_> {
        EliasFano::new(self.shape, &self.words[self.sequence.clone()])
    }

    /// Returns list number `list` of the sequence.
    #[inline]
    fn sequence_list(&self, list: u64, estimate: u64) -> List<'_> {
        let blocks = u64::from(self.head.blocks);
        let first = list * blocks;
        List::Sequence(SequenceList {
            cursor: self.sequence().range(first..first + blocks),
            first,
            estimate,
        })
    }

    /// Returns the blocks that may hold a value with this fingerprint; no other block does.
    #[inline]
    pub fn list(&self, print: u32) -> List<'_> {
        self.private_list(print).unwrap_or_else(|| self.bucket(print))
    }

    /// Returns the list of this fingerprint alone, if it has one.
    #[inline]
    fn private_list(&self, print: u32) -> Option<List<'_>> {
        let head = &self.head;
        if let Some(i) = find_key(&self.words[head.dense_words()], head.dense, print) {
            return Some(List::Bitmap(&self.words[head.bitmap(i)]));
        }
        let rank = find_key(&self.words[head.private_words()], head.private, print)?;
        // Its exact length would take two selects; it is longer than a bucket's list, and sparser than a bitmap.
        let estimate = u64::from(head.blocks) / 16;
        Some(self.sequence_list(head.buckets() + rank as u64, estimate))
    }

    #[inline]
    fn bucket(&self, print: u32) -> List<'_> {
        match self.head.bucket_bits {
            Some(bits) => {
                self.sequence_list(u64::from(print) >> (32 - bits), self.head.entries >> bits)
            }
            None => List::Empty,
        }
    }

    /// Reads what a lookup in the buckets waits for first, or (`stage` 1) what it waits for next. The result is
    /// meaningless.
    #[inline]
    pub fn touch(&self, print: u32, stage: u32) -> u64 {
        self.bucket_start(print).map_or(0, |number| match stage {
            0 => self.sequence().touch_sample(number),
            _ => self.sequence().touch_number(number),
        })
    }

    #[inline]
    fn bucket_start(&self, print: u32) -> Option<u64> {
        let bits = self.head.bucket_bits?;
        Some((u64::from(print) >> (32 - bits)) * u64::from(self.head.blocks))
    }

    /// Returns the blocks that hold nulls.
    pub fn nulls(&self) -> List<'_> {
        match self.head.nulls {
            Nulls::None => List::Empty,
            Nulls::Bitmap => List::Bitmap(&self.words[self.head.bitmap(self.head.dense)]),
            Nulls::List => {
                let list = self.head.buckets() + self.head.private as u64;
                self.sequence_list(list, u64::from(self.head.blocks) / 16)
            }
        }
    }

    /// All fingerprints with private lists, ascending.
    fn private_keys(&self) -> Vec<u32> {
        let keys = |words: Range<usize>, len: usize| {
            let words = &self.words[words];
            (0..len).map(move |i| key(words, i))
        };
        let mut all: Vec<u32> = keys(self.head.private_words(), self.head.private)
            .chain(keys(self.head.dense_words(), self.head.dense))
            .collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cells;
    use proptest::prelude::*;

    const BLOCK_ROWS: u32 = 16;

    fn postings(prints: &[u32], selectivity: u32) -> Postings {
        let params = Params::new(BLOCK_ROWS, selectivity).unwrap();
        let mut cells = Cells::new(params);
        cells.push_with(|out| out.extend_from_slice(prints));
        let blocks = prints.len().div_ceil(BLOCK_ROWS as usize) as u32;
        Postings::build(&cells.seal(), blocks, params.bucket_bits(prints.len() as u64))
    }

    fn blocks(list: List<'_>) -> Vec<u32> {
        match crate::block_set::BlockSet::from_list(list) {
            crate::block_set::BlockSet::Some(blocks) => blocks,
            crate::block_set::BlockSet::All => unreachable!("a list names its blocks"),
        }
    }

    /// Words in memory, read as if they were elsewhere.
    struct Reader<'a> {
        words: &'a [u64],
        read: std::cell::Cell<usize>,
    }

    impl<'a> Reader<'a> {
        fn new(words: &'a [u64]) -> Self {
            Self { words, read: 0.into() }
        }
    }

    impl ReadWords for Reader<'_> {
        type Error = ();

        fn words(&self, range: Range<usize>) -> Result<Vec<u64>, ()> {
            self.read.set(self.read.get() + range.len());
            Ok(self.words[range].to_vec())
        }

        fn invalid(&self) {}
    }

    /// Fingerprints, some of them frequent, some null, some sharing a bucket.
    fn prints() -> impl Strategy<Value = Vec<u32>> {
        let print = prop_oneof![
            2 => Just(0u32),
            3 => Just(0x8000_0001),
            3 => 0x8000_0000u32..0x8000_0010,
            4 => any::<u32>(),
        ];
        prop::collection::vec(print, 0..3000)
    }

    proptest! {
        #[test]
        fn a_list_names_every_block_of_its_value(prints in prints(), selectivity in 1u32..=20) {
            let postings = postings(&prints, selectivity);
            for (row, &print) in prints.iter().enumerate() {
                let list = if print == 0 { postings.nulls() } else { postings.list(print) };
                let blocks = blocks(list);
                prop_assert!(blocks.contains(&(row as u32 / BLOCK_ROWS)));
                prop_assert!(blocks.is_sorted_by(|a, b| a < b));
            }
            let nulls: Vec<u32> = (0..).zip(prints.chunks(BLOCK_ROWS as usize))
                .filter(|(_, block)| block.contains(&0)).map(|(block, _)| block).collect();
            prop_assert_eq!(blocks(postings.nulls()), nulls);
        }

        /// The intersection of two lists is the same whether they are read whole or skipped through.
        #[test]
        fn lists_intersect_as_sets_do(prints in prints(), some in prop::collection::btree_set(0u32..188, 0..40)) {
            let postings = postings(&prints, 4);
            // Only existing blocks.
            let some: std::collections::BTreeSet<u32> =
                some.into_iter().filter(|&block| block < postings.head.blocks).collect();
            for print in [0x8000_0001, 0x8000_0007, prints.last().copied().unwrap_or(1).max(1)] {
                let list = blocks(postings.list(print));
                let both: Vec<u32> = list.iter().copied().filter(|block| some.contains(block)).collect();
                for estimate in [1, u64::MAX] {
                    let mut run = postings.list(print);
                    if let List::Sequence(run) = &mut run {
                        run.estimate = estimate;
                    }
                    let some = crate::block_set::BlockSet::Some(some.iter().copied().collect());
                    prop_assert_eq!(some.and_list(run), crate::block_set::BlockSet::Some(both.clone()));
                }
            }
        }

        /// Segments may have been built with different numbers of buckets, and some of their blocks may be left out.
        #[test]
        fn merged_segments_name_every_block_of_a_value(
            segments in prop::collection::vec((prints(), 9u32..14, any::<u64>()), 1..4),
        ) {
            let params = Params::new(BLOCK_ROWS, 4).unwrap();
            let mut next = 0;
            let built: Vec<(Postings, Vec<Move>)> = segments.iter().map(|(prints, bits, kept)| {
                let mut cells = Cells::new(params);
                cells.push(prints);
                let blocks = prints.len().div_ceil(16) as u32;
                // Half of the segments are kept completely.
                let is_kept = |block: &u32| kept & 1 == 0 || kept >> (1 + block % 63) & 1 == 1;
                let moves = (0..blocks).filter(is_kept).zip(next..);
                let moves: Vec<Move> = moves.map(|(block, to)| Move { blocks: block..block + 1, to }).collect();
                next += moves.len() as u32;
                let moves = if kept & 1 == 0 && blocks > 0 { vec![Move { blocks: 0..blocks, to: moves[0].to }] } else { moves };
                (Postings::build(&cells.seal(), blocks, *bits), moves)
            }).collect();
            let placed: Vec<Placed<'_>> = built.iter().map(|(postings, moves)| Placed { postings, moves }).collect();
            let merged = Postings::merge(&placed, next, params);
            for ((prints, ..), part) in segments.iter().zip(&placed) {
                for (row, &print) in prints.iter().enumerate() {
                    let list = if print == 0 { merged.nulls() } else { merged.list(print) };
                    let list = blocks(list);
                    let block = row as u32 / BLOCK_ROWS;
                    let own = part.moves.iter().find(|own| own.blocks.contains(&block));
                    if let Some(own) = own {
                        prop_assert!(list.contains(&(own.to + block - own.blocks.start)));
                    }
                    prop_assert!(list.is_sorted_by(|a, b| a < b));
                }
            }
            if segments.iter().all(|(.., kept)| kept & 1 == 0) {
                let cells = built.iter().map(|(part, _)| part.cells().0).sum::<u64>();
                prop_assert_eq!(merged.cells().0, cells);
            }
            let words = merged.words.clone();
            prop_assert!(Postings::from_words(words, next).is_some());
        }

        /// Lists are the same whether read from a few words or with everything in memory.
        #[test]
        fn an_outline_reads_the_same_lists(prints in prints(), selectivity in 1u32..=20) {
            let postings = postings(&prints, selectivity);
            let words = Reader::new(postings.words());
            let outline = Outline::read(&words, postings.words().len(), postings.head.blocks).unwrap();
            for print in prints.iter().copied().chain([1, u32::MAX, 1 << 31]) {
                prop_assert_eq!(
                    blocks(outline.list(print, &words).unwrap()),
                    blocks(postings.list(print)),
                    "{}", print
                );
            }
            prop_assert_eq!(blocks(outline.nulls(&words).unwrap()), blocks(postings.nulls()));
        }

        /// A forger can make the checksums match. The result is an error or an answer, never a panic.
        #[test]
        fn forged_words_never_panic(
            prints in prints(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), any::<bool>()), 1..4),
        ) {
            let whole = postings(&prints, 4);
            let mut words = whole.words.clone();
            for (at, change, in_head) in changes {
                let len = if in_head { HEADER_WORDS } else { words.len() };
                words[at.index(len)] ^= if change & 1 == 0 { 1 << (change >> 58) } else { change };
            }
            let reader = Reader::new(&words);
            if let Ok(forged) = Outline::read(&reader, words.len(), whole.head.blocks) {
                let asked = prints.iter().copied().chain([1, u32::MAX, 1 << 31]);
                let lists = asked.take(200).map(|print| forged.list(print, &reader));
                for list in lists.chain([forged.nulls(&reader)]).flatten() {
                    let named = blocks(list);
                    prop_assert!(named.iter().all(|&block| block < whole.head.blocks));
                    prop_assert!(named.is_sorted_by(|a, b| a < b));
                }
            }
            if let Some(forged) = Postings::from_words(words, whole.head.blocks) {
                let asked = prints.iter().copied().chain([0, 1, u32::MAX, 1 << 31]);
                for print in asked.take(200) {
                    let named = blocks(forged.list(print));
                    prop_assert!(named.iter().all(|&block| block < forged.head.blocks));
                }
                prop_assert!(blocks(forged.nulls()).iter().all(|&block| block < forged.head.blocks));
            }
        }
    }

    #[test]
    fn a_list_of_a_large_column_takes_a_few_of_its_words() {
        let print = |row: u32| (row + 1).wrapping_mul(0x9e37_79b1);
        // Every tenth row has one of 300 frequent values, with private lists and keys.
        let prints: Vec<u32> = (0..2_000_000u32)
            .map(|row| print(if row % 10 == 0 { row / 10 % 300 } else { row }))
            .collect();
        let postings = postings(&prints, 10);
        assert!(postings.words().len() > 300_000 && postings.head.private >= 300);
        for row in (0..2_000_000).step_by(9973) {
            let words = Reader::new(postings.words());
            let len = postings.words().len();
            let outline = Outline::read(&words, len, postings.head.blocks).unwrap();
            let list = blocks(outline.list(prints[row as usize], &words).unwrap());
            assert!(list.contains(&(row / BLOCK_ROWS)));
            assert!(
                words.read.get() < 4000,
                "{} words for {} blocks",
                words.read.get(),
                list.len()
            );
        }
    }

    #[test]
    fn few_values_are_exact_and_absent_ones_are_nowhere() {
        let prints: Vec<u32> = (0..10_000u32).map(|row| 1000 + row % 20).collect();
        let postings = postings(&prints, 10);
        assert!(postings.is_exact());
        assert!(blocks(postings.list(999)).is_empty());
        let expected: Vec<u32> =
            (0..625).filter(|b| (16 * b..16 * b + 16).any(|row| row % 20 == 3)).collect();
        assert_eq!(blocks(postings.list(1003)), expected);
    }
}
