//! Promise: whichever state of a store a backup has kept, and whichever files of a checkpoint are found beside it, a guard
//! believes the files only if they cover that state.
//!
//! Not tried at random: all orders of some steps, up to a length, with the real guard over a store that remembers every state
//! it was ever in. At the end each of these states meets the files of each moment. `IRONBLOOM_STEPS` asks for
//! longer orders.

use crate::common;
use crate::common::lab::{Contents, Lab};
use crate::common::{assert_covers, key};
#[cfg(feature = "async")]
use ironbloom_store::Backend;
use ironbloom_store::{Before, Generation, Guard, GuardKind, Opened, Options, Rebuild};
use ironbloom_testing::Scratch;

/// The files of a folder at some moment.
type Files = Vec<(String, Vec<u8>)>;

fn files(scratch: &Scratch) -> Files {
    let read = |name: String| {
        let bytes = std::fs::read(scratch.file(&name)).unwrap();
        (name, bytes)
    };
    scratch.names().into_iter().map(read).collect()
}

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    // The user rebuilds: no thread disturbs the order.
    Options::new(kind, 50, 0.01).checkpoint(scratch.file("g.ibg")).rebuild(Rebuild::Manual)
}

/// Every state of the store with the files of every moment. Files of another generation are refused, which needs no
/// trial each time. How many were tried, and how many of them believed.
fn cross(kind: GuardKind, states: &[Contents], moments: &[Files], context: &str) -> [u64; 2] {
    let thread = std::thread::current().id();
    let scratch = Scratch::new(&format!("generations-cross-{thread:?}"));
    let mut tried = [0; 2];
    for files in moments {
        let matching = |generation: &Generation| {
            let digits = generation.to_string();
            files.iter().any(|(name, _)| name.contains(&digits))
        };
        for name in scratch.names() {
            std::fs::remove_file(scratch.file(&name)).unwrap();
        }
        for (name, bytes) in files {
            std::fs::write(scratch.file(name), bytes).unwrap();
        }
        for state in states.iter().filter(|state| state.generation.as_ref().is_some_and(matching)) {
            let guard = Guard::open(Lab::of(state.clone()), options(&scratch, kind)).unwrap();
            tried[usize::from(*guard.opened() == Opened::FromCheckpoint)] += 1;
            assert_covers(&guard, context);
        }
    }
    tried
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u64),
    Remove(u64),
    /// A copy of the store is kept.
    Copy,
    Checkpoint,
    Crash,
    /// The copy takes the place of the store.
    Restore,
    Rebuild,
}

const STEPS: [Step; 8] = [
    Step::Put(0),
    Step::Put(1),
    Step::Remove(0),
    Step::Copy,
    Step::Checkpoint,
    Step::Crash,
    Step::Restore,
    Step::Rebuild,
];

/// Does these steps, and asks after each whether every stored key is answered.
fn walk(kind: GuardKind, steps: &[Step]) -> [u64; 2] {
    let scratch = Scratch::new("generations");
    let mut store = Lab::default();
    store.keep_history();
    let mut guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
    let mut states = Vec::new();
    let mut moments = Vec::new();
    let mut copy = None;
    for &step in steps {
        match step {
            Step::Put(i) => drop(guard.put(key(i), b"").unwrap()),
            Step::Remove(i) => drop(guard.remove(key(i)).unwrap()),
            Step::Copy => copy = Some(store.contents()),
            Step::Checkpoint => guard.checkpoint().unwrap(),
            Step::Crash => {
                drop(guard);
                guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
            }
            Step::Restore => {
                let Some(copy) = copy.clone() else { continue };
                states.extend(store.history());
                store = Lab::of(copy);
                store.keep_history();
                guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
            }
            Step::Rebuild => guard.rebuild().unwrap(),
        }
        moments.push(files(&scratch));
        assert_covers(&guard, &format!("{kind}, {steps:?}, after {step:?}"));
    }
    states.extend(store.history());
    moments.dedup();
    cross(kind, &states, &moments, &format!("{kind}, {steps:?}"))
}

