//! What is unknown counts as present; when doubts cannot be read, everything is in doubt.

use std::fs;

use ironbloom_store::{Backend, Before, Error, Guard, GuardKind, HashFn, Options};
use ironbloom_testing::Scratch;

use crate::common::vault::Vault;
use crate::common::{EXACT, assert_covers, key};

/// What happens between a put that is late and the next guard.
const BETWEEN: [&str; 6] =
    ["closed", "no checkpoint", "dropped", "damaged", "deleted", "other seed"];

#[test]
fn a_put_that_lands_late_is_answered_however_the_next_guard_is_opened() {
    for kind in EXACT {
        for claims in [true, false] {
            for between in BETWEEN {
                // A store that cannot refuse late writes promises that there are none after its handle is gone, unless
                // a checkpoint says otherwise.
                let is_known = !matches!(between, "no checkpoint" | "dropped" | "deleted");
                if claims || is_known {
                    land_late(kind, claims, between);
                }
            }
        }
    }
}

fn land_late(kind: GuardKind, claims: bool, between: &str) {
    let context = format!("{kind}, claims: {claims}, {between}");
    let scratch = Scratch::new("late");
    let file = scratch.file("g.ibg");
    let vault = Vault::new(claims);
    let options = || {
        let options = Options::new(kind, 1000, 0.01).only_writer();
        if between == "no checkpoint" { options } else { options.checkpoint(&file) }
    };
    let guard = Guard::open(vault.again(), options()).unwrap();
    (0..100).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    if between != "no checkpoint" {
        guard.checkpoint().unwrap();
    }
    vault.be_late();
    assert!(guard.put("late", b"").is_err());
    assert_eq!(guard.stats().doubtful, 1);
    match between {
        "no checkpoint" | "dropped" => drop(guard),
        _ => guard.close().unwrap(),
    }
    match between {
        "damaged" => {
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
        "deleted" => fs::remove_file(&file).unwrap(),
        _ => {}
    }
    let options = match between {
        "other seed" => options().hash_fn(HashFn::Xxh3 { seed: 77 }),
        _ => options(),
    };
    let guard = Guard::open(vault.again(), options).unwrap();
    let _ = guard.settle();
    if let Err(error) = guard.rebuild() {
        assert!(matches!(error, Error::InDoubt), "{context}: {error}");
    }
    vault.land();
    assert_covers(&guard, &context);
    guard.put("another", b"").unwrap();
    let _ = guard.rebuild();
    assert_covers(&guard, &context);
}

#[test]
fn a_put_that_was_never_sent_leaves_no_doubt() {
    // Every write is refused until the guard has claimed the store again, so each put is tried twice.
    for kind in EXACT {
        let vault = Vault::new(true);
        let open = || Guard::open(vault.again(), Options::new(kind, 1000, 0.01).only_writer());
        let (first, second) = (open().unwrap(), open().unwrap());
        (0..50).for_each(|i| {
            first.put(key(i), b"").unwrap();
            second.put(key(100 + i), b"").unwrap();
        });
        assert_eq!((first.stats().doubtful, second.stats().doubtful), (0, 0), "{kind}");
    }
}

#[test]
fn a_store_that_repeats_requests_says_that_it_does_not_know_and_loses_no_key() {
    for kind in [GuardKind::Cuckoo, GuardKind::DLeft, GuardKind::Blocked] {
        let vault = Vault::new(true);
        let options = Options::new(kind, 2000, 0.1).only_writer();
        let guard = Guard::open(vault.again(), options).unwrap();
        vault.repeat();
        for i in 0..1000 {
            assert_eq!(guard.put(key(i), b"").unwrap(), Before::Unknown);
        }
        assert_eq!(guard.stats().foreign, 0, "{kind}: nobody else has written");
        // Keys that shared a fingerprint with one of these go.
        (0..500).for_each(|i| {
            let _ = guard.remove(key(i)).unwrap();
        });
        assert_covers(&guard, kind.name());
        assert_eq!(vault.contents().keys.len(), 500);
        assert_eq!(vault.again().get(&key(0)).unwrap(), None);
    }
}
