//! Promise: put is filter first, then store; remove is store first, then filter; and nothing that fails on the way makes a
//! stored key "absent".

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{
    Backend, Before, Error, Generation, Guard, GuardKind, Memory, Opened, Options, Unusable,
};

/// A store that looks through its guard while it is written to, and fails when told to.
#[derive(Default)]
struct SpyState {
    keys: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    guard: OnceLock<Weak<Guard<Spy>>>,
    /// Fails before a write, or after it.
    fail_before: AtomicBool,
    fail_after: AtomicBool,
    fail_scan: AtomicBool,
    fail_generation: AtomicBool,
    /// A scan waits at its end while this is held.
    scan_gate: Mutex<()>,
}

#[derive(Clone, Default)]
struct Spy(Arc<SpyState>);

#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken")
    }
}

impl std::error::Error for Broken {}

impl Spy {
    fn set(flag: &AtomicBool, on: bool) {
        flag.store(on, Ordering::Relaxed);
    }

    fn check(flag: &AtomicBool) -> Result<(), Broken> {
        if flag.load(Ordering::Relaxed) { Err(Broken) } else { Ok(()) }
    }

    /// What a reader sees right now. The writer's stripe is held meanwhile: a lookup that took a lock would not return.
    fn seen(&self, key: &[u8]) -> bool {
        let guard = self.0.guard.get().and_then(Weak::upgrade);
        guard.is_none_or(|guard| guard.get(key).unwrap().is_some())
    }
}

impl Backend for Spy {
    type Error = Broken;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        Ok(self.0.keys.lock().unwrap().get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
        Self::check(&self.0.fail_before)?;
        let new = self.0.keys.lock().unwrap().insert(key.to_vec(), value.to_vec()).is_none();
        assert!(self.seen(key), "stored, and the filter does not know it");
        Self::check(&self.0.fail_after)?;
        Ok(Before::stored(!new))
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
        Self::check(&self.0.fail_before)?;
        let stored = self.0.keys.lock().unwrap().contains_key(key);
        assert!(!stored || self.seen(key), "still stored, and the filter has lost it");
        let stored = self.0.keys.lock().unwrap().remove(key).is_some();
        Self::check(&self.0.fail_after)?;
        Ok(Before::stored(stored))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Broken> {
        let keys: Vec<_> = self.0.keys.lock().unwrap().keys().cloned().collect();
        let _ = keys.iter().try_for_each(|key| visit(key));
        drop(self.0.scan_gate.lock().unwrap());
        Self::check(&self.0.fail_scan)
    }

    fn generation(&self) -> Result<Option<Generation>, Broken> {
        Ok(None)
    }

    fn set_generation(&self, _: Generation) -> Result<(), Broken> {
        Self::check(&self.0.fail_generation)
    }
}

fn watched(kind: GuardKind) -> Arc<Guard<Spy>> {
    let store = Spy::default();
    let guard = Guard::open(store.clone(), Options::new(kind, 1000, 0.01)).unwrap();
    guard.settle().unwrap();
    let guard = Arc::new(guard);
    store.0.guard.set(Arc::downgrade(&guard)).ok();
    guard
}

#[test]
fn who_looks_in_the_middle_of_a_write_sees_no_stored_key_absent() {
    for kind in GuardKind::ALL {
        let guard = watched(kind);
        for round in 0..3u8 {
            for i in 0..300 {
                guard.put(key(i), [round]).unwrap();
            }
            for i in (0..300).step_by(2) {
                assert!(guard.remove(key(i)).unwrap().was_present());
            }
        }
    }
}

#[test]
fn a_failed_write_leaves_no_stored_key_absent() {
    for kind in EXACT {
        let guard = watched(kind);
        let store = guard.backend().clone();
        for i in 0..200 {
            guard.put(key(i), b"").unwrap();
        }
        for (flag, stored) in [(&store.0.fail_before, false), (&store.0.fail_after, true)] {
            Spy::set(flag, true);
            for i in 200..210 {
                assert!(matches!(guard.put(key(i), b""), Err(Error::Store(Broken))));
                assert_eq!(guard.get(key(i)).unwrap().is_some(), stored);
            }
            assert!(guard.remove(key(0)).is_err() && guard.remove(key(205)).is_err());
            assert_covers(&guard, "after failures");
            Spy::set(flag, false);
        }
        for i in 0..210 {
            guard.put(key(i), b"").unwrap();
        }
        assert_covers(&guard, "after success");
    }
}

#[test]
fn without_a_new_generation_nothing_is_written() {
    let guard = watched(GuardKind::Blocked);
    let store = guard.backend().clone();
    Spy::set(&store.0.fail_generation, true);
    assert!(guard.put(b"a", b"").is_err());
    assert!(store.0.keys.lock().unwrap().is_empty());
    Spy::set(&store.0.fail_generation, false);
    assert!(guard.put(b"a", b"").unwrap().was_absent());
}

#[test]
fn a_failed_rebuild_is_told_and_the_old_filter_stays() {
    let store = Spy::default();
    for i in 0..100 {
        store.put(&key(i), b"").unwrap();
    }
    Spy::set(&store.0.fail_scan, true);
    let guard = Guard::open(store.clone(), Options::new(GuardKind::Cuckoo, 1000, 0.01)).unwrap();
    assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::Missing));
    assert!(matches!(guard.settle(), Err(Error::Store(Broken))));
    guard.put(key(100), b"").unwrap();
    let answers_all = |last: u64| (0..=last).all(|i| guard.get(key(i)).unwrap().is_some());
    assert!(answers_all(100), "without a filter");
    assert_eq!(guard.get(b"absent").unwrap(), None);
    assert_eq!((guard.stats().skipped(), guard.stats().rebuilds), (0, 0));

    Spy::set(&store.0.fail_scan, false);
    guard.rebuild().unwrap();
    assert_covers(&guard, "rebuilt");
    Spy::set(&store.0.fail_scan, true);
    guard.put(key(101), b"").unwrap();
    assert!(guard.rebuild().is_err());
    assert!(answers_all(101), "with the filter from before");
    assert!((1000..1100).all(|i| guard.get(key(i)).unwrap().is_none()));
    assert!(guard.stats().skipped() > 90, "it still answers");
}

