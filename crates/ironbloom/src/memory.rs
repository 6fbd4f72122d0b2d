//! Where the memory of filters comes from, and asking for it early.
//!
//! For programs in which something else keeps the accounts: a server that counts what its allocator gave, for one.

use crate::kernel;

/// From now on all memory of filters comes from the program's allocator. Otherwise arrays of 2 MiB and more come straight
/// from the system, which has larger pages for them; but then whoever counts in the allocator does not see them.
pub fn take_all_from_allocator() {
    kernel::take_all_from_allocator();
}

/// Prefetches the cache line that holds `bytes[index]`, to be read shortly after. An out-of-range index is ignored:
/// this is only a hint.
#[inline(always)]
pub fn prefetch(bytes: &[u8], index: usize) {
    kernel::prefetch_line(bytes.as_ptr().wrapping_add(index).cast());
}

/// Tells the system that an array is probed at random, so that it may put it on pages of 2 MiB: probes then find their page
/// in the processor's own table. Advice, for memory that the caller's allocator gave; filters of this crate ask for
/// themselves.
pub fn prefer_huge_pages(array: &[u8]) {
    kernel::prefer_huge_pages(array.as_ptr(), array.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_changes_nothing() {
        for len in [0, 1, 2 << 20, 5 << 20, (9 << 20) + 17] {
            let array: Vec<u8> = (0..len).map(|i| i as u8).collect();
            prefer_huge_pages(&array);
            prefetch(&array, 0);
            prefetch(&array, usize::MAX);
            assert!(array.iter().zip(0..len).all(|(&byte, i)| byte == i as u8));
        }
    }
}
