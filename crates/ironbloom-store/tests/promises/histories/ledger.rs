//! The server of a history: what it holds, what it has held at every moment, and what is still on its way to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironbloom_store::{Before, Generation};
use ironbloom_testing::Random;

pub(super) type Key = String;
pub(super) type Value = String;

/// Who writes to the store, and what it can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A locked file: a write that has failed never takes effect later.
    Exclusive,
    /// A server that refuses writes for another generation, and may be exchanged under a live guard.
    Claimed,
    /// A server that refuses nothing, and carries out what it was sent within an hour.
    Bounded,
    /// Others write, and each key of theirs is noted some time later.
    Noted,
    /// Others write, and a follower hears of it while it is not deaf.
    Followed,
}

impl Mode {
    pub(super) const ALL: [Self; 5] =
        [Self::Exclusive, Self::Claimed, Self::Bounded, Self::Noted, Self::Followed];

    /// Whether all keys come through the guard.
    pub(super) fn is_alone(self) -> bool {
        !matches!(self, Self::Noted | Self::Followed)
    }

    /// Whether a write may take effect after its caller has been told that it failed.
    pub(super) fn can_be_late(self) -> bool {
        self != Self::Exclusive
    }
}

/// What a backup would keep.
#[derive(Clone, Default)]
pub(super) struct Contents {
    pub(super) keys: BTreeMap<Key, Value>,
    pub(super) generation: Option<Generation>,
    /// Writes of guards that have claimed the store.
    pub(super) counted: u64,
}

#[derive(Clone)]
pub(super) enum Write {
    Put(Vec<(Key, Value)>),
    Remove(Vec<Key>),
    /// In place of one of these, or of any if there are none.
    Name(Generation, Vec<Generation>),
}

/// What became of a write that was carried out or refused.
pub(super) enum Done {
    Befores(Vec<Before>),
    Named,
    Refused,
}

/// A subscription: events in order.
#[derive(Default)]
pub(super) struct Subscription {
    pub(super) events: VecDeque<Event>,
    pub(super) deaf: bool,
    pub(super) lost: bool,
}

/// A write, as it is told to those who listen.
#[derive(Clone)]
pub(super) struct Event {
    pub(super) at: u64,
    pub(super) key: Key,
    pub(super) stored: bool,
}

pub(super) struct Server {
    /// Grows with every change and every question.
    pub(super) clock: u64,
    pub(super) contents: Contents,
    /// What each key was at which moment.
    past: BTreeMap<Key, Vec<(u64, Option<Value>)>>,
    /// Writes that will be carried out, each with the generation that it is for.
    late: Vec<(Write, Option<Generation>)>,
    /// Counts how often all connections were lost.
    pub(super) epoch: u64,
    /// Counts how often it was started.
    pub(super) started: u64,
    /// Whether a put that replaces a value is told, too.
    pub(super) tells_overwriting: bool,
    pub(super) random: Random,
    /// One call in so many goes wrong; none if zero.
    pub(super) faults: u64,
    pub(super) subscription: Option<Arc<Mutex<Subscription>>>,
    /// Keys of others that the guard need not know yet, each since when.
    pub(super) unheard: BTreeMap<Key, u64>,
    /// Since when the store is in another state than the guard could know.
    pub(super) exchanged: Option<u64>,
    /// When it could know again, and of which keys of others.
    noticed: u64,
    heard: BTreeMap<Key, u64>,
    /// Keys that others have put, each when the guard was told; a window counts them like puts.
    pub(super) told: Vec<(u64, Key)>,
    /// Acknowledged puts of the guard that the subscription has not told of yet.
    pub(super) untold: Vec<Key>,
    /// Set when a handle has connected again.
    pub(super) met: bool,
    pub(super) landed: u64,
    pub(super) refused: u64,
}

#[derive(Clone)]
pub(super) struct Ledger(Arc<Mutex<Server>>);

