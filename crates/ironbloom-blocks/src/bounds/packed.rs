//! The bounds of a sealed column: a frame for all blocks, spans for groups of 64 blocks, and a few bits per block.
//!
//! ```text
//! frame        ├──────────────────────────────────────────────────────────┤    in the head, exact
//! group 3              ├───────────────┤                                       from the start of the frame, exact
//! block 200                ├──┤                                                two numbers of b bits within its group
//! ```
//!
//! Cost of a lookup: a value or range outside the frame reads nothing; otherwise the spans of the groups (64 blocks
//! each) are read, and the blocks of the groups that it touches. A block's bounds are rounded outwards to a multiple of
//! a power of two, so they may name a block too many, never one too few.
//!
//! The number of bits per block depends on how much they tell and on the size of the column's lists: a column of few
//! values, in no order, has short lists, and its bounds would say nothing.
//!
//! The words of a column, in memory and in the file (numbers are packed without gaps; each part starts a new word):
//!
//! ```text
//! groups   low, high: each less the low of the frame, in as many bits as the width of the frame has;
//!          missing if all groups equal the frame
//! blocks   low, high: each less the low of the group, in units of 2^max(0, bits of the group's width - b), in b bits
//! ```
//!
//! A low above its high means that all values are null.

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;

use super::image::{Image, Span};
use crate::block_set::BlockSet;

/// Blocks per group.
const GROUP: u32 = 64;
/// Maximum bits per bound of a block: enough to see the rare values at both ends of an unordered column.
const MAX_BITS: u32 = 16;
/// Bits per bound if blocks differ: four units for each block of an ordered group.
const CLUSTERED_BITS: u32 = 8;
/// Bounds may then take one part in this many of the lists, which are short if there are few values.
const CLUSTERED_SHARE: u64 = 3;
/// Minimum bits if blocks differ: enough to tell two values apart, at any cost.
const FEWEST_CLUSTERED_BITS: u32 = 2;
/// Fewer bits tell nothing about blocks that are all alike.
const MIN_BITS: u32 = 4;
/// The bounds of an unordered column take at most one part in this many of its lists.
const SHARE: u64 = 33;

/// Facts about a column known before any word is read, and the layout of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundsHead {
    blocks: u32,
    frame: Span,
    /// Bits per bound of a block; 0 if the blocks have the bounds of their group.
    bits: u32,
    has_groups: bool,
    is_clustered: bool,
}

/// Words of bounds, wherever they are stored.
pub trait ReadBounds {
    /// The reason why words could not be read.
    type Error;

    /// Reads these words of a column.
    fn words(&self, range: Range<usize>) -> Result<Cow<'_, [u64]>, Self::Error>;
}

impl ReadBounds for [u64] {
    type Error = Infallible;

    fn words(&self, range: Range<usize>) -> Result<Cow<'_, [u64]>, Infallible> {
        Ok(Cow::Borrowed(&self[range]))
    }
}

/// Number of bits that a number takes.
fn bits_of(number: u128) -> u32 {
    u128::BITS - number.leading_zeros()
}

/// Reads `width` bits starting at bit `at`. Bits beyond the words are zero.
#[inline]
fn read_bits(words: &[u64], at: usize, width: u32) -> u128 {
    let word = |i: usize| u128::from(words.get(i).copied().unwrap_or(0));
    let (first, shift) = (at / 64, at % 64);
    let low = (word(first) | word(first + 1) << 64) >> shift;
    let all =
        if shift + width as usize > 128 { low | word(first + 2) << (128 - shift) } else { low };
    if width == u128::BITS { all } else { all & ((1 << width) - 1) }
}

/// Writes a number of `width` bits starting at bit `at`, where all bits are zero.
fn put_bits(words: &mut [u64], at: usize, width: u32, number: u128) {
    for bit in (0..width as usize).filter(|bit| number >> bit & 1 == 1) {
        words[(at + bit) / 64] |= 1 << ((at + bit) % 64);
    }
}

/// The scale of a group's blocks.
#[derive(Clone, Copy)]
struct Scale {
    group: Span,
    shift: u32,
}

