//! Promise: nothing inserted is denied, counts are right, and what is refused changes nothing. Random operations beside
//! exact sets; dumps and files in between.

use std::collections::{HashMap, HashSet};

use crate::common::envelope::Fields;
use ironbloom_redis::error::{CreateError, InsertError};
use ironbloom_redis::limits::MemoryLimit;
use ironbloom_redis::redisbloom::chain::{Chain, Scaling};
use ironbloom_redis::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use ironbloom_redis::redisbloom::murmur::{BloomHash, cuckoo_hash};
use ironbloom_redis::redisbloom::{dump, rdb};
use ironbloom_testing::Random;
use proptest::prelude::*;

fn bloom(key: u32) -> BloomHash {
    BloomHash::of(&key.to_le_bytes())
}

fn cuckoo(key: u32) -> u64 {
    cuckoo_hash(&key.to_le_bytes())
}

fn through_dump(chain: &Chain) -> Chain {
    let header = dump::chain_header(chain);
    let mut copy = dump::chain_from_header(&header, MemoryLimit::NONE).unwrap();
    let mut iterator = 1;
    while let Some((next, piece)) = dump::chain_chunk(chain, iterator) {
        dump::load_chain_chunk(&mut copy, next, piece).unwrap();
        iterator = next;
    }
    copy
}

fn through_file(filter: &CuckooFilter) -> CuckooFilter {
    let mut fields = Fields::default();
    rdb::save_cuckoo(filter, &mut fields);
    rdb::load_cuckoo(&mut fields, rdb::VERSION).unwrap()
}

