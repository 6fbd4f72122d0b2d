//! One small type for each way to fail.

use std::fmt;

/// A filter, or its next sub-filter, that cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateError {
    /// Impossible parameters: no keys, a rate outside (0, 1), or more bits than can be counted.
    Shape,
    /// More bytes than a key may have.
    OverLimit {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The system does not have that much memory.
    Memory {
        /// Bytes requested.
        bytes: u64,
    },
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape => write!(f, "there is no filter of this shape"),
            Self::OverLimit { limit } => write!(f, "a filter may have {limit} bytes at most"),
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes of memory"),
        }
    }
}

impl std::error::Error for CreateError {}

/// A key that was not inserted. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// No room, and the filter may not grow.
    Full,
    /// No room, and the next sub-filter cannot be created.
    Growth(CreateError),
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "the filter is full"),
            Self::Growth(error) => write!(f, "the filter is full and cannot grow: {error}"),
        }
    }
}

impl std::error::Error for InsertError {}

/// Two filters of different shapes, which cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeMismatch;

impl fmt::Display for ShapeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filters of different shapes have no union")
    }
}

impl std::error::Error for ShapeMismatch {}

/// Bytes or fields that do not encode a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends too early, or has trailing bytes.
    Length,
    /// A value that no filter has.
    Field {
        /// Name of the field.
        what: &'static str,
    },
    /// A filter that this code cannot query: with 32-bit hashes, sizes rounded to powers of two, or
    /// a newer encoding.
    Unsupported {
        /// The unsupported property.
        what: &'static str,
    },
    /// The filter would be too large.
    TooLarge(CreateError),
}

impl DecodeError {
    /// Returns an error unless `holds`.
    pub fn unless(holds: bool, what: &'static str) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::Field { what }) }
    }
}

impl From<CreateError> for DecodeError {
    fn from(error: CreateError) -> Self {
        Self::TooLarge(error)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => write!(f, "the length is wrong"),
            Self::Field { what } => write!(f, "no filter has this {what}"),
            Self::Unsupported { what } => write!(f, "{what} not supported"),
            Self::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A chunk that was refused. The filter is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// It does not start in any sub-filter.
    NoSuchPlace,
    /// It reaches beyond the sub-filter it starts in.
    TooLong,
}

impl fmt::Display for ChunkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchPlace => write!(f, "the chunk starts in no sub-filter"),
            Self::TooLong => write!(f, "the chunk is longer than the rest of its sub-filter"),
        }
    }
}

impl std::error::Error for ChunkError {}
