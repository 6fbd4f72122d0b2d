//! A store that can be claimed, like those on servers: it refuses writes for another generation, can be put back to an
//! older state under its guard, carries out writes late, and repeats requests.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbloom_store::{Backend, Before, Failure, Generation};

/// What the store holds.
#[derive(Clone, Default)]
pub(crate) struct Contents {
    pub(crate) keys: BTreeMap<Vec<u8>, Vec<u8>>,
    generation: Option<Generation>,
}

#[derive(Default)]
struct Shared {
    contents: Contents,
    /// Puts that were answered with an error and will be carried out, each with the generation that it is for.
    late: Vec<(Vec<u8>, Option<Generation>)>,
    /// Whether the next put is one of those.
    next_is_late: bool,
    /// Whether the next remove makes a new connection, finds the store started again, and has no answer.
    next_reconnects: bool,
    /// Whether the answer to every put is that nobody knows whether the key was there.
    repeats: bool,
}

/// A handle; [`Vault::again`] opens another one of the same store.
pub(crate) struct Vault {
    shared: Arc<Mutex<Shared>>,
    /// The generation stored last through this handle, once it has claimed the store.
    held: Mutex<Option<Generation>>,
    claims: bool,
    /// The generation that was found, or stored last.
    found: Mutex<Option<Generation>>,
    /// Whether the store held another generation when it was given a new one.
    exchanged: AtomicBool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Broken {
    Late,
    OtherState,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Broken {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vault {
    /// An empty store, whose guards can claim it or cannot.
    pub(crate) fn new(claims: bool) -> Self {
        Self::of(Arc::default(), claims)
    }

    /// Another handle.
    pub(crate) fn again(&self) -> Self {
        Self::of(self.shared.clone(), self.claims)
    }

    fn of(shared: Arc<Mutex<Shared>>, claims: bool) -> Self {
        let [held, found] = [None, None].map(Mutex::new);
        Self { shared, held, claims, found, exchanged: AtomicBool::new(false) }
    }

    pub(crate) fn contents(&self) -> Contents {
        locked(&self.shared).contents.clone()
    }

    /// Puts the store back to an older state, as a backup does.
    pub(crate) fn revert(&self, contents: Contents) {
        locked(&self.shared).contents = contents;
    }

    /// The next put is answered with an error, and carried out by [`land`](Self::land).
    pub(crate) fn be_late(&self) {
        locked(&self.shared).next_is_late = true;
    }

    pub(crate) fn land(&self) {
        let shared = &mut *locked(&self.shared);
        for (key, generation) in std::mem::take(&mut shared.late) {
            if generation.is_none() || generation == shared.contents.generation {
                shared.contents.keys.insert(key, Vec::new());
            }
        }
    }

    /// The next remove finds the store started again, and its answer is lost.
    pub(crate) fn reconnect(&self) {
        locked(&self.shared).next_reconnects = true;
    }

    pub(crate) fn repeat(&self) {
        locked(&self.shared).repeats = true;
    }

    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> Result<T, Broken> {
        let shared = &mut *locked(&self.shared);
        match *locked(&self.held) {
            Some(held) if shared.contents.generation != Some(held) => Err(Broken::OtherState),
            _ => Ok(change(shared)),
        }
    }
}

impl Backend for Vault {
    type Error = Broken;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        Ok(locked(&self.shared).contents.keys.get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
        let held = *locked(&self.held);
        self.change(|shared| {
            if std::mem::take(&mut shared.next_is_late) {
                shared.late.push((key.to_vec(), held));
                return Err(Broken::Late);
            }
            let before = shared.contents.keys.insert(key.to_vec(), value.to_vec()).is_some();
            Ok(if shared.repeats { Before::Unknown } else { Before::stored(before) })
        })?
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
        self.change(|shared| {
            if std::mem::take(&mut shared.next_reconnects) {
                self.exchanged.store(true, Ordering::Relaxed);
                return Err(Broken::Late);
            }
            Ok(Before::stored(shared.contents.keys.remove(key).is_some()))
        })?
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Broken> {
        let keys: Vec<_> = locked(&self.shared).contents.keys.keys().cloned().collect();
        let _ = keys.iter().try_for_each(|key| visit(key));
        Ok(())
    }

    fn len_hint(&self) -> Result<Option<u64>, Broken> {
        Ok(Some(locked(&self.shared).contents.keys.len() as u64))
    }

    fn generation(&self) -> Result<Option<Generation>, Broken> {
        let found = locked(&self.shared).contents.generation;
        *locked(&self.found) = found;
        Ok(found)
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Broken> {
        let before = locked(&self.shared).contents.generation.replace(generation);
        let found = locked(&self.found).replace(generation);
        if self.claims && found.is_some() && before != found {
            self.exchanged.store(true, Ordering::Relaxed);
        }
        let held = &mut *locked(&self.held);
        *held = held.map(|_| generation);
        Ok(())
    }

    fn claim(&self, generation: Generation) -> Result<bool, Broken> {
        self.set_generation(generation)?;
        if self.claims {
            *locked(&self.held) = Some(generation);
        }
        Ok(self.claims)
    }

    fn can_claim(&self) -> bool {
        self.claims
    }

    fn was_exchanged(&self) -> bool {
        self.exchanged.swap(false, Ordering::Relaxed)
    }

    fn failure(&self, error: &Broken) -> Failure {
        match error {
            Broken::Late => Failure::Unknown,
            Broken::OtherState => Failure::OtherState,
        }
    }
}
