//! What a store says about a write, beyond "done".

/// Whether a key was stored before a put or a remove.
///
/// A store that repeats a request whose answer was lost cannot always tell: it then says [`Unknown`](Self::Unknown)
/// instead of guessing. A guard takes such a key for stored, and for perhaps new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Before {
    /// The key was not stored.
    Absent,
    /// The key was stored.
    Present,
    /// The store cannot tell.
    Unknown,
}

impl Before {
    /// [`Present`](Self::Present) or [`Absent`](Self::Absent).
    pub fn stored(stored: bool) -> Self {
        if stored { Self::Present } else { Self::Absent }
    }

    /// True if the key was certainly not stored: a put has created it.
    pub fn was_absent(self) -> bool {
        self == Self::Absent
    }

    /// True if the key was certainly stored: a remove has removed it.
    pub fn was_present(self) -> bool {
        self == Self::Present
    }

    /// True unless the key was certainly stored.
    pub fn may_be_new(self) -> bool {
        self != Self::Present
    }
}

/// What became of a write that ended with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// It may have been carried out, or may be carried out later: its key is in doubt.
    Unknown,
    /// It was certainly not carried out, and never will be: for example because there was no connection to send it over.
    NotDone,
    /// It was refused, because the store does not hold the generation that was stored last through this handle. See
    /// [`Backend::claim`](crate::Backend::claim).
    OtherState,
}
