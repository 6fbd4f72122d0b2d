//! Guava's `BloomFilter` (`com.google.common.hash`, `writeTo`). Numbers are big-endian.
//!
//! ```text
//!  0  1  strategy: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64
//!  1  1  probes k, unsigned
//!  2  4  words w
//!  6  8w words of 64 bits; bit i is bit i mod 64 of word i / 64, and m = 64·w
//! ```
//!
//! The file does not record which funnel turned keys into bytes: the user has to say. `stringFunnel(UTF_8)` and
//! `byteArrayFunnel` are [`Text`](crate::hash::KeyForm::Text), `unencodedCharsFunnel` is Chars, `longFunnel` is Long,
//! `integerFunnel` is Int. With h1 and h2 the halves of 128-bit MurmurHash3:
//!
//! ```text
//! MITZ_64:  probe i = 0 … k−1:  x = (h1 + i·h2) mod 2^63                        the position is x mod m
//! MITZ_32:  probe i = 1 … k:    x = low(h1) + i·high(h1) in 32 bits, signed, its complement if negative; x mod m
//! ```
//!
//! MITZ_32 was the default until Guava 14. It has only 2^31 positions, and three times its rate in large filters
//! (google/guava#1119), so it is only read, never created.

use super::bytes::{Fields, Order};
use super::java::{self, Head};
use super::spark::positions_32;
use super::{ForeignError, Format};
use crate::hash::Modulus;
use crate::hash::murmur3::x64_128;
use crate::kinds::foreign::Probing;
use crate::kinds::{Foreign, Rule};

/// Positions of `MURMUR128_MITZ_32`.
#[derive(Clone, Copy)]
pub(crate) struct Mitz32;

/// Positions of `MURMUR128_MITZ_64`.
#[derive(Clone, Copy)]
pub(crate) struct Mitz64;

impl Probing for Mitz32 {
    type Hash = [i32; 2];

    #[inline]
    fn hash(self, key: &[u8]) -> [i32; 2] {
        let [low, _] = x64_128(key);
        [low as i32, (low >> 32) as i32]
    }

    #[inline]
    fn positions(self, hash: [i32; 2], range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        positions_32(hash, range, first)
    }
}

impl Probing for Mitz64 {
    type Hash = [u64; 2];

    #[inline]
    fn hash(self, key: &[u8]) -> [u64; 2] {
        x64_128(key)
    }

    #[inline]
    fn positions(
        self,
        [h1, h2]: [u64; 2],
        range: Modulus,
        first: u32,
    ) -> impl Iterator<Item = u64> {
        (u64::from(first)..)
            .map(move |i| range.of_63_bits(h1.wrapping_add(i.wrapping_mul(h2)) & i64::MAX as u64))
    }
}

/// Bits and probes as Guava chooses them.
pub(super) fn size(capacity: u64, rate: f64) -> (u64, u32) {
    let (n, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)) as u64;
    let probes = (-rate.ln() / ln_2).round().max(1.0);
    (bits.max(1), probes as u32)
}

fn head(fields: &mut Fields<'_>) -> Result<Head, ForeignError> {
    let strategy = u64::from(fields.u8()?);
    let strategy = fields.within(0, "strategy", strategy, 0..=1)?;
    let probes = u64::from(fields.u8()?);
    let probes = fields.within(1, "number of probes", probes, 1..=255)? as u32;
    let rule = if strategy == 0 { Rule::Guava32 } else { Rule::Guava64 };
    Ok(Head { rule, probes, words: java::words(fields)? })
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&mut Fields::new(Format::Guava, Order::Big, bytes)).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::Guava, Order::Big, bytes);
    let head = head(&mut fields)?;
    java::read(&mut fields, head)
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    if filter.rule() != Rule::Guava64 {
        return None;
    }
    java::write(vec![1, u8::try_from(filter.probes()).ok()?], filter)
}
