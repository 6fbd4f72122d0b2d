//! The shape of a cuckoo filter: its size, and the place of a hash in it.

use super::bucket::{CuckooLayout, SLOTS};
use crate::error::{DecodeError, MAX_CAPACITY, Mismatch, ParamError, check_range, check_rate};
use crate::hash::{fastrange, mix64, remix};
use crate::sizing;

/// Maximum width of a fingerprint.
const MAX_FINGERPRINT_BITS: u32 = 32;

/// Maximum number of buckets: more than any machine can hold, while the number of their bits still fits 64 bits.
const MAX_BUCKETS: u64 = 1 << 48;

/// Slots planned beyond capacity / load, in square roots of the capacity: small tables fill less evenly than
/// large ones. Random filters of 1 to 10^5 keys that refused one of them, measured with plain buckets:
///
/// ```text
/// slack   f = 4          f = 5           f = 6          f = 7          f = 8 to 13
/// 3                                      4 of 1.0 M     0 of 1.0 M     3 of 3.0 M
/// 4       6 of 0.5 M     53 of 0.5 M     0 of 1.0 M     1 of 1.0 M     0 of 1.5 M
/// 8       2 of 0.5 M     8 of 0.5 M
/// ```
const SLACK: f64 = 4.0;

/// A filter planned by its rate has at least this many fingerprint bits: the few distinct fingerprints of 4 or 5 bits
/// crowd into the same pairs of buckets too often, as the table above shows.
const LEAST_PLANNED_BITS: u32 = 6;

/// The planned load of a large table with fingerprints of this width.
fn design_load(fingerprint_bits: u32) -> f64 {
    match fingerprint_bits {
        ..=4 => 0.84,
        5 => 0.94,
        _ => 0.95,
    }
}

/// Smallest even number of buckets that holds `capacity` keys.
fn buckets_for(capacity: u64, fingerprint_bits: u32) -> u64 {
    let n = capacity as f64;
    let slots = n / design_load(fingerprint_bits) + SLACK * n.sqrt();
    2 * (slots / (2 * SLOTS) as f64).ceil() as u64
}

/// Number of keys that `buckets` buckets are planned for: the inverse of [`buckets_for`], at least 1.
///
/// ```text
/// x^2 / load + SLACK x = slots        x = sqrt(n)
/// ```
fn capacity_of(buckets: u64, fingerprint_bits: u32) -> u64 {
    let load = design_load(fingerprint_bits);
    let slots = buckets as f64 * SLOTS as f64;
    let root = load / 2.0 * ((SLACK * SLACK + 4.0 * slots / load).sqrt() - SLACK);
    (root * root).max(1.0) as u64
}

/// The validated shape of a [`Cuckoo`](crate::Cuckoo): plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooParams {
    buckets: u64,
    fingerprint_bits: u32,
    capacity: u64,
    layout: CuckooLayout,
}

