//! Apache DataSketches' Bloom filter (Java, C++, Rust, Go). Numbers are little-endian.
//!
//! ```text
//!  0  1  preamble, in words of 8 bytes: 3 if the filter is empty, else 4
//!  1  1  version, 1
//!  2  1  family, 21
//!  3  1  flags: 4 if the filter is empty; others are not used
//!  4  2  probes k
//!  6  2  not used
//!  8  8  seed
//! 16  4  words w
//! 20  4  not used
//! 24  8  unless it is empty: number of bits that are set, or −1 if the writer did not count them
//! 32  8w unless it is empty: words of 64 bits; bit i is bit i mod 64 of word i / 64, and m = 64·w
//! ```
//!
//! Keys are text (UTF-8; the empty text is ignored, and never found), long and double (8 bytes, with one NaN; Java
//! tells 0 from −0, C++ does not). With H = XXH64:
//!
//! ```text
//! h0 = H(key, seed)   h1 = H(key, h0)   probe i = 1 … k:  position ((h0 + i·h1) mod 2^64 div 2) mod m
//! ```
//!
//! An empty filter announces a size without any bytes to back it, and 24 bytes once made a reader allocate 16 GiB: here
//! it may be up to 256 MiB.

use xxhash_rust::xxh64::xxh64;

use super::bytes::{Fields, Order, put_words};
use super::{ForeignError, Format};
use crate::hash::Modulus;
use crate::kernel::Words;
use crate::kinds::foreign::{MAX_FOREIGN_PROBES, Noted, Probing};
use crate::kinds::{Foreign, Rule};

const FAMILY: u64 = 21;
const EMPTY: u8 = 4;
const UNCOUNTED: u64 = u64::MAX;
/// Maximum words of an empty filter.
const MOST_EMPTY: u64 = (256 << 20) / 8;

/// A flag in `.ibf` files: the file records the number of set bits.
const COUNTED: u64 = 1;

/// Positions as DataSketches computes them.
#[derive(Clone, Copy)]
pub(crate) struct TwoHashes {
    pub(crate) seed: u64,
}

impl Probing for TwoHashes {
    type Hash = [u64; 2];

    #[inline]
    fn hash(self, key: &[u8]) -> [u64; 2] {
        let first = xxh64(key, self.seed);
        [first, xxh64(key, first)]
    }

    #[inline]
    fn positions(
        self,
        [h0, h1]: [u64; 2],
        range: Modulus,
        first: u32,
    ) -> impl Iterator<Item = u64> {
        (u64::from(first) + 1..)
            .map(move |i| range.of_63_bits(h0.wrapping_add(i.wrapping_mul(h1)) >> 1))
    }
}

/// Bits and probes as DataSketches chooses them.
pub(super) fn size(capacity: u64, rate: f64) -> (u64, u32) {
    let (n, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)).ceil() as u64;
    let probes = (bits as f64 / n * ln_2).ceil().max(1.0);
    (bits.max(1), probes as u32)
}

struct Head {
    probes: u32,
    seed: u64,
    words: u64,
    /// Number of set bits according to the file; `None` if the filter is empty.
    ones: Option<u64>,
}

fn head(fields: &mut Fields<'_>) -> Result<Head, ForeignError> {
    let preamble = fields.u8()?;
    let version = u64::from(fields.u8()?);
    fields.within(1, "version", version, 1..=1)?;
    let family = u64::from(fields.u8()?);
    fields.within(2, "family", family, FAMILY..=FAMILY)?;
    let is_empty = fields.u8()? & EMPTY != 0;
    let expected = if is_empty { 3 } else { 4 };
    fields.within(0, "length of the preamble", preamble.into(), expected..=expected)?;
    let probes = u64::from(fields.u16()?);
    let probes = fields.within(4, "number of probes", probes, 1..=MAX_FOREIGN_PROBES.into())?;
    fields.u16()?;
    let seed = fields.u64()?;
    let words = u64::from(fields.u32()?);
    let most = if is_empty { MOST_EMPTY } else { i32::MAX as u64 };
    let words = fields.within(16, "number of words", words, 1..=most)?;
    fields.u32()?;
    let ones = if is_empty { None } else { Some(fields.u64()?) };
    fields.check_rest(if is_empty { 0 } else { 8 * words })?;
    Ok(Head { probes: probes as u32, seed, words, ones })
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&mut Fields::new(Format::DataSketches, Order::Little, bytes)).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::DataSketches, Order::Little, bytes);
    let Head { probes, seed, words, ones } = head(&mut fields)?;
    let bits = 64 * words;
    let array = match ones {
        Some(_) => fields.words(8 * words, bits)?,
        None => Words::zeroed(bits)
            .map_err(|_| fields.error(16, super::Problem::Memory { bytes: 8 * words }))?,
    };
    let counted = ones.filter(|&ones| ones != UNCOUNTED);
    if let Some(ones) = counted
        && ones != array.count_ones()
    {
        return Err(fields.invalid(24, "number of bits that are set", ones));
    }
    let noted = Noted { flags: if counted.is_some() { COUNTED } else { 0 }, ..Noted::default() };
    let rule = Rule::DataSketches { seed };
    Ok(Foreign::from_parts(rule, bits, probes, None, array, noted).with_estimate())
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    let Rule::DataSketches { seed } = filter.rule() else { return None };
    let words = i32::try_from(filter.bits().div_ceil(64)).ok()?;
    let ones: u64 = filter.words().iter().map(|word| u64::from(word.count_ones())).sum();
    let is_empty = ones == 0;
    let (preamble, flags) = if is_empty { (3, EMPTY) } else { (4, 0) };
    let mut out = vec![preamble, 1, FAMILY as u8, flags];
    out.extend(u16::try_from(filter.probes()).ok()?.to_le_bytes());
    out.extend([0; 2]);
    out.extend(seed.to_le_bytes());
    out.extend(words.to_le_bytes());
    out.extend([0; 4]);
    if !is_empty {
        let counted = filter.noted().flags & COUNTED != 0;
        out.extend(if counted { ones } else { UNCOUNTED }.to_le_bytes());
        put_words(&mut out, filter.words(), 8 * words as usize, Order::Little);
    }
    Some(out)
}
