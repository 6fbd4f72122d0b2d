//! The world of the model: a store, the files, at most one guard, and every step that one of them can take.

use stateright::{Model, Property};

use super::guard::{Answer, Before, File, Guard, Hearing, KEYS, Keys, Phase};
use super::{Limits, Setup, Store};

/// A write whose guard no longer waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Late {
    put: bool,
    key: u8,
    /// Under which the store is to carry it out, if it compares.
    generation: u8,
}

/// A key was stored, by others or by this guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Event {
    key: u8,
    foreign: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    stored: Keys,
    generation: u8,
    /// The number of the next generation: none comes twice.
    fresh: u8,
    backup: Option<(Keys, u8)>,
    late: Vec<Late>,
    file: File,
    older_file: File,
    guard: Option<Guard>,
    /// Whether there is a subscription, and what it has not reported yet.
    subscribed: bool,
    events: Vec<Event>,
    /// The store no longer reports what is written.
    silent: bool,
    /// Keys that a backup has brought back under an open guard that has not spoken to the store since.
    returned: Keys,
    /// Keys that others have stored while nothing was reported, and the follower could not know yet.
    missed: Keys,
    left: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The guard gives the store a generation before it writes; or the store gets it and the answer is lost.
    Name,
    NameUnanswered,
    Put(u8),
    Remove(u8),
    /// The store carries out a write, or refuses it.
    Execute(u8),
    /// It does so twice, and cannot tell which was first.
    ExecuteTwice(u8),
    /// The guard has the answer.
    End(u8),
    /// The guard stops waiting; a request that was not carried out may land later.
    GiveUp(u8),
    /// A late write takes effect.
    Land(usize),
    /// So much time passes that no late write can land any more.
    Lapse,
    LookUp(u8),
    Read,
    Learn,
    Rebuild,
    Scan,
    Finish,
    Freeze,
    Seal,
    SealUnanswered,
    WriteFiles,
    Crash,
    Open,
    Backup,
    Revert,
    DamageFile,
    LoseFile,
    OlderFile,
    Others(u8),
    Silence,
    Subscribe,
    Follow,
    Hear,
    /// The follower has had time to prove that it hears.
    Prove,
    LoseSubscription,
}

impl World {
    fn request(&mut self, setup: &Setup) {
        let Some(guard) = &mut self.guard else { return };
        // Connections::compare: another generation, or a server that was started again.
        if std::mem::take(&mut guard.disconnected) && setup.keeps.connections_compare {
            guard.exchanged = true;
        }
    }

    /// The guard has noticed, or had to.
    fn has_spoken(&mut self) {
        self.returned = Keys::default();
    }

    /// `Core::name` and `Naming`: in place of what this handle has stored, or the store is in another state.
    fn store_generation(&mut self, setup: &Setup) -> u8 {
        self.request(setup);
        let generation = self.fresh;
        self.fresh += 1;
        let Some(guard) = &mut self.guard else { return generation };
        let known = self.generation == guard.held || Some(self.generation) == guard.coming;
        if setup.store.compares() && !known && setup.keeps.connections_compare {
            guard.exchanged = true;
        }
        self.generation = generation;
        generation
    }

    fn has_named(&mut self, generation: u8) {
        let Some(guard) = &mut self.guard else { return };
        (guard.held, guard.coming) = (generation, None);
        guard.writes.iter_mut().flatten().for_each(|write| write.same_name = false);
        guard.notice();
        self.has_spoken();
    }

    /// `Core::name`, with `claim` where the store can refuse what came before.
    fn name(&mut self, setup: &Setup) {
        if setup.store.compares() && self.guard.as_ref().is_some_and(|guard| !guard.claimed) {
            self.claim(setup);
        } else {
            self.set_generation(setup);
        }
    }

    fn set_generation(&mut self, setup: &Setup) {
        let generation = self.store_generation(setup);
        self.has_named(generation);
        if let Some(guard) = &mut self.guard {
            guard.clean = false;
        }
    }

    /// No write that was begun before can take effect any more.
    fn claim(&mut self, setup: &Setup) {
        self.set_generation(setup);
        if let Some(guard) = &mut self.guard {
            guard.settle_doubts();
            guard.claimed = true;
        }
    }

