//! An identifier for one state of a store, by which a checkpoint knows what it covers.
//!
//! A random number is drawn, and written to the store before anything else happens, on two occasions:
//!
//! ```text
//!   store:    … write │ G1: sealed ········· │ G2 │ write │ write │ … │ G3: sealed ····
//!   guard:     filter frozen ▲   files say G1        ▲ first write after the checkpoint
//! ```
//!
//! - **A checkpoint** freezes the filter at a moment at which no write begins or ends, and none begins before the store
//!   has the fresh number that the checkpoint will have. Only then are its files written.
//! - **The first write after it** first gives the store another number, which no checkpoint ever has.
//!
//! If store and checkpoint have the same number, this proves that the store has not begun a write since the filter was
//! frozen. All that differs between two states of that number are writes that were in progress at that moment. Such a
//! put is in the frozen filter, and saved as in doubt; such a remove has removed nothing from it. So the filter covers
//! every state of the store with that number, and it does not matter which of them a backup has kept.
//!
//! A crash between the store's number and the files leaves a number that no checkpoint has: the filter is built from a
//! scan. The same holds if the store fails to keep the number, or stores it late: the files for that number are then
//! not written. `tests/generations.rs` tests all orders of these steps.

use std::fmt;

/// 128 random bits that a store keeps next to its keys. The first half stays the same for as long as guards continue one
/// another, the second is drawn for each.
///
/// A checkpoint gives the store a new one, and the first write after it another, each before anything else is written.
/// So a checkpoint with the same number as the store has seen every write; and since no number is ever drawn twice,
/// neither a restored backup nor a copy of the store can be mistaken for another state.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation([u8; 16]);

impl Generation {
    /// A new, unique generation.
    ///
    /// # Panics
    ///
    /// If the system cannot provide random numbers: a number that is not random could prove something false.
    pub fn fresh() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("random numbers from the system");
        Self(bytes)
    }

    /// A new one of this lineage: its first half.
    pub(crate) fn of(lineage: u64) -> Self {
        let mut generation = Self::fresh();
        generation.0[..8].copy_from_slice(&lineage.to_le_bytes());
        generation
    }

    /// The number that all generations of a guard, and of those that continue it, have in common.
    pub(crate) fn lineage(self) -> u64 {
        self.halves()[0]
    }

    pub(crate) fn halves(self) -> [u64; 2] {
        [0, 8].map(|start| u64::from_le_bytes(std::array::from_fn(|i| self.0[start + i])))
    }

    /// The bits, as a store keeps them.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// From the bytes that a store has kept. `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generation({self})")
    }
}
