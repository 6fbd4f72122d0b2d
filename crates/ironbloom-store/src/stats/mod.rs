//! What a guard has saved, and what another filter would have saved: the live cost model.
//!
//! Of all lookups a fraction P1 is skipped, a fraction P2 queries the store in vain (a false positive), and a fraction
//! P3 finds its key. A skip costs C1, a store query C2. An exact set in memory would cost (P1 + P2)·C1 + P3·C2; a
//! filter costs P1·C1 + (P2 + P3)·C2, and so
//!
//! ```text
//!   Delta = P2·(C2 − C1)
//! ```
//!
//! more for each lookup: the price of its few bits. A lower rate makes P2 smaller and the filter larger; the
//! [choices](Stats::choices) say by how much, for the lookups that were counted.

mod choices;
mod counters;

use std::path::Path;
use std::time::Duration;

pub use self::choices::Choice;
pub(crate) use self::counters::{Counters, Outcome, Sample};
use crate::checkpoint::{Files, Unusable};
use crate::kind::GuardKind;

/// Counts and times of lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    pub(crate) skipped: Timed,
    pub(crate) false_positives: Timed,
    pub(crate) hits: Timed,
    /// Lookups that went to the store because the filter was not ready: after a crash, until it is rebuilt.
    pub(crate) unguarded: Timed,
    pub(crate) rebuilds: u64,
    pub(crate) failed_rebuilds: u64,
    pub(crate) foreign: u64,
    /// Lookups that could have been skipped, and were not, to learn what that costs.
    pub(crate) measured: Measured,
    /// Of the filter, when this was written.
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

/// How often something happened, and how long it took in some of the cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timed {
    pub(crate) count: u64,
    pub(crate) samples: u64,
    pub(crate) nanos: u64,
}

impl Timed {
    fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.nanos as f64 / self.samples as f64)
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.samples += other.samples;
        self.nanos += other.nanos;
    }
}

/// How long some lookups took, by which what others would have taken is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measured {
    count: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
}

impl Measured {
    pub(crate) fn add(&mut self, nanos: f64) {
        self.merge(&Self { count: 1, mean: nanos, squares: 0.0 });
    }

    fn merge(&mut self, other: &Self) {
        let count = self.count + other.count;
        if count == 0 {
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.squares += other.squares + distance * distance * ours * theirs / count as f64;
        self.mean += distance * theirs / count as f64;
        self.count = count;
    }

    /// The time of all.
    pub(crate) fn nanos(&self) -> f64 {
        self.mean * self.count as f64
    }

    /// The standard error of the mean, if there are enough to tell.
    fn error(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 1).then(|| (self.squares / (count - 1.0) / count).sqrt())
    }
}

impl Totals {
    /// Words in a checkpoint.
    pub(crate) const WORDS: usize = 20;
    /// Words in a checkpoint of version 1.
    pub(crate) const FIRST_WORDS: usize = 16;

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let lookups = [self.skipped, self.false_positives, self.hits, self.unguarded];
        let mut words = [0; Self::WORDS];
        for (place, timed) in words.chunks_exact_mut(3).zip(lookups) {
            place.copy_from_slice(&[timed.count, timed.samples, timed.nanos]);
        }
        words[12..17].copy_from_slice(&[
            self.rebuilds,
            self.keys,
            self.bytes,
            self.failed_rebuilds,
            self.foreign,
        ]);
        let Measured { count, mean, squares } = self.measured;
        words[17..20].copy_from_slice(&[count, mean.to_bits(), squares.to_bits()]);
        words
    }

    /// Words that an older version did not write are zero.
    pub(crate) fn from_words(words: &[u64]) -> Self {
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let timed = |i: usize| Timed { count: word(i), samples: word(i + 1), nanos: word(i + 2) };
        Self {
            skipped: timed(0),
            false_positives: timed(3),
            hits: timed(6),
            unguarded: timed(9),
            rebuilds: word(12),
            keys: word(13),
            bytes: word(14),
            failed_rebuilds: word(15),
            foreign: word(16),
            measured: Measured {
                count: word(17),
                mean: f64::from_bits(word(18)),
                squares: f64::from_bits(word(19)),
            },
        }
    }

    fn add(&mut self, other: &Self) {
        self.skipped.add(&other.skipped);
        self.false_positives.add(&other.false_positives);
        self.hits.add(&other.hits);
        self.unguarded.add(&other.unguarded);
        self.rebuilds += other.rebuilds;
        self.failed_rebuilds += other.failed_rebuilds;
        self.foreign += other.foreign;
        self.measured.merge(&other.measured);
    }
}

