//! [`Shared`]: a filter that threads use, with and without the interpreter.
//!
//! Batches work without the interpreter's lock, so each filter has a separate one. To take it and give it back takes longer
//! than to look a key up, and makes the processor wait for memory. But a thread that has the interpreter needs no other
//! lock while no thread uses the filter without it:
//!
//! ```text
//!  no users, and I have the interpreter    nobody else comes near the filter until I give the interpreter away
//!  users                                   somebody has a guard, or will take one without the interpreter: I need one, too
//! ```
//!
//! The number of users grows only in threads that have the interpreter. Where Python has no such lock (free-threaded builds),
//! there is always a user.
//!
//! **No thread waits for the interpreter while it has a guard**, or two threads would wait for each other.
//!
//! A process that forks leaves all other threads behind, with the guards that they had. The child begins with a new lock. If
//! one of those threads was changing the filter, half of a change may be in it, and every use of it is an error.

#![expect(
    unsafe_code,
    reason = "the interpreter's lock guards the filter, which only Python knows"
)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ironbloom::AnyFilter;
use pyo3::prelude::*;
use pyo3::sync::{PyOnceLock, RwLockExt};
use pyo3::types::PyDict;

use crate::errors::named;

pub(crate) struct Shared {
    filter: UnsafeCell<AnyFilter>,
    lock: UnsafeCell<RwLock<()>>,
    users: AtomicUsize,
    /// Users that there are when there are none: one where Python has no lock.
    usual_users: usize,
    /// Threads that have a guard to change the filter.
    writers: AtomicUsize,
    /// The value of [`FORKS`] that the lock and the numbers above are of.
    forks: AtomicUsize,
    /// Set in a child whose parent was changing the filter.
    torn: AtomicUsize,
}

// SAFETY: filters can be sent to and shared by threads. `filter` is used under `lock` (`Reading`, `Writing`), or by the
// thread that has the interpreter while there are no users, hence no guards (`is_alone`). `lock` is replaced only after a
// fork, by the first thread that comes, before it or any other takes a guard (`begin_in_child`).
unsafe impl Sync for Shared {}

/// How often this process has come out of a fork as the child.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// A child is changing the lock of a filter.
const CHANGING: usize = usize::MAX;

/// Has the interpreter tell when a process begins as the child of a fork.
pub(crate) fn watch_forks(py: Python<'_>) -> PyResult<()> {
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let count = pyo3::types::PyCFunction::new_closure(py, None, None, |_, _| {
        FORKS.fetch_add(1, Ordering::Relaxed);
    })?;
    let arguments = PyDict::new(py);
    arguments.set_item("after_in_child", count)?;
    register.call((), Some(&arguments)).map(drop)
}

impl Shared {
    pub(crate) fn new(py: Python<'_>, filter: AnyFilter) -> PyResult<Self> {
        let usual_users = usize::from(!has_one_lock(py)?);
        Ok(Self {
            filter: UnsafeCell::new(filter),
            lock: UnsafeCell::new(RwLock::new(())),
            users: usual_users.into(),
            usual_users,
            writers: 0.into(),
            forks: FORKS.load(Ordering::Relaxed).into(),
            torn: 0.into(),
        })
    }

    /// No thread has a guard, and none gets one until this thread gives the interpreter away.
    #[inline(always)]
    fn is_alone(&self, _py: Python<'_>) -> bool {
        // Together with the release of the last user, what that has written is seen.
        self.users.load(Ordering::Acquire) == 0
    }

    /// Looks at the filter for a moment, in which no code of Python runs.
    #[inline(always)]
    pub(crate) fn look<R>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&AnyFilter) -> R,
    ) -> PyResult<R> {
        if self.is_alone(py) {
            // SAFETY: no thread has a guard, and other threads cannot come here: this one has the interpreter, which a lookup
            // does not give away.
            return Ok(look(unsafe { &*self.filter.get() }));
        }
        Ok(look(&*self.read(py)?))
    }

    /// Changes the filter in a moment, in which no code of Python runs.
    #[inline(always)]
    pub(crate) fn change<R>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut AnyFilter) -> R,
    ) -> PyResult<R> {
        if self.is_alone(py) {
            // SAFETY: as above.
            return Ok(change(unsafe { &mut *self.filter.get() }));
        }
        Ok(change(&mut *self.write(py)?))
    }

    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<Reading<'_>> {
        Ok(self.user(py)?.reading(Some(py)))
    }

    pub(crate) fn write(&self, py: Python<'_>) -> PyResult<Writing<'_>> {
        Ok(self.user(py)?.writing(Some(py)))
    }

    /// A user, who may take guards without the interpreter. An error in a child of a process that was changing the filter.
    pub(crate) fn user(&self, py: Python<'_>) -> PyResult<User<'_>> {
        let forks = self.settled(py);
        if self.torn.load(Ordering::Relaxed) != 0 {
            let what = "the process was forked while another thread changed this filter, which may be half done: \
                        load it from a file, or make it before the fork";
            return Err(named(py, "Error", what));
        }
        self.users.fetch_add(1, Ordering::Relaxed);
        Ok(User { shared: self, forks: forks.into() })
    }

    /// The number of forks, after which the lock is one of this process.
    fn settled(&self, _py: Python<'_>) -> usize {
        let forks = FORKS.load(Ordering::Relaxed);
        if self.forks.load(Ordering::Acquire) != forks {
            self.begin_in_child(forks);
        }
        forks
    }

    /// Forgets the guards of threads that the fork has left behind.
    #[cold]
    fn begin_in_child(&self, forks: usize) {
        let before = self.forks.load(Ordering::Acquire);
        let mine = before != CHANGING
            && before != forks
            && self
                .forks
                .compare_exchange(before, CHANGING, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !mine {
            while self.forks.load(Ordering::Acquire) == CHANGING {
                std::hint::spin_loop();
            }
            return;
        }
        let torn = usize::from(self.writers.swap(0, Ordering::Relaxed) != 0);
        let torn = torn | self.torn.fetch_or(torn, Ordering::Relaxed);
        // SAFETY: whoever had a guard of this lock, or waits for one, is a thread of the parent; in this process no thread
        // takes one before `forks` is set below. The old lock is not dropped: its owners are gone without a word.
        unsafe { self.lock.get().write(RwLock::new(())) };
        // Of a torn filter, one user stays: no thread is ever alone with it.
        self.users.store(self.usual_users + torn, Ordering::Relaxed);
        self.forks.store(forks, Ordering::Release);
    }

    /// The lock of this process; there is a user, so that it is not replaced.
    fn lock(&self) -> &RwLock<()> {
        // SAFETY: it is replaced only before the first user after a fork is made.
        unsafe { &*self.lock.get() }
    }

    /// Reads the filter without the interpreter.
    pub(crate) fn read_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AnyFilter) -> R + Send,
    ) -> PyResult<R> {
        let user = self.user(py)?;
        Ok(py.detach(|| work(&user.reading(None))))
    }

    /// Changes the filter without the interpreter.
    pub(crate) fn write_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyFilter) -> R + Send,
    ) -> PyResult<R> {
        let user = self.user(py)?;
        Ok(py.detach(|| work(&mut user.writing(None))))
    }
}

