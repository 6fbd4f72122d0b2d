//! Several cells of a bucket at a time, side by side in a word as they are in memory.
//!
//! ```text
//! word      |        cell 3 |        cell 2 |        cell 1 |        cell 0 |       4, 2 or 1 lanes of w bits
//! ones      |             1 |             1 |             1 |             1 |       times x: x in every lane
//! ```
//!
//! A bucket of eight cells begins at a byte boundary, so that one load covers 4 w bits if w is at most 15, 2 w if at
//! most 30, and w in any case. Every result is a word with bit 0 set in the lanes for which it is true.

use super::{BUCKET_CELLS, COUNTER_BITS, STUCK};
use crate::bits::packed::window;

/// Layout of the cells of a bucket in `W` words.
#[derive(Clone, Copy)]
pub(super) struct Lanes<const W: usize> {
    width: u32,
    ones: u64,
}

/// Number of words that [`Lanes`] needs for cells of this width.
pub(super) fn words_of_a_bucket(width: u32) -> usize {
    match width {
        0..=15 => 2,
        16..=30 => 4,
        _ => 8,
    }
}

impl<const W: usize> Lanes<W> {
    const LANES: u64 = BUCKET_CELLS / W as u64;

    /// Takes the width of a cell; `W` must be at least [`words_of_a_bucket`].
    #[inline]
    pub(super) fn new(width: u32) -> Self {
        let ones = match Self::LANES {
            4 => 1 | 1 << width | 1 << (2 * width) | 1 << (3 * width),
            2 => 1 | 1 << width,
            _ => 1,
        };
        Self { width, ones }
    }

    /// Reads word `i` of the bucket that starts at this cell. The bits above its lanes are unspecified.
    #[inline]
    pub(super) fn read(&self, words: &[u64], start: u64, i: usize) -> u64 {
        let cell = start + i as u64 * Self::LANES;
        window(words, cell * u64::from(self.width))
    }

    /// Repeats a remainder in every lane, as [`holding`](Self::holding) requires.
    #[inline]
    pub(super) fn wanted(&self, remainder: u64) -> u64 {
        self.ones * (remainder << COUNTER_BITS)
    }

    /// Marks the cells that hold the wanted remainder.
    #[inline]
    pub(super) fn holding(&self, word: u64, wanted: u64) -> u64 {
        let difference = (word ^ wanted) & !(self.ones * STUCK);
        // A lane whose low bits are not all zero carries into its highest bit when ones are added.
        let highest = self.ones << (self.width - 1);
        let low_bits = highest - self.ones;
        let differs = ((difference & low_bits) + low_bits) | difference;
        self.occupied(word) & !(differs >> (self.width - 1))
    }

    /// Marks the cells with a counter above zero.
    #[inline]
    pub(super) fn occupied(&self, word: u64) -> u64 {
        (word | word >> 1) & self.ones
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::packed::Packed;
    use crate::hash::mix64;

    /// Remainders with few values, so that many are equal and many differ in only one bit.
    fn check<const W: usize>(width: u32) {
        let mut packed = Packed::zeroed(64 * BUCKET_CELLS, width).unwrap();
        let pattern = |random: u64| match random % 4 {
            0 => 0,
            1 => 1 << (random / 4 % u64::from(width - COUNTER_BITS)),
            _ => u64::MAX >> (64 - width + COUNTER_BITS),
        };
        for index in 0..64 * BUCKET_CELLS {
            let random = mix64(index);
            packed.set(index, (pattern(random >> 8) << COUNTER_BITS) | (random % 4));
        }
        let lanes = Lanes::<W>::new(width);
        for start in (0..64).map(|bucket| bucket * BUCKET_CELLS) {
            let cells = packed.row::<8>(start);
            // Bit 0 of each lane, lane by lane.
            let told = |answer: &dyn Fn(u64) -> u64| {
                let words = (0..W).map(|i| answer(lanes.read(packed.words(), start, i)));
                let lane = |word: u64, i: u64| word >> (i * u64::from(width)) & 1 == 1;
                let lanes = words.flat_map(|word| (0..8 / W as u64).map(move |i| lane(word, i)));
                lanes.collect::<Vec<bool>>()
            };
            let occupied = cells.map(|cell| cell & STUCK != 0);
            assert_eq!(told(&|word| lanes.occupied(word)), occupied, "width {width}");
            for remainder in (0..20).map(|i| pattern(mix64(start << 8 | i))) {
                let holds = |cell| cell & STUCK != 0 && cell >> COUNTER_BITS == remainder;
                let wanted = lanes.wanted(remainder);
                let holding = told(&|word| lanes.holding(word, wanted));
                assert_eq!(holding, cells.map(holds), "width {width}, remainder {remainder}");
            }
        }
    }

    #[test]
    fn lanes_tell_what_the_cells_one_by_one_tell() {
        for width in 3..=58 {
            match words_of_a_bucket(width) {
                2 => check::<2>(width),
                4 => check::<4>(width),
                _ => check::<8>(width),
            }
        }
    }
}
