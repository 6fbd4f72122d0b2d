//! The blocks of a filter, with the kernel that works on them and the loops over many hashes that all kernels share.

use std::sync::atomic::AtomicU64;

use super::atomic_words::AtomicWords;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use super::avx2::Avx2;
use super::batch::{AHEAD_BY_LINE, contains_each, for_each_so_far_ahead, is_near, prefetch_line};
use super::scalar::{self, block_of};
use super::words::Words;
use crate::hash::fastrange;

/// The instructions to use, chosen once when a filter is made: a branch that is always predicted, even for single
/// lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Scalar,
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    Avx2(Avx2),
}

impl Kernel {
    /// The best one for this processor.
    #[inline]
    pub(super) fn best() -> Self {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if let Some(avx2) = Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Scalar
    }

    #[inline(always)]
    fn contains<const W: usize>(self, block: &[u64; W], hash: u64) -> bool {
        match self {
            Self::Scalar => scalar::contains(block, hash),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.contains(block, hash),
        }
    }

    #[inline(always)]
    fn insert<const W: usize>(self, block: &mut [u64; W], hash: u64) -> bool {
        match self {
            Self::Scalar => scalar::insert(block, hash),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.insert(block, hash),
        }
    }

    #[inline(always)]
    fn contains_shared<const W: usize>(self, block: &[AtomicU64; W], hash: u64) -> bool {
        match self {
            Self::Scalar => scalar::contains_shared(block, hash),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.contains_shared(block, hash),
        }
    }
}

/// Blocks of `W` words. The last line of the words may have room for one more, which is not used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks<const W: usize> {
    words: Words,
    count: u64,
    kernel: Kernel,
}

impl<const W: usize> Blocks<W> {
    /// The first `count` blocks of these words.
    ///
    /// # Panics
    ///
    /// If there are no blocks, or not so many.
    pub(crate) fn new(words: Words, count: u64) -> Self {
        Self::with_kernel(words, count, Kernel::best())
    }

    pub(super) fn with_kernel(words: Words, count: u64, kernel: Kernel) -> Self {
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
        self.contains_with(self.kernel, &self.words, hash)
    }

    #[inline(always)]
    fn contains_with(&self, kernel: Kernel, words: &[u64], hash: u64) -> bool {
        // SAFETY: there are `count` blocks (`with_kernel`).
        kernel.contains::<W>(unsafe { block_at(words, self.count, hash) }, hash)
    }

    /// Sets all bits of the hash in its block. True if some were not.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64) -> bool {
        // SAFETY: there are `count` blocks (`with_kernel`).
        let block = unsafe { block_at_mut::<W>(self.words.to_mut(), self.count, hash) };
        self.kernel.insert(block, hash)
    }

    /// [`contains`](Self::contains) for many hashes.
    pub(crate) fn contains_all(&self, hashes: &[u64], found: &mut [bool]) {
        let (kernel, words): (_, &[u64]) = (self.kernel, &self.words);
        let answer = |hash| self.contains_with(kernel, words, hash);
        if is_near(words) {
            contains_each(hashes, found, answer);
        } else {
            let ask = |hash| touch::<W>(words, self.count, hash);
            let hashes = &hashes[..hashes.len().min(found.len())];
            for_each_so_far_ahead::<AHEAD_BY_LINE, _, _>(
                found,
                hashes,
                |_, hash| ask(hash),
                |found, i, hash, ()| found[i] = answer(hash),
            );
        }
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    pub(crate) fn insert_all(&mut self, hashes: &[u64]) -> u64 {
        let (kernel, count) = (self.kernel, self.count);
        let mut new = 0;
        let mut insert = |words: &mut [u64], hash| {
            // SAFETY: there are `count` blocks (`with_kernel`).
            let block = unsafe { block_at_mut::<W>(words, count, hash) };
            new += u64::from(kernel.insert(block, hash));
        };
        let words = self.words.to_mut();
        if is_near(words) {
            hashes.iter().for_each(|&hash| insert(words, hash));
        } else {
            let ask = |words: &[u64], hash| touch::<W>(words, count, hash);
            for_each_so_far_ahead::<AHEAD_BY_LINE, _, _>(
                words,
                hashes,
                ask,
                |words, _, hash, ()| {
                    insert(words, hash);
                },
            );
        }
        new
    }

    /// Asks for the line of a hash.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) {
        touch::<W>(&self.words, self.count, hash);
    }
}

