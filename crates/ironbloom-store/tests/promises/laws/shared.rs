//! Where others write, a key of theirs is known from when the guard is told of it, whatever becomes of the guard's own puts.

use std::convert::Infallible;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use ironbloom_store::{
    Backend, Before, Failure, Generation, Guard, GuardKind, HashFn, Memory, Options, Rebuild,
};

use crate::common::key;

/// Counts lookups. A put says that it has begun, waits, and then has not happened.
struct Refusing {
    memory: Memory,
    lookups: AtomicU64,
    begun: SyncSender<()>,
    refuse: Mutex<Receiver<Failure>>,
}

#[derive(Debug)]
struct Refused(Failure);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused")
    }
}

impl std::error::Error for Refused {}

fn certain<T>(answer: Result<T, Infallible>) -> Result<T, Refused> {
    answer.map_err(|never| match never {})
}

impl Backend for Refusing {
    type Error = Refused;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Refused> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        certain(self.memory.get(key))
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<Before, Refused> {
        self.begun.send(()).unwrap();
        let refuse = self.refuse.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Refused(refuse.recv().unwrap()))
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Refused> {
        certain(self.memory.remove(key))
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Refused> {
        certain(self.memory.scan(visit))
    }

    fn len_hint(&self) -> Result<Option<u64>, Refused> {
        certain(self.memory.len_hint())
    }

    fn generation(&self) -> Result<Option<Generation>, Refused> {
        certain(self.memory.generation())
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Refused> {
        certain(self.memory.set_generation(generation))
    }

    fn failure(&self, error: &Refused) -> Failure {
        error.0
    }
}

/// Found by the model in `protocol/`: a key that looked present only because of a put in progress was noted without a copy
/// in the filter, and lost the one by which it looked present when that put failed.
fn noted_during_a_put(kind: GuardKind, ends: Failure) {
    let memory = Memory::new();
    let (begun, has_begun) = sync_channel(1);
    let (go, refuse) = sync_channel(1);
    let refuse = Mutex::new(refuse);
    let store = Refusing { memory: memory.clone(), lookups: AtomicU64::new(0), begun, refuse };
    let options = Options::new(kind, 10, 0.2).hash_fn(HashFn::default()).rebuild(Rebuild::Manual);
    let guard = Guard::open(store, options.measured_share(0.0)).unwrap();
    std::thread::scope(|scope| {
        let put = scope.spawn(|| guard.put("mine", b"").is_err());
        has_begun.recv().unwrap();
        let looks_stored = |i: &u64| {
            let before = guard.backend().lookups.load(Ordering::Relaxed);
            let _ = guard.get(key(*i));
            guard.backend().lookups.load(Ordering::Relaxed) > before
        };
        // Before the put has ended, nothing here may fail: the thread would wait.
        let theirs = (0..10_000_000).find(looks_stored);
        let noted = theirs.map(|i| (memory.put(&key(i), b""), guard.note(key(i)).is_ok()));
        go.send(ends).unwrap();
        assert!(put.join().unwrap(), "the put has failed");
        assert_eq!(noted, Some((Ok(Before::Absent), true)), "a false positive was noted");
        let theirs = theirs.unwrap_or_default();
        assert!(guard.get(key(theirs)).unwrap().is_some(), "{kind}, {ends:?}: key {theirs}");
    });
}

#[test]
fn a_key_of_others_that_was_noted_during_a_put_stays_when_the_put_fails() {
    for kind in [GuardKind::Cuckoo, GuardKind::DLeft] {
        noted_during_a_put(kind, Failure::NotDone);
        noted_during_a_put(kind, Failure::Unknown);
    }
}
