//! Filters as files. [`native`] is Ironbloom's own format, `.ibf`; each foreign format has its own file next to it.

pub mod native;

use std::fmt;

/// The kinds of filter a file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum Kind {
    /// [`Bitmap`](crate::Bitmap)
    Bitmap = 1,
    /// [`Bloom`](crate::Bloom)
    Bloom = 2,
    /// [`BlockedBloom`](crate::BlockedBloom)
    Blocked = 3,
    /// [`SplitBlock`](crate::SplitBlock)
    SplitBlock = 4,
    /// [`CountingBloom`](crate::CountingBloom)
    Counting = 5,
    /// [`DLeft`](crate::DLeft)
    DLeft = 6,
    /// [`Cuckoo`](crate::Cuckoo)
    Cuckoo = 7,
    /// [`BinaryFuse`](crate::BinaryFuse)
    Fuse = 8,
    /// [`Scalable`](crate::Scalable)
    Scalable = 9,
    /// [`Windowed`](crate::Windowed)
    Windowed = 10,
    /// [`ParallelBloom`](crate::multi::ParallelBloom)
    Parallel = 11,
    /// [`Joint`](crate::multi::Joint)
    Joint = 12,
}

impl Kind {
    /// All kinds, in the order of their numbers in files.
    pub const ALL: [Self; 12] = [
        Self::Bitmap,
        Self::Bloom,
        Self::Blocked,
        Self::SplitBlock,
        Self::Counting,
        Self::DLeft,
        Self::Cuckoo,
        Self::Fuse,
        Self::Scalable,
        Self::Windowed,
        Self::Parallel,
        Self::Joint,
    ];

    /// The word used for it on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Bloom => "bloom",
            Self::Blocked => "blocked",
            Self::SplitBlock => "split-block",
            Self::Counting => "counting",
            Self::DLeft => "d-left",
            Self::Cuckoo => "cuckoo",
            Self::Fuse => "fuse",
            Self::Scalable => "scalable",
            Self::Windowed => "windowed",
            Self::Parallel => "parallel",
            Self::Joint => "joint",
        }
    }

    pub(crate) fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u16 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
