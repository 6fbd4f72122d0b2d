//! Stores that a guard can protect, one file each.

mod memory;
#[cfg(feature = "object_store")]
mod objects;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "object_store", feature = "postgres", feature = "redb", feature = "redis"))]
mod seal;

pub use self::memory::Memory;
#[cfg(feature = "object_store")]
pub use self::objects::Objects;
#[cfg(feature = "postgres")]
pub use self::postgres::{Postgres, PostgresError};
#[cfg(feature = "redb")]
pub use self::redb::{Redb, RedbError};
#[cfg(feature = "redis")]
pub use self::redis::Redis;
