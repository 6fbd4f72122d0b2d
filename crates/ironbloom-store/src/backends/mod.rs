//! Stores that a guard can stand before, each in its file.

mod memory;
#[cfg(feature = "redb")]
mod redb;

pub use self::memory::Memory;
#[cfg(feature = "redb")]
pub use self::redb::{Redb, RedbError};
