//! Promise: a stored key is never answered "absent". The ways in which a guard once did so, each a test.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::lab::{Fault, Lab};
use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{Backend, Before, Guard, GuardKind, Memory, Opened, Options, Rebuild};
use ironbloom_testing::Scratch;

/// Kinds that take a removed key out of the filter.
const COUNTING: [GuardKind; 2] = [GuardKind::Cuckoo, GuardKind::DLeft];

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    Options::new(kind, 1000, 0.01).checkpoint(scratch.file("g.ibg"))
}

/// Puts key `i` and says whether the store panicked.
fn put_panics(guard: &Guard<Lab>, i: u64) -> bool {
    catch_unwind(AssertUnwindSafe(|| guard.put(key(i), b""))).is_err()
}

#[test]
fn a_store_restored_to_the_middle_of_a_generation_is_not_believed() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("restored-{kind}"));
        let store = Lab::default();
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        (0..200).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        let copy = store.contents();
        (0..100).for_each(|i| assert!(guard.remove(key(i)).unwrap().was_present()));
        guard.rebuild().unwrap();
        guard.close().unwrap();
        let guard = Guard::open(Lab::of(copy), options(&scratch, kind)).unwrap();
        assert_covers(&guard, kind.name());
        assert!(
            matches!(guard.opened(), Opened::WithoutCheckpoint(_)),
            "{kind}: {:?}",
            guard.opened()
        );
    }
}

#[cfg(feature = "redb")]
#[test]
fn a_file_of_redb_restored_from_a_live_copy_is_not_believed() {
    use ironbloom_store::Redb;
    let scratch = Scratch::new("live-copy");
    let file = scratch.file("s.redb");
    let open =
        || Guard::open(Redb::create(&file).unwrap(), options(&scratch, GuardKind::Cuckoo)).unwrap();
    let guard = open();
    (0..200).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
    let copy = std::fs::read(&file).unwrap();
    (0..100).for_each(|i| assert!(guard.remove(key(i)).unwrap().was_present()));
    guard.close().unwrap();
    std::fs::write(&file, copy).unwrap();
    let guard = open();
    assert_covers(&guard, "restored");
    assert!((0..200).all(|i| guard.contains(key(i)).unwrap()));
}

#[test]
fn a_copy_taken_between_a_checkpoint_and_the_end_of_its_files_is_covered() {
    // The checkpoint names its state before the files are written; a removal that follows at once must not reach them.
    for kind in EXACT {
        let scratch = Scratch::new(&format!("named-{kind}"));
        let store = Lab::default();
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        (0..200).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        // A removal that began before the checkpoint, and ends after it.
        let stalled = store.stall_write();
        std::thread::scope(|scope| {
            let removing = scope.spawn(|| guard.remove(key(7)).unwrap().was_present());
            stalled.wait();
            let saving = scope.spawn(|| guard.checkpoint().unwrap());
            // Ends by itself if it does not wait for the removal, which cannot end before it is released.
            let mut waited = 0;
            while !saving.is_finished() && waited < 2000 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                waited += 1;
            }
            let alone = saving.is_finished();
            let copy = store.contents();
            stalled.release();
            assert!(removing.join().unwrap());
            saving.join().unwrap();
            assert!(alone, "{kind}: a checkpoint waits for a slow write");
            let again = Guard::open(Lab::of(copy), options(&scratch, kind)).unwrap();
            assert_eq!(*again.opened(), Opened::FromCheckpoint);
            assert_covers(&again, kind.name());
        });
        drop(guard);
        let again = Guard::open(store, options(&scratch, kind)).unwrap();
        assert_covers(&again, kind.name());
    }
}

#[test]
fn a_put_that_lands_after_a_rebuild_is_answered() {
    for kind in EXACT {
        let store = Lab::default();
        let guard = Guard::open(store.clone(), Options::new(kind, 1000, 0.01)).unwrap();
        (0..100).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        for i in 100..120 {
            store.fail_write(Fault::Late);
            assert!(guard.put(key(i), b"").is_err());
        }
        guard.rebuild().unwrap();
        guard.rebuild().unwrap();
        store.land();
        assert_eq!(guard.backend().contents().keys.len(), 120);
        assert_covers(&guard, kind.name());
        // They are removed and put like others.
        for i in 100..120 {
            assert!(
                guard.remove(key(i)).unwrap().was_present()
                    && guard.put(key(i), b"").unwrap().was_absent()
            );
        }
        assert_covers(&guard, kind.name());
    }
}

