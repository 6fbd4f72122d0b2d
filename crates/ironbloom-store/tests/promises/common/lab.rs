//! A store that does what it is told: answers an error and writes anyway, writes later, stalls, panics.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbloom_store::{Backend, Before, Generation};

use ironbloom_testing::Random;

/// What becomes of the next write, or of the next scan.
pub(crate) enum Fault {
    /// An error, and nothing was written.
    ErrBefore,
    /// An error, and it was written all the same.
    ErrAfter,
    /// An error now; it is written when [`Lab::land`] is called.
    Late,
    PanicBefore,
    PanicAfter,
    /// Lets others go first.
    Slow,
    /// Tells that it has begun, waits, and then does what it should.
    Stall(Sender<()>, Receiver<()>),
    /// Does what it should, tells so, and waits before it answers.
    StallAfter(Sender<()>, Receiver<()>),
}

/// What the store holds: the copy that a backup would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Contents {
    pub(crate) keys: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) generation: Option<Generation>,
}

enum Write {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    Name(Generation),
}

#[derive(Default)]
struct State {
    contents: Mutex<Contents>,
    /// All states that the store was ever in.
    history: Mutex<Option<Vec<Contents>>>,
    writes: Mutex<VecDeque<Fault>>,
    scans: Mutex<VecDeque<Fault>>,
    late: Mutex<Vec<Write>>,
    /// Draws a fault for some of all calls.
    chaos: Mutex<Option<Random>>,
}

/// Clones are the same store. Its guard may take it for its own.
#[derive(Clone, Default)]
pub(crate) struct Lab(Arc<State>);

#[derive(Debug)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken")
    }
}

impl std::error::Error for Broken {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two ends of a stall: hears when the write has begun, and lets it go on.
pub(crate) struct Stalled {
    begun: Receiver<()>,
    go: Sender<()>,
}

impl Stalled {
    pub(crate) fn wait(&self) {
        self.begun.recv().unwrap();
    }

    pub(crate) fn release(self) {
        self.go.send(()).unwrap();
    }
}

fn stall(fault: fn(Sender<()>, Receiver<()>) -> Fault) -> (Fault, Stalled) {
    let ((begin, begun), (go, wait)) = (channel(), channel());
    (fault(begin, wait), Stalled { begun, go })
}

impl Lab {
    pub(crate) fn of(contents: Contents) -> Self {
        let lab = Self::default();
        *locked(&lab.0.contents) = contents;
        lab
    }

    pub(crate) fn contents(&self) -> Contents {
        locked(&self.0.contents).clone()
    }

    /// From now on all states are kept.
    pub(crate) fn keep_history(&self) {
        *locked(&self.0.history) = Some(vec![self.contents()]);
    }

    pub(crate) fn history(&self) -> Vec<Contents> {
        locked(&self.0.history).clone().unwrap_or_default()
    }

    pub(crate) fn fail_write(&self, fault: Fault) {
        locked(&self.0.writes).push_back(fault);
    }

    pub(crate) fn fail_scan(&self, fault: Fault) {
        locked(&self.0.scans).push_back(fault);
    }

    pub(crate) fn stall_write(&self) -> Stalled {
        let (fault, stalled) = stall(Fault::Stall);
        self.fail_write(fault);
        stalled
    }

    /// The next write is carried out, and answers later.
    pub(crate) fn stall_answer(&self) -> Stalled {
        let (fault, stalled) = stall(Fault::StallAfter);
        self.fail_write(fault);
        stalled
    }

    /// The next scan waits when it has visited all.
    pub(crate) fn stall_scan(&self) -> Stalled {
        let (fault, stalled) = stall(Fault::Stall);
        self.fail_scan(fault);
        stalled
    }

    /// Writes what was late.
    pub(crate) fn land(&self) {
        for write in locked(&self.0.late).drain(..) {
            self.apply(write);
        }
    }

