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
