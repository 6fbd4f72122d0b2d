//! Locks for writers: a key is written by one at a time; readers do not use them.
//!
//! A lock is one hash, not a share of all keys: a slow write delays only writes of its own key, and a store that writes
//! another key through another thread does not wait for itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use event_listener::Event;

/// Parts of the table of locks; more than the number of threads likely to write at once.
pub(crate) const STRIPES: usize = 64;

/// The stripe of a hash: bits that no filter takes its first place from.
#[inline]
pub(crate) fn stripe_of(hash: u64) -> usize {
    (hash >> 24) as usize % STRIPES
}

/// The locks that are held.
pub(super) struct Locks([Stripe; STRIPES]);

#[derive(Default)]
struct Stripe {
    held: Mutex<Vec<u64>>,
    freed: Event,
}

impl Stripe {
    fn held(&self) -> MutexGuard<'_, Vec<u64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self, hash: u64) -> bool {
        let mut held = self.held();
        let free = !held.contains(&hash);
        if free {
            held.push(hash);
        }
        free
    }
}

/// The lock of one hash, until it is dropped.
pub(super) struct Held<'l> {
    stripe: &'l Stripe,
    hash: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.stripe.held();
        if let Some(place) = held.iter().position(|&hash| hash == self.hash) {
            held.swap_remove(place);
        }
        drop(held);
        self.stripe.freed.notify(usize::MAX);
    }
}

impl Locks {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| Stripe::default()))
    }

    pub(super) async fn lock(&self, hash: u64) -> Held<'_> {
        let stripe = &self.0[stripe_of(hash)];
        loop {
            if stripe.try_lock(hash) {
                return Held { stripe, hash };
            }
            let freed = stripe.freed.listen();
            // It may have been freed before the listener was there.
            if stripe.try_lock(hash) {
                return Held { stripe, hash };
            }
            freed.await;
        }
    }

    /// Each once, in the order in which all lock them.
    pub(super) async fn lock_many(&self, hashes: &[u64]) -> Vec<Held<'_>> {
        let mut hashes = hashes.to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        let mut held = Vec::with_capacity(hashes.len());
        for hash in hashes {
            held.push(self.lock(hash).await);
        }
        held
    }
}
