//! A cuckoo filter never loses a key, whatever it refuses; rates and loads are those of the paper.

use std::collections::HashMap;

use crate::mapped;
use ironbloom::hash::mix64;
use ironbloom::{
    Cuckoo, CuckooLayout, CuckooParams, Full, HashFn, MergeError, ParamError, Persist,
};
use ironbloom_testing::TemporaryFile;
use proptest::prelude::*;

const LAYOUTS: [CuckooLayout; 2] = [CuckooLayout::Plain, CuckooLayout::Packed];
const EXTERNAL: HashFn = HashFn::External { id: 0 };

/// The hashes of key `0, 1, 2, …` of a set; different sets have no key in common.
fn hashes(set: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |key: u64| mix64(set << 48 | key))
}

fn with_buckets(buckets: u64, fingerprint_bits: u32, layout: CuckooLayout) -> Cuckoo {
    let params = CuckooParams::for_buckets(buckets, fingerprint_bits, layout).unwrap();
    Cuckoo::new(params, EXTERNAL).unwrap()
}

/// Inserts keys until one is refused; returns those that were not.
fn fill(filter: &mut Cuckoo, set: u64) -> Vec<u64> {
    hashes(set).take_while(|&hash| filter.insert_hash(hash).is_ok()).collect()
}

/// Loads measured at the first refusal, 10^6 slots: .961 for 4 bits, .963 to .970 for 5, .971 to .975 from 6 up, the
/// same in both layouts. (The random walk of the paper: .949, .955, .958 to .965.)
fn fills_to_the_load_of_the_paper_and_loses_no_key(layout: CuckooLayout) {
    for fingerprint_bits in [4, 5, 6, 8, 12, 16, 32] {
        if layout == CuckooLayout::Packed && fingerprint_bits == 4 {
            continue; // refused: see `shapes_out_of_range_are_refused`
        }
        for buckets in [250_002, 1 << 18] {
            let mut filter = with_buckets(buckets, fingerprint_bits, layout);
            let accepted = fill(&mut filter, 1);
            let case =
                format!("{fingerprint_bits} bits, {buckets} buckets, load {}", filter.fill());
            let least = [0.95, 0.955, 0.965][fingerprint_bits.clamp(4, 6) as usize - 4];
            assert!(filter.fill() >= least, "{case}");
            assert_eq!(filter.len(), accepted.len() as u64, "{case}");
            assert_eq!(filter.estimate_len(), accepted.len() as f64, "{case}");
            assert!(accepted.iter().all(|&hash| filter.contains_hash(hash)), "{case}");
        }
    }
}

#[test]
fn a_plain_filter_filled_to_failure_has_every_accepted_key() {
    fills_to_the_load_of_the_paper_and_loses_no_key(CuckooLayout::Plain);
}

#[test]
fn a_packed_filter_filled_to_failure_has_every_accepted_key() {
    fills_to_the_load_of_the_paper_and_loses_no_key(CuckooLayout::Packed);
}

#[test]
fn a_refused_insert_changes_no_bit() {
    for layout in LAYOUTS {
        for fingerprint_bits in [5, 8, 17, 32] {
            let mut filter = with_buckets(1000, fingerprint_bits, layout);
            fill(&mut filter, 1);
            let mut refused = 0;
            for hash in hashes(2).take(300) {
                let before = filter.to_bytes();
                if let Err(Full { len, capacity }) = filter.insert_hash(hash) {
                    assert_eq!((len, capacity), (filter.len(), filter.params().capacity()));
                    assert_eq!(filter.to_bytes(), before, "{fingerprint_bits} bits, {layout:?}");
                    refused += 1;
                }
            }
            assert!(refused >= 100, "only {refused} refused");
        }
    }
}

#[test]
fn the_ninth_insert_of_a_key_is_refused_and_changes_nothing() {
    for layout in LAYOUTS {
        let params = CuckooParams::with_fingerprint(10_000, 12, layout).unwrap();
        let mut filter = Cuckoo::new(params, HashFn::default()).unwrap();
        for copies in 1..=8 {
            assert_eq!(filter.insert("popular"), Ok(copies == 1));
            assert_eq!(filter.count("popular"), copies);
        }
        let before = filter.to_bytes();
        assert_eq!(filter.insert("popular"), Err(Full { len: 8, capacity: 10_000 }));
        assert_eq!(filter.insert_new("popular"), Ok(false));
        assert_eq!(filter.to_bytes(), before);
        assert_eq!(filter.insert_new("rare"), Ok(true));
        assert_eq!(filter.count("rare"), 1);
    }
}

