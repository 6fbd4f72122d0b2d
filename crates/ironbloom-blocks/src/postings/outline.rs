//! Lists of postings that are not in memory: only the words that a list needs are read.
//!
//! ```text
//! head ──► where everything is            16 words, read once
//! keys ──► the words around a key's expected position
//! list ──► two samples ──► the words of the high and of the low parts between them
//! ```
//!
//! Unlike [`Postings::from_words`](super::Postings::from_words), this does not check the whole sequence first. So
//! everything the words say is checked against the bounds that follow from the head, and anything outside them is an
//! error.

use std::ops::Range;

use super::elias_fano::{STEP, Shape};
use super::{HEADER_WORDS, Head, List, Nulls, key};
use crate::block_set::each_bit;

/// The words of postings, in a file or elsewhere.
pub trait ReadWords {
    /// The reason why words could not be read.
    type Error;

    /// Reads these words, as they were written.
    fn words(&self, range: Range<usize>) -> Result<Vec<u64>, Self::Error>;

    /// Announces that these will be read. Where reads are slow, they can be fetched together.
    fn prepare(&self, ranges: &[Range<usize>]) -> Result<(), Self::Error> {
        let _ = ranges;
        Ok(())
    }

    /// The error for words that cannot have been written.
    fn invalid(&self) -> Self::Error;
}

/// The contents of the first words of postings, which determine the words that a list needs.
#[derive(Clone, Copy, Debug)]
pub struct Outline {
    head: Head,
    shape: Shape,
}

impl Outline {
    /// Reads the outline of postings of `len` words for `blocks` blocks.
    pub fn read<R: ReadWords>(words: &R, len: usize, blocks: u32) -> Result<Self, R::Error> {
        if len < HEADER_WORDS {
            return Err(words.invalid());
        }
        let head = Head::read(&words.words(0..HEADER_WORDS)?, len);
        match head.filter(|head| head.blocks == blocks && head.words() == len) {
            Some(head) => Ok(Self { head, shape: head.shape() }),
            None => Err(words.invalid()),
        }
    }

    /// Returns the blocks that may hold a value with this fingerprint; no other block does.
    pub fn list<R: ReadWords>(&self, print: u32, words: &R) -> Result<List<'static>, R::Error> {
        let head = &self.head;
        words.prepare(&self.first_words(print))?;
        if let Some(rank) = find_key(words, head.dense_words(), head.dense, print)? {
            return self.bitmap(rank, words);
        }
        if let Some(rank) = find_key(words, head.private_words(), head.private, print)? {
            return self.sequence_list(head.buckets() + rank as u64, words);
        }
        match head.bucket_bits {
            Some(bits) => self.sequence_list(u64::from(print) >> (32 - bits), words),
            None => Ok(List::Empty),
        }
    }

    /// The words read first for a fingerprint: keys near its expected position, and samples of its bucket.
    fn first_words(&self, print: u32) -> [Range<usize>; 3] {
        let head = &self.head;
        let keys = |words: Range<usize>, len: usize| match len {
            0 => 0..0,
            _ => key_words(&words, &key_window(len, print, FIRST_REACH)),
        };
        let samples = match head.bucket_bits {
            Some(bits) if self.shape.len > 0 && head.blocks > 0 => {
                let list = u64::from(print) >> (32 - bits);
                let blocks = u64::from(head.blocks);
                let start = head.sequence().start;
                Samples::of(self.shape, &(list * blocks..(list + 1) * blocks)).words(start)
            }
            _ => 0..0,
        };
        [keys(head.dense_words(), head.dense), keys(head.private_words(), head.private), samples]
    }

    /// Returns the blocks that hold nulls.
    pub fn nulls<R: ReadWords>(&self, words: &R) -> Result<List<'static>, R::Error> {
        match self.head.nulls {
            Nulls::None => Ok(List::Empty),
            Nulls::Bitmap => self.bitmap(self.head.dense, words),
            Nulls::List => {
                self.sequence_list(self.head.buckets() + self.head.private as u64, words)
            }
        }
    }

    fn bitmap<R: ReadWords>(&self, number: usize, words: &R) -> Result<List<'static>, R::Error> {
        let mut blocks = Vec::new();
        each_bit(&words.words(self.head.bitmap(number))?, |block| blocks.push(block));
        match blocks.last() {
            Some(&last) if last >= self.head.blocks => Err(words.invalid()),
            _ => Ok(List::Blocks(blocks)),
        }
    }

    /// Reads list number `list` of the sequence.
    fn sequence_list<R: ReadWords>(&self, list: u64, words: &R) -> Result<List<'static>, R::Error> {
        let blocks = u64::from(self.head.blocks);
        let range = list * blocks..(list + 1) * blocks;
        if self.shape.len == 0 || blocks == 0 {
            return Ok(List::Empty);
        }
        let window = Window::find(self.shape, self.head.sequence().start, &range, words)?;
        let blocks = window.numbers(&range).ok_or_else(|| words.invalid())?;
        Ok(List::Blocks(blocks))
    }
}

/// Number of keys read first on either side of a key's expected position.
const FIRST_REACH: usize = 256;

/// Range of keys to look at. Fingerprints are spread evenly: near the interpolated position, unless there are few.
fn key_window(len: usize, wanted: u32, reach: usize) -> Range<usize> {
    let guess = ((u64::from(wanted) * len as u64) >> 32) as usize;
    guess.saturating_sub(reach) / 2 * 2..guess.saturating_add(reach).min(len)
}

