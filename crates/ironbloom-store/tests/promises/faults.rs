//! Promise: a store that errs, stalls, writes late and panics, under puts, removes, rebuilds, checkpoints and crashes at once,
//! and no stored key is ever answered "absent".
//!
//! Each writer has keys of its own and knows what must be there: what was acknowledged, and nothing else was tried since. Of
//! what failed only the store knows; between rounds all that is late lands, and the store is asked.
//!
//! `IRONBLOOM_FAULT_ROUNDS` asks for more rounds than the few of `make test`.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::lab::Lab;
use crate::common::{assert_covers, key};
use ironbloom_store::{Backend, Guard, GuardKind, Opened, Options};
use ironbloom_testing::{Random, Scratch};

const WRITERS: u64 = 3;
const KEYS: u64 = 60;
const STEPS: u64 = 300;

/// What a writer knows of one of its keys.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    Stored(Vec<u8>),
    Absent,
    /// A write has failed: it may have been carried out, or may be later.
    Doubtful,
}

type Model = HashMap<Vec<u8>, Known>;

/// What a call gave, unless the store failed in whatever way.
fn tried<T, E>(call: impl FnOnce() -> Result<T, E>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok().and_then(Result::ok)
}

fn own(writer: u64, i: u64) -> Vec<u8> {
    key(writer * 1000 + i)
}

fn check(guard: &Guard<Lab>, model: &Model, key: &[u8], context: &str) {
    let found = guard.get(key).unwrap();
    let name = String::from_utf8_lossy(key);
    match model.get(key) {
        Some(Known::Stored(value)) => assert_eq!(found.as_ref(), Some(value), "{context}: {name}"),
        None | Some(Known::Absent) => assert_eq!(found, None, "{context}: {name}"),
        Some(Known::Doubtful) => {}
    }
}

fn write(guard: &Guard<Lab>, writer: u64, seed: u64, model: &mut Model, context: &str) {
    let mut random = Random(seed);
    for step in 0..STEPS {
        let key = own(writer, random.below(KEYS));
        let value = step.to_le_bytes().to_vec();
        let doubtful = model.get(&key) == Some(&Known::Doubtful);
        let known = match random.below(5) {
            0..2 => tried(|| guard.put(&key, &value)).map(|_| Known::Stored(value)),
            2 => tried(|| guard.put_many(&[(&key, &value)])).map(|_| Known::Stored(value)),
            _ => tried(|| guard.remove(&key)).map(|_| Known::Absent),
        };
        // What failed before may still land on top of what succeeds now.
        let known = known.filter(|_| !doubtful).unwrap_or(Known::Doubtful);
        model.insert(key.clone(), known);
        check(guard, model, &key, context);
        check(guard, model, &own(writer, random.below(KEYS)), context);
    }
}

/// Everything at once, until the writers have ended.
fn round(guard: &Guard<Lab>, seed: u64, models: &mut [Model], context: &str) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let _ = tried(|| guard.rebuild());
                let _ = tried(|| guard.checkpoint());
                std::thread::yield_now();
            }
        });
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(300));
                guard.backend().land();
            }
        });
        let writers: Vec<_> = models
            .iter_mut()
            .zip(0..)
            .map(|(model, writer)| {
                scope.spawn(move || write(guard, writer, seed + writer, model, context))
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "{context}: a writer has failed");
    });
}

/// What is late lands, and then the store itself says what is there.
fn learn(store: &Lab, models: &mut [Model]) {
    store.land();
    for (model, writer) in models.iter_mut().zip(0..) {
        for i in 0..KEYS {
            let key = own(writer, i);
            let value = store.get(&key).unwrap();
            model.insert(key, value.map_or(Known::Absent, Known::Stored));
        }
    }
}

fn story(kind: GuardKind, rounds: u64) -> u64 {
    let scratch = Scratch::new(&format!("faults-{kind}"));
    let store = Lab::default();
    // A window that forgets nothing in so short a time: what it forgets is another test.
    let capacity = if kind == GuardKind::Windowed { 100_000 } else { 100 };
    let options = Options::new(kind, capacity, 0.02)
        .checkpoint(scratch.file("g.ibg"))
        .max_dead(0.05)
        .retry_after(Duration::from_millis(1));
    let mut random = Random(7);
    let mut models = vec![Model::new(); WRITERS as usize];
    let mut from_checkpoint = 0;
    for number in 0..rounds {
        let context = format!("{kind}, round {number}");
        let guard = Guard::open(store.clone(), options.clone()).unwrap();
        from_checkpoint += u64::from(*guard.opened() == Opened::FromCheckpoint);
        assert_covers(&guard, &context);
        store.set_chaos(Some(random.next()));
        round(&guard, random.next(), &mut models, &context);
        let closed = random.below(3) > 0 && tried(|| guard.checkpoint()).is_some();
        store.set_chaos(None);
        // Doubts outlive the rebuilds, and the guard if it is closed; a crash is not followed by late writes.
        if !closed {
            learn(&store, &mut models);
        }
        let _ = guard.settle();
        assert_covers(&guard, &context);
        drop(guard);
        if closed {
            let guard = Guard::open(store.clone(), options.clone()).unwrap();
            from_checkpoint += u64::from(*guard.opened() == Opened::FromCheckpoint);
            if kind.can_rebuild() {
                guard.rebuild().unwrap();
            }
            learn(&store, &mut models);
            assert_covers(&guard, &format!("{context}, late"));
            models.iter().for_each(|model| {
                model.keys().for_each(|key| check(&guard, model, key, &context));
            });
            guard.close().unwrap();
        }
    }
    from_checkpoint
}

#[test]
fn whatever_a_store_does_no_stored_key_is_answered_absent() {
    // The store panics on purpose, hundreds of times: nobody wants to read that.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let words = panic.payload().downcast_ref::<&str>().copied().unwrap_or_default();
        if !words.starts_with("the store panics") {
            before(panic);
        }
    }));
    let rounds = std::env::var("IRONBLOOM_FAULT_ROUNDS").map_or(4, |text| text.parse().unwrap());
    let from_checkpoint: u64 = GuardKind::ALL.map(|kind| story(kind, rounds)).iter().sum();
    assert!(from_checkpoint >= rounds, "checkpoints were hardly tried: {from_checkpoint}");
}
