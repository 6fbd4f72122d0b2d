//! DCSO/bloom (Go), version 1. Numbers are little-endian.
//!
//! ```text
//!  0  8  version, 1 (the low byte; the others are zero)
//!  8  8  capacity n
//! 16  8  rate, a double
//! 24  8  probes k
//! 32  8  bits m
//! 40  8  keys that were new when they were inserted
//! 48  8w w = ⌈m / 64⌉ words; bit i is bit i mod 64 of word i / 64
//!     …  any bytes attached by a user
//! ```
//!
//! Files are often gzipped as a whole. A key is bytes:
//!
//! ```text
//! x_0 = FNV-1 of 64 bits of the key mod P      x_i = (x_(i−1)·G mod 2^64) mod P      probe i = 1 … k:  position x_i mod m
//! P = 18446744073709551557   G = 18446744073709550147
//! ```
//!
//! The product wraps before it is reduced, so the numbers are not the permutation that P and G were chosen for, and the low
//! bits of one reveal much about those of the next: the measured rate is above the requested one (hashlookup/poppy#7).
//! Prefer any other format for new filters.

use super::bytes::{Fields, Order, put_words};
use super::{ForeignError, Format};
use crate::hash::Modulus;
use crate::kinds::foreign::{MAX_FOREIGN_PROBES, Noted, Probing};
use crate::kinds::{Foreign, Rule};

const PRIME: u64 = 18_446_744_073_709_551_557;
const GENERATOR: u64 = 18_446_744_073_709_550_147;

/// More keys than a file of ours can count.
const MOST_KEYS: u64 = 1 << 60;

/// Positions as DCSO computes them.
#[derive(Clone, Copy)]
pub(crate) struct Generator;

impl Probing for Generator {
    type Hash = u64;

    #[inline]
    fn hash(self, key: &[u8]) -> u64 {
        key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte)
        })
    }

    #[inline]
    fn positions(self, hash: u64, range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        let next = |x: u64| x.wrapping_mul(GENERATOR) % PRIME;
        std::iter::successors(Some(next(hash % PRIME)), move |&x| Some(next(x)))
            .skip(first as usize)
            .map(move |x| range.of(x))
    }
}

/// Bits and probes as DCSO chooses them.
pub(super) fn size(capacity: u64, rate: f64) -> (u64, u32) {
    let (n, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = (n * rate.ln() / (ln_2 * ln_2)).ceil().abs();
    let probes = (ln_2 * bits / n).ceil();
    ((bits as u64).max(1), (probes as u32).max(1))
}

struct Head {
    noted: Noted,
    bits: u64,
    probes: u32,
}

fn head(fields: &mut Fields<'_>) -> Result<Head, ForeignError> {
    let version = fields.u64()?;
    fields.within(0, "version", version, 1..=1)?;
    let capacity = fields.u64()?;
    let rate = fields.u64()?;
    let planned = f64::from_bits(rate);
    if !(planned > 0.0 && planned < 1.0) {
        return Err(fields.invalid(16, "rate", rate));
    }
    let probes = fields.u64()?;
    let probes = fields.within(24, "number of probes", probes, 1..=MAX_FOREIGN_PROBES.into())?;
    let bits = fields.u64()?;
    let bits = fields.within(32, "number of bits", bits, 1..=1 << 50)?;
    let len = fields.u64()?;
    let len = fields.within(40, "number of keys", len, 0..=MOST_KEYS)?;
    if fields.left() < 8 * bits.div_ceil(64) {
        fields.check_rest(8 * bits.div_ceil(64))?;
    }
    let noted = Noted { len, capacity, rate: planned, ..Noted::default() };
    Ok(Head { noted, bits, probes: probes as u32 })
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&mut Fields::new(Format::Dcso, Order::Little, bytes)).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::Dcso, Order::Little, bytes);
    let Head { mut noted, bits, probes } = head(&mut fields)?;
    let array = fields.words(8 * bits.div_ceil(64), bits)?;
    let at = fields.at();
    let attached = fields.within(at, "length of attached bytes", fields.left(), 0..=1 << 30)?;
    noted.attachment = fields.take(attached)?.to_vec();
    Ok(Foreign::from_parts(Rule::Dcso, bits, probes, None, array, noted))
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    if filter.rule() != Rule::Dcso {
        return None;
    }
    let noted = filter.noted();
    let mut out = Vec::new();
    let numbers =
        [1, noted.capacity, noted.rate.to_bits(), filter.probes().into(), filter.bits(), noted.len];
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
    let bytes = 8 * filter.bits().div_ceil(64);
    put_words(&mut out, filter.words(), usize::try_from(bytes).ok()?, Order::Little);
    out.extend(&noted.attachment);
    Some(out)
}
