//! Locks for writers: a key is written by one thread at a time; readers do not use them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than the number of threads likely to write at once.
pub(crate) const STRIPES: usize = 64;

/// A lock for each part of the keys.
pub(crate) struct Stripes([Mutex<()>; STRIPES]);

/// The stripe of a hash: bits that no filter takes its first place from.
#[inline]
pub(crate) fn stripe_of(hash: u64) -> usize {
    (hash >> 24) as usize % STRIPES
}

/// The stripes of many hashes, each once, in the order in which all lock them.
pub(crate) fn stripes_of(hashes: &[u64]) -> Vec<usize> {
    let mut stripes: Vec<usize> = hashes.iter().copied().map(stripe_of).collect();
    stripes.sort_unstable();
    stripes.dedup();
    stripes
}

impl Stripes {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Mutex::new(())))
    }

    /// They protect no data, so a thread that panicked has left nothing half done in them.
    fn at(&self, stripe: usize) -> MutexGuard<'_, ()> {
        self.0[stripe].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self, hash: u64) -> MutexGuard<'_, ()> {
        self.at(stripe_of(hash))
    }

    pub(crate) fn lock_many(&self, hashes: &[u64]) -> Vec<MutexGuard<'_, ()>> {
        stripes_of(hashes).into_iter().map(|stripe| self.at(stripe)).collect()
    }
}