impl Scale {
    fn new(group: Span, bits: u32) -> Self {
        Self { group, shift: bits_of(group.width()).saturating_sub(bits) }
    }

    /// Returns the number of an image in the group.
    #[inline]
    fn number(self, image: Image) -> u128 {
        (image.0 - self.group.low.0).checked_shr(self.shift).unwrap_or(0)
    }

    /// Returns the images between two numbers.
    fn span(self, low: u128, high: u128) -> Span {
        if low > high {
            return Span::NONE;
        }
        let group = self.group;
        let last = high << self.shift | ((1 << self.shift) - 1);
        Span {
            low: Image(group.low.0.saturating_add(low << self.shift).min(group.high.0)),
            high: Image(group.low.0.saturating_add(last).min(group.high.0)),
        }
    }
}

impl BoundsHead {
    const CLUSTERED: u8 = 0x40;
    const GROUPS: u8 = 0x20;

    /// Reads a head from a file: its [`code`](Self::code), its frame, and the number of blocks. `None` if it is
    /// invalid.
    pub fn new(code: u8, frame: Span, blocks: u32) -> Option<Self> {
        let bits = u32::from(code & 0x1f);
        let has_groups = code & Self::GROUPS != 0;
        let is_clustered = code & Self::CLUSTERED != 0;
        let is_valid = code & 0x80 == 0 && bits <= MAX_BITS && (!frame.is_empty() || code == 0);
        is_valid.then_some(Self { blocks, frame, bits, has_groups, is_clustered })
    }

    /// The byte that a file stores besides the frame: below 128.
    pub fn code(&self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        self.bits as u8
            | flag(self.has_groups, Self::GROUPS)
            | flag(self.is_clustered, Self::CLUSTERED)
    }

    /// The span of all values; [`Span::NONE`] if all are null.
    #[inline]
    pub fn frame(&self) -> Span {
        self.frame
    }

    /// Returns true if most blocks cover less than half of the frame, so that bounds narrow down even the blocks found
    /// by lists.
    #[inline]
    pub fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    /// Number of words.
    pub fn words(&self) -> usize {
        self.group_words()
            + (2 * u64::from(self.bits) * u64::from(self.blocks)).div_ceil(64) as usize
    }

    fn groups(&self) -> u32 {
        self.blocks.div_ceil(GROUP)
    }

    fn group_bits(&self) -> u32 {
        bits_of(self.frame.width()).max(1)
    }

    fn group_words(&self) -> usize {
        let bits = 2 * u64::from(self.group_bits()) * u64::from(self.groups());
        if self.has_groups { bits.div_ceil(64) as usize } else { 0 }
    }

    /// Range of the words of the blocks of these groups.
    fn block_words(&self, groups: Range<u32>) -> Range<usize> {
        let word =
            |group: u32| (self.group_words() + (2 * self.bits * group) as usize).min(self.words());
        word(groups.start)..word(groups.end)
    }

    /// Reads the spans of these consecutive groups.
    fn group_spans<R: ReadBounds + ?Sized>(
        &self,
        groups: Range<u32>,
        read: &R,
    ) -> Result<Vec<Span>, R::Error> {
        if !self.has_groups {
            return Ok(vec![self.frame; groups.len()]);
        }
        let width = self.group_bits();
        let bit = |group: u32| 2 * width as usize * group as usize;
        let first = bit(groups.start) / 64;
        let words = read.words(first..bit(groups.end).div_ceil(64))?;
        let span = |group: u32| {
            let at = bit(group) - 64 * first;
            let low = read_bits(&words, at, width);
            let high = read_bits(&words, at + width as usize, width);
            let image = |less| Image(self.frame.low.0.saturating_add(less));
            if low > high { Span::NONE } else { Span { low: image(low), high: image(high) } }
        };
        Ok(groups.map(span).collect())
    }

