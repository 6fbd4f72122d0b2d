//! The fields of a saved filter, as a server stores them: numbers, doubles and strings, each with a mark of its type.
//!
//! `redisbloom/rdb.rs` and `native/file.rs` say which fields a filter has; the engine reads and writes them in a server's file,
//! and tests do so without a server.

use super::error::DecodeError;

/// Fields as they come out of a file. [`DecodeError::Length`] says that there is none, or one of another kind.
pub trait FieldReader {
    /// The next field, a number.
    fn unsigned(&mut self) -> Result<u64, DecodeError>;
    /// The next field, a double.
    fn double(&mut self) -> Result<f64, DecodeError>;
    /// The next field, a string.
    fn string(&mut self) -> Result<Vec<u8>, DecodeError>;
    /// Called for each repair: a counter that did not match its filter.
    fn note(&mut self, _what: &str) {}
}

/// Fields as they go into a file.
pub trait FieldWriter {
    /// A number.
    fn unsigned(&mut self, number: u64);
    /// A double.
    fn double(&mut self, number: f64);
    /// A string.
    fn string(&mut self, bytes: &[u8]);
}
