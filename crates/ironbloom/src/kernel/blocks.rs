//! The blocks of a filter, with the kernel that works on them.

use std::sync::atomic::AtomicU64;

use super::address::{block_at, touch};
use super::atomic_words::AtomicWords;
use super::dispatch::Kernel;
use super::scalar;
use super::words::{LINE_WORDS, Words};

/// Blocks of `W` words. The last line of the words may have room for one more block, which is unused.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<const W: usize> {
    words: Words,
    count: u64,
    kernel: &'static Kernel<W>,
}

impl<const W: usize> Blocks<W> {
    /// Takes the first `count` blocks of these words.
    ///
    /// # Panics
    ///
    /// If there are no blocks, or fewer than `count`.
    pub(crate) fn new(words: Words, count: u64) -> Self {
        Self::with_kernel(words, count, Kernel::best())
    }

    /// Like [`new`](Self::new), with one of the [available](Kernel::available) kernels.
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
    #[inline]
    pub(crate) fn all(&self) -> &[[u64; W]] {
        // SAFETY: there are `count` blocks (`with_kernel`); words never become fewer.
        unsafe { self.words.as_chunks().0.get_unchecked(..self.count as usize) }
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [[u64; W]] {
        // SAFETY: as above.
        unsafe { self.words.to_mut().as_chunks_mut().0.get_unchecked_mut(..self.count as usize) }
    }

    /// Returns true if all bits of the hash are set in its block.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        // SAFETY: there is a block, and the kernel is available (`with_kernel`).
        unsafe { self.kernel.contains(self.all(), hash) }
    }

    /// Sets all bits of the hash in its block. Returns true if some were not set.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        let kernel = self.kernel;
        // SAFETY: as above.
        unsafe { kernel.insert(self.all_mut(), hash) }
    }

    /// [`contains`](Self::contains) for many hashes.
    pub(crate) fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
        // SAFETY: as above.
        unsafe { self.kernel.contains_all(self.all(), hashes, found) };
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    pub(crate) fn insert_all(&mut self, hashes: &[u64]) -> u64 {
        let kernel = self.kernel;
        // SAFETY: as above.
        unsafe { kernel.insert_all(self.all_mut(), hashes) }
    }

    /// Prefetches the cache line of a hash.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) {
        touch(self.all(), hash);
    }
}

/// Compares the bits, not the kernels.
impl<const W: usize> PartialEq for Blocks<W> {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.count == other.count
    }
}

/// Returns the blocks of words that other threads write to: one per line.
///
/// # Panics
///
/// If there are none.
#[inline(always)]
fn shared(words: &AtomicWords) -> &[[AtomicU64; LINE_WORDS]] {
    let blocks = words.lines();
    assert!(!blocks.is_empty(), "no blocks");
    blocks
}

/// Returns true if all bits of the hash are set in its block, which other threads may write to.
///
/// # Panics
///
/// If there are no blocks.
#[inline(always)]
pub(crate) fn contains_shared(words: &AtomicWords, hash: u64) -> bool {
    // SAFETY: there is a block, and the kernel is available (`AtomicWords::from_words`).
    unsafe { words.kernel().contains_shared(shared(words), hash) }
}

/// [`contains_shared`] for many hashes.
///
/// # Panics
///
/// If there are no blocks.
pub(crate) fn contains_all_shared(words: &AtomicWords, hashes: &[u64], found: &mut [bool]) {
    // SAFETY: as above.
    unsafe { words.kernel().contains_all_shared(shared(words), hashes, found) };
}

/// Prefetches the cache line of a hash.
#[inline]
pub(crate) fn touch_shared(words: &AtomicWords, hash: u64) {
    touch(words.lines(), hash);
}

/// Sets all bits of the hash in its block. Returns true if some were not set: two threads that insert the same new hash
/// at the same time may both get true.
///
/// Setting only the missing bits saves a quarter of the atomic ORs but costs a mispredicted branch, which takes longer
/// (42 ns per insert instead of 34, a million keys, AMD EPYC Zen 3, 2026-11-16; pairs of words by `cmpxchg16b`: 48).
///
/// # Panics
///
/// If there are no blocks.
#[inline]
pub(crate) fn insert_shared(words: &AtomicWords, hash: u64) -> bool {
    let new = !contains_shared(words, hash);
    if new {
        // SAFETY: there is a block.
        scalar::set_shared(unsafe { block_at(shared(words), hash) }, hash);
    }
    new
}