    fn open(&mut self, setup: &Setup) {
        self.guard = Some(Guard::open(setup, self.file, self.generation));
        if self.guard.as_ref().is_some_and(|guard| guard.believed) {
            return;
        }
        if setup.store == Store::Server {
            self.guard.iter_mut().for_each(|guard| guard.doubt_everything(setup));
            self.claim(setup);
        } else if setup.store == Store::Bucket && self.generation != 0 {
            self.guard.iter_mut().for_each(|guard| guard.doubt_everything(setup));
        }
        let empty = self.stored.is_empty();
        if let Some(guard) = &mut self.guard {
            guard.believe_again(setup);
            guard.current = empty.then(Default::default);
        }
    }

    /// The store changes; a subscription reports what was stored.
    fn apply(&mut self, put: bool, key: u8, foreign: bool) -> Before {
        let before = if self.stored.has(key) { Before::Present } else { Before::Absent };
        if put {
            self.stored.add(key);
            if self.subscribed && !self.silent {
                self.events.push(Event { key, foreign });
            }
        } else {
            self.stored.take(key);
        }
        before
    }

    /// The same by someone whose writes this guard does not see.
    fn apply_foreign(&mut self, setup: &Setup, put: bool, key: u8) {
        self.apply(put, key, true);
        let unheard = setup.store == Store::Shared && (!self.subscribed || self.silent);
        let believes = self.guard.as_ref().is_some_and(|guard| guard.hearing != Hearing::Deaf);
        if put && unheard && believes {
            self.missed.add(key);
        }
    }

    fn execute(&mut self, setup: &Setup, key: u8, twice: bool) {
        self.request(setup);
        let Some(guard) = &mut self.guard else { return };
        let Some(mut write) = guard.writes[usize::from(key)] else { return };
        let refused = setup.store.compares()
            && setup.keeps.writes_are_conditional
            && self.generation != guard.held;
        write.spoken = true;
        write.phase = if refused {
            Phase::Refused
        } else {
            let before = self.apply(write.put, key, false);
            Phase::Answered(match twice {
                true if setup.keeps.stores_admit_ignorance => Before::Unknown,
                true => Before::Present,
                false => before,
            })
        };
        if let Some(guard) = &mut self.guard {
            guard.writes[usize::from(key)] = Some(write);
        }
    }

    /// `put_all`, `remove_many`: what an answer means.
    fn end(&mut self, setup: &Setup, key: u8) {
        let Some(guard) = &mut self.guard else { return };
        let Some(write) = guard.writes[usize::from(key)] else { return };
        let mut foreign = false;
        match write.phase {
            Phase::Begun => return,
            Phase::Answered(before) if write.put => {
                foreign = guard.end_put(setup, key, Some(before));
            }
            Phase::Answered(before) => guard.end_remove(setup, key, before),
            Phase::Refused => {
                guard.cancel(setup, key);
                if write.same_name {
                    guard.lose_state();
                }
            }
        }
        if foreign {
            guard.forget_filter();
        }
        guard.notice();
        if write.spoken {
            self.has_spoken();
        }
    }

    fn give_up(&mut self, setup: &Setup, key: u8) {
        let Some(guard) = &mut self.guard else { return };
        let Some(write) = guard.writes[usize::from(key)] else { return };
        if write.put {
            guard.end_put(setup, key, None);
        } else {
            guard.writes[usize::from(key)] = None;
        }
        if setup.keeps.dropped_writes_notice {
            guard.notice();
        }
        if write.spoken {
            self.has_spoken();
        }
        self.send_late(setup, key, write.put, write.phase);
    }

    fn send_late(&mut self, setup: &Setup, key: u8, put: bool, phase: Phase) {
        let Some(guard) = &self.guard else { return };
        if phase == Phase::Begun && !setup.store.never_lands_late() {
            self.late.push(Late { put, key, generation: guard.held });
            self.late.sort_unstable();
        }
    }

