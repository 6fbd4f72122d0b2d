//! One small type for each way to fail. Errors carry fields, not sentences: `Display` forms the sentence.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::format::Kind;
use crate::hash::KeyError;

/// Invalid filter parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamError {
    /// The rate is not strictly between 0 and 1.
    Rate {
        /// The requested rate.
        rate: f64,
    },
    /// The rate is below the hash's limit for this many keys.
    RateBelowHash {
        /// The requested rate.
        rate: f64,
        /// The lowest possible rate.
        floor: f64,
    },
    /// A number lies outside its range.
    OutOfRange {
        /// The parameter's name.
        what: &'static str,
        /// The requested value.
        value: u64,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        greatest: u64,
    },
    /// A ratio lies outside its open interval.
    Ratio {
        /// The parameter's name.
        what: &'static str,
        /// The requested value.
        value: f64,
        /// The lower end, excluded.
        above: f64,
        /// The upper end, excluded.
        below: f64,
    },
    /// Two names that must differ are the same.
    Twice {
        /// The kind of name.
        what: &'static str,
        /// Position of the first, from 0.
        first: usize,
        /// Position of the second.
        second: usize,
    },
    /// The system could not provide that much memory.
    Memory {
        /// Bytes requested.
        bytes: u64,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate { rate } => {
                write!(f, "rate must lie strictly between 0 and 1, got {rate}")
            }
            Self::RateBelowHash { rate, floor } => {
                write!(
                    f,
                    "rate {rate:e} cannot be reached: the hash limits it to {floor:.1e} for this many keys"
                )
            }
            Self::OutOfRange { what, value, least, greatest: u64::MAX } => {
                write!(f, "{what} must be at least {least}, got {value}")
            }
            Self::OutOfRange { what, value, least, greatest } => {
                write!(f, "{what} must be between {least} and {greatest}, got {value}")
            }
            Self::Ratio { what, value, above, below } => {
                write!(f, "{what} must lie strictly between {above} and {below}, got {value}")
            }
            Self::Twice { what, first, second } => {
                write!(f, "{what} {} is that of {}", second + 1, first + 1)
            }
            Self::Memory { bytes } => write!(f, "cannot allocate {bytes} bytes of memory"),
        }
    }
}

impl std::error::Error for ParamError {}

/// Checks a rate against (0, 1) and against the limit of a 64-bit hash for `capacity` keys.
pub(crate) fn check_rate(capacity: u64, rate: f64) -> Result<(), ParamError> {
    check_range("capacity", capacity, 1, MAX_CAPACITY)?;
    if !(rate > 0.0 && rate < 1.0) {
        return Err(ParamError::Rate { rate });
    }
    let floor = crate::sizing::hash_floor(capacity);
    if rate < floor { Err(ParamError::RateBelowHash { rate, floor }) } else { Ok(()) }
}

/// More keys than this (10^15) must be a typo; no machine could hold the filter.
pub(crate) const MAX_CAPACITY: u64 = 1_000_000_000_000_000;

pub(crate) fn check_range(
    what: &'static str,
    value: u64,
    least: u64,
    greatest: u64,
) -> Result<(), ParamError> {
    if (least..=greatest).contains(&value) {
        Ok(())
    } else {
        Err(ParamError::OutOfRange { what, value, least, greatest })
    }
}

/// Two filters that cannot be combined, with the value on each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The property that differs.
    pub what: &'static str,
    /// The value on the left (the filter that would have been changed but was not).
    pub left: String,
    /// The value on the right.
    pub right: String,
}

impl Mismatch {
    /// The property in which growing filters differ that have not grown alike.
    pub const STAGES: &'static str = "number of stages";

    /// Returns an error if the two values differ.
    pub(crate) fn unless_equal<T: PartialEq + fmt::Display>(
        what: &'static str,
        left: T,
        right: T,
    ) -> Result<(), Self> {
        if left == right {
            Ok(())
        } else {
            Err(Self { what, left: left.to_string(), right: right.to_string() })
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} differs: {} and {}", self.what, self.left, self.right)
    }
}

impl std::error::Error for Mismatch {}

/// The filter is full; the key was not inserted. Nothing has changed: every earlier key is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Keys in the filter.
    pub len: u64,
    /// Keys it was planned for.
    pub capacity: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the filter is full: {} keys, planned for {}", self.len, self.capacity)
    }
}

impl std::error::Error for Full {}

