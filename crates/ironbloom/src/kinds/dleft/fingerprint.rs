//! The shape of a d-left filter, and the fingerprint of a key with its image in each subtable.
//!
//! With four independent hashes, two keys could share the remainder and the bucket in just one subtable. The cell there
//! would stand for both, and removing one would remove the other. So each P_i is a bijection of all fingerprints: equal
//! in one subtable means equal F, hence equal in all, and a matching cell is the only one and stands for exactly this
//! F. The paper multiplies by an odd number modulo a power of two; here P_i is two Feistel steps, which work for any
//! number of buckets B:
//!
//! ```text
//! b_i   = b + f_i(rem) mod B          f_i, g_i: mix64 of the argument and a constant, cut to range
//! rem_i = rem ^ g_i(b_i)
//! ```

use super::{BUCKET_CELLS, COUNTER_BITS, SUBTABLES};
use crate::error::{MAX_CAPACITY, Mismatch, ParamError, check_range, check_rate};
use crate::hash::{fastrange, mix64};
use crate::sizing;

/// Average number of occupied cells per bucket at capacity. At 7, replaced keys start to overflow.
const DESIGN_LOAD: u64 = 6;

const MAX_REMAINDER_BITS: u32 = 56;

/// Remainders are planned with at least this many bits. Three keys with the same fingerprint make its counter stick
/// forever; with 24/2^r of the keys sharing theirs with another, n·(24/2^r)²/6 stick in each turnover of the keys. At
/// 12 bits that is 6 in a million, at 7 (20 %) churn fills the table with stuck cells after a dozen turnovers.
const LEAST_PLANNED_BITS: u32 = 12;
const MAX_BUCKETS: u64 = MAX_CAPACITY.div_ceil(SUBTABLES * DESIGN_LOAD);

/// Keys of the Feistel steps: the first 512 bits of π after the binary point.
const BUCKET_KEYS: [u64; SUBTABLES as usize] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];
const REMAINDER_KEYS: [u64; SUBTABLES as usize] =
    [0x4528_21e6_38d0_1377, 0xbe54_66cf_34e9_0c6c, 0xc0ac_29b7_c97c_50dd, 0x3f84_d5b5_b547_0917];

/// The stored part of a key. In the stash it is the true fingerprint, in subtable i its image under P_i.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    pub(super) bucket: u64,
    pub(super) remainder: u64,
}

/// The validated shape of a [`DLeft`](super::DLeft): plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLeftParams {
    pub(super) buckets: u64,
    pub(super) remainder_bits: u32,
    pub(super) capacity: u64,
}