/// The bytes before the block of a hash: [`block_of`] times the bytes of a block.
///
/// For whole lines the size goes into the multiplication and its remainder is masked away. Multiplied afterwards, the
/// compiler joins the shifts into a double shift, which takes six micro-operations on AMD's processors: a tenth of a
/// lookup in cache, and the check of a bound as much again. That is why the two functions below are unsafe.
#[inline(always)]
fn offset<const W: usize>(hash: u64, count: u64) -> usize {
    if W == 8 {
        fastrange(hash, count * 64) as usize & !63
    } else {
        block_of::<W>(hash, count) * W * size_of::<u64>()
    }
}

/// The block of a hash.
///
/// # Safety
///
/// `words` must have `count` blocks.
#[inline(always)]
unsafe fn block_at<const W: usize>(words: &[u64], count: u64, hash: u64) -> &[u64; W] {
    debug_assert!(count as usize * W <= words.len());
    // SAFETY: block_of is less than `count`, so the whole block is inside; words of a block need no more alignment than
    // words.
    unsafe { &*words.as_ptr().byte_add(offset::<W>(hash, count)).cast() }
}

/// The block of a hash.
///
/// # Safety
///
/// `words` must have `count` blocks.
#[inline(always)]
unsafe fn block_at_mut<const W: usize>(words: &mut [u64], count: u64, hash: u64) -> &mut [u64; W] {
    debug_assert!(count as usize * W <= words.len());
    // SAFETY: as in `block_at`; the result borrows from the exclusive slice.
    unsafe { &mut *words.as_mut_ptr().byte_add(offset::<W>(hash, count)).cast() }
}

#[inline(always)]
fn touch<const W: usize>(words: &[u64], count: u64, hash: u64) {
    prefetch_line(words.as_ptr().wrapping_byte_add(offset::<W>(hash, count)).cast());
}

/// Are all bits of the hash set in its block, of `count` blocks that other threads write to?
///
/// # Panics
///
/// If there are not so many blocks.
#[inline(always)]
pub(crate) fn contains_shared<const W: usize>(words: &AtomicWords, count: u64, hash: u64) -> bool {
    words.kernel().contains_shared::<W>(shared_block(words, count, hash), hash)
}

/// Sets all bits of the hash in its block. True if some were not: two threads that insert the same new hash at the same
/// time may both be told so.
///
/// Setting only the bits that are missing saves a quarter of the atomic ORs and costs a mispredicted branch, which takes
/// longer (42 ns an insert instead of 34, a million keys, AMD EPYC Zen 3, 2026-11-16; pairs of words by `cmpxchg16b`: 48).
///
/// # Panics
///
/// If there are not so many blocks.
#[inline]
pub(crate) fn insert_shared<const W: usize>(words: &AtomicWords, count: u64, hash: u64) -> bool {
    let block = shared_block::<W>(words, count, hash);
    let new = !words.kernel().contains_shared::<W>(block, hash);
    if new {
        scalar::set_shared::<W>(block, hash);
    }
    new
}

#[inline(always)]
fn shared_block<const W: usize>(words: &AtomicWords, count: u64, hash: u64) -> &[AtomicU64; W] {
    let cells = words.cells();
    // Does not depend on the hash: a loop checks once.
    assert!(count as usize <= cells.len() / W, "blocks out of range");
    // SAFETY: as in `block_at`: there are `count` blocks.
    unsafe { &*cells.as_ptr().byte_add(offset::<W>(hash, count)).cast() }
}