    /// Keeps those of these blocks that may have an image in this span; no other of them has.
    pub fn narrow<R: ReadBounds + ?Sized>(
        &self,
        wanted: Span,
        blocks: BlockSet,
        read: &R,
    ) -> Result<BlockSet, R::Error> {
        if !self.frame.overlaps(wanted) {
            return Ok(BlockSet::NONE);
        }
        if self.words() == 0 {
            return Ok(blocks);
        }
        let BlockSet::Some(blocks) = blocks else {
            let touched = self.touched(0..self.groups(), wanted, read)?;
            return self.narrow_groups(wanted, touched, |group| self.blocks_of(group), read);
        };
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok(BlockSet::NONE);
        };
        let groups = first / GROUP..last / GROUP + 1;
        // Few blocks among many groups: the spans of the other groups are not worth reading.
        let touched = if blocks.len() < groups.len() / 16 {
            let own = blocks.chunk_by(|a, b| a / GROUP == b / GROUP).map(|some| some[0] / GROUP);
            let mut touched = Vec::new();
            for group in own {
                touched.extend(self.touched(group..group + 1, wanted, read)?);
            }
            touched
        } else {
            self.touched(groups, wanted, read)?
        };
        let of_group = |group: u32| {
            let from = blocks.partition_point(|&block| block / GROUP < group);
            blocks[from..].iter().copied().take_while(move |&block| block / GROUP == group)
        };
        self.narrow_groups(wanted, touched, of_group, read)
    }

    fn blocks_of(&self, group: u32) -> Range<u32> {
        group * GROUP..((group + 1) * GROUP).min(self.blocks)
    }

    /// Finds those of these groups that the span touches.
    fn touched<R: ReadBounds + ?Sized>(
        &self,
        groups: Range<u32>,
        wanted: Span,
        read: &R,
    ) -> Result<Vec<(u32, Span)>, R::Error> {
        let spans = self.group_spans(groups.clone(), read)?;
        Ok(groups.zip(spans).filter(|(_, span)| span.overlaps(wanted)).collect())
    }

    /// Finds the blocks of these groups that the span touches.
    fn narrow_groups<R: ReadBounds + ?Sized, I: Iterator<Item = u32>>(
        &self,
        wanted: Span,
        groups: Vec<(u32, Span)>,
        blocks_of: impl Fn(u32) -> I,
        read: &R,
    ) -> Result<BlockSet, R::Error> {
        let mut found = Vec::new();
        // Consecutive groups are read together.
        for run in groups.chunk_by(|a, b| a.0 + 1 == b.0) {
            let first = run[0].0;
            let words = read.words(self.block_words(first..first + run.len() as u32))?;
            for &(group, span) in run {
                // In the group's numbers: comparing them takes no arithmetic per block.
                let scale = Scale::new(span, self.bits);
                let low = scale.number(wanted.low.max(span.low));
                let high = scale.number(wanted.high.min(span.high));
                for block in blocks_of(group) {
                    let (first_number, last_number) = self.numbers(&words, block - first * GROUP);
                    let is_touched = self.bits == 0
                        || first_number <= last_number
                            && first_number <= high
                            && low <= last_number;
                    if is_touched {
                        found.push(block);
                    }
                }
            }
        }
        let all = found.len() as u64 == u64::from(self.blocks);
        Ok(if all { BlockSet::All } else { BlockSet::Some(found) })
    }

    /// The bounds of a block, counted from the start of these words.
    #[inline]
    fn numbers(&self, words: &[u64], block: u32) -> (u128, u128) {
        let at = 2 * self.bits as usize * block as usize;
        (read_bits(words, at, self.bits), read_bits(words, at + self.bits as usize, self.bits))
    }

    /// Returns the bounds of all blocks, each as narrow as known.
    pub fn spans<R: ReadBounds + ?Sized>(&self, read: &R) -> Result<Vec<Span>, R::Error> {
        let groups = self.group_spans(0..self.groups(), read)?;
        let words = read.words(self.block_words(0..self.groups()))?;
        let span = |block: u32| {
            let group = groups[(block / GROUP) as usize];
            if self.bits == 0 || group.is_empty() {
                return group;
            }
            let (low, high) = self.numbers(&words, block);
            Scale::new(group, self.bits).span(low, high)
        };
        Ok((0..self.blocks).map(span).collect())
    }
}

