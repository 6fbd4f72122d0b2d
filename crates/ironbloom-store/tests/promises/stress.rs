//! Promise: readers, writers, rebuilds and checkpoints at once, and every answer is right.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{Backend, Guard, GuardKind, Memory, Options, Rebuild};
use ironbloom_testing::{Random, Scratch};

/// Keys that are there from the beginning and never removed.
const STEADY: u64 = 2000;
/// Keys of each writer, which nobody else writes.
const OWN: u64 = 300;
/// Keys that all writers put and remove.
const SHARED: u64 = 20;
const WRITERS: u64 = 3;
const STEPS: u64 = 6000;
/// Steps at most, if rebuilds and checkpoints are slow.
const MAX_STEPS: u64 = 1_000_000;
/// Rebuilds, and checkpoints, that writers must have seen.
const ROUNDS: u64 = 4;

/// How often the filter was rebuilt and saved while others wrote.
#[derive(Default)]
struct Maintained {
    rebuilds: AtomicU64,
    checkpoints: AtomicU64,
}

impl Maintained {
    fn is_enough(&self) -> bool {
        [&self.rebuilds, &self.checkpoints].iter().all(|n| n.load(Ordering::Relaxed) >= ROUNDS)
    }
}

/// Without a pause one of rebuild and checkpoint would hardly ever let the other begin.
const PAUSE: Duration = Duration::from_micros(200);

const SHARED_FROM: u64 = 1_000_000;

fn own(writer: u64, i: u64) -> Vec<u8> {
    key((writer + 1) * 100_000 + i)
}

fn write(guard: &Guard<Memory>, writer: u64, maintained: &Maintained) {
    let mut random = Random(writer);
    let mut model: HashMap<u64, u64> = HashMap::new();
    for step in 0..MAX_STEPS {
        if step >= STEPS && maintained.is_enough() {
            break;
        }
        let i = random.below(OWN);
        match random.below(8) {
            0..3 => {
                let new = guard.put(own(writer, i), step.to_le_bytes()).unwrap().was_absent();
                assert_eq!(new, model.insert(i, step).is_none());
            }
            3..5 => {
                let removed = guard.remove(own(writer, i)).unwrap().was_present();
                assert_eq!(removed, model.remove(&i).is_some());
            }
            5 => {
                guard.put(key(SHARED_FROM + random.below(SHARED)), b"").unwrap();
                guard.remove(key(SHARED_FROM + random.below(SHARED))).unwrap();
            }
            6 => {
                let pairs: Vec<_> =
                    (i..i + 5).map(|i| (own(writer, i), step.to_le_bytes())).collect();
                guard.put_many(&pairs).unwrap();
                (i..i + 5).for_each(|i| {
                    model.insert(i, step);
                });
            }
            _ => {
                // Somebody else's key: whatever the answer is, it must not be disturbed.
                guard.remove(key(random.below(STEADY) + 50_000_000)).unwrap();
            }
        }
        let expected = model.get(&i).map(|step| step.to_le_bytes().to_vec());
        assert_eq!(guard.get(own(writer, i)).unwrap(), expected, "writer {writer}, step {step}");
    }
    for (i, step) in model {
        let value = guard.get(own(writer, i)).unwrap();
        assert_eq!(value, Some(step.to_le_bytes().to_vec()), "writer {writer}, key {i}");
    }
}

fn read(guard: &Guard<Memory>, reader: u64, done: &AtomicBool) {
    let mut random = Random(1000 + reader);
    while !done.load(Ordering::Relaxed) {
        let i = random.below(STEADY);
        assert!(guard.get(key(i)).unwrap().is_some(), "steady key {i}");
        let keys: Vec<_> = (0..20).map(|_| key(random.below(2 * STEADY))).collect();
        for (key, value) in keys.iter().zip(guard.get_many(&keys).unwrap()) {
            let stored = guard.backend().get(key).unwrap();
            assert_eq!(value, stored, "steady or never there: {}", String::from_utf8_lossy(key));
        }
    }
}

fn storm(kind: GuardKind, capacity: u64) {
    let scratch = Scratch::new(&format!("stress-{kind}-{capacity}"));
    let store = Memory::new();
    for i in 0..STEADY {
        store.put(&key(i), b"steady").unwrap();
    }
    let options = Options::new(kind, capacity, 0.05)
        .checkpoint(scratch.file("g.ibg"))
        .only_writer()
        .rebuild(Rebuild::Background)
        .max_dead(0.1);
    let guard = Guard::open(store.clone(), options.clone()).unwrap();
    let done = &AtomicBool::new(false);
    let maintained = &Maintained::default();
    std::thread::scope(|scope| {
        let guard = &guard;
        for reader in 0..2 {
            scope.spawn(move || read(guard, reader, done));
        }
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                guard.rebuild().unwrap();
                maintained.rebuilds.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                guard.checkpoint().unwrap();
                maintained.checkpoints.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(guard, writer, maintained)))
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed); // also if one has failed, or the others would wait for ever
        assert!(ended.iter().all(Result::is_ok), "a writer has failed");
    });
    guard.settle().unwrap();
    assert_covers(&guard, "after the storm");
    assert!(maintained.is_enough() && guard.stats().rebuilds >= ROUNDS);
    assert!(guard.stats().skipped() > 0);
    guard.close().unwrap();
    let guard = Guard::open(store, options).unwrap();
    assert_eq!(*guard.opened(), ironbloom_store::Opened::FromCheckpoint);
    assert_covers(&guard, "opened again");
}

#[test]
fn readers_writers_rebuilds_and_checkpoints_at_once() {
    for kind in EXACT {
        storm(kind, 10_000);
    }
}

#[test]
fn the_same_in_a_filter_that_is_too_small() {
    for kind in EXACT {
        storm(kind, 100);
    }
}
