//! Lookups of the measurement: keys that are stored, keys that are not, and how long each answer took.

use std::time::{Duration, Instant};

use ironbloom::hash::{SplitMix64, mix64};

/// Stored keys are the mixed numbers below this; absent ones those from it on.
pub(super) struct Keys {
    pub(super) stored: u64,
}

impl Keys {
    /// 16 digits.
    pub(super) fn text(number: u64) -> Vec<u8> {
        format!("{:016x}", mix64(number)).into_bytes()
    }

    /// All stored keys in order, which is the fastest way to fill a B-tree.
    pub(super) fn sorted(&self) -> Vec<u64> {
        let mut mixed: Vec<u64> = (0..self.stored).map(mix64).collect();
        mixed.sort_unstable();
        mixed
    }

    /// Keys of one round: a share of them is not stored.
    pub(super) fn round(&self, round: u64, lookups: u64, miss: f64) -> Vec<Vec<u8>> {
        let mut random = SplitMix64(mix64(round + 1));
        (0..lookups)
            .map(|_| {
                let absent = (random.next_u64() as f64) < miss * u64::MAX as f64;
                let number = random.next_u64() % self.stored;
                Self::text(if absent { self.stored + number } else { number })
            })
            .collect()
    }
}

/// How long lookups took.
#[derive(Default)]
pub(super) struct Times {
    nanos: Vec<u64>,
    /// From the first to the last.
    pub(super) total: Duration,
}

impl Times {
    /// Looks up keys in groups of `batch`, each timed. Returns how many were found.
    pub(super) fn ask<E>(
        &mut self,
        keys: &[Vec<u8>],
        batch: usize,
        mut get: impl FnMut(&[Vec<u8>]) -> Result<u64, E>,
    ) -> Result<u64, E> {
        let mut found = 0;
        let start = Instant::now();
        let mut last = start;
        for group in keys.chunks(batch) {
            found += get(group)?;
            let now = Instant::now();
            let nanos = (now - last).as_nanos() as u64 / group.len() as u64;
            self.nanos.extend(group.iter().map(|_| nanos));
            last = now;
        }
        self.total += last - start;
        Ok(found)
    }

    pub(super) fn add(&mut self, time: Duration) {
        self.nanos.push(time.as_nanos() as u64);
        self.total += time;
    }

    pub(super) fn per_second(&self) -> f64 {
        self.nanos.len() as f64 / self.total.as_secs_f64()
    }

    /// The time that a share of the lookups does not exceed.
    pub(super) fn percentiles<const N: usize>(&self, shares: [f64; N]) -> [Duration; N] {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        shares.map(|share| {
            let at = (share * sorted.len() as f64).ceil() as usize;
            Duration::from_nanos(sorted.get(at.saturating_sub(1)).copied().unwrap_or(0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_definition() {
        let mut times = Times::default();
        (1..=100).rev().for_each(|i| times.add(Duration::from_nanos(i)));
        let [median, late, last] = times.percentiles([0.5, 0.99, 1.0]);
        assert_eq!((median.as_nanos(), late.as_nanos(), last.as_nanos()), (50, 99, 100));
        assert_eq!(Times::default().percentiles([0.5]), [Duration::ZERO]);
    }

    #[test]
    fn a_round_has_its_share_of_absent_keys() {
        let keys = Keys { stored: 1000 };
        let stored: std::collections::HashSet<_> = (0..1000).map(Keys::text).collect();
        for miss in [0.0, 0.9, 1.0] {
            let round = keys.round(3, 10_000, miss);
            let absent = round.iter().filter(|key| !stored.contains(*key)).count() as f64;
            // Six standard deviations of 10,000 draws at 0.9 are 180.
            assert!((absent - miss * 10_000.0).abs() <= 180.0, "{miss}: {absent}");
        }
    }
}
