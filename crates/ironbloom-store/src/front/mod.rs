//! The front end of a guard: the filter, and how it is replaced by a new one. Independent of the store.
//!
//! ```text
//!              state ──► current ◄── readers, without a lock
//!                 │         ▲
//!  writers ───────┤         └─ writers, each at its key's gate
//!                 │         ▼
//!                 └────► next, while a rebuild fills it from a scan
//! ```
//!
//! **The state changes only while all gates are held**, and a put or remove holds its gate when it begins and when it
//! ends (`writes.rs`), but not while the store writes. A rebuild is then correct for these reasons:
//!
//! - A put that ended before `next` was there is in the store before the scan begins, so the scan visits it. One that
//!   was in progress or comes later puts its key into `next` when it ends, or is in progress when `next` takes its
//!   place: then the swap itself inserts it.
//! - Nothing is ever removed from `next` before it becomes `current`. A key removed meanwhile may stay in it: a dead
//!   key, as a false positive. A remove that began with the old filter removes nothing from the new one.
//! - Filters that can remove count copies, one for each stored key. In `next` a key may have two: of its put and of the
//!   scan. One too many is a dead key once the key is removed; one too few would be a wrong answer. A key that is put
//!   and removed over and over during one rebuild is inserted twice at most: its earlier copies are all still there, and
//!   the second is for another key that might have the same hash.
//! - Keys in doubt are kept outside the filter (`doubts.rs`), and stay there.
//!
//! A checkpoint is the filter of one moment at which all gates are held: [`Front::freeze`].

mod echoes;
mod next;
mod remembered;
mod writes;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use ironbloom::ParamError;

use self::echoes::Echoes;
pub(crate) use self::next::Next;
use self::remembered::Remembered;
pub(crate) use self::writes::{Pending, Removing};
use crate::doubts::Doubts;
use crate::filter::{self, SharedFilter};
use crate::guard::{STRIPES, stripe_of};
use crate::options::{FilterSpec, Options};
use crate::stats::{Counters, Stats};

/// Minimum headroom of a new filter, in keys: a rebuild should not be followed immediately by another.
const HEADROOM: f64 = 1.25;

/// See the module documentation.
pub(crate) struct Front {
    spec: FilterSpec,
    max_dead: f64,
    /// Whether nobody else writes to the store, so that a removed key was once inserted here.
    alone: bool,
    lands_within: Option<Duration>,
    state: ArcSwap<State>,
    /// One for each stripe: the hashes of the puts that are in progress.
    gates: [Mutex<Vec<u64>>; STRIPES],
    /// How many puts have begun and ended, and keys were noted, at each gate.
    begun: [AtomicU64; STRIPES],
    /// False positives that need not be looked up again; see `remembered.rs`.
    remembered: Option<Remembered>,
    /// Whether a follower hears what others write: 0 if there is none.
    hearing: AtomicU8,
    /// Own puts that it will hear of; for a window.
    echoes: Echoes,
    /// Whether a checkpoint of the store's generation may be there: then nothing begins before the store has a new one.
    /// Set while all gates are held.
    clean: AtomicBool,
    /// How often `current` was replaced.
    exchanges: AtomicU64,
    /// Keys in the filter that are no longer in the store, as far as is known.
    dead: AtomicU64,
    rebuilds: AtomicU64,
    failed_rebuilds: AtomicU64,
    foreign: AtomicU64,
}

/// A follower is there, and hears.
const HEARS: u8 = 1;
/// A follower was there, and what others have written since is not known.
const DEAF: u8 = 2;

/// What the filter says about a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Certainly not stored.
    Absent,
    /// Stored, or a false positive.
    Maybe,
    /// The filter does not exist yet.
    Unknown,
}

struct State {
    /// `None` while nothing is known about the store: every key may be there.
    current: Option<Arc<dyn SharedFilter>>,
    next: Option<Arc<Next>>,
    doubts: Arc<Doubts>,
}

/// The filter of one moment, for a checkpoint.
pub(crate) struct Snapshot {
    pub(crate) filter: Arc<dyn SharedFilter>,
    pub(crate) dead: u64,
    doubts: Arc<Doubts>,
    /// Which filter it is.
    exchange: u64,
    /// Puts that were in progress: the store may have them, or get them later.
    under_way: Vec<u64>,
}

impl Snapshot {
    /// The keys in doubt, as they are saved. More than there were at that moment are harmless.
    pub(crate) fn doubts(&self) -> Vec<u8> {
        self.doubts.to_bytes(&self.under_way)
    }
}