/// What a guard has counted, over all sessions with its checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The kind of filter.
    pub kind: GuardKind,
    /// The rate that it was planned for.
    pub rate: f64,
    /// Keys in the filter.
    pub keys: u64,
    /// The capacity: the number of keys planned for.
    pub capacity: u64,
    /// Keys in the filter that are no longer in the store, as far as is known.
    pub dead: u64,
    /// Puts whose outcome is unknown: they failed, and may have been stored or may be stored later. Lookups of their
    /// keys go to the store.
    pub doubtful: u64,
    /// False positives that are remembered, and not looked up again.
    pub remembered: u64,
    /// Bytes of the filter, and of what is remembered beside it.
    pub filter_bytes: u64,
    /// How often the filter was built from a scan.
    pub rebuilds: u64,
    /// How often that failed.
    pub failed_rebuilds: u64,
    /// How often a key was found in the store that was written without the guard, or the store was found in another
    /// state than before. Each time the filter was rebuilt from a scan.
    pub foreign: u64,
    pub(crate) totals: Totals,
}

impl Stats {
    /// What a guard had counted when it wrote this checkpoint file. Reads neither the filter nor the store.
    pub fn read(checkpoint: impl AsRef<Path>) -> Result<Self, Unusable> {
        let sidecar = Files::new(checkpoint.as_ref()).read()?;
        let totals = sidecar.totals;
        Ok(Self {
            kind: sidecar.kind,
            rate: sidecar.rate,
            keys: totals.keys,
            capacity: sidecar.filter_capacity,
            dead: sidecar.dead,
            doubtful: 0,
            remembered: 0,
            filter_bytes: totals.bytes,
            rebuilds: totals.rebuilds,
            failed_rebuilds: totals.failed_rebuilds,
            foreign: totals.foreign,
            totals,
        })
    }

    /// Lookups that the filter could answer or had to pass on; not those before it existed.
    pub fn lookups(&self) -> u64 {
        self.skipped() + self.false_positives() + self.hits()
    }

    /// Lookups that never reached the store: the reads avoided.
    pub fn skipped(&self) -> u64 {
        self.totals.skipped.count
    }

    /// Lookups that queried the store in vain.
    pub fn false_positives(&self) -> u64 {
        self.totals.false_positives.count
    }

    /// Lookups that found their key.
    pub fn hits(&self) -> u64 {
        self.totals.hits.count
    }

    /// Lookups that went to the store while the filter was not ready.
    pub fn unguarded(&self) -> u64 {
        self.totals.unguarded.count
    }

    /// The fractions P1 (skipped), P2 (false positives) and P3 (hits) of all lookups. Zeros if there were none.
    pub fn shares(&self) -> [f64; 3] {
        let all = self.lookups().max(1) as f64;
        [self.skipped(), self.false_positives(), self.hits()].map(|count| count as f64 / all)
    }

    /// The false positives among the lookups of absent keys, if there were any.
    pub fn measured_rate(&self) -> Option<f64> {
        let absent = self.skipped() + self.false_positives();
        (absent > 0).then(|| self.false_positives() as f64 / absent as f64)
    }

    /// C1, the time of a skipped lookup.
    pub fn skip_cost(&self) -> Option<Duration> {
        self.totals.skipped.mean().map(nanos)
    }

    /// C2, the time of a store query for an absent key that was measured; until there was one, of a false positive, or
    /// for a present key.
    pub fn read_cost(&self) -> Option<Duration> {
        self.read_nanos().map(nanos)
    }

    fn read_nanos(&self) -> Option<f64> {
        let Totals { false_positives, hits, unguarded, measured, .. } = &self.totals;
        if measured.count > 0 {
            return Some(measured.mean);
        }
        false_positives.mean().or(hits.mean()).or(unguarded.mean())
    }

    /// C2 − C1 in nanoseconds, not below zero; zero if nothing was measured yet.
    fn difference(&self) -> f64 {
        let skip = self.totals.skipped.mean().unwrap_or(0.0);
        (self.read_nanos().unwrap_or(skip) - skip).max(0.0)
    }

    /// The extra time the skipped lookups would have taken if they had gone to the store: an estimate from some that did
    /// ([`Options::measured_share`](crate::Options::measured_share)), which
    /// [`time_saved_between`](Self::time_saved_between) bounds.
    pub fn time_saved(&self) -> Duration {
        nanos(self.skipped() as f64 * self.difference())
    }

    /// An interval that holds the expected [`time_saved`](Self::time_saved) with 95 % confidence; `None` if fewer than
    /// two lookups were measured.
    pub fn time_saved_between(&self) -> Option<[Duration; 2]> {
        let error = 1.96 * self.totals.measured.error()?;
        let bound = |side: f64| nanos(self.skipped() as f64 * (self.difference() + side * error));
        Some([bound(-1.0), bound(1.0)])
    }

    /// Number of lookups by which that was measured.
    pub fn measured(&self) -> u64 {
        self.totals.measured.count
    }

    /// Delta = P2·(C2 − C1): the average extra time per lookup compared with an exact set in memory.
    pub fn delta(&self) -> Duration {
        nanos(self.shares()[1] * self.difference())
    }