fn all_orders(length: u32, mut visit: impl FnMut(&[Step])) {
    for number in 0..(STEPS.len() as u64).pow(length) {
        let digit = |place: u32| (number / (STEPS.len() as u64).pow(place)) as usize % STEPS.len();
        let steps: Vec<Step> = (0..length).map(|place| STEPS[digit(place)]).collect();
        visit(&steps);
    }
}

#[test]
fn whatever_order_writes_copies_checkpoints_crashes_and_restores_come_in() {
    let length = std::env::var("IRONBLOOM_STEPS").map_or(4, |steps| steps.parse().unwrap());
    let mut tried = [0; 2];
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo] {
        all_orders(length, |steps| {
            let [built, believed] = walk(kind, steps);
            tried = [tried[0] + built, tried[1] + believed];
        });
    }
    // The order in which the mistake was found is longer: copy, remove, checkpoint, restore.
    for kind in common::EXACT {
        use Step::{Checkpoint, Copy, Crash, Put, Rebuild, Remove, Restore};
        walk(kind, &[Put(0), Put(1), Copy, Remove(0), Rebuild, Checkpoint, Restore]);
        walk(kind, &[Put(0), Checkpoint, Copy, Remove(0), Checkpoint, Restore, Put(1), Crash]);
    }
    println!("{} states were believed, {} were not", tried[1], tried[0]);
    assert!(tried[1] > 1000, "checkpoints were hardly tried");
}

#[cfg(feature = "async")]
mod interleaved {
    //! Writes that are under way while a checkpoint is taken or a filter exchanged: every order in which they can be polled.

