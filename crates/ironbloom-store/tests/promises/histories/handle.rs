//! A connection to the server of a history, as a guard has it: with pauses, faults and answers that are lost.

use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_lite::future::yield_now;
use ironbloom_store::{AsyncBackend, Before, Change, Changes, Failure, Generation, Visit, Watch};

use super::ledger::{Done, Event, Key, Ledger, Mode, Subscription, Write};

/// Keys that a scan reads at a time.
const PAGE: usize = 3;

pub(super) struct Handle {
    ledger: Ledger,
    mode: Mode,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    epoch: u64,
    started: u64,
    held: Option<Generation>,
    coming: Vec<Generation>,
    claimed: bool,
    counted: u64,
    exchanged: bool,
}

#[derive(Debug, PartialEq)]
pub(super) enum Broken {
    /// Nothing was sent.
    NotSent,
    /// It may have been carried out, or may be later.
    Lost,
    OtherState,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Broken {}

/// Keys and values of histories are texts.
fn text(bytes: &[u8]) -> Key {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A write that was sent. If nobody waits for its answer any more, it may be carried out all the same, now or later.
struct Sent<'h> {
    handle: &'h Handle,
    write: Option<(Write, Option<Generation>)>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let Some((write, condition)) = self.write.take() else { return };
        let mut server = self.handle.ledger.server();
        match server.random.below(3) {
            0 => {}
            1 if self.handle.mode.can_be_late() => server.delay(write, condition),
            _ => drop(server.apply(write, condition)),
        }
    }
}

impl Handle {
    pub(super) fn new(ledger: &Ledger, mode: Mode) -> Self {
        let (epoch, started) = {
            let server = ledger.server();
            (server.epoch, server.started)
        };
        let names = Mutex::new(Names { epoch, started, ..Names::default() });
        Self { ledger: ledger.clone(), mode, names }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pause(&self) {
        let times = self.ledger.server().random.below(4);
        for _ in 0..times {
            yield_now().await;
        }
    }

    /// Every new connection compares the server and what it holds with what they should be.
    fn connect(&self) {
        let mut server = self.ledger.server();
        let mut names = self.names();
        if names.epoch == server.epoch {
            return;
        }
        let same = names.started == server.started;
        (names.epoch, names.started) = (server.epoch, server.started);
        server.met = true;
        let found = server.contents.generation;
        let known = found == names.held || found.is_some_and(|found| names.coming.contains(&found));
        let fits = known && server.contents.counted >= names.counted;
        if !same || names.held.is_some() && !fits {
            names.exchanged = true;
        }
        names.counted = server.contents.counted;
    }

    /// An answer over a connection that has ended since is lost.
    fn heard<T>(&self, answer: T, epoch: u64) -> Result<T, Broken> {
        if self.ledger.server().epoch == epoch { Ok(answer) } else { Err(Broken::Lost) }
    }

    async fn read<T>(&self, read: impl FnOnce(&Ledger) -> T) -> Result<T, Broken> {
        self.pause().await;
        self.connect();
        if self.ledger.server().fails() {
            return Err(Broken::Lost);
        }
        let epoch = self.ledger.server().epoch;
        let answer = read(&self.ledger);
        self.pause().await;
        self.heard(answer, epoch)
    }

    async fn write(&self, write: Write, condition: Option<Generation>) -> Result<Done, Broken> {
        self.connect();
        if self.ledger.server().fails() {
            return Err(Broken::NotSent);
        }
        let mut sent = Sent { handle: self, write: Some((write, condition)) };
        self.pause().await;
        let epoch = self.ledger.server().epoch;
        if epoch != self.names().epoch || self.ledger.server().fails() {
            return Err(Broken::Lost); // and is carried out, or not, when `sent` goes
        }
        let Some((write, condition)) = sent.write.take() else { return Err(Broken::Lost) };
        let done = self.ledger.server().apply(write, condition);
        self.pause().await;
        if self.ledger.server().fails() {
            return Err(Broken::Lost);
        }
        self.heard(done, epoch)
    }

    /// A write of keys, under the generation that the store must hold.
    async fn change(&self, write: Write) -> Result<Vec<Before>, Broken> {
        let condition = {
            let names = self.names();
            names.held.filter(|_| names.claimed)
        };
        match self.write(write, condition).await? {
            Done::Befores(befores) => {
                let mut server = self.ledger.server();
                let mut names = self.names();
                names.counted = names.counted.max(server.contents.counted);
                drop(names);
                // A request that was repeated cannot tell.
                let repeats = server.faults > 0 && server.random.one_in(8);
                Ok(if repeats { vec![Before::Unknown; befores.len()] } else { befores })
            }
            Done::Named => unreachable!("a generation is no key"),
            Done::Refused => Err(Broken::OtherState),
        }
    }

    async fn keep(&self, generation: Generation) -> Result<(), Broken> {
        let known = {
            let mut names = self.names();
            let known: Vec<Generation> = match names.held {
                Some(held) if self.mode == Mode::Claimed => {
                    names.coming.iter().copied().chain([held]).collect()
                }
                _ => Vec::new(),
            };
            names.coming.push(generation);
            known
        };
        if matches!(self.write(Write::Name(generation, known), None).await?, Done::Refused) {
            self.names().exchanged = true;
            self.write(Write::Name(generation, Vec::new()), None).await?;
        }
        let counted = self.ledger.server().contents.counted;
        let mut names = self.names();
        (names.held, names.counted) = (Some(generation), counted);
        names.coming.clear();
        Ok(())
    }
}

impl AsyncBackend for Handle {
    type Error = Broken;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        let key = text(key);
        let value = self.read(|ledger| ledger.server().contents.keys.get(&key).cloned()).await?;
        Ok(value.map(String::into_bytes))
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
        let write = Write::Put(vec![(text(key), text(value))]);
        self.change(write).await.map(|befores| befores[0])
    }

