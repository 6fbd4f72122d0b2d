//! How to open a guard.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ironbloom::HashFn;

use crate::kind::GuardKind;

/// Which filter, how large, and where its checkpoint is.
///
/// ```
/// use ironbloom_store::{GuardKind, Options};
/// let options = Options::new(GuardKind::Blocked, 10_000_000, 0.005).checkpoint("users.ibg");
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) spec: FilterSpec,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) only_writer: bool,
    pub(crate) rebuild: Rebuild,
    pub(crate) max_dead: f64,
    pub(crate) lands_within: Option<Duration>,
    pub(crate) retry_after: Duration,
    pub(crate) publish: Option<Publish>,
    /// Whether the hash function was chosen; if not, it is that of the checkpoint, or random.
    pub(crate) hash_fn: Option<HashFn>,
    pub(crate) remember: bool,
    pub(crate) measured_share: f64,
}

/// Where the filter is published, and when: after a number of writes, at an interval.
#[derive(Clone, Debug)]
pub(crate) struct Publish {
    pub(crate) path: PathBuf,
    pub(crate) after: Option<u64>,
    pub(crate) every: Option<Duration>,
}

/// The parameters of a filter; the capacity is a minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FilterSpec {
    pub(crate) kind: GuardKind,
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
    pub(crate) hash_fn: HashFn,
}

/// Who decides when the filter is rebuilt from a scan of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// The guard, in its own thread, when too many keys are dead or there are more than planned.
    Background,
    /// The user, with [`Guard::rebuild`](crate::Guard::rebuild), even after a crash: until then every lookup goes to
    /// the store.
    Manual,
}

impl Options {
    /// A filter of this kind, for at least `capacity` keys at `rate`; for a window, the capacity is the number of most
    /// recent puts that it remembers. If the store holds more keys, the filter is planned for those. No checkpoint; the
    /// guard rebuilds as needed.
    pub fn new(kind: GuardKind, capacity: u64, rate: f64) -> Self {
        Self {
            spec: FilterSpec { kind, capacity, rate, hash_fn: HashFn::default() },
            checkpoint: None,
            only_writer: false,
            rebuild: Rebuild::Background,
            max_dead: 0.25,
            lands_within: None,
            retry_after: Duration::from_secs(1),
            publish: None,
            hash_fn: None,
            remember: true,
            measured_share: 0.01,
        }
    }

    /// The file for checkpoints: a small one under this name, and the filter in `.ibf` files next to it.
    pub fn checkpoint(mut self, path: impl AsRef<Path>) -> Self {
        self.checkpoint = Some(path.as_ref().to_owned());
        self
    }

    /// A promise that the store is written to only through guards, and never through two at once. Without it, the
    /// checkpoint of a store that others can write to ([`Backend::is_exclusive`](crate::Backend::is_exclusive)) is not
    /// trusted, and a removed key stays in the filter, whatever its kind, until the next rebuild: the filter may never
    /// have seen it, and the copy removed for it would belong to another key.
    pub fn only_writer(mut self) -> Self {
        self.only_writer = true;
        self
    }

    /// Who decides about rebuilding.
    pub fn rebuild(mut self, rebuild: Rebuild) -> Self {
        self.rebuild = rebuild;
        self
    }

    /// The fraction of dead keys in the filter above which it is rebuilt. Default: a quarter.
    pub fn max_dead(mut self, share: f64) -> Self {
        self.max_dead = share;
        self
    }

    /// A promise that a put or remove that has failed, or whose future was dropped, takes effect within this time or
    /// never. Until then its key is in doubt: lookups of it go to the store. A scan that starts later ends the doubt.
    /// By default, if the store does not know better ([`Backend::lands_within`](crate::Backend::lands_within)), doubts
    /// never end, which costs a read of the store for each lookup of such a key but never gives a wrong answer.
    pub fn lands_within(mut self, time: Duration) -> Self {
        self.lands_within = Some(time);
        self
    }

    /// The pause after a failed background rebuild; it doubles with each failure, up to 256 times as long. Default: one
    /// second.
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = pause;
        self
    }

    /// Publishes the filter as this `.ibf` file, for other processes to read ([`Published`](crate::Published)): with
    /// every checkpoint, with [`Guard::publish`](crate::Guard::publish), and as the next two options say. Only for
    /// [`GuardKind::Blocked`]. Guards of two processes must not publish to one file.
    pub fn publish(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        let Publish { after, every, .. } = self.publishing();
        self.publish = Some(Publish { path, after, every });
        self
    }

    /// Publishes also after this many puts and removes, in a thread of its own.
    pub fn publish_after(mut self, writes: u64) -> Self {
        self.publish = Some(Publish { after: Some(writes.max(1)), ..self.publishing() });
        self
    }

    /// Publishes also when this much time has passed and something was written, in a thread of its own. Readers that
    /// look as often are then at most twice as far behind, plus the time to write and read the file.
    pub fn publish_every(mut self, interval: Duration) -> Self {
        self.publish = Some(Publish { every: Some(interval), ..self.publishing() });
        self
    }

    fn publishing(&mut self) -> Publish {
        let nowhere = Publish { path: PathBuf::new(), after: None, every: None };
        self.publish.take().unwrap_or(nowhere)
    }

    /// Remembers false positives, so that they are not looked up again: half a bit of memory for each key of the
    /// capacity. Default: true. Only where every write is seen, that is, by the only writer or with a
    /// `Follower` that hears; elsewhere nothing is remembered.
    pub fn remember_false_positives(mut self, remember: bool) -> Self {
        self.remember = remember;
        self
    }

    /// The share of the time, at most, in which lookups that need not reach the store ask it all the same, to measure
    /// what they would have cost ([`Stats::time_saved`](crate::Stats::time_saved)). Default: one percent; with zero,
    /// what was saved is estimated from other lookups.
    ///
    /// # Panics
    ///
    /// If it is not between 0 and 1.
    pub fn measured_share(mut self, share: f64) -> Self {
        assert!((0.0..=1.0).contains(&share), "a share of the time");
        self.measured_share = share;
        self
    }

    /// The hash function. Default: that of the checkpoint; without one, [`HashFn::random`], so that nobody can choose
    /// keys that look stored. The key is in the files of the checkpoint, and in those that are published.
    ///
    /// # Panics
    ///
    /// If it is [`HashFn::External`]: a guard sees keys.
    pub fn hash_fn(mut self, hash_fn: HashFn) -> Self {
        assert!(hash_fn.try_hash(b"").is_some(), "a guard hashes keys itself");
        self.hash_fn = Some(hash_fn);
        self.spec.hash_fn = hash_fn;
        self
    }
}
