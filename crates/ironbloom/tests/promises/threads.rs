//! Atomic filters: many threads insert through `&self`, and nothing is lost.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::hashes;
use ironbloom::*;

const THREADS: u64 = 4;
const KEYS: u64 = 20_000;

#[test]
fn keys_inserted_by_many_threads_are_all_found() {
    let bloom = AtomicBloom::with_rate(THREADS * KEYS, 0.01).unwrap();
    let blocked = AtomicBlockedBloom::with_rate(THREADS * KEYS, 0.01).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bloom, blocked) = (&bloom, &blocked);
            scope.spawn(move || {
                let keys = hashes(thread, KEYS);
                for chunk in keys.chunks(100) {
                    bloom.insert_hashes(chunk);
                    chunk.iter().for_each(|&hash| {
                        blocked.insert_hash(hash);
                    });
                    assert!(
                        chunk.iter().all(|&h| bloom.contains_hash(h) && blocked.contains_hash(h))
                    );
                }
            });
        }
    });
    let all: Vec<u64> = (0..THREADS).flat_map(|thread| hashes(thread, KEYS)).collect();
    let mut found = vec![false; all.len()];
    bloom.contains_hashes(&all, &mut found);
    assert!(found.iter().all(|&found| found));
    blocked.contains_hashes(&all, &mut found);
    assert!(found.iter().all(|&found| found));
}

/// The same bits as one thread would have set.
#[test]
fn an_atomic_filter_is_the_plain_filter() {
    let keys = hashes(1, 5000);
    let (mut bloom, mut blocked) =
        (Bloom::with_rate(5000, 0.01).unwrap(), BlockedBloom::with_rate(5000, 0.01).unwrap());
    let atomic_bloom = AtomicBloom::from(bloom.clone());
    let atomic_blocked = AtomicBlockedBloom::from(blocked.clone());
    for &hash in &keys {
        assert_eq!(bloom.insert_hash(hash), atomic_bloom.insert_hash(hash));
        assert_eq!(blocked.insert_hash(hash), atomic_blocked.insert_hash(hash));
    }
    assert_eq!(atomic_bloom.len(), bloom.len());
    assert_eq!(atomic_bloom.snapshot(), bloom);
    assert_eq!(atomic_blocked.snapshot(), blocked);
    assert_eq!(Bloom::from(atomic_bloom), bloom);
    assert_eq!(BlockedBloom::from(atomic_blocked), blocked);
}

/// Racing inserts of one key: at least one of them reports that it was new.
#[test]
fn of_racing_inserts_at_least_one_is_told_it_was_first() {
    let bloom = AtomicBloom::with_rate(KEYS, 1e-9).unwrap();
    let keys = hashes(7, 2000);
    let firsts: Vec<AtomicU64> = keys.iter().map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (bloom, keys, firsts) = (&bloom, &keys, &firsts);
            scope.spawn(move || {
                for (hash, first) in keys.iter().zip(firsts) {
                    first.fetch_add(u64::from(bloom.insert_hash(*hash)), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(firsts.iter().all(|first| (1..=THREADS).contains(&first.load(Ordering::Relaxed))));
    assert!(keys.iter().all(|&hash| !bloom.insert_hash(hash)));
}

/// Shards of all sizes, including empty ones.
fn shards(keys: &[u64]) -> Vec<Vec<u64>> {
    let (head, rest) = keys.split_at(keys.len() / 2);
    let shards = rest.chunks(777).map(<[u64]>::to_vec);
    shards.chain([head.to_vec(), Vec::new()]).collect()
}

/// The bits and the count are the same for every number of threads above one.
#[test]
fn shards_on_several_threads_make_the_filter_of_one() {
    let keys = hashes(1, 50_000);
    let mut bloom = Bloom::with_rate(50_000, 0.01).unwrap();
    let mut blocked = BlockedBloom::with_rate(50_000, 0.01).unwrap();
    bloom.insert_hashes(&keys);
    blocked.insert_hashes(&keys);
    let mut counts = Vec::new();
    for threads in [1, 2, 3, 8, 100].map(|threads| NonZeroUsize::new(threads).unwrap()) {
        let mut other = Bloom::with_rate(50_000, 0.01).unwrap();
        other.insert_shards(shards(&keys), threads).unwrap();
        assert_eq!(other.fill(), bloom.fill());
        assert!(keys.iter().all(|&key| other.contains_hash(key)));
        let mut union = bloom.clone();
        union.union_with(&other).unwrap();
        assert_eq!(union.fill(), bloom.fill(), "bits that one thread does not set");
        assert!(other.len().abs_diff(50_000) < 500, "{}", other.len());
        counts.push(other.len());

        let mut other = BlockedBloom::with_rate(50_000, 0.01).unwrap();
        other.insert_shards(shards(&keys), threads).unwrap();
        let mut union = blocked.clone();
        union.union_with(&other).unwrap();
        assert_eq!((other.fill(), union.fill()), (blocked.fill(), blocked.fill()));
        assert!(keys.iter().all(|&key| other.contains_hash(key)));
    }
    assert!(counts[1..].iter().all(|count| *count == counts[1]), "{counts:?}");
}

/// Earlier keys stay, and shards may be created one by one while threads work.
#[test]
fn shards_are_added_to_what_is_there() {
    let mut filter = BlockedBloom::with_rate(10_000, 0.01).unwrap();
    filter.insert_hashes(&hashes(1, 5000));
    let lazy = (0..10).map(|shard| hashes(2, 5000).into_iter().skip(500 * shard).take(500));
    filter.insert_shards(lazy, NonZeroUsize::new(3).unwrap()).unwrap();
    let mut all = hashes(1, 5000).into_iter().chain(hashes(2, 5000));
    assert!(all.all(|hash| filter.contains_hash(hash)));
}
