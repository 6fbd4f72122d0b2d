//! Batches answer and insert like single calls, in all their forms and for all kinds.

use crate::common::{FILTERS, hashes};
use ironbloom::*;

/// Looks up one hash after the other, with the kind's own method.
fn one_by_one(filter: &AnyFilter, hashes: &[u64]) -> Vec<bool> {
    hashes.iter().map(|&hash| filter.contains_hash(hash)).collect()
}

/// Present and absent hashes mixed, so that answers differ from one to the next.
fn questions(present: &[u64], count: usize) -> Vec<u64> {
    let absent = hashes(77, count as u64);
    (0..count)
        .map(|i| if i % 3 == 0 { absent[i] } else { present[i * 7 % present.len()] })
        .collect()
}

fn assert_batches_are_right(name: &str, filter: &AnyFilter, asked: &[u64]) {
    let expected = one_by_one(filter, asked);
    // Both sides of every boundary: the prefetch distance, a step, a group, a word of the mask.
    for len in [0, 1, 15, 16, 17, 31, 33, 64, 65, 511, 513, 1023, 1025, asked.len()] {
        let mut found = vec![len % 2 == 1; len];
        filter.contains_hashes(&asked[..len], &mut found);
        assert!(found == expected[..len], "{name}: {len} hashes as bytes");
        let mut mask = vec![u64::MAX; len.div_ceil(64)];
        filter.contains_hashes_mask(&asked[..len], &mut mask);
        let bit = |i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
        assert!((0..len).all(|i| bit(i) == expected[i]), "{name}: {len} hashes as a mask");
    }
}

#[test]
fn batches_find_what_single_lookups_find() {
    for config in FILTERS.iter() {
        for n in [1, 100, 5000] {
            let present = hashes(1, n);
            let filter = (config.build)(&present, n, 0.05);
            assert_batches_are_right(config.name, &filter, &questions(&present, 3000));
        }
    }
}

/// Beyond the size up to which lines are not prefetched.
#[test]
fn batches_of_large_filters_find_what_single_lookups_find() {
    let present = hashes(1, 2_000_000);
    let asked = questions(&present, 10_007);
    for config in FILTERS.iter() {
        let filter = (config.build)(&present, present.len() as u64, 1e-4);
        let is_static = !filter.abilities().insert; // and always prefetches
        assert!(is_static || filter.size_in_bytes() > 4 << 20, "{} is too small", config.name);
        assert_batches_are_right(config.name, &filter, &asked);
    }
}

fn names(count: u64) -> Vec<String> {
    (0..count).map(|i| format!("name {i}")).collect()
}

#[test]
fn keys_in_batches_are_keys_one_by_one() {
    let names = names(3000);
    let mut filter = BlockedBloom::with_rate(2000, 0.05).unwrap();
    filter.insert_keys(&names[..2000]);
    let expected: Vec<bool> = names.iter().map(|name| filter.contains(name)).collect();
    let mut found = vec![false; names.len()];
    filter.contains_keys(&names, &mut found);
    assert_eq!(found, expected);
    let mut mask = vec![0; names.len().div_ceil(64)];
    filter.contains_keys_mask(&names, &mut mask);
    assert!((0..names.len()).all(|i| mask[i / 64] >> (i % 64) & 1 == u64::from(expected[i])));
    assert!(expected[..2000].iter().all(|&found| found) && !expected[2000..].iter().all(|&f| f));
}

/// The bytes are the same, however the keys were inserted.
#[test]
fn inserting_a_slice_of_keys_is_inserting_each() {
    let names = names(2500);
    macro_rules! check {
        ($empty:expr) => {{
            let (mut slice, mut each) = ($empty.unwrap(), $empty.unwrap());
            let _ = slice.insert_keys(&names);
            for name in &names {
                let _ = each.insert(name);
            }
            assert!(names.iter().all(|name| slice.contains(name)));
            assert!(slice.to_bytes() == each.to_bytes(), "{}", stringify!($empty));
        }};
    }
    check!(Bloom::with_rate(2500, 0.01));
    check!(BlockedBloom::with_rate(2500, 0.01));
    check!(SplitBlock::with_rate(2500, 0.01));
    check!(CountingBloom::with_rate(2500, 0.01));
    check!(DLeft::with_rate(2500, 0.01));
    check!(Cuckoo::with_rate(2500, 0.01));
    check!(Scalable::with_rate(100, 0.01));
    check!(Windowed::new(WindowedParams::for_keys(5000, 0.01).unwrap(), HashFn::default()));
    let atomic = AtomicBloom::with_rate(2500, 0.01).unwrap();
    atomic.insert_keys(&names);
    assert!(names.iter().all(|name| atomic.contains(name)));
}

#[test]
fn a_full_filter_refuses_a_slice_of_keys() {
    let mut filter = Cuckoo::with_rate(100, 0.01).unwrap();
    assert!(filter.insert_keys(&names(10_000)).is_err());
    assert!((90..10_000).contains(&filter.len()));
}

#[test]
#[should_panic(expected = "external hashes")]
fn keys_for_a_filter_of_external_hashes_are_a_panic() {
    let params = BloomParams::for_rate(100, 0.01).unwrap();
    Bloom::new(params, HashFn::External { id: 1 }).unwrap().insert_keys(&["alice"]);
}
