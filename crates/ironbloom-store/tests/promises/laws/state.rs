//! A proof is only worth what it proves now.

use futures_lite::future::block_on;
use ironbloom_store::{
    AsyncGuard, Backend, Before, Guard, GuardKind, Memory, Opened, Options, Stats,
};
use ironbloom_testing::Scratch;

use crate::common::tasks::Tasks;
use crate::common::vault::Vault;
use crate::common::{EXACT, assert_covers, key};

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    Options::new(kind, 1000, 0.01).only_writer().checkpoint(scratch.file("g.ibg"))
}

#[test]
fn a_store_that_goes_back_under_a_live_guard_is_noticed_by_the_next_write() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("revert-{kind}"));
        let vault = Vault::new(true);
        let guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
        (0..200).for_each(|i| assert_eq!(guard.put(key(i), b"").unwrap(), Before::Absent));
        guard.checkpoint().unwrap();
        let backup = vault.contents();
        guard.put("bob", b"").unwrap();
        (0..100).for_each(|i| assert_eq!(guard.remove(key(i)).unwrap(), Before::Present));
        vault.revert(backup);
        guard.put("carol", b"").unwrap();
        // Once by the put, and once more if a rebuild in the background is faster than the put's own look.
        assert!((1..=2).contains(&guard.stats().foreign), "{kind}");
        assert_covers(&guard, &format!("{kind}, while it is open"));
        drop(guard);
        let guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
        assert_ne!(*guard.opened(), Opened::FromCheckpoint, "{kind}");
        assert_covers(&guard, &format!("{kind}, opened again"));
        assert!(guard.get("carol").unwrap().is_some());
    }
}

#[test]
fn a_store_that_goes_back_is_noticed_by_a_write_whose_answer_is_lost() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("revert-unanswered-{kind}"));
        let vault = Vault::new(true);
        let guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
        (0..200).for_each(|i| assert_eq!(guard.put(key(i), b"").unwrap(), Before::Absent));
        let backup = vault.contents(); // of the same generation
        (0..100).for_each(|i| assert_eq!(guard.remove(key(i)).unwrap(), Before::Present));
        vault.revert(backup);
        vault.reconnect();
        assert!(guard.remove(key(150)).is_err(), "{kind}");
        assert_covers(&guard, &kind.to_string());
    }
}

#[test]
fn a_store_that_goes_back_is_noticed_by_a_checkpoint_and_by_the_first_write_after_one() {
    for kind in EXACT {
        for first in ["checkpoint", "put", "put, opened again"] {
            let context = format!("{kind}, {first}");
            let scratch = Scratch::new(&format!("revert-sealed-{kind}"));
            let vault = Vault::new(true);
            let mut guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
            (0..200).for_each(|i| assert_eq!(guard.put(key(i), b"").unwrap(), Before::Absent));
            let backup = vault.contents();
            (0..100).for_each(|i| assert_eq!(guard.remove(key(i)).unwrap(), Before::Present));
            guard.rebuild().unwrap(); // no kind knows the keys any more
            guard.checkpoint().unwrap();
            if first == "put, opened again" {
                drop(guard);
                guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
                assert_eq!(*guard.opened(), Opened::FromCheckpoint, "{context}");
            }
            vault.revert(backup);
            match first {
                "checkpoint" => guard.checkpoint().unwrap(),
                _ => assert_eq!(guard.put("carol", b"").unwrap(), Before::Absent),
            }
            assert_covers(&guard, &context);
            drop(guard);
            let guard = Guard::open(vault.again(), options(&scratch, kind)).unwrap();
            assert_covers(&guard, &format!("{context}, in the end"));
        }
    }
}

#[test]
fn an_awaited_store_that_goes_back_is_noticed_as_well() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("revert-async-{kind}"));
        let vault = Vault::new(true);
        block_on(async {
            let open = || AsyncGuard::open(Tasks(vault.again()), options(&scratch, kind));
            let guard = open().await.unwrap();
            for i in 0..100 {
                guard.put(key(i), b"").await.unwrap();
            }
            guard.checkpoint().await.unwrap();
            let backup = vault.contents();
            guard.put_many(&[("bob", "")]).await.unwrap();
            guard.remove(key(1)).await.unwrap();
            vault.revert(backup);
            guard.remove(key(2)).await.unwrap();
            guard.put("carol", b"").await.unwrap();
            assert!(guard.contains(key(1)).await.unwrap(), "{kind}");
            drop(guard);
            let guard = open().await.unwrap();
            assert!(
                guard.contains("carol").await.unwrap() && guard.contains(key(1)).await.unwrap()
            );
        });
    }
}

