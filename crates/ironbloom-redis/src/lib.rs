//! A module for Redis and Valkey: the filters of RedisBloom to the byte, and Ironbloom's own.
//!
//! ```text
//! redisbloom    its two filters, dumps and files, without a server: in the library, where `ironbloom convert` has them, too
//! native/       Ironbloom's filters, their dumps and files, without a server
//! sketches.rs   RedisBloom's other types, as values of the server
//! commands/     BF.*, CF.*, CMS.*, TOPK.* and TDIGEST.*: arguments in, replies out
//! payload.rs    the bytes of a DUMP, made without a server
//! error.rs      why there is no filter, or no key in it    stats.rs      what INFO counts
//! values.rs     the filters as values of the server        settings.rs   what CONFIG SET changes
//! engine/       the edge to the server, and the only unsafe code
//! ```
//!
//! Servers load the shared object: `redis-server --loadmodule libironbloom_redis.so`. The data types are RedisBloom's own, so
//! its RDB files, dumps and append-only files are this module's, too; a server can therefore have one of the two.

mod commands;
mod engine;
pub mod error;
pub mod native;
pub mod payload;
mod settings;
mod sketches;
mod stats;
mod values;

pub use engine::register::RedisModule_OnLoad;
pub use ironbloom::redisbloom;
pub use ironbloom::redisbloom::{fields, limits};
