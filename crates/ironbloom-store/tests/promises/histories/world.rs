//! One history: tasks that ask and change a guard in a random order, and what happens to the store beside them.
//!
//! Nothing here depends on threads or on the time: one scheduler polls all tasks, so a seed is a history.

use std::collections::BTreeSet;
use std::fs;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use ironbloom_store::{
    AsyncGuard, Before, Error, Follower, GuardKind, HashFn, Opened, Options, Rebuild,
};
use ironbloom_testing::{Random, Scratch};

use super::handle::{Broken, Handle};
use super::ledger::{Contents, Key, Ledger, Mode, Value};

/// Keys that a history is about.
const KEYS: u64 = 24;
/// Tasks that run side by side, at most.
const TASKS: usize = 4;
/// Steps of the last history events that a failure shows.
const SHOWN: usize = 60;

type Guard = Arc<AsyncGuard<Handle>>;

#[derive(Clone, Debug)]
enum Op {
    Get(Vec<Key>),
    Contains(Key),
    GetMany(Vec<Key>),
    Put(Vec<(Key, Value)>),
    PutMany(Vec<(Key, Value)>),
    Remove(Vec<Key>),
    RemoveMany(Vec<Key>),
    Rebuild,
    Checkpoint,
    Note(Key),
    Distrust,
}

/// What an operation has answered.
#[derive(Debug)]
enum Answer {
    Values(Vec<Option<Value>>),
    Found(bool),
    Befores(Vec<Before>),
    Done,
}

struct Task {
    op: Op,
    begun: u64,
    /// Whether it has made a new connection.
    met: bool,
    future: Pin<Box<dyn Future<Output = Result<Answer, Error<Broken>>>>>,
}

/// A copy of the store, and of the files beside it.
#[derive(Clone)]
struct Backup {
    contents: Contents,
    files: Vec<(String, Vec<u8>)>,
    /// Which guard was there.
    life: u64,
    /// Puts that a window had counted: those of the guard, and those that it was told of.
    puts: [Vec<(u64, Key)>; 2],
}

/// What was tried, over all histories.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) histories: u64,
    pub(super) operations: u64,
    pub(super) answers: u64,
    pub(super) dropped: u64,
    pub(super) failed: u64,
    pub(super) crashes: u64,
    pub(super) from_checkpoint: u64,
    pub(super) reverts: u64,
    pub(super) landed: u64,
    pub(super) refused: u64,
    pub(super) foreign: u64,
    pub(super) remembered: u64,
}

pub(super) struct World<'c> {
    mode: Mode,
    kind: GuardKind,
    capacity: u64,
    seed: u64,
    random: Random,
    ledger: Ledger,
    scratch: Scratch,
    options: Options,
    guard: Option<Guard>,
    follower: Option<Pin<Box<dyn Future<Output = std::convert::Infallible>>>>,
    tasks: Vec<Task>,
    backups: Vec<Backup>,
    /// Guards so far.
    lives: u64,
    /// Puts that were acknowledged, each when, in order; for a window.
    acknowledged: Vec<(u64, Key)>,
    values: u64,
    trace: Vec<String>,
    counts: &'c mut Counts,
}

fn key(i: u64) -> Key {
    format!("k{i}")
}

impl<'c> World<'c> {
    pub(super) fn new(mode: Mode, kind: GuardKind, seed: u64, counts: &'c mut Counts) -> Self {
        let mut random = Random(seed);
        let scratch = Scratch::new("history");
        let capacity = [4, 12, 40][random.index(3)];
        let rate = [0.3, 0.1, 0.01][random.index(3)];
        let mut options = Options::new(kind, capacity, rate)
            .checkpoint(scratch.file("g.ibg"))
            .rebuild(Rebuild::Manual)
            .measured_share(0.0)
            .hash_fn(HashFn::Xxh3 { seed });
        if matches!(mode, Mode::Claimed | Mode::Bounded) {
            options = options.only_writer();
        }
        let ledger = Ledger::new(seed ^ 0x5eed);
        let mut world = Self {
            mode,
            kind,
            capacity,
            seed,
            random,
            ledger,
            scratch,
            options,
            guard: None,
            follower: None,
            tasks: Vec::new(),
            backups: Vec::new(),
            lives: 0,
            acknowledged: Vec::new(),
            values: 0,
            trace: Vec::new(),
            counts,
        };
        for _ in 0..world.random.below(12) {
            let (key, value) = (world.key(), world.value());
            world.ledger.server().write_foreign(&key, Some(value));
        }
        world.open();
        world
    }

