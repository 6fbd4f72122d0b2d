//! A counter that many threads increment without contention.
//!
//! ```text
//! thread 3 ──► [ slot 3 ]  a cache line of its own: read, add, write
//! thread 9 ──► [ slot 9 ]
//! others   ──► [ shared ]  an atomic addition
//! ```
//!
//! A single atomic would cost as much as several bits of an insert, and its cache line would bounce between cores: two
//! threads were slower than one. A thread that counts for the first time gets a number below [`SLOTS`], which is its
//! own until it ends; so its slot has one writer at a time and needs no atomic addition. Threads beyond that share one
//! slot.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of threads with their own slot. The last slot is shared by all others.
const SLOTS: usize = 32;
const SHARED: usize = SLOTS - 1;

/// A number in its own cache line.
#[repr(align(64))]
#[derive(Default)]
struct Slot(AtomicU64);

/// See the module documentation.
pub(crate) struct Counter(Box<[Slot; SLOTS]>);

impl Counter {
    /// A counter with the initial value `start`.
    pub(crate) fn new(start: u64) -> Self {
        let slots: [Slot; SLOTS] = Default::default();
        slots[SHARED].0.store(start, Ordering::Relaxed);
        Self(Box::new(slots))
    }

    #[inline]
    pub(crate) fn add(&self, more: u64) {
        let slot = own_slot();
        let number = &self.0[slot].0;
        if slot == SHARED {
            number.fetch_add(more, Ordering::Relaxed);
        } else {
            // No other thread has this slot, so nobody writes between the two accesses.
            number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// The sum. While other threads add, it is some value between before and after.
    pub(crate) fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, slot| sum.wrapping_add(slot.0.load(Ordering::Relaxed)))
    }
}

/// Slot numbers that no live thread has.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// How many slot numbers have been assigned, at most [`SHARED`].
static GIVEN: Mutex<usize> = Mutex::new(0);

/// The slot of this thread, given back when the thread ends. The lock makes the last owner's writes visible.
struct Owned(usize);

impl Owned {
    fn take() -> Self {
        let lock = |poisoned: std::sync::PoisonError<_>| poisoned.into_inner();
        if let Some(slot) = FREE.lock().unwrap_or_else(lock).pop() {
            return Self(slot);
        }
        let mut given = GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let slot = *given;
        *given = (slot + 1).min(SHARED);
        Self(slot)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Anything in this thread that still counts uses the shared slot from now on.
        let _ = SLOT.try_with(|slot| slot.set(SHARED));
        if self.0 != SHARED {
            FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(self.0);
        }
    }
}

/// What [`SLOT`] holds before the thread has counted for the first time.
const UNKNOWN: usize = usize::MAX;

thread_local! {
    /// A plain number, which is faster to read than one with a destructor.
    static SLOT: Cell<usize> = const { Cell::new(UNKNOWN) };
    static OWNED: Owned = Owned::take();
}

#[inline]
fn own_slot() -> usize {
    match SLOT.get() {
        UNKNOWN => first_slot(),
        slot => slot,
    }
}

/// Takes a slot for this thread. A thread that is ending uses the shared slot.
#[cold]
fn first_slot() -> usize {
    let slot = OWNED.try_with(|owned| owned.0).unwrap_or(SHARED);
    SLOT.set(slot);
    slot
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

    /// Slots are reused: a thousand threads one after the other each get one, and each adds to what was there.
    #[test]
    fn threads_that_come_and_go_do_not_use_up_the_slots() {
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
    fn two_threads_at_a_time_never_have_the_same_slot() {
        let barrier = std::sync::Barrier::new(8);
        let slots: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let slot = own_slot();
                        barrier.wait(); // none ends before all have one
                        slot
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut own: Vec<usize> = slots.into_iter().filter(|&slot| slot != SHARED).collect();
        own.sort_unstable();
        assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "{own:?}");
    }
}
