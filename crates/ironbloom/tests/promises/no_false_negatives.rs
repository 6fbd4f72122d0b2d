//! Promise: no false negatives, ever. Random operations against an exact model, for every kind.

use std::collections::HashMap;

use crate::common::{self, FILTERS, hashes};
use crate::mapped;
use ironbloom::any::AnyFilter;
use ironbloom::hash::mix64;
use ironbloom::*;
use ironbloom_testing::TemporaryFile;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Operation {
    Insert(u16),
    InsertMany(Vec<u16>),
    Remove(u16),
    Merge(Vec<u16>),
    Bytes,
    Load,
    Map,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..400u16;
    prop_oneof![
        6 => key.clone().prop_map(Operation::Insert),
        2 => proptest::collection::vec(key.clone(), 0..60).prop_map(Operation::InsertMany),
        4 => key.clone().prop_map(Operation::Remove),
        1 => proptest::collection::vec(key, 0..30).prop_map(Operation::Merge),
        1 => Just(Operation::Bytes),
        1 => Just(Operation::Load),
        1 => Just(Operation::Map),
    ]
}

/// A filter beside the multiset of keys that it must contain.
struct Pair {
    filter: AnyFilter,
    model: HashMap<u64, u32>,
    /// Room enough that no operation sequence fills it.
    empty: AnyFilter,
}

