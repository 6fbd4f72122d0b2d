//! SCANDUMP and LOADCHUNK of a native filter: a header and its image.
//!
//! ```text
//! iterator 0             the header                                next iterator: 1
//! iterator 1 + offset    the image from there, 1 MiB at most       next iterator: 1 + offset + its length
//! at the end             nothing                                   next iterator: 0
//!
//! header, little endian
//!   0  8   "IBLOOM01"
//!   8  u64 bytes of the image
//!  16  u64 XXH3-64 of the image, seed 0
//!  24  of a cuckoo filter, two numbers more: EXPANSION, and how many keys were removed since it was last compacted;
//!      a plain file has neither, and makes a filter that does not grow
//! ```
//!
//! LOADCHUNK takes the pairs (next iterator, bytes) unchanged and in order. Bytes go straight to their final place; with the
//! last one only checksums are compared. Until then, there is an [`Arrival`] and no filter.

use std::borrow::Cow;

use ironbloom::format::redis_chunks::MAGIC;

use super::error::NativeError;
use super::images::{Images, Origin};
use super::whole::Whole;
use super::{Imaged, Native};
use crate::error::CreateError;
use crate::limits::{self, MemoryLimit};

/// Maximum size of a piece: copying it takes well below a millisecond, during which no other command runs.
pub const MAX_PIECE: usize = 1 << 20;

const HEADER: usize = 24;

/// Whether a chunk is the header of a native filter. RedisBloom's header starts with the number of keys, and no filter has as
/// many as these bytes would say.
pub fn is_header(chunk: &[u8]) -> bool {
    chunk.starts_with(&MAGIC)
}

/// The header of a filter. Reads all of it, unless its checksums are known.
pub fn header<T: Imaged>(filter: &Whole<T>) -> Vec<u8> {
    encode(filter.image_bytes(), filter.image_hash(), &filter.numbers())
}

fn encode(len: u64, sum: u64, numbers: &[u64]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    for number in [len, sum].iter().chain(numbers) {
        header.extend(number.to_le_bytes());
    }
    header
}

/// The piece of a filter at this iterator, and the next iterator. Nothing at the end and outside.
pub fn piece<T: Imaged>(filter: &Whole<T>, iterator: i64) -> Option<(i64, Vec<u8>)> {
    let offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
    let piece = filter.image_piece(offset, MAX_PIECE, &|| filter.tables());
    (!piece.is_empty()).then(|| (iterator + piece.len() as i64, piece))
}

/// Whether the answer for this iterator needs checksums that are not known, so that all of the filter has to be read for it.
pub fn needs_reading<T: Imaged>(filter: &Whole<T>, iterator: i64) -> bool {
    let offset = iterator.checked_sub(1).and_then(|offset| u64::try_from(offset).ok());
    let is_needed = offset.is_none_or(|offset| filter.needs_table(offset, MAX_PIECE));
    is_needed && !filter.has_sums()
}

/// The part of a filter that has arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    len: u64,
    sum: u64,
    numbers: Vec<u64>,
    images: Images,
}

/// A chunk that was not taken. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It is not the next one: its iterator should be this.
    Order {
        /// The iterator it should have had.
        expected: u64,
    },
    /// It reaches beyond the length that the header announced.
    Length,
    /// No bytes.
    Empty,
    /// There is no memory for it.
    Memory,
}

impl Arrival {
    /// Begins with a header. The limit is asked before anything is taken.
    pub fn begin<T: Imaged>(
        header: &[u8],
        limit: MemoryLimit,
    ) -> Result<Result<Self, CreateError>, NativeError> {
        let rest = header.strip_prefix(&MAGIC).ok_or(NativeError::Header)?;
        let is_long_enough =
            [HEADER, HEADER + 8 * T::NUMBERS].contains(&header.len()) && rest.len() % 8 == 0;
        if !is_long_enough {
            return Err(NativeError::Header);
        }
        let (words, _) = rest.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let (len, sum) = (words.next().unwrap_or(0), words.next().unwrap_or(0));
        if len == 0 || len > i64::MAX as u64 - 1 {
            return Err(NativeError::Header);
        }
        let images = Images::new(len, Origin::Announced);
        let arrival = Self { len, sum, numbers: words.collect(), images };
        Ok(limit.check(0, len).map(|()| arrival))
    }

    /// An arrival as it was saved.
    pub(super) fn from_parts(
        len: u64,
        sum: u64,
        numbers: Vec<u64>,
        images: Images,
    ) -> Result<Self, NativeError> {
        if images.len() >= len {
            return Err(NativeError::Number { what: "number of bytes" });
        }
        Ok(Self { len, sum, numbers, images })
    }

    /// Bytes that have arrived.
    pub fn arrived(&self) -> u64 {
        self.images.len()
    }

    /// Bytes of memory: that of the whole filter, from the moment its length is known.
    pub fn size_in_bytes(&self) -> u64 {
        self.images.size_in_bytes()
    }

    /// Bytes that were announced.
    pub fn announced(&self) -> u64 {
        self.len
    }

    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Takes the next chunk. True if it was the last.
    pub fn take(&mut self, iterator: i64, chunk: &[u8]) -> Result<bool, NotTaken> {
        if chunk.is_empty() {
            return Err(NotTaken::Empty);
        }
        let end = self.arrived() + chunk.len() as u64;
        if iterator as u64 != end + 1 {
            return Err(NotTaken::Order { expected: end + 1 });
        }
        if end > self.len {
            return Err(NotTaken::Length);
        }
        limits::ask(chunk.len() as u64).map_err(|_| NotTaken::Memory)?;
        self.images.push(chunk).map_err(|_| NotTaken::Memory)?;
        Ok(end == self.len)
    }

    /// The filter, when all bytes have arrived. They are consumed in any case.
    pub fn finish<T: Imaged>(&mut self) -> Result<T, NativeError> {
        let images = std::mem::replace(&mut self.images, Images::new(self.len, Origin::Announced));
        if images.len() != self.len || images.hash() != self.sum {
            return Err(NativeError::Checksum);
        }
        T::from_images(images, &self.numbers)
    }

    /// The header it began with.
    pub fn header(&self) -> Vec<u8> {
        encode(self.len, self.sum, &self.numbers)
    }

    /// The piece at this iterator of what has arrived, and the next iterator.
    pub fn piece(&self, iterator: i64) -> Option<(i64, Vec<u8>)> {
        let offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
        let piece = self.images.piece(offset, MAX_PIECE);
        (!piece.is_empty()).then(|| (iterator + piece.len() as i64, piece))
    }
}

impl<T: Imaged> Native<T> {
    /// The header.
    pub fn header(&self) -> Vec<u8> {
        match self {
            Self::Whole(filter) => header(filter),
            Self::Arriving(arrival) => arrival.header(),
        }
    }

    /// The piece at this iterator of what is there, and the next iterator.
    pub fn piece(&self, iterator: i64) -> Option<(i64, Cow<'_, [u8]>)> {
        let piece = match self {
            Self::Whole(filter) => piece(filter, iterator),
            Self::Arriving(arrival) => arrival.piece(iterator),
        };
        piece.map(|(next, piece)| (next, Cow::Owned(piece)))
    }
}