impl Front {
    /// With a filter that knows nothing yet. `alone` means that nobody else writes to the store.
    pub(crate) fn new(
        options: &Options,
        spec: FilterSpec,
        doubts: Doubts,
        alone: bool,
        lands_within: Option<Duration>,
    ) -> Self {
        let doubts = Arc::new(doubts);
        let state = State { current: None, next: None, doubts };
        Self {
            spec,
            max_dead: options.max_dead,
            alone,
            lands_within: options.lands_within.or(lands_within),
            state: ArcSwap::from_pointee(state),
            gates: std::array::from_fn(|_| Mutex::default()),
            begun: std::array::from_fn(|_| AtomicU64::new(0)),
            remembered: (options.remember && !spec.kind.forgets())
                .then(|| Remembered::new(spec.capacity)),
            hearing: AtomicU8::new(0),
            echoes: Echoes::default(),
            // Even if no checkpoint was used: there may be one of this generation that was rejected, and would be
            // accepted after a write that it has not seen.
            clean: AtomicBool::new(true),
            exchanges: AtomicU64::new(0),
            dead: AtomicU64::new(0),
            rebuilds: AtomicU64::new(0),
            failed_rebuilds: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
        }
    }

    /// The filter that a guard starts with when no checkpoint covers its store. Not the one that a scan will build.
    pub(crate) fn start(&self, store_is_empty: bool) -> Result<(), ParamError> {
        if store_is_empty {
            self.install(filter::empty(&self.spec, 0)?, 0);
        } else if self.spec.kind.forgets() {
            self.install(self.blind_filter()?, 0);
        }
        Ok(())
    }

    /// An empty filter that does not know what the store holds, and says so until it does.
    fn blind_filter(&self) -> Result<Arc<dyn SharedFilter>, ParamError> {
        let filter = filter::empty(&self.spec, 0)?;
        filter.go_blind();
        Ok(filter)
    }

