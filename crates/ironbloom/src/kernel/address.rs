//! The position of a hash's block in a filter.

use super::batch::prefetch_line;
use super::scalar::block_of;
use crate::hash::fastrange;

/// Byte offset of a hash's block: [`block_of`] times the bytes of a block.
///
/// For whole lines the size goes into the multiplication and the remainder is masked off. If it were multiplied
/// afterwards, the compiler would merge the shifts into a double shift, which takes six micro-operations on AMD
/// processors: a tenth of an in-cache lookup; a bounds check costs as much again. That is why the two functions below
/// are unsafe.
#[inline(always)]
fn offset<const W: usize>(hash: u64, count: u64) -> usize {
    if W == 8 {
        fastrange(hash, count * 64) as usize & !63
    } else {
        block_of::<W>(hash, count) * W * size_of::<u64>()
    }
}

/// Returns the block of a hash. Words are `u64` or atomics.
///
/// # Safety
///
/// There must be a block.
#[inline(always)]
pub(super) unsafe fn block_at<T, const W: usize>(blocks: &[[T; W]], hash: u64) -> &[T; W] {
    const { assert!(size_of::<T>() == size_of::<u64>()) };
    debug_assert!(!blocks.is_empty());
    // SAFETY: block_of is less than the number of blocks, so the whole block is inside and aligned as all are.
    unsafe { &*blocks.as_ptr().byte_add(offset::<W>(hash, blocks.len() as u64)) }
}

/// Returns the block of a hash.
///
/// # Safety
///
/// There must be a block.
#[inline(always)]
pub(super) unsafe fn block_at_mut<const W: usize>(
    blocks: &mut [[u64; W]],
    hash: u64,
) -> &mut [u64; W] {
    debug_assert!(!blocks.is_empty());
    // SAFETY: as in `block_at`; the result borrows from the exclusive slice.
    unsafe { &mut *blocks.as_mut_ptr().byte_add(offset::<W>(hash, blocks.len() as u64)) }
}

/// Prefetches the cache line of a hash.
#[inline(always)]
pub(super) fn touch<T, const W: usize>(blocks: &[[T; W]], hash: u64) {
    let offset = offset::<W>(hash, blocks.len() as u64);
    prefetch_line(blocks.as_ptr().wrapping_byte_add(offset).cast());
}
