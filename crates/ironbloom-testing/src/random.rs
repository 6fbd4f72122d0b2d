//! Pseudo-random numbers.

use ironbloom::hash::SplitMix64;

/// Pseudo-random numbers from a seed: the same in every run, on every machine.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and nobody wants an option")]
    pub fn next(&mut self) -> u64 {
        let mut numbers = SplitMix64(self.0);
        let number = numbers.next_u64();
        self.0 = numbers.0;
        number
    }

    /// Returns the next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns the next position in a list of this length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
