//! Which instructions work on the blocks of a filter: chosen once, when the filter is made.
//!
//! ```text
//!              contains, insert, contains_shared          the same, with addresses and loops
//!  scalar   ┐
//!  avx2     ├─ for one block, in a file each  ── kernel! ──►  Kernel { contains, contains_all, … }
//!  avx512   ┘
//! ```
//!
//! A function compiled for more instructions than its caller cannot be inlined into it. So the whole of an operation,
//! loops and addresses included, is compiled for each kernel, and a filter calls it through a pointer: for single
//! lookups that is as fast as instructions chosen by a branch in the caller's code, for batches faster
//! (docs/benchmarks/kernels.md). And at a call, the compiler knows which registers survive, whatever the caller was
//! compiled for.

use std::fmt;
use std::sync::atomic::AtomicU64;

use super::address::{block_at, block_at_mut, shared_block_at, touch};
use super::batch::{AHEAD_BY_LINE, contains_each, for_each_so_far_ahead, is_near};
use super::scalar;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use super::{avx2, avx512};

/// Only one kernel is compiled in: it needs no pointers and is inlined.
const ALONE: bool = cfg!(not(all(target_arch = "x86_64", feature = "simd")));

/// What one instruction set does with blocks of `W` words.
///
/// For all functions, `words` must have `count` blocks, and the processor the instructions.
pub(super) struct Kernel<const W: usize> {
    name: &'static str,
    contains: unsafe fn(words: &[u64], count: u64, hash: u64) -> bool,
    insert: unsafe fn(words: &mut [u64], count: u64, hash: u64) -> bool,
    contains_all: unsafe fn(words: &[u64], count: u64, hashes: &[u64], found: &mut [bool]),
    insert_all: unsafe fn(words: &mut [u64], count: u64, hashes: &[u64]) -> u64,
    contains_shared: unsafe fn(words: &[AtomicU64], count: u64, hash: u64) -> bool,
    contains_all_shared:
        unsafe fn(words: &[AtomicU64], count: u64, hashes: &[u64], found: &mut [bool]),
}

