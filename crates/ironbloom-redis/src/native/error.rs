//! Why bytes are not a filter that a key can hold.

use std::fmt;

use ironbloom::any::KeyError;
use ironbloom::{DecodeError, Kind};

/// Bytes that are refused.
#[derive(Clone, Debug, PartialEq)]
pub enum NativeError {
    /// Not an `.ibf` image, or a damaged one.
    Image(DecodeError),
    /// Not a header.
    Header,
    /// The bytes are not those that the header announced.
    Checksum,
    /// A filter of a kind that these commands do not know.
    Kind {
        /// The kind.
        found: Kind,
    },
    /// Keys were hashed by another program.
    External {
        /// The number it gave its hash.
        id: u64,
    },
    /// Its keys are not text or bytes, as those of commands are.
    Keys(KeyError),
    /// It forgets by the clock, and replicas have different clocks.
    Clock,
    /// Images of different shapes in one chain.
    Shapes,
    /// A number that no filter has.
    Number {
        /// Which.
        what: &'static str,
    },
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => write!(f, "{error}"),
            Self::Header => write!(f, "no header of a filter"),
            Self::Checksum => {
                write!(
                    f,
                    "the bytes are not those that the header announced: send all of them again"
                )
            }
            Self::Kind { found: Kind::Cuckoo } => {
                write!(f, "a cuckoo filter: CF.LOADCHUNK takes it")
            }
            Self::Kind { found } => write!(f, "a {found} filter, which a key cannot hold here"),
            Self::External { id } => write!(
                f,
                "the filter was built from hashes of another program (external hash {id}), keys cannot be looked up"
            ),
            Self::Keys(error) => error.fmt(f),
            Self::Clock => {
                write!(f, "the filter forgets by the clock, which replicas do not share")
            }
            Self::Shapes => write!(f, "the filters of a chain differ in shape or hash"),
            Self::Number { what } => write!(f, "no filter has this {what}"),
        }
    }
}

impl std::error::Error for NativeError {}

impl From<DecodeError> for NativeError {
    fn from(error: DecodeError) -> Self {
        Self::Image(error)
    }
}
