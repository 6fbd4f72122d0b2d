//! What happened to filters in this process, for servers that report it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that grows.
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
/// Sub-filters that hold more keys than planned after a merge. Nothing else that commands do makes a rate worse than planned:
/// filters that are full grow or refuse keys.
pub static OVERFULL: Counter = Counter::new();

/// How far the number of keys may be above the plan before a merge counts: it is an estimate.
const TOLERANCE: f64 = 1.05;

/// Counts a sub-filter into which a merge put too many keys.
pub fn merged(len: f64, capacity: u64) {
    OVERFULL.add(u64::from(len > TOLERANCE * capacity as f64));
}

/// Counts a sub-filter that a walk over all of them comes by, so that tests know how many steps an operation takes.
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

    /// Sub-filters that an operation comes by.
    pub(crate) fn of<R>(run: impl FnOnce() -> R) -> (u64, R) {
        let before = VISITS.get();
        let outcome = run();
        (VISITS.get() - before, outcome)
    }
}