#[test]
fn a_put_that_lands_after_a_checkpoint_and_a_rebuild_of_the_next_guard_is_answered() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("late-{kind}"));
        let store = Lab::default();
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        (0..100).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        store.fail_write(Fault::Late);
        assert!(guard.put(key(100), b"").is_err());
        guard.close().unwrap();
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        guard.rebuild().unwrap();
        guard.close().unwrap();
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        guard.rebuild().unwrap();
        store.land();
        assert_covers(&guard, kind.name());
    }
}

#[test]
fn a_removal_that_fails_and_lands_late_takes_no_other_key_with_it() {
    for kind in EXACT {
        let store = Lab::default();
        let guard = Guard::open(store.clone(), Options::new(kind, 1000, 0.3)).unwrap();
        (0..800).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        for i in 0..400 {
            store.fail_write(Fault::Late);
            assert!(guard.remove(key(i)).is_err());
        }
        store.land();
        for i in 0..400 {
            guard.put(key(i), b"").unwrap();
            guard.remove(key(i)).unwrap();
        }
        assert_covers(&guard, kind.name());
    }
}

#[test]
fn a_put_that_panics_after_it_has_written_during_a_rebuild_is_answered() {
    for kind in EXACT {
        let store = Lab::default();
        let guard = Guard::open(store.clone(), Options::new(kind, 1000, 0.01)).unwrap();
        (0..100).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        let stalled = store.stall_scan();
        std::thread::scope(|scope| {
            let rebuilding = scope.spawn(|| guard.rebuild().unwrap());
            stalled.wait();
            store.fail_write(Fault::PanicAfter);
            assert!(put_panics(&guard, 100));
            stalled.release();
            rebuilding.join().unwrap();
        });
        assert_covers(&guard, kind.name());
        assert!(guard.contains(key(100)).unwrap());
    }
}

#[test]
fn a_put_that_is_under_way_when_the_filter_is_exchanged_is_answered() {
    for kind in EXACT {
        for stored_before in [false, true] {
            let store = Lab::default();
            let guard = Guard::open(store.clone(), Options::new(kind, 1000, 0.01)).unwrap();
            (0..100).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
            let slow = if stored_before { 50 } else { 100 };
            let stalled = store.stall_write();
            std::thread::scope(|scope| {
                let putting = scope.spawn(|| guard.put(key(slow), b"").unwrap().was_absent());
                stalled.wait();
                let rebuilding = scope.spawn(|| guard.rebuild().unwrap());
                let mut waited = 0;
                while !rebuilding.is_finished() && waited < 2000 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    waited += 1;
                }
                let alone = rebuilding.is_finished();
                stalled.release();
                assert_eq!(putting.join().unwrap(), !stored_before);
                rebuilding.join().unwrap();
                assert!(alone, "{kind}: a rebuild waits for a slow write");
            });
            assert_covers(&guard, kind.name());
            for i in 0..=100 {
                guard.remove(key(i)).unwrap();
            }
            (200..300).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
            assert_covers(&guard, kind.name());
        }
    }
}

/// The new filter has never seen the key: what it would take out is the fingerprint of another.
#[test]
fn a_removal_that_ends_after_the_filter_was_exchanged_takes_nothing_from_the_new_one() {
    for kind in COUNTING {
        let store = Lab::default();
        let guard = Guard::open(store.clone(), Options::new(kind, 3000, 0.3)).unwrap();
        (0..2500).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        for i in 0..40 {
            let stalled = store.stall_answer();
            std::thread::scope(|scope| {
                let removing = scope.spawn(|| guard.remove(key(i)).unwrap().was_present());
                stalled.wait();
                guard.rebuild().unwrap();
                stalled.release();
                assert!(removing.join().unwrap());
            });
            assert_covers(&guard, kind.name());
        }
    }
}

#[test]
fn a_row_that_came_without_the_guard_is_noticed_when_it_is_put() {
    for kind in EXACT {
        let store = Memory::new();
        let guard = Guard::open(store.clone(), Options::new(kind, 10_000, 1e-4)).unwrap();
        (0..900).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        (2000..2100).for_each(|i| assert!(store.put(&key(i), b"foreign").unwrap().was_absent()));
        assert!(!guard.put(key(2000), b"own").unwrap().was_absent(), "the store has it");
        assert_eq!(guard.get(key(2000)).unwrap().as_deref(), Some(&b"own"[..]), "{kind}");
        assert_covers(&guard, "noticed");
        guard.settle().unwrap();
        assert_covers(&guard, "built from a scan");
        assert_eq!((guard.stats().rebuilds, guard.stats().foreign), (1, 1), "{kind}");
    }
}

