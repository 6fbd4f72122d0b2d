//! Every kernel this processor supports agrees with the scalar one.

use std::sync::atomic::AtomicU64;

use super::blocks::Blocks;
use super::dispatch::Kernel;
use super::scalar::{self, block_of};
use super::words::Words;
use crate::hash::mix64;

/// Blocks with every fraction of bits set, including empty and full ones.
fn random_blocks<const W: usize>(len: u64) -> Vec<[u64; W]> {
    let word = |block: u64, word: u64| {
        let random = |i: u64| mix64(block << 20 | word << 8 | i);
        match block % 8 {
            0 => 0,
            1 => u64::MAX,
            2 | 3 => random(0) & random(1) & random(2),
            4 | 5 => random(0),
            _ => random(0) | random(1) | random(2) | random(3),
        }
    };
    (0..len).map(|block| std::array::from_fn(|i| word(block, i as u64))).collect()
}

fn hashes(len: u64) -> Vec<u64> {
    let extremes = [0, u64::MAX, u64::from(u32::MAX), !u64::from(u32::MAX), 1, 1 << 63];
    extremes.into_iter().chain((0..len).map(mix64)).collect()
}

/// The naive way, block by block: `found` and the blocks as they must be after all hashes.
fn one_by_one<const W: usize>(blocks: &mut [[u64; W]], hashes: &[u64]) -> (Vec<bool>, u64) {
    let len = blocks.len() as u64;
    let at = |hash| block_of::<W>(hash, len);
    let found = hashes.iter().map(|&hash| scalar::contains(&blocks[at(hash)], hash)).collect();
    let insert = |&hash: &u64| u64::from(scalar::insert(&mut blocks[at(hash)], hash));
    (found, hashes.iter().map(insert).sum())
}

fn check<const W: usize>(kernel: &'static Kernel<W>) {
    for count in [1, 2, 7, 64, 1000] {
        let blocks = random_blocks::<W>(count);
        let mut words = Words::zeroed(blocks.as_flattened().len() as u64 * 64).unwrap();
        words.to_mut()[..blocks.as_flattened().len()].copy_from_slice(blocks.as_flattened());
        let before = Blocks::<W>::with_kernel(words, count, kernel);
        // Both tails of a batch: fewer hashes than the prefetch distance, and more.
        for len in [0, 1, 5, 100, 5000] {
            let hashes = hashes(len);
            let mut expected = blocks.clone();
            let (present, new) = one_by_one(&mut expected, &hashes);

            let mut found = vec![false; hashes.len()];
            before.contains_all(&hashes, &mut found);
            assert_eq!(found, present);
            let single = |&hash: &u64| before.contains(hash);
            assert_eq!(hashes.iter().map(single).collect::<Vec<_>>(), present);

            let mut batch = before.clone();
            assert_eq!(batch.insert_all(&hashes), new);
            assert_eq!(batch.all(), expected);
            let mut single = before.clone();
            let insert = |&hash: &u64| u64::from(single.insert(hash));
            assert_eq!(hashes.iter().map(insert).sum::<u64>(), new);
            assert_eq!(single.all(), expected);
        }
    }
}

fn check_shared(kernel: &'static Kernel<8>) {
    for count in [1, 7, 1000] {
        let mut blocks = random_blocks::<8>(count);
        let cells: Vec<[AtomicU64; 8]> =
            blocks.iter().map(|block| block.map(AtomicU64::new)).collect();
        let hashes = hashes(5000);
        let (present, _) = one_by_one(&mut blocks, &hashes);
        let mut found = vec![false; hashes.len()];
        // SAFETY: there is a block, and the kernel is available.
        unsafe { kernel.contains_all_shared(&cells, &hashes, &mut found) };
        assert_eq!(found, present);
        // SAFETY: as above.
        let single = |&hash: &u64| unsafe { kernel.contains_shared(&cells, hash) };
        assert_eq!(hashes.iter().map(single).collect::<Vec<_>>(), present);
    }
}

#[test]
fn every_kernel_of_this_processor_does_what_one_by_one_does() {
    Kernel::<4>::available().for_each(check);
    Kernel::<8>::available().for_each(check);
    Kernel::<8>::available().for_each(check_shared);
}