impl Ledger {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Server {
            clock: 1,
            contents: Contents::default(),
            past: BTreeMap::new(),
            late: Vec::new(),
            epoch: 0,
            started: 0,
            tells_overwriting: seed.is_multiple_of(2),
            random: Random(seed),
            faults: 0,
            subscription: None,
            unheard: BTreeMap::new(),
            exchanged: None,
            noticed: 0,
            heard: BTreeMap::new(),
            told: Vec::new(),
            untold: Vec::new(),
            met: false,
            landed: 0,
            refused: 0,
        })))
    }

    pub(super) fn server(&self) -> MutexGuard<'_, Server> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn record(&mut self, key: &str, value: Option<Value>, replaces: bool) {
        let now = self.tick();
        let stored = value.is_some();
        self.past.entry(key.to_owned()).or_default().push((now, value));
        let tells = !(stored && replaces) || self.tells_overwriting;
        if let Some(subscription) = &self.subscription {
            let mut subscription = subscription.lock().unwrap_or_else(PoisonError::into_inner);
            if !subscription.deaf && tells {
                subscription.events.push_back(Event { at: now, key: key.to_owned(), stored });
            }
        }
    }

    /// A put of the guard was acknowledged: if it is told, it has counted already.
    pub(super) fn acknowledge(&mut self, key: &str, before: Before) {
        let tells = before != Before::Present || self.tells_overwriting;
        if self.subscription.is_some() && tells {
            self.untold.push(key.to_owned());
        }
    }

    /// Nothing is told any more.
    pub(super) fn unsubscribe(&mut self) {
        self.subscription = None;
        self.untold.clear();
    }

    /// The guard was told of a put. Unless it was its own, a window counts it.
    pub(super) fn tell(&mut self, key: &str) {
        let now = self.tick();
        match self.untold.iter().position(|own| own == key) {
            Some(place) => drop(self.untold.swap_remove(place)),
            None => self.told.push((now, key.to_owned())),
        }
    }

    /// All connections end, and with it what may be told.
    pub(super) fn disconnect(&mut self, starts_again: bool) {
        self.epoch += 1;
        self.started += u64::from(starts_again);
        if let Some(subscription) = &self.subscription {
            subscription.lock().unwrap_or_else(PoisonError::into_inner).lost = true;
        }
    }

    /// The states that a key had between two moments, both included.
    pub(super) fn states(&self, key: &str, from: u64, to: u64) -> Vec<Option<Value>> {
        let past = self.past.get(key).map_or(&[][..], |past| past);
        let first = past.iter().rposition(|(at, _)| *at <= from);
        let mut states = vec![first.and_then(|first| past[first].1.clone())];
        let rest = &past[first.map_or(0, |first| first + 1)..];
        let during = rest.iter().take_while(|(at, _)| *at <= to);
        states.extend(during.map(|(_, value)| value.clone()));
        states
    }

    /// Carries out a write, if the store holds the generation that it is for.
    pub(super) fn apply(&mut self, write: Write, condition: Option<Generation>) -> Done {
        if condition.is_some() && condition != self.contents.generation {
            self.refused += 1;
            return Done::Refused;
        }
        if condition.is_some() {
            self.contents.counted += 1;
        }
        match write {
            Write::Put(pairs) => {
                let put = |(key, value): (Key, Value)| {
                    let before = self.contents.keys.insert(key.clone(), value.clone()).is_some();
                    self.record(&key, Some(value), before);
                    Before::stored(before)
                };
                Done::Befores(pairs.into_iter().map(put).collect())
            }
            Write::Remove(keys) => {
                let remove = |key: Key| {
                    let before = self.contents.keys.remove(&key).is_some();
                    self.record(&key, None, before);
                    Before::stored(before)
                };
                Done::Befores(keys.into_iter().map(remove).collect())
            }
            Write::Name(generation, known) => {
                let before = self.contents.generation;
                let fits = before.is_some_and(|before| known.contains(&before));
                if !known.is_empty() && !fits {
                    return Done::Refused;
                }
                self.contents.counted += 1;
                self.contents.generation = Some(generation);
                Done::Named
            }
        }
    }

    pub(super) fn delay(&mut self, write: Write, condition: Option<Generation>) {
        self.late.push((write, condition));
    }

    /// One of the writes that are late takes effect, or is refused. A guard that was not there when it was sent has to
    /// hear of it.
    pub(super) fn land(&mut self, mode: Mode) {
        if !self.late.is_empty() {
            let place = self.random.index(self.late.len());
            let (write, condition) = self.late.swap_remove(place);
            if let (Mode::Followed, Write::Put(pairs)) = (mode, &write) {
                let now = self.tick();
                self.unheard.extend(pairs.iter().map(|(key, _)| (key.clone(), now)));
            }
            let done = self.apply(write, condition);
            self.landed += u64::from(!matches!(done, Done::Refused));
        }
    }

    /// What is late never takes effect.
    pub(super) fn lose_late(&mut self) {
        self.late.clear();
    }

    /// A backup takes the place of what is there.
    pub(super) fn restore(&mut self, backup: Contents, connections_end: bool) {
        let (before, after) = (&self.contents.keys, &backup.keys);
        let all: BTreeSet<Key> = before.keys().chain(after.keys()).cloned().collect();
        let changed: Vec<(Key, Option<Value>)> = all
            .into_iter()
            .filter(|key| before.get(key) != after.get(key))
            .map(|key| (key.clone(), after.get(&key).cloned()))
            .collect();
        self.contents = backup;
        changed.into_iter().for_each(|(key, value)| self.record(&key, value, false));
        if connections_end {
            self.disconnect(true);
        }
        self.exchanged = Some(self.tick());
    }

    /// Someone else writes.
    pub(super) fn write_foreign(&mut self, key: &str, value: Option<Value>) {
        let write = match value {
            Some(value) => {
                let now = self.tick();
                self.unheard.insert(key.to_owned(), now);
                Write::Put(vec![(key.to_owned(), value)])
            }
            None => Write::Remove(vec![key.to_owned()]),
        };
        self.apply(write, None);
    }

    /// The guard knows in which state the store is.
    pub(super) fn notice(&mut self) {
        if self.exchanged.take().is_some() {
            self.noticed = self.tick();
        }
    }

    /// The guard knows of what others had put before this moment: one key, or all.
    pub(super) fn hear(&mut self, key: Option<&str>, before: u64) {
        let now = self.tick();
        let known = |(name, since): &(&Key, &u64)| {
            **since < before && key.is_none_or(|key| key == name.as_str())
        };
        let keys: Vec<Key> =
            self.unheard.iter().filter(known).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.unheard.remove(&key);
            self.heard.insert(key, now);
        }
    }

    /// Whether a guard that was asked for this key since that moment may not have known of it.
    pub(super) fn may_not_know(&self, key: &str, since: u64) -> bool {
        self.exchanged.is_some()
            || self.noticed > since
            || self.unheard.contains_key(key)
            || self.heard.get(key).is_some_and(|&at| at > since)
    }

    /// True once in so many calls, if there are faults.
    pub(super) fn fails(&mut self) -> bool {
        self.faults > 0 && self.random.one_in(self.faults)
    }
}
