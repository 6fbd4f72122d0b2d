//! Decides when a filter has reached its planned number of keys.
//!
//! A Bloom filter counts the inserts that changed a bit, so a new key that happens to find all its bits set is not
//! counted. Of n distinct keys in **random order** the filter therefore counts about
//!
//! ```text
//! Σ (1 - rate with i keys)   over i = 0 .. n-1          150,000 keys at 1 %: 149,750
//! ```
//!
//! which is close to n at small rates and far below it at large ones: above 63 % a filter has fewer bits than keys,
//! and its count would never reach its capacity.
//!
//! The count says no more than that. Keys sorted by hash get a higher count (19,968,264 of 20 million at 1 % instead of
//! 19,950,000), after a union the count is an estimate of all keys, and for a program that knows the true number it is
//! that number. So there are two questions and two answers:
//!
//! | question | asked | answered by |
//! |---|---|---|
//! | is the filter over capacity? | occasionally | the **bits**: more than its capacity sets, by over 5 sigma |
//! | is there room for this key? does a stage end? | at every insert | the **count**, compared with a random order's |
//!
//! The bits depend on the set of keys alone. They are counted only if the count has reached the expectation at capacity
//! for a random order, so the check costs nothing before that.

use crate::sizing::Occupancy;

/// The counts of a filter at capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// The count of a random order, rounded down.
    expected: u64,
    /// The count at which a growing filter starts its next stage.
    grown: u64,
    /// The highest count of the planned keys in random order, except for one filter in a million.
    full: u64,
    /// The maximum number of bits that they set, except for one filter in a million.
    most_bits: u64,
}

/// A stage may by chance exceed its capacity by at most this fraction, since that raises the rate.
const MAX_STAGE_ERROR: f64 = 0.01;

impl Thresholds {
    /// Takes the rate `rate_at(n)` with n keys in the filter, and the `occupancy` of its bits with `capacity` keys.
    pub(crate) fn new(
        capacity: u64,
        bits: u64,
        rate_at: impl Fn(u64) -> f64,
        occupancy: Occupancy,
    ) -> Self {
        let n = capacity as f64;
        let expected = n - n * mean(capacity, &rate_at);
        let sigma = (n * mean(capacity, &|len| rate_at(len) * (1.0 - rate_at(len)))).sqrt();
        let limit = |tolerance: f64| {
            let limit = (expected.floor() + tolerance.ceil()).clamp(1.0, n);
            capacity.min(limit as u64)
        };
        // A stage exactly at capacity should not grow: three standard deviations.
        let most_of_a_stage = MAX_STAGE_ERROR * n * (1.0 - rate_at(capacity));
        // A refused key is lost, so five; at the highest rates, half of the bits that can still be counted.
        let still_countable = (bits as f64 - expected).max(0.0);
        Self {
            expected: expected as u64,
            grown: limit((3.0 * sigma).min(most_of_a_stage)),
            full: limit((5.0 * sigma).min(still_countable / 2.0)),
            most_bits: occupancy.most(bits),
        }
    }

    /// True if the count indicates that the capacity is reached: a growing filter starts its next stage.
    #[inline]
    pub(crate) fn ends_stage(&self, len: u64) -> bool {
        len >= self.grown
    }

    /// Number of new keys until [`ends_stage`](Self::ends_stage).
    pub(crate) fn room_of_stage(&self, len: u64) -> u64 {
        self.grown.saturating_sub(len)
    }

    /// Number of new keys still planned for.
    pub(crate) fn room(&self, len: u64) -> u64 {
        self.full.saturating_sub(len)
    }

    /// True if more bits are set than the planned keys would set. Bits are counted only if the count is suspicious.
    pub(crate) fn is_exceeded(&self, len: u64, count_bits: impl FnOnce() -> u64) -> bool {
        len > self.expected && count_bits() > self.most_bits
    }
}

/// The mean of a function while a filter fills with n keys: summed one by one if they are few, otherwise by Simpson's
/// rule.
fn mean(n: u64, rate_at: &impl Fn(u64) -> f64) -> f64 {
    const FEW: u64 = 32;
    if n <= FEW {
        return (0..n).map(rate_at).sum::<f64>() / n as f64;
    }
    let sum: f64 = (0..=FEW)
        .map(|i| {
            let weight = if i == 0 || i == FEW { 1.0 } else { f64::from(2 + 2 * (i % 2) as u32) };
            weight * rate_at((n as f64 * i as f64 / FEW as f64) as u64)
        })
        .sum();
    sum / (3 * FEW) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing;

    fn planned(capacity: u64, bits: u64, probes: u32) -> Thresholds {
        let occupancy = sizing::bloom_occupancy(bits, probes, capacity);
        Thresholds::new(capacity, bits, |i| sizing::bloom_rate(bits, probes, i), occupancy)
    }

    #[test]
    fn the_mean_rate_is_that_of_the_sum_over_the_keys() {
        for (m, k, n) in [(1000, 3, 300), (1_437_759, 7, 150_000), (700, 1, 1000), (100, 7, 10)] {
            let naive: f64 = (0..n).map(|i| sizing::bloom_rate(m, k, i)).sum();
            let found = n as f64 * mean(n, &|i| sizing::bloom_rate(m, k, i));
            assert!((found / naive - 1.0).abs() < 0.02, "{m} {k} {n}: {found} {naive}");
        }
        // An experiment counted 149,727, 149,735 and 149,746 of 150,000.
        let missed = 150_000.0 * mean(150_000, &|i| sizing::bloom_rate(1_437_759, 7, i));
        assert_eq!(missed.round(), 250.0);
    }

    #[test]
    fn a_stage_ends_at_the_count_of_its_capacity() {
        let half = planned(1000, 832, 1);
        assert!(half.grown < 600 && half.grown < half.full);
        assert!(half.ends_stage(half.grown) && !half.ends_stage(half.grown - 1));
        assert_eq!(
            (half.room_of_stage(half.grown - 7), half.room_of_stage(half.grown + 7)),
            (7, 0)
        );
        assert_eq!((half.room(half.full - 7), half.room(half.full + 7)), (7, 0));
        assert_eq!(planned(2000, 28_756, 10).grown, 2000);
        assert_eq!(planned(1, 1, 1).grown, 1);
    }

    #[test]
    fn bits_are_counted_only_if_the_count_is_suspicious() {
        let planned = planned(1000, 9600, 7);
        assert!(!planned.is_exceeded(planned.expected, || panic!("counted without a reason")));
        assert!(!planned.is_exceeded(2000, || planned.most_bits));
        assert!(planned.is_exceeded(2000, || planned.most_bits + 1));
    }

    /// Above 63 % a filter has fewer bits than keys: the threshold must still be below the number of bits.
    #[test]
    fn the_limits_can_be_reached_at_any_rate() {
        for rate in [0.5, 0.7, 0.9, 0.99, 0.999] {
            let shape = sizing::bloom_shape(10_000, rate);
            let planned = planned(10_000, shape.bits, shape.probes);
            assert!(planned.grown < shape.bits, "{rate}: {planned:?} {shape:?}");
            assert!(planned.full < shape.bits, "{rate}: {planned:?} {shape:?}");
            assert!(planned.most_bits < shape.bits, "{rate}: {planned:?} {shape:?}");
        }
    }
}
