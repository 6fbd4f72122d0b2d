//! A filter that is to take the place of the current one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::doubts::Doubts;
use crate::filter::SharedFilter;
use crate::kind::GuardKind;

/// Copies of one hash that puts insert into a filter that is being built.
const MAX_COPIES: u8 = 2;

/// A filter that a scan fills, or one that is being read from a checkpoint: then puts are recorded meanwhile, and
/// inserted when it has arrived.
pub(crate) struct Next {
    filter: Option<Arc<dyn SharedFilter>>,
    put: Mutex<Put>,
    dead: AtomicU64,
    /// What will be in doubt once the filter is in place: everything in doubt now, or only what comes from now on.
    doubts: OnceLock<Arc<Doubts>>,
}

/// What was put meanwhile.
enum Put {
    /// How often each hash.
    Copies(HashMap<u64, u8>),
    /// Each put that has ended, in this order, which is what a window remembers, and whether it counts.
    InOrder(Vec<(u64, bool)>),
}

impl Next {
    /// To be filled.
    pub(crate) fn new(filter: Arc<dyn SharedFilter>, kind: GuardKind) -> Self {
        Self { filter: Some(filter), ..Self::awaited(kind) }
    }

    /// Not there yet.
    pub(crate) fn awaited(kind: GuardKind) -> Self {
        let put = match kind.forgets() {
            true => Put::InOrder(Vec::new()),
            false => Put::Copies(HashMap::new()),
        };
        let (put, dead) = (Mutex::new(put), AtomicU64::new(0));
        Self { filter: None, put, dead, doubts: OnceLock::new() }
    }

    /// Keys found by a scan; their order is lost.
    pub(crate) fn absorb(&self, hashes: &mut [u64]) {
        if let Some(filter) = &self.filter {
            filter.insert_many(hashes);
        }
    }

    /// A key was put.
    pub(super) fn insert(&self, hash: u64) {
        self.end_put(hash, true);
    }

    /// A key was put; a window counts it if the store has acknowledged it.
    pub(super) fn end_put(&self, hash: u64, counts: bool) {
        let mut put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *put {
            Put::InOrder(hashes) => hashes.push((hash, counts)),
            Put::Copies(hashes) => {
                let copies = hashes.entry(hash).or_default();
                if *copies < MAX_COPIES {
                    *copies += 1;
                    drop(put);
                    if let Some(filter) = &self.filter {
                        filter.insert(hash);
                    }
                }
            }
        }
    }

    /// The put of a key begins, in front of a filter of bits, where it does not matter how often it is inserted. A
    /// window counts it when it ends.
    pub(super) fn insert_bits(&self, hash: u64, kind: GuardKind) {
        match &self.filter {
            Some(filter) => {
                filter.insert(hash);
            }
            None if kind.forgets() => {}
            None => self.insert(hash),
        }
    }

    pub(super) fn add_dead(&self) {
        self.dead.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }

    pub(super) fn set_doubts(&self, doubts: Arc<Doubts>) {
        let _ = self.doubts.set(doubts);
    }

    pub(super) fn doubts(&self) -> Option<&Arc<Doubts>> {
        self.doubts.get()
    }

    /// The filter that a scan has filled.
    pub(super) fn filled(&self) -> Option<Arc<dyn SharedFilter>> {
        self.filter.clone()
    }

    /// What was put while the filter was awaited goes into it.
    pub(super) fn catch_up(&self, filter: &dyn SharedFilter) {
        let put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        match &*put {
            Put::InOrder(hashes) => {
                for &(hash, counts) in hashes {
                    filter.insert(hash);
                    filter.acknowledge(hash, counts);
                }
            }
            Put::Copies(hashes) => {
                for (&hash, &copies) in hashes {
                    (0..copies).for_each(|_| {
                        filter.insert(hash);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[test]
    fn a_window_that_arrives_late_remembers_the_latest_puts() {
        let spec = Options::new(GuardKind::Windowed, 100, 0.001).spec;
        let hash = |i: u64| spec.hash_fn.hash(i);
        let window = crate::filter::empty(&spec, 0).unwrap();
        let next = Next::awaited(GuardKind::Windowed);
        for i in 0..1000 {
            next.insert_bits(hash(i), GuardKind::Windowed); // begins
            next.insert(hash(i)); // ends
        }
        next.insert_bits(hash(5000), GuardKind::Windowed);
        next.catch_up(&*window);
        assert!((900..1000).all(|i| window.contains(hash(i))));
        let older = (0..800).filter(|&i| window.contains(hash(i))).count();
        assert!(older < 20, "{older} of 800 that should be forgotten");
    }
}
