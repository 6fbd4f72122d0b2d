//! Keys that were inserted can be removed, and removing one never removes another.

use std::collections::HashMap;

use crate::mapped;
use ironbloom::hash::mix64;
use ironbloom::{
    BloomParams, CountingBloom, DLeft, DLeftParams, Full, HashFn, MergeError, Mismatch, Persist,
};
use ironbloom_testing::TemporaryFile;
use proptest::prelude::*;

const EXTERNAL: HashFn = HashFn::External { id: 0 };

/// An operation on a filter and its model.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u64),
    Remove(u64),
}

/// Few keys, so that many are inserted often enough to make counters stuck.
fn steps(keys: u64) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..keys).prop_map(Step::Insert),
        2 => (0..keys).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..400)
}

/// The exact multiset that a filter represents.
#[derive(Default)]
struct Model(HashMap<u64, u64>);

impl Model {
    fn insert(&mut self, key: u64) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Removes a key; false if it is absent.
    fn remove(&mut self, key: u64) -> bool {
        let Some(count) = self.0.get_mut(&key) else { return false };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&key);
        }
        true
    }

    fn keys(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    fn len(&self) -> u64 {
        self.0.values().sum()
    }

    /// The keys, each as often as it is present.
    fn drain(&mut self) -> impl Iterator<Item = u64> {
        self.0.drain().flat_map(|(key, count)| std::iter::repeat_n(key, count as usize))
    }
}

/// `found` of `asked` absent keys lies within 4.5 sigma of a binomial with this rate.
fn assert_rate(found: u64, asked: u64, rate: f64) {
    let (asked, expected) = (asked as f64, asked as f64 * rate);
    let bound = 4.5 * (asked * rate * (1.0 - rate)).sqrt();
    let measured = found as f64 / asked;
    assert!((found as f64 - expected).abs() <= bound, "measured {measured}, expected {rate}");
}

// --------------------------------------------------------------------------------------- counting Bloom

fn counting(capacity: u64, rate: f64) -> CountingBloom {
    CountingBloom::new(BloomParams::for_rate(capacity, rate).unwrap(), EXTERNAL).unwrap()
}

proptest! {
    #[test]
    fn a_counting_filter_never_loses_a_key(steps in steps(30)) {
        let mut filter = counting(30, 0.05);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Insert(key) => {
                    let was_absent = !filter.contains_hash(mix64(key));
                    prop_assert_eq!(filter.insert_hash(mix64(key)), was_absent);
                    model.insert(key);
                }
                Step::Remove(key) if model.remove(key) => {
                    prop_assert!(filter.remove_hash(mix64(key)));
                }
                Step::Remove(key) if !filter.contains_hash(mix64(key)) => {
                    let before = filter.clone();
                    prop_assert!(!filter.remove_hash(mix64(key)));
                    prop_assert_eq!(&filter, &before);
                }
                Step::Remove(_) => {} // a false positive: the caller must not remove it
            }
            prop_assert!(model.keys().all(|key| filter.contains_hash(mix64(key))));
            prop_assert_eq!(filter.len(), model.len());
        }
        prop_assert!(model.drain().all(|key| filter.remove_hash(mix64(key))));
        prop_assert!(filter.is_empty());
        prop_assert_eq!(filter.estimate_len() == 0.0, filter.saturated() == 0);
    }
}

#[test]
fn a_counting_filter_keeps_its_rate_through_churn() {
    let capacity = 50_000;
    let mut filter = counting(capacity, 0.01);
    for key in 0..capacity {
        filter.insert_hash(mix64(key));
    }
    for key in 0..3 * capacity {
        assert!(filter.remove_hash(mix64(key)));
        filter.insert_hash(mix64(key + capacity));
    }
    assert!((3 * capacity..4 * capacity).all(|key| filter.contains_hash(mix64(key))));
    assert_eq!((filter.len(), filter.saturated()), (capacity, 0));
    assert!(!filter.is_over_capacity());
    let absent = 1_000_000;
    let found = (0..absent).filter(|key| filter.contains_hash(mix64(key | 1 << 40))).count();
    // The rate of these very counters, from which the planned rate differs by a further half percent.
    assert_rate(found as u64, absent, filter.estimate_rate());
    assert!((filter.estimate_rate() / 0.01 - 1.0).abs() < 0.02);
}