    fn crash(&mut self, setup: &Setup) {
        let writes = self.guard.as_ref().map_or([None; KEYS as usize], |guard| guard.writes);
        for (key, write) in (0..KEYS).zip(writes) {
            if let Some(write) = write {
                self.send_late(setup, key, write.put, write.phase);
            }
        }
        self.guard = None;
        (self.subscribed, self.events) = (false, Vec::new());
        (self.returned, self.missed) = Default::default();
    }

    /// The store is what it was when the backup was made. A server is down meanwhile.
    fn revert(&mut self, setup: &Setup) {
        let Some((stored, generation)) = self.backup else { return };
        let returned = stored.without(self.stored);
        (self.stored, self.generation) = (stored, generation);
        if setup.store == Store::Server {
            self.late.clear();
        }
        if let Some(guard) = &mut self.guard {
            self.returned = self.returned.or(returned);
            guard.disconnected = true;
            guard.next = None; // its scan has failed
            guard.writes.iter_mut().flatten().for_each(|write| write.spoken = false);
            guard.lookup.iter_mut().for_each(|lookup| lookup.spoken = false);
        }
    }

    /// Whether docs/store.md excuses the answer "absent" for this key.
    fn is_excused(&self, key: u8) -> bool {
        self.returned.has(key)
            || self.missed.has(key)
            || self.events.contains(&Event { key, foreign: true })
    }

    fn is_hidden(&self, setup: &Setup, key: u8) -> bool {
        self.stored.has(key)
            && !self.is_excused(key)
            && self.guard.as_ref().is_some_and(|guard| guard.ask(setup, key) == Answer::Absent)
    }
}

impl Model for Setup {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = World {
            stored: Keys::default(),
            generation: 0,
            fresh: 1,
            backup: None,
            late: Vec::new(),
            file: File::Missing,
            older_file: File::Missing,
            guard: None,
            subscribed: false,
            events: Vec::new(),
            silent: false,
            returned: Keys::default(),
            missed: Keys::default(),
            left: self.limits,
        };
        world.open(self);
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        let left = &world.left;
        let shared = self.store == Store::Shared;
        steps.extend((0..world.late.len()).map(Step::Land));
        let mut allow = |allowed: bool, step: Step| steps.extend(allowed.then_some(step));
        allow(left.lapses > 0 && self.store == Store::Bucket, Step::Lapse);
        allow(left.backups > 0, Step::Backup);
        let may_revert = world.guard.is_none() || self.store == Store::Server;
        allow(left.reverts > 0 && world.backup.is_some() && may_revert, Step::Revert);
        allow(left.files > 0 && world.file != File::Damaged, Step::DamageFile);
        allow(left.files > 0 && world.file != File::Missing, Step::LoseFile);
        allow(left.files > 0 && world.file != world.older_file, Step::OlderFile);
        for key in 0..KEYS {
            allow(left.others > 0 && shared, Step::Others(key));
        }
        allow(left.silences > 0 && world.subscribed && !world.silent, Step::Silence);
        let Some(guard) = &world.guard else {
            allow(true, Step::Open);
            return;
        };
        allow(left.crashes > 0, Step::Crash);
        let naming = guard.snapshot.is_some_and(|snapshot| snapshot.sealed.is_none());
        allow(guard.clean && !naming && left.writes > 0, Step::Name);
        allow(guard.clean && !naming && left.lost > 0, Step::NameUnanswered);
        let ready = !guard.clean || !self.keeps.writes_name_first;
        for key in 0..KEYS {
            match guard.writes[usize::from(key)] {
                None => {
                    allow(left.writes > 0 && ready, Step::Put(key));
                    let asked = guard.ask(self, key) != Answer::Absent;
                    allow(left.writes > 0 && ready && asked, Step::Remove(key));
                }
                Some(write) => {
                    let begun = write.phase == Phase::Begun;
                    allow(begun, Step::Execute(key));
                    let repeats = self.store == Store::Bucket && write.put;
                    allow(begun && repeats && left.repeats > 0, Step::ExecuteTwice(key));
                    allow(!begun, Step::End(key));
                    allow(left.lost > 0, Step::GiveUp(key));
                }
            }
            let asks = guard.lookup.is_none() && guard.ask(self, key) != Answer::Absent;
            allow(left.lookups > 0 && asks, Step::LookUp(key));
        }
        let found = guard.lookup.map(|lookup| lookup.found);
        allow(found == Some(None), Step::Read);
        allow(found.flatten().is_some(), Step::Learn);
        let idle = guard.next.is_none() && guard.snapshot.is_none();
        let hears = guard.hearing != Hearing::Deaf || !self.keeps.distrusts;
        allow(left.rebuilds > 0 && idle && hears, Step::Rebuild);
        if let Some(next) = guard.next {
            allow(next.scanned < KEYS, Step::Scan);
            allow(next.scanned == KEYS, Step::Finish);
        }
        let certain = guard.current.is_some() && !guard.doubts.everything;
        allow(left.checkpoints > 0 && idle && certain, Step::Freeze);
        if let Some(snapshot) = guard.snapshot {
            allow(snapshot.sealed.is_none(), Step::Seal);
            allow(snapshot.sealed.is_none() && left.lost > 0, Step::SealUnanswered);
            allow(snapshot.sealed.is_some(), Step::WriteFiles);
        }
        if shared {
            allow(!world.subscribed && !world.silent, Step::Subscribe);
            allow(world.subscribed && guard.hearing != Hearing::Hears, Step::Follow);
            let hears = world.subscribed && guard.hearing == Hearing::Hears;
            let next = world.events.first();
            let free = next.is_some_and(|event| guard.writes[usize::from(event.key)].is_none());
            allow(hears && free && ready, Step::Hear);
            allow(hears && world.silent, Step::Prove);
            allow(hears && left.lost > 0, Step::LoseSubscription);
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut world = world.clone();
        world.take(self, step);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no stored key is answered absent", |setup: &Self, world: &World| {
            !(0..KEYS).any(|key| world.is_hidden(setup, key))
        })]
    }
}

