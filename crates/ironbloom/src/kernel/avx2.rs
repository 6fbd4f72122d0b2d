//! The block kernels for processors with AVX2: a block is one register, or two.
//!
//! ```text
//! low half of the hash, eight times      · salts         >> 26              1 <<
//! [ h | h | h | h | h | h | h | h ]  →  [ products ]  →  [ bit numbers ]  →  [ mask 0–3 ] [ mask 4–7 ]
//! ```
//!
//! In assembly, for two reasons. A function of intrinsics is not inlined into callers that are compiled for every
//! processor, and the call costs a quarter as much again: 5.6 ns instead of 4.5 at a million keys, 3.7 instead of 2.8 in
//! the first-level cache (docs/benchmarks/kernels.md). And a filter that other threads write to may not be read by the
//! plain loads that intrinsics are; here the loads are the processor's, which never tears an aligned word.

use std::arch::asm;
use std::sync::atomic::AtomicU64;

use super::scalar::SALTS;

/// Proof that this processor has AVX2: there is no other way to get one than [`detect`](Self::detect).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

/// A register's worth of numbers, to be read whole.
#[repr(C, align(32))]
struct Register([u32; 8]);

/// The salts for lanes of 32 bits, in order.
static NARROW_SALTS: Register = Register(SALTS);

/// The salts for lanes of 64 bits: those of words 0 to 3 each beside that of the word four further on. What belongs into
/// one register is then in the low halves of 64 bits, the rest in the high halves, and nothing has to cross the register.
static WIDE_SALTS: Register = {
    let [a, b, c, d, e, f, g, h] = SALTS;
    Register([a, e, b, f, c, g, d, h])
};

static ONE: u64 = 1;

/// Leaves the mask of eight lanes of 32 bits in ymm0. Changes ymm2.
macro_rules! narrow_mask {
    () => {
        "vmovd xmm0, {hash:e}
        vpbroadcastd ymm0, xmm0
        vpmulld ymm0, ymm0, [rip + {salts}]
        vpsrld ymm0, ymm0, 27
        vpbroadcastd ymm2, [rip + {one}]
        vpsllvd ymm0, ymm2, ymm0"
    };
}

/// Leaves the masks of words 0 to 3 in ymm0, those of words 4 to 7 in ymm1. Changes ymm2.
macro_rules! wide_masks {
    () => {
        "vmovd xmm0, {hash:e}
        vpbroadcastd ymm0, xmm0
        vpmulld ymm1, ymm0, [rip + {salts}]
        vpsllq ymm0, ymm1, 32
        vpsrlq ymm1, ymm1, 58
        vpsrlq ymm0, ymm0, 58
        vpbroadcastq ymm2, [rip + {one}]
        vpsllvq ymm0, ymm2, ymm0
        vpsllvq ymm1, ymm2, ymm1"
    };
}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// As [`scalar::contains`](super::scalar::contains).
    #[inline(always)]
    pub(crate) fn contains<const W: usize>(self, block: &[u64; W], hash: u64) -> bool {
        // SAFETY: the reference makes the block valid for reads.
        unsafe { self.contains_at::<W>(block.as_ptr(), hash) }
    }

    /// As [`scalar::contains_shared`](super::scalar::contains_shared).
    #[inline(always)]
    pub(crate) fn contains_shared<const W: usize>(self, block: &[AtomicU64; W], hash: u64) -> bool {
        // SAFETY: the reference makes the block valid for reads, and they are the processor's.
        unsafe { self.contains_at::<W>(block.as_ptr().cast(), hash) }
    }

    /// # Safety
    ///
    /// `W` words must be readable at `block`. Other threads may write them meanwhile, by atomic instructions.
    #[inline(always)]
    unsafe fn contains_at<const W: usize>(self, block: *const u64, hash: u64) -> bool {
        const { assert!(W == 4 || W == 8, "lanes have 32 or 64 bits") };
        let found: u8;
        if W == 4 {
            // SAFETY: holding self proves that AVX2 is there. Of memory, only the block and the constants are read, in
            // words that are aligned, so that each is seen as some thread wrote it. All registers changed are named;
            // vzeroupper clears only upper halves, which code without AVX does not use.
            unsafe {
                asm!(
                    narrow_mask!(),
                    "vmovdqu ymm2, [{block}]",
                    "vptest ymm2, ymm0",
                    "setc {found}", // no bit of the mask is missing
                    "vzeroupper",
                    hash = in(reg) hash,
                    block = in(reg) block,
                    salts = sym NARROW_SALTS,
                    one = sym ONE,
                    found = lateout(reg_byte) found,
                    out("xmm0") _,
                    out("xmm2") _,
                    options(nostack, readonly),
                );
            }
        } else {
            // SAFETY: as above.
            unsafe {
                asm!(
                    wide_masks!(),
                    "vmovdqu ymm2, [{block}]",
                    "vpandn ymm0, ymm2, ymm0", // the bits that are missing
                    "vmovdqu ymm2, [{block} + 32]",
                    "vpandn ymm1, ymm2, ymm1",
                    "vpor ymm0, ymm0, ymm1",
                    "vptest ymm0, ymm0",
                    "setz {found}",
                    "vzeroupper",
                    hash = in(reg) hash,
                    block = in(reg) block,
                    salts = sym WIDE_SALTS,
                    one = sym ONE,
                    found = lateout(reg_byte) found,
                    out("xmm0") _,
                    out("xmm1") _,
                    out("xmm2") _,
                    options(nostack, readonly),
                );
            }
        }
        found != 0
    }

    /// As [`scalar::insert`](super::scalar::insert).
    #[inline(always)]
    pub(crate) fn insert<const W: usize>(self, block: &mut [u64; W], hash: u64) -> bool {
        const { assert!(W == 4 || W == 8, "lanes have 32 or 64 bits") };
        let block = block.as_mut_ptr();
        let new: u8;
        if W == 4 {
            // SAFETY: as in `contains_at`; the block, which is also written, is exclusively borrowed.
            unsafe {
                asm!(
                    narrow_mask!(),
                    "vmovdqu ymm2, [{block}]",
                    "vptest ymm2, ymm0",
                    "setnc {new}",
                    "vpor ymm0, ymm0, ymm2",
                    "vmovdqu [{block}], ymm0",
                    "vzeroupper",
                    hash = in(reg) hash,
                    block = in(reg) block,
                    salts = sym NARROW_SALTS,
                    one = sym ONE,
                    new = out(reg_byte) new,
                    out("xmm0") _,
                    out("xmm2") _,
                    options(nostack),
                );
            }
        } else {
            // SAFETY: as above.
            unsafe {
                asm!(
                    wide_masks!(),
                    "vmovdqu ymm2, [{block}]",
                    "vpandn ymm3, ymm2, ymm0",
                    "vpor ymm0, ymm2, ymm0",
                    "vmovdqu [{block}], ymm0",
                    "vmovdqu ymm2, [{block} + 32]",
                    "vpandn ymm0, ymm2, ymm1",
                    "vpor ymm1, ymm2, ymm1",
                    "vmovdqu [{block} + 32], ymm1",
                    "vpor ymm0, ymm0, ymm3",
                    "vptest ymm0, ymm0",
                    "setnz {new}",
                    "vzeroupper",
                    hash = in(reg) hash,
                    block = in(reg) block,
                    salts = sym WIDE_SALTS,
                    one = sym ONE,
                    new = lateout(reg_byte) new,
                    out("xmm0") _,
                    out("xmm1") _,
                    out("xmm2") _,
                    out("xmm3") _,
                    options(nostack),
                );
            }
        }
        new != 0
    }
}
