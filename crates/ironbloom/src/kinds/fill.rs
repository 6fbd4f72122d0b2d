//! Fill and rate of a filter, counted in steps: for programs that a large filter must not hold up, such as a server
//! between two commands.
//!
//! ```text
//! stage 0 [words ──►              ]   stage 1 […]   …        a filter that does not grow is one stage
//!               ▲ word: next to be counted          ones: of each section (slice of a probe or generation) before it
//! ```
//!
//! Counts are added in the order of the words however long the steps are, so the result is the same to the last digit. Between
//! two steps the filter may take keys and grow: each word counts as it was when it was passed.

use std::ops::Range;

use crate::bits::count_ones_in;
use crate::kernel;

/// The fill of a filter, or of one of its stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Number of bits.
    pub bits: u64,
    /// Number of bits that are set.
    pub ones: u64,
    /// The resulting rate.
    pub rate: f64,
}

impl Fill {
    /// Fraction of the bits that are set.
    pub fn share(&self) -> f64 {
        self.ones as f64 / self.bits as f64
    }
}

/// The progress of a count in steps. [`default`](Self::default) is the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FillProgress {
    /// The next word of the stage being counted.
    word: usize,
    /// Number of set bits in the words before it, for each section of the stage.
    ones: Vec<u64>,
    /// Sum of the rates of the blocks before it.
    rates: f64,
    /// The stages already counted.
    stages: Vec<Fill>,
}

impl FillProgress {
    /// Performs all steps at once.
    pub fn at_once(step: impl Fn(&mut Self, usize) -> Option<Fill>) -> Fill {
        let mut progress = Self::default();
        loop {
            if let Some(fill) = step(&mut progress, usize::MAX) {
                return fill;
            }
        }
    }

    /// Performs a step in a filter of one stage, which `count` counts unless it is already done.
    pub(crate) fn only_stage(&mut self, count: impl FnOnce(&mut Self)) -> Option<Fill> {
        if self.stages.is_empty() {
            count(self);
        }
        self.stages.first().copied()
    }

    /// The stages already counted.
    pub fn stages(&self) -> &[Fill] {
        &self.stages
    }

    /// Counts the next words of a stage that is one array, at most `most_words`. At its end, returns the number of
    /// ones.
    pub fn count_array(&mut self, array: &[u8], most_words: usize) -> Option<u64> {
        let words = self.next(array.len().div_ceil(8), most_words);
        // The last word may be shorter than eight bytes.
        let [start, end] = [words.start, words.end].map(|word| (8 * word).min(array.len()));
        self.ones.resize(1, 0);
        self.ones[0] += kernel::count_ones(&array[start..end]);
        (end == array.len()).then(|| self.ones[0])
    }

    /// Counts the next words of a stage of sections of equal length, the first at bit 0. At its end, returns the ones
    /// of each.
    pub(crate) fn count_sections(
        &mut self,
        words: &[u64],
        section_bits: u64,
        sections: u32,
        most_words: usize,
    ) -> Option<&[u64]> {
        let bits = u64::from(sections) * section_bits;
        let total = bits.div_ceil(64) as usize;
        let next = self.next(total, most_words);
        let (from, to) = (64 * next.start as u64, (64 * next.end as u64).min(bits));
        self.ones.resize(sections as usize, 0);
        for (section, ones) in self.ones.iter_mut().enumerate() {
            let start = section as u64 * section_bits;
            *ones += count_ones_in(words, from.max(start), to.min(start + section_bits));
        }
        (next.end == total).then_some(&self.ones)
    }

    /// Counts the next blocks of a stage, where `tally` returns the ones of a block and its rate. At its end, returns
    /// the number of ones and the sum of the rates.
    pub(crate) fn count_blocks<const WORDS: usize>(
        &mut self,
        blocks: &[[u64; WORDS]],
        most_words: usize,
        tally: impl Fn(&[u64; WORDS]) -> (u32, f64),
    ) -> Option<(u64, f64)> {
        let most_blocks = (most_words / WORDS).max(1);
        let next = self.next(blocks.len() * WORDS, most_blocks * WORDS);
        self.ones.resize(1, 0);
        for block in &blocks[next.start / WORDS..next.end / WORDS] {
            let (ones, rate) = tally(block);
            self.ones[0] += u64::from(ones);
            self.rates += rate;
        }
        (next.end == blocks.len() * WORDS).then(|| (self.ones[0], self.rates))
    }

    /// Moves on to the next stage.
    pub fn end_stage(&mut self, fill: Fill) {
        self.stages.push(fill);
        self.ones.clear();
        (self.word, self.rates) = (0, 0.0);
    }

