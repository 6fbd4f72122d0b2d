//! Filters as files. [`native`] is Ironbloom's own format, `.ibf`; each foreign format has its own file next to it.

pub mod native;
#[cfg(feature = "serde")]
mod serde;

pub use crate::kinds::Kind;