#[test]
fn a_key_that_is_not_in_a_counting_filter_is_not_removed() {
    let mut filter = CountingBloom::with_rate(1_000, 0.01).unwrap();
    for key in 0..1_000u64 {
        filter.insert(key.to_le_bytes());
    }
    let before = filter.to_bytes();
    let absent = (1_000..2_000u64).filter(|key| !filter.contains(key.to_le_bytes()));
    let absent: Vec<u64> = absent.collect();
    assert!(absent.len() > 900);
    assert!(absent.iter().all(|key| !filter.remove(key.to_le_bytes())));
    assert_eq!(filter.to_bytes(), before);
}

#[test]
fn a_stuck_counting_filter_still_finds_everything() {
    let mut filter = CountingBloom::with_rate(100, 0.01).unwrap();
    filter.insert("rare");
    for _ in 0..16 {
        filter.insert("often");
    }
    assert!(filter.saturated() > 0);
    for _ in 0..16 {
        assert!(filter.remove("often"));
    }
    assert!(filter.contains("rare") && filter.contains("often"));
    assert_eq!(filter.len(), 1);
    filter.clear();
    assert!(!filter.contains("often"));
    assert_eq!((filter.len(), filter.saturated()), (0, 0));
}

#[test]
fn the_union_of_counting_filters_is_inserting_both() {
    let [mut left, mut right, mut both] = [0; 3].map(|_| counting(2_000, 0.01));
    let left_keys: Vec<u64> = (0..1_200).map(mix64).collect();
    let right_keys: Vec<u64> = (1_000..2_000).map(mix64).collect();
    left.insert_hashes(&left_keys);
    right.insert_hashes(&right_keys);
    both.insert_hashes(&left_keys);
    both.insert_hashes(&right_keys);
    left.union_with(&right).unwrap();
    assert_eq!(left, both);
    assert!(right_keys.iter().all(|&hash| left.remove_hash(hash)));
    assert!(left_keys.iter().all(|&hash| left.contains_hash(hash)));
}

#[test]
fn counting_filters_that_differ_are_not_united() {
    let mut filter = counting(1_000, 0.01);
    filter.insert_hash(mix64(1));
    let before = filter.clone();
    let mut other_hash = CountingBloom::new(filter.params(), HashFn::External { id: 1 }).unwrap();
    other_hash.insert_hash(mix64(2));
    for other in [counting(1_001, 0.01), counting(1_000, 0.001), other_hash] {
        assert!(filter.union_with(&other).is_err());
        assert_eq!(filter, before);
    }
}

#[test]
fn a_counting_filter_survives_its_file() {
    let mut filter = counting(1_000, 0.01);
    let hashes: Vec<u64> = (0..1_000).map(mix64).collect();
    filter.insert_hashes(&hashes);
    let mut copy = CountingBloom::from_bytes(&filter.to_bytes()).unwrap();
    assert_eq!(copy, filter);
    assert!(hashes.iter().all(|&hash| copy.remove_hash(hash)));
    assert!(!hashes.iter().any(|&hash| copy.contains_hash(hash)));
}

// ------------------------------------------------------------------------------------------------ d-left

fn dleft(capacity: u64, remainder_bits: u32) -> DLeft {
    let params = DLeftParams::with_remainder_bits(capacity, remainder_bits).unwrap();
    DLeft::new(params, EXTERNAL).unwrap()
}

proptest! {
    /// 96 places for up to 60 keys: the stash is used as well.
    #[test]
    fn a_dleft_filter_never_loses_a_key(steps in steps(60)) {
        let mut filter = dleft(1, 10);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Insert(key) => {
                    prop_assert_eq!(filter.insert_hash(mix64(key)).map(drop), Ok(()));
                    model.insert(key);
                }
                Step::Remove(key) if model.remove(key) => {
                    prop_assert!(filter.remove_hash(mix64(key)));
                }
                Step::Remove(key) if !filter.contains_hash(mix64(key)) => {
                    let before = filter.clone();
                    prop_assert!(!filter.remove_hash(mix64(key)));
                    prop_assert_eq!(&filter, &before);
                }
                Step::Remove(_) => {} // a false positive: the caller must not remove it
            }
            prop_assert!(model.keys().all(|key| filter.contains_hash(mix64(key))));
            prop_assert_eq!(filter.len(), model.len());
            if filter.saturated() == 0 {
                prop_assert_eq!(filter.estimate_len(), model.len() as f64);
            }
        }
        prop_assert!(model.drain().all(|key| filter.remove_hash(mix64(key))));
        prop_assert!(filter.is_empty());
        prop_assert_eq!(filter.estimate_len() == 0.0, filter.saturated() == 0);
    }
}

