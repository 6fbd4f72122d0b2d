//! A binary fuse filter loses no key at any size, and has the rate of its width and the space of the paper.

use crate::mapped;
use ironbloom::hash::mix64;
use ironbloom::{Arity, BinaryFuse, FuseParams, HashFn, Persist};
use ironbloom_testing::TemporaryFile;

const ARITIES: [Arity; 2] = [Arity::Three, Arity::Four];

/// `n` distinct hashes. Sets of different `set` below 2^24 have none in common.
fn hashes(set: u64, n: u64) -> Vec<u64> {
    (0..n).map(|i| mix64(set << 40 | i)).collect()
}

fn fuse(hashes: &[u64], width: u32, arity: Arity) -> BinaryFuse {
    let params = FuseParams::new(width, arity).unwrap();
    BinaryFuse::from_hashes(hashes, params, HashFn::External { id: 0 }).unwrap()
}

#[track_caller]
fn assert_holds_all(filter: &BinaryFuse, hashes: &[u64]) {
    assert_eq!(filter.len(), hashes.len() as u64);
    let lost = hashes.iter().filter(|&&hash| !filter.contains_hash(hash)).count();
    assert_eq!(lost, 0, "lost of {} keys", hashes.len());
}

#[test]
fn no_key_is_lost_at_any_small_size() {
    for arity in ARITIES {
        for n in 0..=300 {
            for set in 0..5 {
                let hashes = hashes(set, n);
                assert_holds_all(&fuse(&hashes, 8, arity), &hashes);
            }
        }
    }
}

/// At these sizes other libraries gave up on 20 to 40 % of all sets (FastFilter/xor_singleheader#77).
#[test]
fn no_key_is_lost_at_the_sizes_where_peeling_often_fails() {
    for arity in ARITIES {
        for n in 11_480..=11_521 {
            for set in 0..8 {
                let hashes = hashes(n << 4 | set, n);
                assert_holds_all(&fuse(&hashes, 8, arity), &hashes);
            }
        }
    }
}

#[test]
fn no_key_is_lost_at_large_sizes() {
    for arity in ARITIES {
        for n in [1_000, 4_096, 30_000, 100_000, 262_144, 999_999] {
            let hashes = hashes(1, n);
            assert_holds_all(&fuse(&hashes, 8, arity), &hashes);
        }
    }
}

#[test]
fn every_width_loses_no_key_and_says_its_rate() {
    let hashes = hashes(2, 1000);
    for arity in ARITIES {
        for width in 4..=32 {
            let filter = fuse(&hashes, width, arity);
            assert_holds_all(&filter, &hashes);
            assert_eq!((filter.width(), filter.arity()), (width, arity));
            assert_eq!(filter.params(), FuseParams::new(width, arity).unwrap());
            assert_eq!(filter.estimate_rate(), 0.5f64.powi(width as i32));
        }
    }
}

/// 4.5 sigma of a binomial, fixed keys.
#[test]
fn the_measured_rate_is_that_of_the_width() {
    let keys = hashes(3, 1_000_000);
    for (width, arity, probes) in [
        (4, Arity::Three, 1_000_000),
        (7, Arity::Three, 2_000_000),
        (8, Arity::Three, 2_000_000),
        (8, Arity::Four, 2_000_000),
        (10, Arity::Four, 4_000_000),
        (16, Arity::Three, 10_000_000),
    ] {
        let filter = fuse(&keys, width, arity);
        let mut found = vec![false; probes as usize];
        filter.contains_hashes(&hashes(4, probes), &mut found);
        let found = found.into_iter().filter(|found| *found).count() as f64;
        let rate = filter.estimate_rate();
        let expected = rate * probes as f64;
        let sigma = (expected * (1.0 - rate)).sqrt();
        assert!(
            (found - expected).abs() <= 4.5 * sigma,
            "width {width}, {arity:?}: {found} found, {expected} ± {sigma} expected"
        );
    }
}

#[test]
fn the_space_is_that_of_the_paper() {
    for n in [1_000_000, 3_000_000] {
        let hashes = hashes(5, n);
        for (arity, factor) in [(Arity::Three, 1.125), (Arity::Four, 1.075)] {
            let filter = fuse(&hashes, 9, arity);
            let over = filter.bits_per_key() / (9.0 * factor);
            assert!((0.97..=1.03).contains(&over), "{n} keys, {arity:?}: {over}");
        }
    }
}