#[test]
fn removing_rows_that_came_without_the_guard_takes_no_own_key_with_it() {
    for kind in COUNTING {
        let store = Memory::new();
        let options = Options::new(kind, 1000, 0.02).rebuild(Rebuild::Manual);
        let guard = Guard::open(store.clone(), options).unwrap();
        (0..900).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
        (10_000..40_000)
            .for_each(|i| assert!(store.put(&key(i), b"foreign").unwrap().was_absent()));
        let removed =
            (10_000..40_000).filter(|&i| guard.remove(key(i)).unwrap().was_present()).count();
        assert!(removed > 100, "{removed} looked as if they were the guard's");
        let absent = (0..900).filter(|&i| guard.get(key(i)).unwrap().is_none()).count();
        assert_eq!(absent, 0, "{kind}: of 900 own keys");
    }
}

#[test]
fn what_a_window_promises_is_counted_from_the_acknowledgement() {
    const WINDOW: u64 = 1000;
    let store = Lab::default();
    let guard =
        Guard::open(store.clone(), Options::new(GuardKind::Windowed, WINDOW, 0.01)).unwrap();
    guard.put(b"first", b"").unwrap(); // gives the store a generation
    let stalled = store.stall_write();
    std::thread::scope(|scope| {
        let putting = scope.spawn(|| guard.put(b"slow", b"").unwrap().was_absent());
        stalled.wait();
        // A thread each: a key that shares its lock with the slow one waits for it, and holds up nobody else.
        for i in 0..3 * WINDOW {
            let guard = &guard;
            scope.spawn(move || assert!(guard.put(key(i), b"").unwrap().was_absent()));
        }
        let mut tries = 0;
        while guard.backend().contents().keys.len() < 2 * WINDOW as usize && tries < 20_000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            tries += 1;
        }
        let overtaken = guard.backend().contents().keys.len();
        stalled.release();
        assert!(putting.join().unwrap());
        assert!(overtaken >= 2 * WINDOW as usize, "only {overtaken} have overtaken it");
        assert!(guard.contains(b"slow").unwrap(), "forgotten before it was acknowledged");
    });
}

#[test]
fn a_checkpoint_that_is_overwritten_or_cut_while_its_guard_is_open_changes_no_answer() {
    // Large enough to be mapped, or read in the background.
    let scratch = Scratch::new("overwritten");
    let store = Memory::new();
    let options = || {
        Options::new(GuardKind::Blocked, 5_000_000, 0.01)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer()
    };
    let guard = Guard::open(store.clone(), options()).unwrap();
    let pairs: Vec<_> = (0..10_000).map(|i| (key(i), b"")).collect();
    guard.put_many(&pairs).unwrap();
    guard.close().unwrap();
    let guard = Guard::open(store.clone(), options()).unwrap();
    guard.settle().unwrap();
    assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    for name in scratch.names() {
        let path = scratch.file(&name);
        let size = std::fs::metadata(&path).unwrap().len() as usize;
        // In place: the same file, other bytes.
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, &vec![0; size]).unwrap();
    }
    assert_covers(&guard, "overwritten");
    for name in scratch.names() {
        std::fs::OpenOptions::new()
            .write(true)
            .open(scratch.file(&name))
            .unwrap()
            .set_len(0)
            .unwrap();
    }
    assert_covers(&guard, "cut");
    guard.put(b"later", b"").unwrap();
    guard.close().unwrap();
    let guard = Guard::open(store, options()).unwrap();
    guard.settle().unwrap();
    assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    assert_covers(&guard, "opened again");
}

#[cfg(feature = "redb")]
#[test]
fn a_file_of_redb_that_is_written_without_a_guard_is_not_believed() {
    use ironbloom_store::Redb;
    let scratch = Scratch::new("unguarded");
    let file = scratch.file("s.redb");
    let open = || Redb::create(&file).unwrap();
    let guard = Guard::open(open(), options(&scratch, GuardKind::Blocked)).unwrap();
    (0..200).for_each(|i| assert!(guard.put(key(i), b"").unwrap().was_absent()));
    guard.close().unwrap();
    let store = open();
    assert!(store.put(b"single", b"").unwrap().was_absent());
    drop(store);
    let guard = Guard::open(open(), options(&scratch, GuardKind::Blocked)).unwrap();
    assert_covers(&guard, "after a put without a guard");
    guard.close().unwrap();
    let store = open();
    assert_eq!(store.put_many(&[(b"many", b"")]).unwrap(), [Before::Absent]);
    drop(store);
    let guard = Guard::open(open(), options(&scratch, GuardKind::Blocked)).unwrap();
    assert_covers(&guard, "after many");
    // And through the guard's own store, behind its back, after its last checkpoint.
    guard.checkpoint().unwrap();
    assert!(guard.backend().put(b"behind", b"").unwrap().was_absent());
    drop(guard);
    let guard = Guard::open(open(), options(&scratch, GuardKind::Blocked)).unwrap();
    assert_covers(&guard, "after a put behind the guard's back");
}
