//! The side of a guard that faces the caller: the filter, and how it is exchanged for a new one. Knows no store.
//!
//! ```text
//!              state ──► current ◄── readers, without a lock
//!                 │         ▲
//!  writers ───────┤         └─ writers, each key's under its stripe
//!                 │         ▼
//!                 └────► next, while a rebuild fills it from a scan
//! ```
//!
//! **The state changes only while all stripes are held**, so a writer sees one state from the beginning to the end of its
//! put or remove. A rebuild is then right for these reasons:
//!
//! - A put that ended before `next` was there is in the store before the scan begins, so the scan visits it. Every later
//!   one puts its key into `next` itself.
//! - Nothing is ever taken out of `next` before it becomes `current`. A key that is removed meanwhile may stay in it: a
//!   dead key, as a false positive.
//! - Filters that can remove count copies, one for each stored key. In `next` a key may have two: of its put and of the
//!   scan. One too many is a dead key once the key is removed; one too few would be a wrong answer. A key that is put
//!   and removed over and over during one rebuild is inserted twice at most: its earlier copies are all still there, and
//!   the second is for another key that might have the same hash.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use ironbloom::ParamError;

use crate::filter::SharedFilter;
use crate::options::{Options, Plan};
use crate::stats::{Counters, Stats};

/// Copies of one hash that puts insert into a filter that is being built.
const MOST_COPIES: u8 = 2;

/// How many keys more than there are a new filter is planned for, at least: a rebuild is not to be followed by another at
/// once.
const HEADROOM: f64 = 1.25;

/// See the module header.
pub(crate) struct Front {
    plan: Plan,
    most_dead: f64,
    state: ArcSwap<State>,
    /// Keys in the filter that are no longer in the store, as far as is known.
    dead: AtomicU64,
    rebuilds: AtomicU64,
}

/// What the filter says of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Certainly not stored.
    Absent,
    /// Stored, or a false positive.
    Maybe,
    /// The filter is not there yet.
    Unknown,
}

struct State {
    current: Arc<SharedFilter>,
    next: Option<Arc<Next>>,
}

/// A filter that is being built.
pub(crate) struct Next {
    filter: Arc<SharedFilter>,
    /// How often a hash was inserted by puts, for filters that count copies.
    put: Mutex<HashMap<u64, u8>>,
    dead: AtomicU64,
}

impl Front {
    /// The filter that a guard begins with when no checkpoint covers its store. Not the one that a scan will make.
    pub(crate) fn start(&self, store_is_empty: bool) -> Result<(), ParamError> {
        let filter = || SharedFilter::new(&self.plan, 0);
        if store_is_empty {
            self.install(filter()?, 0);
        } else if !self.plan.kind.can_rebuild() {
            self.install(filter()?.blind(), 0);
        }
        Ok(())
    }