/// The functions of a kernel, each compiled for its instructions.
macro_rules! kernel {
    ($module:ident $(, $feature:literal)?) => {{
        $(#[target_feature(enable = $feature)])?
        unsafe fn contains<const W: usize>(words: &[u64], count: u64, hash: u64) -> bool {
            // SAFETY: the caller says that there are `count` blocks.
            $module::contains::<W>(unsafe { block_at(words, count, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn insert<const W: usize>(words: &mut [u64], count: u64, hash: u64) -> bool {
            // SAFETY: as above.
            $module::insert::<W>(unsafe { block_at_mut(words, count, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_all<const W: usize>(
            words: &[u64],
            count: u64,
            hashes: &[u64],
            found: &mut [bool],
        ) {
            let ask = |hash| touch::<W>(words.as_ptr(), count, hash);
            // SAFETY: as above.
            let answer = |hash| $module::contains::<W>(unsafe { block_at(words, count, hash) }, hash);
            contains_each_of(is_near(size_of_val(words)), hashes, found, ask, answer);
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn insert_all<const W: usize>(words: &mut [u64], count: u64, hashes: &[u64]) -> u64 {
            let mut new = 0;
            let near = is_near(size_of_val(words));
            let mut insert = |words: &mut [u64], hash| {
                // SAFETY: as above.
                let block = unsafe { block_at_mut(words, count, hash) };
                new += u64::from($module::insert::<W>(block, hash));
            };
            if near {
                hashes.iter().for_each(|&hash| insert(words, hash));
            } else {
                let ask = |words: &[u64], hash| touch::<W>(words.as_ptr(), count, hash);
                for_each_so_far_ahead::<AHEAD_BY_LINE, _, _>(words, hashes, ask, |words, _, hash, ()| {
                    insert(words, hash);
                });
            }
            new
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_shared<const W: usize>(
            words: &[AtomicU64],
            count: u64,
            hash: u64,
        ) -> bool {
            // SAFETY: as above.
            $module::contains_shared::<W>(unsafe { shared_block_at(words, count, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_all_shared<const W: usize>(
            words: &[AtomicU64],
            count: u64,
            hashes: &[u64],
            found: &mut [bool],
        ) {
            let ask = |hash| touch::<W>(words.as_ptr().cast(), count, hash);
            let answer = |hash| {
                // SAFETY: as above.
                $module::contains_shared::<W>(unsafe { shared_block_at(words, count, hash) }, hash)
            };
            contains_each_of(is_near(size_of_val(words)), hashes, found, ask, answer);
        }

        Kernel {
            name: stringify!($module),
            contains: contains::<W>,
            insert: insert::<W>,
            contains_all: contains_all::<W>,
            insert_all: insert_all::<W>,
            contains_shared: contains_shared::<W>,
            contains_all_shared: contains_all_shared::<W>,
        }
    }};
}

/// Answers every hash, in a filter in the cache at once, otherwise after its line was asked for.
#[inline(always)]
fn contains_each_of(
    near: bool,
    hashes: &[u64],
    found: &mut [bool],
    ask: impl Fn(u64),
    answer: impl Fn(u64) -> bool,
) {
    if near {
        return contains_each(hashes, found, answer);
    }
    let hashes = &hashes[..hashes.len().min(found.len())];
    for_each_so_far_ahead::<AHEAD_BY_LINE, _, _>(
        found,
        hashes,
        |_, hash| ask(hash),
        |found, i, hash, ()| found[i] = answer(hash),
    );
}

impl<const W: usize> Kernel<W> {
    const SCALAR: Self = kernel!(scalar);
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    const AVX2: Self = kernel!(avx2, "avx2");
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    const AVX512: Self = kernel!(avx512, "avx512f");

    /// Every kernel that this processor has the instructions for, the best one first.
    pub(super) fn available() -> impl Iterator<Item = &'static Self> {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        let vectors = [
            (W == 8 && avx512::is_worthwhile()).then_some(&Self::AVX512),
            is_x86_feature_detected!("avx2").then_some(&Self::AVX2),
        ];
        #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
        let vectors = [];
        vectors.into_iter().flatten().chain([&Self::SCALAR])
    }

    /// The best one for this processor.
    pub(super) fn best() -> &'static Self {
        Self::available().next().expect("the scalar kernel needs nothing")
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Are all bits of the hash set in its block?
    ///
    /// # Safety
    ///
    /// As for all functions of a kernel: `words` has `count` blocks, and the processor has the instructions, which is
    /// certain for a kernel that [`available`](Self::available) gave.
    #[inline(always)]
    pub(super) unsafe fn contains(&self, words: &[u64], count: u64, hash: u64) -> bool {
        // SAFETY: the caller's.
        unsafe {
            if ALONE {
                scalar::contains::<W>(block_at(words, count, hash), hash)
            } else {
                (self.contains)(words, count, hash)
            }
        }
    }

    /// Sets all bits of the hash in its block. True if some were not.
    ///
    /// # Safety
    ///
    /// As [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn insert(&self, words: &mut [u64], count: u64, hash: u64) -> bool {
        // SAFETY: the caller's.
        unsafe {
            if ALONE {
                scalar::insert::<W>(block_at_mut(words, count, hash), hash)
            } else {
                (self.insert)(words, count, hash)
            }
        }
    }

    /// [`contains`](Self::contains) of words that other threads write to.
    ///
    /// # Safety
    ///
    /// As [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn contains_shared(
        &self,
        words: &[AtomicU64],
        count: u64,
        hash: u64,
    ) -> bool {
        // SAFETY: the caller's.
        unsafe {
            if ALONE {
                scalar::contains_shared::<W>(shared_block_at(words, count, hash), hash)
            } else {
                (self.contains_shared)(words, count, hash)
            }
        }
    }

    /// [`contains`](Self::contains) for many hashes.
    ///
    /// # Safety
    ///
    /// As [`contains`](Self::contains).
    pub(super) unsafe fn contains_all(
        &self,
        words: &[u64],
        count: u64,
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // SAFETY: the caller's.
        unsafe { (self.contains_all)(words, count, hashes, found) }
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    ///
    /// # Safety
    ///
    /// As [`contains`](Self::contains).
    pub(super) unsafe fn insert_all(&self, words: &mut [u64], count: u64, hashes: &[u64]) -> u64 {
        // SAFETY: the caller's.
        unsafe { (self.insert_all)(words, count, hashes) }
    }

    /// [`contains_shared`](Self::contains_shared) for many hashes.
    ///
    /// # Safety
    ///
    /// As [`contains`](Self::contains).
    pub(super) unsafe fn contains_all_shared(
        &self,
        words: &[AtomicU64],
        count: u64,
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // SAFETY: the caller's.
        unsafe { (self.contains_all_shared)(words, count, hashes, found) }
    }
}

impl<const W: usize> fmt::Debug for Kernel<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
