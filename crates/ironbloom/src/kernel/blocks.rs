//! Which kernel works on the blocks of a filter, and the loops over many hashes that all kernels share.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use super::avx2::Avx2;
use super::batch::{batch_contains, for_each_prefetched, prefetch_line};
use super::scalar::{self, block_of};

/// The instructions to use, chosen once when a filter is made: a branch that is always predicted, even for single
/// lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Scalar,
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    Avx2(Avx2),
}

impl Kernel {
    /// The best one for this processor.
    pub(crate) fn best() -> Self {
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if let Some(avx2) = Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Scalar
    }

    /// Are all bits of the hash set in its block?
    #[inline]
    pub(crate) fn contains<const W: usize>(self, blocks: &[[u64; W]], hash: u64) -> bool {
        let block = &blocks[block_of::<W>(hash, blocks.len() as u64)];
        match self {
            Self::Scalar => scalar::contains(block, hash),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.contains(block, hash),
        }
    }

    /// Sets all bits of the hash in its block. True if some were not.
    #[inline]
    pub(crate) fn insert<const W: usize>(self, blocks: &mut [[u64; W]], hash: u64) -> bool {
        let block = &mut blocks[block_of::<W>(hash, blocks.len() as u64)];
        match self {
            Self::Scalar => scalar::insert(block, hash),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.insert(block, hash),
        }
    }

    /// [`contains`](Self::contains) for many hashes.
    pub(crate) fn contains_all<const W: usize>(
        self,
        blocks: &[[u64; W]],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        match self {
            Self::Scalar => contains_each(blocks, hashes, found, scalar::contains),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.contains_each(blocks, hashes, found),
        }
    }

    /// [`insert`](Self::insert) for many hashes. Returns how many were new.
    pub(crate) fn insert_all<const W: usize>(self, blocks: &mut [[u64; W]], hashes: &[u64]) -> u64 {
        match self {
            Self::Scalar => insert_each(blocks, hashes, scalar::insert),
            #[cfg(all(target_arch = "x86_64", feature = "simd"))]
            Self::Avx2(avx2) => avx2.insert_each(blocks, hashes),
        }
    }
}

/// The loop of a batch lookup. Inlined into each kernel, so that `contains` is compiled for its instructions.
#[inline(always)]
pub(super) fn contains_each<const W: usize>(
    blocks: &[[u64; W]],
    hashes: &[u64],
    found: &mut [bool],
    contains: impl Fn(&[u64; W], u64) -> bool,
) {
    let block = |hash| block_of::<W>(hash, blocks.len() as u64);
    batch_contains(
        hashes,
        found,
        |hash| prefetch_line(blocks.as_ptr().wrapping_add(block(hash)).cast()),
        |hash| contains(&blocks[block(hash)], hash),
    );
}

/// The loop of a batch insert.
#[inline(always)]
pub(super) fn insert_each<const W: usize>(
    blocks: &mut [[u64; W]],
    hashes: &[u64],
    insert: impl Fn(&mut [u64; W], u64) -> bool,
) -> u64 {
    let len = blocks.len() as u64;
    let mut new = 0;
    for_each_prefetched(
        blocks,
        hashes,
        |blocks, hash| prefetch_line(blocks.as_ptr().wrapping_add(block_of::<W>(hash, len)).cast()),
        |blocks, _, hash| new += u64::from(insert(&mut blocks[block_of::<W>(hash, len)], hash)),
    );
    new
}