    /// The whole history.
    pub(super) fn run(mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
        }
        self.rest();
        let server = self.ledger.server();
        self.counts.histories += 1;
        self.counts.landed += server.landed;
        self.counts.refused += server.refused;
    }

    fn key(&mut self) -> Key {
        key(self.random.below(KEYS))
    }

    fn value(&mut self) -> Value {
        self.values += 1;
        self.values.to_string()
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        let clock = self.ledger.server().clock;
        self.trace.push(format!("{clock:>6} {}", what()));
    }

    fn guard(&self) -> Guard {
        self.guard.clone().unwrap_or_else(|| panic!("there is a guard"))
    }

    fn step(&mut self) {
        match self.random.below(1000) {
            0..300 => self.begin(),
            300..310 => self.give_up(),
            310..330 => self.ledger.server().land(self.mode),
            330..340 => self.back_up(),
            340..350 => self.crash(),
            350..360 => self.restore_live(),
            360..400 => self.foreign(),
            400..410 => self.change_faults(),
            410..420 => self.follow(),
            420..423 => self.disconnect(),
            423..425 => self.deafen(),
            425..435 => self.rest(),
            435..600 if self.follower.is_some() => self.poll_follower(),
            _ => self.poll(),
        }
    }

    fn change_faults(&mut self) {
        let faults = [0, 0, 30, 8][self.random.index(4)];
        self.ledger.server().faults = faults;
    }

    fn begin(&mut self) {
        if self.tasks.len() >= TASKS {
            return self.poll();
        }
        let op = self.draw();
        let begun = self.ledger.server().tick();
        self.tell(|| format!("begin {op:?}"));
        let future = Box::pin(perform(self.guard(), op.clone()));
        self.counts.operations += 1;
        self.tasks.push(Task { op, begun, met: false, future });
    }

    fn draw(&mut self) -> Op {
        let some = |world: &mut Self| {
            let count = 1 + world.random.below(3);
            let keys: BTreeSet<Key> = (0..count).map(|_| world.key()).collect();
            keys.into_iter().collect::<Vec<Key>>()
        };
        let pairs = |world: &mut Self| {
            let keys = some(world);
            keys.into_iter().map(|key| (key, world.value())).collect::<Vec<_>>()
        };
        match self.random.below(100) {
            0..30 => Op::Get(vec![self.key()]),
            30..35 => Op::Contains(self.key()),
            35..42 => Op::GetMany(some(self)),
            42..60 => Op::Put(vec![(self.key(), self.value())]),
            60..64 => Op::PutMany(pairs(self)),
            64..80 => Op::Remove(vec![self.key()]),
            80..84 => Op::RemoveMany(some(self)),
            84..90 => Op::Rebuild,
            90..97 => Op::Checkpoint,
            97..99 if !self.mode.is_alone() => {
                let unheard: Vec<Key> = self.ledger.server().unheard.keys().cloned().collect();
                let place = self.random.index(unheard.len().max(1));
                Op::Note(unheard.get(place).cloned().unwrap_or_else(|| key(0)))
            }
            99 => Op::Distrust,
            _ => Op::Get(vec![self.key()]),
        }
    }

    /// Polls one of the tasks.
    fn poll(&mut self) {
        if self.tasks.is_empty() {
            return self.begin();
        }
        let place = self.random.index(self.tasks.len());
        let task = &mut self.tasks[place];
        self.ledger.server().met = false;
        let polled = task.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        task.met |= self.ledger.server().met;
        if let Poll::Ready(answer) = polled {
            let task = self.tasks.swap_remove(place);
            self.end(task, answer);
        }
    }

    fn end(&mut self, task: Task, answer: Result<Answer, Error<Broken>>) {
        let now = self.ledger.server().tick();
        if now > task.begun + 1 {
            self.tell(|| format!("end   {:?} of {}: {answer:?}", task.op, task.begun));
        }
        match &answer {
            Ok(answer) => self.check(&task, answer, now),
            Err(Error::Store(_) | Error::Unheard | Error::InDoubt | Error::Overtaken) => {
                self.counts.failed += 1;
            }
            Err(Error::NoRebuild) if !self.kind.can_rebuild() => {}
            Err(error) => self.fail(&format!("an error that a store cannot cause: {error}")),
        }
        self.learn(&task, answer.is_ok());
    }

    /// The caller does not wait any longer.
    fn give_up(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let place = self.random.index(self.tasks.len());
        let task = self.tasks.swap_remove(place);
        self.tell(|| format!("drop  {:?} of {}", task.op, task.begun));
        self.counts.dropped += 1;
        let (op, begun, met) = (task.op.clone(), task.begun, task.met);
        drop(task);
        if met {
            self.learn(&Task { op, begun, met, future: Box::pin(std::future::pending()) }, false);
        }
    }

    /// What the guard must know after a task.
    fn learn(&mut self, task: &Task, worked: bool) {
        let mut server = self.ledger.server();
        let writes = matches!(task.op, Op::Put(_) | Op::PutMany(_) | Op::Rebuild | Op::Checkpoint);
        if let Some(since) = server.exchanged
            && ((worked && writes && since < task.begun) || task.met)
        {
            server.notice();
        }
        if !worked {
            return;
        }
        let begun = task.begun;
        match &task.op {
            Op::Note(key) => {
                server.tell(key);
                server.hear(Some(key), begun);
            }
            Op::Put(pairs) | Op::PutMany(pairs) => {
                pairs.iter().for_each(|(key, _)| server.hear(Some(key), begun));
            }
            Op::Rebuild | Op::Distrust => server.hear(None, begun),
            _ => {}
        }
    }

    /// Whether a key may be answered "absent" although it was stored all the time.
    fn may_miss(&self, key: &str, begun: u64, now: u64) -> bool {
        let server = self.ledger.server();
        if server.may_not_know(key, begun) {
            return true;
        }
        if self.kind != GuardKind::Windowed {
            return false;
        }
        let puts = || self.acknowledged.iter().chain(&server.told);
        let of_key = puts().filter(|(at, put)| put == key && *at <= begun);
        let Some(last) = of_key.map(|(at, _)| *at).max() else { return true };
        let later = puts().filter(|(at, _)| (last..=now).contains(at)).count();
        later as u64 > self.capacity
    }

    fn check(&mut self, task: &Task, answer: &Answer, now: u64) {
        match (&task.op, answer) {
            (Op::Get(keys) | Op::GetMany(keys), Answer::Values(values)) => {
                for (key, value) in keys.iter().zip(values) {
                    self.check_value(key, value.as_ref(), task.begun, now);
                }
            }
            (Op::Contains(key), Answer::Found(found)) => {
                let states = self.ledger.server().states(key, task.begun, now);
                let was = states.iter().any(|state| state.is_some() == *found);
                if !was && (*found || !self.may_miss(key, task.begun, now)) {
                    self.fail(&format!("contains {}: {found}", key));
                }
            }
            (Op::Put(pairs) | Op::PutMany(pairs), Answer::Befores(befores)) => {
                for ((key, _), before) in pairs.iter().zip(befores) {
                    self.check_before(key, *before, task.begun, now);
                    self.acknowledged.push((now, key.clone()));
                    self.ledger.server().acknowledge(key, *before);
                }
            }
            (Op::Remove(keys) | Op::RemoveMany(keys), Answer::Befores(befores)) => {
                for (key, before) in keys.iter().zip(befores) {
                    self.check_before(key, *before, task.begun, now);
                }
            }
            _ => {}
        }
    }

    fn check_value(&mut self, key: &Key, value: Option<&Value>, begun: u64, now: u64) {
        self.counts.answers += 1;
        let states = self.ledger.server().states(key, begun, now);
        if !states.iter().any(|state| state.as_ref() == value)
            && (value.is_some() || !self.may_miss(key, begun, now))
        {
            self.fail(&format!("{} is {value:?}, and was {states:?}", key));
        }
    }

    fn check_before(&mut self, key: &Key, before: Before, begun: u64, now: u64) {
        self.counts.answers += 1;
        let states = self.ledger.server().states(key, begun, now);
        let possible = match before {
            Before::Unknown => true,
            Before::Present => states.iter().any(Option::is_some),
            Before::Absent => states.iter().any(Option::is_none) || self.may_miss(key, begun, now),
        };
        if !possible {
            self.fail(&format!("{} was {before:?} before, and {states:?}", key));
        }
    }

    /// All tasks come to an end, and every stored key is asked for.
    fn rest(&mut self) {
        for _ in 0..100_000 {
            if self.tasks.is_empty() {
                break;
            }
            self.poll();
            self.poll_follower(); // it may hold what a task waits for
        }
        if !self.tasks.is_empty() {
            self.fail("tasks wait for each other for ever");
        }
        let faults = std::mem::take(&mut self.ledger.server().faults);
        let guard = self.guard();
        for i in 0..KEYS {
            let op = Op::Get(vec![key(i)]);
            let begun = self.ledger.server().tick();
            self.ledger.server().met = false;
            let answer = wait_for(perform(guard.clone(), op.clone()));
            let met = self.ledger.server().met;
            let future = Box::pin(std::future::pending());
            self.end(Task { op, begun, met, future }, answer);
        }
        let stats = guard.stats();
        self.counts.remembered = self.counts.remembered.max(stats.remembered);
        self.ledger.server().faults = faults;
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let read = |name: String| {
            let bytes = fs::read(self.scratch.file(&name)).unwrap_or_default();
            (name, bytes)
        };
        self.scratch.names().into_iter().map(read).collect()
    }

    fn back_up(&mut self) {
        self.tell(|| "backup".to_owned());
        let contents = self.ledger.server().contents.clone();
        let puts = [self.acknowledged.clone(), self.ledger.server().told.clone()];
        let backup = Backup { contents, files: self.files(), life: self.lives, puts };
        if self.backups.len() == 4 {
            self.backups.remove(0);
        }
        self.backups.push(backup);
    }

    /// A backup takes the place of the store under a live guard; only a server that refuses writes can tell.
    fn restore_live(&mut self) {
        if self.mode != Mode::Claimed || self.backups.is_empty() {
            return;
        }
        let place = self.random.index(self.backups.len());
        let backup = self.backups[place].clone();
        // While connections last, only the generation tells: one that this guard may have stored tells nothing. But no
        // server restores a backup and keeps its connections; that is done to tables, with older ones.
        let ends = backup.life == self.lives || self.random.one_in(2);
        let mut server = self.ledger.server();
        server.restore(backup.contents, ends);
        drop(server);
        // Whoever has connected before has not met this state.
        self.tasks.iter_mut().for_each(|task| task.met = false);
        self.counts.reverts += 1;
        self.tell(|| format!("restore {place}, connections end: {ends}"));
    }

    /// Connections end, or the server does; what it holds stays.
    fn disconnect(&mut self) {
        if self.mode != Mode::Exclusive {
            let starts_again = self.random.one_in(2);
            self.tell(|| format!("disconnect, starts again: {starts_again}"));
            self.ledger.server().disconnect(starts_again);
        }
    }

    fn foreign(&mut self) {
        if self.mode.is_alone() {
            return;
        }
        let (key, value) = (self.key(), self.value());
        let stored = self.random.below(3) > 0;
        self.tell(|| format!("others {} {}", if stored { "put" } else { "remove" }, key));
        self.ledger.server().write_foreign(&key, stored.then_some(value));
        self.counts.foreign += 1;
    }

    /// Another follower takes the place of the one that there is.
    fn follow(&mut self) {
        if self.mode != Mode::Followed {
            return;
        }
        self.tell(|| "follow".to_owned());
        self.follower = None;
        if let Ok(follower) = wait_for(Follower::subscribe(self.guard())) {
            self.follower = Some(Box::pin(follower.run()));
        }
    }

    fn poll_follower(&mut self) {
        if let Some(follower) = &mut self.follower {
            let _ = follower.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// The store tells nothing any more, which is noticed some time later.
    fn deafen(&mut self) {
        let Some(subscription) = self.ledger.server().subscription.clone() else { return };
        let mut subscription =
            subscription.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if subscription.deaf {
            subscription.lost = true;
        }
        subscription.deaf = true;
        let lost = subscription.lost;
        drop(subscription);
        self.tell(|| format!("deaf, noticed: {lost}"));
    }

    /// The process ends, perhaps in order; what is left of the store and of the files is what the next one finds.
    fn crash(&mut self) {
        self.counts.crashes += 1;
        let orderly = self.random.one_in(2);
        if orderly {
            self.rest();
        }
        self.tasks.clear();
        self.follower = None;
        self.ledger.server().unsubscribe();
        if orderly {
            let guard = self.guard();
            let closed = wait_for(async { guard.checkpoint().await }).is_ok();
            self.tell(|| format!("close, checkpoint: {closed}"));
        }
        self.guard = None;
        if self.mode == Mode::Noted {
            self.ledger.server().lose_late(); // where nobody would tell of it, nothing is promised
        }
        let state = self.random.below(10);
        self.tell(|| format!("crash, {state}"));
        match state {
            0 | 1 if !self.backups.is_empty() => {
                let place = self.random.index(self.backups.len());
                let Backup { contents, files, puts, .. } = self.backups[place].clone();
                self.ledger.server().restore(contents, true);
                if self.mode == Mode::Bounded {
                    self.ledger.server().lose_late(); // nothing tells the next guard that one has crashed
                }
                // What was put since then is undone, also for the files.
                [self.acknowledged, self.ledger.server().told] = puts;
                self.counts.reverts += 1;
                // A write that is late for the state before is late for this one, too.
                if state == 0 {
                    self.write_files(&files);
                }
            }
            2 if !self.backups.is_empty() => {
                let place = self.random.index(self.backups.len());
                let files = self.backups[place].files.clone();
                self.write_files(&files);
            }
            3 => drop(fs::remove_file(self.scratch.file("g.ibg"))),
            4 => self.damage(),
            _ => {}
        }
        self.open();
    }

    fn write_files(&self, files: &[(String, Vec<u8>)]) {
        for name in self.scratch.names() {
            let _ = fs::remove_file(self.scratch.file(&name));
        }
        for (name, bytes) in files {
            fs::write(self.scratch.file(name), bytes).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// One bit of one file changes.
    fn damage(&mut self) {
        let mut files = self.files();
        if files.is_empty() {
            return;
        }
        let place = self.random.index(files.len());
        let (name, bytes) = &mut files[place];
        if !bytes.is_empty() {
            let at = self.random.index(bytes.len());
            bytes[at] ^= 1 << self.random.below(8);
            fs::write(self.scratch.file(name), bytes).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    fn open(&mut self) {
        let guard = loop {
            let handle = Handle::new(&self.ledger, self.mode);
            let options = self.options.clone();
            match wait_for(AsyncGuard::open(handle, options)) {
                Ok(guard) => break guard,
                Err(Error::Store(_)) => self.counts.failed += 1,
                Err(error) => return self.fail(&format!("it cannot be opened: {error}")),
            }
        };
        self.counts.from_checkpoint += u64::from(*guard.opened() == Opened::FromCheckpoint);
        self.tell(|| format!("open: {:?}", guard.opened()));
        self.lives += 1;
        self.guard = Some(Arc::new(guard));
        let mut server = self.ledger.server();
        server.notice();
        server.hear(None, u64::MAX);
    }

    fn fail(&mut self, why: &str) {
        let first = self.trace.len().saturating_sub(SHOWN);
        let shown = self.trace[first..].join("\n");
        let (mode, kind, seed) = (self.mode, self.kind, self.seed);
        self.tasks.clear();
        panic!("{why}\n{mode:?}, {kind}, IRONBLOOM_HISTORY={seed}\n{shown}");
    }
}

async fn perform(guard: Guard, op: Op) -> Result<Answer, Error<Broken>> {
    Ok(match op {
        Op::Get(keys) => Answer::Values(vec![guard.get(&keys[0]).await?.map(value_of)]),
        Op::Contains(key) => Answer::Found(guard.contains(&key).await?),
        Op::GetMany(keys) => {
            let values = guard.get_many(&keys).await?;
            Answer::Values(values.into_iter().map(|value| value.map(value_of)).collect())
        }
        Op::Put(pairs) => Answer::Befores(vec![guard.put(&pairs[0].0, &pairs[0].1).await?]),
        Op::PutMany(pairs) => Answer::Befores(guard.put_many(&pairs).await?),
        Op::Remove(keys) => Answer::Befores(vec![guard.remove(&keys[0]).await?]),
        Op::RemoveMany(keys) => Answer::Befores(guard.remove_many(&keys).await?),
        Op::Rebuild => guard.rebuild().await.map(|()| Answer::Done)?,
        Op::Checkpoint => guard.checkpoint().await.map(|()| Answer::Done)?,
        Op::Note(key) => guard.note(&key).await.map(|()| Answer::Done)?,
        Op::Distrust => guard.distrust().await.map(|()| Answer::Done)?,
    })
}

fn value_of(bytes: Vec<u8>) -> Value {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Nothing else happens until this has ended.
fn wait_for<T>(future: impl Future<Output = T>) -> T {
    futures_lite::future::block_on(future)
}
