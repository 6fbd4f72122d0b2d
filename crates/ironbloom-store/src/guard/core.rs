//! What a guard is, and its lookups: written once, for stores that block and for those that are awaited.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_lock::Mutex;
use event_listener::Event;
use ironbloom::FileError;

use super::background::{Background, Driver, Job};
use super::locks::Locks;
use super::questions::{Questions, nanos_since, outcome};
use super::{Opened, reentry};
use crate::backend::AsyncBackend;
use crate::checkpoint::{self, Arrival, Files, Found, ToLoad, Unusable};
use crate::error::Error;
use crate::events;
use crate::filter;
use crate::front::{Answer, Front};
use crate::options::{Options, Rebuild};
use crate::published::Publisher;
use crate::stats::{Counters, Outcome, Sample, Stats};

pub(super) type Result<T, B> = std::result::Result<T, Error<<B as AsyncBackend>::Error>>;

/// A filter in front of a store.
pub(crate) struct Core<B: AsyncBackend> {
    pub(crate) backend: B,
    pub(crate) front: Arc<Front>,
    pub(super) publisher: Option<Publisher>,
    pub(super) locks: Locks,
    /// Held while giving the store a generation.
    pub(super) naming: Mutex<()>,
    /// How often the store was given one.
    pub(super) names: AtomicU64,
    /// Whether the store takes writes of this guard only, until another one claims it.
    pub(super) claimed: AtomicBool,
    pub(super) files: Option<Files>,
    pub(super) counters: Counters,
    pub(super) rebuild: Rebuild,
    pub(super) retry_after: Duration,
    /// Held while building or reading a filter or writing a checkpoint.
    pub(super) maintaining: Mutex<()>,
    pub(super) background: Background<B::Error>,
    /// Not set while that is not known.
    opened: OnceLock<Opened>,
    known: Event,
    pub(super) writes: AtomicU64,
    /// The first half of every generation of this guard and of those that continue it.
    pub(super) lineage: u64,
}

/// The filter that a guard starts with.
enum First {
    Installed(Opened),
    ToBuild(Unusable),
    ToLoad(Box<ToLoad>),
}

impl<B: AsyncBackend> Core<B> {
    /// See [`Guard::open`](crate::Guard::open).
    pub(super) async fn open(backend: B, options: Options, driver: Driver) -> Result<Arc<Self>, B> {
        let files = options.checkpoint.as_deref().map(Files::new);
        files.as_ref().map_or(Ok(()), Files::check_folder)?;
        let generation = backend.generation().await.map_err(Error::Store)?;
        let alone = backend.is_exclusive() || options.only_writer;
        let found = checkpoint::find(files.as_ref(), &options, generation, alone);
        let Found { spec, totals, doubts, filter, lineage } = found;
        filter::empty(&spec, 0)?; // invalid parameters are refused now, not in the background
        let front = Front::new(&options, spec, doubts, alone, backend.lands_within());
        let front = Arc::new(front);
        let core = Self {
            publisher: publisher(&front, &options, lineage)?,
            front,
            locks: Locks::new(),
            naming: Mutex::new(()),
            names: AtomicU64::new(0),
            claimed: AtomicBool::new(false),
            files,
            counters: Counters::new(totals, options.measured_share),
            rebuild: options.rebuild,
            retry_after: options.retry_after,
            maintaining: Mutex::new(()),
            background: Background::new(driver),
            opened: OnceLock::new(),
            known: Event::new(),
            writes: AtomicU64::new(0),
            lineage,
            backend,
        };
        let first = core.first_filter(filter, generation.is_some()).await?;
        if core.publisher.is_some() && generation.is_none() {
            core.new_generation().await?; // so that the store knows whose filter this is
        }
        let core = Arc::new(core);
        core.begin(first);
        Ok(core)
    }

    /// Only a filter that knows all keys is used: that of a checkpoint that covers the store, or an empty one for an
    /// empty store in which no earlier write can appear any more.
    async fn first_filter(
        &self,
        found: std::result::Result<ToLoad, Unusable>,
        was_guarded: bool,
    ) -> Result<First, B> {
        let why = match found {
            Ok(checkpoint) if checkpoint.is_large() => {
                return Ok(First::ToLoad(Box::new(checkpoint)));
            }
            Ok(checkpoint) => match checkpoint.load() {
                Ok(loaded) => {
                    self.front.install(loaded.filter, loaded.dead);
                    return Ok(First::Installed(Opened::FromCheckpoint));
                }
                Err(why) => why,
            },
            Err(why) => why,
        };
        events::checkpoint_unusable(&why);
        self.end_earlier_writes(was_guarded).await?;
        let empty = self.backend.len_hint().await.map_err(Error::Store)? == Some(0);
        self.front.start(empty)?;
        Ok(match empty && !self.front.is_all_in_doubt() {
            true => First::Installed(Opened::Empty),
            false => First::ToBuild(why),
        })
    }

    fn begin(self: &Arc<Self>, first: First) {
        match first {
            First::Installed(opened) => self.set_opened(opened),
            First::ToBuild(why) => {
                self.set_opened(Opened::WithoutCheckpoint(why));
                self.rebuild_if_allowed();
            }
            First::ToLoad(checkpoint) => {
                self.start(Job::Load(Arc::new(Arrival::expect(&self.front, *checkpoint))));
            }
        }
    }