#[test]
fn a_batch_stops_at_the_first_key_that_is_refused() {
    let mut filter = with_buckets(100, 10, CuckooLayout::Plain);
    let mut single = filter.clone();
    let accepted = fill(&mut single, 1);
    let all: Vec<u64> = hashes(1).take(1000).collect();
    assert_eq!(filter.insert_hashes(&all), single.insert_hash(all[accepted.len()]).map(drop));
    assert_eq!(filter, single);

    let mut found = vec![false; accepted.len()];
    filter.contains_hashes(&accepted, &mut found);
    assert!(found.iter().all(|&found| found));
    let absent: Vec<u64> = hashes(2).take(1000).collect();
    let mut found = vec![true; absent.len()];
    filter.contains_hashes(&absent, &mut found);
    let single: Vec<bool> = absent.iter().map(|&hash| filter.contains_hash(hash)).collect();
    assert_eq!(found, single);
}

#[test]
fn removing_an_absent_key_is_refused_and_changes_nothing() {
    for layout in LAYOUTS {
        let mut filter = with_buckets(1000, 16, layout);
        filter.insert_hashes(&hashes(1).take(3000).collect::<Vec<_>>()).unwrap();
        let before = filter.to_bytes();
        let absent: Vec<u64> =
            hashes(2).take(3000).filter(|&hash| !filter.contains_hash(hash)).collect();
        assert!(absent.len() > 2900);
        assert!(!absent.into_iter().any(|hash| filter.remove_hash(hash)));
        assert_eq!(filter.to_bytes(), before);
    }
}

#[test]
fn removing_all_keys_leaves_an_empty_table() {
    for layout in LAYOUTS {
        for fingerprint_bits in [5, 6, 13, 32] {
            let mut filter = with_buckets(5002, fingerprint_bits, layout);
            let empty = filter.to_bytes();
            let accepted = fill(&mut filter, 1);
            assert!(accepted.into_iter().all(|hash| filter.remove_hash(hash)));
            assert!(filter.is_empty());
            assert_eq!(filter.to_bytes(), empty, "{fingerprint_bits} bits, {layout:?}");
        }
    }
}

#[test]
fn a_cleared_filter_is_a_new_one() {
    let mut filter = with_buckets(100, 8, CuckooLayout::Packed);
    let new = filter.clone();
    fill(&mut filter, 1);
    assert_ne!(filter, new);
    filter.clear();
    assert_eq!(filter, new);
}

/// At 95 % load, within 4.5 sigma. Measured here and in the reference simulation, in percent: 8 bits 2.94 and 2.95,
/// 10 bits .745 and .735, 12 bits .180 and .184, 13 bits .092 and .091, 16 bits .011 and .012.
#[test]
fn measured_rates_are_those_of_the_theory() {
    for (fingerprint_bits, layout, probes) in [
        (8, CuckooLayout::Plain, 4e6),
        (10, CuckooLayout::Packed, 4e6),
        (12, CuckooLayout::Plain, 4e6),
        (13, CuckooLayout::Packed, 4e6),
        (16, CuckooLayout::Plain, 16e6),
    ] {
        let mut filter = with_buckets(25_002, fingerprint_bits, layout);
        let keys = (0.95 * filter.params().slots() as f64) as usize;
        filter.insert_hashes(&hashes(1).take(keys).collect::<Vec<_>>()).unwrap();
        let expected = filter.estimate_rate();
        assert_eq!(expected, filter.params().rate_at(keys as u64));
        let wrong = hashes(2).take(probes as usize).filter(|&hash| filter.contains_hash(hash));
        let measured = wrong.count() as f64 / probes;
        let sigma = (expected * (1.0 - expected) / probes).sqrt();
        assert!(
            (measured - expected).abs() < 4.5 * sigma,
            "{fingerprint_bits} bits: {measured:.6}, expected {expected:.6}, sigma {sigma:.1e}"
        );
    }
}

