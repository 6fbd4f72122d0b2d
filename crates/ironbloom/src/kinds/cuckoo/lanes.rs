//! The four slots of a plain bucket examined all at once, as lanes of one word.
//!
//! ```text
//! bits      | slot 3 | slot 2 | slot 1 | slot 0 |     f bits each, from the lowest bit up; above them: anything
//! ones      |      1 |      1 |      1 |      1 |     F · ones = F in each lane
//! highs     | 1      | 1      | 1      | 1      |
//!
//! x = bits ^ F · ones                                 a lane is zero where the slot holds F
//! marks = !(x | ((x & lows) + lows)) & highs          the high bit of each lane that is zero; lows = highs - ones
//! ```
//!
//! The sum of two numbers without their high bits stays within its lane, so no lane affects the next: each mark is
//! exact. (The shorter `x - ones & !x & highs` borrows from the lane above a zero and may mark that as well.)

/// Constants for lanes of one width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lanes {
    width: u32,
    ones: u64,
    lows: u64,
    highs: u64,
}

impl Lanes {
    /// Creates `count` lanes of `width` bits, which must fit a word.
    pub(super) fn new(width: u32, count: u32) -> Self {
        debug_assert!(width * count <= u64::BITS);
        let ones = (0..count).fold(0, |ones, lane| ones | 1 << (lane * width));
        let highs = ones << (width - 1);
        Self { width, ones, lows: highs - ones, highs }
    }

    /// Marks the lanes that hold `slot`: one bit each, the lowest for the first lane.
    #[inline]
    pub(super) fn holding(&self, bits: u64, slot: u32) -> u64 {
        self.empty(bits ^ u64::from(slot).wrapping_mul(self.ones))
    }

    /// Marks the lanes that are zero.
    #[inline]
    pub(super) fn empty(&self, bits: u64) -> u64 {
        !(bits | ((bits & self.lows) + self.lows)) & self.highs
    }

    /// Returns `slot` at the position of the first marked lane; at least one must be marked.
    #[inline]
    pub(super) fn at_first(&self, marks: u64, slot: u32) -> u64 {
        u64::from(slot) << (marks.trailing_zeros() + 1 - self.width)
    }

    /// Returns the content of a lane.
    #[inline]
    pub(super) fn get(&self, bits: u64, lane: u32) -> u32 {
        (bits >> (lane * self.width)) as u32 & u32::MAX >> (u32::BITS - self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    /// Words whose lanes are often equal, zero, one apart or all ones, with garbage above the lanes.
    fn words(width: u32, count: u32) -> impl Iterator<Item = u64> {
        let ones = u64::MAX >> (64 - width);
        let lane = move |random: u64| match random % 8 {
            0 | 1 => 0,
            2 => 1,
            3 => ones,
            4 => ones >> 1,
            5 => 1 << (width - 1),
            _ => (random >> 8) & ones,
        };
        (0..3000u64).map(move |seed| {
            let used = width * count;
            let garbage = if used < 64 { mix64(!seed) << used } else { 0 };
            (0..count).fold(garbage, |word, i| {
                word | lane(mix64(seed << 8 | u64::from(i))) << (i * width)
            })
        })
    }

    #[test]
    fn lanes_looked_at_at_once_are_lanes_looked_at_one_by_one() {
        for width in 4..=32 {
            for count in if width <= 16 { vec![2, 4] } else { vec![2] } {
                let lanes = Lanes::new(width, count);
                let most = u32::MAX >> (32 - width);
                for word in words(width, count) {
                    let slots: Vec<u32> = (0..count).map(|i| lanes.get(word, i)).collect();
                    for wanted in slots.iter().copied().chain([0, 1, most, most >> 1]) {
                        let naive = (0..count)
                            .filter(|&i| slots[i as usize] == wanted)
                            .fold(0, |marks, i| marks | 1 << (i * width + width - 1));
                        let case = format!("{wanted:#x} in {slots:x?}, {width} bits");
                        assert_eq!(lanes.holding(word, wanted), naive, "{case}");
                        if wanted == 0 {
                            assert_eq!(lanes.empty(word), naive, "{case}");
                        }
                        if let Some(first) = slots.iter().position(|&slot| slot == wanted) {
                            let place = lanes.at_first(naive, most);
                            assert_eq!(place, u64::from(most) << (first as u32 * width), "{case}");
                        }
                    }
                }
            }
        }
    }
}