    /// Bits of the filter for each key in it, if there is one.
    pub fn bits_per_key(&self) -> Option<f64> {
        (self.keys > 0).then(|| self.filter_bytes as f64 * 8.0 / self.keys as f64)
    }
}

fn nanos(nanos: f64) -> Duration {
    Duration::from_secs_f64(nanos.max(0.0) * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 900 skips of 0.1 µs, 10 false positives of 50 µs, 90 hits of 60 µs.
    fn stats() -> Stats {
        let timed = |count, nanos| Timed { count, samples: count / 10, nanos: count / 10 * nanos };
        Stats {
            kind: GuardKind::Blocked,
            rate: 0.01,
            keys: 1_000_000,
            capacity: 1_000_000,
            dead: 0,
            doubtful: 0,
            remembered: 0,
            filter_bytes: 1_250_000,
            rebuilds: 0,
            failed_rebuilds: 0,
            foreign: 0,
            totals: Totals {
                skipped: timed(900, 100),
                false_positives: timed(10, 50_000),
                hits: timed(90, 60_000),
                ..Totals::default()
            },
        }
    }

    #[test]
    fn the_cost_model_gives_the_numbers_worked_out_by_hand() {
        let stats = stats();
        assert_eq!(stats.lookups(), 1000);
        assert_eq!(stats.shares(), [0.9, 0.01, 0.09]);
        assert_eq!(stats.measured_rate(), Some(10.0 / 910.0));
        assert_eq!(stats.skip_cost(), Some(Duration::from_nanos(100)));
        assert_eq!(stats.read_cost(), Some(Duration::from_nanos(50_000)));
        // 900 · (50 − 0.1) µs = 44.91 ms; 0.01 · 49.9 µs = 499 ns.
        assert_eq!(stats.time_saved(), Duration::from_nanos(44_910_000));
        assert_eq!(stats.delta(), Duration::from_nanos(499));
        assert_eq!(stats.bits_per_key(), Some(10.0));
    }

    #[test]
    fn the_choices_are_those_of_the_sizing_laws() {
        let stats = stats();
        let choices = stats.choices();
        let at = |kind, rate| choices.iter().find(|c| c.kind == kind && c.rate == rate).unwrap();
        let blocked = at(GuardKind::Blocked, 0.01);
        // 910 of 1000 lookups are of absent keys: 9.1 at 1 % query in vain, and 0.0091 · 49.9 µs = 454.09 ns.
        assert!((blocked.wasted_per_thousand - 9.1).abs() < 1e-9);
        assert!((blocked.delta.as_secs_f64() - 454.09e-9).abs() < 1e-9);
        assert!((10.0..10.3).contains(&blocked.bits_per_key), "{}", blocked.bits_per_key);
        assert_eq!(blocked.filter_bytes, (blocked.bits_per_key * 1e6 / 8.0).round() as u64);
        assert!(at(GuardKind::Cuckoo, 0.01).bits_per_key < 11.0);
        assert!(at(GuardKind::Blocked, 0.001).delta < blocked.delta / 9);
        assert!(at(GuardKind::Blocked, 0.001).filter_bytes > blocked.filter_bytes);
    }

    #[test]
    fn nothing_counted_is_nothing_claimed() {
        let stats = Stats { totals: Totals::default(), keys: 0, filter_bytes: 0, ..stats() };
        assert_eq!(
            (stats.measured_rate(), stats.skip_cost(), stats.read_cost()),
            (None, None, None)
        );
        assert_eq!((stats.time_saved(), stats.delta()), (Duration::ZERO, Duration::ZERO));
        assert_eq!((stats.shares(), stats.bits_per_key()), ([0.0; 3], None));
        assert!(stats.choices().iter().all(|choice| choice.delta == Duration::ZERO));
    }

    #[test]
    fn totals_come_back_from_a_checkpoint_and_add_up() {
        let totals = Totals { rebuilds: 3, keys: 5, bytes: 7, foreign: 2, ..stats().totals };
        assert_eq!(Totals::from_words(&totals.to_words()), totals);
        let counters = Counters::new(totals, 0.0);
        let sample = counters.begin();
        counters.end(sample, Outcome::Skipped);
        counters.add(Outcome::Hit, 10, 1000);
        let sum = counters.totals();
        assert_eq!((sum.skipped.count, sum.hits.count, sum.rebuilds), (901, 100, 3));
        assert_eq!((sum.skipped.samples, sum.hits.nanos), (91, 9 * 60_000 + 1000));
    }

    #[test]
    fn threads_count_together() {
        let counters = Counters::new(Totals::default(), 0.0);
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let sample = counters.begin();
                        counters.end(sample, Outcome::Hit);
                    }
                });
            }
        });
        let hits = counters.totals().hits;
        assert_eq!(hits.count, 40_000);
        assert!(hits.samples >= 40_000 / 64 && hits.samples < 20_000, "{}", hits.samples);
    }
}
