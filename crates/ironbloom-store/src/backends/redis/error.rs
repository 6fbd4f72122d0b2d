//! How a Redis store fails.

use std::fmt;

use redis::RedisError;

use crate::backend::Failure;

/// An error from a Redis store.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisStoreError {
    /// There is no connection: nothing was sent.
    Unreachable(RedisError),
    /// The server, or the connection while it was used.
    Server(RedisError),
}

impl RedisStoreError {
    /// What the server, or the connection to it, has said.
    pub fn cause(&self) -> &RedisError {
        match self {
            Self::Unreachable(error) | Self::Server(error) => error,
        }
    }

    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::Unreachable(_) => Failure::NotDone,
            Self::Server(error) if error.code() == Some(super::commands::REFUSED) => {
                Failure::OtherState
            }
            Self::Server(_) => Failure::Unknown,
        }
    }
}

impl fmt::Display for RedisStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause().fmt(f)
    }
}

impl std::error::Error for RedisStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.cause())
    }
}

impl From<RedisError> for RedisStoreError {
    fn from(error: RedisError) -> Self {
        Self::Server(error)
    }
}
