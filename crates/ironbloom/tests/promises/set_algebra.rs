//! Unions and intersections obey the laws of sets, and incompatible filters are refused without a trace.

use std::collections::BTreeSet;

use crate::common::{self, hashes};
use ironbloom::any::{AnyFilter, Refused};
use ironbloom::hash::mix64;
use ironbloom::*;
use proptest::prelude::*;

type Make = fn() -> AnyFilter;

/// The kinds that consist of bits alone: every law holds to the bit.
fn bit_kinds() -> Vec<(&'static str, Make)> {
    vec![
        ("bloom", || AnyFilter::Bloom(Bloom::with_rate(300, 0.01).unwrap())),
        ("segmented", || {
            let params = BloomParams::segmented_for_rate(300, 0.01).unwrap();
            AnyFilter::Bloom(Bloom::new(params, HashFn::default()).unwrap())
        }),
        ("blocked", || AnyFilter::Blocked(BlockedBloom::with_rate(300, 0.01).unwrap())),
        ("split-block", || AnyFilter::SplitBlock(SplitBlock::with_rate(300, 0.01).unwrap())),
        ("bitmap", || AnyFilter::Bitmap(Bitmap::new(5000).unwrap())),
    ]
}

fn filter_of(make: Make, keys: &BTreeSet<u64>) -> AnyFilter {
    let mut filter = make();
    let bitmap = filter.kind() == Kind::Bitmap;
    let hashes: Vec<u64> = keys.iter().map(|&key| if bitmap { key } else { mix64(key) }).collect();
    filter.insert_hashes(&hashes).unwrap();
    filter
}

/// Returns the bits alone, without the header (counts are estimates after a union) and the seal, which depends on it.
fn bits(filter: &AnyFilter) -> Vec<u8> {
    let bytes = filter.to_bytes();
    bytes[256..bytes.len() - 8].to_vec()
}

fn union(a: &AnyFilter, b: &AnyFilter) -> AnyFilter {
    let mut result = a.clone();
    result.union_with(b).unwrap();
    result
}

fn intersection(a: &AnyFilter, b: &AnyFilter) -> AnyFilter {
    let mut result = a.clone();
    result.intersect_with(b).unwrap();
    result
}

