//! The filter of a LevelDB block (`NewBloomFilterPolicy`), and of RocksDB's legacy block-based filters. Only read.
//!
//! ```text
//!  0  b  bytes; bit i is bit i mod 8 of byte i / 8, and m = 8·b
//!  b  1  probes k, 1 to 30
//! ```
//!
//! A key is bytes. With h LevelDB's 32-bit hash, seed 0xbc9f1d34, and d = h rotated right by 17:
//!
//! ```text
//! probe i = 0 … k−1:  position (h + i·d) mod 2^32 mod m
//! ```
//!
//! Nothing distinguishes these bytes from others: the user has to say what they are. 32 hash bits limit the rate (0.23
//! % at ten million keys), but a block has a few thousand keys at most. LevelDB treats a truncated filter as empty, and
//! more than 30 probes as matching everything; both are errors here.

use super::bytes::{Fields, Order};
use super::{ForeignError, Format, Problem};
use crate::hash::Modulus;
use crate::kinds::foreign::{Noted, Probing};
use crate::kinds::{Foreign, Rule};

/// Positions as LevelDB computes them.
#[derive(Clone, Copy)]
pub(crate) struct Rotated;

impl Probing for Rotated {
    type Hash = u32;

    #[inline]
    fn hash(self, key: &[u8]) -> u32 {
        hash(key)
    }

    #[inline]
    fn positions(self, hash: u32, range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        let step = hash.rotate_right(17);
        (first..).map(move |i| range.of_63_bits(hash.wrapping_add(i.wrapping_mul(step)).into()))
    }
}

/// LevelDB's hash, derived from Murmur.
fn hash(key: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0xc6a4_a793;
    let mut hash = 0xbc9f_1d34 ^ (key.len() as u32).wrapping_mul(MULTIPLIER);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 16;
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, &byte| last << 8 | u32::from(byte));
        hash = hash.wrapping_add(last).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 24;
    }
    hash
}

/// Nothing marks such bytes, so they are read as these only on request.
pub(super) fn is(_: &[u8]) -> bool {
    false
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::LevelDb, Order::Little, bytes);
    let Some((&probes, array)) = bytes.split_last().filter(|(_, array)| !array.is_empty()) else {
        let missing = 2 - bytes.len() as u64;
        return Err(fields.error(bytes.len(), Problem::CutShort { missing }));
    };
    fields.within(array.len(), "number of probes", probes.into(), 1..=30)?;
    let len = array.len() as u64;
    let words = fields.words(len, 8 * len)?;
    let (rule, noted) = (Rule::LevelDb, Noted::default());
    Ok(Foreign::from_parts(rule, 8 * len, probes.into(), None, words, noted).with_estimate())
}
