//! A filter that one process keeps and many read.
//!
//! ```text
//!  writer: guard ──► users.ibf, always replaced as a whole        Options::publish
//!  readers:              └──► read, verified, swapped in when it has changed
//! ```
//!
//! The file is read, never mapped: a mapping would change, or end, under a reader whenever somebody writes to the file
//! instead of replacing it. A reader has a filter whose checksums all match, or the one it had before.

mod publisher;

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use ironbloom::any::KeyHash;
use ironbloom::{AnyFilter, FileError, Filter, HashFn, Persist};

pub(crate) use self::publisher::Publisher;
use crate::events;

/// A filter that the guard of another process publishes ([`Options::publish`](crate::Options::publish)), or any other
/// `.ibf` file of keys that is replaced from time to time.
///
/// ```
/// use std::time::Duration;
/// use ironbloom_store::{Guard, GuardKind, Memory, Options, Published};
/// # let file = std::env::temp_dir().join(format!("ironbloom-published-doc-{}.ibf", std::process::id()));
///
/// // In the one process that writes:
/// let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 1000, 0.01).publish(&file))?;
/// guard.put("alice", "1")?;
/// guard.publish()?;
///
/// // In all others:
/// let users = Published::watch(&file, Duration::from_secs(1))?;
/// assert!(users.contains("alice"));
/// assert!(!users.contains("bob"));        // as of `users.taken()`
/// # std::fs::remove_file(file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **What a reader may conclude.** If [`contains`](Self::contains) says no, then no put of this key through the guard
/// was acknowledged before [`taken`](Self::taken), by the writer's clock, or the key was removed again. Later puts are
/// not known yet: [`age`](Self::age) says how long ago that was. A put that ended without an acknowledgement (an error,
/// a panic, a dropped future) may be missing although the store has it. "Yes" may be wrong, at the filter's rate.
///
/// A reader never answers from a torn or damaged file: it keeps the filter that it has, and [`refresh`](Self::refresh)
/// and [`problem`](Self::problem) say why. Lookups take no lock.
pub struct Published {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    current: ArcSwap<Current>,
    /// Held while a file is read. The last one that could not be used.
    refused: Mutex<Option<(Identity, Arc<FileError>)>>,
    problem: ArcSwapOption<FileError>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

struct Current {
    filter: AnyFilter,
    hash_fn: HashFn,
    identity: Identity,
    generation: u64,
}

/// Which file this is. A published file is always a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    len: u64,
    modified: Option<SystemTime>,
    /// Device, number, and time of the last change of any kind.
    #[cfg(unix)]
    node: [i64; 4],
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let node = {
            use std::os::unix::fs::MetadataExt;
            [metadata.dev() as i64, metadata.ino() as i64, metadata.ctime(), metadata.ctime_nsec()]
        };
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            node,
        }
    }
}

impl Published {
    /// Reads the file. Later ones are read when [`refresh`](Self::refresh) is called.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref().to_owned();
        let (filter, hash_fn, identity) = load(&path)?;
        let current = Current { filter, hash_fn, identity, generation: 1 };
        let shared = Arc::new(Shared {
            path,
            current: ArcSwap::from_pointee(current),
            refused: Mutex::default(),
            problem: ArcSwapOption::empty(),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        });
        Ok(Self { shared, watcher: None })
    }

    /// Reads the file, and checks this often, in a thread of its own, whether there is a new one.
    pub fn watch(path: impl AsRef<Path>, every: Duration) -> Result<Self, FileError> {
        let mut published = Self::open(&path)?;
        let shared = published.shared.clone();
        let thread = std::thread::Builder::new().name("ironbloom-reader".to_owned());
        let spawned = thread.spawn(move || shared.watch(every));
        let spawned =
            spawned.map_err(|error| FileError::Io { path: path.as_ref().to_owned(), error })?;
        published.watcher = Some(spawned);
        Ok(published)
    }

    /// Might this key be there? See [above](Self) for what "no" means.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let current = self.shared.current.load();
        current.filter.contains_hash(current.hash_fn.hash(key.as_ref()))
    }

    /// The same for many keys, all asked of one file.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<bool> {
        let current = self.shared.current.load();
        let hash = |key: &K| current.hash_fn.hash(key.as_ref());
        let hashes: Vec<u64> = keys.iter().map(hash).collect();
        let mut found = vec![false; keys.len()];
        Filter::contains_hashes(&current.filter, &hashes, &mut found);
        found
    }

    /// Checks whether there is a new file, which costs one system call, and reads it if so; true if it did. If the file
    /// is gone, damaged or not a filter of keys, the one that was read before stays.
    pub fn refresh(&self) -> Result<bool, Arc<FileError>> {
        self.shared.refresh()
    }

    /// Why the last refresh failed, if it did.
    pub fn problem(&self) -> Option<Arc<FileError>> {
        self.shared.problem.load_full()
    }

    /// Number of files that were read, the first included.
    pub fn generation(&self) -> u64 {
        self.shared.current.load().generation
    }

    /// When the filter was taken, by the clock of the process that published it: the file's modification time.
    pub fn taken(&self) -> SystemTime {
        self.shared.current.load().identity.modified.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// How long ago the filter was taken: puts acknowledged since then may be missing. Includes any difference between the two clocks.
    pub fn age(&self) -> Duration {
        SystemTime::now().duration_since(self.taken()).unwrap_or_default()
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        *self.shared.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stop.notify_all();
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

impl Shared {
    fn watch(&self, every: Duration) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let waited = self.stop.wait_timeout_while(stopped, every, |stopped| !*stopped);
            let (now, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            stopped = now;
            if timeout.timed_out() {
                drop(stopped);
                let _ = self.refresh(); // `problem` says how that went
                stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn refresh(&self) -> Result<bool, Arc<FileError>> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.exchange(&mut refused);
        self.problem.store(result.as_ref().err().cloned());
        result
    }

    fn exchange(
        &self,
        refused: &mut Option<(Identity, Arc<FileError>)>,
    ) -> Result<bool, Arc<FileError>> {
        let in_file = |error| Arc::new(FileError::Io { path: self.path.clone(), error });
        let found = Identity::of(&std::fs::metadata(&self.path).map_err(in_file)?);
        let current = self.current.load();
        if found == current.identity {
            return Ok(false);
        }
        if let Some((identity, error)) = refused
            && *identity == found
        {
            return Err(error.clone()); // reading it once more would not help
        }
        match load(&self.path) {
            Ok((filter, hash_fn, identity)) => {
                let generation = current.generation + 1;
                self.current.store(Arc::new(Current { filter, hash_fn, identity, generation }));
                Ok(true)
            }
            Err(error) => {
                let error = Arc::new(error);
                events::publication_unusable(&error);
                *refused = Some((found, error.clone()));
                Err(error)
            }
        }
    }
}

/// The filter in a file, and which file it was.
fn load(path: &Path) -> Result<(AnyFilter, HashFn, Identity), FileError> {
    let in_file = |error| FileError::Io { path: path.to_owned(), error };
    let file = File::open(path).map_err(in_file)?;
    // Of the file that is read, not of one that has taken its name meanwhile.
    let identity = Identity::of(&file.metadata().map_err(in_file)?);
    let filter = AnyFilter::read_sized(file, identity.len).map_err(in_file)?;
    match filter.key_hash() {
        KeyHash::Hash(hash_fn) | KeyHash::Held(hash_fn, _) if hash_fn.try_hash(b"").is_some() => {
            Ok((filter, hash_fn, identity))
        }
        _ => Err(in_file(io::Error::new(io::ErrorKind::InvalidData, "not a filter of keys"))),
    }
}