impl Pair {
    fn insert(&mut self, keys: &[u16]) {
        for &key in keys {
            let hash = mix64(key.into());
            // A cuckoo filter holds at most eight copies of a key, which fill both of its buckets: another key that shares one of
            // them may then be refused. With four copies each, there is room for both.
            if self.model.get(&hash).copied().unwrap_or(0) < 4 {
                self.filter.insert_hashes(&[hash]).unwrap();
                *self.model.entry(hash).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, key: u16) {
        let hash = mix64(key.into());
        if self.model.contains_key(&hash) {
            // Only keys that were inserted may be removed; kinds that cannot remove refuse.
            if let Ok(removed) = self.filter.remove_hash(hash) {
                assert!(removed, "an inserted key was not there to remove");
                let count = self.model.get_mut(&hash).unwrap();
                *count -= 1;
                if *count == 0 {
                    self.model.remove(&hash);
                }
            }
        }
    }

    fn merge(&mut self, keys: &[u16]) {
        let mut keys: Vec<u64> = keys.iter().map(|&key| mix64(key.into())).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.iter().any(|key| self.model.get(key).copied().unwrap_or(0) >= 8) {
            return;
        }
        let mut other = self.empty.clone();
        other.insert_hashes(&keys).unwrap();
        if self.filter.union_with(&other).is_ok() {
            keys.into_iter().for_each(|key| *self.model.entry(key).or_default() += 1);
        }
    }

    fn through_file(&mut self, open: impl Fn(&TemporaryFile) -> AnyFilter) {
        let path = TemporaryFile::new("ibf");
        self.filter.save(&path).unwrap();
        let back = open(&path);
        assert_eq!(back, self.filter);
        self.filter = back;
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(key) => self.insert(&[*key]),
            Operation::InsertMany(keys) => self.insert(keys),
            Operation::Remove(key) => self.remove(*key),
            Operation::Merge(keys) => self.merge(keys),
            Operation::Bytes => {
                self.filter = AnyFilter::from_bytes(&self.filter.to_bytes()).unwrap()
            }
            Operation::Load => self.through_file(|path| AnyFilter::load(path).unwrap()),
            Operation::Map => self.through_file(|path| mapped::map::<AnyFilter>(path).unwrap()),
        }
    }

    fn check(&self, name: &str) {
        for &hash in self.model.keys() {
            assert!(self.filter.contains_hash(hash), "{name}: a key was lost");
        }
    }
}

/// Returns true if it takes no keys after it was built.
fn is_static(config: &common::Config) -> bool {
    plan::named(config.name).is_some_and(|plan| !plan.abilities.insert)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_operation_loses_a_key(operations in proptest::collection::vec(operation(), 1..120)) {
        for config in FILTERS.iter().filter(|config| !is_static(config)) {
            // The windowed kind remembers its whole window, which here is longer than any sequence.
            let empty = (config.build)(&[], 20_000, 0.01);
            let mut pair = Pair { filter: empty.clone(), model: HashMap::new(), empty };
            for operation in &operations {
                pair.apply(operation);
            }
            pair.check(config.name);
        }
    }

    #[test]
    fn a_static_filter_contains_what_it_was_built_from(keys in proptest::collection::vec(any::<u64>(), 0..500)) {
        for config in FILTERS.iter().filter(|config| is_static(config)) {
            let filter = (config.build)(&keys, keys.len() as u64, 0.01);
            let copy = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
            prop_assert_eq!(common::found(&copy, &keys), keys.len() as u64, "{}", config.name);
        }
    }

    #[test]
    fn a_bitmap_is_exact(operations in proptest::collection::vec((any::<bool>(), 0..1000u64), 0..300)) {
        let mut bitmap = Bitmap::new(1000).unwrap();
        let mut model = std::collections::BTreeSet::new();
        for (insert, index) in operations {
            if insert {
                prop_assert_eq!(bitmap.insert(index).unwrap(), model.insert(index));
            } else {
                prop_assert_eq!(bitmap.remove(index).unwrap(), model.remove(&index));
            }
        }
        prop_assert_eq!(bitmap.len(), model.len() as u64);
        prop_assert!(bitmap.iter().eq(model.iter().copied()));
        let back = Bitmap::from_bytes(&bitmap.to_bytes()).unwrap();
        prop_assert_eq!(back, bitmap);
    }
}

/// Full of keys, at several sizes, with every form of lookup.
#[test]
fn every_key_is_found_one_by_one_and_in_batches() {
    for config in FILTERS.iter() {
        for capacity in [1, 2, 10, 1000, 100_000] {
            for rate in [0.3, 0.01, 1e-4] {
                let keys = hashes(capacity, capacity);
                let filter = (config.build)(&keys, capacity, rate);
                assert_eq!(
                    common::found(&filter, &keys),
                    capacity,
                    "{} {capacity} {rate}",
                    config.name
                );
                assert!(keys.iter().all(|&hash| filter.contains_hash(hash)), "{}", config.name);
            }
        }
    }
}

/// Past its capacity a filter may be wrong more often, but never about its own keys.
#[test]
fn no_key_is_lost_past_the_capacity() {
    for config in FILTERS.iter() {
        let keys = hashes(1, 3000);
        let mut filter = (config.build)(&keys[..1000], 1000, 0.01);
        let mut taken = 1000;
        for &hash in &keys[1000..] {
            if filter.insert_hashes(&[hash]).is_err() {
                break; // static or full: refused, and earlier keys stay
            }
            taken += 1;
        }
        let remembered =
            if config.name == "windowed" { &keys[taken - 1000..taken] } else { &keys[..taken] };
        assert_eq!(common::found(&filter, remembered), remembered.len() as u64, "{}", config.name);
    }
}

#[test]
fn writing_to_a_mapped_filter_leaves_the_file_alone() {
    for config in FILTERS.iter().filter(|config| !is_static(config)) {
        let path = TemporaryFile::new("ibf");
        (config.build)(&hashes(1, 100), 1000, 0.01).save(&path).unwrap();
        let before = std::fs::read(&path).unwrap();
        let mut mapped = mapped::map_unverified::<AnyFilter>(&path).unwrap();
        mapped.insert_hashes(&hashes(2, 100)).unwrap();
        assert_eq!(common::found(&mapped, &hashes(2, 100)), 100, "{}", config.name);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{}", config.name);
    }
}

#[test]
fn clearing_forgets_everything() {
    let keys = hashes(1, 100);
    let mut bloom = Bloom::with_rate(100, 0.01).unwrap();
    bloom.insert_hashes(&keys);
    bloom.clear();
    assert_eq!((bloom.len(), bloom.fill()), (0, 0.0));
    let mut blocked = BlockedBloom::with_rate(100, 0.01).unwrap();
    blocked.insert_hashes(&keys);
    blocked.clear();
    assert_eq!((blocked.len(), blocked.fill()), (0, 0.0));
    let mut cuckoo = Cuckoo::with_rate(100, 0.01).unwrap();
    cuckoo.insert_hashes(&keys).unwrap();
    cuckoo.clear();
    assert_eq!((cuckoo.len(), cuckoo.fill()), (0, 0.0));
}

#[test]
fn keys_are_any_bytes() {
    let keys: [&[u8]; 5] = [b"", b"\0", b"\xff\xfe", "žluťoučký".as_bytes(), &[7; 100_000]];
    let mut bloom = Bloom::with_rate(10, 0.001).unwrap();
    let mut cuckoo = Cuckoo::with_rate(10, 0.001).unwrap();
    for key in keys {
        assert!(bloom.insert(key));
        assert!(!bloom.insert(key));
        cuckoo.insert(key).unwrap();
    }
    assert!(keys.iter().all(|key| bloom.contains(key) && cuckoo.contains(key)));
}
