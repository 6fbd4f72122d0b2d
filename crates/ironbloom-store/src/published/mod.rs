//! A filter that one process keeps and many read.
//!
//! ```text
//!  writer: guard ──► users.ibf, and users.ibf.stamp, always replaced as a whole        Options::publish
//!  readers:              └──► read, verified, swapped in when they have changed
//! ```
//!
//! The stamp says which guard the filter is of, and when it was taken (`stamp.rs`). A reader uses files of one guard only,
//! and never goes back to an older one.
//!
//! The file is read, never mapped: a mapping would change, or end, under a reader whenever somebody writes to the file
//! instead of replacing it. A reader has a filter whose checksums all match, or the one it had before.

mod publisher;
mod stamp;

use std::fs::{File, Metadata};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use ironbloom::any::KeyHash;
use ironbloom::{AnyFilter, FileError, Filter, HashFn, Persist};

pub(crate) use self::publisher::Publisher;
use self::stamp::{Content, Stamp, stamp_path};
use crate::events;

/// A filter that the guard of another process publishes ([`Options::publish`](crate::Options::publish)).
///
/// ```
/// use std::time::Duration;
/// use ironbloom_store::{Guard, GuardKind, Memory, Options, Published};
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("users.ibf");
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
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **What a reader may conclude.** If [`contains`](Self::contains) says no, then no put of this key through the guard
/// was acknowledged before [`taken`](Self::taken), by the writer's clock, or the key was removed again. Later puts are
/// not known yet: [`age`](Self::age) says how long ago that was. A put that ended without an acknowledgement (an error,
/// a panic, a dropped future) may be missing although the store has it. "Yes" may be wrong, at the filter's rate.
///
/// A reader never answers from a torn or damaged file, from one that another guard or another program has made, or from
/// one that is older than what it has: it keeps the filter that it has, and [`refresh`](Self::refresh) and
/// [`problem`](Self::problem) say why. Lookups take no lock.
pub struct Published {
    shared: Arc<Shared>,
    watcher: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    /// `None` before the first file was read: every key may be there.
    current: ArcSwapOption<Current>,
    /// Held while a file is read. The last one that could not be used.
    refused: Mutex<Option<(Identity, Arc<FileError>)>>,
    problem: ArcSwapOption<FileError>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

struct Current {
    filter: AnyFilter,
    hash_fn: HashFn,
    stamp: Stamp,
    identity: Identity,
    generation: u64,
}

/// Which two files these are: the stamp and the filter. Published ones are always new.
type Identity = [Inode; 2];

/// Which file this is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inode {
    len: u64,
    modified: Option<SystemTime>,
    /// Device, number, and time of the last change of any kind.
    #[cfg(unix)]
    node: [i64; 4],
}