#[test]
fn a_hash_given_often_counts_once() {
    for arity in ARITIES {
        let once = hashes(6, 10_000);
        let often: Vec<u64> = once.iter().chain(&once[..5000]).chain(&once).copied().collect();
        assert_eq!(fuse(&often, 8, arity), fuse(&once, 8, arity));

        let same = fuse(&[7; 1000], 16, arity);
        assert_holds_all(&same, &[7]);
        assert!(!same.contains_hash(8));
    }
}

/// 100,000 keys are in many parts; a repeated one makes the first attempt fail, many are noticed before it.
#[test]
fn neither_order_nor_repetition_of_the_hashes_matters() {
    for (arity, n) in ARITIES.into_iter().flat_map(|arity| [(arity, 10_000), (arity, 100_000)]) {
        let forth = hashes(7, n);
        let filter = fuse(&forth, 8, arity);
        let back: Vec<u64> = forth.iter().rev().copied().collect();
        let mut sorted = forth.clone();
        sorted.sort_unstable();
        for mut other in [back, sorted] {
            assert_eq!(fuse(&other, 8, arity), filter);
            for repeated in [1, 10, n as usize] {
                other.extend_from_within(..repeated);
                assert_eq!(fuse(&other, 8, arity), filter);
            }
        }
    }
}

/// Raw integers are poor hashes for other kinds; here the seed mixes them.
#[test]
fn consecutive_integers_are_as_good_as_hashes() {
    let keys: Vec<u64> = (0..100_000).collect();
    let filter = fuse(&keys, 8, Arity::Three);
    assert_holds_all(&filter, &keys);
    let found = (100_000..1_100_000).filter(|&hash| filter.contains_hash(hash)).count();
    // 3906 expected of 10^6 at 1/256, sigma 62: 4.5 sigma.
    assert!((3_626..=4_187).contains(&found), "{found}");
}

#[test]
fn a_filter_of_no_keys_contains_none() {
    for arity in ARITIES {
        let empty = fuse(&[], 4, arity);
        assert!(empty.is_empty() && empty.estimate_rate() == 0.0);
        let copy = BinaryFuse::from_bytes(&empty.to_bytes()).unwrap();
        assert_eq!(copy, empty);
        let mut found = vec![true; 1000];
        copy.contains_hashes(&hashes(8, 1000), &mut found);
        assert!(!found.contains(&true));
    }
}

#[test]
fn keys_are_found_by_the_hash_of_their_bytes() {
    let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
    let filter = BinaryFuse::from_keys(&keys, 1e-6).unwrap();
    assert_eq!((filter.width(), filter.len()), (20, 1000));
    assert!(keys.iter().all(|key| filter.contains(key)));
    assert!(!filter.contains("another"));
    assert!(keys.iter().all(|key| filter.contains_hash(filter.hash_fn().hash(key))));
}

/// Cells are read in one way if they are bytes and in another if not.
#[test]
fn a_batch_answers_as_single_lookups_do_in_every_width() {
    let asked: Vec<u64> = hashes(9, 100).into_iter().chain(hashes(10, 2000)).collect();
    for arity in ARITIES {
        for width in 4..=32 {
            let filter = fuse(&hashes(9, 3000), width, arity);
            let single: Vec<bool> = asked.iter().map(|&hash| filter.contains_hash(hash)).collect();
            assert!(single[..100].iter().all(|found| *found), "width {width}, {arity:?}");
            for len in [0, 1, 15, 16, 17, asked.len()] {
                let mut found = vec![false; len];
                filter.contains_hashes(&asked[..len], &mut found);
                assert_eq!(found, single[..len], "width {width}, {arity:?}");
            }
        }
    }
}

#[test]
fn saved_loaded_and_mapped_filters_are_equal() {
    let hashes = hashes(11, 20_000);
    for arity in ARITIES {
        for width in [4, 13, 32] {
            let filter = fuse(&hashes, width, arity);
            let path = TemporaryFile::new("ibf");
            filter.save(&path).unwrap();
            let loaded = BinaryFuse::load(&path).unwrap();
            let mapped = mapped::map::<BinaryFuse>(&path).unwrap();
            assert_eq!((&loaded, &mapped), (&filter, &filter));
            assert_holds_all(&mapped, &hashes);
            assert!(format!("{mapped:?}").contains("Words(mapped"), "the map was copied");
        }
    }
}