    async fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, Broken> {
        let own = pairs.iter().map(|(key, value)| (text(key), text(value)));
        self.change(Write::Put(own.collect())).await
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
        self.change(Write::Remove(vec![text(key)])).await.map(|befores| befores[0])
    }

    async fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, Broken> {
        self.change(Write::Remove(keys.iter().map(|key| text(key)).collect())).await
    }

    /// Page by page, while others write: a key that is there all the time is visited.
    async fn scan(&self, visit: Visit<'_>) -> Result<(), Broken> {
        let mut after: Bound<Key> = Bound::Unbounded;
        loop {
            let page = self.read(|ledger| {
                let server = ledger.server();
                let rest = server.contents.keys.range((after.clone(), Bound::Unbounded));
                rest.take(PAGE).map(|(key, _)| key.clone()).collect::<Vec<_>>()
            });
            let page = page.await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Bound::Excluded(last.clone());
            if page.iter().try_for_each(|key| visit(key.as_bytes())).is_break() {
                return Ok(());
            }
        }
    }

    async fn len_hint(&self) -> Result<Option<u64>, Broken> {
        self.read(|ledger| {
            let mut server = ledger.server();
            let len = server.contents.keys.len() as u64;
            (len == 0 || server.random.one_in(2)).then_some(len)
        })
        .await
    }

    async fn generation(&self) -> Result<Option<Generation>, Broken> {
        let found = self.read(|ledger| ledger.server().contents.generation).await?;
        self.names().held = found;
        Ok(found)
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), Broken> {
        self.keep(generation).await
    }

    async fn claim(&self, generation: Generation) -> Result<bool, Broken> {
        self.keep(generation).await?;
        self.names().claimed = self.mode == Mode::Claimed;
        Ok(self.mode == Mode::Claimed)
    }

    fn can_claim(&self) -> bool {
        self.mode == Mode::Claimed
    }

    fn was_exchanged(&self) -> bool {
        std::mem::take(&mut self.names().exchanged)
    }

    fn failure(&self, error: &Broken) -> Failure {
        match error {
            Broken::NotSent => Failure::NotDone,
            Broken::Lost => Failure::Unknown,
            Broken::OtherState => Failure::OtherState,
        }
    }

    fn lands_within(&self) -> Option<Duration> {
        match self.mode {
            Mode::Exclusive => Some(Duration::ZERO),
            Mode::Bounded => Some(Duration::from_secs(3600)),
            _ => None,
        }
    }

    fn is_exclusive(&self) -> bool {
        self.mode == Mode::Exclusive
    }
}

/// What a follower hears.
pub(super) struct Heard {
    ledger: Ledger,
    subscription: Arc<Mutex<Subscription>>,
    /// The event that was given out last.
    last: Option<Event>,
    begun: bool,
}

impl Changes for Heard {
    type Error = Broken;

    async fn next(&mut self) -> Result<Change, Broken> {
        if !std::mem::replace(&mut self.begun, true) {
            self.ledger.server().hear(None, u64::MAX); // the follower has distrusted the filter
        }
        if let Some(Event { at, key, stored }) = self.last.take() {
            let mut server = self.ledger.server();
            if stored {
                server.tell(&key);
            }
            server.hear(Some(&key), at + 1);
        }
        loop {
            yield_now().await;
            let mut subscription = self.subscription.lock().unwrap_or_else(PoisonError::into_inner);
            if subscription.lost {
                drop(subscription);
                let mut server = self.ledger.server();
                server.unsubscribe();
                server.hear(None, u64::MAX); // the follower distrusts the filter before anyone else does something
                return Err(Broken::Lost);
            }
            if let Some(event) = subscription.events.pop_front() {
                self.last = Some(event.clone());
                let change = if event.stored { Change::Stored } else { Change::Removed };
                return Ok(change(event.key.into_bytes()));
            }
        }
    }
}

impl Watch for Handle {
    type Changes = Heard;

    async fn watch(&self) -> Result<Heard, Broken> {
        let subscription: Arc<Mutex<Subscription>> = Arc::default();
        let subscribe = |ledger: &Ledger| {
            let mut server = ledger.server();
            server.subscription = Some(subscription.clone());
            server.untold.clear();
        };
        self.read(subscribe).await?;
        Ok(Heard { ledger: self.ledger.clone(), subscription, last: None, begun: false })
    }

    fn reports_overwriting(&self) -> bool {
        self.ledger.server().tells_overwriting
    }
}
