//! The writer's side: when and how a guard publishes its filter.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use ironbloom::FileError;
use ironbloom::format::native::replace_file;

use super::stamp::{Content, Stamp, stamp_path};
use crate::checkpoint::sweep_temporary;
use crate::events;
use crate::front::Front;
use crate::options::Publish;

/// The longest time between two looks whether there is something to publish, if none was asked for.
const NEVER: Duration = Duration::from_secs(1 << 30);

/// Writes the filter of a guard to a file, by request, after some changes, or after some time.
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    front: Arc<Front>,
    path: PathBuf,
    /// Whose filter it is.
    lineage: u64,
    after: u64,
    /// Writes since the last publication began.
    changes: AtomicU64,
    /// Held while a file is written.
    writing: Mutex<()>,
    /// Whether the thread should end.
    stopped: Mutex<bool>,
    wake: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Publisher {
    pub(crate) fn start(
        front: &Arc<Front>,
        options: &Publish,
        lineage: u64,
    ) -> std::io::Result<Self> {
        sweep_temporary(&options.path);
        sweep_temporary(&stamp_path(&options.path));
        let shared = Arc::new(Shared {
            front: front.clone(),
            path: options.path.clone(),
            lineage,
            after: options.after.unwrap_or(u64::MAX),
            changes: AtomicU64::new(1), // what the filter holds when it is there
            writing: Mutex::new(()),
            stopped: Mutex::new(false),
            wake: Condvar::new(),
        });
        let mut thread = None;
        if options.every.is_some() || options.after.is_some() {
            let (every, shared) = (options.every, shared.clone());
            let builder = std::thread::Builder::new().name("ironbloom-publish".to_owned());
            thread = Some(builder.spawn(move || shared.watch(every))?);
        }
        Ok(Self { shared, thread })
    }

    /// This many keys were put or removed.
    #[inline]
    pub(crate) fn changed(&self, count: u64) {
        let before = self.shared.changes.fetch_add(count, Ordering::Relaxed);
        if before < self.shared.after && before.saturating_add(count) >= self.shared.after {
            let _stopped = locked(&self.shared.stopped);
            self.shared.wake.notify_one();
        }
    }

    /// Writes the file. False if there is no filter yet.
    pub(crate) fn publish(&self) -> Result<bool, FileError> {
        self.shared.publish()
    }
}

impl Drop for Publisher {
    /// Does not publish what has changed since the last time: that could fail unnoticed.
    fn drop(&mut self) {
        *locked(&self.shared.stopped) = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn watch(&self, every: Option<Duration>) {
        let mut stopped = locked(&self.stopped);
        loop {
            let idle =
                |stopped: &mut bool| !*stopped && self.changes.load(Ordering::Relaxed) < self.after;
            let waited = self.wake.wait_timeout_while(stopped, every.unwrap_or(NEVER), idle);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *stopped {
                return;
            }
            if self.changes.load(Ordering::Relaxed) == 0 {
                continue;
            }
            drop(stopped);
            let done = self.publish();
            if let Err(error) = &done {
                events::publish_failed(error);
            }
            stopped = locked(&self.stopped);
            if !matches!(done, Ok(true)) {
                // Not at once again: the disk may be full, or the filter is still being built.
                let waited = self.wake.wait_timeout_while(stopped, AGAIN, |stopped| !*stopped);
                stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn publish(&self) -> Result<bool, FileError> {
        let _writing = locked(&self.writing);
        // Before the filter is looked at: every put that was acknowledged by now is in it.
        let taken = SystemTime::now();
        let changes = self.changes.swap(0, Ordering::Relaxed);
        let published = self.front.filter_now().map(|filter| {
            replace_file(&self.path, |file| {
                filter.write_published(&mut BufWriter::with_capacity(1 << 20, file))?;
                file.set_modified(taken)
            })?;
            let file = Content::of(&mut File::open(&self.path)?)?;
            Stamp { lineage: self.lineage, taken, file }.write(&self.path)
        });
        if !matches!(published, Some(Ok(()))) {
            self.changes.fetch_add(changes, Ordering::Relaxed);
        }
        let in_file = |error| FileError::Io { path: self.path.clone(), error };
        published.transpose().map(|done| done.is_some()).map_err(in_file)
    }
}

/// The pause after a publication that could not be.
const AGAIN: Duration = Duration::from_millis(100);