    pub(crate) fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Whether nobody else writes to the store.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.spec.hash_fn.hash(key)
    }

    /// Might the key with this hash be stored?
    #[inline]
    pub(crate) fn ask(&self, hash: u64) -> Answer {
        let state = self.state.load();
        let Some(filter) = &state.current else { return Answer::Unknown };
        if !filter.contains(hash) {
            return if state.doubts.contains(hash) { Answer::Maybe } else { Answer::Absent };
        }
        let known = self.remembered.as_ref().is_some_and(|known| known.contains(hash));
        match known && !state.doubts.contains(hash) {
            true => Answer::Absent,
            false if filter.is_blind() => Answer::Unknown,
            false => Answer::Maybe,
        }
    }

    /// Whether a key that the store holds came without the guard: the filter still does not know it. A window may have
    /// forgotten it.
    pub(crate) fn is_foreign(&self, hash: u64) -> bool {
        !self.spec.kind.forgets() && self.ask(hash) == Answer::Absent
    }

    /// How many puts have begun and ended at the gate of this key: asked before the store is.
    #[inline]
    pub(crate) fn begun(&self, hash: u64) -> u64 {
        self.begun[stripe_of(hash)].load(Ordering::Acquire)
    }

    /// The store did not hold this key, which looked stored, some time after so many puts had begun and ended.
    pub(crate) fn remember_absent(&self, hash: u64, begun: u64) {
        let Some(remembered) = &self.remembered else { return };
        if !self.alone && self.hearing.load(Ordering::Acquire) != HEARS {
            return;
        }
        let gate = self.gate(hash);
        let state = self.state.load();
        let unchanged = self.begun(hash) == begun && !gate.contains(&hash);
        if unchanged && state.current.is_some() && !state.doubts.contains(hash) {
            remembered.insert(hash);
        }
    }

    /// A put of this key begins or ends, or someone else has stored it. The caller holds its gate.
    fn forget_absent(&self, hash: u64) {
        self.begun[stripe_of(hash)].fetch_add(1, Ordering::AcqRel);
        if let Some(remembered) = &self.remembered {
            remembered.forget(hash);
        }
    }

    /// From now on a follower hears what others write, or no longer does: then no filter is used or built.
    #[cfg(any(feature = "async-postgres", feature = "async-redis"))]
    pub(crate) fn set_hearing(&self, hears: bool) {
        self.hearing.store(if hears { HEARS } else { DEAF }, Ordering::Release);
        if !hears {
            self.echoes.end();
        }
        self.forget_filter();
    }

    /// A follower is about to subscribe, or has failed to. `overwriting` says whether the store will also tell of puts that
    /// replace a value.
    #[cfg(any(feature = "async-postgres", feature = "async-redis"))]
    pub(crate) fn await_echoes(&self, overwriting: Option<bool>) {
        match overwriting {
            Some(overwriting) if self.spec.kind.forgets() => self.echoes.begin(overwriting),
            _ => self.echoes.end(),
        }
    }

    /// Whether a follower was there that does not hear any more.
    pub(crate) fn is_deaf(&self) -> bool {
        self.hearing.load(Ordering::Acquire) == DEAF
    }

    /// `found[i]` tells whether the key with `hashes[i]` might be stored. The answer for those that might: `Maybe`, or
    /// `Unknown` if the filter knows nothing.
    pub(crate) fn ask_many(&self, hashes: &[u64], found: &mut [bool]) -> Answer {
        assert_eq!(hashes.len(), found.len(), "hashes and answers of a batch");
        let state = self.state.load();
        let Some(filter) = state.current.as_ref().filter(|filter| !filter.is_blind()) else {
            found.fill(true);
            return Answer::Unknown;
        };
        filter.contains_many(hashes, found);
        if let Some(remembered) = &self.remembered
            && remembered.len() > 0
        {
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = *found && !remembered.contains(hash);
            }
        }
        if !state.doubts.is_empty() {
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = *found || state.doubts.contains(hash);
            }
        }
        Answer::Maybe
    }

    fn gate(&self, hash: u64) -> MutexGuard<'_, Vec<u64>> {
        self.gates[stripe_of(hash)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While these are held no put or remove begins or ends.
    fn all_gates(&self) -> Vec<MutexGuard<'_, Vec<u64>>> {
        self.gates.iter().map(|gate| gate.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Whether the next write needs a new generation.
    pub(crate) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Acquire)
    }

    /// The store has a new generation, which no checkpoint has.
    pub(crate) fn allow_writes(&self) {
        self.clean.store(false, Ordering::Release);
    }

    /// The filter of this moment; and no write begins before [`allow_writes`](Self::allow_writes). `None` if the filter knows
    /// nothing.
    pub(crate) fn freeze(&self) -> Option<Snapshot> {
        let held = self.all_gates();
        let state = self.state.load();
        let filter = state.current.clone().filter(|_| !state.doubts.is_everything())?;
        self.clean.store(true, Ordering::Release);
        // A window promises nothing of a put that has not ended, and could never end a doubt.
        let gates = if self.spec.kind.can_rebuild() { &held[..] } else { &[] };
        Some(Snapshot {
            filter: filter.frozen(),
            dead: self.dead(),
            doubts: state.doubts.clone(),
            exchange: self.exchanges.load(Ordering::Relaxed),
            under_way: gates.iter().flat_map(|gate| gate.iter().copied()).collect(),
        })
    }

    /// Whether the filter of that moment is still in use.
    pub(crate) fn is_current(&self, snapshot: &Snapshot) -> bool {
        snapshot.exchange == self.exchanges.load(Ordering::Relaxed)
    }

    /// Whether a write may take effect after its writer is gone.
    pub(crate) fn lands_late(&self) -> bool {
        self.lands_within.is_some_and(|time| !time.is_zero())
    }

    /// Whether the filter should be built from a scan.
    pub(crate) fn wants_rebuild(&self) -> bool {
        let state = self.state.load();
        if !self.spec.kind.can_rebuild() || state.next.is_some() {
            return false;
        }
        if self.is_deaf() {
            return false;
        }
        let Some(filter) = &state.current else { return true };
        if state.doubts.is_everything() {
            return true;
        }
        let doubtful =
            if state.doubts.are_over(self.lands_within) { state.doubts.len() } else { 0 };
        filter.is_over_capacity()
            || (self.dead() + doubtful) as f64 > self.max_dead * filter.len().max(MANY_DEAD) as f64
    }

    /// True if there is no filter that could answer.
    pub(crate) fn lacks_filter(&self) -> bool {
        let state = self.state.load();
        state.current.is_none() || state.doubts.is_everything()
    }

    /// A filter to be filled, for this many keys, or as many as the current one holds.
    pub(crate) fn plan_next(&self, keys: Option<u64>) -> Result<Next, ParamError> {
        let known = self.len().saturating_sub(self.dead());
        let keys = keys.unwrap_or(0).max(known);
        let wanted = if keys > self.spec.capacity { (keys as f64 * HEADROOM) as u64 } else { 0 };
        Ok(Next::new(filter::empty(&self.spec, wanted)?, self.spec.kind))
    }

    /// From now on writers write to this filter, too; a scan that fills it begins after this. Doubts that can no longer
    /// come true before the scan end with it.
    pub(crate) fn begin(&self, next: Arc<Next>) {
        let gates = self.all_gates();
        let state = self.state.load();
        if !self.spec.kind.can_remove() {
            gates
                .iter()
                .flat_map(|gate| gate.iter())
                .for_each(|&hash| next.insert_bits(hash, self.spec.kind));
        }
        next.set_doubts(
            match state.doubts.are_over(self.lands_within) && !state.doubts.is_empty() {
                true => Arc::new(Doubts::new(state.doubts.hash_fn())),
                false => state.doubts.clone(),
            },
        );
        self.set(state.current.clone(), Some(next), state.doubts.clone());
    }

    /// The filter of a checkpoint will follow; until then its place is reserved, and puts are recorded.
    pub(crate) fn await_filter(&self, next: Arc<Next>) {
        let _gates = self.all_gates();
        let state = self.state.load();
        next.set_doubts(state.doubts.clone());
        self.set(state.current.clone(), Some(next), state.doubts.clone());
    }

    /// Installs a filter that a scan has filled. False if it was abandoned meanwhile.
    pub(crate) fn finish(&self, next: &Arc<Next>) -> bool {
        next.filled().is_some_and(|filter| self.exchange(next, filter, 0))
    }

    /// Installs a filter that was awaited. False if it was abandoned meanwhile.
    pub(crate) fn arrive(
        &self,
        next: &Arc<Next>,
        filter: Arc<dyn SharedFilter>,
        dead: u64,
    ) -> bool {
        self.exchange(next, filter, dead)
    }

    fn exchange(&self, next: &Arc<Next>, filter: Arc<dyn SharedFilter>, dead: u64) -> bool {
        let gates = self.all_gates();
        let state = self.state.load();
        if !state.next.as_ref().is_some_and(|now| Arc::ptr_eq(now, next)) {
            return false;
        }
        if next.filled().is_none() {
            next.catch_up(&*filter);
        }
        // What is in progress began with the old filter: this one gets the same copy.
        for &hash in gates.iter().flat_map(|gate| gate.iter()) {
            filter.insert(hash);
        }
        self.dead.store(dead + next.dead(), Ordering::Relaxed);
        self.forget_remembered(); // the scan may have found what nobody told of
        let doubts = next.doubts().unwrap_or(&state.doubts).clone();
        self.set(Some(filter), None, doubts);
        true
    }

    /// Abandons a filter that was to be filled. Writes to it meanwhile have no effect.
    pub(crate) fn abandon(&self, next: &Arc<Next>) {
        self.replace_by(next, None);
    }

    /// A filter that was awaited will not come. A window starts empty, and is blind to what was put before; without
    /// memory for it, and for other kinds, every lookup goes to the store.
    pub(crate) fn give_up(&self, next: &Arc<Next>) {
        let window = if self.spec.kind.forgets() { self.blind_filter().ok() } else { None };
        self.replace_by(next, window);
    }

    fn replace_by(&self, next: &Arc<Next>, filter: Option<Arc<dyn SharedFilter>>) {
        let _gates = self.all_gates();
        let state = self.state.load();
        if state.next.as_ref().is_some_and(|now| Arc::ptr_eq(now, next)) {
            let current = filter.or_else(|| state.current.clone());
            self.set(current, None, state.doubts.clone());
        }
    }

    /// The filter as it is now, with every key whose put has ended; `None` if it knows nothing.
    pub(crate) fn filter_now(&self) -> Option<Arc<dyn SharedFilter>> {
        let _gates = self.all_gates(); // which orders this after those puts
        self.state.load().current.clone().filter(|filter| !filter.is_blind())
    }

    /// Others have written to the store: the filter does not know all keys, and neither does one that is being filled
    /// from a scan that began before. From now on every lookup goes to the store, until the filter is rebuilt.
    pub(crate) fn distrust(&self) {
        self.foreign.fetch_add(1, Ordering::Relaxed);
        self.forget_filter();
    }

    /// The same, if it is not known whether others have written. A window starts again, blind to what was put before.
    pub(crate) fn forget_filter(&self) {
        let _gates = self.all_gates();
        self.forget_all();
    }

    /// The store is in another state than the filter describes, perhaps with an older generation: nothing is written
    /// before it has a new one.
    pub(crate) fn lose_state(&self) {
        let _gates = self.all_gates();
        // A write that was refused and the generation that follows tell of the same.
        let known = self.state.load().current.as_ref().is_none_or(|filter| filter.is_blind());
        if !known || !self.is_clean() {
            self.foreign.fetch_add(1, Ordering::Relaxed);
        }
        self.clean.store(true, Ordering::Release);
        self.forget_all();
    }

    /// The caller holds all gates.
    fn forget_all(&self) {
        let doubts = self.state.load().doubts.clone();
        let window = if self.spec.kind.forgets() { self.blind_filter().ok() } else { None };
        self.set(window, None, doubts);
        self.forget_remembered();
    }

    /// What was learned of absent keys is over, also by lookups that have asked the store and not yet told. The caller
    /// holds all gates.
    fn forget_remembered(&self) {
        if let Some(remembered) = &self.remembered {
            for begun in &self.begun {
                begun.fetch_add(1, Ordering::AcqRel);
            }
            remembered.forget_all();
        }
    }

    /// Writes of earlier guards may still take effect, and it is not known which.
    pub(crate) fn doubt_everything(&self) {
        self.exchange_doubts(Doubts::everything(self.spec.hash_fn));
    }

    /// No earlier write can take effect any more, and the filter is yet to be built.
    pub(crate) fn believe_again(&self) {
        self.exchange_doubts(Doubts::new(self.spec.hash_fn));
    }

    fn exchange_doubts(&self, doubts: Doubts) {
        let _gates = self.all_gates();
        let state = self.state.load();
        self.set(state.current.clone(), state.next.clone(), Arc::new(doubts));
    }

    pub(crate) fn is_all_in_doubt(&self) -> bool {
        self.state.load().doubts.is_everything()
    }

    /// Whether no write that is in doubt can take effect any more.
    pub(crate) fn doubts_are_over(&self) -> bool {
        self.state.load().doubts.are_over(self.lands_within)
    }

    /// No write that is in doubt now can take effect any more, so that a scan that starts later ends the doubts.
    pub(crate) fn settle_doubts(&self) {
        self.state.load().doubts.settle();
    }

    /// A filter that is known to be complete, in a guard that nobody uses yet.
    pub(crate) fn install(&self, filter: Arc<dyn SharedFilter>, dead: u64) {
        self.dead.store(dead, Ordering::Relaxed);
        let doubts = self.state.load().doubts.clone();
        self.set(Some(filter), None, doubts);
    }

    fn set(
        &self,
        current: Option<Arc<dyn SharedFilter>>,
        next: Option<Arc<Next>>,
        doubts: Arc<Doubts>,
    ) {
        let address = |filter: &Option<Arc<dyn SharedFilter>>| {
            filter.as_ref().map(|filter| Arc::as_ptr(filter).cast::<()>())
        };
        if address(&self.state.load().current) != address(&current) {
            self.exchanges.fetch_add(1, Ordering::Relaxed);
        }
        self.state.store(Arc::new(State { current, next, doubts }));
    }

    pub(crate) fn count_rebuild(&self, worked: bool) {
        let counter = if worked { &self.rebuilds } else { &self.failed_rebuilds };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Statistics about the filter and the lookups counted.
    pub(crate) fn stats(&self, counters: &Counters) -> Stats {
        let state = self.state.load();
        let filter = state.current.as_deref();
        let mut totals = counters.totals();
        totals.rebuilds += self.rebuilds.load(Ordering::Relaxed);
        totals.failed_rebuilds += self.failed_rebuilds.load(Ordering::Relaxed);
        totals.foreign += self.foreign.load(Ordering::Relaxed);
        totals.keys = filter.map_or(0, SharedFilter::len);
        totals.bytes = filter.map_or(0, SharedFilter::size_in_bytes)
            + self.remembered.as_ref().map_or(0, Remembered::size_in_bytes);
        Stats {
            kind: self.spec.kind,
            rate: self.spec.rate,
            keys: totals.keys,
            capacity: filter.map_or(0, SharedFilter::capacity),
            dead: self.dead(),
            doubtful: state.doubts.len(),
            remembered: self.remembered.as_ref().map_or(0, Remembered::len),
            filter_bytes: totals.bytes,
            rebuilds: totals.rebuilds,
            failed_rebuilds: totals.failed_rebuilds,
            foreign: totals.foreign,
            totals,
        }
    }

    /// Keys in the filter.
    pub(crate) fn len(&self) -> u64 {
        self.state.load().current.as_deref().map_or(0, SharedFilter::len)
    }

    /// Keys in the filter that are no longer in the store, as far as is known.
    pub(crate) fn dead(&self) -> u64 {
        self.dead.load(Ordering::Relaxed)
    }
}

/// Fewer dead keys than a fraction of this are not worth a scan.
const MANY_DEAD: u64 = 1000;
