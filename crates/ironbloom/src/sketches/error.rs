//! One small type for each way to fail.

use std::fmt;
use std::io;

use crate::redisbloom::error::{CreateError, DecodeError};

/// A sketch that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A parameter outside its range.
    Param {
        /// Which, and its range.
        what: &'static str,
    },
    /// More bytes than the limit allows.
    OverLimit {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system lacks that much memory.
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl PlanError {
    /// An error unless `holds`.
    pub(super) fn unless(holds: bool, what: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::Param { what }) }
    }
}

impl From<CreateError> for PlanError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Shape => Self::Param { what: "size" },
            CreateError::OverLimit { limit } => Self::OverLimit { limit },
            CreateError::Memory { bytes } => Self::Memory { bytes },
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param { what } => write!(f, "there is no sketch with this {what}"),
            Self::OverLimit { limit } => write!(f, "a sketch may have {limit} bytes at most"),
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes of memory"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Sketches that were not merged. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They differ in size or other parameters.
    Differs,
    /// A number of the result would be out of range.
    Overflow,
    /// The system lacks the memory for the result.
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs => write!(f, "sketches of different parameters cannot be merged"),
            Self::Overflow => write!(f, "a number of the merged sketch would be out of range"),
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes of memory"),
        }
    }
}

impl std::error::Error for MergeError {}

/// A file that does not hold the sketch that was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum SketchFileError {
    /// The operating system reported an error.
    Io(io::Error),
    /// The first bytes are not those of a sketch.
    NotASketch,
    /// Written by a later release.
    Version {
        /// The version of the file.
        found: u32,
    },
    /// A sketch of another kind.
    Kind {
        /// The kind in the file.
        found: u32,
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The file is cut short, or has bytes after its end.
    Length,
    /// A checksum is wrong: the file is damaged.
    Checksum,
    /// The checksums are right, but no such sketch exists.
    Fields(DecodeError),
}

impl fmt::Display for SketchFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "reading the sketch: {error}"),
            Self::NotASketch => f.write_str("not a sketch"),
            Self::Version { found } => {
                write!(f, "a sketch of version {found}; this program knows version 1")
            }
            Self::Kind { found, expected } => {
                write!(f, "a sketch of kind {found}; expected a {expected}")
            }
            Self::Length => f.write_str("the sketch is cut short, or has bytes after its end"),
            Self::Checksum => f.write_str("the sketch is damaged: its checksum is wrong"),
            Self::Fields(error) => write!(f, "the sketch is damaged: {error}"),
        }
    }
}

/// No source: the cause is already in the message, and printing the chain would repeat it.
impl std::error::Error for SketchFileError {}

impl From<io::Error> for SketchFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DecodeError> for SketchFileError {
    fn from(error: DecodeError) -> Self {
        Self::Fields(error)
    }
}
