//! A name for one state of a store, by which a checkpoint knows what it covers.

use std::fmt;

/// 128 random bits that a store keeps beside its keys.
///
/// The first write after a checkpoint gives the store a new one, before anything else is written. So a checkpoint that
/// bears the same number as the store has seen every write; and since no number is ever drawn twice, neither a
/// restored backup nor a copy of the store can be taken for another state than it is.
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
