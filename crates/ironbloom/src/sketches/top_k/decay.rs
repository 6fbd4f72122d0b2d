//! The probability that the count of another key decays: decay^count.

/// Number of powers in the table.
const POWERS: usize = 256;

/// Probabilities up to this never come true: below the smallest number that [`unit`] returns.
pub(super) const NEVER: f64 = 1.0 / (1u64 << 54) as f64;

/// The first powers of a decay. Larger ones are products of them, as in RedisBloom, so that a probability is the same on every
/// machine: `powf` is not.
#[derive(Clone, Debug)]
pub(super) struct Decay([f64; POWERS]);

impl Decay {
    pub(super) fn new(decay: f64) -> Self {
        let mut powers = [1.0; POWERS];
        for i in 1..POWERS {
            powers[i] = powers[i - 1] * decay;
        }
        Self(powers)
    }

    /// `decay^count`.
    #[inline]
    pub(super) fn power(&self, count: u32) -> f64 {
        match self.0.get(count as usize) {
            Some(&power) => power,
            None => self.large_power(count as usize),
        }
    }

    #[cold]
    fn large_power(&self, count: usize) -> f64 {
        let last = POWERS - 1;
        let (mut square, mut left) = (self.0[last], count / last);
        let mut power = self.0[count % last];
        while left > 0 {
            if left & 1 == 1 {
                power *= square;
            }
            square *= square;
            left >>= 1;
        }
        power
    }
}

/// A number strictly between 0 and 1, from a random one: the middle of one of 2^52 equal parts. Of 2^53, the last would round to 1.
#[inline]
pub(super) fn unit(random: u64) -> f64 {
    ((random >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers() {
        for decay in [0.5, 0.9, 0.999, 1.0] {
            let table = Decay::new(decay);
            for count in [0, 1, 2, 254, 255, 256, 257, 1000, 100_000] {
                let (power, exact) = (table.power(count), f64::powi(decay, count as i32));
                assert!((power - exact).abs() <= exact * 1e-10, "{decay}^{count}: {power}");
            }
        }
    }

    #[test]
    fn what_always_happens_always_does_and_what_never_does_never() {
        assert!(unit(0) > NEVER && unit(u64::MAX) < 1.0);
        assert!(Decay::new(1.0).power(u32::MAX) == 1.0);
        assert!(Decay::new(1e-300).power(1) <= NEVER);
    }
}
