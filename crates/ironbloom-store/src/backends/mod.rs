//! Stores that a guard can protect, one file each.

#[cfg(any(feature = "postgres", feature = "redis"))]
mod connections;
mod memory;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod naming;
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
#[cfg(any(feature = "object_store", feature = "redb"))]
mod seal;
#[cfg(feature = "tls")]
#[cfg_attr(
    not(feature = "postgres"),
    allow(dead_code, reason = "the redis crate reads PEM itself")
)]
mod tls;

#[cfg(any(feature = "postgres", feature = "redis"))]
pub use self::connections::Connections;
pub use self::memory::Memory;
#[cfg(feature = "object_store")]
pub use self::objects::Objects;
#[cfg(feature = "async-postgres")]
pub use self::postgres::{AsyncPostgres, PostgresChanges};
#[cfg(feature = "postgres")]
pub use self::postgres::{Postgres, PostgresError};
#[cfg(feature = "redb")]
pub use self::redb::{Redb, RedbError};
#[cfg(feature = "async-redis")]
pub use self::redis::{AsyncRedis, RedisChanges};
#[cfg(feature = "redis")]
pub use self::redis::{Redis, RedisStoreError};
#[cfg(feature = "tls")]
pub use self::tls::{Tls, TlsError};
