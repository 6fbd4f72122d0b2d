//! Counting lookups at little cost: each thread on its own cache line, and the clock for one lookup in many.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Measured, Timed, Totals};

/// More than the number of threads likely to look up at once; others share.
const LINES: usize = 32;
/// The first lookups of a line, this many, are all timed, so that a short program has something to report.
const FIRST: u64 = 64;
/// After that, one lookup in this many: reading the clock twice takes as long as a skipped lookup.
const PERIOD: u64 = 64;

/// The outcome of a lookup.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Skipped = 0,
    FalsePositive = 1,
    Hit = 2,
    Unguarded = 3,
}

#[derive(Default)]
#[repr(align(128))]
struct Line {
    counts: [AtomicU64; 4],
    samples: [AtomicU64; 4],
    nanos: [AtomicU64; 4],
}

/// See the module documentation.
pub(crate) struct Counters {
    lines: Box<[Line; LINES]>,
    /// What was counted before this guard was opened.
    before: Totals,
    /// Lookups that could have been skipped, and asked the store to learn what that costs.
    measured: Mutex<Measured>,
    /// The share of the time that may be spent on those.
    share: f64,
    opened: Instant,
}

/// The beginning of a lookup, if it is timed.
pub(crate) enum Sample {
    Untimed,
    /// `first` if all lookups are, because there were few.
    Timed {
        start: Instant,
        first: bool,
    },
}

impl Counters {
    pub(crate) fn new(before: Totals, share: f64) -> Self {
        let measured = Mutex::default();
        Self { lines: Box::default(), before, measured, share, opened: Instant::now() }
    }

    /// Whether a lookup that could be skipped asks the store, to measure what that costs. Which ones are chosen does not
    /// depend on how long they take, only on when the last ones were.
    pub(crate) fn measures(&self, sample: &Sample) -> bool {
        let Sample::Timed { start, first: false } = sample else { return false };
        if self.share <= 0.0 {
            return false;
        }
        let spent = self.measured.lock().unwrap_or_else(PoisonError::into_inner).nanos();
        spent <= self.share * start.duration_since(self.opened).as_nanos() as f64
    }

    /// A lookup that could have been skipped has asked the store for this long. It counts as skipped: its answer was
    /// known.
    pub(crate) fn measured(&self, nanos: u64) {
        self.line().counts[Outcome::Skipped as usize].fetch_add(1, Ordering::Relaxed);
        self.measured.lock().unwrap_or_else(PoisonError::into_inner).add(nanos as f64);
    }

    fn line(&self) -> &Line {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static LINE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % LINES;
        }
        LINE.with(|&line| &self.lines[line])
    }

    /// Called when a lookup begins. Which ones are timed depends on how many there were, since their outcome is not
    /// known yet.
    #[inline]
    pub(crate) fn begin(&self) -> Sample {
        let line = self.line();
        let seen = line.counts.iter().fold(0, |sum, n| sum + n.load(Ordering::Relaxed));
        match seen < FIRST || seen.is_multiple_of(PERIOD) {
            true => Sample::Timed { start: Instant::now(), first: seen < FIRST },
            false => Sample::Untimed,
        }
    }

    /// Called when it has ended.
    #[inline]
    pub(crate) fn end(&self, sample: Sample, outcome: Outcome) {
        let line = self.line();
        line.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if let Sample::Timed { start, .. } = sample {
            line.samples[outcome as usize].fetch_add(1, Ordering::Relaxed);
            let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            line.nanos[outcome as usize].fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Lookups that were answered together: `nanos` is the time of all.
    pub(crate) fn add(&self, outcome: Outcome, count: u64, nanos: u64) {
        let line = self.line();
        line.counts[outcome as usize].fetch_add(count, Ordering::Relaxed);
        line.samples[outcome as usize].fetch_add(count, Ordering::Relaxed);
        line.nanos[outcome as usize].fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        let sum = |outcome: Outcome| {
            let of = |pick: fn(&Line) -> &[AtomicU64; 4]| -> u64 {
                self.lines
                    .iter()
                    .map(|line| pick(line)[outcome as usize].load(Ordering::Relaxed))
                    .sum()
            };
            Timed { count: of(|s| &s.counts), samples: of(|s| &s.samples), nanos: of(|s| &s.nanos) }
        };
        let mut totals = Totals {
            skipped: sum(Outcome::Skipped),
            false_positives: sum(Outcome::FalsePositive),
            hits: sum(Outcome::Hit),
            unguarded: sum(Outcome::Unguarded),
            measured: *self.measured.lock().unwrap_or_else(PoisonError::into_inner),
            ..Totals::default()
        };
        totals.add(&self.before);
        totals
    }
}
