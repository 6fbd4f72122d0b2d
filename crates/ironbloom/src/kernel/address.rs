//! Where in a filter the block of a hash is.

use std::sync::atomic::AtomicU64;

use super::batch::prefetch_line;
use super::scalar::block_of;
use crate::hash::fastrange;

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
pub(super) unsafe fn block_at<const W: usize>(words: &[u64], count: u64, hash: u64) -> &[u64; W] {
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
pub(super) unsafe fn block_at_mut<const W: usize>(
    words: &mut [u64],
    count: u64,
    hash: u64,
) -> &mut [u64; W] {
    debug_assert!(count as usize * W <= words.len());
    // SAFETY: as in `block_at`; the result borrows from the exclusive slice.
    unsafe { &mut *words.as_mut_ptr().byte_add(offset::<W>(hash, count)).cast() }
}

/// The block of a hash, of words that other threads write to.
///
/// # Safety
///
/// `cells` must have `count` blocks.
#[inline(always)]
pub(super) unsafe fn shared_block_at<const W: usize>(
    cells: &[AtomicU64],
    count: u64,
    hash: u64,
) -> &[AtomicU64; W] {
    debug_assert!(count as usize * W <= cells.len());
    // SAFETY: as in `block_at`.
    unsafe { &*cells.as_ptr().byte_add(offset::<W>(hash, count)).cast() }
}

/// Asks for the line of a hash, of words that start there.
#[inline(always)]
pub(super) fn touch<const W: usize>(words: *const u64, count: u64, hash: u64) {
    prefetch_line(words.wrapping_byte_add(offset::<W>(hash, count)).cast());
}
