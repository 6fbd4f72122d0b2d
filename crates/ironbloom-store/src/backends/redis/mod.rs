//! The keys of a Redis or Valkey server that start with a prefix.
//!
//! Others can write to the server at any time, so what `postgres/mod.rs` says applies here as well; a `Follower` hears
//! what others set from keyspace notifications. Keys that expire or are evicted do no harm: they are false positives.

#[cfg(feature = "async-redis")]
mod awaited;
mod blocking;
#[cfg(feature = "async-redis")]
mod changes;
mod commands;
mod error;

#[cfg(feature = "async-redis")]
pub use self::awaited::AsyncRedis;
pub use self::blocking::Redis;
#[cfg(feature = "async-redis")]
pub use self::changes::RedisChanges;
pub use self::error::RedisStoreError;
