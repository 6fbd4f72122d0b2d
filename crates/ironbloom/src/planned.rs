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

/// The capacity of a filter, and the count expected when it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    capacity: u64,
    expected: u64,
}

impl Planned {
    /// `rate_at(n)` is the rate with n keys in the filter.
    pub(crate) fn new(capacity: u64, rate_at: impl Fn(u64) -> f64) -> Self {
        let missed = mean(capacity, &rate_at) * capacity as f64;
        let expected = (capacity as f64 - missed).floor().clamp(1.0, capacity as f64) as u64;
        Self { capacity, expected }
    }

    /// True if the count is that of as many keys as planned: a growing filter starts its next stage.
    #[inline]
    pub(crate) fn is_reached(&self, len: u64) -> bool {
        len >= self.expected
    }

    /// True if the count shows more keys than planned. Three standard deviations are left to chance, since a filter
    /// that has just its capacity should not warn.
    pub(crate) fn is_exceeded(&self, len: u64) -> bool {
        let missed = self.capacity - self.expected;
        let tolerance = 3.0 * (missed as f64).sqrt();
        len > self.capacity.min(self.expected.saturating_add(tolerance as u64))
    }
}

/// The mean of the rate while a filter takes n keys: every one if they are few, else Simpson's rule.
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
    fn the_expected_count_is_the_sum_over_the_keys() {
        for (m, k, n) in [(1000, 3, 300), (1_437_759, 7, 150_000), (700, 1, 1000)] {
            let naive: f64 = (0..n).map(|i| 1.0 - sizing::bloom_rate(m, k, i)).sum();
            let planned = Planned::new(n, |i| sizing::bloom_rate(m, k, i));
            assert!(
                (planned.expected as f64 - naive).abs() < 2.0 + naive * 1e-4,
                "{planned:?} {naive}"
            );
        }
        // Seed 004 counted 149,727, 149,735 and 149,746.
        let planned = Planned::new(150_000, |i| sizing::bloom_rate(1_437_759, 7, i));
        assert_eq!(planned.expected, 149_750);
    }

    #[test]
    fn reaching_comes_before_exceeding() {
        let planned = Planned::new(1000, |i| sizing::bloom_rate(832, 1, i));
        assert!(planned.expected < 600);
        assert!(planned.is_reached(planned.expected) && !planned.is_exceeded(planned.expected));
        assert!(planned.is_exceeded(1001) && planned.is_exceeded(700));
        let exact = Planned::new(1000, |_| 0.0);
        assert!(!exact.is_exceeded(1000) && exact.is_exceeded(1001));
    }
}
