//! A name for one state of a store, by which a checkpoint knows what it covers.
//!
//! A number is drawn, and written to the store before anything else happens, on two occasions:
//!
//! ```text
//!   store:    … write │ G1: sealed ········· │ G2 │ write │ write │ … │ G3: sealed ····
//!   guard:     filter frozen ▲   files say G1        ▲ first write after the checkpoint
//! ```
//!
//! - **A checkpoint** freezes the filter at a moment at which no write begins or ends, and none begins before the store has
//!   the fresh number that the checkpoint will bear. Only then are its files written.
//! - **The first write after it** gives the store another number first, which no checkpoint ever bears.
//!
//! What is then proved if store and checkpoint bear the same number: the store has not begun a write since the filter was
//! frozen. All that differs between two states of that number are writes that were under way at that moment. A put that
//! was is in the frozen filter, and saved as in doubt; a remove that was has taken nothing out of it. So the filter covers
//! every state of the store that bears the number, and it does not matter which of them a backup has kept.
//!
//! A crash between the store's number and the files leaves a number that no checkpoint bears: the filter is built from
//! a scan. The same holds if the store fails to keep the number, or keeps it late: the files of that number are not
//! written then. `tests/generations.rs` walks through all orders of these steps.

use std::fmt;

/// 128 random bits that a store keeps beside its keys.
///
/// A checkpoint gives the store a new one, and the first write after it another, each before anything else is written. So
/// a checkpoint that bears the same number as the store has seen every write; and since no number is ever drawn
/// twice, neither a restored backup nor a copy of the store can be taken for another state than it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation([u8; 16]);

impl Generation {
    /// One that was never there before.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers to give: a number that is not random could prove something false.
    pub fn fresh() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("random numbers from the system");
        Self(bytes)
    }

    /// The bits, as a store keeps them.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// From what a store has kept. `None` if that has another length.
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
