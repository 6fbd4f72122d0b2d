//! [`Shared`]: a filter that threads use, with and without the interpreter.
//!
//! Batches work without the interpreter's lock, so the filter has one of its own. To take it and give it back takes longer
//! than to look a key up, and makes the processor wait for memory. But a thread that has the interpreter needs no other
//! lock while nobody uses the filter without it:
//!
//! ```text
//!  no users, and I have the interpreter    nobody else comes near the filter until I give the interpreter away
//!  users                                   somebody has a guard, or will take one without the interpreter: I need one, too
//! ```
//!
//! The number of users grows only in threads that have the interpreter. Where Python has no such lock (free-threaded builds),
//! there is always a user.
//!
//! **Nobody waits for the interpreter while having a guard**, or two threads would wait for each other.

#![expect(
    unsafe_code,
    reason = "the interpreter's lock guards the filter, which only Python knows"
)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ironbloom::any::Refused;
use ironbloom::{AnyFilter, Filter as _, Insert as _};
use pyo3::prelude::*;
use pyo3::sync::{PyOnceLock, RwLockExt};

pub(crate) struct Shared {
    filter: UnsafeCell<AnyFilter>,
    lock: RwLock<()>,
    users: AtomicUsize,
}

// SAFETY: filters can be sent to and shared by threads. `filter` is used under `lock` (`Reading`, `Writing`), or by the
// thread that has the interpreter while there are no users, hence no guards (`is_alone`).
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(py: Python<'_>, filter: AnyFilter) -> PyResult<Self> {
        let users = usize::from(!has_one_lock(py)?);
        Ok(Self { filter: UnsafeCell::new(filter), lock: RwLock::new(()), users: users.into() })
    }

    /// Nobody has a guard, and nobody gets one until this thread gives the interpreter away.
    #[inline(always)]
    fn is_alone(&self, _py: Python<'_>) -> bool {
        // Together with the release of the last user, what that has written is seen.
        self.users.load(Ordering::Acquire) == 0
    }

    #[inline(always)]
    pub(crate) fn contains_hash(&self, py: Python<'_>, hash: u64) -> bool {
        if self.is_alone(py) {
            // SAFETY: nobody has a guard, and other threads cannot come here: this one has the interpreter, which a lookup
            // does not give away.
            return unsafe { &*self.filter.get() }.contains_hash(hash);
        }
        self.read(py).contains_hash(hash)
    }

    #[inline(always)]
    pub(crate) fn insert_hash(&self, py: Python<'_>, hash: u64) -> Result<bool, Refused> {
        if self.is_alone(py) {
            // SAFETY: as above.
            return unsafe { &mut *self.filter.get() }.insert_hash(hash);
        }
        self.write(py).insert_hash(hash)
    }

    #[inline(always)]
    pub(crate) fn remove_hash(&self, py: Python<'_>, hash: u64) -> Result<bool, Refused> {
        if self.is_alone(py) {
            // SAFETY: as above.
            return unsafe { &mut *self.filter.get() }.remove_hash(hash);
        }
        self.write(py).remove_hash(hash)
    }

    pub(crate) fn read(&self, py: Python<'_>) -> Reading<'_> {
        self.user(py).into_reading(self.lock.read_py_attached(py))
    }

    pub(crate) fn write(&self, py: Python<'_>) -> Writing<'_> {
        self.user(py).into_writing(self.lock.write_py_attached(py))
    }

    /// A user, who may take guards without the interpreter.
    pub(crate) fn user(&self, _py: Python<'_>) -> User<'_> {
        self.users.fetch_add(1, Ordering::Relaxed);
        User { shared: self }
    }

    /// Reads the filter without the interpreter.
    pub(crate) fn read_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AnyFilter) -> R + Send,
    ) -> R {
        let user = self.user(py);
        py.detach(|| work(&user.reading(None)))
    }

    /// Changes the filter without the interpreter.
    pub(crate) fn write_detached<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyFilter) -> R + Send,
    ) -> R {
        let user = self.user(py);
        py.detach(|| work(&mut user.writing(None)))
    }
}

/// Whether threads take turns in this interpreter. It may begin to, but never ends to while it runs.
fn has_one_lock(py: Python<'_>) -> PyResult<bool> {
    static KNOWN: PyOnceLock<bool> = PyOnceLock::new();
    KNOWN
        .get_or_try_init(py, || match py.import("sys")?.getattr_opt("_is_gil_enabled")? {
            Some(is_enabled) => is_enabled.call0()?.extract(),
            None => Ok(true), // before 3.13
        })
        .copied()
}

/// Somebody who uses the filter with guards. Made by a thread that has the interpreter.
pub(crate) struct User<'a> {
    shared: &'a Shared,
}

impl Clone for User<'_> {
    /// There is a user already, and whoever has the interpreter sees that, even if this thread lacks it.
    fn clone(&self) -> Self {
        self.shared.users.fetch_add(1, Ordering::Relaxed);
        Self { shared: self.shared }
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        self.shared.users.fetch_sub(1, Ordering::Release);
    }
}

impl<'a> User<'a> {
    /// The filter, for a thread with or without the interpreter.
    pub(crate) fn reading(&self, py: Option<Python<'_>>) -> Reading<'a> {
        let lock = &self.shared.lock;
        let lock = match py {
            Some(py) => lock.read_py_attached(py),
            None => lock.read(),
        };
        self.clone().into_reading(lock)
    }

    /// The same to change it.
    pub(crate) fn writing(&self, py: Option<Python<'_>>) -> Writing<'a> {
        let lock = &self.shared.lock;
        let lock = match py {
            Some(py) => lock.write_py_attached(py),
            None => lock.write(),
        };
        self.clone().into_writing(lock)
    }

    fn into_reading(self, lock: Poisoned<RwLockReadGuard<'a, ()>>) -> Reading<'a> {
        Reading { _lock: lock.unwrap_or_else(PoisonError::into_inner), user: self }
    }

    fn into_writing(self, lock: Poisoned<RwLockWriteGuard<'a, ()>>) -> Writing<'a> {
        Writing { _lock: lock.unwrap_or_else(PoisonError::into_inner), user: self }
    }
}

/// The library panics only on batches of wrong lengths, before it changes anything.
type Poisoned<G> = Result<G, PoisonError<G>>;

/// A filter that nobody changes meanwhile. The lock is given back first, then the user goes.
pub(crate) struct Reading<'a> {
    _lock: RwLockReadGuard<'a, ()>,
    user: User<'a>,
}

/// A filter that nobody else uses meanwhile.
pub(crate) struct Writing<'a> {
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
