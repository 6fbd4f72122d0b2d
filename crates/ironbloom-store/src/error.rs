//! How a guard fails.

use std::fmt;

use ironbloom::{FileError, ParamError};

use crate::kind::GuardKind;
use crate::typed::CodecError;

/// An error from a guard. `E` is the error type of its store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error<E> {
    /// The store failed.
    Store(E),
    /// The requested filter is invalid, or there is not enough memory for it.
    Params(ParamError),
    /// The checkpoint could not be written.
    Checkpoint(FileError),
    /// The filter could not be published.
    Publish(FileError),
    /// The filter cannot be published: the options name no file for it, or its kind has no form that others can read.
    CannotPublish(GuardKind),
    /// A checkpoint was requested, but the options do not name a file for it.
    NoCheckpointFile,
    /// A window cannot be rebuilt, because the store does not know which keys are recent.
    NoRebuild,
    /// The store panicked in the background, with this message.
    Panicked(String),
    /// Others write to the store so fast that no filter is ever complete.
    Overtaken,
    /// The guard is being closed.
    Closed,
    /// The code of the store has called its own guard to change it, which would wait for itself.
    Reentrant,
    /// Writes of an earlier guard may still take effect, and it is not known which: no filter can be complete yet.
    InDoubt,
    /// A follower does not hear what others write: no filter can be kept up to date.
    Unheard,
    /// A key or value of a [typed guard](crate::Typed) cannot be encoded, or a stored value cannot be decoded.
    Codec(CodecError),
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Params(error) => error.fmt(f),
            Self::Checkpoint(error) => write!(f, "checkpoint: {error}"),
            Self::Publish(error) => write!(f, "publishing: {error}"),
            Self::CannotPublish(kind) if kind.maker().can_publish => {
                write!(f, "the guard was opened without a file to publish its filter to")
            }
            Self::CannotPublish(kind) => {
                write!(f, "the {kind} filter of a guard cannot be published")
            }
            Self::NoCheckpointFile => write!(f, "the guard was opened without a checkpoint file"),
            Self::NoRebuild => {
                write!(
                    f,
                    "a window cannot be rebuilt: the store does not know which keys are recent"
                )
            }
            Self::Panicked(words) => write!(f, "the store panicked: {words}"),
            Self::Overtaken => write!(f, "others wrote to the store while the filter was built"),
            Self::Closed => write!(f, "the guard is being closed"),
            Self::Reentrant => {
                write!(f, "the store has called its own guard, which would wait for itself")
            }
            Self::InDoubt => {
                write!(f, "writes of an earlier guard may still take effect in the store")
            }
            Self::Unheard => write!(f, "what others write to the store is not heard"),
            Self::Codec(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Params(error) => Some(error),
            Self::Checkpoint(error) | Self::Publish(error) => Some(error),
            Self::Codec(error) => Some(error),
            _ => None,
        }
    }
}

impl<E> From<ParamError> for Error<E> {
    fn from(error: ParamError) -> Self {
        Self::Params(error)
    }
}

impl<E> From<FileError> for Error<E> {
    fn from(error: FileError) -> Self {
        Self::Checkpoint(error)
    }
}