/// The words that hold these keys, in an array at these words.
fn key_words(array: &Range<usize>, keys: &Range<usize>) -> Range<usize> {
    array.start + keys.start / 2..array.start + keys.end.div_ceil(2)
}

/// The samples before and after the numbers of a range.
struct Samples {
    shape: Shape,
    /// The high part of the first number.
    first: u64,
    from: u64,
    to: u64,
}

impl Samples {
    fn of(shape: Shape, range: &Range<u64>) -> Self {
        let (first, last) = (range.start >> shape.low_bits(), (range.end - 1) >> shape.low_bits());
        // Numbers with high part h come after zero number h - 1, and before zero number h.
        Self { shape, first, from: first.saturating_sub(1) / STEP, to: last / STEP + 1 }
    }

    /// Range of their words, in a sequence that starts here.
    fn words(&self, start: usize) -> Range<usize> {
        let end = (self.to / 2 + 1).min(self.shape.sample_words() as u64);
        start + (self.from / 2) as usize..start + end as usize
    }
}

/// Finds the position of a key among `len` ascending ones in these words.
fn find_key<R: ReadWords>(
    words: &R,
    range: Range<usize>,
    len: usize,
    wanted: u32,
) -> Result<Option<usize>, R::Error> {
    if len == 0 {
        return Ok(None);
    }
    let mut reach = FIRST_REACH;
    loop {
        let Range { start: first, end } = key_window(len, wanted, reach);
        let held = words.words(key_words(&range, &(first..end)))?;
        let at = |place: usize| key(&held, place - first);
        let is_below = first > 0 && at(first) > wanted;
        let is_above = end < len && at(end - 1) < wanted;
        if is_below || is_above {
            reach *= 8;
            continue;
        }
        let (mut low, mut high) = (first, end);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if at(middle) <= wanted { low = middle } else { high = middle }
        }
        return Ok((at(low) == wanted).then_some(low));
    }
}

/// The words of a sequence that hold the numbers of a range.
struct Window {
    shape: Shape,
    /// Bits of the high part, and the words that hold them.
    bits: Range<u64>,
    high: Vec<u64>,
    /// Numbers that these bits stand for, and the words of their low parts from `low_start` on.
    indices: Range<u64>,
    low: Vec<u64>,
    low_start: u64,
}

impl Window {
    fn find<R: ReadWords>(
        shape: Shape,
        start: usize,
        range: &Range<u64>,
        words: &R,
    ) -> Result<Self, R::Error> {
        let samples = Samples::of(shape, range);
        let held = words.words(samples.words(start))?;
        let Samples { first, from, to, .. } = samples;
        let sample = |number: u64| {
            let word = held[(number / 2 - from / 2) as usize];
            word >> (32 * (number % 2)) & u64::from(u32::MAX)
        };
        let (bit, index) = match first {
            0 => (0, Some(0)),
            _ => (sample(from), sample(from).checked_sub(from * STEP)),
        };
        let (end_bit, end_index) = if to < shape.samples() {
            (sample(to), sample(to).checked_sub(to * STEP))
        } else {
            (shape.high_bits(), Some(shape.len))
        };
        let (Some(index), Some(end_index)) = (index, end_index) else {
            return Err(words.invalid());
        };
        if bit > end_bit
            || end_bit > shape.high_bits()
            || index > end_index
            || end_index > shape.len
        {
            return Err(words.invalid());
        }
        let high_at = start + shape.sample_words();
        let high = (bit / 64) as usize..end_bit.div_ceil(64) as usize;
        let low_at = high_at + shape.high_words();
        let low_bit = |index: u64| index * u64::from(shape.low_bits());
        let low_start = low_bit(index) / 64;
        let low_end = (low_bit(end_index) / 64 + 2).min(shape.low_words() as u64);
        let high = high_at + high.start..high_at + high.end;
        let low = low_at + low_start as usize..low_at + low_end as usize;
        words.prepare(&[high.clone(), low.clone()])?;
        Ok(Self {
            shape,
            bits: bit..end_bit,
            high: words.words(high)?,
            indices: index..end_index,
            low: words.words(low)?,
            low_start,
        })
    }

    fn low(&self, index: u64) -> u64 {
        let bits = self.shape.low_bits();
        let bit = index * u64::from(bits) - 64 * self.low_start;
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        let pair = self.low[word] >> shift | (self.low[word + 1] << 1) << (63 - shift);
        pair & ((1 << bits) - 1)
    }

    /// Returns the numbers of the range, each relative to its start. `None` if they do not ascend, or are more than
    /// possible.
    fn numbers(&self, range: &Range<u64>) -> Option<Vec<u32>> {
        let mut numbers = Vec::new();
        let mut index = self.indices.start;
        let mut base = self.bits.start / 64 * 64;
        for &word in &self.high {
            let mut ones = word;
            if base < self.bits.start {
                ones &= u64::MAX << (self.bits.start - base);
            }
            if base + 64 > self.bits.end {
                ones &= !(u64::MAX << (self.bits.end - base));
            }
            while ones != 0 {
                if index == self.indices.end {
                    return None;
                }
                let position = base + u64::from(ones.trailing_zeros());
                let number = (position - index) << self.shape.low_bits() | self.low(index);
                if range.contains(&number) {
                    numbers.push((number - range.start) as u32);
                }
                ones &= ones - 1;
                index += 1;
            }
            base += 64;
        }
        numbers.is_sorted_by(|a, b| a < b).then_some(numbers)
    }
}
