//! Parts of a table that are read at the same time are handed over one after the other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ironbloom_blocks::Cells;

/// The cells of the columns of a pass, and whose turn it is to add to them.
pub(super) struct Turn {
    /// The part whose rows come next. Changed while the state is locked; read at any time.
    next: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    cells: Vec<Cells>,
    is_stopped: bool,
}

/// The turn of a part will not come: the build has failed.
pub(super) struct Stopped;

impl Turn {
    pub(super) fn new() -> Self {
        let state = State { cells: Vec::new(), is_stopped: false };
        Self { next: AtomicUsize::new(0), state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the cells that are to be filled.
    pub(super) fn start(&self, cells: Vec<Cells>) {
        self.state().cells = cells;
    }

    /// Whether it is the turn of this part.
    pub(super) fn is_of(&self, part: usize) -> bool {
        self.next.load(Ordering::Acquire) == part
    }

    /// Waits for the turn of this part.
    pub(super) fn wait(&self, part: usize) -> Result<(), Stopped> {
        let waits = |state: &mut State| !self.is_of(part) && !state.is_stopped;
        let state = self.changed.wait_while(self.state(), waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped { Err(Stopped) } else { Ok(()) }
    }

    /// Fills cells, in the turn of the caller.
    pub(super) fn fill(&self, fill: impl FnOnce(&mut [Cells])) {
        fill(&mut self.state().cells);
    }

    /// Ends the turn of the caller. The cells, if it was the last of these parts.
    pub(super) fn end(&self, parts: usize) -> Option<Vec<Cells>> {
        let mut state = self.state();
        let next = self.next.fetch_add(1, Ordering::AcqRel) + 1;
        self.changed.notify_all();
        (next == parts).then(|| std::mem::take(&mut state.cells))
    }

    /// Lets nobody wait any longer.
    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }
}
