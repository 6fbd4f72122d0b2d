//! The bits of a filter, written through `&self` by many threads.
//!
//! All accesses are relaxed: a bit once set stays set, and no other memory is published through it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::Kernel;
use super::words::Words;

/// [`Words`] that are only reached as atomics, until they are taken out again.
pub struct AtomicWords {
    words: Words,
    /// What looks into their blocks, if they are a blocked filter's.
    kernel: Kernel,
}

impl AtomicWords {
    pub(crate) fn from_words(mut words: Words) -> Self {
        words.to_mut(); // a map becomes memory of our own
        Self { words, kernel: Kernel::best() }
    }

    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    #[inline]
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The words as atomics.
    #[inline]
    pub(crate) fn cells(&self) -> &[AtomicU64] {
        let start = self.words.start().as_ptr().cast();
        // SAFETY: AtomicU64 has the size, alignment and validity of u64. The memory is ours (`from_words`), and while
        // `&self` lives nothing reaches it but through these cells: the field is private and never dereferenced.
        unsafe { std::slice::from_raw_parts(start, self.size_in_bytes() / size_of::<u64>()) }
    }

    /// A copy of the words as they are. Inserts that run meanwhile may or may not be in it.
    pub(crate) fn snapshot(&self) -> Words {
        let mut copy = Words::zeroed(8 * self.size_in_bytes() as u64)
            .unwrap_or_else(|error| panic!("a copy of the filter: {error}"));
        for (word, cell) in copy.to_mut().iter_mut().zip(self.cells()) {
            *word = cell.load(Ordering::Relaxed);
        }
        copy
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

/// Sets the bits of `mask`. True if some of them were not there.
///
/// Most inserts into a half-full filter find some of their bits set; a plain load then keeps the line shared. That the
/// answer comes from this load, and not from the exchange, lets the processor set bits without a loop; two threads that
/// set one bit at the same time may both be told that they did.
#[inline]
pub(crate) fn set(cell: &AtomicU64, mask: u64) -> bool {
    let new = cell.load(Ordering::Relaxed) & mask != mask;
    if new {
        cell.fetch_or(mask, Ordering::Relaxed);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_and_plain_words_are_the_same_bits() {
        let mut words = Words::zeroed(1024).unwrap();
        words.to_mut()[3] = 0b101;
        let atomic = AtomicWords::from_words(words);
        assert!(set(&atomic.cells()[3], 0b110));
        assert!(!set(&atomic.cells()[3], 0b110));
        assert!(set(&atomic.cells()[15], 1 << 63));
        assert_eq!(atomic.snapshot()[3], 0b111);
        let words = atomic.into_words();
        assert_eq!((words[3], words[15], words.count_ones()), (0b111, 1 << 63, 4));
    }
}