impl DLeftParams {
    /// Plans the smallest filter that holds `capacity` keys at `rate`, with remainders of at least 12 bits: fewer would
    /// not hold up under many removals and inserts.
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(capacity, rate)?;
        let buckets = buckets_for(capacity);
        let bits = sizing::dleft_remainder_bits(buckets, capacity, rate).max(LEAST_PLANNED_BITS);
        if bits > MAX_REMAINDER_BITS {
            let floor = sizing::dleft_rate(buckets, MAX_REMAINDER_BITS, capacity);
            return Err(ParamError::RateBelowHash { rate, floor });
        }
        Self::with_remainder_bits(capacity, bits)
    }

    /// Plans a filter with exactly `buckets` buckets in each of its four subtables and remainders of `remainder_bits`
    /// bits. Its capacity is six keys per bucket.
    pub fn for_buckets(buckets: u64, remainder_bits: u32) -> Result<Self, ParamError> {
        check_range("buckets", buckets, 1, MAX_BUCKETS)?;
        Self::checked(buckets, remainder_bits, buckets * SUBTABLES * DESIGN_LOAD)
    }

    /// Plans a filter for `capacity` keys with remainders of exactly `remainder_bits` bits, 1 to 56. Each bit halves
    /// the rate.
    pub fn with_remainder_bits(capacity: u64, remainder_bits: u32) -> Result<Self, ParamError> {
        check_range("capacity", capacity, 1, MAX_CAPACITY)?;
        Self::checked(buckets_for(capacity), remainder_bits, capacity)
    }

    pub(super) fn checked(
        buckets: u64,
        remainder_bits: u32,
        capacity: u64,
    ) -> Result<Self, ParamError> {
        let widest = u64::from(MAX_REMAINDER_BITS);
        check_range("remainder bits", u64::from(remainder_bits), 1, widest)?;
        check_range("buckets", buckets, 1, MAX_BUCKETS)?;
        check_range("capacity", capacity, 1, u64::MAX)?;
        Ok(Self { buckets, remainder_bits, capacity })
    }

    /// Number of buckets in each of the four subtables.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Bits of a key's remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.remainder_bits
    }

    /// Total number of bits in all cells.
    pub fn bits(&self) -> u64 {
        self.cells() * u64::from(self.width())
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The expected rate with `len` distinct keys in the filter.
    pub fn rate_at(&self, len: u64) -> f64 {
        sizing::dleft_rate(self.buckets, self.remainder_bits, len)
    }

    pub(super) fn cells(&self) -> u64 {
        SUBTABLES * self.buckets * BUCKET_CELLS
    }

    /// Bits per cell.
    pub(super) fn width(&self) -> u32 {
        self.remainder_bits + COUNTER_BITS
    }

    /// Returns the true fingerprint of a hash.
    #[inline]
    pub(super) fn fingerprint(&self, hash: u64) -> Fingerprint {
        Fingerprint {
            bucket: fastrange(hash, self.buckets),
            remainder: mix64(hash) >> (64 - self.remainder_bits),
        }
    }

    /// P_i: returns the fingerprint as stored in a subtable.
    #[inline]
    pub(super) fn permute(&self, subtable: u64, fingerprint: Fingerprint) -> Fingerprint {
        let moved = fingerprint.bucket + self.bucket_step(subtable, fingerprint.remainder);
        let bucket = if moved < self.buckets { moved } else { moved - self.buckets };
        let remainder = fingerprint.remainder ^ self.remainder_step(subtable, bucket);
        Fingerprint { bucket, remainder }
    }

    /// The inverse of [`permute`](Self::permute).
    pub(super) fn restore(&self, subtable: u64, image: Fingerprint) -> Fingerprint {
        let remainder = image.remainder ^ self.remainder_step(subtable, image.bucket);
        let step = self.bucket_step(subtable, remainder);
        let moved = image.bucket + self.buckets - step;
        let bucket = if moved < self.buckets { moved } else { moved - self.buckets };
        Fingerprint { bucket, remainder }
    }

    #[inline]
    fn bucket_step(&self, subtable: u64, remainder: u64) -> u64 {
        fastrange(mix64(remainder ^ BUCKET_KEYS[subtable as usize]), self.buckets)
    }

    #[inline]
    fn remainder_step(&self, subtable: u64, bucket: u64) -> u64 {
        mix64(bucket ^ REMAINDER_KEYS[subtable as usize]) >> (64 - self.remainder_bits)
    }

    /// Returns the first cell of a bucket.
    #[inline]
    pub(super) fn bucket_start(&self, subtable: u64, bucket: u64) -> u64 {
        (subtable * self.buckets + bucket) * BUCKET_CELLS
    }

    pub(super) fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("number of buckets", self.buckets, other.buckets)?;
        Mismatch::unless_equal("remainder bits", self.remainder_bits, other.remainder_bits)
    }
}

fn buckets_for(capacity: u64) -> u64 {
    capacity.div_ceil(SUBTABLES * DESIGN_LOAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::packed::Packed;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn the_widest_filter_can_be_counted_in_bits() {
        let params = DLeftParams::with_remainder_bits(MAX_CAPACITY, MAX_REMAINDER_BITS).unwrap();
        assert_eq!(params.buckets, MAX_BUCKETS);
        assert!(Packed::bits_for(params.cells(), params.width()).unwrap() < 1 << 60);
    }

    #[test]
    fn every_permutation_reaches_every_fingerprint_once() {
        for (buckets, remainder_bits) in [(1, 6), (7, 5), (64, 3), (100, 4)] {
            let params = DLeftParams::checked(buckets, remainder_bits, 1).unwrap();
            for subtable in 0..SUBTABLES {
                let mut images = HashSet::new();
                for bucket in 0..buckets {
                    for remainder in 0..1 << remainder_bits {
                        let image = params.permute(subtable, Fingerprint { bucket, remainder });
                        assert!(image.bucket < buckets && image.remainder >> remainder_bits == 0);
                        images.insert(image);
                    }
                }
                assert_eq!(images.len() as u64, buckets << remainder_bits);
            }
        }
    }

    proptest! {
        #[test]
        fn restoring_undoes_the_permutation(
            buckets in 1..=MAX_BUCKETS,
            remainder_bits in 1..=MAX_REMAINDER_BITS,
            hash: u64,
        ) {
            let params = DLeftParams::checked(buckets, remainder_bits, 1).unwrap();
            let fingerprint = params.fingerprint(hash);
            prop_assert!(fingerprint.bucket < buckets);
            prop_assert_eq!(fingerprint.remainder >> remainder_bits, 0);
            for subtable in 0..SUBTABLES {
                let image = params.permute(subtable, fingerprint);
                prop_assert!(image.bucket < buckets && image.remainder >> remainder_bits == 0);
                prop_assert_eq!(params.restore(subtable, image), fingerprint);
            }
        }
    }
}
