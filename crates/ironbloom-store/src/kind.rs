//! Which filter to put in front of the store, chosen by need.

use std::fmt;

use ironbloom::plan::Plan;

use crate::filter::{self, Maker};

macro_rules! guard_kinds {
    ($($(#[$doc:meta])* $kind:ident => $maker:path;)*) => {
        /// The kinds of filter that a guard can have: those of [`ironbloom::Kind`] that many threads can share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum GuardKind {
            $($(#[$doc])* $kind,)*
        }

        impl GuardKind {
            /// All kinds.
            pub const ALL: [Self; [$(Self::$kind),*].len()] = [$(Self::$kind),*];

            /// The corresponding kind in the library; its number is written to files.
            pub(crate) fn in_files(self) -> ironbloom::Kind {
                match self {
                    $(Self::$kind => ironbloom::Kind::$kind,)*
                }
            }

            /// What makes its filters.
            pub(crate) fn maker(self) -> &'static Maker {
                match self {
                    $(Self::$kind => &$maker,)*
                }
            }
        }
    };
}

// The only place where the kinds of a guard are listed. What a kind can do, the library knows.
guard_kinds! {
    /// Keys are put and looked up, rarely removed: one cache line per lookup, 10.1 bits per key at 1 %. A removed key
    /// stays in the filter, as a false positive, until there are enough of them that the filter is rebuilt.
    Blocked => filter::BLOCKED;
    /// Keys come and go: a removed key leaves the filter at once, if nobody else can write to the store
    /// ([`Options::only_writer`](crate::Options::only_writer)). 10.8 bits per key at 1 %.
    Cuckoo => filter::CUCKOO;
    /// Keys come and go, and the rate must be far below 1 %: 20 bits per key at 0.02 % and all rates above. Inserts
    /// move nothing, so a put costs the same however full the filter is.
    DLeft => filter::D_LEFT;
    /// The number of keys is unknown: the filter grows with them, 13 to 16 bits per key at 1 %.
    Scalable => filter::GROWING;
    /// Only the most recently put keys matter, as in a cache: **older ones may be answered "absent" although they are
    /// stored.** The capacity is the number of most recent puts whose keys are certain to be remembered; a key that is
    /// put again counts again.
    Windowed => filter::WINDOW;
}

impl GuardKind {
    /// The word used for it on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.in_files().name()
    }

    /// Whether a removed key leaves the filter.
    pub fn can_remove(self) -> bool {
        self.plan().abilities.remove
    }

    /// Whether the filter can be rebuilt from a scan of the store. A window cannot: a scan does not know what is
    /// recent.
    pub fn can_rebuild(self) -> bool {
        !self.forgets()
    }

    /// Whether older keys may be answered "absent".
    pub(crate) fn forgets(self) -> bool {
        self.plan().abilities.forget
    }

    /// What the library's filters of this kind cost and can do.
    pub(crate) fn plan(self) -> &'static Plan {
        self.in_files().plan().expect("every kind of guard can be planned")
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.in_files() as u64 == number)
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for GuardKind {
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
        let names = GuardKind::ALL.map(GuardKind::name).join(", ");
        write!(f, "no kind of guard: {:?} (there are {names})", self.word)
    }
}

impl std::error::Error for UnknownKind {}
