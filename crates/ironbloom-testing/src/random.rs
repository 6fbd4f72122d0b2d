//! Numbers that look random.

use ironbloom::hash::SplitMix64;

/// Numbers that look random, from a seed: the same in every run, on every machine.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and nobody wants an option")]
    pub fn next(&mut self) -> u64 {
        let mut numbers = SplitMix64(self.0);
        let number = numbers.next_u64();
        self.0 = numbers.0;
        number
    }

    /// The next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// The next position in a list of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
