//! Elias–Fano: an ascending sequence of numbers in 2 + log2(range / count) bits each, with random access.
//!
//! ```text
//! numbers < u, n of them, l = floor(log2(u / n))         here n = 5, u = 40, l = 3
//!
//!   2   3  17  18  33
//!   2   3   1   2   1     low:   the l low bits, side by side
//!   0   0   2   2   4     high:  the rest, in unary: for each number a 1, and a 0 wherever the high part grows by one
//!
//!   1 1 0 0 1 1 0 0 1 0 0        the bit of number i is at (high part) + i; zero number h ends high part h
//! ```
//!
//! All numbers with high part h come after zero number h - 1, so finding the first number from x on takes one
//! `select0(x >> l - 1)`. The position of every 256th zero is stored: a select reads one of these and a few words.

use std::ops::Range;

/// Zeros per sample.
pub(super) const STEP: u64 = 256;

/// Offsets of the arrays of a sequence, in words from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Count of numbers.
    pub(crate) len: u64,
    /// Exclusive upper bound of all numbers.
    pub(crate) universe: u64,
    /// Low bits of a number.
    low_bits: u32,
}

impl Shape {
    pub(crate) fn new(len: u64, universe: u64) -> Self {
        let low_bits = universe.checked_div(len).map_or(0, |ratio| ratio.max(1).ilog2());
        Self { len, universe, low_bits }
    }

    /// Low bits of each number: the cost of a list in this sequence beyond two bits per entry.
    pub(crate) fn low_bits(self) -> u32 {
        self.low_bits
    }

    fn zeros(self) -> u64 {
        if self.len == 0 { 0 } else { (self.universe >> self.low_bits) + 1 }
    }

    /// Samples are 32 bits wide, two per word. Bits of the high part beyond 2^32 would not fit: see [`Shape::fits`].
    pub(super) fn samples(self) -> u64 {
        self.zeros().div_ceil(STEP)
    }

    pub(super) fn high_bits(self) -> u64 {
        self.len + self.zeros()
    }

    /// Returns true if every position fits 32 bits.
    pub(crate) fn fits(self) -> bool {
        self.high_bits() <= u64::from(u32::MAX)
    }

    pub(super) fn sample_words(self) -> usize {
        self.samples().div_ceil(2) as usize
    }

    pub(super) fn high_words(self) -> usize {
        self.high_bits().div_ceil(64) as usize
    }

    /// One more than needed, so that two words can be read wherever a number starts.
    pub(super) fn low_words(self) -> usize {
        let bits = self.len * u64::from(self.low_bits);
        if self.len == 0 { 0 } else { bits.div_ceil(64).max(1) as usize + 1 }
    }

    /// Words of the whole sequence.
    pub(crate) fn words(self) -> usize {
        self.sample_words() + self.high_words() + self.low_words()
    }
}

/// Takes numbers in order, before their count is known, and then writes them as a sequence.
///
/// The number of low bits depends on the count. A guess is nearly always right; if not, everything is encoded again.
/// The numbers of a sequence may come in parts, each with its own writer: several threads can then encode, and the bits
/// of the parts are concatenated.
#[derive(Debug, Default)]
pub(crate) struct SequenceWriter {
    low_bits: u32,
    /// The lowest high part: those of earlier parts are not in these bits.
    base: u64,
    high: Vec<u64>,
    low: Vec<u64>,
    len: u64,
    /// Low bits that do not yet fill a word, and their number.
    pending: u64,
    filled: u32,
}

/// Memory of an encoded part, to be reused for another.
#[derive(Debug, Default)]
pub struct PartMemory {
    high: Vec<u64>,
    low: Vec<u64>,
}

impl PartMemory {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        (size_of::<u64>() * (self.high.capacity() + self.low.capacity())) as u64
    }
}

