//! False positives are looked up once, and a key that is put is found at once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ironbloom_store::{Backend, Guard, GuardKind, HashFn, Memory, Options, Rebuild};
use ironbloom_testing::Random;

use crate::common::{EXACT, key};

fn options(kind: GuardKind, capacity: u64, rate: f64) -> Options {
    Options::new(kind, capacity, rate).measured_share(0.0).rebuild(Rebuild::Manual)
}

/// Ranks of 1 to `most`, each as often as Zipf's law says.
fn zipf(random: &mut Random, most: u64) -> u64 {
    let unit = (random.below(1 << 53) as f64 + 0.5) / (1u64 << 53) as f64;
    ((most as f64).ln() * unit).exp() as u64
}

const KEYS: u64 = 100_000;
/// Missing keys that are looked up.
const MISSING: u64 = KEYS / 4;
const LOOKUPS: u64 = 2_000_000;

fn missing(rank: u64) -> String {
    format!("absent-{rank}")
}

fn filled(options: Options) -> Guard<Memory> {
    let guard = Guard::open(Memory::new(), options).unwrap();
    let pairs: Vec<_> = (0..KEYS).map(|i| (key(i), b"")).collect();
    guard.put_many(&pairs).unwrap();
    guard
}

fn ranks() -> impl Iterator<Item = u64> {
    let mut random = Random(3);
    (0..LOOKUPS).map(move |_| zipf(&mut random, MISSING))
}

fn reads_for_repeated_misses(options: Options) -> (u64, u64) {
    let guard = filled(options);
    for rank in ranks() {
        assert!(!guard.contains(missing(rank)).unwrap());
    }
    let stats = guard.stats();
    (stats.false_positives(), stats.filter_bytes)
}

#[test]
fn repeated_misses_stop_reaching_the_store() {
    let adaptive = options(GuardKind::Blocked, KEYS, 0.01).only_writer().hash_fn(HashFn::default());
    let plain = adaptive.clone().remember_false_positives(false);
    let (reads, bytes) = reads_for_repeated_misses(adaptive);
    let (before, plain_bytes) = reads_for_repeated_misses(plain.clone());
    // Which of them are false positives: asked one by one, without a memory.
    let guard = filled(plain);
    let is_false = |rank: &u64| {
        let before = guard.stats().false_positives();
        guard.contains(missing(*rank)).unwrap() || guard.stats().false_positives() > before
    };
    let known: HashSet<u64> = (0..=MISSING).filter(is_false).collect();
    let asked: Vec<u64> = ranks().filter(|rank| known.contains(rank)).collect();
    let distinct = asked.iter().collect::<HashSet<_>>().len() as u64;
    assert_eq!(before, asked.len() as u64, "without a memory, every time");
    assert_eq!(reads, distinct, "each once, which nothing can avoid, and never again");
    assert!(20 * reads <= before, "{reads} reads instead of {before}");
    assert!(8 * (bytes - plain_bytes) <= KEYS / 2, "{} bytes more", bytes - plain_bytes);
}

#[test]
fn nothing_is_remembered_where_others_may_write() {
    let guard = Guard::open(Memory::new(), options(GuardKind::Blocked, 1000, 0.1)).unwrap();
    (0..1000).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    (5000..9000).for_each(|i| {
        let _ = guard.get(key(i)).unwrap();
    });
    assert!(guard.stats().false_positives() > 100 && guard.stats().remembered == 0);
}

#[test]
fn a_key_that_was_remembered_is_found_as_soon_as_it_is_put_or_noted() {
    for kind in EXACT {
        let store = Memory::new();
        let guard = Guard::open(store.clone(), options(kind, 1000, 0.1).only_writer()).unwrap();
        (0..1000).for_each(|i| {
            let _ = guard.put(key(i), b"").unwrap();
        });
        (5000..9000).for_each(|i| {
            let _ = guard.get(key(i)).unwrap();
        });
        assert!(guard.stats().remembered > 0, "{kind}");
        for i in 5000..9000 {
            if i % 2 == 0 {
                guard.put(key(i), b"").unwrap();
            } else {
                store.put(&key(i), b"").unwrap();
                guard.note(key(i)).unwrap();
            }
            assert!(guard.get(key(i)).unwrap().is_some(), "{kind}: key {i}");
        }
        assert!(
            guard
                .get_many(&(5000..9000).map(key).collect::<Vec<_>>())
                .unwrap()
                .iter()
                .all(Option::is_some)
        );
    }
}

#[test]
fn readers_that_learn_of_misses_while_writers_put_hide_no_key() {
    for kind in EXACT {
        let guard = Guard::open(Memory::new(), options(kind, 2000, 0.2).only_writer()).unwrap();
        (10_000..12_000).for_each(|i| {
            let _ = guard.put(key(i), b"").unwrap();
        });
        let (stop, hidden) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (guard, stop) = (&guard, &stop);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    while !stop.load(Ordering::Relaxed) {
                        let _ = guard.get(key(random.below(400))).unwrap();
                    }
                });
            }
            for round in 0..200u64 {
                for i in (round % 2..400).step_by(2) {
                    guard.put(key(i), b"").unwrap();
                    hidden.fetch_add(
                        u64::from(guard.get(key(i)).unwrap().is_none()),
                        Ordering::Relaxed,
                    );
                }
                for i in (round % 2..400).step_by(2) {
                    guard.remove(key(i)).unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(hidden.into_inner(), 0, "{kind}");
    }
}

#[test]
fn what_is_said_to_be_saved_is_measured() {
    // The store knows how long it was asked; the guard estimates how long it would have been.
    let guard = Guard::open(
        Memory::new(),
        Options::new(GuardKind::Blocked, 1000, 0.01).measured_share(1.0),
    )
    .unwrap();
    (0..1000).for_each(|i| {
        let _ = guard.put(key(i), b"").unwrap();
    });
    let mut absent = HashSet::new();
    for i in 10_000..110_000u64 {
        let _ = guard.get(key(i)).unwrap();
        absent.insert(i);
    }
    let stats = guard.stats();
    assert!(stats.measured() > 500, "{} lookups were measured", stats.measured());
    let [low, high] = stats.time_saved_between().unwrap();
    assert!(low <= stats.time_saved() && stats.time_saved() <= high);
    assert!(stats.skipped() + stats.false_positives() == absent.len() as u64);
    let none = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 10, 0.01)).unwrap();
    assert_eq!(none.stats().time_saved_between(), None);
    assert!(none.backend().is_empty());
}