    /// With a filter that knows nothing yet.
    pub(crate) fn new(options: &Options) -> Self {
        let state = State { current: Arc::new(SharedFilter::Open), next: None };
        Self {
            plan: options.plan,
            most_dead: options.most_dead,
            state: ArcSwap::from_pointee(state),
            dead: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.plan.hash_fn.hash(key)
    }

    /// Might the key with this hash be stored?
    #[inline]
    pub(crate) fn ask(&self, hash: u64) -> Answer {
        let state = self.state.load();
        match state.current.contains(hash) {
            false => Answer::Absent,
            true if state.current.is_open() => Answer::Unknown,
            true => Answer::Maybe,
        }
    }

    /// `found[i]` tells whether the key with `hashes[i]` might be stored. The answer for those that might: `Maybe`, or
    /// `Unknown` if the filter knows nothing.
    pub(crate) fn ask_many(&self, hashes: &[u64], found: &mut [bool]) -> Answer {
        let state = self.state.load();
        if state.current.is_open() {
            found.fill(true);
            return Answer::Unknown;
        }
        state.current.contains_many(hashes, found);
        Answer::Maybe
    }

    /// The filter that answers.
    pub(crate) fn current(&self) -> Arc<SharedFilter> {
        self.state.load().current.clone()
    }

    /// A key is about to be put; the caller holds its stripe. True if the filter did not know it.
    pub(crate) fn before_put(&self, hash: u64) -> bool {
        let state = self.state.load();
        if !self.plan.kind.can_remove()
            && let Some(next) = &state.next
        {
            next.filter.insert(hash);
        }
        state.current.insert(hash)
    }

    /// The key was put; the caller still holds its stripe. `stored_before` is what the store said of it, `None` if it
    /// failed, so that nobody knows.
    pub(crate) fn after_put(&self, hash: u64, looked_new: bool, stored_before: Option<bool>) {
        let state = self.state.load();
        if !self.plan.kind.can_remove() {
            if stored_before == Some(false) && !looked_new {
                // The filter knew a key that the store did not: most likely one that was dead and lives again.
                let _ = self
                    .dead
                    .try_update(Ordering::Relaxed, Ordering::Relaxed, |dead| dead.checked_sub(1));
            }
        } else if stored_before == Some(true) {
            state.current.remove(hash); // its copy was there already
        } else if let Some(next) = &state.next {
            next.insert_copy(hash);
        }
    }

    /// A key was removed from the store; the caller holds its stripe.
    pub(crate) fn after_remove(&self, hash: u64) {
        let state = self.state.load();
        if self.plan.kind.can_remove() && !matches!(*state.current, SharedFilter::Open) {
            state.current.remove(hash);
        } else {
            self.dead.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(next) = &state.next {
            next.dead.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Somebody else has stored this key. The caller holds its stripe.
    pub(crate) fn note(&self, hash: u64) {
        let state = self.state.load();
        state.current.insert(hash);
        if let Some(next) = &state.next {
            next.filter.insert(hash);
        }
    }

    /// Whether the filter should be built anew.
    pub(crate) fn wants_rebuild(&self) -> bool {
        let state = self.state.load();
        if !self.plan.kind.can_rebuild() || state.next.is_some() {
            return false;
        }
        let (len, dead) = (state.current.len(), self.dead());
        state.current.is_open()
            || state.current.is_over_capacity()
            || dead as f64 > self.most_dead * len.max(MANY_DEAD) as f64
    }

    /// A filter to be filled, for so many keys, or as many as the current one holds.
    pub(crate) fn plan_next(&self, keys: Option<u64>) -> Result<Next, ParamError> {
        let known = self.len().saturating_sub(self.dead());
        let keys = keys.unwrap_or(0).max(known);
        let wanted = if keys > self.plan.capacity { (keys as f64 * HEADROOM) as u64 } else { 0 };
        Ok(Next::new(SharedFilter::new(&self.plan, wanted)?))
    }

    /// From now on writers write to this filter, too. The caller holds all stripes.
    pub(crate) fn begin(&self, next: Arc<Next>) {
        let current = self.current();
        self.state.store(Arc::new(State { current, next: Some(next) }));
    }

    /// Exchanges the filters, unless this one was given up meanwhile. The caller holds all stripes.
    pub(crate) fn finish(&self, next: &Arc<Next>) {
        if !self.state.load().next.as_ref().is_some_and(|now| Arc::ptr_eq(now, next)) {
            return;
        }
        self.dead.store(next.dead.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.store(Arc::new(State { current: next.filter.clone(), next: None }));
    }

    /// Gives a filter up that was to be filled. Who writes to it meanwhile writes to nothing.
    pub(crate) fn abandon(&self) {
        let current = self.current();
        self.state.store(Arc::new(State { current, next: None }));
    }

    /// A filter that is known to be whole. The caller holds all stripes, or has shown the guard to nobody yet.
    pub(crate) fn install(&self, filter: SharedFilter, dead: u64) {
        self.dead.store(dead, Ordering::Relaxed);
        self.state.store(Arc::new(State { current: Arc::new(filter), next: None }));
    }

    pub(crate) fn count_rebuild(&self) {
        self.rebuilds.fetch_add(1, Ordering::Relaxed);
    }

    /// What is to be said of the filter and the lookups that were counted.
    pub(crate) fn stats(&self, counters: &Counters) -> Stats {
        let filter = self.current();
        let mut totals = counters.totals();
        totals.rebuilds += self.rebuilds.load(Ordering::Relaxed);
        totals.keys = filter.len();
        totals.bytes = filter.size_in_bytes();
        Stats {
            kind: self.plan.kind,
            rate: self.plan.rate,
            keys: totals.keys,
            capacity: filter.capacity(),
            dead: self.dead(),
            filter_bytes: totals.bytes,
            rebuilds: totals.rebuilds,
            totals,
        }
    }

    /// Keys in the filter.
    pub(crate) fn len(&self) -> u64 {
        self.state.load().current.len()
    }

    /// Keys in the filter that are no longer in the store, as far as is known.
    pub(crate) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }
}

/// Fewer dead keys than a share of this are not worth a scan.
const MANY_DEAD: u64 = 1000;

impl Next {
    pub(crate) fn new(filter: SharedFilter) -> Self {
        Self { filter: Arc::new(filter), put: Mutex::default(), dead: AtomicU64::new(0) }
    }

    pub(crate) fn with_dead(self, dead: u64) -> Self {
        self.dead.store(dead, Ordering::Relaxed);
        self
    }

    /// Keys that a scan has found; their order is lost.
    pub(crate) fn absorb(&self, hashes: &mut [u64]) {
        self.filter.insert_many(hashes);
    }

    fn insert_copy(&self, hash: u64) {
        let mut put = self.put.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = put.entry(hash).or_default();
        if *copies < MOST_COPIES {
            *copies += 1;
            drop(put);
            self.filter.insert(hash);
        }
    }
}
