//! Pseudo-random numbers.

use super::mix64;

/// SplitMix64 (Steele, Lea and Flood, 2014): pseudo-random numbers, the same on every machine for
/// the same seed. For measurements and tests, not for secrets.
///
/// ```
/// # use ironbloom::hash::SplitMix64;
/// let mut numbers = SplitMix64(0);
/// assert_eq!(numbers.next_u64(), 0xe220_a839_7b1d_cdaf);
/// assert_eq!(numbers.next_u64(), 0x6e78_9e6a_a1b9_65f4);
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Returns the next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let number = mix64(self.0);
        self.0 = self.0.wrapping_add(super::GOLDEN_GAMMA);
        number
    }
}
