//! Filters as bytes. [`native`] is Ironbloom's own format, `.ibf`; [`redis_chunks`] is the form in which filters travel
//! to and from a Redis server, and [`dump`] a file of such chunks, `.ibd`; [`foreign`] holds the files of other
//! programs, and [`parquet_file`] finds the filters in a Parquet file.

pub mod dump;
pub mod foreign;
pub mod native;
pub mod parquet_file;
pub mod redis_chunks;
#[cfg(feature = "serde")]
mod serde;
pub mod thrift;

pub use crate::kinds::Kind;
