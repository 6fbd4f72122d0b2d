//! The remainder of a division by a number that is known beforehand, without the division.
//!
//! ```text
//! r = floor((2^64 - 1) / d)        q = floor(x·r / 2^64)        x - q·d  is  x mod d  or  x mod d + d
//! ```
//!
//! q is at most one too small: 2^64/d - r is at most 1, so x/d - x·r/2^64 is below 1 for every x below 2^64. One
//! subtraction, or none, is left. Filters of other programs divide once a probe, and a division of 64 bits takes as long as seven
//! multiplications or more.

/// A divisor and what makes dividing by it cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    divisor: u64,
    reciprocal: u64,
}

impl Modulus {
    /// Remainders by `divisor`, which is not 0 and not above 2^63 (a sum below must not wrap).
    pub fn new(divisor: u64) -> Self {
        debug_assert!((1..=1 << 63).contains(&divisor), "{divisor}");
        Self { divisor, reciprocal: u64::MAX / divisor }
    }

    /// The divisor.
    #[inline]
    pub fn divisor(self) -> u64 {
        self.divisor
    }

    /// `x mod divisor`.
    #[inline]
    pub fn of(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x - quotient * self.divisor;
        if rest >= self.divisor { rest - self.divisor } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Divisors of every size, and those beside the powers of two.
    fn divisors() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>(), -1i64..=1).prop_map(|(shift, random, beside)| {
            let near_power = (1u64 << shift).saturating_add_signed(beside);
            let divisor = if random % 3 == 0 { near_power } else { random >> shift };
            divisor.clamp(1, 1 << 63)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn remainders_are_those_of_the_division(
            divisor in divisors(), x in any::<u64>(), times in any::<u64>(), beside in -1i64..=1,
        ) {
            let modulus = Modulus::new(divisor);
            // Also just below, at and above a multiple, where a quotient that is one off shows.
            let multiple = times / divisor * divisor;
            for x in [x, multiple.saturating_add_signed(beside), u64::MAX, 0] {
                prop_assert_eq!(modulus.of(x), x % divisor);
            }
        }
    }
}