impl SequenceWriter {
    /// Creates a writer for about `len` numbers from `first` on, as a part of a sequence of about this shape.
    pub(crate) fn new(guess: Shape, first: u64, len: u64, memory: PartMemory) -> Self {
        let low_bits = guess.low_bits;
        let PartMemory { mut high, mut low } = memory;
        high.clear();
        low.clear();
        // The unary part has a one for each number, and one or two zeros.
        high.reserve((3 * len / 64 + 64) as usize);
        low.reserve((len * u64::from(low_bits) / 64 + 2) as usize);
        Self { low_bits, base: first >> low_bits, high, low, ..Self::default() }
    }

    /// Numbers so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Memory in use, in bytes.
    pub(crate) fn held_bytes(&self) -> u64 {
        (size_of::<u64>() * (self.high.len() + self.low.len())) as u64
    }

    /// Appends numbers, none less than the one before. The state stays in registers during the loop: the compiler
    /// cannot know that the arrays do not alias `self`.
    #[inline]
    pub(crate) fn extend(&mut self, numbers: impl Iterator<Item = u64>) {
        let (bits, base) = (self.low_bits, self.base);
        let mask = (1 << bits) - 1;
        let (mut high, mut low) = (std::mem::take(&mut self.high), std::mem::take(&mut self.low));
        let (mut len, mut pending, mut filled) = (self.len, self.pending, self.filled);
        // Not a loop over `next`, which would be called for each number if they are filtered.
        numbers.for_each(|number| {
            let position = (number >> bits) - base + len;
            let word = (position / 64) as usize;
            if word >= high.len() {
                high.resize(word + 64, 0);
            }
            high[word] |= 1 << (position % 64);
            len += 1;
            let bottom = number & mask;
            pending |= bottom << filled;
            filled += bits;
            if filled >= 64 {
                low.push(pending);
                filled -= 64;
                // The bits that did not fit; none if the word ends with the number.
                pending = if filled == 0 { 0 } else { bottom >> (bits - filled) };
            }
        });
        (self.high, self.low) = (high, low);
        (self.len, self.pending, self.filled) = (len, pending, filled);
    }

    /// Writes the sequence of these parts, in order, into [`Shape::words`] zero words. Returns their memory.
    ///
    /// # Panics
    ///
    /// If the shape is for a different number of numbers.
    pub(crate) fn write(parts: Vec<Self>, shape: Shape, words: &mut [u64]) -> Vec<PartMemory> {
        let len: u64 = parts.iter().map(Self::len).sum();
        assert_eq!(len, shape.len, "a shape for as many numbers");
        if parts.iter().any(|part| part.len > 0 && part.low_bits != shape.low_bits) {
            let mut again = Self::new(shape, 0, shape.len, PartMemory::default());
            for mut part in parts {
                part.numbers(|numbers| again.extend(numbers));
            }
            return Self::write(vec![again], shape, words);
        }
        let (samples, rest) = words.split_at_mut(shape.sample_words());
        let (high, low) = rest.split_at_mut(shape.high_words());
        let mut before = 0;
        for part in parts.iter().filter(|part| part.len > 0) {
            put_bits(high, part.base + before, &part.high);
            let bit = before * u64::from(shape.low_bits);
            put_bits(low, bit, &part.low);
            put_bits(low, bit + 64 * part.low.len() as u64, &[part.pending]);
            before += part.len;
        }
        each_sample(shape, high, |i, position| {
            samples[i / 2] |= u64::from(position) << (32 * (i % 2));
        });
        parts.into_iter().map(|Self { high, low, .. }| PartMemory { high, low }).collect()
    }

    /// Passes the numbers to `take` once more. None can be added afterwards.
    fn numbers(&mut self, take: impl FnOnce(&mut dyn Iterator<Item = u64>)) {
        self.low.extend([self.pending, 0]);
        let (universe, low_bits) = (1 << 62, self.low_bits);
        let shape = Shape { len: self.len, universe, low_bits };
        // Samples are only needed to start elsewhere.
        let part = EliasFano { shape, samples: &[], high: &self.high, low: &self.low };
        take(&mut part.range(0..universe).map(|number| number + (self.base << low_bits)));
    }
}

