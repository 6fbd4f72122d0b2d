//! The instructions that work on the blocks of a filter: chosen once, when the filter is created.
//!
//! ```text
//!              contains, insert, contains_shared          the same, with addresses and loops
//!  scalar   ┐
//!  avx2     ├─ for one block, in a file each  ── kernel! ──►  Kernel { contains, contains_all, … }
//!  avx512   ┘
//! ```
//!
//! A function compiled for more instructions than its caller cannot be inlined into it. So a whole operation, including
//! loops and addresses, is compiled for each kernel, and a filter calls it through a pointer: for single lookups that
//! is as fast as instructions chosen by a branch in the caller's code, for batches faster (docs/benchmarks/kernels.md).
//! And at a call the compiler knows which registers are preserved, whatever the caller was compiled for.

use std::fmt;
use std::sync::atomic::AtomicU64;

use super::address::{block_at, block_at_mut, touch};
use super::batch::{AHEAD_BY_LINE, contains_each, for_each_so_far_ahead, is_near};
use super::scalar;
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use super::{avx2, avx512};
use crate::kinds::check_lengths;

/// True if only one kernel is compiled in: it needs no pointers and is inlined.
const ALONE: bool = cfg!(not(all(target_arch = "x86_64", feature = "simd")));

/// The operations of one instruction set on blocks of `W` words.
///
/// All functions require that there is a block, and that the processor supports the instructions.
pub(super) struct Kernel<const W: usize> {
    name: &'static str,
    contains: unsafe fn(blocks: &[[u64; W]], hash: u64) -> bool,
    insert: unsafe fn(blocks: &mut [[u64; W]], hash: u64) -> bool,
    contains_all: unsafe fn(blocks: &[[u64; W]], hashes: &[u64], found: &mut [bool]),
    insert_all: unsafe fn(blocks: &mut [[u64; W]], hashes: &[u64]) -> u64,
    contains_shared: unsafe fn(blocks: &[[AtomicU64; W]], hash: u64) -> bool,
    contains_all_shared: unsafe fn(blocks: &[[AtomicU64; W]], hashes: &[u64], found: &mut [bool]),
}

