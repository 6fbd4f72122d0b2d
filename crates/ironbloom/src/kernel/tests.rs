//! Every kernel this processor has does what the scalar one does.

use super::blocks::{Blocks, Kernel};
use super::scalar::{self, block_of};
use super::words::Words;
use crate::hash::mix64;

/// Blocks with every share of set bits, empty and full ones among them.
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

/// The naive way, block by block: what `found` and the blocks must be after all hashes.
fn one_by_one<const W: usize>(blocks: &mut [[u64; W]], hashes: &[u64]) -> (Vec<bool>, u64) {
    let len = blocks.len() as u64;
    let at = |hash| block_of::<W>(hash, len);
    let found = hashes.iter().map(|&hash| scalar::contains(&blocks[at(hash)], hash)).collect();
    let insert = |&hash: &u64| u64::from(scalar::insert(&mut blocks[at(hash)], hash));
    (found, hashes.iter().map(insert).sum())
}

fn check<const W: usize>(kernel: Kernel) {
    for count in [1, 2, 7, 64, 1000] {
        let blocks = random_blocks::<W>(count);
        let mut words = Words::zeroed(blocks.as_flattened().len() as u64 * 64).unwrap();
        words.to_mut()[..blocks.as_flattened().len()].copy_from_slice(blocks.as_flattened());
        let before = Blocks::<W>::with_kernel(words, count, kernel);
        // Both tails of a batch: fewer hashes than are prefetched ahead, and more.
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

#[test]
fn the_scalar_loops_equal_one_by_one() {
    check::<4>(Kernel::Scalar);
    check::<8>(Kernel::Scalar);
}

#[test]
fn the_best_kernel_equals_scalar() {
    check::<4>(Kernel::best());
    check::<8>(Kernel::best());
}

#[test]
fn simd_is_used_where_there_is_some() {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    assert_eq!(Kernel::best() == Kernel::Scalar, !is_x86_feature_detected!("avx2"));
    #[cfg(not(feature = "simd"))]
    assert_eq!(Kernel::best(), Kernel::Scalar);
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