/// Writes a whole sequence of ascending numbers at once, as [`SequenceWriter`] does, into [`Shape::words`] zero words.
pub(super) fn write_whole(numbers: impl Iterator<Item = u64>, shape: Shape, words: &mut [u64]) {
    let (samples, rest) = words.split_at_mut(shape.sample_words());
    let (high, low) = rest.split_at_mut(shape.high_words());
    let bits = shape.low_bits;
    let mask = (1 << bits) - 1;
    let (mut len, mut full, mut pending, mut filled) = (0, 0, 0, 0);
    numbers.for_each(|number| {
        let position = (number >> bits) + len;
        high[(position / 64) as usize] |= 1 << (position % 64);
        len += 1;
        let bottom = number & mask;
        pending |= bottom << filled;
        filled += bits;
        if filled >= 64 {
            low[full] = pending;
            full += 1;
            filled -= 64;
            pending = if filled == 0 { 0 } else { bottom >> (bits - filled) };
        }
    });
    assert_eq!(len, shape.len, "a shape for as many numbers");
    if filled > 0 {
        low[full] = pending;
    }
    each_sample(shape, high, |i, position| {
        samples[i / 2] |= u64::from(position) << (32 * (i % 2));
    });
}

/// Copies the bits set in `from` into `to`, starting at this bit.
fn put_bits(to: &mut [u64], bit: u64, from: &[u64]) {
    let (first, shift) = ((bit / 64) as usize, bit % 64);
    let mut carry = 0;
    // The last words of `from` may be zeros that have no place.
    for (place, &word) in (first..).zip(from.iter().chain(&[0])) {
        let both = word << shift | carry;
        carry = if shift == 0 { 0 } else { word >> (64 - shift) };
        match to.get_mut(place) {
            Some(to) => *to |= both,
            None => assert_eq!(both, 0, "a place for every bit"),
        }
    }
}

/// Finds zero number 0, 256, 512, …
fn each_sample(shape: Shape, high: &[u64], mut found: impl FnMut(usize, u32)) {
    let (mut seen, mut next) = (0, 0);
    for (i, &word) in high.iter().enumerate() {
        let zeros = u64::from(word.count_zeros());
        while next < seen + zeros && next < shape.zeros() {
            let bit = select(!word, (next - seen) as u32);
            found((next / STEP) as usize, (64 * i) as u32 + bit);
            next += STEP;
        }
        seen += zeros;
    }
}

/// Returns the position of one number `rank` (from 0) in a word that has more ones than that.
#[inline]
fn select(mut word: u64, mut rank: u32) -> u32 {
    let mut base = 0;
    for width in [32, 16, 8] {
        let below = (word & ((1 << width) - 1)).count_ones();
        if rank >= below {
            rank -= below;
            word >>= width;
            base += width;
        }
    }
    for _ in 0..rank {
        word &= word - 1;
    }
    base + word.trailing_zeros()
}

/// A sequence to read from.
#[derive(Clone, Copy)]
pub(crate) struct EliasFano<'a> {
    shape: Shape,
    samples: &'a [u64],
    high: &'a [u64],
    low: &'a [u64],
}

impl<'a> EliasFano<'a> {
    /// The words are those of a [`SequenceWriter`] of the same shape, or come from a file and passed
    /// [`is_sound`](Self::is_sound).
    #[inline]
    pub(crate) fn new(shape: Shape, words: &'a [u64]) -> Self {
        let (samples, rest) = words.split_at(shape.sample_words());
        let (high, low) = rest.split_at(shape.high_words());
        Self { shape, samples, high, low }
    }

    /// Returns true if the counts of ones and zeros are right and the samples match. No read can then go out of bounds.
    pub(crate) fn is_sound(self) -> bool {
        let ones: u64 = self.high.iter().map(|word| u64::from(word.count_ones())).sum();
        // The last number's bit must lie before the end of the unary part, not in the padding of the last word.
        let used = self.shape.high_bits() % 64;
        let tail = self.high.last().map_or(0, |last| if used == 0 { 0 } else { last >> used });
        let mut samples = vec![0; self.samples.len()];
        each_sample(self.shape, self.high, |i, position| {
            samples[i / 2] |= u64::from(position) << (32 * (i % 2));
        });
        ones == self.shape.len && tail == 0 && samples == self.samples
    }

