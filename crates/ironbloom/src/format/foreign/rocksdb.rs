//! The Bloom filter of a RocksDB table, format 5 and later (`FastLocalBloom`). Only read.
//!
//! ```text
//!  0  64l lines of 64 bytes; bit i of a line is bit i mod 8 of its byte i / 8
//!     1   0xff: not a legacy filter
//!     1   0: this one
//!     1   low 5 bits: probes k, 1 to 30; high 3 bits: 0, lines of 64 bytes
//!     2   0
//! ```
//!
//! A key is bytes (the user key, without sequence number). With h the 64-bit preview version of XXH3, whose halves are
//! l and u:
//!
//! ```text
//! line (l·lines) div 2^32;   y_0 = u   y_(i+1) = y_i·0x9e3779b9 mod 2^32;   probe i = 0 … k−1:  bit y_i div 2^23
//! ```
//!
//! The line comes from 32 bits, which is fine up to tens of gigabytes. A filter with no keys is the five bytes alone,
//! with 0 probes in some versions: it is refused, since an error says more than a filter that holds nothing.

use super::bytes::{Fields, Order};
use super::{ForeignError, Format, Problem};
use crate::hash::{Modulus, xxph3};
use crate::kernel::LINE_BYTES;
use crate::kinds::foreign::{Noted, Probing};
use crate::kinds::{Foreign, Rule};

const TRAILER: usize = 5;
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;

/// Positions as `FastLocalBloom` computes them.
#[derive(Clone, Copy)]
pub(crate) struct InLine;

impl Probing for InLine {
    type Hash = u64;

    #[inline]
    fn hash(self, key: &[u8]) -> u64 {
        xxph3::hash(key)
    }

    #[inline]
    fn positions(self, hash: u64, range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        let lines = range.divisor() / LINE_BITS;
        let line = ((hash & 0xffff_ffff) * lines) >> 32;
        let next = |y: &u32| Some(y.wrapping_mul(0x9e37_79b9));
        std::iter::successors(Some((hash >> 32) as u32), next)
            .skip(first as usize)
            .map(move |y| line * LINE_BITS + u64::from(y >> 23))
    }
}

fn head(fields: &Fields<'_>, bytes: &[u8]) -> Result<(u32, u64), ForeignError> {
    let Some((array, trailer)) = bytes.split_last_chunk::<TRAILER>() else {
        let missing = (TRAILER - bytes.len()) as u64;
        return Err(fields.error(bytes.len(), Problem::CutShort { missing }));
    };
    let at = array.len();
    fields.within(at, "kind of filter", trailer[0].into(), 0xff..=0xff)?;
    fields.within(at + 1, "kind of filter", trailer[1].into(), 0..=0)?;
    fields.within(at + 2, "size of a line", (trailer[2] >> 5).into(), 0..=0)?;
    let probes = fields.within(at + 2, "number of probes", (trailer[2] & 31).into(), 1..=30)?;
    fields.within(at + 3, "end", u16::from_le_bytes([trailer[3], trailer[4]]).into(), 0..=0)?;
    let lines = array.len() / LINE_BYTES;
    if lines == 0 || !array.len().is_multiple_of(LINE_BYTES) || lines > u32::MAX as usize {
        return Err(fields.invalid(at, "length", bytes.len() as u64));
    }
    Ok((probes as u32, array.len() as u64))
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&Fields::new(Format::RocksDb, Order::Little, bytes), bytes).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::RocksDb, Order::Little, bytes);
    let (probes, len) = head(&fields, bytes)?;
    let words = fields.words(len, 8 * len)?;
    let noted = Noted::default();
    Ok(Foreign::from_parts(Rule::RocksDb, 8 * len, probes, None, words, noted).with_estimate())
}
