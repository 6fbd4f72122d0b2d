//! Puts and removes from the filter's point of view: how each begins and ends.
//!
//! ```text
//!   begin: gate held     the store writes: no gate held     end: gate held
//!   ────[ filter + ]────────────────────────────────────────[ filter ± ]────►
//! ```
//!
//! A put is *in progress* between the two, and may stay so for long. Replacing the filter or writing a checkpoint holds
//! all gates for a moment and finds every put either not begun, in progress and known by its hash, or ended. Nobody
//! waits for a store.
//!
//! A put ends when its [`Pending`] is dropped, whatever the reason: an answer, an error, a panic, or a future that is
//! no longer polled. All but the first leave its key [in doubt](crate::doubts).

use std::sync::atomic::Ordering;

use super::{Answer, Front, State};
use crate::backend::Before;

/// What the filter knew about a key when its put began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Certainly not stored.
    New,
    /// Stored, or a false positive.
    Known,
    /// There was no filter.
    Unknown,
}

/// A put that is in progress.
pub(crate) struct Pending<'f> {
    front: &'f Front,
    hash: u64,
    seen: Seen,
    /// Which filter it began with.
    exchange: u64,
    ended: bool,
}

impl Pending<'_> {
    /// The store has answered. True if that proves that others have written to it: it had the key, and the filter was
    /// certain that it did not.
    pub(crate) fn end(mut self, before: Before) -> bool {
        self.ended = true;
        self.front.end_put(&self, Some(before))
    }

    /// The store has certainly not written the key, and never will.
    pub(crate) fn cancel(mut self) {
        self.ended = true;
        self.front.cancel_put(&self);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.front.end_put(self, None);
        }
    }
}

/// A remove that is in progress: the filter it began with.
#[derive(Clone, Copy)]
pub(crate) struct Removing {
    exchange: u64,
}

