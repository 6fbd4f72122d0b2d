//! Ironbloom's own filters as values: `LAYOUT BLOCKED`, `WINDOW n`, cuckoo filters with `ERROR rate`, and what
//! `ironbloom build` made.
//!
//! ```text
//! bloom     blocked, flat, growing and forgetting filters for BF.*
//! cuckoo    equal cuckoo filters that are added one by one, for CF.*
//! images    filters that arrive in pieces              pieces  bytes that arrived in pieces
//! wire      SCANDUMP and LOADCHUNK                     file    the fields of a saved filter
//! whole     a filter with the checksums of its image   error   why bytes are no filter here
//! ```
//!
//! In files and dumps such a filter is what a file of crate `ironbloom` holds: an `.ibf` image (or several, one after the
//! other), with its own checksums. A filter that is sent in pieces is an [`Arrival`] until its last byte has arrived.

pub mod bloom;
pub mod cuckoo;
pub mod error;
pub mod file;
pub mod images;
pub mod pieces;
pub mod whole;
pub mod wire;

use ironbloom::Persist;
use ironbloom::format::native::{ImageReading, Table};

use error::NativeError;
use images::Images;
use whole::Whole;
use wire::Arrival;

/// A filter that is an image, and numbers beside it.
pub trait Imaged: Sized {
    /// How many numbers stand beside the image.
    const NUMBERS: usize;

    /// The numbers beside the image.
    fn numbers(&self) -> Vec<u64>;
    /// Bytes of the image.
    fn image_bytes(&self) -> u64;
    /// The image from `offset` on, at most `most` bytes. Empty past the end. `tables` is asked for what
    /// [`visit_image`](Self::visit_image) returned, and only for a piece that reaches into one of them.
    fn image_piece<'t>(
        &self,
        offset: u64,
        most: usize,
        tables: &dyn Fn() -> &'t [Table],
    ) -> Vec<u8>;
    /// Whether such a piece reaches into a table.
    fn needs_table(&self, offset: u64, most: usize) -> bool;
    /// Hands out the next parts of the image, at most `most_chunks` chunks of 64 KiB. True if that was the end of it; the
    /// reading has all tables then.
    fn read_image(
        &self,
        reading: &mut Reading,
        most_chunks: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool;
    /// Hands out the whole image, in order and in parts. Returns the tables of checksums in it. Reads the whole filter.
    fn visit_image(&self, visit: &mut dyn FnMut(&[u8])) -> Vec<Table> {
        let mut reading = Reading::default();
        while !self.read_image(&mut reading, usize::MAX, visit) {}
        reading.tables
    }
    /// A filter from its image. There are [`NUMBERS`](Self::NUMBERS) numbers, or none if it comes from a plain file. The
    /// arrays become those of the filter as they are.
    fn from_images(images: Images, numbers: &[u64]) -> Result<Self, NativeError>;
    /// Bytes of its arrays.
    fn array_bytes(&self) -> u64;
}

/// How far an image has been read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The tables of the filters that were read.
    tables: Vec<Table>,
    /// How far the next one has been.
    next: ImageReading,
    /// Steps that were made.
    steps: u64,
}

impl Reading {
    /// Reads on in the filter that is next. True if that was its end.
    fn read_on(
        &mut self,
        filter: &impl Persist,
        most_chunks: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        self.steps += 1;
        let table = self.next.step(filter, most_chunks, visit);
        let is_end = table.is_some();
        self.tables.extend(table);
        is_end
    }
}

/// A filter, or the part of it that has arrived.
#[derive(Clone, Debug, PartialEq)]
pub enum Native<T> {
    /// A filter.
    Whole(Whole<T>),
    /// Pieces of one.
    Arriving(Arrival),
}

impl<T> Native<T> {
    /// A whole filter.
    pub fn whole(filter: T) -> Self {
        Self::Whole(Whole::from(filter))
    }
}

impl<T: Imaged> Native<T> {
    /// Size in bytes, without the checksums that a dump leaves behind (an 8000th of it), so that equal filters have equal
    /// sizes.
    pub fn size_in_bytes(&self) -> u64 {
        let bytes = match self {
            Self::Whole(filter) => filter.array_bytes(),
            Self::Arriving(arrival) => arrival.size_in_bytes(),
        };
        bytes + size_of::<Self>() as u64
    }
}