    use std::collections::HashSet;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Wake, Waker};

    use futures_lite::future::{block_on, yield_now};
    use ironbloom_store::{AsyncBackend, AsyncGuard, Visit};

    use super::*;
    use crate::common::lab::Broken;

    /// The store of the laboratory, which waits before and after it does something.
    struct Waiting(Lab);

    impl AsyncBackend for Waiting {
        type Error = Broken;

        async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
            self.0.get(key)
        }

        async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
            yield_now().await;
            let new = self.0.put(key, value);
            yield_now().await;
            new
        }

        async fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
            yield_now().await;
            let removed = self.0.remove(key);
            yield_now().await;
            removed
        }

        async fn scan(&self, visit: Visit<'_>) -> Result<(), Broken> {
            yield_now().await;
            let scanned = self.0.scan(visit);
            yield_now().await;
            scanned
        }

        async fn len_hint(&self) -> Result<Option<u64>, Broken> {
            self.0.len_hint()
        }

        async fn generation(&self) -> Result<Option<Generation>, Broken> {
            self.0.generation()
        }

        async fn set_generation(&self, generation: Generation) -> Result<(), Broken> {
            yield_now().await;
            let set = self.0.set_generation(generation);
            yield_now().await;
            set
        }

        fn is_exclusive(&self) -> bool {
            true
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Task {
        Put(u64),
        Remove(u64),
        Checkpoint,
        Rebuild,
    }

    /// A task that has begun, and whether it can go on: one that waits for another cannot.
    struct Running<'g> {
        future: Pin<Box<dyn Future<Output = ()> + 'g>>,
        woken: Arc<Woken>,
    }

    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Running<'_> {
        fn can_go_on(&self) -> bool {
            self.woken.0.load(Ordering::Relaxed)
        }

        /// True if it has ended.
        fn poll(&mut self) -> bool {
            self.woken.0.store(false, Ordering::Relaxed);
            let waker = Waker::from(self.woken.clone());
            self.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        }
    }

    fn run(guard: &AsyncGuard<Waiting>, task: Task) -> Running<'_> {
        let future = Box::pin(async move {
            match task {
                Task::Put(i) => drop(guard.put(&key(i), b"").await.unwrap()),
                Task::Remove(i) => drop(guard.remove(&key(i)).await.unwrap()),
                Task::Checkpoint => guard.checkpoint().await.unwrap(),
                Task::Rebuild => guard.rebuild().await.unwrap(),
            }
        });
        Running { future, woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    /// Polls the tasks in the order of the choices, each a place among those that can go on; when the choices are used up,
    /// the first. How many could have been chosen each time.
    fn follow(kind: GuardKind, tasks: &[Task], choices: &[usize], dropped: bool) -> Vec<usize> {
        let scratch = Scratch::new("generations-interleaved");
        let store = Lab::default();
        store.keep_history();
        let opened = AsyncGuard::open(Waiting(store.clone()), options(&scratch, kind));
        let guard = block_on(opened).unwrap();
        (0..4).for_each(|i| assert!(block_on(guard.put(&key(i), b"")).unwrap().was_absent()));
        let mut moments = Vec::new();
        let mut offered = Vec::new();
        let mut running: Vec<Running<'_>> = tasks.iter().map(|&task| run(&guard, task)).collect();
        let context = || format!("{kind}, {tasks:?}, {choices:?}, dropped: {dropped}");
        while !running.is_empty() {
            let choice = choices.get(offered.len()).copied().unwrap_or(0);
            if dropped && offered.len() == choices.len() {
                running.clear(); // whoever has waited so long gives up
                break;
            }
            let able: Vec<usize> =
                (0..running.len()).filter(|&task| running[task].can_go_on()).collect();
            offered.push(able.len());
            if running[able[choice]].poll() {
                drop(running.remove(able[choice]));
            }
            for key in store.contents().keys.keys() {
                let found = block_on(guard.get(key)).unwrap();
                assert!(found.is_some(), "{}: {}", context(), String::from_utf8_lossy(key));
            }
            moments.push(files(&scratch));
        }
        moments.dedup();
        // A checkpoint once all has ended, and every state that there was.
        block_on(guard.checkpoint()).unwrap();
        moments.push(files(&scratch));
        cross(kind, &store.history(), &moments, &context());
        offered
    }

    /// All orders, one after the other, as numbers are counted. How many there were.
    fn all_interleavings(kind: GuardKind, tasks: &[Task], give_up: bool) -> u64 {
        let mut choices: Vec<usize> = Vec::new();
        let mut count = 0;
        let mut cut = HashSet::new();
        loop {
            let offered = follow(kind, tasks, &choices, false);
            count += 1;
            choices.resize(offered.len(), 0);
            // The same, given up after each step; prefixes that many orders share are tried once.
            for length in 0..if give_up { choices.len() } else { 0 } {
                if cut.insert(choices[..length].to_vec()) {
                    follow(kind, tasks, &choices[..length], true);
                }
            }
            while let Some(last) = choices.pop() {
                if last + 1 < offered[choices.len()] {
                    choices.push(last + 1);
                    break;
                }
            }
            if choices.is_empty() {
                return count;
            }
        }
    }

    #[test]
    fn however_writes_and_a_checkpoint_or_a_rebuild_are_interleaved() {
        let thorough = std::env::var_os("IRONBLOOM_STEPS").is_some();
        let mut count = 0;
        for kind in [GuardKind::Blocked, GuardKind::Cuckoo] {
            for maintenance in [Task::Checkpoint, Task::Rebuild] {
                count += all_interleavings(kind, &[Task::Put(0), maintenance], true);
                count += all_interleavings(kind, &[Task::Remove(0), maintenance], true);
                if thorough || (kind, maintenance) == (GuardKind::Cuckoo, Task::Checkpoint) {
                    let tasks = [Task::Put(9), Task::Remove(0), maintenance];
                    count += all_interleavings(kind, &tasks, thorough);
                }
                if thorough {
                    let tasks = [Task::Remove(0), Task::Put(0), maintenance];
                    count += all_interleavings(kind, &tasks, true);
                }
            }
        }
        println!("{count} orders");
        assert!(count > 1000);
    }
}