fn scalings() -> impl Strategy<Value = Scaling> {
    prop_oneof![(1u32..6).prop_map(Scaling::Growing), (0u32..6).prop_map(Scaling::Fixed)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_chain_agrees_with_a_set(
        capacity in 1u64..200,
        rate in 0.001..0.3,
        scaling in scalings(),
        keys in prop::collection::vec(0u32..400, 0..600),
    ) {
        let mut chain = Chain::new(capacity, rate, scaling, MemoryLimit::NONE).unwrap();
        let mut set = HashSet::new();
        for &key in &keys {
            let was_found = chain.contains(bloom(key));
            match chain.insert(bloom(key), MemoryLimit::NONE) {
                Ok(is_new) => {
                    prop_assert_eq!(is_new, !was_found);
                    prop_assert!(!(is_new && set.contains(&key)), "an inserted key is not new");
                    set.insert(key);
                }
                Err(error) => {
                    prop_assert_eq!(error, InsertError::Full);
                    prop_assert!(matches!(scaling, Scaling::Fixed(_)));
                    prop_assert_eq!(chain.len(), capacity);
                }
            }
        }
        prop_assert!(set.iter().all(|&key| chain.contains(bloom(key))), "a key is denied");
        prop_assert!(chain.len() <= set.len() as u64);
        prop_assert!(chain.links().iter().rev().skip(1).all(|link| link.is_full()));
        prop_assert_eq!(&through_dump(&chain), &chain);
    }

    #[test]
    fn a_cuckoo_filter_agrees_with_a_multiset(
        capacity in 2u64..300,
        bucket_size in 1u16..6,
        max_iterations in 1u16..40,
        expansion in 0u16..5,
        operations in prop::collection::vec((0u8..4, 0u32..200), 0..600),
    ) {
        let shape = CuckooShape::new(capacity, bucket_size, max_iterations, expansion).unwrap();
        let mut filter = CuckooFilter::new(shape, MemoryLimit::NONE).unwrap();
        // Keys that share a fingerprint and places cannot be told apart, nor can removing one of them from removing
        // another: the model counts those that the largest filter here could tell apart.
        let mut model: HashMap<u64, u64> = HashMap::new();
        let class = |key: u32| cuckoo(key);
        for (operation, key) in operations {
            let hash = class(key);
            let before = filter.clone();
            match operation {
                0 | 1 => match filter.insert(hash, MemoryLimit::NONE) {
                    Ok(()) => *model.entry(hash).or_default() += 1,
                    Err(error) => {
                        prop_assert_eq!(error, InsertError::Full);
                        prop_assert_eq!(shape.expansion(), 0);
                        prop_assert_eq!(&filter, &before, "a refused insert changed something");
                    }
                },
                2 => match filter.insert_new(hash, MemoryLimit::NONE) {
                    Ok(true) => *model.entry(hash).or_default() += 1,
                    Ok(false) => prop_assert!(before.contains(hash)),
                    Err(_) => prop_assert_eq!(&filter, &before),
                },
                // Only what was inserted may be removed: else another key's fingerprint goes.
                _ => if let Some(count) = model.get_mut(&hash).filter(|count| **count > 0) {
                    prop_assert!(filter.remove(hash));
                    *count -= 1;
                },
            }
            for (&hash, &count) in model.iter().filter(|(_, count)| **count > 0) {
                prop_assert!(filter.count(hash) >= count, "a key is denied");
            }
        }
        prop_assert_eq!(filter.len(), model.values().sum::<u64>());
        let used: usize = (1..).scan(1, |iterator, _: i32| {
            let (next, piece) = dump::cuckoo_chunk(&filter, *iterator)?;
            *iterator = next;
            Some(piece.iter().filter(|&&slot| slot != 0).count())
        }).sum();
        prop_assert_eq!(used as u64, filter.len(), "a slot a key");
        prop_assert_eq!(&through_file(&filter), &filter);

        let mut compacted = filter.clone();
        compacted.compact();
        prop_assert_eq!((compacted.len(), compacted.removed()), (filter.len(), 0));
        prop_assert!(compacted.sub_filters() <= filter.sub_filters());
        for (&hash, &count) in &model {
            prop_assert!(compacted.count(hash) >= count, "compaction lost a key");
        }
    }
}

/// Large enough that memory is asked for ahead; several sub-filters, and batches of all lengths.
#[test]
fn many_keys_at_once_are_answered_like_one_after_the_other() {
    for (capacity, keys) in [(300, 2000), (1 << 20, 1_300_000)] {
        let shape = CuckooShape::new(capacity, 2, 20, 1).unwrap();
        let mut filter = CuckooFilter::new(shape, MemoryLimit::NONE).unwrap();
        for key in 0..keys {
            filter.insert(cuckoo(key), MemoryLimit::NONE).unwrap();
        }
        assert!(filter.sub_filters() > 1);
        for (first, len) in [(0, 1), (7, 8), (100, 9), (keys - 50, 100), (keys, 128)] {
            let hashes: Vec<u64> = (first..first + len).map(cuckoo).collect();
            let mut found = vec![false; hashes.len()];
            filter.contains_each(&hashes, &mut found);
            let one_by_one: Vec<bool> = hashes.iter().map(|&hash| filter.contains(hash)).collect();
            assert_eq!(found, one_by_one, "{len} from {first}");
            assert!(found.contains(&true) || first >= keys);
        }
    }
}

#[test]
fn removals_give_sub_filters_back() {
    let shape = CuckooShape::new(64, 2, 20, 1).unwrap();
    let mut filter = CuckooFilter::new(shape, MemoryLimit::NONE).unwrap();
    for key in 0..600 {
        filter.insert(cuckoo(key), MemoryLimit::NONE).unwrap();
    }
    assert!(filter.sub_filters() > 8, "{}", filter.sub_filters());
    for key in 30..600 {
        assert!(filter.remove(cuckoo(key)));
    }
    assert_eq!(filter.sub_filters(), 1);
    assert!((0..30).all(|key| filter.contains(cuckoo(key))));
}

#[test]
fn a_filter_over_its_limit_is_refused_before_it_is_made() {
    let limit = MemoryLimit::bytes(1 << 20);
    let refused = CreateError::OverLimit { limit: 1 << 20 };
    let growing = Scaling::Growing(2);
    assert_eq!(Chain::new(1 << 40, 0.01, growing, limit), Err(refused));
    let shape = CuckooShape::new(1 << 30, 2, 20, 1).unwrap();
    assert_eq!(CuckooFilter::new(shape, limit), Err(refused));
}

#[test]
fn growth_over_the_limit_is_refused_and_changes_nothing() {
    let limit = MemoryLimit::bytes(1000);
    let mut chain = Chain::new(100, 0.01, Scaling::Growing(2), limit).unwrap();
    let mut cuckoos = CuckooFilter::new(CuckooShape::new(256, 2, 20, 1).unwrap(), limit).unwrap();
    let mut random = Random(7);
    let refused = InsertError::Growth(CreateError::OverLimit { limit: 1000 });
    let mut key = || random.next() as u32;
    let full = loop {
        let (key, before) = (key(), chain.clone());
        if let Err(error) = chain.insert(bloom(key), limit) {
            assert_eq!((error, &chain), (refused, &before));
            break key;
        }
    };
    assert_eq!(chain.links().len(), 2);
    assert_eq!(chain.insert(bloom(full), MemoryLimit::NONE), Ok(true), "only the limit forbade it");
    loop {
        let (key, before) = (key(), cuckoos.clone());
        if let Err(error) = cuckoos.insert(cuckoo(key), limit) {
            assert_eq!((error, &cuckoos), (refused, &before));
            break;
        }
    }
    assert_eq!(cuckoos.sub_filters(), 3);
}