    /// Returns the position of the last sampled zero at or before number `rank`.
    #[inline]
    fn sample(&self, rank: u64) -> u64 {
        let sample = (rank / STEP) as usize;
        self.samples[sample / 2] >> (32 * (sample % 2)) & u64::from(u32::MAX)
    }

    /// Reads what a search for this number waits for first.
    #[inline]
    pub(crate) fn touch_sample(&self, number: u64) -> u64 {
        if self.shape.len == 0 { 0 } else { self.sample(number >> self.shape.low_bits) }
    }

    /// Reads what it waits for next: the zero's position if ones and zeros alternate, as they nearly do, and the low
    /// bits of the number there. (Prefetching more of a long list made no difference.)
    #[inline]
    pub(crate) fn touch_number(&self, number: u64) -> u64 {
        let bits = u64::from(self.shape.low_bits);
        let rank = number >> bits;
        let place = self.touch_sample(number) + 2 * (rank % STEP);
        let low = place.saturating_sub(rank) * bits;
        let read = |words: &[u64], bit: u64| words.get((bit / 64) as usize).copied().unwrap_or(0);
        read(self.high, place) ^ read(self.low, low)
    }

    /// Returns the position of zero number `rank`.
    #[inline]
    fn select0(&self, rank: u64) -> u64 {
        let position = self.sample(rank);
        let mut left = (rank % STEP) as u32;
        let mut word = (position / 64) as usize;
        let mut zeros = !self.high[word] & (u64::MAX << (position % 64));
        loop {
            let count = zeros.count_ones();
            if left < count {
                return 64 * word as u64 + u64::from(select(zeros, left));
            }
            left -= count;
            word += 1;
            zeros = !self.high[word];
        }
    }

    #[inline]
    fn low(&self, index: u64) -> u64 {
        let bits = self.shape.low_bits;
        let bit = index * u64::from(bits);
        let (word, shift) = ((bit / 64) as usize, bit % 64);
        let pair = self.low[word] >> shift | (self.low[word + 1] << 1) << (63 - shift);
        pair & ((1 << bits) - 1)
    }

    /// Returns the numbers in this range, in order.
    #[inline]
    pub(crate) fn range(self, range: Range<u64>) -> Cursor<'a> {
        let mut cursor = Cursor {
            sequence: self,
            index: 0,
            word: 0,
            ones: 0,
            start: range.start,
            end: range.end,
        };
        if self.shape.len == 0 || range.start >= range.end.min(self.shape.universe) {
            cursor.end = 0;
            return cursor;
        }
        cursor.jump(range.start);
        cursor
    }

    /// All numbers, in order.
    #[cfg(test)]
    pub(crate) fn iter(self) -> Cursor<'a> {
        self.range(0..self.shape.universe)
    }
}

/// A position in a sequence. Yields numbers in order and can skip ahead.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    sequence: EliasFano<'a>,
    /// Count of numbers before the next one.
    index: u64,
    /// The current word of the high part, and its remaining ones.
    word: usize,
    ones: u64,
    /// Numbers below `start` are skipped; iteration stops at `end`.
    start: u64,
    end: u64,
}

/// A skip costs a select: about as much as reading this many numbers.
const LEAP: u64 = 16;

