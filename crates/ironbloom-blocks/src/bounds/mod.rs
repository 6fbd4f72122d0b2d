//! Bounds of blocks: between which two values do all values of a block lie?
//!
//! ```text
//! value ──► image: 128 bits in the same order                                  image.rs
//! rows, in blocks ──► BlockSpans: first and last image of each block           spans.rs
//!                 ──► Bounds: the same in a few bits, never narrower           packed.rs
//! ```
//!
//! A range, or the beginning of a text, is a [`Span`] of images. Where rows are in the order of a column, or nearly, the
//! bounds of most blocks do not touch it. Lists (`postings/`) say more about single values, and nothing about ranges.

mod image;
mod packed;
mod spans;

pub use image::{Image, Span};
pub use packed::{Bounds, BoundsHead, ReadBounds};
pub use spans::BlockSpans;