#[test]
fn a_removed_key_leaves_a_filter_that_can_remove_however_often_it_was_put() {
    for kind in [GuardKind::Cuckoo, GuardKind::DLeft] {
        let options = Options::new(kind, 1000, 0.001).only_writer();
        let guard = Guard::open(Memory::new(), options).unwrap();
        for i in 0..500 {
            for _ in 0..30 {
                guard.put(key(i), b"").unwrap();
            }
        }
        assert_eq!(guard.stats().keys, 500, "{kind}");
        for i in 0..500 {
            assert!(guard.remove(key(i)).unwrap().was_present());
            assert!(!guard.remove(key(i)).unwrap().was_present());
        }
        assert_eq!((guard.stats().keys, guard.stats().dead), (0, 0), "{kind}");
        let asked = (0..500).filter(|&i| guard.contains(key(i)).unwrap()).count();
        assert_eq!((asked, guard.stats().skipped()), (0, 500), "{kind}");
    }
}

#[test]
fn dead_keys_and_surplus_keys_start_a_rebuild_in_the_background() {
    for kind in [GuardKind::Blocked, GuardKind::Scalable] {
        let guard = Guard::open(Memory::new(), Options::new(kind, 20_000, 0.01)).unwrap();
        let pairs: Vec<_> = (0..10_000).map(|i| (key(i), b"")).collect();
        guard.put_many(&pairs).unwrap();
        for i in 0..5000 {
            guard.remove(key(i)).unwrap();
        }
        guard.settle().unwrap();
        let stats = guard.stats();
        assert!(stats.rebuilds >= 1, "{kind}: {stats:?}");
        assert!(stats.dead < 3000 && stats.keys < 8000, "{kind}: {stats:?}");
        assert_covers(&guard, "rebuilt for dead keys");
    }
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo, GuardKind::DLeft] {
        let guard = Guard::open(Memory::new(), Options::new(kind, 1000, 0.01)).unwrap();
        for i in 0..20_000 {
            guard.put(key(i), b"").unwrap();
        }
        guard.settle().unwrap();
        guard.put(key(20_000), b"").unwrap();
        let stats = guard.stats();
        assert!(stats.rebuilds >= 1 && stats.capacity > 10_000, "{kind}: {stats:?}");
        assert_covers(&guard, "rebuilt for more keys");
        let absent = (100_000..110_000).filter(|&i| guard.contains(key(i)).unwrap()).count();
        assert_eq!(absent, 0);
        let rate = guard.stats().measured_rate().unwrap();
        assert!(rate < 0.05, "{kind}: {rate}");
    }
}

