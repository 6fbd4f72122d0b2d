//! Promise: a guard whose store has failed heals by itself when the store does.

use std::time::Duration;

use crate::common::lab::{Fault, Lab};
use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{Backend, Error, Guard, GuardKind, Opened, Options};
use ironbloom_testing::Scratch;

fn filled() -> Lab {
    let store = Lab::default();
    (0..100).for_each(|i| assert!(store.put(&key(i), b"").unwrap().was_absent()));
    store
}

/// Asks until it is so; half a minute at most, on whatever machine.
fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    (0..30_000).any(|_| {
        let so = is_so();
        if !so {
            std::thread::sleep(Duration::from_millis(1));
        }
        so
    })
}

#[test]
fn scans_that_fail_or_panic_at_first_are_tried_again_without_a_write() {
    for kind in EXACT {
        let store = filled();
        for _ in 0..3 {
            store.fail_scan(Fault::ErrBefore);
            store.fail_scan(Fault::PanicBefore);
        }
        let options = Options::new(kind, 1000, 1e-3).retry_after(Duration::from_micros(10));
        let guard = Guard::open(store, options).unwrap();
        let healed = eventually(|| {
            assert!(guard.contains(key(7)).unwrap());
            guard.stats().rebuilds == 1
        });
        let stats = guard.stats();
        assert!(healed && stats.failed_rebuilds == 6, "{kind}: {stats:?}");
        assert_covers(&guard, kind.name());
        let skipped = stats.skipped();
        (1000..1100).for_each(|i| assert!(!guard.contains(key(i)).unwrap()));
        assert!(guard.stats().skipped() > skipped + 90, "{kind}: the filter answers");
        guard.settle().unwrap();
    }
}

#[test]
fn a_failure_is_told_while_the_guard_pauses_and_a_rebuild_by_hand_ends_it() {
    let store = filled();
    store.fail_scan(Fault::PanicAfter);
    let options =
        Options::new(GuardKind::Cuckoo, 1000, 0.01).retry_after(Duration::from_secs(100_000));
    let guard = Guard::open(store, options).unwrap();
    let told = guard.settle();
    assert!(
        matches!(&told, Err(Error::Panicked(words)) if words.contains("in a scan")),
        "{told:?}"
    );
    guard.rebuild().unwrap();
    assert_eq!((guard.stats().rebuilds, guard.stats().failed_rebuilds), (1, 1));
    assert_covers(&guard, "by hand");
    drop(guard); // does not wait for the pause to end
}

#[test]
fn a_guard_that_has_failed_before_is_closed_with_a_checkpoint() {
    for fault in [Fault::ErrAfter, Fault::PanicAfter] {
        let scratch = Scratch::new("closed");
        let store = filled();
        let options = || {
            Options::new(GuardKind::Cuckoo, 1000, 0.01)
                .checkpoint(scratch.file("g.ibg"))
                .retry_after(Duration::from_secs(100_000))
        };
        store.fail_scan(fault);
        let guard = Guard::open(store.clone(), options()).unwrap();
        assert!(guard.settle().is_err());
        guard.close().unwrap();
        let guard = Guard::open(store, options()).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        assert_covers(&guard, "opened again");
    }
}

#[test]
fn a_guard_that_cannot_be_closed_well_says_why_and_does_not_panic() {
    let scratch = Scratch::new("closed-badly");
    let store = filled();
    (0..2).for_each(|_| store.fail_scan(Fault::PanicAfter));
    let options = Options::new(GuardKind::Blocked, 1000, 0.01)
        .checkpoint(scratch.file("g.ibg"))
        .retry_after(Duration::from_secs(100_000));
    let guard = Guard::open(store, options).unwrap();
    assert!(matches!(guard.settle(), Err(Error::Panicked(_))));
    assert!(matches!(guard.close(), Err(Error::Panicked(_))));
    assert_eq!(scratch.names(), Vec::<String>::new());
}

#[test]
fn a_slow_put_holds_up_neither_a_checkpoint_nor_its_other_writers() {
    for kind in GuardKind::ALL {
        let scratch = Scratch::new(&format!("slow-{kind}"));
        let store = Lab::default();
        let options = Options::new(kind, 1000, 0.01).checkpoint(scratch.file("g.ibg"));
        let guard = Guard::open(store.clone(), options.clone()).unwrap();
        guard.put(key(0), b"").unwrap();
        let stalled = store.stall_write();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| guard.put(key(1), b"").unwrap().was_absent());
            stalled.wait();
            let saving = scope.spawn(|| guard.checkpoint().unwrap());
            // Others write, but for those that share a lock with the slow one: each has a thread.
            for i in 2..40 {
                let guard = &guard;
                scope.spawn(move || guard.put(key(i), b"").unwrap().was_absent());
            }
            let went_on = eventually(|| saving.is_finished() && store.contents().keys.len() > 30);
            stalled.release();
            assert!(slow.join().unwrap());
            assert!(went_on, "{kind}: all wait for one slow put");
        });
        assert_covers(&guard, kind.name());
        guard.close().unwrap();
        let guard = Guard::open(store, options).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        assert_covers(&guard, kind.name());
    }
}

#[test]
fn a_doubt_ends_with_a_scan_after_its_time_and_not_before() {
    for (time, left) in [(Duration::ZERO, 0), (Duration::from_secs(100_000), 1)] {
        for kind in EXACT {
            let store = filled();
            let options = Options::new(kind, 1000, 1e-3).lands_within(time);
            let guard = Guard::open(store.clone(), options).unwrap();
            guard.settle().unwrap();
            guard.put(key(0), b"").unwrap(); // gives the store a generation
            store.fail_write(Fault::ErrBefore);
            assert!(guard.put(b"failed", b"").is_err());
            assert_eq!(guard.stats().doubtful, 1);
            guard.rebuild().unwrap();
            assert_eq!(guard.stats().doubtful, left, "{kind}");
            let skipped = guard.stats().skipped();
            assert!(!guard.contains(b"failed").unwrap());
            assert_eq!(guard.stats().skipped() - skipped, 1 - left, "{kind}");
        }
    }
}