fn keys() -> impl Strategy<Value = BTreeSet<u64>> {
    proptest::collection::btree_set(0..5000u64, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn unions_are_commutative(a in keys(), b in keys()) {
        for (_, make) in bit_kinds() {
            let (a, b) = (filter_of(make, &a), filter_of(make, &b));
            prop_assert_eq!(bits(&union(&a, &b)), bits(&union(&b, &a)));
        }
    }

    #[test]
    fn unions_are_associative(a in keys(), b in keys(), c in keys()) {
        for (_, make) in bit_kinds() {
            let (a, b, c) = (filter_of(make, &a), filter_of(make, &b), filter_of(make, &c));
            prop_assert_eq!(bits(&union(&union(&a, &b), &c)), bits(&union(&a, &union(&b, &c))));
        }
    }

    #[test]
    fn unions_are_idempotent(a in keys()) {
        for (_, make) in bit_kinds() {
            let a = filter_of(make, &a);
            prop_assert_eq!(bits(&union(&a, &a)), bits(&a));
        }
    }

    #[test]
    fn the_empty_set_is_the_identity_for_union(a in keys()) {
        for (_, make) in bit_kinds() {
            let a = filter_of(make, &a);
            prop_assert_eq!(bits(&union(&a, &make())), bits(&a));
        }
    }

    #[test]
    fn a_union_equals_inserting_both(a in keys(), b in keys()) {
        for (_, make) in bit_kinds() {
            let both = a.union(&b).copied().collect();
            let (a, b) = (filter_of(make, &a), filter_of(make, &b));
            prop_assert_eq!(bits(&union(&a, &b)), bits(&filter_of(make, &both)));
        }
    }

    #[test]
    fn intersections_are_commutative(a in keys(), b in keys()) {
        for (_, make) in bit_kinds() {
            let (a, b) = (filter_of(make, &a), filter_of(make, &b));
            prop_assert_eq!(bits(&intersection(&a, &b)), bits(&intersection(&b, &a)));
        }
    }

    #[test]
    fn an_intersection_contains_the_common_keys(a in keys(), b in keys()) {
        for (name, make) in bit_kinds() {
            let common = filter_of(make, &a.intersection(&b).copied().collect());
            let both = intersection(&filter_of(make, &a), &filter_of(make, &b));
            prop_assert_eq!(bits(&intersection(&both, &common)), bits(&common), "{}", name);
        }
    }

    #[test]
    fn union_and_intersection_absorb_each_other(a in keys(), b in keys()) {
        for (_, make) in bit_kinds() {
            let (a, b) = (filter_of(make, &a), filter_of(make, &b));
            prop_assert_eq!(bits(&union(&a, &intersection(&a, &b))), bits(&a));
            prop_assert_eq!(bits(&intersection(&a, &union(&a, &b))), bits(&a));
        }
    }

    #[test]
    fn bitmaps_agree_with_exact_sets(a in keys(), b in keys()) {
        let bitmap = |keys: &BTreeSet<u64>| {
            let mut bitmap = Bitmap::new(5000).unwrap();
            keys.iter().for_each(|&key| { bitmap.insert(key).unwrap(); });
            bitmap
        };
        type Operation = fn(&mut Bitmap, &Bitmap) -> Result<(), Mismatch>;
        let cases: [(Operation, BTreeSet<u64>); 4] = [
            (Bitmap::union_with, a.union(&b).copied().collect()),
            (Bitmap::intersect_with, a.intersection(&b).copied().collect()),
            (Bitmap::difference_with, a.difference(&b).copied().collect()),
            (Bitmap::symmetric_difference_with, a.symmetric_difference(&b).copied().collect()),
        ];
        for (operation, expected) in cases {
            let mut result = bitmap(&a);
            operation(&mut result, &bitmap(&b)).unwrap();
            prop_assert_eq!(result.iter().collect::<BTreeSet<_>>(), expected.clone());
            prop_assert_eq!(result.len(), expected.len() as u64);
        }
    }
}

/// Each pair differs in one property, which the message must name.
#[test]
fn what_cannot_be_combined_is_refused_and_changes_nothing() {
    let bloom = |capacity, rate, seed| {
        let params = BloomParams::for_rate(capacity, rate).unwrap();
        AnyFilter::Bloom(Bloom::new(params, HashFn::Xxh3 { seed }).unwrap())
    };
    let with_scheme = |scheme| {
        let params = BloomParams::for_rate(100, 0.01).unwrap().with_scheme(scheme).unwrap();
        AnyFilter::Bloom(Bloom::new(params, HashFn::default()).unwrap())
    };
    let segmented = AnyFilter::Bloom(
        Bloom::new(BloomParams::for_bits(700, 7).unwrap().segmented(), HashFn::default()).unwrap(),
    );
    let flat = AnyFilter::Bloom(
        Bloom::new(BloomParams::for_bits(700, 7).unwrap(), HashFn::default()).unwrap(),
    );
    let blocked = |capacity| AnyFilter::Blocked(BlockedBloom::with_rate(capacity, 0.01).unwrap());
    let cuckoo = |capacity| AnyFilter::Cuckoo(Cuckoo::with_rate(capacity, 0.01).unwrap());
    let pairs = [
        ("seed", bloom(100, 0.01, 0), bloom(100, 0.01, 1)),
        ("bits", bloom(100, 0.01, 0), bloom(200, 0.01, 0)),
        ("scheme", with_scheme(Scheme::Remix), with_scheme(Scheme::Double)),
        ("form", flat, segmented),
        ("blocks", blocked(100), blocked(1000)),
        ("kind", bloom(100, 0.01, 0), blocked(100)),
        (
            "bound",
            AnyFilter::Bitmap(Bitmap::new(10).unwrap()),
            AnyFilter::Bitmap(Bitmap::new(11).unwrap()),
        ),
        ("", cuckoo(100), cuckoo(1000)),
        (
            "",
            AnyFilter::DLeft(DLeft::with_rate(100, 0.01).unwrap()),
            AnyFilter::DLeft(DLeft::with_rate(1000, 0.01).unwrap()),
        ),
        (
            "",
            AnyFilter::Counting(CountingBloom::with_rate(100, 0.01).unwrap()),
            AnyFilter::Counting(CountingBloom::with_rate(1000, 0.01).unwrap()),
        ),
    ];
    for (word, mut left, mut right) in pairs {
        let key = |f: &AnyFilter| if f.kind() == Kind::Bitmap { 3 } else { mix64(3) };
        let (a, b) = (key(&left), key(&right));
        left.insert_hashes(&[a]).unwrap();
        right.insert_hashes(&[b]).unwrap();
        let before = left.to_bytes();
        let error = left.union_with(&right).unwrap_err();
        assert!(matches!(error, Refused::Mismatch(_)), "{error}");
        assert!(error.to_string().contains(word), "{error} should name {word}");
        assert_eq!(left.to_bytes(), before);
        assert!(left.intersect_with(&right).is_err());
        assert_eq!(left.to_bytes(), before);
    }
}

#[test]
fn kinds_that_cannot_merge_say_so() {
    for name in ["fuse", "windowed"] {
        let config = common::FILTERS.iter().find(|config| config.name == name).unwrap();
        let mut filter = (config.build)(&hashes(1, 100), 100, 0.01);
        let before = filter.to_bytes();
        let error = filter.union_with(&filter.clone()).unwrap_err();
        assert!(matches!(error, Refused::Unsupported { .. }), "{error}");
        assert_eq!(filter.to_bytes(), before);
    }
}

/// Twice its capacity: a count beyond the capacity must not make the file unreadable.
#[test]
fn what_was_merged_beyond_its_capacity_can_be_saved_and_read() {
    let keys = hashes(1, 2000);
    let mut merged = Vec::new();
    for config in common::FILTERS.iter() {
        let mut left = (config.build)(&keys[..1000], 1000, 0.01);
        let right = (config.build)(&keys[1000..], 1000, 0.01);
        if left.union_with(&right).is_err() {
            continue; // refused, by its kind or for lack of room
        }
        merged.push(config.name);
        let read = AnyFilter::read_from(&left.to_bytes()[..])
            .unwrap_or_else(|error| panic!("{}: {error}", config.name));
        let mut found = vec![false; keys.len()];
        read.contains_hashes(&keys, &mut found);
        assert!(found.iter().all(|&found| found), "{}", config.name);
        assert_eq!(read.len(), left.len(), "{}", config.name);
    }
    assert!(merged.contains(&"bloom") && merged.contains(&"scalable"), "{merged:?}");
}

/// Two sets of 50,000 keys with 20,000 in common.
#[test]
fn overlaps_are_estimated() {
    let bloom = |keys: &[u64]| {
        let mut bloom = Bloom::with_rate(100_000, 0.001).unwrap();
        bloom.insert_hashes(keys);
        bloom
    };
    let all = hashes(1, 80_000);
    let (a, b) = (bloom(&all[..50_000]), bloom(&all[30_000..]));
    let near = |estimate: f64, truth: f64, tolerance: f64| {
        assert!((estimate / truth - 1.0).abs() < tolerance, "{estimate}, not {truth}");
    };
    near(a.estimate_union_len(&b).unwrap(), 80_000.0, 0.01);
    near(a.estimate_intersection_len(&b).unwrap(), 20_000.0, 0.04);
    near(a.estimate_jaccard(&b).unwrap(), 0.25, 0.05);
    assert_eq!(a.estimate_jaccard(&a).unwrap(), 1.0);
    let empty = Bloom::with_rate(100_000, 0.001).unwrap();
    assert_eq!(empty.estimate_jaccard(&empty).unwrap(), 1.0);
    assert_eq!(empty.estimate_jaccard(&a).unwrap(), 0.0);
    assert!(a.estimate_union_len(&Bloom::with_rate(10, 0.001).unwrap()).is_err());
}

#[test]
fn a_union_counts_no_more_than_both_sides_had() {
    for i in 0..100 {
        let (mut a, mut b) =
            (Bloom::with_rate(1000, 0.01).unwrap(), Bloom::with_rate(1000, 0.01).unwrap());
        a.insert_hashes(&hashes(2 * i, 500));
        b.insert_hashes(&hashes(2 * i + 1, 500));
        let most = a.len() + b.len();
        a.union_with(&b).unwrap();
        assert!(a.len() <= most && !a.is_over_capacity());
    }
}

/// Nothing can be inferred from filters with all bits set, and nothing is.
#[test]
fn overlaps_of_saturated_filters_are_not_numbers() {
    let mut full = Bloom::with_rate(2, 0.5).unwrap();
    full.insert_hashes(&hashes(1, 1000));
    assert!(full.estimate_len().is_infinite());
    assert!(full.estimate_intersection_len(&full).unwrap().is_infinite());
    assert!(full.estimate_jaccard(&full).unwrap().is_nan());
}
