//! The guard of the model: its filter, what it doubts and remembers, and the files of a checkpoint.

use super::Setup;

/// Keys of the model, 0 and 1.
pub(super) const KEYS: u8 = 2;
/// Copies of one hash that puts insert into a filter that is being built.
const MAX_COPIES: u8 = 2;

/// A set of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Keys(u8);

impl Keys {
    pub(super) fn has(self, key: u8) -> bool {
        self.0 & 1 << key != 0
    }

    pub(super) fn add(&mut self, key: u8) {
        self.0 |= 1 << key;
    }

    pub(super) fn take(&mut self, key: u8) {
        self.0 &= !(1 << key);
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn or(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(super) fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

/// How often the filter holds each fingerprint; a filter of bits holds it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Filter([u8; KEYS as usize]);

impl Filter {
    /// Keys that share their fingerprint are false positives of each other.
    fn place(setup: &Setup, key: u8) -> usize {
        if setup.one_fingerprint { 0 } else { key.into() }
    }

    pub(super) fn contains(&self, setup: &Setup, key: u8) -> bool {
        self.0[Self::place(setup, key)] > 0
    }

    /// True if the key was certainly not there.
    pub(super) fn insert(&mut self, setup: &Setup, key: u8) -> bool {
        let copies = &mut self.0[Self::place(setup, key)];
        let new = *copies == 0;
        *copies = if setup.copies { *copies + 1 } else { 1 };
        new
    }

    fn remove(&mut self, setup: &Setup, key: u8) {
        let copies = &mut self.0[Self::place(setup, key)];
        *copies = copies.saturating_sub(1);
    }
}

/// `Doubts`: keys of which it is unknown whether they are or will be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Doubts {
    pub(super) keys: Keys,
    pub(super) everything: bool,
    /// Writes of these may still take effect.
    pub(super) open: bool,
}

impl Doubts {
    fn everything() -> Self {
        Self { everything: true, open: true, ..Self::default() }
    }

    pub(super) fn contains(&self, key: u8) -> bool {
        self.everything || self.keys.has(key)
    }

    fn insert(&mut self, key: u8) {
        self.keys.add(key);
        self.open = true;
    }
}

/// `Next`: a filter that a scan fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Next {
    filter: Filter,
    put: [u8; KEYS as usize],
    /// What will be in doubt, if not what is in doubt now.
    doubts: Option<Doubts>,
    /// Keys that the scan has visited.
    pub(super) scanned: u8,
}

impl Next {
    fn insert(&mut self, setup: &Setup, key: u8) {
        let put = &mut self.put[usize::from(key)];
        if *put < MAX_COPIES {
            *put += 1;
            self.filter.insert(setup, key);
        }
    }

    pub(super) fn visit(&mut self, setup: &Setup, stored: bool) {
        if stored {
            self.filter.insert(setup, self.scanned);
        }
        self.scanned += 1;
    }
}

/// What the filter knew of a key when its put began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seen {
    New,
    Known,
    Unknown,
}

/// What the store said of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Before {
    Absent,
    Present,
    Unknown,
}

/// How far a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Begun,
    Answered(Before),
    /// The store holds another generation.
    Refused,
}

/// A put (`Pending`) or a remove (`Removing`) in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Write {
    pub(super) put: bool,
    pub(super) phase: Phase,
    seen: Seen,
    /// The filter is the one that it began with.
    same_filter: bool,
    /// So is the name that the store was given.
    pub(super) same_name: bool,
    /// The store has been asked, and has not been put back since.
    pub(super) spoken: bool,
}

/// A lookup that the filter cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lookup {
    pub(super) key: u8,
    /// No put of the key has begun or ended since before the store was asked.
    unchanged: bool,
    pub(super) found: Option<bool>,
    /// As of a write.
    pub(super) spoken: bool,
    /// The filter said `Maybe`.
    maybe: bool,
}

/// The filter of one moment, on its way to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Snapshot {
    pub(super) filter: Filter,
    pub(super) doubts: Keys,
    /// The generation that the store was given for it.
    pub(super) sealed: Option<u8>,
    pub(super) is_current: bool,
}