/// The functions of a kernel, each compiled for its instructions.
macro_rules! kernel {
    ($module:ident $(, $feature:literal)?) => {{
        $(#[target_feature(enable = $feature)])?
        unsafe fn contains<const W: usize>(blocks: &[[u64; W]], hash: u64) -> bool {
            // SAFETY: the caller guarantees that there is a block.
            $module::contains(unsafe { block_at(blocks, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn insert<const W: usize>(blocks: &mut [[u64; W]], hash: u64) -> bool {
            // SAFETY: as above.
            $module::insert(unsafe { block_at_mut(blocks, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_all<const W: usize>(
            blocks: &[[u64; W]],
            hashes: &[u64],
            found: &mut [bool],
        ) {
            // SAFETY: as above.
            let answer = |hash| $module::contains(unsafe { block_at(blocks, hash) }, hash);
            answer_each(blocks, hashes, found, answer);
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn insert_all<const W: usize>(blocks: &mut [[u64; W]], hashes: &[u64]) -> u64 {
            let mut new = 0;
            let near = is_near(size_of_val(blocks));
            let mut insert = |blocks: &mut [[u64; W]], hash| {
                // SAFETY: as above.
                new += u64::from($module::insert(unsafe { block_at_mut(blocks, hash) }, hash));
            };
            if near {
                hashes.iter().for_each(|&hash| insert(blocks, hash));
            } else {
                for_each_so_far_ahead::<AHEAD_BY_LINE, _, _, _>(
                    blocks,
                    hashes,
                    |blocks, hash| touch(blocks, hash),
                    |blocks, _, hash, ()| insert(blocks, hash),
                );
            }
            new
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_shared<const W: usize>(blocks: &[[AtomicU64; W]], hash: u64) -> bool {
            // SAFETY: as above.
            $module::contains_shared(unsafe { block_at(blocks, hash) }, hash)
        }

        $(#[target_feature(enable = $feature)])?
        unsafe fn contains_all_shared<const W: usize>(
            blocks: &[[AtomicU64; W]],
            hashes: &[u64],
            found: &mut [bool],
        ) {
            // SAFETY: as above.
            let answer = |hash| $module::contains_shared(unsafe { block_at(blocks, hash) }, hash);
            answer_each(blocks, hashes, found, answer);
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

/// Answers every hash: immediately if the filter is in the cache, otherwise some time after prefetching its line.
#[inline(always)]
fn answer_each<T, const W: usize>(
    blocks: &[[T; W]],
    hashes: &[u64],
    found: &mut [bool],
    answer: impl Fn(u64) -> bool,
) {
    if is_near(size_of_val(blocks)) {
        return contains_each(hashes, found, answer);
    }
    check_lengths(hashes.len(), found.len());
    for_each_so_far_ahead::<AHEAD_BY_LINE, _, _, _>(
        found,
        hashes,
        |_, hash| touch(blocks, hash),
        |found, i, hash, ()| found[i] = answer(hash),
    );
}

impl<const W: usize> Kernel<W> {
    const SCALAR: Self = kernel!(scalar);
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    const AVX2: Self = kernel!(avx2, "avx2");
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    const AVX512: Self = kernel!(avx512, "avx512f");

    /// Every kernel that this processor supports, best first.
    pub(super) fn available() -> impl Iterator<Item = &'static Self> {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        let vectors = [
            (W == 8 && avx512::is_worthwhile()).then_some(&Self::AVX512),
            is_x86_feature_detected!("avx2").then_some(&Self::AVX2),
        ];
        #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
        let vectors: [Option<&'static Self>; 0] = [];
        vectors.into_iter().flatten().chain([&Self::SCALAR])
    }

    /// The best kernel for this processor.
    pub(super) fn best() -> &'static Self {
        Self::available().next().expect("the scalar kernel needs nothing")
    }

    #[cfg(test)]
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if all bits of the hash are set in its block.
    ///
    /// # Safety
    ///
    /// There must be a block, and the processor must support the instructions, as it does for a kernel from
    /// [`available`](Self::available).
    #[inline(always)]
    pub(super) unsafe fn contains(&self, blocks: &[[u64; W]], hash: u64) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if ALONE {
                scalar::contains(block_at(blocks, hash), hash)
            } else {
                (self.contains)(blocks, hash)
            }
        }
    }

    /// Sets all bits of the hash in its block. Returns true if some were not set.
    ///
    /// # Safety
    ///
    /// Same as [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn insert(&self, blocks: &mut [[u64; W]], hash: u64) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if ALONE {
                scalar::insert(block_at_mut(blocks, hash), hash)
            } else {
                (self.insert)(blocks, hash)
            }
        }
    }

    /// [`contains`](Self::contains) for blocks that other threads write to.
    ///
    /// # Safety
    ///
    /// Same as [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn contains_shared(&self, blocks: &[[AtomicU64; W]], hash: u64) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if ALONE {
                scalar::contains_shared(block_at(blocks, hash), hash)
            } else {
                (self.contains_shared)(blocks, hash)
            }
        }
    }

    /// [`contains`](Self::contains) for many hashes.
    ///
    /// # Safety
    ///
    /// Same as [`contains`](Self::contains).
    pub(super) unsafe fn contains_all(
        &self,
        blocks: &[[u64; W]],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.contains_all)(blocks, hashes, found) }
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    ///
    /// # Safety
    ///
    /// Same as [`contains`](Self::contains).
    pub(super) unsafe fn insert_all(&self, blocks: &mut [[u64; W]], hashes: &[u64]) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.insert_all)(blocks, hashes) }
    }

    /// [`contains_shared`](Self::contains_shared) for many hashes.
    ///
    /// # Safety
    ///
    /// Same as [`contains`](Self::contains).
    pub(super) unsafe fn contains_all_shared(
        &self,
        blocks: &[[AtomicU64; W]],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        // SAFETY: guaranteed by the caller.
        unsafe { (self.contains_all_shared)(blocks, hashes, found) }
    }
}

impl<const W: usize> fmt::Debug for Kernel<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