#[test]
fn simd_is_used_where_there_is_some() {
    let names = |kernels: [&str; 2]| (kernels[0].to_owned(), kernels[1].to_owned());
    let best = names([Kernel::<4>::best().name(), Kernel::<8>::best().name()]);
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    {
        let narrow = if is_x86_feature_detected!("avx2") { "avx2" } else { "scalar" };
        let wide = if is_x86_feature_detected!("avx512vbmi2") { "avx512" } else { narrow };
        assert_eq!(best, names([narrow, wide]));
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
    assert_eq!(best, names(["scalar", "scalar"]));
}

#[test]
fn a_mask_has_one_bit_in_each_lane() {
    for hash in hashes(1000) {
        assert!(scalar::mask::<8>(hash).iter().all(|lane| lane.count_ones() == 1));
        let narrow = scalar::mask::<4>(hash);
        assert!(narrow.iter().all(|word| (*word as u32).count_ones() == 1));
        assert!(narrow.iter().all(|word| (word >> 32).count_ones() == 1));
    }
}

#[test]
#[should_panic(expected = "blocks out of range")]
fn more_blocks_than_words_are_refused() {
    Blocks::<8>::new(Words::zeroed(512).unwrap(), 2);
}
/// The caller's vector registers survive every call, whatever the caller was compiled for.
#[cfg(target_arch = "x86_64")]
mod live_registers {
    use std::arch::x86_64::*;
    use std::hint::black_box;

    use crate::hash::mix64;
    use crate::{AtomicBlockedBloom, BlockedBloom, SplitBlock};

    const CALLS: u64 = 1000;

    /// Adds ones to more registers than a kernel needs, around calls.
    macro_rules! sums_around {
        ($zero:expr, $one:expr, $add:ident, $hash:ident => $call:expr) => {{
            let one = black_box($one);
            let [mut a, mut b, mut c, mut d, mut e, mut f] = black_box([$zero; 6]);
            let mut found = 0;
            for i in 0..CALLS {
                let $hash = mix64(i);
                found += u64::from($call);
                (a, b, c) = ($add(a, one), $add(b, one), $add(c, one));
                (d, e, f) = ($add(d, one), $add(e, one), $add(f, one));
            }
            black_box(found);
            [a, b, c, d, e, f]
        }};
    }

    /// A caller compiled for `feature`, whose registers hold `lanes` numbers.
    macro_rules! caller {
        ($name:ident, $feature:literal, $vector:ty, $lanes:literal, $zero:expr, $one:expr, $add:ident) => {
            #[target_feature(enable = $feature)]
            fn $name() {
                let check = |sums: [$vector; 6]| {
                    // SAFETY: the lanes of a register are plain numbers.
                    let sums: [[f64; $lanes]; 6] = unsafe { std::mem::transmute(sums) };
                    assert_eq!(sums, [[CALLS as f64; $lanes]; 6]);
                };
                let mut wide = BlockedBloom::with_rate(1000, 0.01).unwrap();
                let mut narrow = SplitBlock::with_rate(1000, 0.01).unwrap();
                let shared = AtomicBlockedBloom::with_rate(1000, 0.01).unwrap();
                check(sums_around!($zero, $one, $add, hash => wide.contains_hash(hash)));
                check(sums_around!($zero, $one, $add, hash => narrow.contains_hash(hash)));
                check(sums_around!($zero, $one, $add, hash => shared.contains_hash(hash)));
                check(sums_around!($zero, $one, $add, hash => wide.insert_hash(hash)));
                check(sums_around!($zero, $one, $add, hash => narrow.insert_hash(hash)));
                check(sums_around!($zero, $one, $add, hash => shared.insert_hash(hash)));
            }
        };
    }

    caller!(sse2, "sse2", __m128d, 2, _mm_setzero_pd(), _mm_set1_pd(1.0), _mm_add_pd);
    caller!(avx, "avx", __m256d, 4, _mm256_setzero_pd(), _mm256_set1_pd(1.0), _mm256_add_pd);
    caller!(avx2, "avx2", __m256d, 4, _mm256_setzero_pd(), _mm256_set1_pd(1.0), _mm256_add_pd);
    caller!(avx512, "avx512f", __m512d, 8, _mm512_setzero_pd(), _mm512_set1_pd(1.0), _mm512_add_pd);

    #[test]
    fn survive_every_call_whatever_the_caller_was_compiled_for() {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { sse2() };
        if is_x86_feature_detected!("avx") {
            // SAFETY: the processor has the instructions.
            unsafe { avx() };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { avx2() };
        }
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: as above.
            unsafe { avx512() };
        }
    }
}
