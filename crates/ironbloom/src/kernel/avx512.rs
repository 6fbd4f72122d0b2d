//! The block kernel for processors with AVX-512: a block of eight words is one register.
//!
//! ```text
//! low half of the hash, eight times   · salts, all 64 bits      >> 26       1 rotated by it
//! [ h | h | h | h | h | h | h | h ]  →  [ products ]        →  [ … ]     →  [ mask 0–7 ]
//! ```
//!
//! Rotation takes its count modulo 64, so the six bits do not have to be extracted from the product, and the
//! multiplication of 32-bit halves to 64 bits takes half as long as AVX2's for 32-bit lanes (5 cycles instead of 10 on
//! Intel processors). Blocks of four words are half a register and left to AVX2: these functions compile for them, and
//! panic.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::atomic::AtomicU64;

use super::scalar::SALTS;

/// Returns true if this processor supports the kernel without slowing down other code.
///
/// All instructions are in AVX-512F. But processors before Ice Lake lower their clock for 512-bit multiplications,
/// which also affects other code; they lack VBMI2.
pub(super) fn is_worthwhile() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi2")
}

/// The bits of a hash in its block.
#[inline]
#[target_feature(enable = "avx512f")]
fn mask(hash: u64) -> __m512i {
    let [a, b, c, d, e, f, g, h] = SALTS.map(i64::from);
    let salts = _mm512_setr_epi64(a, b, c, d, e, f, g, h);
    let products = _mm512_mul_epu32(_mm512_set1_epi64(hash as i64), salts);
    _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srli_epi64::<26>(products))
}

/// Returns true if every bit of the mask, one in each word, is set in the block.
#[inline]
#[target_feature(enable = "avx512f")]
fn has_all(block: __m512i, mask: __m512i) -> bool {
    _mm512_testn_epi64_mask(block, mask) == 0
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<const W: usize>(block: &[u64; W]) -> __m512i {
    assert!(W == 8, "a register is eight words");
    // SAFETY: the reference makes 64 bytes readable; the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

/// Loads a block that other threads may write to.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_shared<const W: usize>(block: &[AtomicU64; W]) -> __m512i {
    assert!(W == 8, "a register is eight words");
    let loaded;
    // SAFETY: as `load_shared` of AVX2, for 64 bytes.
    unsafe {
        asm!(
            "vmovdqu64 {loaded}, [{block}]",
            loaded = lateout(zmm_reg) loaded,
            block = in(reg) block.as_ptr(),
            options(nostack, preserves_flags, readonly),
        );
    }
    loaded
}

/// Same as [`scalar::contains`](super::scalar::contains).
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn contains<const W: usize>(block: &[u64; W], hash: u64) -> bool {
    has_all(load(block), mask(hash))
}

/// Same as [`scalar::contains_shared`](super::scalar::contains_shared).
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn contains_shared<const W: usize>(block: &[AtomicU64; W], hash: u64) -> bool {
    has_all(load_shared(block), mask(hash))
}

/// Same as [`scalar::insert`](super::scalar::insert).
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn insert<const W: usize>(block: &mut [u64; W], hash: u64) -> bool {
    let (old, mask) = (load(block), mask(hash));
    // SAFETY: the reference makes 64 bytes writable, as `load` has checked; the store needs no alignment.
    unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), _mm512_or_si512(old, mask)) };
    !has_all(old, mask)
}
