//! Promise: the last byte of a filter that arrives in pieces costs nothing: no array is copied, none is cleared.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use ironbloom::format::native::Incoming;
use ironbloom::hash::mix64;
use ironbloom::{BlockedBloom, Cuckoo, DLeft, Persist, Scalable, Windowed};

/// Counts the bytes requested.
struct Counting;

static ASKED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn asked<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = ASKED.load(Ordering::Relaxed);
    let result = run();
    (result, ASKED.load(Ordering::Relaxed) - before)
}

fn check<T: Persist + PartialEq>(filter: &T, what: &str) {
    let bytes = filter.to_bytes();
    let (head, rest) = bytes.split_first_chunk().unwrap();
    let (mut incoming, begin) = asked(|| Incoming::begin(head, u64::MAX).unwrap());
    assert!(begin as f64 > 0.99 * rest.len() as f64, "{what}: {begin} bytes at the header");
    let ((), pieces) = asked(|| {
        for piece in rest.chunks(1 << 18) {
            incoming.take(piece, u64::MAX).unwrap();
        }
    });
    let (arrived, end) = asked(|| incoming.finish::<T>().unwrap());
    let small = bytes.len() / 100;
    assert!(pieces < small && end < small, "{what}: {pieces} on the way, {end} at the end");
    assert!(arrived == *filter, "{what}");
}

/// The only test in this program, since all its threads are counted together.
#[test]
fn the_memory_of_a_filter_is_taken_once_and_at_its_header() {
    // Otherwise large arrays come from the system and are not counted.
    ironbloom::memory::take_all_from_allocator();
    let hashes: Vec<u64> = (0..300_000).map(mix64).collect();
    let mut blocked = BlockedBloom::with_rate(2_000_000, 0.001).unwrap();
    blocked.insert_hashes(&hashes);
    check(&blocked, "blocked");
    let mut growing = Scalable::with_rate(50_000, 0.001).unwrap();
    growing.insert_hashes(&hashes).unwrap();
    assert!(growing.stages().len() > 2);
    check(&growing, "growing");
    let mut window = Windowed::for_keys(200_000, 0.001).unwrap();
    window.insert_hashes(&hashes);
    check(&window, "window");
    let mut cuckoo = Cuckoo::with_rate(400_000, 0.001).unwrap();
    cuckoo.insert_hashes(&hashes).unwrap();
    check(&cuckoo, "cuckoo");
    let mut dleft = DLeft::with_rate(400_000, 0.001).unwrap();
    dleft.insert_hashes(&hashes).unwrap();
    check(&dleft, "d-left");
}
