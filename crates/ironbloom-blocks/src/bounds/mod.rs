//! Bounds of blocks: the two values between which all values of a block lie.
//!
//! ```text
//! value ──► image: 128 bits in the same order                                  image.rs
//! rows, in blocks ──► BlockSpans: first and last image of each block           spans.rs
//!                 ──► Bounds: the same in a few bits, never narrower           packed.rs
//! ```
//!
//! A range or a text prefix is a [`Span`] of images. Where rows are in the order of a column, or nearly, most blocks'
//! bounds lie outside it. Lists (`postings/`) say more about single values, but nothing about ranges.

mod image;
mod packed;
mod spans;

pub use image::{Image, Span};
pub use packed::{Bounds, BoundsHead, ReadBounds};
pub use spans::BlockSpans;
