//! The block kernels in plain Rust: the reference implementation, and the fallback.
//!
//! A block is `W` words: eight 64-bit lanes (W = 8, a cache line) or 32-bit lanes (W = 4, half a
//! line, as in Parquet). A hash has one bit in each lane:
//!
//! ```text
//! block   from the high bits of the hash
//! bit i   = (low 32 bits of the hash · SALTS[i] mod 2^32) >> 26      >> 27 for lanes of 32 bits
//! ```
//!
//! This is part of the file format and will not change.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::fastrange;

/// Lanes per block, and bits set per key.
pub(crate) const LANES: usize = 8;

/// Odd multipliers, one per lane, from the Parquet specification.
pub(crate) const SALTS: [u32; LANES] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Returns the block of a hash, out of `count` blocks of `W` words.
#[inline(always)]
pub(crate) fn block_of<const W: usize>(hash: u64, count: u64) -> usize {
    const { assert!(W == 4 || W == 8, "lanes have 32 or 64 bits") };
    if W == 4 {
        (((hash >> 32) * count) >> 32) as usize // Parquet's rule
    } else {
        fastrange(hash, count) as usize
    }
}

/// Returns the bits of a hash in its block.
#[inline(always)]
pub(crate) fn mask<const W: usize>(hash: u64) -> [u64; W] {
    let bit = |lane: usize, shift: u32| (hash as u32).wrapping_mul(SALTS[lane]) >> shift;
    std::array::from_fn(|word| {
        if W == 4 {
            // Two lanes per word, the even one low, as u32 lanes lie in little-endian memory.
            1u64 << bit(2 * word, 27) | 1 << (32 + bit(2 * word + 1, 27))
        } else {
            1u64 << bit(word, 26)
        }
    })
}

/// Returns true if all bits of the hash are set in its block.
#[inline(always)]
pub(crate) fn contains<const W: usize>(block: &[u64; W], hash: u64) -> bool {
    let mask = mask::<W>(hash);
    (0..W).fold(0, |missing, i| missing | mask[i] & !block[i]) == 0
}

/// Sets all bits of the hash in its block. Returns true if some were not set.
#[inline(always)]
pub(crate) fn insert<const W: usize>(block: &mut [u64; W], hash: u64) -> bool {
    let mask = mask::<W>(hash);
    let mut missing = 0;
    for (word, mask) in block.iter_mut().zip(mask) {
        missing |= mask & !*word;
        *word |= mask;
    }
    missing != 0
}

/// [`contains`] for a block that other threads write to.
#[inline(always)]
pub(crate) fn contains_shared<const W: usize>(block: &[AtomicU64; W], hash: u64) -> bool {
    let mask = mask::<W>(hash);
    (0..W).fold(0, |missing, i| missing | mask[i] & !block[i].load(Ordering::Relaxed)) == 0
}

/// Sets all bits of the hash in a block that other threads write to.
///
/// The result of the atomic OR is not used, so it is one instruction instead of a loop of two.
#[inline(always)]
pub(crate) fn set_shared<const W: usize>(block: &[AtomicU64; W], hash: u64) {
    for (word, mask) in block.iter().zip(mask::<W>(hash)) {
        word.fetch_or(mask, Ordering::Relaxed);
    }
}
