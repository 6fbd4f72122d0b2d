//! Notices a store that calls back into its own guard.
//!
//! A guard holds locks while its store writes, scans or takes a generation. A store that asks the guard for one of them
//! in the same call would wait for itself. The thread that runs the store's code knows so, also while it polls a future
//! of the store: the call is then an error.

use std::cell::RefCell;
use std::pin::pin;

thread_local! {
    /// The guards whose stores this thread is running.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// From its beginning to its end the thread runs the store's code.
struct Here;

impl Here {
    fn enter(guard: usize) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(guard));
        Self
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.pop());
    }
}

/// Runs code of the store of this guard.
pub(super) async fn inside<T>(guard: usize, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| {
        let _here = Here::enter(guard);
        future.as_mut().poll(context)
    })
    .await
}

/// Whether this thread is running code of the store of this guard.
pub(super) fn is_inside(guard: usize) -> bool {
    INSIDE.with_borrow(|inside| inside.contains(&guard))
}
