//! A counter that many threads increment without contention.
//!
//! ```text
//! thread 3 ──► [ line 3 ]  its own cache line: read, add, write
//! thread 9 ──► [ line 9 ]
//! others   ──► [ shared ]  an atomic addition
//! ```
//!
//! A single atomic would cost as much as several bits of an insert, and its cache line would bounce between cores: two
//! threads were slower than one. A thread that counts for the first time gets a number below [`LINES`], which is its
//! own until it ends; so its line has one writer at a time and needs no atomic addition. Threads beyond that share one
//! line.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of threads with their own line. The last line is shared by all others.
const LINES: usize = 32;
const SHARED: usize = LINES - 1;

/// A number in its own cache line.
#[repr(align(64))]
#[derive(Default)]
struct Line(AtomicU64);

/// See the module documentation.
pub(crate) struct Counter(Box<[Line; LINES]>);

impl Counter {
    /// Creates a counter with the initial value `start`.
    pub(crate) fn new(start: u64) -> Self {
        let lines: [Line; LINES] = Default::default();
        lines[SHARED].0.store(start, Ordering::Relaxed);
        Self(Box::new(lines))
    }

    #[inline]
    pub(crate) fn add(&self, more: u64) {
        let line = own_line();
        let number = &self.0[line].0;
        if line == SHARED {
            number.fetch_add(more, Ordering::Relaxed);
        } else {
            // No other thread has this line, so nothing is written between the two accesses.
            number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// Returns the sum. While other threads add, it is some value between before and after.
    pub(crate) fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, line| sum.wrapping_add(line.0.load(Ordering::Relaxed)))
    }
}

/// Line numbers not owned by a live thread.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Number of line numbers assigned so far, at most [`SHARED`].
static GIVEN: Mutex<usize> = Mutex::new(0);

/// The line of this thread, returned when the thread ends. The lock makes the last owner's writes visible.
struct Owned(usize);

impl Owned {
    fn take() -> Self {
        let lock = |poisoned: std::sync::PoisonError<_>| poisoned.into_inner();
        if let Some(line) = FREE.lock().unwrap_or_else(lock).pop() {
            return Self(line);
        }
        let mut given = GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let line = *given;
        *given = (line + 1).min(SHARED);
        Self(line)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Anything in this thread that still counts uses the shared line from now on.
        let _ = LINE.try_with(|line| line.set(SHARED));
        if self.0 != SHARED {
            FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(self.0);
        }
    }
}

/// The value of [`LINE`] before the thread has counted for the first time.
const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// A plain number, which is faster to read than one with a destructor.
    static LINE: Cell<usize> = const { Cell::new(UNKNOWN) };
    static OWNED: Owned = Owned::take();
}

#[inline]
fn own_line() -> usize {
    match LINE.get() {
        UNKNOWN => first_line(),
        line => line,
    }
}

/// Takes a line for this thread. A thread that is ending uses the shared line.
#[cold]
fn first_line() -> usize {
    let line = OWNED.try_with(|owned| owned.0).unwrap_or(SHARED);
    LINE.set(line);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_by_few_threads_or_by_many() {
        for threads in [1, 2, 10, 100] {
            let counter = Counter::new(7);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| (0..1000).for_each(|_| counter.add(2)));
                }
            });
            assert_eq!(counter.get(), 7 + 2000 * threads, "{threads} threads");
        }
    }

    /// Lines are reused: each of a thousand successive threads gets one, and adds to its value.
    #[test]
    fn threads_that_come_and_go_do_not_use_up_the_lines() {
        let counter = Counter::new(0);
        for _ in 0..1000 {
            std::thread::scope(|scope| {
                scope.spawn(|| counter.add(1));
            });
        }
        assert_eq!(counter.get(), 1000);
        assert!(*GIVEN.lock().unwrap() <= SHARED);
    }

    #[test]
    fn two_threads_at_a_time_never_have_the_same_line() {
        let barrier = std::sync::Barrier::new(8);
        let lines: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let line = own_line();
                        barrier.wait(); // no thread ends before all have a line
                        line
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut own: Vec<usize> = lines.into_iter().filter(|&line| line != SHARED).collect();
        own.sort_unstable();
        assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "{own:?}");
    }
}