/// Every filter planned for n keys takes n keys: 60,000 small ones and a few larger ones.
#[test]
fn a_planned_filter_takes_its_capacity() {
    let small = (1..=100).flat_map(|n| std::iter::repeat_n(n, 50)).chain((150..1500).step_by(150));
    let capacities: Vec<u64> = small.chain([5_000, 40_000]).collect();
    for (set, &capacity) in capacities.iter().enumerate() {
        for rate in [0.3, 0.2, 0.1, 0.03, 0.01, 0.001] {
            for plan in [CuckooParams::for_rate, CuckooParams::packed_for_rate] {
                let params = plan(capacity, rate).unwrap();
                assert!(params.rate_at(capacity) <= rate && params.capacity() == capacity);
                let mut filter = Cuckoo::new(params, EXTERNAL).unwrap();
                let refused = hashes(set as u64)
                    .take(capacity as usize)
                    .position(|hash| filter.insert_hash(hash).is_err());
                assert_eq!(refused, None, "{capacity} keys at {rate}: {params:?}");
            }
        }
    }
}

#[test]
fn large_filters_have_the_bits_that_the_paper_promises() {
    for capacity in [1_000_000, 10_000_000, 1_000_000_000] {
        let bits_per_key = |params: Result<CuckooParams, ParamError>| {
            params.unwrap().bits() as f64 / capacity as f64
        };
        for (found, promised) in [
            (bits_per_key(CuckooParams::for_rate(capacity, 0.01)), 10.5),
            (bits_per_key(CuckooParams::for_rate(capacity, 0.001)), 13.7),
            (bits_per_key(CuckooParams::packed_for_rate(capacity, 0.01)), 9.47),
            (bits_per_key(CuckooParams::packed_for_rate(capacity, 0.001)), 12.6),
        ] {
            assert!((found / promised - 1.0).abs() < 0.03, "{found} bits/key, promised {promised}");
        }
    }
}

#[test]
fn a_filter_of_given_buckets_has_the_capacity_it_would_be_planned_for() {
    for layout in LAYOUTS {
        for fingerprint_bits in [5, 6, 12] {
            for capacity in [10, 1000, 123_456, 10_000_000] {
                let planned =
                    CuckooParams::with_fingerprint(capacity, fingerprint_bits, layout).unwrap();
                let again =
                    CuckooParams::for_buckets(planned.buckets(), fingerprint_bits, layout).unwrap();
                // Buckets come in pairs of eight slots.
                assert!((capacity..capacity + 9).contains(&again.capacity()), "{again:?}");
            }
        }
    }
}

#[test]
fn shapes_out_of_range_are_refused() {
    use CuckooLayout::{Packed, Plain};
    assert!(CuckooParams::with_fingerprint(100, 4, Plain).is_ok());
    assert!(CuckooParams::with_fingerprint(100, 3, Plain).is_err());
    assert!(CuckooParams::with_fingerprint(100, 4, Packed).is_err());
    assert!(CuckooParams::with_fingerprint(100, 33, Plain).is_err());
    assert!(CuckooParams::with_fingerprint(0, 8, Plain).is_err());
    assert!(CuckooParams::with_fingerprint(u64::MAX, 8, Plain).is_err());
    assert!(CuckooParams::for_buckets(0, 8, Plain).is_err());
    assert!(CuckooParams::for_buckets(u64::MAX, 8, Plain).is_err());
    assert_eq!(CuckooParams::for_buckets(7, 8, Plain).unwrap().buckets(), 8);
    let eight = CuckooParams::for_buckets(2, 8, Plain).unwrap();
    assert!(eight.with_capacity(8).is_ok() && eight.with_capacity(9).is_err());
    let floor = match CuckooParams::for_rate(1_000_000, 1e-10) {
        Err(ParamError::RateBelowHash { floor, .. }) => floor,
        other => panic!("{other:?}"),
    };
    assert_eq!(CuckooParams::for_rate(1_000_000, floor).unwrap().fingerprint_bits(), 32);
}

#[test]
fn a_union_counts_what_both_filters_hold() {
    for layout in LAYOUTS {
        let mut left = with_buckets(5002, 11, layout);
        let mut right = left.clone();
        let mut both = left.clone();
        for (filter, set) in [(&mut left, 1), (&mut right, 2)] {
            let keys: Vec<u64> = hashes(set).take(9000).chain(hashes(3).take(400)).collect();
            filter.insert_hashes(&keys).unwrap();
            both.insert_hashes(&keys).unwrap();
        }
        left.union_with(&right).unwrap();
        assert_eq!(left.len(), both.len());
        for hash in (1..=4).flat_map(|set| hashes(set).take(9000)) {
            assert_eq!(left.count_hash(hash), both.count_hash(hash));
        }
    }
}