#[test]
fn writers_that_outrun_a_rebuild_get_another_without_a_further_write() {
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo, GuardKind::DLeft] {
        let guard = watched(kind);
        let store = guard.backend().clone();
        let closed = store.0.scan_gate.lock().unwrap();
        for i in 0..10_000 {
            guard.put(key(i), b"").unwrap();
        }
        drop(closed);
        guard.settle().unwrap();
        let stats = guard.stats();
        assert!(stats.capacity >= 10_000, "{kind}: {stats:?}");
        assert_covers(&guard, "outrun");
    }
}

#[test]
fn a_key_that_others_stored_is_absent_until_it_is_noted_or_the_filter_rebuilt() {
    let store = Memory::new();
    let guard = Guard::open(store.clone(), Options::new(GuardKind::Cuckoo, 1000, 1e-6)).unwrap();
    store.put(b"foreign", b"1").unwrap();
    store.put(b"other", b"2").unwrap();
    assert_eq!(guard.get(b"foreign").unwrap(), None);
    guard.note(b"foreign").unwrap();
    assert!(guard.get(b"foreign").unwrap().is_some());
    assert_eq!(guard.get(b"other").unwrap(), None);
    guard.rebuild().unwrap();
    assert!(guard.get(b"other").unwrap().is_some());
}

#[test]
fn noting_what_is_known_changes_nothing_that_a_rebuild_does_not_mend() {
    for kind in EXACT {
        let guard = Guard::open(Memory::new(), Options::new(kind, 20_000, 0.001)).unwrap();
        for i in 0..9000 {
            guard.put(key(i), b"").unwrap();
            guard.note(key(i)).unwrap();
            guard.note(key(i)).unwrap();
        }
        assert_eq!(guard.stats().keys.abs_diff(9000) / 100, 0, "{kind}: {:?}", guard.stats());
        (0..9000).for_each(|i| assert!(guard.remove(key(i)).unwrap().was_present()));
        guard.settle().unwrap();
        let stats = guard.stats();
        assert!(stats.rebuilds > 0 && stats.keys < 4000, "{kind}: {stats:?}");
        guard.put(b"a", b"").unwrap();
        guard.backend().remove(b"a").unwrap();
        let dead = guard.stats().dead;
        guard.note_removed(b"a");
        assert_eq!(guard.stats().dead, dead + 1, "{kind}");
        assert_covers(&guard, kind.name());
    }
}

#[test]
fn the_rate_asked_for_is_the_rate_delivered() {
    const KEYS: u64 = 100_000;
    const PROBES: u64 = 200_000;
    for kind in GuardKind::ALL {
        for rate in [0.03, 0.004] {
            let guard = Guard::open(Memory::new(), Options::new(kind, KEYS, rate)).unwrap();
            let pairs: Vec<_> = (0..KEYS).map(|i| (key(i), b"")).collect();
            guard.put_many(&pairs).unwrap();
            guard.settle().unwrap();
            for i in 0..PROBES {
                assert!(!guard.contains(key(KEYS + i)).unwrap());
            }
            let measured = guard.stats().measured_rate().unwrap();
            // Six standard deviations of this many probes.
            let bound = rate + 6.0 * (rate * (1.0 - rate) / PROBES as f64).sqrt();
            assert!(measured <= bound, "{kind} at {rate}: {measured}");
            assert!(
                kind == GuardKind::Windowed || guard.stats().bits_per_key().unwrap() < 25.0,
                "{kind}"
            );
        }
    }
}
