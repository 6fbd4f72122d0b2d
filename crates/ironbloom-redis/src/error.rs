//! One small type for each way to fail. What clients are told in each case is in `commands/text.rs`.

use std::fmt;

pub use ironbloom::redisbloom::error::{
    ChunkError, CreateError, DecodeError, InsertError, ShapeMismatch,
};

use crate::native::error::NativeError;

/// A saved filter that was not loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadError {
    /// The fields are not those of a filter.
    Fields(DecodeError),
    /// The image in the fields is not a native filter.
    Image(NativeError),
}

impl From<DecodeError> for LoadError {
    fn from(error: DecodeError) -> Self {
        Self::Fields(error)
    }
}

impl From<NativeError> for LoadError {
    fn from(error: NativeError) -> Self {
        Self::Image(error)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(error) => write!(f, "{error}"),
            Self::Image(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LoadError {}