impl Front {
    /// A key is about to be put; the caller holds its lock. `None` if the store needs a new generation first.
    pub(crate) fn begin_put(&self, hash: u64) -> Option<Pending<'_>> {
        let mut gate = self.gate(hash);
        if self.is_clean() {
            return None;
        }
        let state = self.state.load();
        let doubtful = state.doubts.contains(hash);
        if !self.spec.kind.can_remove()
            && let Some(next) = &state.next
        {
            next.insert_bits(hash, self.spec.kind);
        }
        let seen = match &state.current {
            None => Seen::Unknown,
            // Where copies stay, a key that looks present needs no other.
            Some(filter) => {
                match !(self.keeps_copies() && filter.contains(hash)) && filter.insert(hash) {
                    _ if filter.is_blind() => Seen::Unknown,
                    true if !doubtful => Seen::New,
                    _ => Seen::Known,
                }
            }
        };
        gate.push(hash);
        self.forget_absent(hash);
        let exchange = self.exchanges.load(Ordering::Relaxed);
        Some(Pending { front: self, hash, seen, exchange, ended: false })
    }

    /// `before` is what the store said about the key, `None` if it is unknown whether it was written.
    fn end_put(&self, put: &Pending<'_>, before: Option<Before>) -> bool {
        let mut gate = self.gate(put.hash);
        take(&mut gate, put.hash);
        self.forget_absent(put.hash);
        let state = self.state.load();
        if self.spec.kind.forgets() {
            // What is remembered is counted from here. A put that failed may have been stored: it is recent, too, but
            // pushes nothing out.
            if let Some(filter) = &state.current {
                filter.acknowledge(put.hash, before.is_some());
            }
            if let Some(next) = &state.next {
                next.end_put(put.hash, before.is_some());
            }
            if let Some(before) = before {
                self.echoes.expect(put.hash, before);
            }
            return false;
        }
        if before.is_none() {
            state.doubt(put.hash);
        }
        let same_filter = put.exchange == self.exchanges.load(Ordering::Relaxed);
        let foreign = before == Some(Before::Present) && put.seen == Seen::New && same_filter;
        if self.spec.kind.can_remove() {
            self.settle_copies(&state, put, before, same_filter && !foreign);
        }
        if !self.removes_copies() && before == Some(Before::Absent) && put.seen == Seen::Known {
            // The filter knew a key that the store did not: most likely a dead key that is live again.
            let _ = self
                .dead
                .try_update(Ordering::Relaxed, Ordering::Relaxed, |dead| dead.checked_sub(1));
        }
        foreign
    }

    /// The put did not happen: its copy goes again, where it is certainly the one that it inserted.
    fn cancel_put(&self, put: &Pending<'_>) {
        let mut gate = self.gate(put.hash);
        take(&mut gate, put.hash);
        if self.spec.kind.forgets() || put.seen == Seen::Unknown {
            return;
        }
        let state = self.state.load();
        match &state.current {
            Some(filter)
                if self.removes_copies()
                    && put.exchange == self.exchanges.load(Ordering::Relaxed) =>
            {
                filter.remove(put.hash);
            }
            _ => {
                self.dead.fetch_add(u64::from(put.seen == Seen::New), Ordering::Relaxed);
            }
        }
    }

    /// Whether copies are ever removed from a filter that counts them. Not where others write to the store: a key that they
    /// have stored has no copy if it looked present when they told, and needs the one by which it did.
    fn removes_copies(&self) -> bool {
        self.spec.kind.can_remove() && self.alone
    }

    fn keeps_copies(&self) -> bool {
        self.spec.kind.can_remove() && !self.alone
    }

    /// The copy that the put inserted stays if the key has no other, which `exact` says is known.
    fn settle_copies(&self, state: &State, put: &Pending<'_>, before: Option<Before>, exact: bool) {
        if before != Some(Before::Absent) {
            if exact && before != Some(Before::Unknown) && self.removes_copies() {
                // A stored key has its copy, one in doubt needs none.
                state.current.iter().for_each(|filter| filter.remove(put.hash));
            } else if self.removes_copies() || put.seen != Seen::Known {
                self.dead.fetch_add(1, Ordering::Relaxed); // one too many, perhaps
            }
        }
        // A key that was stored before is in the scan, unless the filter is not certain of that.
        let scanned = before == Some(Before::Present) && put.seen == Seen::Known;
        if let (Some(next), Some(_), false) = (&state.next, before, scanned) {
            next.insert(put.hash);
        }
    }

    /// The indices of the keys that must be removed from the store: those that may be there, and for a window all of
    /// them, since it may have forgotten them.
    pub(crate) fn may_be_removed(&self, hashes: &[u64]) -> Vec<usize> {
        let forgets = self.spec.kind.forgets();
        let may_be = |&i: &usize| forgets || self.ask(hashes[i]) != Answer::Absent;
        (0..hashes.len()).filter(may_be).collect()
    }

    /// A key is about to be removed; the caller holds its lock. `None` if the store needs a new generation first.
    pub(crate) fn begin_remove(&self, hash: u64) -> Option<Removing> {
        let _gate = self.gate(hash);
        let exchange = self.exchanges.load(Ordering::Relaxed);
        (!self.is_clean()).then_some(Removing { exchange })
    }

    /// The store has removed the key, if it had it; the caller still holds its lock.
    ///
    /// A filter that counts copies is updated only if it has certainly seen the key's insertion: otherwise the copy
    /// removed would belong to another key. It may not have seen it if others can write to the store, if the key is in
    /// doubt, or if the filter was made from a scan that may have come after the removal.
    pub(crate) fn end_remove(&self, hash: u64, removing: Removing, before: Before) {
        if before == Before::Absent {
            return;
        }
        let _gate = self.gate(hash);
        let state = self.state.load();
        let seen = before == Before::Present
            && removing.exchange == self.exchanges.load(Ordering::Relaxed)
            && !state.doubts.contains(hash);
        match &state.current {
            Some(filter) if self.removes_copies() && seen => filter.remove(hash),
            _ => {
                self.dead.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(next) = &state.next {
            next.add_dead();
        }
    }

    /// Someone else has stored this key; the caller holds its lock. False if the store needs a new generation first.
    pub(crate) fn note(&self, hash: u64) -> bool {
        let _gate = self.gate(hash);
        if self.is_clean() {
            return false;
        }
        self.forget_absent(hash);
        let state = self.state.load();
        if self.spec.kind.forgets() {
            let counts = !self.echoes.is_own(hash); // an own put has counted
            if let Some(filter) = &state.current {
                filter.insert(hash);
                filter.acknowledge(hash, counts);
            }
            if let Some(next) = &state.next {
                next.end_put(hash, counts);
            }
            return true;
        }
        // Where copies are never removed, it is enough that the key looks present.
        if let Some(filter) = &state.current
            && (self.alone || !filter.contains(hash))
        {
            let new = filter.insert(hash);
            if !new && self.spec.kind.can_remove() {
                self.dead.fetch_add(1, Ordering::Relaxed); // its second copy, most likely
            }
        }
        if let Some(next) = &state.next {
            next.insert(hash);
        }
        true
    }

    /// Someone else has removed this key: it is dead in the filter, if it is there.
    pub(crate) fn note_removed(&self, hash: u64) {
        let _gate = self.gate(hash);
        let state = self.state.load();
        if state.current.as_ref().is_some_and(|filter| !filter.is_blind() && filter.contains(hash))
        {
            self.dead.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(next) = &state.next {
            next.add_dead();
        }
    }
}

/// Takes a put that has ended out of those in progress.
fn take(under_way: &mut Vec<u64>, hash: u64) {
    if let Some(place) = under_way.iter().position(|&other| other == hash) {
        under_way.swap_remove(place);
    }
}

impl State {
    /// It is unknown whether this key is, or will be, stored.
    fn doubt(&self, hash: u64) {
        self.doubts.insert(hash);
        if let Some(next) = self.next.as_ref().and_then(|next| next.doubts())
            && !std::sync::Arc::ptr_eq(next, &self.doubts)
        {
            next.insert(hash);
        }
    }
}
