//! When has a filter the keys it was planned for?
//!
//! Bits cannot count. A filter counts the inserts that changed a bit, and a new key that happens to find all its bits
//! set is not among them. Of n distinct keys the filter therefore counts about
//!
//! ```text
//! Σ (1 - rate with i keys)   over i = 0 .. n-1          150,000 keys at 1 %: 149,750
//! ```
//!
//! which is close to n at small rates and far below it at large ones: above 63 % a filter has fewer bits than keys,
//! and its count would never reach its capacity. So what is compared with the count is this expectation.

/// The count at which a filter has the keys it was planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    limit: u64,
}

/// Chance is granted as much as this part of the keys on top would add to the count, and no more: at high rates three
/// standard deviations would be more than the filter has bits.
const MOST_TOLERANCE: f64 = 0.01;

impl Planned {
    /// `rate_at(n)` is the rate with n keys in the filter.
    pub(crate) fn new(capacity: u64, rate_at: impl Fn(u64) -> f64) -> Self {
        let n = capacity as f64;
        let expected = n - n * mean(capacity, &rate_at);
        let variance = n * mean(capacity, &|len| rate_at(len) * (1.0 - rate_at(len)));
        // A filter that has just its capacity should neither warn nor grow: three standard deviations.
        let most = MOST_TOLERANCE * n * (1.0 - rate_at(capacity));
        let tolerance = (3.0 * variance.sqrt()).min(most).ceil();
        let limit = (expected.floor() + tolerance).clamp(1.0, n);
        Self { limit: capacity.min(limit as u64) }
    }

    /// True if the count is that of as many keys as planned: a growing filter starts its next stage.
    #[inline]
    pub(crate) fn is_reached(&self, len: u64) -> bool {
        len >= self.limit
    }

    /// New keys that are still planned for.
    pub(crate) fn room(&self, len: u64) -> u64 {
        self.limit.saturating_sub(len)
    }

    /// True if the count shows more keys than planned.
    pub(crate) fn is_exceeded(&self, len: u64) -> bool {
        len > self.limit
    }
}

/// The mean of a function while a filter takes n keys: every one if they are few, else Simpson's rule.
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

    #[test]
    fn the_mean_rate_is_that_of_the_sum_over_the_keys() {
        for (m, k, n) in [(1000, 3, 300), (1_437_759, 7, 150_000), (700, 1, 1000), (100, 7, 10)] {
            let naive: f64 = (0..n).map(|i| sizing::bloom_rate(m, k, i)).sum();
            let found = n as f64 * mean(n, &|i| sizing::bloom_rate(m, k, i));
            assert!((found / naive - 1.0).abs() < 0.02, "{m} {k} {n}: {found} {naive}");
        }
        // Seed 004 counted 149,727, 149,735 and 149,746 of 150,000.
        let missed = 150_000.0 * mean(150_000, &|i| sizing::bloom_rate(1_437_759, 7, i));
        assert_eq!(missed.round(), 250.0);
    }

    #[test]
    fn a_filter_with_its_capacity_is_not_over_it() {
        let planned = Planned::new(1000, |i| sizing::bloom_rate(832, 1, i));
        assert!(planned.limit < 600);
        assert!(planned.is_reached(planned.limit) && !planned.is_exceeded(planned.limit));
        assert!(planned.is_exceeded(planned.limit + 1));
        assert_eq!((planned.room(planned.limit - 7), planned.room(planned.limit + 7)), (7, 0));
        let small_rate = Planned::new(2000, |i| sizing::bloom_rate(28_756, 10, i));
        assert_eq!(small_rate.limit, 2000);
        assert_eq!(Planned::new(1, |_| 0.999).limit, 1);
    }

    /// Above 63 % a filter has fewer bits than keys: the limit must still be below the number of bits.
    #[test]
    fn the_limit_can_be_reached_at_any_rate() {
        for rate in [0.5, 0.7, 0.9, 0.99, 0.999] {
            let shape = sizing::bloom_shape(10_000, rate);
            let planned = Planned::new(10_000, |i| sizing::bloom_rate(shape.bits, shape.probes, i));
            assert!(planned.limit < shape.bits, "{rate}: {planned:?} {shape:?}");
        }
    }
}
