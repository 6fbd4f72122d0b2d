//! One sub-filter of RedisBloom's chain: a plain Bloom filter of fixed size.
//!
//! ```text
//! bits per key  = -ln(rate) / ln(2)^2
//! bits          = floor(capacity · bits per key), at least 1, rounded up to a multiple of 64
//! probes        = ceil(ln(2) · bits per key)
//!
//! probe i of a key is bit x = (first + i·step) mod bits, which is bit x mod 8 of byte x / 8
//! ```
//!
//! For 100 keys at 0.5 %: 11.0277 bits per key, 1152 bits, 8 probes. Every number is stored in dumps and files, and the
//! constants have fifteen digits there and here: ln(2)^2 with all its digits would change the last bit.

use std::ops::Range;

use crate::hash::Modulus;
use crate::kernel::prefer_huge_pages_to_fill;
use crate::memory::{dense_at, prefer_huge_pages, prefetch, union_counting};
use crate::{Fill, FillProgress, UnionProgress};

use super::error::{CreateError, DecodeError};
use super::limits::{self, MemoryLimit};
use super::murmur::BloomHash;
use super::stats;

/// ln(2) and its square, with as many digits as in RedisBloom.
#[expect(
    clippy::approx_constant,
    reason = "the digits that RedisBloom has: sizes follow from them"
)]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

/// Largest array: positions are 64-bit numbers, and so is the size of all arrays of a chain together.
const MAX_BITS: f64 = (1u64 << 62) as f64;

/// The numbers of a link, as carried in dumps and files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkShape {
    /// Keys it takes before the chain grows.
    pub capacity: u64,
    /// Rate planned for.
    pub rate: f64,
    /// Bits per key that the rate requires.
    pub bits_per_key: f64,
    /// Probes per key.
    pub probes: u32,
    /// Bits, a multiple of 64.
    pub bits: u64,
}

impl LinkShape {
    /// Computes the shape of a link for `capacity` keys at `rate`.
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, CreateError> {
        if capacity == 0 || !(rate > 0.0 && rate < 1.0) {
            return Err(CreateError::Shape);
        }
        let bits_per_key = -(rate.ln() / LN_2_SQUARED);
        let bits = capacity as f64 * bits_per_key;
        if bits >= MAX_BITS {
            return Err(CreateError::Shape);
        }
        let bits = (bits as u64).max(1).next_multiple_of(64);
        Ok(Self { capacity, rate, bits_per_key, probes: probes(bits_per_key), bits })
    }

    /// Returns the shape if a chain may have such a link; the numbers come from outside.
    ///
    /// Does not check that there are as many bits as the rate requires: older versions rounded differently, and too few
    /// only make wrong answers likelier. Checks what would do harm: positions outside the array (impossible by
    /// construction, since the array is made from `bits`), and endless probes.
    pub(crate) fn checked(self) -> Result<Self, DecodeError> {
        DecodeError::unless(self.capacity >= 1, "capacity")?;
        DecodeError::unless(self.rate > 0.0 && self.rate < 1.0, "rate")?;
        DecodeError::unless(
            self.bits_per_key.is_finite() && self.bits_per_key > 0.0,
            "number of bits per key",
        )?;
        DecodeError::unless(self.probes == probes(self.bits_per_key), "number of probes")?;
        let is_array = self.bits >= 64 && self.bits.is_multiple_of(64);
        DecodeError::unless(is_array && self.bits as f64 <= MAX_BITS, "number of bits")?;
        // The lowest rate that a 64-bit number can express needs 1551 bits per key.
        DecodeError::unless(self.probes <= probes(1600.0), "number of probes")?;
        Ok(self)
    }

    /// Size of the array in bytes.
    pub fn bytes(&self) -> u64 {
        self.bits / 8
    }
}

fn probes(bits_per_key: f64) -> u32 {
    (LN_2 * bits_per_key).ceil() as u32
}

/// A Bloom filter with a count of its keys.
#[derive(Debug, PartialEq)]
pub struct Link {
    shape: LinkShape,
    modulus: Modulus,
    array: Vec<u8>,
    len: u64,
    /// Number of keys at which huge pages are requested for the array.
    dense_at: u64,
}

