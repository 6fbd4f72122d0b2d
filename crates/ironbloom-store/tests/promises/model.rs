//! Promise: whatever is done in whatever order, a guard answers as an exact map, and never "absent" for a stored key.

use std::collections::{BTreeMap, VecDeque};

use crate::common::{EXACT, assert_covers, key};
use ironbloom_store::{Guard, GuardKind, Memory, Opened, Options, Rebuild, Unusable};
use ironbloom_testing::Scratch;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(u64),
    Put(u64),
    PutMany(u64, u64),
    Remove(u64),
    /// Somebody else stores a key, and says so.
    Note(u64),
    Rebuild,
    Checkpoint,
    /// Ends with a checkpoint, and opens again.
    Reopen,
    /// Ends without one.
    Crash,
}

/// Few keys, so that the same one is put and removed again and again.
const KEYS: u64 = 200;

fn step() -> impl Strategy<Value = Step> {
    let i = 0..KEYS;
    prop_oneof![
        6 => i.clone().prop_map(Step::Get),
        8 => i.clone().prop_map(Step::Put),
        2 => (i.clone(), 1..20u64).prop_map(|(from, many)| Step::PutMany(from, many)),
        8 => i.clone().prop_map(Step::Remove),
        1 => i.prop_map(Step::Note),
        1 => Just(Step::Rebuild),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

/// A guard, its store, and what must be in it.
struct World {
    store: Memory,
    options: Options,
    guard: Option<Guard<Memory>>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether a checkpoint has seen all writes.
    covered: bool,
}

impl World {
    fn new(options: Options) -> Self {
        let store = Memory::new();
        let guard = Guard::open(store.clone(), options.clone()).unwrap();
        assert_eq!(*guard.opened(), Opened::Empty);
        Self { store, options, guard: Some(guard), model: BTreeMap::new(), covered: false }
    }

    fn guard(&self) -> &Guard<Memory> {
        self.guard.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.guard = None;
        let guard = Guard::open(self.store.clone(), self.options.clone()).unwrap();
        match guard.opened() {
            Opened::FromCheckpoint => assert!(self.covered, "a checkpoint that has not seen all"),
            Opened::Reading => panic!("a small filter is read at once"),
            Opened::Empty => assert!(self.model.is_empty()),
            Opened::WithoutCheckpoint(why) => {
                assert!(!self.covered, "a good checkpoint was refused: {why}");
                assert!(matches!(why, Unusable::OtherGeneration | Unusable::Missing));
            }
        }
        self.guard = Some(guard);
    }

    fn put(&mut self, i: u64, round: usize) {
        let (key, value) = (key(i), round.to_le_bytes().to_vec());
        let new = self.guard().put(&key, &value).unwrap().was_absent();
        self.covered = false;
        assert_eq!(new, self.model.insert(key, value).is_none());
    }

    fn step(&mut self, step: Step, round: usize) {
        match step {
            Step::Get(i) => {
                let expected = self.model.get(&key(i)).cloned();
                assert_eq!(self.guard().get(key(i)).unwrap(), expected);
                assert_eq!(self.guard().contains(key(i)).unwrap(), expected.is_some());
            }
            Step::Put(i) => self.put(i, round),
            Step::PutMany(from, many) => {
                // Some keys come twice in one call.
                let numbers = (from..from + many).chain(from..from + many / 3);
                let value = round.to_le_bytes().to_vec();
                let pairs: Vec<_> = numbers.map(|i| (key(i % KEYS), value.clone())).collect();
                let new = self.guard().put_many(&pairs).unwrap();
                self.covered = false;
                for ((key, value), new) in pairs.into_iter().zip(new) {
                    assert_eq!(new.was_absent(), self.model.insert(key, value).is_none());
                }
            }
            Step::Remove(i) => {
                // A key that the filter rules out changes nothing, not even the generation.
                let stored = self.model.remove(&key(i)).is_some();
                assert_eq!(self.guard().remove(key(i)).unwrap().was_present(), stored);
                self.covered &= !stored;
            }
            Step::Note(i) => {
                use ironbloom_store::Backend;
                let value = round.to_le_bytes().to_vec();
                self.store.put(&key(i), &value).unwrap();
                self.guard().note(key(i)).unwrap();
                self.model.insert(key(i), value);
                self.covered = false;
            }
            Step::Rebuild => self.guard().rebuild().unwrap(),
            Step::Checkpoint => {
                self.guard().checkpoint().unwrap();
                self.covered = true;
            }
            Step::Reopen => {
                self.guard.take().unwrap().close().unwrap();
                self.covered = true;
                self.reopen();
            }
            Step::Crash => self.reopen(),
        }
    }

    fn check(&self) {
        assert_eq!(self.store.len(), self.model.len());
        for i in 0..KEYS {
            assert_eq!(self.guard().get(key(i)).unwrap(), self.model.get(&key(i)).cloned());
        }
        assert_covers(self.guard(), "at the end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// At a rate that makes fingerprints meet, below and above capacity, with rebuilds as they come or on demand.
    #[test]
    fn a_guard_answers_as_an_exact_map(
        steps in proptest::collection::vec(step(), 1..250),
        kind in prop::sample::select(&EXACT[..]),
        capacity in prop::sample::select(&[20u64, 150, 1000][..]),
        rate in prop::sample::select(&[0.3, 0.01][..]),
        rebuild in prop::sample::select(&[Rebuild::Background, Rebuild::Manual][..]),
        case in 0u64..u64::MAX,
    ) {
        let scratch = Scratch::new(&format!("model-{case}"));
        let options = Options::new(kind, capacity, rate)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer()
            .rebuild(rebuild)
            .max_dead(0.01);
        let mut world = World::new(options);
        for (round, step) in steps.into_iter().enumerate() {
            // What the store shows after a remove of an unknown key: a false positive gives it a generation.
            if let Step::Remove(_) = step {
                let before = ironbloom_store::Backend::generation(&world.store).unwrap();
                world.step(step, round);
                let after = ironbloom_store::Backend::generation(&world.store).unwrap();
                world.covered &= before == after;
            } else {
                world.step(step, round);
            }
        }
        world.check();
    }

    /// The keys of the last puts of a window are always answered, and nothing else is made up.
    #[test]
    fn a_window_never_forgets_its_last_puts(
        steps in proptest::collection::vec(step(), 1..400),
        window in prop::sample::select(&[4u64, 30, 100][..]),
        case in 0u64..u64::MAX,
    ) {
        let scratch = Scratch::new(&format!("window-{case}"));
        let options = Options::new(GuardKind::Windowed, window, 0.01)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer();
        let store = Memory::new();
        let open = || Guard::open(store.clone(), options.clone()).unwrap();
        let mut guard = open();
        // The last puts; `None` where the key was removed since.
        let mut recent: VecDeque<Option<u64>> = VecDeque::new();
        let mut touch = |i: u64, stored: bool| {
            if stored {
                recent.push_front(Some(i));
            } else {
                recent.iter_mut().filter(|put| **put == Some(i)).for_each(|put| *put = None);
            }
            recent.truncate(window as usize);
            recent.clone()
        };
        let mut expected = VecDeque::new();
        for step in steps {
            match step {
                Step::Put(i) | Step::PutMany(i, _) => {
                    guard.put(key(i), b"").unwrap();
                    expected = touch(i, true);
                }
                Step::Remove(i) => {
                    guard.remove(key(i)).unwrap();
                    expected = touch(i, false);
                }
                Step::Checkpoint => guard.checkpoint().unwrap(),
                Step::Reopen => {
                    guard.close().unwrap();
                    guard = open();
                }
                Step::Crash => {
                    drop(guard);
                    guard = open();
                }
                Step::Rebuild => prop_assert!(guard.rebuild().is_err()),
                Step::Get(i) | Step::Note(i) => {
                    use ironbloom_store::Backend;
                    let found = guard.get(key(i)).unwrap();
                    prop_assert!(found.is_none() || found == store.get(&key(i)).unwrap());
                }
            }
            for &i in expected.iter().flatten() {
                prop_assert!(guard.get(key(i)).unwrap().is_some(), "{i} is one of the last {window}");
            }
        }
    }
}

#[test]
fn a_window_forgets_in_the_end() {
    let options = Options::new(GuardKind::Windowed, 1000, 0.01).measured_share(0.0);
    let guard = Guard::open(Memory::new(), options).unwrap();
    for i in 0..10_000 {
        guard.put(key(i), b"").unwrap();
    }
    let answered = (0..5000).filter(|&i| guard.get(key(i)).unwrap().is_some()).count();
    // 1 % of 5000 is 50, and six standard deviations are 42.
    assert!(answered <= 92, "{answered} of 5000 old keys are still answered");
    assert!((9000..10_000).all(|i| guard.get(key(i)).unwrap().is_some()));
    assert_eq!(guard.backend().len(), 10_000, "the store forgets nothing");
}
