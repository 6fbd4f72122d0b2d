//! The blocks of a filter, with the kernel that works on them.

use std::sync::atomic::AtomicU64;

use super::address::{shared_block_at, touch};
use super::atomic_words::AtomicWords;
use super::dispatch::Kernel;
use super::scalar;
use super::words::{LINE_WORDS, Words};

/// Blocks of `W` words. The last line of the words may have room for one more, which is not used.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<const W: usize> {
    words: Words,
    count: u64,
    kernel: &'static Kernel<W>,
}

impl<const W: usize> Blocks<W> {
    /// The first `count` blocks of these words.
    ///
    /// # Panics
    ///
    /// If there are no blocks, or fewer than `count`.
    pub(crate) fn new(words: Words, count: u64) -> Self {
        Self::with_kernel(words, count, Kernel::best())
    }

    /// As [`new`](Self::new), with one of the kernels that are [available](Kernel::available).
    pub(super) fn with_kernel(words: Words, count: u64, kernel: &'static Kernel<W>) -> Self {
        assert!(0 < count && count <= words.as_chunks::<W>().0.len() as u64, "blocks out of range");
        Self { words, count, kernel }
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut Words {
        &mut self.words
    }

    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    /// All blocks.
    pub(crate) fn all(&self) -> &[[u64; W]] {
        &self.words.as_chunks().0[..self.count as usize]
    }

    /// Are all bits of the hash set in its block?
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        // SAFETY: there are `count` blocks, and the kernel is available (`with_kernel`).
        unsafe { self.kernel.contains(&self.words, self.count, hash) }
    }

    /// Sets all bits of the hash in its block. True if some were not.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        // SAFETY: as above.
        unsafe { self.kernel.insert(self.words.to_mut(), self.count, hash) }
    }

    /// [`contains`](Self::contains) for many hashes.
    pub(crate) fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
        // SAFETY: as above.
        unsafe { self.kernel.contains_all(&self.words, self.count, hashes, found) };
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    pub(crate) fn insert_all(&mut self, hashes: &[u64]) -> u64 {
        // SAFETY: as above.
        unsafe { self.kernel.insert_all(self.words.to_mut(), self.count, hashes) }
    }

    /// Asks for the line of a hash.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) {
        touch::<W>(self.words.as_ptr(), self.count, hash);
    }
}

/// The same bits, whatever works on them.
impl<const W: usize> PartialEq for Blocks<W> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.count == other.count
    }
}

/// The cells of `count` blocks of a line each that other threads write to.
///
/// # Panics
///
/// If there are fewer.
#[inline(always)]
fn cells_of(words: &AtomicWords, count: u64) -> &[AtomicU64] {
    let cells = words.cells();
    // Does not depend on the hash: a loop checks once.
    assert!(count as usize <= cells.len() / LINE_WORDS, "blocks out of range");
    cells
}

/// Are all bits of the hash set in its block, of `count` blocks that other threads write to?
///
/// # Panics
///
/// If there are fewer blocks.
#[inline(always)]
pub(crate) fn contains_shared(words: &AtomicWords, count: u64, hash: u64) -> bool {
    // SAFETY: there are `count` blocks, and the kernel is available (`AtomicWords::from_words`).
    unsafe { words.kernel().contains_shared(cells_of(words, count), count, hash) }
}

/// [`contains_shared`] for many hashes.
///
/// # Panics
///
/// If there are fewer blocks.
pub(crate) fn contains_all_shared(
    words: &AtomicWords,
    count: u64,
    hashes: &[u64],
    found: &mut [bool],
) {
    // SAFETY: as above.
    unsafe { words.kernel().contains_all_shared(cells_of(words, count), count, hashes, found) };
}

/// Sets all bits of the hash in its block. True if some were not: two threads that insert the same new hash at the same
/// time may both be told so.
///
/// Setting only the bits that are missing saves a quarter of the atomic ORs and costs a mispredicted branch, which takes
/// longer (42 ns an insert instead of 34, a million keys, AMD EPYC Zen 3, 2026-11-16; pairs of words by `cmpxchg16b`: 48).
///
/// # Panics
///
/// If there are fewer blocks.
#[inline]
pub(crate) fn insert_shared(words: &AtomicWords, count: u64, hash: u64) -> bool {
    let cells = cells_of(words, count);
    let new = !contains_shared(words, count, hash);
    if new {
        // SAFETY: there are `count` blocks.
        let block = unsafe { shared_block_at::<LINE_WORDS>(cells, count, hash) };
        scalar::set_shared(block, hash);
    }
    new
}