impl Clone for Link {
    fn clone(&self) -> Self {
        Self { array: limits::copy(&self.array), ..*self }
    }
}

impl Link {
    /// Creates an empty link, if a chain of `present` bytes may have this link as well.
    pub(crate) fn new(
        shape: LinkShape,
        present: u64,
        limit: MemoryLimit,
    ) -> Result<Self, CreateError> {
        limit.check(present, shape.bytes())?;
        Ok(Self::with_array(shape, limits::zeros(shape.bytes())?))
    }

    fn with_array(shape: LinkShape, array: Vec<u8>) -> Self {
        let dense_at = dense_at(shape.bytes(), shape.probes);
        Self { shape, modulus: Modulus::new(shape.bits), array, len: 0, dense_at }
    }

    /// Creates an empty link of the same shape, to which the keys of this one will be added.
    pub(crate) fn empty_like(&self) -> Result<Self, CreateError> {
        let empty = Self::new(self.shape, 0, MemoryLimit::NONE)?;
        if self.len >= self.dense_at {
            prefer_huge_pages(&empty.array);
        }
        Ok(empty)
    }

    /// Builds a link of checked shape from its array and its number of keys.
    pub(crate) fn from_parts(
        shape: LinkShape,
        array: Vec<u8>,
        len: u64,
    ) -> Result<Self, DecodeError> {
        DecodeError::unless(array.len() as u64 == shape.bytes(), "array")?;
        let mut link = Self::with_array(shape, array);
        link.set_len(len)?;
        // All of it was written when it was read.
        prefer_huge_pages(&link.array);
        Ok(link)
    }

    /// Sets the number of keys, which a header announces before the array arrives.
    pub(crate) fn set_len(&mut self, len: u64) -> Result<(), DecodeError> {
        DecodeError::unless(len <= self.shape.capacity, "number of keys")?;
        self.len = len;
        Ok(())
    }

    /// Its parameters.
    pub fn shape(&self) -> LinkShape {
        self.shape
    }

    /// Keys in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if it holds no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if it has as many keys as planned.
    pub fn is_full(&self) -> bool {
        self.len >= self.shape.capacity
    }

    /// The bits, eight per byte, lowest first.
    pub fn array(&self) -> &[u8] {
        &self.array
    }

    /// Replaces existing bytes of the array from `start` on.
    pub(crate) fn overwrite(&mut self, start: usize, piece: &[u8]) {
        let range = start..start + piece.len();
        prefer_huge_pages_to_fill(&self.array, range.clone());
        self.array[range].copy_from_slice(piece);
    }

    pub(crate) fn array_to_move(&mut self) -> &mut Vec<u8> {
        &mut self.array
    }

    /// Returns true if all bits of a key are set.
    #[inline]
    pub fn contains(&self, hash: BloomHash) -> bool {
        self.are_set(hash, 0..self.shape.probes)
    }

    /// Returns true if the bits of these probes are set.
    #[inline]
    pub(super) fn are_set(&self, hash: BloomHash, mut probes: Range<u32>) -> bool {
        probes.all(|i| {
            let at = self.modulus.of(hash.probe(i));
            self.array[(at / 8) as usize] & mask(at) != 0
        })
    }

    /// Computes the bits of the probes from `first` on, one for each of `places`, and prefetches them.
    #[inline]
    pub(super) fn locate(&self, hash: BloomHash, first: u32, places: &mut [u64]) {
        for (place, i) in places.iter_mut().zip(first..) {
            *place = self.modulus.of(hash.probe(i));
            prefetch(&self.array, (*place / 8) as usize);
        }
    }

    /// Returns true if these bits are all set. Most likely they are, so it does not stop at the first zero.
    #[inline]
    pub(super) fn are_ones(&self, places: &[u64]) -> bool {
        places.iter().fold(1, |all, &at| all & (self.array[(at / 8) as usize] >> (at % 8))) & 1 == 1
    }

