//! bits-and-blooms/bloom (Go, `WriteTo`). Numbers are big-endian.
//!
//! ```text
//!  0  8  bits m
//!  8  8  probes k
//! 16  8  bits of the set, m again
//! 24  8w w = ⌈m / 64⌉ words; bit i is bit i mod 64 of word i / 64
//! ```
//!
//! A key is bytes. With h0, h1 the halves of the key's 128-bit MurmurHash3, and h2, h3 those of the key and a byte 1:
//!
//! ```text
//! probe i = 0 … k−1:  position (h_(i mod 2) + i·h_(2 + ((i + i mod 2) mod 4) div 2)) mod 2^64 mod m
//! ```
//!
//! Nothing in the file marks it as a filter; it is recognised by its three consistent numbers. Versions before 2 hashed
//! with FNV, at rates of 50 % (bits-and-blooms/bloom#21), and have the same form: their keys would not be found.

use super::bytes::{Fields, Order, put_words};
use super::{ForeignError, Format};
use crate::hash::Modulus;
use crate::hash::murmur3::{x64_128, x64_128_and};
use crate::kinds::foreign::{MAX_FOREIGN_PROBES, Noted, Probing};
use crate::kinds::{Foreign, Rule};

/// Positions as bits-and-blooms computes them.
#[derive(Clone, Copy)]
pub(crate) struct FourHashes;

impl Probing for FourHashes {
    type Hash = [u64; 4];

    #[inline]
    fn hash(self, key: &[u8]) -> [u64; 4] {
        let ([h0, h1], [h2, h3]) = (x64_128(key), x64_128_and(key, 1));
        [h0, h1, h2, h3]
    }

    #[inline]
    fn positions(self, hash: [u64; 4], range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        (u64::from(first)..).map(move |i| {
            let factor = hash[2 + ((i + i % 2) % 4 / 2) as usize];
            range.of(hash[(i % 2) as usize].wrapping_add(i.wrapping_mul(factor)))
        })
    }
}

/// Bits and probes as bits-and-blooms chooses them.
pub(super) fn size(capacity: u64, rate: f64) -> (u64, u32) {
    let (n, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)).ceil();
    let probes = (ln_2 * bits / n).ceil();
    ((bits as u64).max(1), (probes as u32).max(1))
}

struct Head {
    bits: u64,
    probes: u32,
}

fn head(fields: &mut Fields<'_>) -> Result<Head, ForeignError> {
    let bits = fields.u64()?;
    let bits = fields.within(0, "number of bits", bits, 1..=1 << 50)?;
    let probes = fields.u64()?;
    let probes = fields.within(8, "number of probes", probes, 1..=MAX_FOREIGN_PROBES.into())?;
    let again = fields.u64()?;
    fields.within(16, "length of the set", again, bits..=bits)?;
    fields.check_rest(8 * bits.div_ceil(64))?;
    Ok(Head { bits, probes: probes as u32 })
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&mut Fields::new(Format::BitsAndBlooms, Order::Big, bytes)).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::BitsAndBlooms, Order::Big, bytes);
    let Head { bits, probes } = head(&mut fields)?;
    let array = fields.words(8 * bits.div_ceil(64), bits)?;
    let noted = Noted::default();
    Ok(Foreign::from_parts(Rule::BitsAndBlooms, bits, probes, None, array, noted).with_estimate())
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    if filter.rule() != Rule::BitsAndBlooms {
        return None;
    }
    let mut out = Vec::new();
    for number in [filter.bits(), filter.probes().into(), filter.bits()] {
        out.extend(number.swap_bytes().to_le_bytes());
    }
    let bytes = 8 * filter.bits().div_ceil(64);
    put_words(&mut out, filter.words(), usize::try_from(bytes).ok()?, Order::Big);
    Some(out)
}