impl World {
    fn take(&mut self, setup: &Setup, step: Step) {
        match step {
            Step::Put(_) | Step::Remove(_) => self.left.writes -= 1,
            Step::NameUnanswered | Step::SealUnanswered | Step::GiveUp(_) => self.left.lost -= 1,
            Step::LoseSubscription => self.left.lost -= 1,
            Step::ExecuteTwice(_) => self.left.repeats -= 1,
            Step::Lapse => self.left.lapses -= 1,
            Step::LookUp(_) => self.left.lookups -= 1,
            Step::Rebuild => self.left.rebuilds -= 1,
            Step::Freeze => self.left.checkpoints -= 1,
            Step::Crash => self.left.crashes -= 1,
            Step::Backup => self.left.backups -= 1,
            Step::Revert => self.left.reverts -= 1,
            Step::DamageFile | Step::LoseFile | Step::OlderFile => self.left.files -= 1,
            Step::Others(_) => self.left.others -= 1,
            Step::Silence => self.left.silences -= 1,
            _ => {}
        }
        match step {
            Step::Land(place) => return self.land(setup, place),
            Step::Lapse => return self.lapse(),
            Step::Crash => return self.crash(setup),
            Step::Open => return self.open(setup),
            Step::Backup => self.backup = Some((self.stored, self.generation)),
            Step::Revert => return self.revert(setup),
            Step::DamageFile => self.file = File::Damaged,
            Step::LoseFile => self.file = File::Missing,
            Step::OlderFile => self.file = self.older_file,
            Step::Others(key) => return self.apply_foreign(setup, true, key),
            Step::Silence => self.silent = true,
            Step::Subscribe => self.subscribed = true,
            Step::Name => return self.name(setup),
            Step::Execute(key) => return self.execute(setup, key, false),
            Step::ExecuteTwice(key) => return self.execute(setup, key, true),
            Step::End(key) => return self.end(setup, key),
            Step::GiveUp(key) => return self.give_up(setup, key),
            Step::Rebuild => return self.rebuild(setup),
            Step::Seal => return self.seal(setup),
            Step::WriteFiles => return self.write_files(),
            Step::LoseSubscription => return self.lose_subscription(setup),
            Step::Prove => return self.prove(setup),
            Step::Follow => self.missed = Keys::default(),
            Step::Read => self.request(setup),
            _ => {}
        }
        if matches!(step, Step::NameUnanswered | Step::SealUnanswered) {
            let generation = self.store_generation(setup);
            let Some(guard) = &mut self.guard else { return };
            guard.coming = Some(generation);
            guard.notice();
            if step == Step::SealUnanswered {
                guard.snapshot = match setup.keeps.files_wait_for_the_seal {
                    true => None,
                    false => guard.snapshot.map(|snapshot| super::guard::Snapshot {
                        sealed: Some(generation),
                        ..snapshot
                    }),
                };
            }
            return self.has_spoken();
        }
        let stored = self.stored;
        let Some(guard) = &mut self.guard else { return };
        match step {
            Step::Put(key) => guard.begin_put(setup, key),
            Step::Remove(key) => guard.begin_remove(key),
            Step::LookUp(key) => guard.ask_store(setup, key),
            Step::Read => {
                if let Some(lookup) = &mut guard.lookup {
                    lookup.found = Some(stored.has(lookup.key));
                    lookup.spoken = true;
                }
            }
            Step::Learn => {
                let spoken = guard.lookup.is_some_and(|lookup| lookup.spoken);
                guard.learn(setup);
                guard.notice();
                if spoken {
                    self.has_spoken();
                }
            }
            Step::Scan => {
                if let Some(next) = &mut guard.next {
                    next.visit(setup, stored.has(next.scanned));
                }
            }
            Step::Finish => guard.finish_scan(setup),
            Step::Freeze => guard.freeze(setup),
            Step::Follow => guard.set_hearing(setup, true),
            Step::Hear => {
                let event = self.events.remove(0);
                guard.note(setup, event.key);
            }
            _ => {}
        }
    }