/// The paper's configuration: 24 keys per bucket row, 14 bits.
#[test]
fn a_dleft_filter_has_the_rate_of_the_paper() {
    let capacity = 240_000;
    let mut filter = dleft(capacity, 14);
    filter.insert_hashes(&(0..capacity).map(mix64).collect::<Vec<_>>()).unwrap();
    assert!((filter.params().rate_at(capacity) / 0.00146 - 1.0).abs() < 0.005);
    assert!((filter.estimate_rate() / 0.00146 - 1.0).abs() < 0.005);
    assert_eq!((filter.stashed(), filter.params().bits() * 3), (0, capacity * 64));
    let absent = 2_000_000;
    let found = (0..absent).filter(|key| filter.contains_hash(mix64(key | 1 << 40))).count();
    assert_rate(found as u64, absent, filter.params().rate_at(capacity));
}

#[test]
fn a_dleft_filter_keeps_the_rate_asked_for() {
    for (capacity, rate) in [(10, 0.1), (1_000, 0.01), (50_000, 0.001), (50_000, 1e-9)] {
        let params = DLeftParams::for_rate(capacity, rate).unwrap();
        assert!(params.rate_at(capacity) <= rate);
        let narrower = DLeftParams::with_remainder_bits(capacity, params.remainder_bits() - 1);
        let least = params.remainder_bits() == 12; // fewer would not survive churn
        assert!(least || narrower.unwrap().rate_at(capacity) > rate);
    }
    assert!(DLeftParams::for_rate(24, 1e-17).is_err());
    assert!(DLeftParams::with_remainder_bits(24, 0).is_err());
    assert!(DLeftParams::with_remainder_bits(24, 57).is_err());
    assert!(DLeftParams::with_remainder_bits(0, 14).is_err());
}

#[test]
fn a_dleft_filter_at_capacity_survives_churn_without_overflow() {
    let capacity = 100_000;
    let mut filter = dleft(capacity, 14);
    let mut live: Vec<u64> = (0..capacity).map(mix64).collect();
    filter.insert_hashes(&live).unwrap();
    for step in 0..6 * capacity {
        let new = mix64(step | 1 << 40);
        let place = (mix64(step | 1 << 41) % capacity) as usize;
        assert!(filter.remove_hash(live[place]));
        live[place] = new;
        filter.insert_hash(new).unwrap();
        assert_eq!(filter.stashed(), 0);
    }
    assert!(live.iter().all(|&hash| filter.contains_hash(hash)));
    assert_eq!(filter.len(), capacity);
}

#[test]
fn a_key_that_is_not_in_a_dleft_filter_is_not_removed() {
    let mut filter = DLeft::with_rate(1_000, 0.01).unwrap();
    for key in 0..1_000u64 {
        filter.insert(key.to_le_bytes()).unwrap();
    }
    let before = filter.to_bytes();
    let absent = (1_000..2_000u64).filter(|key| !filter.contains(key.to_le_bytes()));
    let absent: Vec<u64> = absent.collect();
    assert!(absent.len() > 900);
    assert!(absent.iter().all(|key| !filter.remove(key.to_le_bytes())));
    assert_eq!(filter.to_bytes(), before);
}

/// One bucket per subtable: 32 cells and a stash of 64. The remainders are long enough that no two keys share one.
#[test]
fn a_full_dleft_filter_refuses_and_keeps_what_it_has() {
    let mut filter = dleft(1, 56);
    let hashes: Vec<u64> = (0..100).map(mix64).collect();
    let full = Full { len: 96, capacity: 1 };
    assert_eq!(filter.insert_hashes(&hashes), Err(full));
    assert_eq!((filter.len(), filter.stashed()), (96, 64));
    assert!(filter.is_over_capacity());
    let before = filter.to_bytes();
    assert_eq!(filter.insert_hash(hashes[99]), Err(full));
    assert_eq!(filter.to_bytes(), before);
    assert!(hashes[..96].iter().all(|&hash| filter.contains_hash(hash)));
    assert!(!hashes[96..].iter().any(|&hash| filter.contains_hash(hash)));
    assert!(filter.remove_hash(hashes[0]));
    assert_eq!(filter.insert_hash(hashes[99]).map(drop), Ok(()));
    filter.clear();
    assert_eq!(filter.to_bytes(), dleft(1, 56).to_bytes());
}

