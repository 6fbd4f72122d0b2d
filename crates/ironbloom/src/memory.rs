//! Memory of filters: where it comes from, prefetching, and counting bits.
//!
//! For programs that do their own memory accounting, such as a server that counts its allocator's memory, and that
//! implement their own filters.

use std::ops::{Deref, DerefMut};

use crate::error::ParamError;
use crate::kernel;

/// Makes all memory of filters come from the program's allocator from now on. Otherwise arrays of 2 MiB and more come
/// directly from the system, which has larger pages for them, but are invisible to accounting in the allocator.
///
/// This is for servers, so new filters are on 4 KiB pages: a 2 MiB page is cleared as a whole when its first byte is
/// touched, while other clients wait. When a filter is [dense](dense_at), request larger ones
/// ([`prefer_huge_pages`](crate::format::native::prefer_huge_pages)).
pub fn take_all_from_allocator() {
    kernel::take_all_from_allocator();
}

/// Prefetches the cache line that holds `bytes[index]`, to be read shortly after. An out-of-range index is ignored:
/// this is only a hint.
#[inline(always)]
pub fn prefetch(bytes: &[u8], index: usize) {
    kernel::prefetch_line(bytes.as_ptr().wrapping_add(index).cast());
}

/// Tells the system that an array is accessed at random, so that it may use 2 MiB pages: accesses then hit the TLB. A
/// hint, for memory from the caller's allocator; filters of this crate do this themselves.
pub fn prefer_huge_pages(array: &[u8]) {
    kernel::prefer_huge_pages(array.as_ptr(), array.len());
}

/// Number of keys after which nearly every page of an array of `bytes` has been written to, at `places` random places per key,
/// so that larger pages cost no memory. An array too small for them never gets there.
pub fn dense_at(bytes: u64, places: u32) -> u64 {
    kernel::dense_at(bytes, places)
}

/// Counts the bits that are set, with the best instructions of the processor.
pub fn count_ones(bytes: &[u8]) -> u64 {
    kernel::count_ones(bytes)
}

/// Sets the bits of another array, and counts the ones of the result, in one pass over memory. Where the other array is
/// zero, nothing is written.
///
/// # Panics
///
/// If the two differ in length.
#[track_caller]
pub fn union_counting(bytes: &mut [u8], other: &[u8]) -> u64 {
    assert_eq!(bytes.len(), other.len(), "arrays of a union");
    kernel::or_counting(bytes, other)
}

/// An array of 64-bit words, allocated like those of filters: from the allocator or, if large, directly from the system
/// on 2 MiB pages, because it is accessed at random.
#[derive(Clone, Debug)]
pub struct WordArray {
    words: kernel::Words,
    len: usize,
}

impl WordArray {
    /// Allocates `len` zeros.
    ///
    /// # Errors
    ///
    /// [`ParamError::Memory`] if allocation fails.
    pub fn zeroed(len: usize) -> Result<Self, ParamError> {
        Ok(Self { words: kernel::Words::zeroed((len as u64).saturating_mul(64))?, len })
    }
}

impl Deref for WordArray {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

impl DerefMut for WordArray {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        &mut self.words.to_mut()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_the_length_that_was_asked_for() {
        for len in [0, 1, 7, 8, 9, (2 << 20) / 8 + 1] {
            let mut array = WordArray::zeroed(len).unwrap();
            assert!(array.len() == len && array.iter().all(|&word| word == 0));
            array.fill(7);
            let copy = array.clone();
            array.fill(8);
            assert!(copy.iter().all(|&word| word == 7) && copy.len() == len);
        }
        assert!(matches!(WordArray::zeroed(usize::MAX), Err(ParamError::Memory { .. })));
    }

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
