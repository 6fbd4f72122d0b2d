//! Filters as bytes. [`native`] is Ironbloom's own format, `.ibf`; [`redis_chunks`] is how filters travel to and from a
//! server of Redis, and [`dump`] a file of such chunks, `.ibd`.

pub mod dump;
pub mod native;
pub mod redis_chunks;
#[cfg(feature = "serde")]
mod serde;

pub use crate::kinds::Kind;
