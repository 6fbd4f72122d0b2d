//! Events of filters in this process, for servers that report them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sub-filters that were added because a filter was full.
pub static GROWTHS: Counter = Counter::new();
/// Sub-filters that hold more keys than planned after a merge. No other command makes a rate worse than planned: full
/// filters grow or refuse keys.
pub static OVERFULL: Counter = Counter::new();

/// How far the estimated number of keys may exceed the plan before a merge counts.
const TOLERANCE: f64 = 1.05;

/// Counts a sub-filter that a merge overfilled.
pub fn merged(len: f64, capacity: u64) {
    OVERFULL.add(u64::from(len > TOLERANCE * capacity as f64));
}

/// Counts a sub-filter visited by a walk over all of them, so that tests can count an operation's steps.
#[inline]
pub(crate) fn visit() {
    #[cfg(test)]
    visits::VISITS.set(visits::VISITS.get() + 1);
}

#[cfg(test)]
pub(crate) mod visits {
    use std::cell::Cell;

    thread_local! {
        pub(super) static VISITS: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts the sub-filters that an operation visits.
    pub(crate) fn of<R>(run: impl FnOnce() -> R) -> (u64, R) {
        let before = VISITS.get();
        let outcome = run();
        (VISITS.get() - before, outcome)
    }
}
