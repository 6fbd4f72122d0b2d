//! The block kernel for processors with AVX2: a block is one register, or two.
//!
//! ```text
//! low half of the hash, eight times      · salts         >> 26              1 <<
//! [ h | h | h | h | h | h | h | h ]  →  [ products ]  →  [ bit numbers ]  →  [ mask 0–3 ] [ mask 4–7 ]
//! ```
//!
//! Intrinsics throughout, so that the compiler knows every register and flag that changes. The one exception is
//! [`load_shared`]: a single load, because the loads of intrinsics are not atomic.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::atomic::AtomicU64;

use super::scalar::SALTS;

/// The salts for 64-bit lanes: those of words 0 to 3, each next to that of the word four further on. The salts of one
/// register are then in the low halves, those of the other in the high halves, and nothing has to cross lanes.
const WIDE_SALTS: [u32; 8] = {
    let [a, b, c, d, e, f, g, h] = SALTS;
    [a, e, b, f, c, g, d, h]
};

/// Multiplies the hash by each salt.
#[inline]
#[target_feature(enable = "avx2")]
fn products(hash: u64, salts: [u32; 8]) -> __m256i {
    let [a, b, c, d, e, f, g, h] = salts.map(|salt| salt as i32);
    _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), _mm256_setr_epi32(a, b, c, d, e, f, g, h))
}

/// The bits of a hash in a block of eight 32-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow_mask(hash: u64) -> __m256i {
    let bits = _mm256_srli_epi32::<27>(products(hash, SALTS));
    _mm256_sllv_epi32(_mm256_set1_epi32(1), bits)
}

/// The bits of a hash in words 0 to 3 and in words 4 to 7 of a block of 64-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn wide_masks(hash: u64) -> [__m256i; 2] {
    let (products, one) = (products(hash, WIDE_SALTS), _mm256_set1_epi64x(1));
    let low = _mm256_srli_epi64::<58>(_mm256_slli_epi64::<32>(products));
    let high = _mm256_srli_epi64::<58>(products);
    [_mm256_sllv_epi64(one, low), _mm256_sllv_epi64(one, high)]
}

/// Returns true if every bit of the masks is set in the block.
#[inline]
#[target_feature(enable = "avx2")]
fn has_all(block: [__m256i; 2], masks: [__m256i; 2]) -> bool {
    let missing = |i: usize| _mm256_andnot_si256(block[i], masks[i]);
    let missing = _mm256_or_si256(missing(0), missing(1));
    _mm256_testz_si256(missing, missing) != 0
}

/// Returns true if every bit of the mask is set in the block.
#[inline]
#[target_feature(enable = "avx2")]
fn has_narrow(block: __m256i, mask: __m256i) -> bool {
    _mm256_testc_si256(block, mask) != 0
}

/// Loads four words of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u64; 4]) -> __m256i {
    // SAFETY: the reference makes 32 bytes readable; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Loads four words of a block that other threads may write to.
#[inline]
#[target_feature(enable = "avx2")]
fn load_shared(words: &[AtomicU64; 4]) -> __m256i {
    let loaded;
    // SAFETY: one instruction that reads the 32 bytes the reference makes readable, writes one register, which is
    // named, and touches neither flags nor stack. It needs no alignment. The processor reads each aligned word whole; and
    // even if it did not: other threads only ever set bits, so each bit is one that was there or one that is.
    unsafe {
        asm!(
            "vmovdqu {loaded}, [{words}]",
            loaded = lateout(ymm_reg) loaded,
            words = in(reg) words.as_ptr(),
            options(nostack, preserves_flags, readonly),
        );
    }
    loaded
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u64; 4], value: __m256i) {
    // SAFETY: the reference makes 32 bytes writable; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), value) };
}

/// The two halves of a block of eight words, or a block of four words twice.
#[inline(always)]
fn halves<T, const W: usize>(block: &[T; W]) -> [&[T; 4]; 2] {
    const { assert!(W == 4 || W == 8, "lanes have 32 or 64 bits") };
    let (halves, _) = block.as_chunks();
    [&halves[0], &halves[W / 4 - 1]]
}

/// Same as [`scalar::contains`](super::scalar::contains).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn contains<const W: usize>(block: &[u64; W], hash: u64) -> bool {
    let [low, high] = halves(block);
    if W == 4 {
        has_narrow(load(low), narrow_mask(hash))
    } else {
        has_all([load(low), load(high)], wide_masks(hash))
    }
}

/// Same as [`scalar::contains_shared`](super::scalar::contains_shared).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn contains_shared<const W: usize>(block: &[AtomicU64; W], hash: u64) -> bool {
    let [low, high] = halves(block);
    if W == 4 {
        has_narrow(load_shared(low), narrow_mask(hash))
    } else {
        has_all([load_shared(low), load_shared(high)], wide_masks(hash))
    }
}

/// Same as [`scalar::insert`](super::scalar::insert).
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn insert<const W: usize>(block: &mut [u64; W], hash: u64) -> bool {
    const { assert!(W == 4 || W == 8, "lanes have 32 or 64 bits") };
    let (words, _) = block.as_chunks_mut();
    if W == 4 {
        let (old, mask) = (load(&words[0]), narrow_mask(hash));
        store(&mut words[0], _mm256_or_si256(old, mask));
        !has_narrow(old, mask)
    } else {
        let old = [load(&words[0]), load(&words[1])];
        let masks = wide_masks(hash);
        for i in 0..2 {
            store(&mut words[i], _mm256_or_si256(old[i], masks[i]));
        }
        !has_all(old, masks)
    }
}
