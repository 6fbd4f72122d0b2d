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

/// Below this, failures are drawn together.
pub(super) const RARE: f64 = 1.0 / 16.0;

/// How often what has this probability fails in a row, up to `times`, which is not 0: with one random number, since it fails n times
/// and more with a probability of (1 - p)^n. Powers are products, which are the same on every machine; logarithms are not.
pub(super) fn failures(probability: f64, times: u32, random: u64) -> u32 {
    let chance = unit(random);
    // powers[i] is the probability of 2^i failures.
    let mut powers = [1.0 - probability; u32::BITS as usize];
    let highest = times.ilog2() as usize;
    for i in 1..=highest {
        powers[i] = powers[i - 1] * powers[i - 1];
    }
    let (mut failures, mut power) = (0, 1.0);
    for i in (0..=highest).rev() {
        if failures + (1 << i) <= times && power * powers[i] > chance {
            failures += 1 << i;
            power *= powers[i];
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SplitMix64;

    /// Against the exact law, at 6 sigma for 200,000 draws.
    #[test]
    fn failures_have_the_law_of_single_draws() {
        const DRAWS: u32 = 200_000;
        let mut random = SplitMix64(1);
        for probability in [0.06, 0.01, 1e-3, 1e-4] {
            let bounds = [1, 10, 100, 1000];
            let mut below = [0; 4];
            for _ in 0..DRAWS {
                let failures = failures(probability, 1000, random.next_u64());
                assert!(failures <= 1000);
                for (below, bound) in below.iter_mut().zip(bounds) {
                    *below += u32::from(failures < bound);
                }
            }
            for (below, bound) in below.into_iter().zip(bounds) {
                let expected = 1.0 - f64::powi(1.0 - probability, bound as i32);
                let sigma = (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
                let measured = f64::from(below) / f64::from(DRAWS);
                let difference = (measured - expected).abs();
                assert!(difference <= 6.0 * sigma + 1e-9, "{probability} {bound}: {measured}");
            }
        }
    }

    /// The same number as by trying one after the other.
    #[test]
    fn failures_are_those_of_the_law_inverted() {
        for random in [0, 1 << 20, 1 << 50, 1 << 60, 1 << 63, u64::MAX] {
            for times in [1, 2, 3, 100, 1000, 100_000] {
                let (mut expected, mut power) = (0, 0.99);
                while expected < times && power > unit(random) {
                    expected += 1;
                    power *= 0.99;
                }
                let found = failures(0.01, times, random);
                assert!(found.abs_diff(expected) <= 1, "{random} {times}: {found} {expected}");
                assert!(found <= times);
            }
        }
        assert_eq!(failures(1e-300, u32::MAX, 1 << 63), u32::MAX);
    }

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