#[test]
fn the_union_of_dleft_filters_is_inserting_both() {
    let [mut left, mut right, mut both] = [0; 3].map(|_| dleft(2_000, 16));
    let left_keys: Vec<u64> = (0..1_200).map(mix64).collect();
    let right_keys: Vec<u64> = (1_000..2_000).map(mix64).collect();
    left.insert_hashes(&left_keys).unwrap();
    right.insert_hashes(&right_keys).unwrap();
    both.insert_hashes(&left_keys).unwrap();
    both.insert_hashes(&right_keys).unwrap();
    left.union_with(&right).unwrap();
    for key in 0..100_000 {
        let hash = mix64(key);
        assert_eq!(left.contains_hash(hash), both.contains_hash(hash), "key {key}");
    }
    assert_eq!((left.len(), left.estimate_len()), (both.len(), both.estimate_len()));
    assert!(right_keys.iter().all(|&hash| left.remove_hash(hash)));
    assert!(left_keys.iter().all(|&hash| left.contains_hash(hash)));
    assert_eq!(left.estimate_len(), 1_200.0);
}

#[test]
fn dleft_filters_without_room_for_both_are_not_united() {
    let [mut left, mut right] = [0; 2].map(|_| dleft(1, 56));
    left.insert_hashes(&(0..60).map(mix64).collect::<Vec<_>>()).unwrap();
    right.insert_hashes(&(60..100).map(mix64).collect::<Vec<_>>()).unwrap();
    let before = left.clone();
    let full = MergeError::Full(Full { len: 60, capacity: 1 });
    assert_eq!(left.union_with(&right), Err(full));
    assert_eq!(left, before);
    right.clear();
    right.insert_hashes(&(60..96).map(mix64).collect::<Vec<_>>()).unwrap();
    assert_eq!(left.union_with(&right), Ok(()));
    assert!((0..96).all(|key| left.contains_hash(mix64(key))));
}

#[test]
fn dleft_filters_that_differ_are_not_united() {
    let mut filter = dleft(1_000, 14);
    filter.insert_hash(mix64(1)).unwrap();
    let before = filter.clone();
    let other_hash = DLeft::new(filter.params(), HashFn::External { id: 1 }).unwrap();
    for (other, what) in [
        (dleft(2_000, 14), "number of buckets"),
        (dleft(1_000, 15), "remainder bits"),
        (other_hash, "hash function"),
    ] {
        let refused = filter.union_with(&other);
        assert!(
            matches!(&refused, Err(MergeError::Mismatch(Mismatch { what: found, .. })) if *found == what),
            "{refused:?}"
        );
        assert_eq!(filter, before);
    }
}

#[test]
fn a_dleft_filter_with_a_stash_survives_its_file() {
    let path = TemporaryFile::new("ibf");
    let mut filter = dleft(1, 40);
    let hashes: Vec<u64> = (0..70).map(mix64).collect();
    filter.insert_hashes(&hashes).unwrap();
    assert_eq!(filter.stashed(), 38);
    filter.save(&path).unwrap();
    for mut copy in [DLeft::load(&path).unwrap(), mapped::map::<DLeft>(&path).unwrap()] {
        assert_eq!(copy, filter);
        assert!(hashes.iter().all(|&hash| copy.remove_hash(hash)));
        assert_eq!(copy.to_bytes(), dleft(1, 40).to_bytes());
    }
}

/// Counters that three keys share stick forever, so there must be few of them however often keys are replaced.
#[test]
fn a_d_left_filter_of_high_rate_survives_many_turnovers() {
    let n = 5_000u64;
    let mut filter = DLeft::with_rate(n, 0.5).unwrap();
    for i in 0..n {
        filter.insert_hash(mix64(i)).unwrap();
    }
    for i in n..31 * n {
        assert!(filter.remove_hash(mix64(i - n)));
        filter.insert_hash(mix64(i)).unwrap();
    }
    assert!(filter.saturated() < 20, "{} stuck cells", filter.saturated());
}
