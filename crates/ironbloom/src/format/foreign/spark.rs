//! Apache Spark's `BloomFilter` (`org.apache.spark.util.sketch`). Numbers are big-endian.
//!
//! ```text
//!  0  4  version, 1 or 2
//!  4  4  probes k
//!  8  4  version 2 only: seed
//!     4  words w
//!     8w words of 64 bits; bit i is bit i mod 64 of word i / 64, and m = 64·w
//! ```
//!
//! Keys are long (8 bytes, little-endian), string (UTF-8) and binary; integers of other sizes are inserted as long. With H
//! = [`spark_32`], whose tail is not that of MurmurHash3:
//!
//! ```text
//! version 1:  h1 = H(key, 0)     h2 = H(key, h1)    probe i = 1 … k:  x = h1 + i·h2 in 32 bits
//! version 2:  h1 = H(key, seed)  h2 = H(key, h1)    probe i = 1 … k:  x = h1·(2^31 − 1) + i·h2 in 64 bits, both signed
//! a negative x is replaced by its complement −x − 1; the position is x mod m
//! ```
//!
//! Version 1 has 31-bit positions, so a filter of more than 2^31 bits leaves the rest unused, and its rate suffers long
//! before (SPARK-47547). Version 2, the default since Spark 4.1, has 63-bit positions from a 64-bit hash.

use super::bytes::{Fields, Order};
use super::java::{self, Head};
use super::{ForeignError, Format};
use crate::hash::Modulus;
use crate::hash::murmur3::spark_32;
use crate::kinds::foreign::{MAX_FOREIGN_PROBES, Probing};
use crate::kinds::{Foreign, Rule};

/// Positions in version 1.
#[derive(Clone, Copy)]
pub(crate) struct V1;

/// Positions in version 2.
#[derive(Clone, Copy)]
pub(crate) struct V2 {
    pub(crate) seed: i32,
}

#[inline]
fn hashes(key: &[u8], seed: i32) -> [i32; 2] {
    let first = spark_32(key, seed.cast_unsigned());
    [first.cast_signed(), spark_32(key, first).cast_signed()]
}

impl Probing for V1 {
    type Hash = [i32; 2];

    #[inline]
    fn hash(self, key: &[u8]) -> [i32; 2] {
        hashes(key, 0)
    }

    #[inline]
    fn positions(self, hash: [i32; 2], range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        positions_32(hash, range, first)
    }
}

/// 31-bit positions, shared with Guava's older strategy.
#[inline]
pub(super) fn positions_32(
    [h1, h2]: [i32; 2],
    range: Modulus,
    first: u32,
) -> impl Iterator<Item = u64> {
    (first.cast_signed() + 1..).map(move |i| {
        let sum = h1.wrapping_add(i.wrapping_mul(h2));
        range.of_63_bits(u64::from((sum ^ (sum >> 31)).cast_unsigned())) // the complement if it is negative
    })
}

impl Probing for V2 {
    type Hash = [i32; 2];

    #[inline]
    fn hash(self, key: &[u8]) -> [i32; 2] {
        hashes(key, self.seed)
    }

    #[inline]
    fn positions(
        self,
        [h1, h2]: [i32; 2],
        range: Modulus,
        first: u32,
    ) -> impl Iterator<Item = u64> {
        let start = i64::from(h1).wrapping_mul(i64::from(i32::MAX));
        (i64::from(first) + 1..).map(move |i| {
            let sum = start.wrapping_add(i.wrapping_mul(i64::from(h2)));
            range.of_63_bits((sum ^ (sum >> 63)).cast_unsigned())
        })
    }
}

/// Bits and probes as Spark chooses them.
pub(super) fn size(capacity: u64, rate: f64) -> (u64, u32) {
    let (n, ln_2) = (capacity as f64, std::f64::consts::LN_2);
    let bits = (-n * rate.ln() / (ln_2 * ln_2)) as u64;
    let probes = ((bits as f64 / n) * ln_2).round().max(1.0);
    (bits.max(1), probes as u32)
}

fn head(fields: &mut Fields<'_>) -> Result<Head, ForeignError> {
    let version = u64::from(fields.u32()?);
    let version = fields.within(0, "version", version, 1..=2)?;
    let at = fields.at();
    let probes = u64::from(fields.u32()?);
    let probes = fields.within(at, "number of probes", probes, 1..=MAX_FOREIGN_PROBES.into())?;
    let rule = match version {
        1 => Rule::Spark1,
        _ => Rule::Spark2 { seed: fields.u32()?.cast_signed() },
    };
    Ok(Head { rule, probes: probes as u32, words: java::words(fields)? })
}

pub(super) fn is(bytes: &[u8]) -> bool {
    head(&mut Fields::new(Format::Spark, Order::Big, bytes)).is_ok()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let mut fields = Fields::new(Format::Spark, Order::Big, bytes);
    let head = head(&mut fields)?;
    java::read(&mut fields, head)
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    let start = match filter.rule() {
        Rule::Spark1 => vec![1, filter.probes()],
        Rule::Spark2 { seed } => vec![2, filter.probes(), seed.cast_unsigned()],
        _ => return None,
    };
    java::write(start.into_iter().flat_map(java::number).collect(), filter)
}
