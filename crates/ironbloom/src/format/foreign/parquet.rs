//! A split block filter as stored in a Parquet file: a Thrift struct in the compact protocol, then the bits.
//!
//! ```text
//! BloomFilterHeader { 1: i32 bytes   2: algorithm { 1: block {} }   3: hash { 1: xxhash {} }   4: compression { 1: none {} } }
//! bits, that many bytes: blocks of 256 bits
//! ```
//!
//! The hash is XXH64 with seed 0 of the value in Parquet's plain encoding, without the length of byte arrays;
//! [`parquet_file`](crate::format::parquet_file) describes how values become bytes. The bits are those of a
//! [`SplitBlock`], so it is read as one.

use super::bytes::{Fields, Order, put_words};
use super::{ForeignError, Format, Problem};
use crate::format::thrift::{Compact, I32, STRUCT};
use crate::hash::{HashFn, KeyTypes};
use crate::kinds::blocked::SplitBlockParams;
use crate::kinds::{AnyFilter, SplitBlock};

/// The only hash in the specification.
pub(crate) const HASH: HashFn = HashFn::Xxh64 { seed: 0 };

pub(crate) const BLOCK_BYTES: u64 = 32;
const BLOCK_BITS: u64 = 8 * BLOCK_BYTES;

/// Bits per key at 1 %: the assumed plan of a filter of unknown capacity.
const BITS_PER_KEY: f64 = 10.53;

/// More than the length of any header.
pub(crate) const MAX_HEADER: u64 = 64;

/// Lengths of the header at the front of these bytes, and of the bits after it.
pub(crate) fn head(bytes: &[u8]) -> Result<(u64, u64), ForeignError> {
    let fields = Fields::new(Format::Parquet, Order::Little, bytes);
    let at = |left: &Compact<'_>| bytes.len() - left.rest().len();
    let mut left = Compact::new(bytes);
    let mut length = None;
    let (mut field, mut unions) = (0, 0);
    loop {
        let start = at(&left);
        let broken = || fields.invalid(start, "header of a filter", 0);
        match (left.field(&mut field).ok_or_else(broken)?, field) {
            (None, _) => break,
            (Some(I32), 1) => {
                let value = left.integer().ok_or_else(broken)?;
                let valid = u64::try_from(value).ok().filter(|&bytes| {
                    bytes >= BLOCK_BYTES && bytes.is_multiple_of(BLOCK_BYTES) && bytes < 1 << 31
                });
                let invalid = || fields.invalid(start, "number of bytes", value.cast_unsigned());
                length = Some(valid.ok_or_else(invalid)?);
            }
            (Some(STRUCT), 2..=4) => {
                // Only the first variant of each is defined: another one means bits of another kind.
                let variant = first_variant(&mut left).ok_or_else(broken)?;
                let what = ["algorithm", "hash", "compression"][field as usize - 2];
                fields.within(start, what, variant, 1..=1)?;
                unions += 1;
            }
            (Some(of), _) => left.skip(of, 0).ok_or_else(broken)?,
        }
    }
    match length {
        Some(length) if unions == 3 => Ok((at(&left) as u64, length)),
        _ => Err(fields.invalid(at(&left), "header of a filter: fields are missing", unions)),
    }
}

/// Reads the field number of a union, whose value is an empty struct.
fn first_variant(left: &mut Compact<'_>) -> Option<u64> {
    let mut variant = 0;
    let of = left.field(&mut variant)??;
    left.skip(of, 1)?;
    match left.field(&mut 0)? {
        None => u64::try_from(variant).ok(),
        Some(_) => None,
    }
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(bytes).is_ok_and(|(header, bits)| header + bits == bytes.len() as u64)
}

pub(crate) fn read(bytes: &[u8]) -> Result<SplitBlock, ForeignError> {
    let (header, length) = head(bytes)?;
    let mut fields = Fields::new(Format::Parquet, Order::Little, bytes);
    fields.take(header)?;
    fields.check_rest(length)?;
    let filter = of_bits(&mut fields, length)?;
    let len = (filter.estimate_len().round() as u64).min(8 * length);
    Ok(SplitBlock::from_parts(filter.params(), HASH, KeyTypes::NONE, filter.into_words(), len))
}

/// The error for a filter that extends beyond the file.
pub(crate) fn cut_short(left: u64, needed: u64) -> ForeignError {
    let problem = Problem::CutShort { missing: needed - left };
    ForeignError { format: Format::Parquet, offset: left, problem }
}

/// Builds the filter that has only this block.
pub(crate) fn of_block(block: &[u8; BLOCK_BYTES as usize]) -> Result<SplitBlock, ForeignError> {
    of_bits(&mut Fields::new(Format::Parquet, Order::Little, block), BLOCK_BYTES)
}

/// The parameters of a filter of this many bytes.
pub(crate) fn params(length: u64) -> Option<SplitBlockParams> {
    let blocks = length / BLOCK_BYTES;
    let capacity = ((blocks * BLOCK_BITS) as f64 / BITS_PER_KEY) as u64;
    SplitBlockParams::checked(blocks, capacity.max(1)).ok()
}

fn of_bits(fields: &mut Fields<'_>, length: u64) -> Result<SplitBlock, ForeignError> {
    let params = params(length).ok_or_else(|| fields.invalid(0, "number of bytes", length))?;
    let words = fields.words(length, 8 * length)?;
    Ok(SplitBlock::from_parts(params, HASH, KeyTypes::NONE, words, 0))
}

pub(super) fn write(filter: &AnyFilter) -> Option<Vec<u8>> {
    let AnyFilter::SplitBlock(filter) = filter else { return None };
    let length = filter.params().blocks() * BLOCK_BYTES;
    if filter.hash_fn() != HASH || length >= 1 << 31 {
        return None;
    }
    let mut out = vec![0x15]; // field 1, i32
    let mut zigzag = length << 1;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
    for _ in 0..3 {
        out.extend([0x1c, 0x1c, 0, 0]); // the next field, a struct whose field 1 is an empty struct
    }
    out.push(0);
    put_words(&mut out, filter.words(), usize::try_from(length).ok()?, Order::Little);
    Some(out)
}