/// What a follower hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Hearing {
    NoFollower,
    Hears,
    Deaf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Absent,
    Maybe,
    Unknown,
}

/// The files of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum File {
    Missing,
    Damaged,
    Written { generation: u8, filter: Filter, doubts: Keys },
}

/// `Core` and `Front`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Guard {
    pub(super) current: Option<Filter>,
    pub(super) next: Option<Next>,
    pub(super) doubts: Doubts,
    pub(super) remembered: Keys,
    pub(super) clean: bool,
    /// The store takes writes of this guard only.
    pub(super) claimed: bool,
    pub(super) hearing: Hearing,
    pub(super) writes: [Option<Write>; KEYS as usize],
    pub(super) lookup: Option<Lookup>,
    pub(super) snapshot: Option<Snapshot>,
    /// The generation that the store's handle has stored last.
    pub(super) held: u8,
    /// What it tried to store while the answers were lost.
    pub(super) coming: Option<u8>,
    /// The connection was lost, so the next request makes a new one and compares.
    pub(super) disconnected: bool,
    /// The handle has found the store in another state, and the guard has not asked yet.
    pub(super) exchanged: bool,
    pub(super) believed: bool,
}

impl Guard {
    /// `Core::open` up to where the store is given a name: `checkpoint::find`, `first_filter`, `end_earlier_writes`.
    pub(super) fn open(setup: &Setup, file: File, generation: u8) -> Self {
        let mut guard = Self {
            current: None,
            next: None,
            doubts: Doubts::default(),
            remembered: Keys::default(),
            clean: true,
            claimed: false,
            hearing: Hearing::NoFollower,
            writes: [None; KEYS as usize],
            lookup: None,
            snapshot: None,
            held: generation,
            coming: None,
            disconnected: false,
            exchanged: false,
            believed: false,
        };
        match file {
            File::Missing => {}
            File::Damaged if !setup.keeps.everything_in_doubt => {}
            File::Damaged => guard.doubts = Doubts::everything(),
            File::Written { generation: written, filter, doubts } => {
                guard.doubts = Doubts { keys: doubts, everything: false, open: !doubts.is_empty() };
                let same = written == generation || !setup.keeps.generation_is_compared;
                if same && setup.store.is_alone() {
                    guard.current = Some(filter);
                    guard.believed = true;
                }
            }
        }
        guard
    }

    /// `Front::ask`.
    pub(super) fn ask(&self, setup: &Setup, key: u8) -> Answer {
        let Some(filter) = &self.current else { return Answer::Unknown };
        let doubtful = self.doubts.contains(key);
        match filter.contains(setup, key) && !self.remembered.has(key) || doubtful {
            true => Answer::Maybe,
            false => Answer::Absent,
        }
    }

    /// `end_earlier_writes`: nothing may be known about writes of earlier guards.
    pub(super) fn doubt_everything(&mut self, setup: &Setup) {
        if setup.keeps.everything_in_doubt {
            self.doubts = Doubts::everything();
        }
    }

    /// No late write can land any more.
    pub(super) fn settle_doubts(&mut self) {
        self.doubts.open = false;
        self.next.iter_mut().flat_map(|next| &mut next.doubts).for_each(|d| d.open = false);
    }

    pub(super) fn believe_again(&mut self, setup: &Setup) {
        if self.doubts.everything && (!setup.store.is_alone() || self.doubts_are_over(setup)) {
            self.doubts = Doubts::default();
        }
    }

    pub(super) fn doubts_are_over(&self, setup: &Setup) -> bool {
        !self.doubts.open || setup.store.never_lands_late()
    }

    /// `Front::set` and what depends on it.
    fn set_current(&mut self, filter: Option<Filter>) {
        if self.current.is_some() || filter.is_some() {
            self.writes.iter_mut().flatten().for_each(|write| write.same_filter = false);
            self.snapshot.iter_mut().for_each(|snapshot| snapshot.is_current = false);
        }
        self.current = filter;
    }

    /// `Front::forget_all`.
    pub(super) fn forget_filter(&mut self) {
        self.set_current(None);
        self.next = None;
        self.forget_remembered();
    }

