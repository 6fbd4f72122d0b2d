//! Counting lookups at little cost: each thread on its own cache line, and the clock for one lookup in many.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use super::{Timed, Totals};

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
}

/// The beginning of a lookup, if it is timed.
pub(crate) struct Sample(Option<Instant>);

impl Counters {
    pub(crate) fn new(before: Totals) -> Self {
        Self { lines: Box::default(), before }
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
        let timed = seen < FIRST || seen.is_multiple_of(PERIOD);
        Sample(timed.then(Instant::now))
    }

    /// Called when it has ended.
    #[inline]
    pub(crate) fn end(&self, sample: Sample, outcome: Outcome) {
        let line = self.line();
        line.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
        if let Sample(Some(start)) = sample {
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
            ..Totals::default()
        };
        totals.add(&self.before);
        totals
    }
}