    fn apply(&self, write: Write) -> bool {
        self.change(|contents| match write {
            Write::Put(key, value) => contents.keys.insert(key, value).is_none(),
            Write::Remove(key) => contents.keys.remove(&key).is_some(),
            Write::Name(generation) => contents.generation.replace(generation).is_none(),
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        let mut contents = locked(&self.0.contents);
        let answer = change(&mut contents);
        if let Some(history) = &mut *locked(&self.0.history)
            && !history.contains(&contents)
        {
            history.push(contents.clone());
        }
        answer
    }

    fn write(&self, write: Write) -> Result<bool, Broken> {
        let fault = self.next_fault(&self.0.writes);
        match fault {
            None => Ok(self.apply(write)),
            Some(Fault::ErrBefore) => Err(Broken),
            Some(Fault::ErrAfter) => {
                self.apply(write);
                Err(Broken)
            }
            Some(Fault::Late) => {
                locked(&self.0.late).push(write);
                Err(Broken)
            }
            Some(Fault::PanicBefore) => panic!("the store panics before it has written"),
            Some(Fault::PanicAfter) => {
                self.apply(write);
                panic!("the store panics after it has written")
            }
            Some(Fault::Slow) => {
                (0..10).for_each(|_| std::thread::yield_now());
                Ok(self.apply(write))
            }
            Some(Fault::Stall(begun, go)) => {
                let _ = begun.send(());
                let _ = go.recv();
                Ok(self.apply(write))
            }
            Some(Fault::StallAfter(begun, go)) => {
                let answer = self.apply(write);
                let _ = begun.send(());
                let _ = go.recv();
                Ok(answer)
            }
        }
    }

    /// From now on one call in four goes wrong in some way, or none does.
    pub(crate) fn set_chaos(&self, seed: Option<u64>) {
        *locked(&self.0.chaos) = seed.map(Random);
    }

    fn next_fault(&self, told: &Mutex<VecDeque<Fault>>) -> Option<Fault> {
        let mut chaos = locked(&self.0.chaos);
        let Some(random) = &mut *chaos else { return locked(told).pop_front() };
        match random.below(24) {
            0 => Some(Fault::ErrBefore),
            1 => Some(Fault::ErrAfter),
            2 => Some(Fault::Late),
            3 => Some(Fault::PanicBefore),
            4 => Some(Fault::PanicAfter),
            5 => Some(Fault::Slow),
            _ => None,
        }
    }
}

impl Backend for Lab {
    type Error = Broken;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        Ok(locked(&self.0.contents).keys.get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
        self.write(Write::Put(key.to_vec(), value.to_vec())).map(|new| Before::stored(!new))
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
        self.write(Write::Remove(key.to_vec())).map(Before::stored)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Broken> {
        let fault = self.next_fault(&self.0.scans);
        let keys: Vec<_> = locked(&self.0.contents).keys.keys().cloned().collect();
        let half = keys.len() / 2;
        let visited = keys[..half].iter().try_for_each(|key| visit(key));
        match fault {
            Some(Fault::PanicBefore | Fault::PanicAfter) => panic!("the store panics in a scan"),
            Some(Fault::ErrBefore | Fault::ErrAfter | Fault::Late) => return Err(Broken),
            Some(Fault::Stall(..) | Fault::StallAfter(..) | Fault::Slow) | None => {}
        }
        if visited.is_continue() {
            let _ = keys[half..].iter().try_for_each(|key| visit(key));
        }
        if let Some(Fault::Stall(begun, go)) = fault {
            let _ = begun.send(());
            let _ = go.recv();
        }
        Ok(())
    }

    fn len_hint(&self) -> Result<Option<u64>, Broken> {
        Ok(Some(locked(&self.0.contents).keys.len() as u64))
    }

    fn generation(&self) -> Result<Option<Generation>, Broken> {
        Ok(locked(&self.0.contents).generation)
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Broken> {
        self.write(Write::Name(generation)).map(drop)
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}