    /// Returns the next words of a stage of `total`, at least one unless it is at its end.
    fn next(&mut self, total: usize, most: usize) -> Range<usize> {
        let start = self.word.min(total);
        self.word = start.saturating_add(most.max(1)).min(total);
        start..self.word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::{
        BlockedBloom, Bloom, BloomParams, HashFn, Scalable, ScalableParams, SplitBlock, StageKind,
        Windowed, WindowedParams,
    };

    /// Counts in steps, and compares with the functions that count at once.
    fn check(step: impl Fn(&mut FillProgress, usize) -> Option<Fill>, fill: f64, rate: f64) {
        for most in [0, 1, 7, 100, usize::MAX] {
            let mut progress = FillProgress::default();
            let found = loop {
                if let Some(found) = step(&mut progress, most) {
                    break found;
                }
            };
            assert_eq!(found.rate, rate, "{most} words at a time");
            assert!((found.share() - fill).abs() <= 1e-12 * fill, "{found:?}, not {fill}");
            // After the end there is nothing left to count.
            assert_eq!(step(&mut progress, most), Some(found));
        }
    }

    fn hashes(from: u64, to: u64) -> Vec<u64> {
        (from..to).map(mix64).collect()
    }

    fn window_of(keys: u64) -> Windowed {
        let params = WindowedParams::for_keys(keys, 0.01).unwrap();
        Windowed::new(params, HashFn::default()).unwrap()
    }

    /// The rate by definition: the fraction of other keys that are found.
    fn assert_measured(rate: f64, contains: impl Fn(u64) -> bool) {
        let others = hashes(1_000_000, 1_200_000);
        let found = others.iter().filter(|&&hash| contains(hash)).count();
        let measured = found as f64 / others.len() as f64;
        assert!((0.9..1.1).contains(&(rate / measured)), "{rate}, measured {measured}");
    }

    #[test]
    fn a_count_in_steps_equals_one_at_once() {
        let params = BloomParams::for_rate(5000, 0.01).unwrap();
        for params in [params, params.segmented()] {
            let mut filter = Bloom::new(params, HashFn::default()).unwrap();
            filter.insert_hashes(&hashes(0, 5000));
            check(|p, most| filter.fill_step(p, most), filter.fill(), filter.estimate_rate());
            assert_measured(filter.estimate_rate(), |hash| filter.contains_hash(hash));
        }
        let mut blocked = BlockedBloom::with_rate(5000, 0.01).unwrap();
        blocked.insert_hashes(&hashes(0, 5000));
        check(|p, most| blocked.fill_step(p, most), blocked.fill(), blocked.estimate_rate());
        assert_measured(blocked.estimate_rate(), |hash| blocked.contains_hash(hash));

        let mut split = SplitBlock::with_rate(5000, 0.01).unwrap();
        split.insert_hashes(&hashes(0, 5000));
        check(|p, most| split.fill_step(p, most), split.fill(), split.estimate_rate());
        assert_measured(split.estimate_rate(), |hash| split.contains_hash(hash));

        for kind in [StageKind::Bloom, StageKind::Blocked] {
            let params = ScalableParams::new(1000, 0.01).unwrap().with_stages_of(kind);
            let mut growing = Scalable::new(params, HashFn::default()).unwrap();
            growing.insert_hashes(&hashes(0, 6000)).unwrap();
            assert!(growing.stages().len() > 2);
            check(|p, most| growing.fill_step(p, most), growing.fill(), growing.estimate_rate());
            assert_measured(growing.estimate_rate(), |hash| growing.contains_hash(hash));
        }

        let mut window = window_of(3000);
        window.insert_hashes(&hashes(0, 10_000));
        check(|p, most| window.fill_step(p, most), window.fill(), window.estimate_rate());
        assert_measured(window.estimate_rate(), |hash| window.contains_hash(hash));
    }

    #[test]
    fn filters_may_take_keys_and_grow_between_steps() {
        let mut filter = Scalable::with_rate(1000, 0.01).unwrap();
        filter.insert_hashes(&hashes(0, 900)).unwrap();
        let (mut progress, mut next) = (FillProgress::default(), 10_000);
        let fill = loop {
            if let Some(fill) = filter.fill_step(&mut progress, 8) {
                break fill;
            }
            if next < 15_000 {
                filter.insert_hashes(&hashes(next, next + 50)).unwrap();
                next += 50;
            }
        };
        assert!(filter.stages().len() > 1, "it has grown");
        assert_eq!(fill.bits, filter.stages().map(|stage| stage.bits).sum::<u64>());
        assert!(fill.share() <= filter.fill() && fill.rate <= filter.estimate_rate());
        assert!(fill.ones > 0);
    }

    /// Progress in one filter must not lead to positions outside another.
    #[test]
    fn progress_in_another_filter_does_no_harm() {
        let large = Bloom::with_rate(100_000, 0.01).unwrap();
        let mut progress = FillProgress::default();
        assert_eq!(large.fill_step(&mut progress, 10_001), None);
        let small = BlockedBloom::with_rate(100, 0.01).unwrap();
        assert!(small.fill_step(&mut progress.clone(), 1).is_some());
        let window = window_of(100);
        assert!(window.fill_step(&mut progress.clone(), 1).is_some());
        assert_eq!(progress.count_array(&[1, 2, 3], 1), Some(0));
    }
}