/// The bounds of a sealed column, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    head: BoundsHead,
    words: Vec<u64>,
}

impl Bounds {
    /// Packs the spans of all blocks. `list_bits` is the size of the column's lists, which limits the size of the
    /// bounds.
    ///
    /// # Panics
    ///
    /// If there are 2^32 blocks or more.
    pub fn pack(spans: &[Span], list_bits: u64) -> Self {
        let union = |spans: &[Span]| spans.iter().fold(Span::NONE, |all, &span| all.with(span));
        let frame = union(spans);
        let groups: Vec<Span> = spans.chunks(GROUP as usize).map(union).collect();
        let blocks = u32::try_from(spans.len()).expect("fewer than 2^32 blocks");
        let mut head =
            BoundsHead { blocks, frame, bits: 0, has_groups: false, is_clustered: false };
        if frame.is_empty() {
            return Self { head, words: Vec::new() };
        }
        head.has_groups = groups.iter().any(|&group| group != frame);
        let has_empty = spans.iter().any(|span| span.is_empty());
        head.is_clustered = mean_share(spans, |_| frame) < 0.5;
        let differ = mean_share(spans, |block| groups[block / GROUP as usize]) < 0.5;
        let useful = groups.iter().map(|group| bits_of(group.width())).max().unwrap_or(0);
        let room = (list_bits / SHARE).saturating_sub(64 * head.group_words() as u64);
        let affordable = (room / (2 * u64::from(blocks))).min(MAX_BITS.into()) as u32;
        let clustered = list_bits / (CLUSTERED_SHARE * 2 * u64::from(blocks));
        let clustered = clustered.min(CLUSTERED_BITS.into()) as u32;
        let wanted = match useful.min(affordable) {
            bits if differ => bits.max(clustered).max(FEWEST_CLUSTERED_BITS),
            bits if bits < MIN_BITS.min(useful) => 0,
            bits => bits,
        };
        head.bits = wanted.min(useful).max(has_empty.into());
        let mut words = vec![0; head.words()];
        head.write(spans, &groups, &mut words);
        Self { head, words }
    }

    /// The facts known without the words.
    pub fn head(&self) -> &BoundsHead {
        &self.head
    }

    /// The words as stored.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// See [`BoundsHead::narrow`].
    pub fn narrow(&self, wanted: Span, blocks: BlockSet) -> BlockSet {
        let Ok(narrowed) = self.head.narrow(wanted, blocks, &self.words[..]);
        narrowed
    }

    /// See [`BoundsHead::spans`].
    pub fn spans(&self) -> Vec<Span> {
        let Ok(spans) = self.head.spans(&self.words[..]);
        spans
    }
}

/// The share of another span that a block covers, averaged over blocks with values.
fn mean_share(spans: &[Span], of: impl Fn(usize) -> Span) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0f64;
    for (block, span) in spans.iter().enumerate().filter(|(_, span)| !span.is_empty()) {
        sum += (span.width() as f64 + 1.0) / (of(block).width() as f64 + 1.0);
        count += 1.0;
    }
    sum / count.max(1.0)
}

