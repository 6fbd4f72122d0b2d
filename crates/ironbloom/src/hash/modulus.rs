//! The remainder of a division by a number known in advance, without dividing.
//!
//! ```text
//! any x < 2^64    r = floor((2^64 - 1) / d)      q = floor(x·r / 2^64)         x - q·d  is  x mod d  or  x mod d + d
//! x < 2^63        f = ceil(2^(63+l) / d)         q = floor(x·f / 2^(63+l))     x - q·d  is  x mod d
//! ```
//!
//! The first quotient is at most one too small: 2^64/d - r is at most 1, so x/d - x·r/2^64 is below 1 for every x below
//! 2^64. At most one subtraction remains. The second one is exact, with 2^l the least power of two that is at least d:
//! f·d is above 2^(63+l) by less than d, so x·f/2^(63+l) is above x/d by less than x/2^(63+l), which is below 1/d
//! (Granlund and Montgomery 1994). f has 64 bits: with one bit more in x it would need 65.
//!
//! Other programs' filters divide once per probe, and a 64-bit division takes as long as seven multiplications or more.

/// A divisor, prepared for cheap division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    divisor: u64,
    reciprocal: u64,
    factor: u64,
    /// l - 1: the upper half of the product is already divided by 2^64.
    shift: u32,
}

impl Modulus {
    /// Prepares remainders by `divisor`, which is not 0 and at most 2^63 (a sum below must not wrap).
    pub fn new(divisor: u64) -> Self {
        debug_assert!((1..=1 << 63).contains(&divisor), "{divisor}");
        // For divisor 1, only `of` is used.
        let log = divisor.next_power_of_two().trailing_zeros().max(1);
        let factor = (1u128 << (63 + log)).div_ceil(divisor.into()) as u64;
        Self { divisor, reciprocal: u64::MAX / divisor, factor, shift: log - 1 }
    }

    /// The divisor.
    #[inline]
    pub fn divisor(self) -> u64 {
        self.divisor
    }

    /// `x mod divisor`.
    #[inline]
    pub fn of(self, x: u64) -> u64 {
        let rest = x - high(x, self.reciprocal) * self.divisor;
        if rest >= self.divisor { rest - self.divisor } else { rest }
    }

    /// `x mod divisor` for an x below 2^63 and a divisor above 1. Faster.
    #[inline]
    pub fn of_63_bits(self, x: u64) -> u64 {
        debug_assert!(x >> 63 == 0 && self.divisor > 1, "{x} mod {}", self.divisor);
        // The shift is below 64: the mask avoids a check.
        let quotient = high(x, self.factor) >> (self.shift & 63);
        x.wrapping_sub(quotient.wrapping_mul(self.divisor))
    }
}

/// Returns the upper half of a product.
#[inline]
fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Divisors of every size, and those next to powers of two.
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
            // Also just below, at and above a multiple, where an off-by-one quotient shows.
            let multiple = times / divisor * divisor;
            for x in [x, multiple.saturating_add_signed(beside), u64::MAX, 0] {
                prop_assert_eq!(modulus.of(x), x % divisor);
                if divisor > 1 {
                    let x = x >> 1;
                    prop_assert_eq!(modulus.of_63_bits(x), x % divisor);
                }
            }
            // The largest multiples are where a factor that is too small or too large shows first.
            if divisor > 1 {
                let last = (1 << 63) / divisor * divisor;
                for x in [last.saturating_sub(1), last, (1 << 63) - 1] {
                    let x = x.min((1 << 63) - 1);
                    prop_assert_eq!(modulus.of_63_bits(x), x % divisor);
                }
            }
        }
    }
}
