//! Integers are keys like any others; integers in place of hashes are noticed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ironbloom::hash::mix64;
use ironbloom::multi::{Joint, MultiFilter, ParallelBloom};
use ironbloom::*;

/// The most obvious keys: 0, 1, 2 …
fn ids(from: u32, count: u32) -> Vec<u32> {
    (from..from + count).collect()
}

/// At 1 % of 20,000 absent keys: 200 ± 14, so below 6 sigma, 284.
fn assert_rate(name: &str, found: &[bool]) {
    let wrong = found.iter().filter(|&&found| found).count();
    assert!(wrong < 284, "{name}: {wrong} of {} are false positives", found.len());
}

/// Single inserts and batches give the same filter, which finds every key, and others only at its
/// rate.
macro_rules! takes_integers {
    ($empty:expr) => {{
        let name = stringify!($empty);
        let (present, absent) = (ids(0, 10_000), ids(1_000_000, 20_000));
        let (mut each, mut batch) = ($empty.unwrap(), $empty.unwrap());
        for &id in &present {
            let _ = each.insert(id);
        }
        let _ = batch.insert_keys(&present);
        assert!(each.to_bytes() == batch.to_bytes(), "{name}");
        assert!(present.iter().all(|&id| batch.contains(i64::from(id))), "{name}");
        let mut found = vec![false; absent.len()];
        batch.contains_keys(&absent, &mut found);
        assert_rate(name, &found);
    }};
}

#[test]
fn small_integers_are_keys_of_every_kind_at_the_rate() {
    takes_integers!(Bloom::with_rate(10_000, 0.01));
    takes_integers!(BlockedBloom::with_rate(10_000, 0.01));
    takes_integers!(SplitBlock::with_rate(10_000, 0.01));
    takes_integers!(CountingBloom::with_rate(10_000, 0.01));
    takes_integers!(DLeft::with_rate(10_000, 0.01));
    takes_integers!(Cuckoo::with_rate(10_000, 0.01));
    takes_integers!(Scalable::with_rate(1000, 0.01));
    takes_integers!(Windowed::for_keys(10_000, 0.01));
    let fuse = BinaryFuse::from_keys(ids(0, 10_000), 0.01).unwrap();
    assert!(ids(0, 10_000).iter().all(|&id| fuse.contains(id)));
    let atomic = AtomicBlockedBloom::with_rate(10_000, 0.01).unwrap();
    atomic.insert_keys(&ids(0, 10_000));
    atomic.insert(-1);
    assert!(atomic.contains(9_999u64) && atomic.contains(-1i64));
}

#[test]
fn a_filter_of_any_kind_takes_integers_and_a_bitmap_takes_them_as_they_are() {
    let mut filters = [
        AnyFilter::Blocked(BlockedBloom::with_rate(10_000, 0.01).unwrap()),
        AnyFilter::Cuckoo(Cuckoo::with_rate(10_000, 0.01).unwrap()),
        AnyFilter::Bitmap(Bitmap::new(2_000_000).unwrap()),
    ];
    for filter in &mut filters {
        let kind = filter.kind().name();
        filter.insert_keys(&ids(0, 9_000)).unwrap();
        filter.insert(9_000).unwrap();
        assert!(filter.contains(9_000u64).unwrap() && filter.contains(0).unwrap(), "{kind}");
        let absent = ids(1_000_000, 20_000);
        let mut found = vec![true; absent.len()];
        filter.contains_keys(&absent, &mut found);
        assert_rate(kind, &found);
        if filter.kind() != Kind::Blocked {
            assert_eq!(filter.remove(9_000), Ok(true), "{kind}");
        }
    }
    let [_, _, bitmap] = &mut filters;
    assert_eq!(bitmap.contains("77"), Ok(true), "text that is an integer is one");
    assert!(
        bitmap.contains("cat").is_err()
            && matches!(bitmap.insert("cat"), Err(any::Refused::Key(_)))
    );
    assert!(bitmap.insert(-1).is_err(), "outside");
    let mut rows = AnyFilter::Joint(Joint::with_rate(10, 0.01, ["a"]).unwrap());
    assert!(rows.insert(7).is_err() && rows.contains(7).is_err());
}