impl BoundsHead {
    fn write(&self, spans: &[Span], groups: &[Span], words: &mut [u64]) {
        let (group_part, block_part) = words.split_at_mut(self.group_words());
        if self.has_groups {
            let width = self.group_bits();
            let none = if width == u128::BITS { u128::MAX } else { (1 << width) - 1 };
            for (i, group) in groups.iter().enumerate() {
                let (low, high) = if group.is_empty() {
                    (none, 0)
                } else {
                    (group.low.0 - self.frame.low.0, group.high.0 - self.frame.low.0)
                };
                let at = 2 * width as usize * i;
                put_bits(group_part, at, width, low);
                put_bits(group_part, at + width as usize, width, high);
            }
        }
        for (i, span) in spans.iter().enumerate() {
            let group = groups[i / GROUP as usize];
            let scale = Scale::new(group, self.bits);
            let (low, high) = if span.is_empty() {
                ((1 << self.bits) - 1, 0)
            } else {
                (scale.number(span.low), scale.number(span.high))
            };
            let at = 2 * self.bits as usize * i;
            put_bits(block_part, at, self.bits, low);
            put_bits(block_part, at + self.bits as usize, self.bits, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironbloom::hash::mix64;
    use proptest::prelude::*;

    fn span(low: u128, high: u128) -> Span {
        Span { low: Image(low), high: Image(high) }
    }

    /// Spans of many shapes: ordered or not, narrow or wide, at the extremes, empty.
    fn spans() -> impl Strategy<Value = Vec<Span>> {
        let one = (any::<u64>(), 0u32..128, any::<bool>(), 0u32..12);
        (prop::collection::vec(one, 0..300), 0u32..128, any::<bool>(), any::<u128>()).prop_map(
            |(blocks, scale, sorted, base)| {
                let mut spans: Vec<Span> = blocks
                    .into_iter()
                    .map(|(start, width, high_end, empty)| {
                        if empty == 0 {
                            return Span::NONE;
                        }
                        let start = base.wrapping_add(u128::from(start) << (scale / 2));
                        let width = (u128::from(start as u64) | 1) >> (width % 64) << (scale / 3);
                        let end = start.saturating_add(width);
                        if high_end {
                            span(start, end)
                        } else {
                            span(start / 2, start / 2 + width / 2)
                        }
                    })
                    .collect();
                if sorted {
                    spans.sort_by_key(|span| span.low);
                }
                spans
            },
        )
    }

    proptest! {
        #[test]
        fn no_block_is_lost_and_bounds_only_widen(
            spans in spans(),
            list_bits in prop::sample::select(&[0u64, 500, 10_000, 1 << 40][..]),
            questions in prop::collection::vec((any::<prop::sample::Index>(), 0u128..1000, any::<u64>()), 1..20),
        ) {
            let bounds = Bounds::pack(&spans, list_bits);
            let known = bounds.spans();
            prop_assert_eq!(known.len(), spans.len());
            for (exact, known) in spans.iter().zip(&known) {
                prop_assert!(exact.is_empty() || known.low <= exact.low && exact.high <= known.high);
            }
            let head = BoundsHead::new(bounds.head().code(), bounds.head().frame(), spans.len() as u32);
            prop_assert_eq!(head, Some(*bounds.head()));
            prop_assert_eq!(bounds.words().len(), bounds.head().words());
            for (which, near, width) in questions {
                if spans.is_empty() { continue; }
                let at = spans[which.index(spans.len())].low.0.wrapping_add(near).wrapping_sub(500);
                let wanted = span(at, at.saturating_add(width.into()));
                let touched = |block: &u32| spans[*block as usize].overlaps(wanted);
                let right: Vec<u32> = (0..spans.len() as u32).filter(touched).collect();
                let list = |set| match set {
                    BlockSet::All => (0..spans.len() as u32).collect(),
                    BlockSet::Some(blocks) => blocks,
                };
                let found = list(bounds.narrow(wanted, BlockSet::All));
                prop_assert!(right.iter().all(|block| found.binary_search(block).is_ok()));
                // Lookups of every form must agree with the known spans.
                let said = |block: &u32| known[*block as usize].overlaps(wanted);
                prop_assert!(found.iter().all(said) && found.is_sorted());
                for step in [1, 7, 150] {
                    let some: Vec<u32> = (0..spans.len() as u32).step_by(step).collect();
                    let narrowed = list(bounds.narrow(wanted, BlockSet::Some(some.clone())));
                    let wanted: Vec<u32> = some.into_iter().filter(|block| found.contains(block)).collect();
                    prop_assert_eq!(narrowed, wanted);
                }
            }
        }

        #[test]
        fn bits_come_back_as_they_were_written(
            numbers in prop::collection::vec((any::<u128>(), 0u32..=128), 0..40),
        ) {
            let total: u32 = numbers.iter().map(|(_, width)| width).sum();
            let mut words = vec![0; (total as usize).div_ceil(64)];
            let mut at = 0;
            let low = |number: u128, width: u32| if width == 128 { number } else { number & ((1 << width) - 1) };
            for &(number, width) in &numbers {
                put_bits(&mut words, at, width, low(number, width));
                at += width as usize;
            }
            at = 0;
            for &(number, width) in &numbers {
                prop_assert_eq!(read_bits(&words, at, width), low(number, width));
                at += width as usize;
            }
        }
    }

    fn bits_per_block(bounds: &Bounds, blocks: usize) -> f64 {
        64.0 * bounds.words().len() as f64 / blocks as f64
    }

    const BLOCKS: usize = 20_000;
    const LISTS: u64 = 6_200 * BLOCKS as u64;

    /// The same number of blocks, each of 512 values.
    fn of_values(value: impl Fn(u64) -> u64) -> Vec<Span> {
        let one = |block: u64| {
            let values = (512 * block..512 * (block + 1)).map(&value);
            let (low, high) =
                values.fold((u64::MAX, 0), |(low, high), value| (low.min(value), high.max(value)));
            span(low.into(), high.into())
        };
        (0..BLOCKS as u64).map(one).collect()
    }

    #[test]
    fn in_order_a_value_is_in_one_or_two_blocks() {
        let bounds = Bounds::pack(&of_values(|row| 1_700_000_000_000 + 1000 * row), LISTS);
        assert!(bounds.head().is_clustered());
        assert!(bits_per_block(&bounds, BLOCKS) < 34.0);
        for row in (0..512 * BLOCKS as u64).step_by(7919) {
            let image = Image((1_700_000_000_000 + 1000 * row).into());
            let BlockSet::Some(found) = bounds.narrow(Span::of(image), BlockSet::All) else {
                panic!()
            };
            assert!(found.contains(&((row / 512) as u32)) && found.len() <= 2, "{found:?}");
        }
    }

    #[test]
    fn in_no_order_the_ends_are_still_seen() {
        let bounds = Bounds::pack(&of_values(|row| mix64(row) % 1_000_000), LISTS);
        assert!(!bounds.head().is_clustered());
        let bits = bits_per_block(&bounds, BLOCKS);
        assert!(bits < 0.01 * 6_200.0, "{bits}");
        let found = bounds.narrow(span(0, 9), BlockSet::All);
        let BlockSet::Some(found) = found else { panic!() };
        // A block has one of the ten lowest values of a million with 0.5 %; 64 bounds at most share a unit of 16.
        assert!(found.len() < BLOCKS / 50, "{}", found.len());
    }

    #[test]
    fn few_values_in_no_order_take_nothing() {
        let bounds = Bounds::pack(&of_values(|row| mix64(row) % 3), 5 * BLOCKS as u64);
        assert_eq!(bounds.words().len(), 0);
        let nothing = bounds.narrow(span(3, 9), BlockSet::All);
        assert_eq!(nothing, BlockSet::NONE);
        assert_eq!(bounds.narrow(span(2, 9), BlockSet::All), BlockSet::All);
    }

    #[test]
    fn few_values_in_order_take_a_few_bits() {
        let bounds = Bounds::pack(&of_values(|row| row / 28_000), 6 * BLOCKS as u64);
        let bits = bits_per_block(&bounds, BLOCKS);
        assert!(bits < 6.0, "{bits}");
        let BlockSet::Some(found) = bounds.narrow(span(100, 100), BlockSet::All) else { panic!() };
        assert!(found.len() <= 56, "{}", found.len());
    }

    #[test]
    fn blocks_of_nulls_have_no_value() {
        let some = |block: u32| if block.is_multiple_of(3) { span(7, 7) } else { Span::NONE };
        let bounds = Bounds::pack(&(0..500).map(some).collect::<Vec<_>>(), 0);
        let BlockSet::Some(found) = bounds.narrow(Span::ALL, BlockSet::All) else { panic!() };
        assert_eq!(found, (0..500).step_by(3).collect::<Vec<u32>>());
        let nulls = Bounds::pack(&[Span::NONE; 9], 0);
        assert_eq!(nulls.narrow(Span::ALL, BlockSet::All), BlockSet::NONE);
        assert_eq!(nulls.words().len(), 0);
    }
}