impl Cursor<'_> {
    /// Moves to the first number with the high part of `target`.
    #[inline]
    fn jump(&mut self, target: u64) {
        let high = target >> self.sequence.shape.low_bits;
        let position = if high == 0 { 0 } else { self.sequence.select0(high - 1) + 1 };
        self.index = position - high;
        self.word = (position / 64) as usize;
        // Nothing follows the last zero, perhaps not even a word.
        let word = self.sequence.high.get(self.word).copied().unwrap_or(0);
        self.ones = word & (u64::MAX << (position % 64));
    }

    /// Skips all numbers less than `target`, if it is ahead.
    #[inline]
    pub(crate) fn seek(&mut self, target: u64) {
        if target <= self.start {
            return;
        }
        self.start = target;
        let ahead = (target >> self.sequence.shape.low_bits).saturating_sub(self.high());
        if target < self.end.min(self.sequence.shape.universe) && ahead > LEAP {
            self.jump(target);
        }
    }

    /// High part of this position: remaining numbers are not below it, earlier ones not above.
    #[inline]
    fn high(&self) -> u64 {
        let bit = u64::from(self.ones.trailing_zeros());
        64 * self.word as u64 + bit - self.index
    }

    /// Calls back with all remaining numbers, several at a time, each reduced by `first`, a lower bound that brings
    /// them into 32 bits.
    #[inline]
    pub(crate) fn each_some(mut self, first: u64, mut call: impl FnMut(&[u32])) {
        let Some(number) = self.next() else { return };
        // The state is in registers; numbers come by the word of the high part.
        let mut some = [(number - first) as u32; 64];
        let mut count = 1;
        let Self { sequence, mut index, word, mut ones, start, end } = self;
        let mut words = sequence.high[word..].iter().skip(1);
        let mut base = 64 * word as u64;
        loop {
            while ones != 0 {
                let high = base + u64::from(ones.trailing_zeros()) - index;
                let number = high << sequence.shape.low_bits | sequence.low(index);
                if number >= end {
                    return call(&some[..count]);
                }
                some[count] = (number.wrapping_sub(first)) as u32;
                // Always true, unless the low bits were forged.
                count += usize::from(number >= start);
                ones &= ones - 1;
                index += 1;
            }
            call(&some[..count]);
            count = 0;
            let Some(&next) = words.next() else { return };
            ones = next;
            base += 64;
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.end == 0 {
            return None;
        }
        loop {
            while self.ones == 0 {
                self.word += 1;
                match self.sequence.high.get(self.word) {
                    Some(&ones) => self.ones = ones,
                    None => {
                        self.end = 0;
                        return None;
                    }
                }
            }
            let position = 64 * self.word as u64 + u64::from(self.ones.trailing_zeros());
            let bits = self.sequence.shape.low_bits;
            let number = (position - self.index) << bits | self.sequence.low(self.index);
            if number >= self.end {
                self.end = 0;
                return None;
            }
            self.ones &= self.ones - 1;
            self.index += 1;
            if number >= self.start {
                return Some(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(numbers: &[u64], universe: u64) -> (Shape, Vec<u64>) {
        encode_guessing(numbers, universe, numbers.len() as u64)
    }

    /// Dirty memory: its old content must not show.
    fn used() -> PartMemory {
        PartMemory { high: vec![u64::MAX; 100], low: vec![u64::MAX; 100] }
    }

    /// Encodes with a guess of the count.
    fn encode_guessing(numbers: &[u64], universe: u64, guess: u64) -> (Shape, Vec<u64>) {
        let shape = Shape::new(numbers.len() as u64, universe);
        let mut words = vec![0; shape.words()];
        let mut writer = SequenceWriter::new(Shape::new(guess, universe), 0, guess, used());
        let (some, others) = numbers.split_at(numbers.len() / 3);
        writer.extend(some.iter().copied());
        writer.extend(others.iter().copied());
        assert_eq!(writer.len(), numbers.len() as u64);
        SequenceWriter::write(vec![writer], shape, &mut words);
        (shape, words)
    }

    proptest! {
        #[test]
        fn a_range_reads_what_was_written_there(
            mut numbers in prop::collection::vec(0u64..5_000, 0..600),
            universe in prop_oneof![Just(5_000u64), Just(1 << 20), Just(1 << 45)],
            (low, high) in (0u64..6_000, 0u64..6_000),
            stretch in any::<bool>(),
        ) {
            let factor = if stretch { universe / 5_000 } else { 1 };
            numbers.iter_mut().for_each(|number| *number *= factor);
            numbers.sort_unstable();
            let (shape, words) = encode(&numbers, universe);
            let sequence = EliasFano::new(shape, &words);
            prop_assert!(sequence.is_sound());
            prop_assert_eq!(sequence.iter().collect::<Vec<_>>(), numbers.clone());
            let range = low * factor..high * factor;
            let expected: Vec<u64> =
                numbers.iter().copied().filter(|number| range.contains(number)).collect();
            prop_assert_eq!(sequence.range(range.clone()).collect::<Vec<_>>(), expected.clone());
            let mut some = Vec::new();
            let first = expected.first().copied().unwrap_or(0);
            sequence.range(range).each_some(first, |numbers| some.extend_from_slice(numbers));
            let expected: Vec<u32> = expected.iter().map(|number| (number - first) as u32).collect();
            prop_assert_eq!(some, expected);
        }

        #[test]
        fn a_wrong_guess_changes_nothing(
            mut numbers in prop::collection::vec(0u64..100_000, 1..600),
            guess in 1u64..100_000,
        ) {
            numbers.sort_unstable();
            prop_assert_eq!(encode_guessing(&numbers, 100_000, guess), encode(&numbers, 100_000));
        }

        /// Wherever it is cut, and whatever the guess was.
        #[test]
        fn parts_make_the_same_sequence(
            mut numbers in prop::collection::vec(0u64..100_000, 1..600),
            mut cuts in prop::collection::vec(0u64..100_000, 0..6),
            guess in prop_oneof![Just(0u64), 1u64..100_000],
        ) {
            numbers.sort_unstable();
            cuts.extend([0, 100_000]);
            cuts.sort_unstable();
            let shape = Shape::new(numbers.len() as u64, 100_000);
            let guess = if guess == 0 { shape } else { Shape::new(guess, 100_000) };
            let part = |cut: &[u64]| {
                let mut writer = SequenceWriter::new(guess, cut[0], 10, used());
                let inside = |number: &u64| (cut[0]..cut[1]).contains(number);
                writer.extend(numbers.iter().copied().filter(inside));
                writer
            };
            let mut words = vec![0; shape.words()];
            SequenceWriter::write(cuts.windows(2).map(part).collect(), shape, &mut words);
            prop_assert_eq!((shape, words), encode(&numbers, 100_000));
        }

        #[test]
        fn seeking_finds_the_next_number_not_less(
            mut numbers in prop::collection::vec(0u64..100_000, 1..600),
            mut targets in prop::collection::vec(0u64..100_000, 1..20),
        ) {
            numbers.sort_unstable();
            targets.sort_unstable();
            let (shape, words) = encode(&numbers, 100_000);
            let mut cursor = EliasFano::new(shape, &words).iter();
            let mut rest = &numbers[..];
            for target in targets {
                cursor.seek(target);
                rest = &rest[rest.partition_point(|&number| number < target)..];
                prop_assert_eq!(cursor.next(), rest.first().copied());
                rest = rest.get(1..).unwrap_or(&[]);
            }
        }
    }

    #[test]
    fn ten_bits_apart_a_number_takes_twelve_and_an_eighth() {
        let numbers: Vec<u64> = (0..100_000u64).map(|i| i * 1024 + i % 1024).collect();
        let (shape, words) = encode(&numbers, 100_000 * 1024);
        let bits = 64.0 * words.len() as f64 / numbers.len() as f64;
        assert_eq!(shape.low_bits(), 10);
        assert!((12.12..12.14).contains(&bits), "{bits}");
    }

    #[test]
    fn a_wrong_bit_in_the_high_part_or_the_samples_is_seen() {
        let numbers: Vec<u64> = (0..1000u64).map(|i| i * 37).collect();
        let (shape, words) = encode(&numbers, 37_000);
        for bit in 0..64 * (shape.sample_words() + shape.high_words()) {
            let mut damaged = words.clone();
            damaged[bit / 64] ^= 1 << (bit % 64);
            assert!(!EliasFano::new(shape, &damaged).is_sound(), "bit {bit}");
        }
    }
}
