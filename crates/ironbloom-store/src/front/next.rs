//! A filter that is to take the place of the current one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::doubts::Doubts;
use crate::filter::SharedFilter;

/// Copies of one hash that puts insert into a filter that is being built.
const MOST_COPIES: u8 = 2;

/// A filter that a scan fills, or one that is being read from a checkpoint: then puts are recorded meanwhile, and
/// inserted when it has arrived.
pub(crate) struct Next {
    filter: Option<Arc<SharedFilter>>,
    /// How often a hash was put meanwhile.
    put: Mutex<HashMap<u64, u8>>,
    dead: AtomicU64,
    /// What will be in doubt once the filter is in place: everything in doubt now, or only what comes from now on.
    doubts: OnceLock<Arc<Doubts>>,
}

impl Next {
    /// To be filled.
    pub(crate) fn new(filter: SharedFilter) -> Self {
        Self { filter: Some(Arc::new(filter)), ..Self::awaited() }
    }

    /// Not there yet.
    pub(crate) fn awaited() -> Self {
        let (put, dead) = (Mutex::default(), AtomicU64::new(0));
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
        let mut put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = put.entry(hash).or_default();
        if *copies < MOST_COPIES {
            *copies += 1;
            drop(put);
            if let Some(filter) = &self.filter {
                filter.insert(hash);
            }
        }
    }

    /// The same for filters of bits, where it does not matter how often.
    pub(super) fn insert_bits(&self, hash: u64) {
        match &self.filter {
            Some(filter) => {
                filter.insert(hash);
            }
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
    pub(super) fn filled(&self) -> Option<Arc<SharedFilter>> {
        self.filter.clone()
    }

    /// What was put while the filter was awaited goes into it.
    pub(super) fn catch_up(&self, filter: &SharedFilter) {
        let put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        for (&hash, &copies) in put.iter() {
            for _ in 0..copies {
                filter.insert(hash);
            }
        }
    }
}
