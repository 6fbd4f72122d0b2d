//! System pages: 4 KiB, or huge ones of 2 MiB on request.
//!
//! Random probes into small pages miss the TLB each time, and even a prefetch then waits for the page table. But a huge page
//! is cleared as a whole when its first byte is touched: a hundred keys in a filter of 400 MB touch nearly every huge page of
//! it, so they take all 400 MB, and the time to clear them. That is fine for a program that builds a filter, but not
//! for a server, which serves no other client while it waits. So in a program that [takes all memory from its
//! allocator](crate::memory::take_all_from_allocator), huge pages are requested
//!
//! - when nearly all small pages have been written to ([`dense_at`]): the system then merges them gradually, in the
//!   background;
//! - for bytes that fill a good part of their page: clearing it takes about as long as writing them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a huge page; arrays of at least this size benefit from them.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a small page.
const PAGE: usize = 4096;

/// A huge page is worth clearing if one in this many of its bytes is written.
const WORTH: usize = 4;

/// Writes per small page after which nearly all pages have been written: one in e^8 = 3000 has not.
const WRITES_PER_PAGE: u64 = 8;

/// True if large arrays also come from the allocator.
static ALLOCATOR_ALONE: AtomicBool = AtomicBool::new(false);

/// See [`memory`](crate::memory).
pub(crate) fn take_all_from_allocator() {
    ALLOCATOR_ALONE.store(true, Ordering::Relaxed);
}

pub(crate) fn is_allocator_alone() -> bool {
    ALLOCATOR_ALONE.load(Ordering::Relaxed)
}

/// Number of keys after which nearly every page of an array has been written to, at `places` random places per key. An array
/// smaller than a huge page never gets there.
pub(crate) fn dense_at(bytes: u64, places: u32) -> u64 {
    if bytes < 2 * HUGE_PAGE as u64 {
        return u64::MAX;
    }
    (bytes / PAGE as u64 * WRITES_PER_PAGE).div_ceil(u64::from(places.max(1)))
}

/// Requests huge pages for the part of some memory that covers whole ones.
pub(crate) fn prefer_huge_pages(start: *const u8, len: usize) {
    let first = start.addr().next_multiple_of(HUGE_PAGE);
    let end = (start.addr() + len) / HUGE_PAGE * HUGE_PAGE;
    if first < end {
        advise(first, end - first);
    }
}

/// Like [`prefer_huge_pages`], for new memory, except in servers: see the module documentation.
pub(crate) fn prefer_huge_pages_at_first(start: *const u8, len: usize) {
    if !is_allocator_alone() {
        prefer_huge_pages(start, len);
    }
}

/// Requests the huge pages of an array of which a good part is about to be written, unless that was done at allocation.
pub(crate) fn prefer_huge_pages_to_fill(array: &[u8], written: Range<usize>) {
    if written.len() >= HUGE_PAGE / WORTH && is_allocator_alone() {
        advise_to_fill(array, written);
    }
}

fn advise_to_fill(array: &[u8], written: Range<usize>) {
    let start = array.as_ptr().addr();
    let (first, end) = (start + written.start, start + written.end);
    for page in (first / HUGE_PAGE * HUGE_PAGE..end).step_by(HUGE_PAGE) {
        let is_inside = page >= start && page + HUGE_PAGE <= start + array.len();
        let bytes = end.min(page + HUGE_PAGE) - first.max(page);
        if is_inside && bytes >= HUGE_PAGE / WORTH {
            advise(page, HUGE_PAGE);
        }
    }
}

/// Copies to an array of zeros of the same length. Pages of zeros are not written, so a copy of a filter with few keys takes
/// as few pages as the original.
pub(crate) fn copy_to_zeros(to: &mut [u8], from: &[u8]) {
    debug_assert_eq!(to.len(), from.len());
    // Parts that end at the boundary of a huge page.
    let to_boundary = to.as_ptr().addr().next_multiple_of(HUGE_PAGE) - to.as_ptr().addr();
    let mut start = 0;
    let mut end = to_boundary.min(from.len());
    while start < from.len() {
        let part = &from[start..end];
        let in_use = part.chunks(PAGE).filter(|page| !is_zero(page)).count();
        if in_use * PAGE >= HUGE_PAGE / WORTH {
            prefer_huge_pages_to_fill(to, start..end);
        }
        if in_use > 0 {
            for (to, from) in to[start..end].chunks_mut(PAGE).zip(part.chunks(PAGE)) {
                if !is_zero(from) {
                    to.copy_from_slice(from);
                }
            }
        }
        start = end;
        end = (start + HUGE_PAGE).min(from.len());
    }
}

/// Returns true if all bytes are zero. Stops at the first line that is not.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(64).all(|line| line.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Advises the system about whole huge pages inside our memory.
#[cfg(target_os = "linux")]
fn advise(start: usize, len: usize) {
    use std::ffi::{c_int, c_void};

    const MADV_HUGEPAGE: c_int = 14;

    unsafe extern "C" {
        fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
    }

    // SAFETY: only advice of this kind, which changes no byte; the range is inside the caller's memory, and whole pages of
    // any size. A refusal (an old kernel, a container) costs nothing but speed.
    unsafe { madvise(start as *mut c_void, len, MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_start: usize, _len: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_equal_wherever_it_begins_and_whatever_is_zero() {
        for len in [0, 1, 63, PAGE, PAGE + 1, HUGE_PAGE - 1, 3 * HUGE_PAGE + 77] {
            for skipped in [0, 1, 100] {
                let mut from = vec![0u8; len];
                // Nonzero pages at the beginning, in the middle or at the end; and a dense part.
                for at in (0..len).step_by(5 * PAGE + 13) {
                    from[at] = 7;
                }
                let dense = (len / 2).min(HUGE_PAGE);
                from[len - dense..].iter_mut().zip(0..).for_each(|(byte, i)| *byte = i as u8);
                let mut to = vec![0u8; len + skipped];
                copy_to_zeros(&mut to[skipped..], &from);
                assert_eq!(to[skipped..], from, "{len} bytes after {skipped}");
            }
        }
    }

    /// Advice for memory that is not ours would be a bug; the ranges are computed as in production.
    #[test]
    fn advice_changes_nothing_wherever_bytes_are_written() {
        let mut array = vec![0u8; 5 * HUGE_PAGE + 77];
        for (start, len) in
            [(0, 0), (0, PAGE), (17, HUGE_PAGE), (5 * HUGE_PAGE, 77), (1, 4 * HUGE_PAGE)]
        {
            advise_to_fill(&array, start..start + len);
            array[start..start + len].fill(9);
        }
        assert!(array[1..4 * HUGE_PAGE + 1].iter().all(|&byte| byte == 9));
    }

    /// 8 writes for each of 1024 pages: at 10 places per key, 820 keys.
    #[test]
    fn an_array_is_dense_when_every_page_was_written_to_eight_times() {
        assert_eq!(dense_at(2 * HUGE_PAGE as u64, 10), 820);
        assert_eq!(dense_at(2 * HUGE_PAGE as u64 - 1, 10), u64::MAX);
        assert_eq!(dense_at(2 * HUGE_PAGE as u64, 0), 8192);
    }
}
