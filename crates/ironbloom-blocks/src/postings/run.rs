//! Ascending numbers in a fixed number of words: the content of a database page, readable without any other page.
//!
//! ```text
//! numbers ──► fit: how many have room ──► write ──► words, and a head: first number, last number, how many
//! ```
//!
//! Each run has its own number of low bits, which follows from its head. So a run of a dense list takes two bits per
//! number, and one of sparse lists takes what they need.

use std::ops::Range;

use super::elias_fano::{EliasFano, Shape, write_whole};

/// The data needed to read a run, besides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Count of numbers.
    pub len: u64,
}

impl RunHead {
    /// Describes these ascending numbers. There must be at least one.
    pub fn of(numbers: &[u64]) -> Self {
        Self { first: numbers[0], last: numbers[numbers.len() - 1], len: numbers.len() as u64 }
    }

    /// Numbers just less than a power of two apart get one more low bit: the size is the same, but with half the
    /// samples.
    fn shape(self) -> Shape {
        let range = self.last - self.first + 1;
        let low_bits = ((range + range / 64) / self.len).max(1).ilog2();
        Shape::new(self.len, range.max(self.len << low_bits))
    }

    /// Number of words that its numbers take.
    pub fn words(self) -> usize {
        self.shape().words()
    }
}

/// Counts how many of these ascending numbers, from the first on, fit into this number of words. At least one if there
/// are four words.
pub fn fit(numbers: &[u64], words: usize) -> usize {
    let fits = |len: usize| RunHead::of(&numbers[..len]).words() <= words;
    if numbers.is_empty() || !fits(1) {
        return 0;
    }
    // A number takes at least a bit and a half.
    let (mut fitting, mut beyond) = (1, numbers.len().min(words * 43) + 1);
    while beyond - fitting > 1 {
        let middle = fitting.midpoint(beyond);
        if fits(middle) { fitting = middle } else { beyond = middle }
    }
    fitting
}

/// Writes numbers that [`fit`] into words that are zero.
pub fn write(numbers: &[u64], words: &mut [u64]) -> RunHead {
    let head = RunHead::of(numbers);
    let shape = head.shape();
    let from_first = numbers.iter().map(|number| number - head.first);
    write_whole(from_first, shape, &mut words[..shape.words()]);
    head
}

/// A run to read from.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    head: RunHead,
    sequence: EliasFano<'a>,
}

impl<'a> Run<'a> {
    /// Opens a run; `None` if the head is invalid or asks for more words than there are.
    #[inline]
    pub fn new(head: RunHead, words: &'a [u64]) -> Option<Self> {
        // Every number takes at least a bit: larger lengths are invalid, and products of smaller ones fit 64 bits.
        let most = words.len() as u64 * 64;
        if head.len == 0 || head.len > most || head.last < head.first || head.last >> 62 != 0 {
            return None;
        }
        let shape = head.shape();
        let words = words.get(..shape.words())?;
        Some(Self { head, sequence: EliasFano::new(shape, words) })
    }

    /// Returns true if no read can go out of bounds, and first and last number agree with the head. For words without a
    /// verified checksum, or to be certain.
    pub fn is_sound(self) -> bool {
        let ends = || {
            let mut numbers = self.numbers(0..u64::MAX);
            numbers.next() == Some(self.head.first)
                && numbers.last().unwrap_or(self.head.first) == self.head.last
        };
        self.sequence.is_sound() && ends()
    }

    /// Returns the numbers in this range, in order.
    #[inline]
    pub fn numbers(self, range: Range<u64>) -> impl Iterator<Item = u64> + 'a {
        let first = self.head.first;
        let end = range.end.min(self.head.last + 1).saturating_sub(first);
        let start = range.start.saturating_sub(first);
        self.sequence.range(start..end).map(move |number| number + first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postings::elias_fano::{PartMemory, SequenceWriter};
    use proptest::prelude::*;

    /// The same words by the writer of sequences that come in parts.
    fn in_parts(numbers: &[u64], words: usize) -> Vec<u64> {
        let head = RunHead::of(numbers);
        let mut writer = SequenceWriter::new(head.shape(), 0, head.len, PartMemory::default());
        writer.extend(numbers.iter().map(|number| number - head.first));
        let mut page = vec![0; words];
        SequenceWriter::write(vec![writer], head.shape(), &mut page[..head.words()]);
        page
    }

    fn ascending(step: u64) -> impl Strategy<Value = Vec<u64>> {
        let numbers = prop::collection::vec(1..=step, 1..3_000);
        (0..1u64 << 60, numbers).prop_map(|(first, steps)| {
            steps
                .into_iter()
                .scan(first, |at, step| Some(std::mem::replace(at, *at + step)))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn runs_hold_all_numbers_in_the_words_they_have(
            numbers in prop_oneof![ascending(1), ascending(3), ascending(1000), ascending(1 << 40)],
            words in prop_oneof![Just(4usize), 5usize..40, 900usize..1020],
            (low, high) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let range = numbers[low.index(numbers.len())]..numbers[high.index(numbers.len())];
            let mut rest = &numbers[..];
            let (mut all, mut some) = (Vec::new(), Vec::new());
            while !rest.is_empty() {
                let len = fit(rest, words);
                prop_assert!(len > 0);
                let mut page = vec![0; words];
                let head = write(&rest[..len], &mut page);
                prop_assert_eq!(head, RunHead::of(&rest[..len]));
                prop_assert_eq!(&page, &in_parts(&rest[..len], words));
                let run = Run::new(head, &page).unwrap();
                prop_assert!(run.is_sound());
                all.extend(run.numbers(0..u64::MAX));
                some.extend(run.numbers(range.clone()));
                rest = &rest[len..];
            }
            prop_assert_eq!(&all, &numbers);
            let expected: Vec<u64> = numbers.iter().copied().filter(|number| range.contains(number)).collect();
            prop_assert_eq!(some, expected);
        }

        #[test]
        fn heads_that_lie_are_refused_or_read_within_bounds(
            numbers in ascending(1000),
            (first, last, len) in (0u64..1 << 62, any::<u64>(), prop_oneof![0u64..100_000, any::<u64>()]),
        ) {
            let mut page = vec![0; 1015];
            let head = write(&numbers[..fit(&numbers, 1015)], &mut page);
            for lie in [RunHead { first, ..head }, RunHead { last, ..head }, RunHead { len, ..head }] {
                if let Some(run) = Run::new(lie, &page) && lie != head {
                    prop_assert!(!run.is_sound() || lie.first != head.first);
                }
            }
        }
    }

    #[test]
    fn a_page_of_8144_bytes_holds_5340_numbers_that_are_1024_apart() {
        let numbers: Vec<u64> = (0..20_000).map(|i| i * 1024 + i % 7).collect();
        let fitting = fit(&numbers, 1015);
        assert!((5_330..5_350).contains(&fitting), "{fitting}");
    }
}