impl Inode {
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
        let first = load(&path)?;
        Ok(Self { shared: Shared::new(path, Some(first)), watcher: None })
    }

    /// Reads the file, and checks this often, in a thread, whether there is a new one. If nothing has been published yet,
    /// every key may be there, until there is.
    pub fn watch(path: impl AsRef<Path>, every: Duration) -> Result<Self, FileError> {
        let path = path.as_ref().to_owned();
        let first = match load(&path) {
            Ok(first) => Some(first),
            Err(FileError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let shared = Shared::new(path.clone(), first);
        let thread = std::thread::Builder::new().name("ironbloom-reader".to_owned());
        let watching = shared.clone();
        let spawned = thread.spawn(move || watching.watch(every));
        let watcher = spawned.map_err(|error| FileError::Io { path, error })?;
        Ok(Self { shared, watcher: Some(watcher) })
    }

    /// Might this key be there? See [above](Self) for what "no" means.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let current = self.shared.current.load();
        current
            .as_ref()
            .is_none_or(|current| current.filter.contains_hash(current.hash_fn.hash(key.as_ref())))
    }

    /// The same for many keys, all asked of one file.
    pub fn contains_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<bool> {
        let mut found = vec![true; keys.len()];
        if let Some(current) = &*self.shared.current.load() {
            let hash = |key: &K| current.hash_fn.hash(key.as_ref());
            let hashes: Vec<u64> = keys.iter().map(hash).collect();
            Filter::contains_hashes(&current.filter, &hashes, &mut found);
        }
        found
    }

    /// Checks whether there is a new file, which costs two system calls, and reads it if so; true if it did. If the file
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
        self.shared.current.load().as_ref().map_or(0, |current| current.generation)
    }

    /// When the filter was taken, by the clock of the process that published it, as the stamp of the file says. The
    /// beginning of 1970 if nothing was read yet.
    pub fn taken(&self) -> SystemTime {
        let current = self.shared.current.load();
        current.as_ref().map_or(SystemTime::UNIX_EPOCH, |current| current.stamp.taken)
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
    fn new(path: PathBuf, first: Option<Loaded>) -> Arc<Self> {
        Arc::new(Self {
            path,
            current: ArcSwapOption::new(first.map(|first| Arc::new(first.into_current(1)))),
            refused: Mutex::default(),
            problem: ArcSwapOption::empty(),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        })
    }

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
        let found = identity_of(&self.path).map_err(in_file)?;
        let current = self.current.load();
        if current.as_ref().is_some_and(|current| current.identity == found) {
            return Ok(false);
        }
        if let Some((identity, error)) = refused
            && *identity == found
        {
            return Err(error.clone()); // reading it once more would not help
        }
        let loaded = load(&self.path).and_then(|loaded| match &*current {
            Some(current) => loaded.continues(current, &self.path),
            None => Ok(loaded),
        });
        match loaded {
            Ok(loaded) => {
                let generation = current.as_ref().map_or(0, |current| current.generation) + 1;
                self.current.store(Some(Arc::new(loaded.into_current(generation))));
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

/// A filter in a file, and its stamp.
struct Loaded {
    filter: AnyFilter,
    hash_fn: HashFn,
    stamp: Stamp,
    identity: Identity,
}

impl Loaded {
    fn into_current(self, generation: u64) -> Current {
        let Self { filter, hash_fn, stamp, identity } = self;
        Current { filter, hash_fn, stamp, identity, generation }
    }

    /// An error if this is not a later state of the same guard.
    fn continues(self, current: &Current, path: &Path) -> Result<Self, FileError> {
        if self.stamp.lineage != current.stamp.lineage {
            Err(invalid(path, "another guard has published it"))
        } else if self.stamp.taken < current.stamp.taken {
            Err(invalid(path, "it is older than what was read before"))
        } else {
            Ok(self)
        }
    }
}

fn identity_of(path: &Path) -> io::Result<Identity> {
    let stamp = std::fs::metadata(stamp_path(path))?;
    Ok([Inode::of(&stamp), Inode::of(&std::fs::metadata(path)?)])
}

fn invalid(path: &Path, why: &str) -> FileError {
    let error = io::Error::new(io::ErrorKind::InvalidData, why);
    FileError::Io { path: path.to_owned(), error }
}

/// How often the two files are read until they belong together: the writer may be between them.
const TRIES: u32 = 20;

/// The filter in a file, with its stamp.
fn load(path: &Path) -> Result<Loaded, FileError> {
    let in_file = |error| FileError::Io { path: path.to_owned(), error };
    for _ in 0..TRIES {
        let identity = identity_of(path).map_err(in_file)?;
        let stamp = Stamp::read(path).map_err(in_file)?;
        let mut file = File::open(path).map_err(in_file)?;
        if Content::of(&mut file).map_err(in_file)? != stamp.file {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        file.seek(SeekFrom::Start(0)).map_err(in_file)?;
        let bytes = file.metadata().map_err(in_file)?.len();
        let filter = AnyFilter::read_sized(file, bytes).map_err(in_file)?;
        return match filter.key_hash() {
            KeyHash::Hash(hash_fn) | KeyHash::Held(hash_fn, _)
                if hash_fn.try_hash(b"").is_some() =>
            {
                Ok(Loaded { filter, hash_fn, stamp, identity })
            }
            _ => Err(invalid(path, "not a filter of keys")),
        };
    }
    Err(invalid(path, "its stamp is that of another file"))
}