#[test]
fn rows_may_hold_integers() {
    let mut joint = Joint::with_rate(1000, 0.001, ["user", "day"]).unwrap();
    let mut parallel = ParallelBloom::with_rate(1000, 0.001, ["user", "day"]).unwrap();
    for user in 0..500 {
        joint.insert(&[user, 3]).unwrap();
        parallel.insert(&[user, 3]).unwrap();
    }
    assert!(joint.contains(&[Some(499u64), Some(3)]).unwrap());
    assert!(!joint.contains(&[Some(499), Some(4)]).unwrap());
    assert!(parallel.contains(&[Some(7), None]).unwrap());
}

/// Returns true if a mistaken insert of 0, 1, 2 … is noticed.
#[cfg(debug_assertions)]
fn notices(insert: impl FnOnce(&[u64])) -> bool {
    let raw: Vec<u64> = (0..8).collect();
    catch_unwind(AssertUnwindSafe(|| insert(&raw))).is_err_and(|panic| {
        panic.downcast_ref::<String>().is_some_and(|message| message.contains("not hashed"))
    })
}

#[test]
#[cfg(debug_assertions)]
fn integers_in_the_place_of_hashes_are_noticed_by_every_kind() {
    macro_rules! check {
        ($empty:expr) => {{
            let (mut one, mut many) = ($empty.unwrap(), $empty.unwrap());
            let name = stringify!($empty);
            assert!(
                notices(|raw| raw.iter().for_each(|&hash| _ = one.insert_hash(hash))),
                "{name}"
            );
            assert!(notices(|raw| _ = many.insert_hashes(raw)), "{name} in a batch");
        }};
    }
    check!(Bloom::with_rate(100, 0.01));
    check!(BlockedBloom::with_rate(100, 0.01));
    check!(SplitBlock::with_rate(100, 0.01));
    check!(CountingBloom::with_rate(100, 0.01));
    check!(DLeft::with_rate(100, 0.01));
    check!(Cuckoo::with_rate(100, 0.01));
    check!(Scalable::with_rate(100, 0.01));
    check!(Windowed::for_keys(100, 0.01));
    let atomic = AtomicBloom::with_rate(100, 0.01).unwrap();
    assert!(notices(|raw| raw.iter().for_each(|&hash| _ = atomic.insert_hash(hash))));
    let mut joint = Joint::with_rate(100, 0.01, ["a"]).unwrap();
    assert!(notices(|raw| raw.iter().for_each(|&hash| _ = joint.insert_hashed(&[hash]))));
}

/// Two million uniform hashes, in random order and sorted: a false alarm once in 2^227 runs.
#[test]
fn uniform_hashes_are_never_taken_for_integers() {
    let mut hashes: Vec<u64> = (0..1_000_000).map(mix64).collect();
    let mut filter = BlockedBloom::with_rate(1_000_000, 0.01).unwrap();
    filter.insert_hashes(&hashes);
    hashes.sort_unstable();
    filter.insert_hashes(&hashes);
    let fuse = BinaryFuse::from_hashes(
        &(0..1000).collect::<Vec<u64>>(),
        FuseParams::for_rate(0.01).unwrap(),
        HashFn::External { id: 0 },
    );
    assert!(fuse.is_ok(), "a fuse filter mixes what it gets");
}

#[test]
fn a_filter_of_integers_is_never_asked_for_something_else() {
    let integers = HashFn::Typed { keys: KeyType::Integer, seed: 7 };
    let params = CuckooParams::for_rate(1000, 1e-4).unwrap();
    let mut ids = Cuckoo::new(params, integers).unwrap();
    ids.insert_keys(&[1, 2, 3]).unwrap();

    let mut found = AnyFilter::from_bytes(&ids.to_bytes()).unwrap();
    assert_eq!(found.hash_fn(), integers);
    assert!(found.contains(3).unwrap() && found.contains("3").unwrap());
    assert!(!found.contains(4).unwrap() && !found.contains("4").unwrap());
    let refused = any::KeyError::NotAnInteger { key: "alice".to_owned() };
    assert_eq!(found.contains("alice"), Err(refused.clone()));
    assert_eq!(found.insert("alice"), Err(any::Refused::Key(refused)));
    let hashed = any::KeyError::Type { wanted: KeyType::Integer, found: KeyType::Hashed };
    assert_eq!(found.remove(Hashed(3)), Err(any::Refused::Key(hashed)));
    assert_eq!(found.len(), 3);
    assert!(catch_unwind(AssertUnwindSafe(|| ids.contains("3"))).is_err(), "not an answer");

    // The same hashes, but for keys of any type.
    let other = Cuckoo::new(params, HashFn::Xxh3 { seed: 7 }).unwrap();
    assert!(ids.union_with(&other).is_err());
}
