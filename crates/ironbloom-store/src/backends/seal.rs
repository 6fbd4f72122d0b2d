//! Marks a store that is written to without a guard.
//!
//! The checkpoint of a guard gives its store a generation and seals it: a guard sets another generation before it
//! writes again. A writer without a guard does not, so the first write to a sealed store drops the generation, and no
//! checkpoint is trusted any more. A newly opened handle is sealed.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the store has been sealed since its generation was last set.
#[derive(Debug)]
pub(super) struct Seal(AtomicBool);

impl Seal {
    /// The seal of a newly opened handle.
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(true))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, whole: bool) {
        self.0.store(whole, Ordering::Release);
    }
}