/// A row, or a query for one, that a multi-attribute filter refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RowError {
    /// The row does not have one value for each attribute.
    Attributes {
        /// Values given.
        given: usize,
        /// Attributes of the filter.
        expected: usize,
    },
    /// A query that leaves out attributes, on a filter that was not built for that.
    NotPartial {
        /// Attributes that the query names.
        given: usize,
        /// Attributes of the filter.
        expected: usize,
    },
    /// The filter holds hashes that only the program that created it can compute.
    External {
        /// The number that program assigned to its hash function.
        id: u64,
    },
    /// The filter does not hold values of this type.
    Key(KeyError),
    /// The filter is full.
    Full(Full),
    /// Not enough memory to count one more row.
    Params(ParamError),
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attributes { given, expected } => {
                write!(f, "a row of {given} values, where the filter has {expected} attributes")
            }
            Self::NotPartial { given, expected } => write!(
                f,
                "the filter answers only for all {expected} attributes together, not for {given} of them"
            ),
            Self::External { id } => write!(
                f,
                "the filter was built from hashes of another program (external hash {id}), values cannot be looked up"
            ),
            Self::Key(error) => error.fmt(f),
            Self::Full(error) => error.fmt(f),
            Self::Params(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RowError {}

impl From<Full> for RowError {
    fn from(error: Full) -> Self {
        Self::Full(error)
    }
}

impl From<ParamError> for RowError {
    fn from(error: ParamError) -> Self {
        Self::Params(error)
    }
}

/// Two filters of limited capacity that could not be merged. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// They cannot be combined at all.
    Mismatch(Mismatch),
    /// The keys of both do not fit into one.
    Full(Full),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(error) => error.fmt(f),
            Self::Full(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {}

impl From<Mismatch> for MergeError {
    fn from(error: Mismatch) -> Self {
        Self::Mismatch(error)
    }
}

impl From<Full> for MergeError {
    fn from(error: Full) -> Self {
        Self::Full(error)
    }
}

/// Bytes that are not a valid filter, with the location of the error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The first bytes are not those of a filter file.
    NotAFilter,
    /// Written by a later release.
    Version {
        /// The version of the file.
        found: u16,
    },
    /// A filter of a different kind than requested.
    Kind {
        /// The requested kind.
        wanted: Kind,
        /// The kind in the file.
        found: Kind,
    },
    /// The length does not match the header.
    Length {
        /// Bytes according to the header.
        expected: u64,
        /// Bytes actually present.
        found: u64,
    },
    /// A checksum does not match: the bytes were damaged after they were written.
    Damaged {
        /// The damaged part: "header", "payload" or "checksum table".
        part: &'static str,
        /// First byte of the damaged part.
        offset: u64,
        /// Length of the damaged part.
        len: u64,
    },
    /// The checksums match, but a field has an invalid value.
    Invalid {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// The hash key given is not the one that the filter was created with.
    HashKey {
        /// The number that identifies the right key ([`HashKey::check`](crate::HashKey::check)); `None` if the file
        /// needs none.
        wanted: Option<u64>,
        /// The number of the key given.
        found: u64,
    },
    /// The parameters are intact, but there is not enough memory for the filter.
    Params(ParamError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFilter => write!(f, "not an Ironbloom filter"),
            Self::Version { found } => {
                write!(f, "format version {found} is newer than this program understands")
            }
            Self::Kind { wanted, found } => write!(f, "holds a {found} filter, not a {wanted}"),
            Self::Length { expected, found } if found < expected => {
                write!(f, "cut short: {found} bytes of {expected}")
            }
            Self::Length { expected, found } => {
                write!(f, "{} bytes too many: {found} instead of {expected}", found - expected)
            }
            Self::Damaged { part, offset, len } => {
                write!(f, "checksum mismatch: {part} damaged in bytes {offset}..{}", offset + len)
            }
            Self::Invalid { what, value } => write!(f, "invalid {what}: {value}"),
            Self::HashKey { wanted: Some(wanted), found } => write!(
                f,
                "made with another secret key: its check is {wanted:016x}, that of the key given {found:016x}"
            ),
            Self::HashKey { wanted: None, .. } => {
                write!(f, "a secret key was given, and the filter was made without one")
            }
            Self::Params(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl From<ParamError> for DecodeError {
    fn from(error: ParamError) -> Self {
        Self::Params(error)
    }
}

/// A filter file that could not be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system reported an error.
    Io {
        /// The file.
        path: PathBuf,
        /// The error it reported.
        error: io::Error,
    },
    /// The bytes are not a (complete) filter.
    Decode {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: DecodeError,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Decode { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileError {}