/// Returns true if threads take turns in this interpreter. It may begin to, but never ends to while it runs.
fn has_one_lock(py: Python<'_>) -> PyResult<bool> {
    static KNOWN: PyOnceLock<bool> = PyOnceLock::new();
    KNOWN
        .get_or_try_init(py, || match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
            Some(is_enabled) => is_enabled.call0()?.extract(),
            None => Ok(true), // before 3.13
        })
        .copied()
}

/// A user of the filter, with guards. Made by a thread that has the interpreter.
pub(crate) struct User<'a> {
    shared: &'a Shared,
    /// The forks before which it was counted.
    forks: AtomicUsize,
}

impl Clone for User<'_> {
    /// There is a user already, and whoever has the interpreter sees that, even if this thread lacks it.
    fn clone(&self) -> Self {
        self.shared.users.fetch_add(1, Ordering::Relaxed);
        Self { shared: self.shared, forks: self.forks.load(Ordering::Relaxed).into() }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        if self.shared.forks.load(Ordering::Relaxed) == *self.forks.get_mut() {
            self.shared.users.fetch_sub(1, Ordering::Release);
        }
    }
}

impl<'a> User<'a> {
    /// The filter, for a thread with or without the interpreter.
    pub(crate) fn reading(&self, py: Option<Python<'_>>) -> Reading<'a> {
        self.follow_fork();
        let lock = self.shared.lock();
        let lock = match py {
            Some(py) => lock.read_py_attached(py),
            None => lock.read(),
        };
        Reading { _lock: lock.unwrap_or_else(PoisonError::into_inner), user: self.clone() }
    }

    /// Takes the filter to change it.
    pub(crate) fn writing(&self, py: Option<Python<'_>>) -> Writing<'a> {
        self.follow_fork();
        let lock = self.shared.lock();
        // The library panics only on batches of wrong lengths, before it changes anything.
        let lock = match py {
            Some(py) => lock.write_py_attached(py),
            None => lock.write(),
        };
        let lock = lock.unwrap_or_else(PoisonError::into_inner);
        Writing { _writer: Writer::new(self.shared), _lock: lock, user: self.clone() }
    }

    /// Counts this user again if its process was forked since: by the iterator that keys come from, or a signal handler.
    fn follow_fork(&self) {
        let forks = FORKS.load(Ordering::Relaxed);
        if self.forks.load(Ordering::Relaxed) != forks {
            Python::attach(|py| {
                self.shared.settled(py);
                self.shared.users.fetch_add(1, Ordering::Relaxed);
            });
            self.forks.store(forks, Ordering::Relaxed);
        }
    }
}

/// Counts a thread that changes the filter.
struct Writer<'a>(&'a Shared);

impl<'a> Writer<'a> {
    fn new(shared: &'a Shared) -> Self {
        // Seen by a fork before anything that is changed.
        shared.writers.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.0.writers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A filter that is not changed meanwhile. The lock is given back first, then the user goes.
pub(crate) struct Reading<'a> {
    _lock: RwLockReadGuard<'a, ()>,
    user: User<'a>,
}

/// A filter that no other thread uses meanwhile.
pub(crate) struct Writing<'a> {
    _writer: Writer<'a>,
    _lock: RwLockWriteGuard<'a, ()>,
    user: User<'a>,
}

impl Deref for Reading<'_> {
    type Target = AnyFilter;

    fn deref(&self) -> &AnyFilter {
        // SAFETY: the lock is held for reading, and there is a user.
        unsafe { &*self.user.shared.filter.get() }
    }
}

impl Deref for Writing<'_> {
    type Target = AnyFilter;

    fn deref(&self) -> &AnyFilter {
        // SAFETY: the lock is held for writing, and there is a user.
        unsafe { &*self.user.shared.filter.get() }
    }
}

impl DerefMut for Writing<'_> {
    fn deref_mut(&mut self) -> &mut AnyFilter {
        // SAFETY: as above.
        unsafe { &mut *self.user.shared.filter.get() }
    }
}