    /// A store that compares refuses what was sent under another generation.
    fn land(&mut self, setup: &Setup, place: usize) {
        let late = self.late.remove(place);
        let refused = setup.store.compares()
            && setup.keeps.writes_are_conditional
            && late.generation != self.generation;
        if !refused {
            self.apply_foreign(setup, late.put, late.key);
        }
    }

    fn lapse(&mut self) {
        self.late.clear();
        self.guard.iter_mut().for_each(Guard::settle_doubts);
    }

    /// `Core::build` up to the scan: `end_doubts`, `Front::begin`.
    fn rebuild(&mut self, setup: &Setup) {
        let over = self.guard.as_ref().is_some_and(|guard| guard.doubts_are_over(setup));
        if setup.store == Store::Server && !over {
            self.claim(setup);
        }
        let Some(guard) = &mut self.guard else { return };
        if !guard.doubts.everything || guard.doubts_are_over(setup) {
            guard.begin_scan(setup);
        }
    }

    /// `Core::checkpoint`: the store gets the generation of the snapshot, which is dropped if the filter has changed.
    fn seal(&mut self, setup: &Setup) {
        let generation = self.store_generation(setup);
        self.has_named(generation);
        let Some(guard) = &mut self.guard else { return };
        guard.snapshot = guard.snapshot.take().and_then(|mut snapshot| {
            snapshot.sealed = Some(generation);
            (snapshot.is_current || !setup.keeps.seals_check_the_filter).then_some(snapshot)
        });
    }

    fn write_files(&mut self) {
        let snapshot = self.guard.as_mut().and_then(|guard| guard.snapshot.take());
        let Some(snapshot) = snapshot else { return };
        let Some(generation) = snapshot.sealed else { return };
        self.older_file = self.file;
        let (filter, doubts) = (snapshot.filter, snapshot.doubts);
        self.file = File::Written { generation, filter, doubts };
    }

    fn lose_subscription(&mut self, setup: &Setup) {
        (self.subscribed, self.events) = (false, Vec::new());
        if let Some(guard) = &mut self.guard {
            guard.set_hearing(setup, false);
        }
        (self.silent, self.missed) = (false, Keys::default());
    }

    /// What was caused does not arrive.
    fn prove(&mut self, setup: &Setup) {
        if setup.keeps.followers_prove {
            self.lose_subscription(setup);
        }
        self.missed = Keys::default();
    }
}