#[test]
fn a_union_that_does_not_fit_changes_nothing() {
    let mut left = with_buckets(1000, 12, CuckooLayout::Packed);
    let mut right = left.clone();
    fill(&mut left, 1);
    right.insert_hashes(&hashes(2).take(1000).collect::<Vec<_>>()).unwrap();
    let before = left.to_bytes();
    assert!(matches!(left.union_with(&right), Err(MergeError::Full(_))));
    assert_eq!(left.to_bytes(), before);
}

#[test]
fn filters_that_place_keys_differently_are_not_merged() {
    let mut left = with_buckets(1000, 12, CuckooLayout::Plain);
    left.insert_hash(mix64(1)).unwrap();
    let before = left.to_bytes();
    let other_hash = Cuckoo::new(left.params(), HashFn::default()).unwrap();
    for (right, what) in [
        (with_buckets(1002, 12, CuckooLayout::Plain), "number of buckets"),
        (with_buckets(1000, 13, CuckooLayout::Plain), "fingerprint bits"),
        (with_buckets(1000, 12, CuckooLayout::Packed), "layout"),
        (other_hash, "hash function"),
    ] {
        match left.union_with(&right) {
            Err(MergeError::Mismatch(mismatch)) => assert_eq!(mismatch.what, what),
            other => panic!("{what}: {other:?}"),
        }
    }
    assert_eq!(left.to_bytes(), before);
}

#[test]
fn a_mapped_filter_answers_as_the_one_that_was_saved_and_never_changes_the_file() {
    let path = TemporaryFile::new("ibf");
    for layout in LAYOUTS {
        let mut filter = with_buckets(5002, 9, layout);
        let accepted = fill(&mut filter, 1);
        filter.save(&path).unwrap();
        let mut mapped = mapped::map::<Cuckoo>(&path).unwrap();
        assert_eq!(mapped, filter);
        assert!(accepted.iter().all(|&hash| mapped.remove_hash(hash)));
        assert_eq!(Cuckoo::load(&path).unwrap(), filter);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8),
    InsertNew(u8),
    Remove(u8),
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => any::<u8>().prop_map(Step::Insert),
        2 => any::<u8>().prop_map(Step::InsertNew),
        5 => any::<u8>().prop_map(Step::Remove),
        1 => Just(Step::Reload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares with a multiset. Only keys that were inserted are removed, as the contract requires.
    #[test]
    fn no_key_is_lost_by_any_sequence_of_steps(
        steps in prop::collection::vec(step(), 1..400),
        pairs in 1u64..40,
        fingerprint_bits in 5u32..=32,
        packed: bool,
    ) {
        let layout = LAYOUTS[usize::from(packed)];
        let mut filter = with_buckets(2 * pairs, fingerprint_bits, layout);
        let mut model: HashMap<u8, u32> = HashMap::new();
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let before = filter.to_bytes();
                    match filter.insert_hash(mix64(u64::from(key))) {
                        Ok(new) => {
                            prop_assert!(!new || model.get(&key).is_none_or(|&copies| copies == 0));
                            *model.entry(key).or_default() += 1;
                        }
                        Err(_) => prop_assert_eq!(filter.to_bytes(), before),
                    }
                }
                Step::InsertNew(key) => {
                    if filter.insert_new_hash(mix64(u64::from(key))) == Ok(true) {
                        prop_assert_eq!(model.insert(key, 1).unwrap_or(0), 0);
                    }
                }
                Step::Remove(key) => {
                    if let Some(copies) = model.get_mut(&key).filter(|copies| **copies > 0) {
                        *copies -= 1;
                        prop_assert!(filter.remove_hash(mix64(u64::from(key))));
                    }
                }
                Step::Reload => filter = Cuckoo::from_bytes(&filter.to_bytes()).unwrap(),
            }
            prop_assert_eq!(filter.len(), model.values().map(|&copies| u64::from(copies)).sum::<u64>());
        }
        prop_assert_eq!(filter.estimate_len(), filter.len() as f64);
        for (key, copies) in model {
            prop_assert!(filter.count_hash(mix64(u64::from(key))) >= copies);
        }
    }
}