impl CuckooParams {
    /// Plans the smallest plain filter that holds `capacity` keys at `rate`.
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::planned(capacity, rate, CuckooLayout::Plain)
    }

    /// Plans the smallest packed filter that holds `capacity` keys at `rate`: one bit per key smaller, and slower.
    pub fn packed_for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::planned(capacity, rate, CuckooLayout::Packed)
    }

    fn planned(capacity: u64, rate: f64, layout: CuckooLayout) -> Result<Self, ParamError> {
        check_rate(capacity, rate)?;
        let least =
            sizing::cuckoo_minimum_fingerprint(capacity, SLOTS as u32).max(LEAST_PLANNED_BITS);
        for fingerprint_bits in least..=MAX_FINGERPRINT_BITS {
            let params = Self::with_fingerprint(capacity, fingerprint_bits, layout)?;
            if params.rate_at(capacity) <= rate {
                return Ok(params);
            }
        }
        let widest = Self::with_fingerprint(capacity, MAX_FINGERPRINT_BITS, layout)?;
        Err(ParamError::RateBelowHash { rate, floor: widest.rate_at(capacity) })
    }

    /// Plans a filter that holds `capacity` keys with fingerprints of exactly `fingerprint_bits` bits: 4 (packed: 5)
    /// to 32. With fewer than 6, one small filter in 10^4 refuses a key before it holds `capacity`.
    pub fn with_fingerprint(
        capacity: u64,
        fingerprint_bits: u32,
        layout: CuckooLayout,
    ) -> Result<Self, ParamError> {
        check_range("capacity", capacity, 1, MAX_CAPACITY)?;
        let buckets = buckets_for(capacity, fingerprint_bits);
        Self::checked(buckets, fingerprint_bits, capacity, layout)
    }

    /// Plans a filter of `buckets` buckets of four slots each, rounded up to an even number. Its capacity is the number
    /// of keys that a filter of this size would be planned for; change it with [`with_capacity`](Self::with_capacity).
    pub fn for_buckets(
        buckets: u64,
        fingerprint_bits: u32,
        layout: CuckooLayout,
    ) -> Result<Self, ParamError> {
        check_range("buckets", buckets, 2, MAX_BUCKETS)?;
        let buckets = buckets.next_multiple_of(2);
        let capacity = capacity_of(buckets, fingerprint_bits);
        Self::checked(buckets, fingerprint_bits, capacity, layout)
    }

    fn checked(
        buckets: u64,
        fingerprint_bits: u32,
        capacity: u64,
        layout: CuckooLayout,
    ) -> Result<Self, ParamError> {
        let least = u64::from(layout.least_fingerprint_bits());
        let greatest = u64::from(MAX_FINGERPRINT_BITS);
        check_range("fingerprint bits", u64::from(fingerprint_bits), least, greatest)?;
        check_range("buckets", buckets, 2, MAX_BUCKETS)?;
        check_range("capacity", capacity, 1, buckets * SLOTS as u64)?;
        Ok(Self { buckets, fingerprint_bits, capacity, layout })
    }

    /// Sets the capacity (the number of keys planned for), at most the number of slots.
    pub fn with_capacity(self, capacity: u64) -> Result<Self, ParamError> {
        Self::checked(self.buckets, self.fingerprint_bits, capacity, self.layout)
    }

    /// Number of buckets, m.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Number of slots, four per bucket: the maximum number of keys.
    pub fn slots(&self) -> u64 {
        self.buckets * SLOTS as u64
    }

    /// Number of bits.
    pub fn bits(&self) -> u64 {
        self.buckets * u64::from(self.layout.bucket_bits(self.fingerprint_bits))
    }

    /// Bits of a fingerprint, f.
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Plain or packed.
    pub fn layout(&self) -> CuckooLayout {
        self.layout
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The expected rate with `len` keys in the filter. There cannot be more keys than slots.
    pub fn rate_at(&self, len: u64) -> f64 {
        let load = len.min(self.slots()) as f64 / self.slots() as f64;
        sizing::cuckoo_rate(self.fingerprint_bits, SLOTS as u32, load)
    }

    /// Returns the fingerprint of a hash, never [`EMPTY`](super::bucket::EMPTY), and the first of its two buckets.
    #[inline]
    pub(super) fn locate(&self, hash: u64) -> (u32, u64) {
        let fingerprints = u64::from(u32::MAX >> (32 - self.fingerprint_bits));
        (1 + fastrange(remix(hash), fingerprints) as u32, fastrange(hash, self.buckets))
    }

    /// Returns the other bucket of a fingerprint in bucket i; applied to that bucket, it returns i.
    ///
    /// ```text
    /// j = (m - i - r) mod m        m even, r odd and from the fingerprint alone
    /// ```
    ///
    /// i + j = -r (mod m) is the same seen from either side, and odd, so one of the two is even and the other odd:
    /// j is never i. The XOR of the paper needs a power of two, which wastes up to half of the memory.
    #[inline]
    pub(super) fn across(&self, bucket: u64, offset: u64) -> u64 {
        let sum = bucket + offset;
        if sum <= self.buckets { self.buckets - sum } else { 2 * self.buckets - sum }
    }

    /// The offset of a fingerprint, r.
    #[inline]
    pub(super) fn offset(&self, fingerprint: u32) -> u64 {
        2 * fastrange(mix64(u64::from(fingerprint)), self.buckets / 2) + 1
    }

    /// Returns an error unless two filters with these parameters keep the same fingerprint of a hash in the same
    /// buckets.
    pub(super) fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("number of buckets", self.buckets, other.buckets)?;
        Mismatch::unless_equal("fingerprint bits", self.fingerprint_bits, other.fingerprint_bits)?;
        Mismatch::unless_equal("layout", self.layout.name(), other.layout.name())
    }

    /// The parameters as stored in a file.
    pub(super) fn encode(&self) -> [u64; 3] {
        [self.buckets, u64::from(self.fingerprint_bits), self.layout as u64]
    }

    /// Reads the parameters from a file, each validated before use.
    pub(super) fn decode(fields: [u64; 3], capacity: u64) -> Result<Self, DecodeError> {
        let [buckets, bits, layout] = fields;
        let fingerprint_bits = u32::try_from(bits)
            .map_err(|_| DecodeError::Invalid { what: "fingerprint bits", value: bits })?;
        let layout = usize::try_from(layout)
            .ok()
            .and_then(|layout| CuckooLayout::ALL.get(layout).copied())
            .ok_or(DecodeError::Invalid { what: "layout", value: layout })?;
        let params = Self::checked(buckets, fingerprint_bits, capacity, layout)?;
        if !buckets.is_multiple_of(2) {
            return Err(DecodeError::Invalid { what: "number of buckets", value: buckets });
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_alternate_is_another_bucket_and_leads_back(
            pairs in 1..=MAX_BUCKETS / 2,
            few_pairs in 1u64..100,
            fingerprint_bits in 4u32..=32,
            hash: u64,
        ) {
            for buckets in [2 * pairs, 2 * few_pairs] {
                let params =
                    CuckooParams::for_buckets(buckets, fingerprint_bits, CuckooLayout::Plain).unwrap();
                let (fingerprint, bucket) = params.locate(hash);
                prop_assert!(fingerprint != 0 && u64::from(fingerprint) < 1 << fingerprint_bits);
                let offset = params.offset(fingerprint);
                let other = params.across(bucket, offset);
                prop_assert!(bucket < buckets && other < buckets && other != bucket);
                prop_assert_eq!(params.across(other, offset), bucket);
            }
        }
    }

    #[test]
    fn all_fingerprints_are_equally_likely() {
        let params = CuckooParams::for_buckets(1000, 4, CuckooLayout::Plain).unwrap();
        let mut counts = [0u32; 16];
        for key in 0..150_000 {
            counts[params.locate(mix64(key)).0 as usize] += 1;
        }
        // 10,000 expected each, sigma 97: six sigma.
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|c| (9_420..=10_580).contains(c)), "{counts:?}");
    }
}
