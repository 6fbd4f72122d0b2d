//! Reading and writing the fields of foreign files. Every number is checked where it is read, and nothing is allocated
//! before the number of bytes has been compared with the header.

use super::{ForeignError, Format, Problem};
use crate::kernel::{LINE_BYTES, Words, WordsBuilder};

/// Byte order of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// The remaining bytes, and their offset.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    format: Format,
    order: Order,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(format: Format, order: Order, bytes: &'a [u8]) -> Self {
        Self { format, order, bytes, at: 0 }
    }

    /// Creates an error at a position.
    pub(super) fn error(&self, at: usize, problem: Problem) -> ForeignError {
        ForeignError { format: self.format, offset: at as u64, problem }
    }

    /// Creates an error for an invalid field.
    pub(super) fn invalid(&self, at: usize, what: &'static str, value: u64) -> ForeignError {
        self.error(at, Problem::Field { what, value })
    }

    /// Offset of the next field.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Number of remaining bytes.
    pub(super) fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], ForeignError> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or_else(|| {
            let missing = len - rest.len() as u64;
            self.error(self.bytes.len(), Problem::CutShort { missing })
        })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ForeignError> {
        let taken = self.take(N as u64)?;
        let mut array = [0; N];
        array.copy_from_slice(taken);
        if self.order == Order::Big {
            array.reverse();
        }
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ForeignError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, ForeignError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ForeignError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ForeignError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the next number, if it lies in a range.
    pub(super) fn within(
        &self,
        at: usize,
        what: &'static str,
        value: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, ForeignError> {
        if range.contains(&value) { Ok(value) } else { Err(self.invalid(at, what, value)) }
    }

    /// Checks that exactly this many bytes remain, without reading them.
    pub(super) fn check_rest(&self, expected: u64) -> Result<(), ForeignError> {
        match self.left() {
            left if left < expected => {
                let missing = expected - left;
                Err(self.error(self.bytes.len(), Problem::CutShort { missing }))
            }
            left if left > expected => {
                let at = self.bytes.len() - (left - expected) as usize;
                Err(self.error(at, Problem::Trailing { bytes: left - expected }))
            }
            _ => Ok(()),
        }
    }

    /// Reads the next `bytes` bytes as a bit array, bit i of which is bit i mod 64 of the 64-bit number i / 64. Bits
    /// from `bits` on must be zero.
    pub(super) fn words(&mut self, bytes: u64, bits: u64) -> Result<Words, ForeignError> {
        let start = self.at;
        let taken = self.take(bytes)?;
        let memory = |_| self.error(start, Problem::Memory { bytes });
        let mut builder = WordsBuilder::new(bytes).map_err(memory)?;
        match self.order {
            Order::Little => builder.push(taken).map_err(memory)?,
            Order::Big => {
                let mut swapped = [0; 4096];
                for piece in taken.chunks(swapped.len()) {
                    let swapped = &mut swapped[..piece.len()];
                    swapped.copy_from_slice(piece);
                    swapped.chunks_mut(8).for_each(<[u8]>::reverse);
                    builder.push(swapped).map_err(memory)?;
                }
            }
        }
        let padding = (bytes.next_multiple_of(LINE_BYTES as u64) - bytes) as usize;
        builder.push(&[0; LINE_BYTES][..padding]).map_err(memory)?;
        let words = builder.finish();
        crate::format::native::zero_after(words, bits)
            .map_err(|_| self.invalid(start, "bit after the last one", bits))
    }
}

/// Writes the first `bytes` bytes of a bit array, in this order.
pub(super) fn put_words(out: &mut Vec<u8>, words: &[u64], bytes: usize, order: Order) {
    let end = out.len() + bytes;
    for word in words.iter().take(bytes.div_ceil(8)) {
        let mut array = word.to_le_bytes();
        if order == Order::Big {
            array.reverse();
        }
        out.extend_from_slice(&array);
    }
    out.truncate(end);
}
