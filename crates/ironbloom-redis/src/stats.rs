//! What happened since the module was loaded, for INFO.
//!
//! Commands run on the server's main thread, one after the other, so counting is a load and a store without a locked
//! instruction. Functions that other threads may call say so.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(crate) use ironbloom::redisbloom::stats::{GROWTHS, OVERFULL, merged};

/// A number that grows.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`. Only the main thread may call it: of two concurrent calls, one would be lost.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Items that were looked up, and those that were reported present.
pub(crate) static QUERIES: Counter = Counter::new();
pub(crate) static POSITIVES: Counter = Counter::new();
/// Items that changed a filter.
pub(crate) static ADDED: Counter = Counter::new();
pub(crate) static DELETED: Counter = Counter::new();
/// Error replies.
pub(crate) static ERRORS: Counter = Counter::new();
/// Filters from files whose counters were repaired, and filters that were refused.
pub(crate) static REPAIRED: Counter = Counter::new();
pub(crate) static REFUSED: Counter = Counter::new();

/// Counts the answers of a query.
#[inline]
pub(crate) fn answered(found: &[bool]) {
    QUERIES.add(found.len() as u64);
    POSITIVES.add(found.iter().map(|&is_found| u64::from(is_found)).sum());
}

/// Microseconds of the longest step.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Runs something that may take long, and remembers the longest time. Any thread may call it. Not for commands on single items:
/// they are too short to read the clock twice.
pub(crate) fn timed<R>(run: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let outcome = run();
    LONGEST.fetch_max(start.elapsed().as_micros() as u64, Ordering::Relaxed);
    outcome
}

/// Microseconds that the longest step took.
pub(crate) fn longest() -> u64 {
    LONGEST.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_is_remembered_and_a_shorter_one_is_not() {
        timed(|| std::thread::sleep(std::time::Duration::from_millis(5)));
        let longest_so_far = longest();
        assert!(longest_so_far >= 5000);
        assert_eq!(timed(|| 7), 7);
        assert_eq!(longest(), longest_so_far);
    }
}
