//! The block kernels for processors with AVX2: a block is one register, or two.
//!
//! ```text
//! low half of the hash, eight times      · SALTS         >> 26              1 <<
//! [ h | h | h | h | h | h | h | h ]  →  [ products ]  →  [ bit numbers ]  →  [ mask 0–3 ] [ mask 4–7 ]
//! ```
//!
//! Four times as fast as `scalar` for a lookup in cache (docs/benchmarks/kernels.md). A function with its own target
//! feature is not inlined into callers without it, so single lookups pay a call, and batches have their loop in here.

use std::arch::x86_64::{
    __m256i, _mm256_andnot_si256, _mm256_castsi256_si128, _mm256_cvtepu32_epi64,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_mullo_epi32, _mm256_or_si256,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_sllv_epi32, _mm256_sllv_epi64, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_testz_si256,
};

use super::blocks::{contains_each, insert_each};
use super::scalar::SALTS;

/// Proof that this processor has AVX2: there is no other way to get one than [`detect`](Self::detect).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// As [`scalar::contains`](super::scalar::contains).
    #[inline]
    pub(crate) fn contains<const W: usize>(self, block: &[u64; W], hash: u64) -> bool {
        // SAFETY: holding self proves that AVX2 is there.
        unsafe { contains(block, hash) }
    }

    /// As [`scalar::insert`](super::scalar::insert).
    #[inline]
    pub(crate) fn insert<const W: usize>(self, block: &mut [u64; W], hash: u64) -> bool {
        // SAFETY: holding self proves that AVX2 is there.
        unsafe { insert(block, hash) }
    }

    /// [`contains_each`] with this kernel.
    pub(crate) fn contains_each<const W: usize>(
        self,
        words: &[[u64; W]],
        hashes: &[u64],
        found: &mut [bool],
    ) {
        #[target_feature(enable = "avx2")]
        fn inner<const W: usize>(blocks: &[[u64; W]], hashes: &[u64], found: &mut [bool]) {
            contains_each(blocks, hashes, found, |block, hash| contains(block, hash));
        }
        // SAFETY: holding self proves that AVX2 is there.
        unsafe { inner(words, hashes, found) }
    }

    /// [`insert_each`] with this kernel.
    pub(crate) fn insert_each<const W: usize>(self, words: &mut [[u64; W]], hashes: &[u64]) -> u64 {
        #[target_feature(enable = "avx2")]
        fn inner<const W: usize>(blocks: &mut [[u64; W]], hashes: &[u64]) -> u64 {
            insert_each(blocks, hashes, |block, hash| insert(block, hash))
        }
        // SAFETY: holding self proves that AVX2 is there.
        unsafe { inner(words, hashes) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn contains<const W: usize>(block: &[u64; W], hash: u64) -> bool {
    let (low, high) = masks::<W>(hash);
    let mut missing = _mm256_andnot_si256(load(block, 0), low);
    if W == 8 {
        missing = _mm256_or_si256(missing, _mm256_andnot_si256(load(block, 4), high));
    }
    is_zero(missing)
}

#[inline]
#[target_feature(enable = "avx2")]
fn insert<const W: usize>(block: &mut [u64; W], hash: u64) -> bool {
    let (low, high) = masks::<W>(hash);
    let mut missing = set(block, 0, low);
    if W == 8 {
        missing = _mm256_or_si256(missing, set(block, 4, high));
    }
    !is_zero(missing)
}

/// The masks of the first four words of the block, and of the next four if there are.
#[inline]
#[target_feature(enable = "avx2")]
fn masks<const W: usize>(hash: u64) -> (__m256i, __m256i) {
    // SAFETY: SALTS has the 32 bytes that are read.
    let salts = unsafe { _mm256_loadu_si256(SALTS.as_ptr().cast()) };
    let products = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salts);
    if W == 4 {
        let mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(products));
        return (mask, mask);
    }
    let bits = _mm256_srli_epi32::<26>(products);
    let (low, high) = (_mm256_castsi256_si128(bits), _mm256_extracti128_si256::<1>(bits));
    let one = _mm256_set1_epi64x(1);
    let mask = |half| _mm256_sllv_epi64(one, _mm256_cvtepu32_epi64(half));
    (mask(low), mask(high))
}

/// Sets the bits of a mask in four words; returns those that were missing.
#[inline]
#[target_feature(enable = "avx2")]
fn set<const W: usize>(block: &mut [u64; W], first: usize, mask: __m256i) -> __m256i {
    let before = load(block, first);
    let four = &mut block[first..first + 4];
    // SAFETY: `four` has the 32 bytes that are written.
    unsafe { _mm256_storeu_si256(four.as_mut_ptr().cast(), _mm256_or_si256(before, mask)) };
    _mm256_andnot_si256(before, mask)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<const W: usize>(block: &[u64; W], first: usize) -> __m256i {
    let four = &block[first..first + 4];
    // SAFETY: `four` has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_zero(register: __m256i) -> bool {
    _mm256_testz_si256(register, register) == 1
}
