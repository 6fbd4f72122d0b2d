//! Each acknowledged put counts once, whatever the filter said of it before.

use ironbloom_store::{Backend, Guard, GuardKind, Memory, Options};

use crate::common::key;

fn window(store: &Memory, capacity: u64) -> Guard<Memory> {
    Guard::open(store.clone(), Options::new(GuardKind::Windowed, capacity, 0.01)).unwrap()
}

fn skipped_of_1000(guard: &Guard<Memory>) -> u64 {
    let before = guard.stats().skipped();
    (0..1000).for_each(|i| {
        let _ = guard.get(format!("absent-{i}")).unwrap();
    });
    guard.stats().skipped() - before
}

#[test]
fn a_window_over_a_store_that_is_not_empty_skips_once_it_is_full() {
    for capacity in [100, 1000, 10_000] {
        let store = Memory::new();
        (0..500).for_each(|i| {
            let _ = store.put(&key(i), b"").unwrap();
        });
        let guard = window(&store, capacity);
        (0..capacity).for_each(|i| {
            let _ = guard.put(key(i), b"").unwrap();
        });
        let skipped = skipped_of_1000(&guard);
        assert!(skipped > 950, "{skipped} of 1000 with a window of {capacity}");
        assert!((0..capacity).all(|i| guard.get(key(i)).unwrap().is_some()));
    }
}

#[test]
fn the_same_keys_put_again_and_again_keep_a_window_small() {
    let once = window(&Memory::new(), 1000);
    (0..1000).for_each(|i| {
        let _ = once.put(key(i), b"").unwrap();
    });
    let often = window(&Memory::new(), 1000);
    for _ in 0..50 {
        (0..1000).for_each(|i| {
            let _ = often.put(key(i), b"").unwrap();
        });
    }
    let [once, often_bytes] = [&once, &often].map(|guard| guard.stats().filter_bytes);
    assert!(often_bytes <= 2 * once, "{often_bytes} bytes instead of {once}");
    // 10 of 1000 are expected, and six standard deviations are 19.
    let asked = 1000 - skipped_of_1000(&often);
    assert!(asked <= 29, "{asked} of 1000 false positives");
    assert!((0..1000).all(|i| often.get(key(i)).unwrap().is_some()));
}

#[test]
fn a_window_that_is_distrusted_starts_again() {
    let store = Memory::new();
    let guard = window(&store, 100);
    (0..100).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    store.put(b"theirs", b"").unwrap();
    guard.distrust().unwrap();
    assert!(guard.get("theirs").unwrap().is_some(), "nothing is skipped at first");
    (100..200).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    assert!(skipped_of_1000(&guard) > 950);
    assert!((100..200).all(|i| guard.get(key(i)).unwrap().is_some()));
}
