//! Which filter to put in front of the store, chosen by need.

use std::fmt;

/// The kinds of filter that a guard can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Keys are put and looked up, rarely removed: one cache line per lookup, 10.1 bits per key at 1 %. A removed key
    /// stays in the filter, as a false positive, until there are enough of them that the filter is rebuilt.
    Blocked,
    /// Keys come and go: a removed key leaves the filter at once, if nobody else can write to the store
    /// ([`Options::only_writer`](crate::Options::only_writer)). 10.8 bits per key at 1 %.
    Cuckoo,
    /// Keys come and go, and the rate must be far below 1 %: 20 bits per key at 0.02 % and all rates above. Inserts
    /// move nothing, so a put costs the same however full the filter is.
    DLeft,
    /// The number of keys is unknown: the filter grows with them, 13 to 16 bits per key at 1 %.
    Scalable,
    /// Only the most recently put keys matter, as in a cache: **older ones may be answered "absent" although they are
    /// stored.** The capacity is the number of most recent puts whose keys are certain to be remembered; a key that is
    /// put again counts again.
    Windowed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Blocked, Self::Cuckoo, Self::DLeft, Self::Scalable, Self::Windowed];

    /// The word used for it on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.in_files().name()
    }

    /// Whether a removed key leaves the filter.
    pub fn can_remove(self) -> bool {
        matches!(self, Self::Cuckoo | Self::DLeft)
    }

    /// Whether the filter can be rebuilt from a scan of the store. A window cannot: a scan does not know what is
    /// recent.
    pub fn can_rebuild(self) -> bool {
        self != Self::Windowed
    }

    /// The corresponding kind in the library; its number is written to files.
    pub(crate) fn in_files(self) -> ironbloom::Kind {
        match self {
            Self::Blocked => ironbloom::Kind::Blocked,
            Self::Cuckoo => ironbloom::Kind::Cuckoo,
            Self::DLeft => ironbloom::Kind::DLeft,
            Self::Scalable => ironbloom::Kind::Scalable,
            Self::Windowed => ironbloom::Kind::Windowed,
        }
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.in_files() as u64 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or_else(|| UnknownKind { word: word.to_owned() })
    }
}

/// A word that does not name a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// The word.
    pub word: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Kind::ALL.map(Kind::name).join(", ");
        write!(f, "no kind of guard: {:?} (there are {names})", self.word)
    }
}

impl std::error::Error for UnknownKind {}
