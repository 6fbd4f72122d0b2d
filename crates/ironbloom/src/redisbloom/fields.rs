//! The fields of a saved filter, as a server stores them: numbers, doubles and strings, each tagged with its type.
//!
//! `redisbloom/rdb.rs` and `native/file.rs` define the fields of a filter; the engine reads and writes them in a
//! server's file, and tests do so without a server.

use super::error::DecodeError;

/// Fields read from a file. [`DecodeError::Length`] means that there is none, or one of another kind.
pub trait FieldReader {
    /// Reads the next field, a number.
    fn unsigned(&mut self) -> Result<u64, DecodeError>;
    /// Reads the next field, a double.
    fn double(&mut self) -> Result<f64, DecodeError>;
    /// Reads the next field, a string.
    fn string(&mut self) -> Result<Vec<u8>, DecodeError>;
    /// Called for each repair: a counter that did not match its filter.
    fn note(&mut self, _what: &str) {}
}

/// Fields written to a file.
pub trait FieldWriter {
    /// Writes a number.
    fn unsigned(&mut self, number: u64);
    /// Writes a double.
    fn double(&mut self, number: f64);
    /// Writes a string.
    fn string(&mut self, bytes: &[u8]);
}
