//! The generation of a store on a server, as far as a handle of it knows.
//!
//! Between two requests, a server may be restored from a backup, replaced by a replica that lags behind, or emptied. Two
//! things tell: every write of a guard that has claimed the store names the generation that the store must hold, and is
//! refused otherwise; and every new connection compares. A new generation, too, is stored only in place of one that this
//! handle has stored: a checkpoint of the wrong state would be believed for ever, and an answer that tells may be lost.
//!
//! A backup of the same generation has the right name and may lack a write that the guard has seen. Such a backup takes the
//! place of the store only while the server is down, or by way of another server. So a connection also compares the
//! server itself: its history, and when it was started. A server that does not tell is taken for another one whenever a
//! connection to it is lost, as all are when it stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::generation::Generation;

/// Attempts to store a generation that are kept in mind, while the answers are lost.
const MOST_ATTEMPTS: usize = 16;

/// See the module documentation. `S` is all that tells one server from another.
#[derive(Debug)]
pub(super) struct Naming<S> {
    names: Mutex<Names<S>>,
    exchanged: AtomicBool,
}

/// A server, as a connection has found it.
#[derive(Debug, PartialEq)]
enum Server<S> {
    NotMet,
    /// It does not tell.
    Unknown,
    Known(S),
}

#[derive(Debug)]
struct Names<S> {
    server: Server<S>,
    held: Option<Generation>,
    /// Being stored, or tried to be: the store may hold one of them already.
    coming: Vec<Generation>,
    /// Whether it is that of a checkpoint, or the handle is newly opened: see `seal.rs`.
    sealed: bool,
    claimed: bool,
    /// How many writes the store has counted, or what else only grows.
    counted: u64,
}

impl<S: PartialEq> Naming<S> {
    /// Of a newly opened handle.
    pub(super) fn new() -> Self {
        let names = Names {
            server: Server::NotMet,
            held: None,
            coming: Vec::new(),
            sealed: true,
            claimed: false,
            counted: 0,
        };
        Self { names: Mutex::new(names), exchanged: AtomicBool::new(false) }
    }

    fn names(&self) -> MutexGuard<'_, Names<S>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store holds this.
    pub(super) fn found(&self, generation: Option<Generation>) {
        self.names().held = generation;
    }

    /// This is about to be stored. Returns those in whose place: what the store holds, and what earlier attempts have
    /// stored, perhaps. None if nothing is known about the store.
    pub(super) fn begin(&self, generation: Generation, sealed: bool) -> Vec<Generation> {
        let mut names = self.names();
        names.sealed |= sealed;
        let known = match names.held {
            Some(held) => names.coming.iter().copied().chain([held]).collect(),
            None => Vec::new(),
        };
        if names.coming.len() == MOST_ATTEMPTS {
            names.coming.remove(0);
        }
        names.coming.push(generation);
        known
    }

    /// This has been stored.
    pub(super) fn end(&self, generation: Generation, sealed: bool) {
        let mut names = self.names();
        (names.held, names.sealed) = (Some(generation), sealed);
        names.coming.clear();
    }

    /// From now on every write names its generation.
    pub(super) fn claim(&self) {
        self.names().claimed = true;
    }

    /// The generation that the store must hold for a write.
    pub(super) fn condition(&self) -> Option<Generation> {
        let names = self.names();
        names.held.filter(|_| names.claimed)
    }

    /// Whether a write now comes from nobody who guards the store: it must forget its generation first.
    pub(super) fn is_sealed(&self) -> bool {
        self.names().sealed
    }

    /// The store has forgotten its generation.
    pub(super) fn broken(&self) {
        let mut names = self.names();
        (names.held, names.sealed, names.counted) = (None, false, 0);
    }

    /// The store has counted this many writes.
    #[cfg(feature = "redis")]
    pub(super) fn count(&self, counted: u64) {
        let mut names = self.names();
        names.counted = names.counted.max(counted);
    }

    /// What a new connection has found: if it is another server than before (`None` if it does not tell), or does not hold
    /// what this handle has stored, the store was exchanged, and earlier connections may lead to what was there before.
    #[must_use]
    pub(super) fn is_exchanged(
        &self,
        server: Option<S>,
        generation: Option<Generation>,
        counted: u64,
    ) -> bool {
        let server = server.map_or(Server::Unknown, Server::Known);
        let mut names = self.names();
        let same = match names.server {
            Server::NotMet => true,
            _ => names.server == server,
        };
        let known = generation == names.held
            || generation.is_some_and(|generation| names.coming.contains(&generation));
        let exchanged = !same || names.held.is_some() && (!known || counted < names.counted);
        if exchanged {
            self.exchanged.store(true, Ordering::Release);
        }
        (names.server, names.counted) = (server, counted);
        exchanged
    }

    /// A connection has ended by itself: the server may have been away.
    #[cfg(feature = "redis")]
    pub(super) fn lost(&self) {
        if self.names().server == Server::Unknown {
            self.exchange();
        }
    }

    /// Something else says that the store was exchanged.
    pub(super) fn exchange(&self) {
        self.exchanged.store(true, Ordering::Release);
    }

    /// Whether it was, since this was last asked.
    pub(super) fn was_exchanged(&self) -> bool {
        self.exchanged.load(Ordering::Relaxed) && self.exchanged.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_generation_or_fewer_writes_are_another_store() {
        let naming = Naming::new();
        let [first, second] = [(); 2].map(|()| Generation::fresh());
        let meets = |generation, counted| naming.is_exchanged(Some("here"), generation, counted);
        assert!(!meets(Some(first), 3), "nothing was stored yet");
        naming.begin(first, false);
        naming.end(first, false);
        assert!(!meets(Some(first), 3));
        naming.begin(second, false);
        assert!(!meets(Some(first), 3));
        assert!(!meets(Some(second), 3), "either, while it is being stored");
        assert!(!naming.was_exchanged());
        naming.end(second, false);
        assert!(meets(Some(first), 3));
        assert!(naming.was_exchanged() && !naming.was_exchanged());
        assert!(meets(None, 3));
        assert!(!meets(Some(second), 4));
        assert!(meets(Some(second), 2));
        assert_eq!(naming.begin(first, false), [second]); // and its answer is lost
        assert_eq!(naming.begin(Generation::fresh(), false), [first, second]);
        assert!(!meets(Some(first), 4), "the first attempt has worked");
    }

    #[test]
    #[cfg(feature = "redis")]
    fn another_server_is_another_store_and_so_is_one_that_does_not_tell_after_a_loss() {
        let naming = Naming::new();
        let told = ["one", "one", "two", "two", "", "", "two", "two"];
        let exchanged = told.map(|server| {
            naming.is_exchanged(Some(server).filter(|told| !told.is_empty()), None, 0)
        });
        assert_eq!(exchanged, [false, false, true, false, true, false, true, false]);
        naming.was_exchanged();
        naming.lost();
        assert!(!naming.was_exchanged(), "the next connection will tell");
        let silent = Naming::<()>::new();
        assert!(!silent.is_exchanged(None, None, 0) && !silent.was_exchanged());
        silent.lost();
        assert!(silent.was_exchanged());
    }
}
