//! RedisBloom's two filters, bit for bit, without a server.
//!
//! ```text
//! murmur    key ──► hash
//! link      one Bloom filter                   chain     links that grow: the filter of BF.*
//! batch     many keys at once
//! cuckoo    sub-filters of fingerprints        compact   moving them into older sub-filters
//! dump      SCANDUMP and LOADCHUNK: headers and pieces of arrays
//! rdb       the fields of a saved filter, in order     debug   a filter in words
//! fields    how fields are read and written            limits  memory limits, checked before allocating
//! error     why a filter or a key was refused          stats   counters for servers
//! ```
//!
//! The module for Redis and Valkey stores these filters in a server, `ironbloom convert` in files
//! ([`RedisBloom`](crate::RedisBloom)).
//!
//! The layouts are RedisBloom's, so dumps and files work both ways; the code is ours. Nothing here depends on the
//! server. Numbers from dumps and files are checked before they are used to allocate or index anything: RedisBloom was
//! attacked here.

pub mod batch;
pub mod chain;
mod compact;
pub mod cuckoo;
pub mod debug;
pub mod dump;
pub mod error;
pub mod fields;
pub mod limits;
pub mod link;
pub mod murmur;
pub mod rdb;
pub mod stats;