#[test]
fn two_guards_that_claim_one_store_are_slow_and_not_wrong() {
    let vault = Vault::new(true);
    let open =
        || Guard::open(vault.again(), Options::new(GuardKind::Cuckoo, 1000, 0.01).only_writer());
    let (first, second) = (open().unwrap(), open().unwrap());
    for i in 0..100 {
        let guard = if i % 3 == 0 { &first } else { &second };
        assert_eq!(guard.put(key(i), b"").unwrap(), Before::Absent);
        assert!(guard.get(key(i)).unwrap().is_some());
    }
    first.put("last", b"").unwrap();
    assert_covers(&first, "the one that wrote last");
}

#[test]
fn statistics_and_doubts_of_another_store_are_not_taken_over() {
    let scratch = Scratch::new("other-guard");
    let options = || options(&scratch, GuardKind::Blocked);
    let guard = Guard::open(Memory::new(), options()).unwrap();
    guard.put("alice", b"").unwrap();
    (0..50).for_each(|i| {
        let _ = guard.get(key(i)).unwrap();
    });
    guard.close().unwrap();
    assert!(Stats::read(scratch.file("g.ibg")).unwrap().lookups() >= 50);
    for other in [Memory::new(), written()] {
        let guard = Guard::open(other, options()).unwrap();
        assert_eq!(guard.stats().lookups(), 0, "{:?}", guard.opened());
    }
}

/// A store that had a guard.
fn written() -> Memory {
    let store = Memory::new();
    let guard = Guard::open(store.clone(), Options::new(GuardKind::Blocked, 10, 0.01)).unwrap();
    guard.put("alice", b"").unwrap();
    store
}

#[test]
fn checkpoints_whose_names_differ_only_in_their_end_leave_each_others_files_alone() {
    let scratch = Scratch::new("names");
    let stores = [Memory::new(), Memory::new()];
    let open = |i: usize| {
        let name = ["S.ibg", "S"][i];
        let options = Options::new(GuardKind::Blocked, 1000, 0.01).only_writer();
        Guard::open(stores[i].clone(), options.checkpoint(scratch.file(name))).unwrap()
    };
    for round in 0..3u64 {
        for i in [0, 1] {
            let guard = open(i);
            let expected = round == 0 || *guard.opened() == Opened::FromCheckpoint;
            assert!(expected, "round {round}, store {i}: {:?}", guard.opened());
            guard.put(key(round), b"").unwrap();
            guard.close().unwrap();
        }
    }
}

#[test]
fn every_guard_has_a_secret_of_its_own_that_its_checkpoint_keeps() {
    let scratch = Scratch::new("secret");
    let store = Memory::new();
    let open = || Guard::open(store.clone(), options(&scratch, GuardKind::Blocked)).unwrap();
    let guard = open();
    (0..500).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    guard.close().unwrap();
    let guard = open();
    assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    assert_covers(&guard, "the same secret");
    let hashes = |file: &str| -> Vec<u8> {
        let store = Memory::new();
        let options = Options::new(GuardKind::Blocked, 10, 0.01).publish(scratch.file(file));
        let guard = Guard::open(store, options).unwrap();
        guard.put("alice", b"").unwrap();
        guard.publish().unwrap();
        std::fs::read(scratch.file(file)).unwrap()
    };
    assert_ne!(hashes("a.ibf"), hashes("b.ibf"), "the same key, hashed under two secrets");
}

#[test]
fn an_asynchronous_guard_builds_its_filter_by_itself() {
    let store = Memory::new();
    (0..1000).for_each(|i| {
        let _ = store.put(&key(i), b"").unwrap();
    });
    block_on(async {
        let options = Options::new(GuardKind::Blocked, 2000, 0.01);
        let guard = AsyncGuard::open(Tasks(store), options).await.unwrap();
        guard.settle().await.unwrap();
        assert!(!guard.wants_rebuild());
        for i in 5000..5100 {
            assert!(!guard.contains(key(i)).await.unwrap());
        }
        assert!(guard.stats().skipped() > 80);
    });
}

#[test]
fn a_guard_that_is_told_to_distrust_its_filter_builds_another() {
    let store = Memory::new();
    let guard = Guard::open(store.clone(), Options::new(GuardKind::Blocked, 1000, 0.01)).unwrap();
    guard.put("ours", b"").unwrap();
    store.put(b"theirs", b"").unwrap();
    guard.distrust().unwrap();
    guard.settle().unwrap();
    assert!(guard.get("theirs").unwrap().is_some() && guard.get("ours").unwrap().is_some());
}