    fn forget_remembered(&mut self) {
        self.remembered = Keys::default();
        self.lookup.iter_mut().for_each(|lookup| lookup.unchanged = false);
    }

    /// `Front::lose_state`.
    pub(super) fn lose_state(&mut self) {
        self.clean = true;
        self.forget_filter();
    }

    /// `Core::notice_exchange`. True if the store was exchanged.
    pub(super) fn notice(&mut self) -> bool {
        let exchanged = std::mem::take(&mut self.exchanged);
        if exchanged {
            self.lose_state();
        }
        exchanged
    }

    fn forget_absent(&mut self, setup: &Setup, key: u8) {
        if setup.keeps.puts_forget {
            self.remembered.take(key);
        }
        if let Some(lookup) = self.lookup.as_mut().filter(|lookup| lookup.key == key) {
            lookup.unchanged &= !setup.keeps.lookups_watch_puts;
        }
    }

    fn doubt(&mut self, setup: &Setup, key: u8) {
        if setup.keeps.failures_doubt {
            self.doubts.insert(key);
            self.next.iter_mut().flat_map(|next| &mut next.doubts).for_each(|d| d.insert(key));
        }
    }

    /// `Front::begin_put`.
    pub(super) fn begin_put(&mut self, setup: &Setup, key: u8) {
        let doubtful = self.doubts.contains(key);
        if let Some(next) = self.next.as_mut().filter(|_| !setup.copies) {
            next.filter.insert(setup, key);
        }
        let seen = match &mut self.current {
            None => Seen::Unknown,
            Some(filter) if setup.keeps_copies() && filter.contains(setup, key) => Seen::Known,
            Some(filter) => match filter.insert(setup, key) && !doubtful {
                true => Seen::New,
                false => Seen::Known,
            },
        };
        self.begin(true, key, seen);
        self.forget_absent(setup, key);
    }

    /// `Front::begin_remove`.
    pub(super) fn begin_remove(&mut self, key: u8) {
        self.begin(false, key, Seen::Unknown);
    }

    fn begin(&mut self, put: bool, key: u8, seen: Seen) {
        let phase = Phase::Begun;
        let write = Write { put, phase, seen, same_filter: true, same_name: true, spoken: false };
        self.writes[usize::from(key)] = Some(write);
    }

    /// `Front::end_put`. True if others have written to the store.
    pub(super) fn end_put(&mut self, setup: &Setup, key: u8, before: Option<Before>) -> bool {
        let Some(put) = self.writes[usize::from(key)].take() else { return false };
        self.forget_absent(setup, key);
        if before.is_none() {
            self.doubt(setup, key);
        }
        let foreign = before == Some(Before::Present) && put.seen == Seen::New && put.same_filter;
        if setup.copies {
            let exact = put.same_filter && !foreign;
            self.settle_copies(setup, key, put.seen, before, exact);
        }
        foreign
    }

    /// `Front::settle_copies`.
    fn settle_copies(
        &mut self,
        setup: &Setup,
        key: u8,
        seen: Seen,
        before: Option<Before>,
        exact: bool,
    ) {
        if !matches!(before, Some(Before::Absent | Before::Unknown))
            && exact
            && !setup.keeps_copies()
        {
            self.current.iter_mut().for_each(|filter| filter.remove(setup, key));
        }
        let scanned = before == Some(Before::Present) && seen == Seen::Known;
        if let (Some(next), Some(_), false) = (&mut self.next, before, scanned) {
            next.insert(setup, key);
        }
    }

    /// `Front::cancel_put`; a remove that was refused has done nothing.
    pub(super) fn cancel(&mut self, setup: &Setup, key: u8) {
        let Some(write) = self.writes[usize::from(key)].take() else { return };
        let copied = setup.copies && !setup.keeps_copies() && write.same_filter;
        if write.put && write.seen != Seen::Unknown && copied {
            self.current.iter_mut().for_each(|filter| filter.remove(setup, key));
        }
    }