    /// Prefetches the bytes of these probes.
    #[inline]
    pub(super) fn touch(&self, hash: BloomHash, probes: Range<u32>) {
        for i in probes {
            prefetch(&self.array, (self.modulus.of(hash.probe(i)) / 8) as usize);
        }
    }

    /// Sets all bits of a key and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, hash: BloomHash) {
        for i in 0..self.shape.probes {
            let at = self.modulus.of(hash.probe(i));
            self.array[(at / 8) as usize] |= mask(at);
        }
        self.len += 1;
        if self.len == self.dense_at {
            prefer_huge_pages(&self.array);
        }
    }

    /// Adds the next words of a link of the same shape. At the end, the progress moves on to the next link. If one of the two
    /// had no keys, the count is that of the other; otherwise it is estimated from the bits, since keys may be in both.
    pub(crate) fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) {
        debug_assert_eq!(self.shape, other.shape);
        let words = self.array.len() / 8;
        let start = progress.word.min(words);
        let end = start.saturating_add(most_words).min(words);
        let bytes = 8 * start..8 * end;
        let ones = union_counting(&mut self.array[bytes.clone()], &other.array[bytes]);
        progress.ones = progress.ones.saturating_add(ones);
        progress.word = end;
        if end < words {
            return;
        }
        let ones = progress.ones.min(self.shape.bits);
        *progress = UnionProgress { stage: progress.stage + 1, ..UnionProgress::default() };
        stats::merged(self.estimate_from(ones), self.shape.capacity);
        self.len = match (self.len, other.len) {
            (len, 0) | (0, len) => len,
            (one, two) => {
                let most = one.saturating_add(two).min(self.shape.capacity);
                (self.estimate_from(ones).round() as u64).clamp(one.max(two), most)
            }
        };
    }

    /// Number of keys that set `ones` bits on average.
    ///
    /// ```text
    /// n = -m/k ln(1 - X/m)        m bits, k probes, X of them set     [SB07]
    /// ```
    fn estimate_from(&self, ones: u64) -> f64 {
        let fill = ones as f64 / self.shape.bits as f64;
        -(self.shape.bits as f64) / f64::from(self.shape.probes) * (1.0 - fill).ln()
    }

    /// Counts the next words. At the end, the progress moves on to the next link.
    pub(crate) fn fill_step(&self, progress: &mut FillProgress, most_words: usize) {
        if let Some(ones) = progress.count_array(&self.array, most_words) {
            let LinkShape { bits, probes, .. } = self.shape;
            let rate = (ones as f64 / bits as f64).powf(f64::from(probes));
            progress.end_stage(Fill { bits, ones, rate });
        }
    }
}

#[inline]
fn mask(at: u64) -> u8 {
    1 << (at % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (capacity, rate, bits, probes) as RedisBloom's BF.DEBUG shows them.
    #[test]
    fn shapes_are_those_of_redisbloom() {
        for (capacity, rate, bits, probes) in [
            (100, 0.005, 1152, 8),
            (200, 0.0025, 2496, 9),
            (3000, 0.0005, 47488, 11),
            (1000, 0.02, 8192, 6),
            (200, 0.025, 1536, 6),
            (800, 0.0125, 7296, 7),
        ] {
            let shape = LinkShape::for_rate(capacity, rate).unwrap();
            assert_eq!((shape.bits, shape.probes), (bits, probes), "{capacity} keys at {rate}");
            assert_eq!(shape.checked(), Ok(shape));
        }
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        for (capacity, rate) in
            [(0, 0.1), (1, 0.0), (1, 1.0), (1, -0.5), (1, f64::NAN), (u64::MAX, 0.01)]
        {
            assert_eq!(LinkShape::for_rate(capacity, rate), Err(CreateError::Shape));
        }
    }

    #[test]
    fn the_strictest_rate_of_all_has_a_shape_that_loads() {
        let shape = LinkShape::for_rate(10, f64::from_bits(1)).unwrap();
        assert_eq!(shape.checked(), Ok(shape));
        let next = LinkShape { probes: 5000, bits_per_key: 7213.0, ..shape };
        assert!(next.checked().is_err());
    }
}