    /// Starts a rebuild in the background, if one is wanted and the guard decides about that.
    pub(super) fn rebuild_if_allowed(self: &Arc<Self>) {
        if self.rebuild == Rebuild::Background && self.front.wants_rebuild() {
            self.start(Job::Rebuild);
        }
    }

    pub(super) fn set_opened(&self, opened: Opened) {
        let _ = self.opened.set(opened);
        self.known.notify(usize::MAX);
    }

    /// How the guard got its filter.
    pub(super) fn opened(&self) -> &Opened {
        self.opened.get().unwrap_or(&Opened::Reading)
    }

    /// Waits until that is known.
    pub(super) async fn is_open(&self) {
        while self.opened.get().is_none() {
            let known = self.known.listen();
            if self.opened.get().is_none() {
                known.await;
            }
        }
    }

    /// What tells this guard from others.
    fn id(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// An error if the store's own code calls this: it would wait for itself.
    pub(super) fn ensure_outside(&self) -> Result<(), B> {
        if reentry::is_inside(self.id()) { Err(Error::Reentrant) } else { Ok(()) }
    }

    /// Runs code of the store while locks are held.
    pub(super) async fn asked<T>(
        &self,
        answer: impl Future<Output = std::result::Result<T, B::Error>>,
    ) -> std::result::Result<T, B::Error> {
        reentry::inside(self.id(), answer).await
    }

    /// What the filter says about a key; `None` if it is absent. No future: most lookups end here.
    #[inline]
    pub(crate) fn look_up(&self, key: &[u8]) -> Option<Question> {
        let sample = self.counters.begin();
        let hash = self.front.hash(key);
        let answer = self.front.ask(hash);
        if answer == Answer::Absent && !self.counters.measures(&sample) {
            self.counters.end(sample, Outcome::Skipped);
            return None;
        }
        Some(Question { sample, hash, answer })
    }

    /// The value of a key, and whether the store was asked for it.
    pub(crate) async fn look(self: &Arc<Self>, key: &[u8]) -> Result<(Option<Vec<u8>>, bool), B> {
        match self.look_up(key) {
            Some(question) => Ok((self.get(key, question).await?, true)),
            None => Ok((None, false)),
        }
    }

    /// The store's value of a key.
    pub(crate) async fn get(
        self: &Arc<Self>,
        key: &[u8],
        question: Question,
    ) -> Result<Option<Vec<u8>>, B> {
        self.ask(question, self.backend.get(key), Option::is_some).await
    }

    /// Whether the store has a key.
    pub(crate) async fn contains(
        self: &Arc<Self>,
        key: &[u8],
        question: Question,
    ) -> Result<bool, B> {
        self.ask(question, self.backend.contains(key), |&found| found).await
    }

    #[inline]
    async fn ask<T>(
        self: &Arc<Self>,
        Question { sample, hash, answer }: Question,
        read: impl Future<Output = std::result::Result<T, B::Error>>,
        is_found: impl FnOnce(&T) -> bool,
    ) -> Result<T, B> {
        let measured = (answer == Answer::Absent).then(Instant::now);
        let begun = self.front.begun(hash);
        let _asked = Asked(self);
        let result = read.await.map_err(Error::Store)?;
        let found = is_found(&result);
        if let Some(start) = measured {
            self.counters.measured(nanos_since(start));
            if found && self.front.is_foreign(hash) {
                self.found_foreign().await;
            }
        } else {
            self.counters.end(sample, outcome(answer, found));
            if !found && answer == Answer::Maybe {
                self.front.remember_absent(hash, begun);
            }
        }
        Ok(result)
    }

    /// The values of many keys, in their order. The store is queried once, for those that may be there.
    pub(super) async fn get_many<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, B> {
        let questions = Questions::sort_out(&self.front, &self.counters, keys);
        if questions.asked.is_empty() {
            return Ok(questions.answered(&self.counters, Vec::new(), 0));
        }
        let start = Instant::now();
        let _asked = Asked(self);
        let values = self.backend.get_many(&questions.asked).await.map_err(Error::Store)?;
        Ok(questions.answered(&self.counters, values, nanos_since(start)))
    }

    /// The statistics so far.
    pub(super) fn stats(&self) -> Stats {
        self.front.stats(&self.counters)
    }
}

/// A lookup that asks the store.
pub(crate) struct Question {
    sample: Sample,
    hash: u64,
    answer: Answer,
}

/// A question or a write to the store. However it ends, also by an error or because nobody waits for the answer, the store may have
/// been found in another state.
pub(super) struct Asked<'g, B: AsyncBackend>(pub(super) &'g Arc<Core<B>>);

impl<B: AsyncBackend> Drop for Asked<'_, B> {
    fn drop(&mut self) {
        self.0.check_state();
    }
}

/// What publishes the filter, if the options ask for it.
fn publisher<E>(
    front: &Arc<Front>,
    options: &Options,
    lineage: u64,
) -> std::result::Result<Option<Publisher>, Error<E>> {
    let Some(publish) = &options.publish else { return Ok(None) };
    let kind = options.spec.kind;
    if publish.path.as_os_str().is_empty() || !kind.maker().can_publish {
        return Err(Error::CannotPublish(kind));
    }
    let in_file = |error| FileError::Io { path: publish.path.clone(), error };
    let started = Publisher::start(front, publish, lineage);
    started.map(Some).map_err(|error| Error::Publish(in_file(error)))
}