    /// `Front::end_remove`.
    pub(super) fn end_remove(&mut self, setup: &Setup, key: u8, before: Before) {
        let Some(write) = self.writes[usize::from(key)].take() else { return };
        let same = write.same_filter || !setup.keeps.removes_stay_with_their_filter;
        let doubtful = self.doubts.contains(key);
        let seen = setup.store.is_alone() && before == Before::Present && same && !doubtful;
        if setup.copies && seen {
            self.current.iter_mut().for_each(|filter| filter.remove(setup, key));
        }
    }

    /// `Front::note`.
    pub(super) fn note(&mut self, setup: &Setup, key: u8) {
        self.forget_absent(setup, key);
        if let Some(filter) = &mut self.current
            && !filter.contains(setup, key)
        {
            filter.insert(setup, key);
        }
        if let Some(next) = &mut self.next {
            next.insert(setup, key);
        }
    }

    /// `Front::set_hearing`.
    pub(super) fn set_hearing(&mut self, setup: &Setup, hears: bool) {
        self.hearing = if hears { Hearing::Hears } else { Hearing::Deaf };
        let forgets =
            if hears { setup.keeps.scans_after_subscribing } else { setup.keeps.distrusts };
        if forgets {
            self.forget_filter();
        }
    }

    pub(super) fn ask_store(&mut self, setup: &Setup, key: u8) {
        let maybe = self.ask(setup, key) == Answer::Maybe;
        self.lookup = Some(Lookup { key, unchanged: true, found: None, spoken: false, maybe });
    }

    /// `Front::remember_absent`.
    pub(super) fn learn(&mut self, setup: &Setup) {
        let Some(lookup) = self.lookup.take() else { return };
        let sees_all = setup.store.is_alone() || self.hearing == Hearing::Hears;
        let in_progress = self.writes[usize::from(lookup.key)].is_some_and(|write| write.put);
        let watched = lookup.unchanged && !in_progress || !setup.keeps.lookups_watch_puts;
        let doubtful = self.doubts.contains(lookup.key);
        let absent = lookup.found == Some(false) && lookup.maybe;
        if sees_all && watched && absent && self.current.is_some() && !doubtful {
            self.remembered.add(lookup.key);
        }
    }

    /// `Front::begin`: a scan follows. Doubts that can no longer come true end with it.
    pub(super) fn begin_scan(&mut self, setup: &Setup) {
        let mut next = Next::default();
        let under_way = self.under_way();
        if !setup.copies {
            (0..KEYS).filter(|&key| under_way.has(key)).for_each(|key| {
                next.filter.insert(setup, key);
            });
        }
        let over = self.doubts_are_over(setup) || !setup.keeps.doubts_outlive_scans;
        if over && (self.doubts.everything || !self.doubts.keys.is_empty()) {
            next.doubts = Some(Doubts::default());
        }
        self.next = Some(next);
    }

    /// `Front::exchange`.
    pub(super) fn finish_scan(&mut self, setup: &Setup) {
        let Some(mut next) = self.next.take() else { return };
        let under_way = self.under_way();
        for key in (0..KEYS).filter(|&key| under_way.has(key) && setup.keeps.swaps_insert_puts) {
            next.filter.insert(setup, key);
        }
        self.forget_remembered();
        self.set_current(Some(next.filter));
        self.doubts = next.doubts.unwrap_or(self.doubts);
    }

    /// The puts in progress, as the gates list them.
    fn under_way(&self) -> Keys {
        let mut keys = Keys::default();
        for key in 0..KEYS {
            if self.writes[usize::from(key)].is_some_and(|write| write.put) {
                keys.add(key);
            }
        }
        keys
    }

    /// `Front::freeze`.
    pub(super) fn freeze(&mut self, setup: &Setup) {
        let Some(filter) = self.current.filter(|_| !self.doubts.everything) else { return };
        self.clean = true;
        let mut doubts = Keys::default();
        if setup.keeps.doubts_are_saved {
            doubts = doubts.or(self.doubts.keys);
        }
        if setup.keeps.puts_in_progress_are_saved {
            doubts = doubts.or(self.under_way());
        }
        self.snapshot = Some(Snapshot { filter, doubts, sealed: None, is_current: true });
    }
}
