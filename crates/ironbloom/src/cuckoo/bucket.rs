//! Buckets of four fingerprints, in one of two layouts behind the same two calls, `get` and `set`.
//!
//! ```text
//! Plain     | slot 0 | slot 1 | slot 2 | slot 3 |             f bits each: 4 f
//! Packed    | code | high 0 | high 1 | high 2 | high 3 |      12 bits, then f - 4 each: 4 f - 4
//! ```
//!
//! Packed sorts the fingerprints by their low nibbles, keeps the four nibbles as one code ([`semisort`]) and the
//! high parts in the same order. Either way a bucket has an even number of bits, at most 128, and is stored as
//! two numbers of half its width. An empty bucket is all zeros in both.

use super::semisort;
use crate::error::ParamError;
use crate::kernel::Words;
use crate::packed::Packed;

/// Slots of a bucket. Four fill to 95 % and are the best choice for rates from 10^-5 to 2·10^-3 [FAKM14].
pub(super) const SLOTS: usize = 4;

/// The mark of an empty slot. No key has this fingerprint.
pub(super) const EMPTY: u32 = 0;

/// The fingerprints of a bucket, in no order that means anything.
pub(super) type Bucket = [u32; SLOTS];

/// How the four fingerprints of a bucket are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CuckooLayout {
    /// Side by side: the faster.
    #[default]
    Plain,
    /// Semi-sorted: one bit a slot smaller, at the price of decoding.
    Packed,
}

impl CuckooLayout {
    /// Both layouts, in the order of their numbers in files.
    pub(super) const ALL: [Self; 2] = [Self::Plain, Self::Packed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Packed => "packed",
        }
    }

    /// The narrowest fingerprint that can be stored so.
    pub(super) fn least_fingerprint_bits(self) -> u32 {
        match self {
            Self::Plain => 4,
            Self::Packed => 5,
        }
    }

    /// Bits of half a bucket.
    fn half_bits(self, fingerprint_bits: u32) -> u32 {
        match self {
            Self::Plain => 2 * fingerprint_bits,
            Self::Packed => 2 * fingerprint_bits - 2,
        }
    }

    /// Bits of a bucket.
    pub(super) fn bucket_bits(self, fingerprint_bits: u32) -> u32 {
        2 * self.half_bits(fingerprint_bits)
    }
}

/// An array of buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buckets {
    halves: Packed,
    fingerprint_bits: u32,
    layout: CuckooLayout,
}

impl Buckets {
    /// `len` empty buckets.
    pub(super) fn empty(
        len: u64,
        fingerprint_bits: u32,
        layout: CuckooLayout,
    ) -> Result<Self, ParamError> {
        let halves = Packed::zeroed(2 * len, layout.half_bits(fingerprint_bits))?;
        Ok(Self { halves, fingerprint_bits, layout })
    }

    /// Words that have the room of [`bits_for`](Self::bits_for).
    pub(super) fn from_words(words: Words, fingerprint_bits: u32, layout: CuckooLayout) -> Self {
        let halves = Packed::from_words(words, layout.half_bits(fingerprint_bits));
        Self { halves, fingerprint_bits, layout }
    }

    /// Bits of storage for `len` buckets. `None` if that exceeds 64 bits.
    pub(super) fn bits_for(len: u64, fingerprint_bits: u32, layout: CuckooLayout) -> Option<u64> {
        Packed::bits_for(len.checked_mul(2)?, layout.half_bits(fingerprint_bits))
    }

    /// The four fingerprints of a bucket.
    #[inline]
    pub(super) fn get(&self, bucket: u64) -> Bucket {
        match self.layout {
            CuckooLayout::Plain => self.plain(bucket),
            CuckooLayout::Packed => self.unpack(self.bits(bucket)),
        }
    }

    /// Slots of a bucket that hold this fingerprint. All four if the bucket has a code that no filter writes: a
    /// damaged filter says "maybe", not "no".
    #[inline]
    pub(super) fn count(&self, bucket: u64, fingerprint: u32) -> u32 {
        let equal = |slots: Bucket| slots.map(|slot| u32::from(slot == fingerprint)).iter().sum();
        match self.layout {
            CuckooLayout::Plain => equal(self.plain(bucket)),
            CuckooLayout::Packed => {
                let bits = self.bits(bucket);
                if (code(bits) as usize) < semisort::CODES {
                    equal(self.unpack(bits))
                } else {
                    SLOTS as u32
                }
            }
        }
    }

    /// Replaces the four fingerprints of a bucket.
    #[inline]
    pub(super) fn set(&mut self, bucket: u64, slots: Bucket) {
        let f = self.fingerprint_bits;
        let (low, high) = match self.layout {
            CuckooLayout::Plain => {
                let pair = |i: usize| u64::from(slots[i]) | u64::from(slots[i + 1]) << f;
                (pair(0), pair(2))
            }
            CuckooLayout::Packed => {
                let bits = self.pack(slots);
                let half = self.halves.width();
                (bits as u64 & u64::MAX >> (64 - half), (bits >> half) as u64)
            }
        };
        self.halves.set(2 * bucket, low);
        self.halves.set(2 * bucket + 1, high);
    }

    /// Stores a fingerprint in an empty slot of a bucket, if there is one.
    #[inline]
    pub(super) fn put(&mut self, bucket: u64, fingerprint: u32) -> bool {
        self.replace(bucket, EMPTY, fingerprint)
    }

    /// Empties one slot of a bucket that holds this fingerprint, if there is one.
    #[inline]
    pub(super) fn take(&mut self, bucket: u64, fingerprint: u32) -> bool {
        self.replace(bucket, fingerprint, EMPTY)
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        let mut slots = self.get(bucket);
        let Some(slot) = slots.iter_mut().find(|slot| **slot == old) else { return false };
        *slot = new;
        self.set(bucket, slots);
        true
    }

    #[inline]
    fn plain(&self, bucket: u64) -> Bucket {
        let f = self.fingerprint_bits;
        let mask = u64::MAX >> (64 - f);
        let [low, high] = self.halves.row(2 * bucket);
        [low & mask, low >> f, high & mask, high >> f].map(|slot| slot as u32)
    }

    /// The bits of a bucket.
    #[inline]
    fn bits(&self, bucket: u64) -> u128 {
        let [low, high] = self.halves.row(2 * bucket);
        u128::from(low) | u128::from(high) << self.halves.width()
    }

    #[inline]
    fn unpack(&self, bits: u128) -> Bucket {
        let high_bits = self.fingerprint_bits - 4;
        let mask = u32::MAX >> (32 - high_bits);
        let mut highs = bits >> semisort::CODE_BITS;
        semisort::unrank(code(bits)).map(|nibble| {
            let high = highs as u32 & mask;
            highs >>= high_bits;
            high << 4 | nibble
        })
    }

    #[inline]
    fn pack(&self, mut slots: Bucket) -> u128 {
        // By nibble, then by high part, so that equal buckets are equal bits.
        slots.sort_unstable_by_key(|slot| slot.rotate_right(4));
        let high_bits = self.fingerprint_bits - 4;
        let highs =
            slots.iter().rev().fold(0, |highs, slot| highs << high_bits | u128::from(slot >> 4));
        highs << semisort::CODE_BITS | u128::from(semisort::rank(slots.map(|slot| slot & 15)))
    }

    /// Asks for the line of a bucket.
    #[inline]
    pub(super) fn touch(&self, bucket: u64) {
        self.halves.touch(2 * bucket);
    }

    pub(super) fn words(&self) -> &Words {
        self.halves.words()
    }

    pub(super) fn clear(&mut self) {
        self.halves.clear();
    }
}

#[inline]
fn code(bits: u128) -> u32 {
    bits as u32 & ((1 << semisort::CODE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    fn each_shape() -> impl Iterator<Item = (u32, CuckooLayout)> {
        CuckooLayout::ALL.into_iter().flat_map(|layout| {
            (layout.least_fingerprint_bits()..=32).map(move |bits| (bits, layout))
        })
    }

    #[test]
    fn a_bucket_holds_what_was_put_and_disturbs_no_neighbour() {
        const LEN: u64 = 50;
        for (bits, layout) in each_shape() {
            let mut buckets = Buckets::empty(LEN, bits, layout).unwrap();
            let mut model = [[EMPTY; SLOTS]; LEN as usize];
            for step in 0..500u64 {
                let bucket = mix64(step) % LEN;
                let mut slots: Bucket = std::array::from_fn(|slot| {
                    let random = mix64(step << 20 | slot as u64);
                    if random.is_multiple_of(4) { EMPTY } else { (random >> (64 - bits)) as u32 }
                });
                buckets.set(bucket, slots);
                slots.sort_unstable();
                model[bucket as usize] = slots;
            }
            for (bucket, slots) in model.into_iter().enumerate() {
                let mut found = buckets.get(bucket as u64);
                found.sort_unstable();
                assert_eq!(found, slots, "{bits} bits, {layout:?}");
            }
        }
    }

    #[test]
    fn putting_and_taking_fill_and_empty_four_slots() {
        for (bits, layout) in each_shape() {
            let most = u32::MAX >> (32 - bits);
            let mut buckets = Buckets::empty(2, bits, layout).unwrap();
            for fingerprint in [most, 1, most, 8] {
                assert!(buckets.put(1, fingerprint));
            }
            assert!(!buckets.put(1, 1));
            assert_eq!(
                (buckets.count(1, most), buckets.count(1, 8), buckets.count(1, 2)),
                (2, 1, 0)
            );
            assert!(!buckets.take(1, 2));
            for fingerprint in [8, most, most, 1] {
                assert!(buckets.take(1, fingerprint));
            }
            assert_eq!(buckets.words().count_ones(), 0);
        }
    }

    #[test]
    fn a_packed_bucket_does_not_remember_the_order() {
        for bits in 5..=32 {
            let mut buckets = Buckets::empty(2, bits, CuckooLayout::Packed).unwrap();
            buckets.set(0, [17, 1, EMPTY, 16]);
            buckets.set(1, [16, EMPTY, 1, 17]);
            assert_eq!(buckets.bits(0), buckets.bits(1));
        }
    }

    #[test]
    fn a_code_that_no_filter_writes_matches_everything_and_has_no_room() {
        let mut words =
            Words::zeroed(Buckets::bits_for(2, 8, CuckooLayout::Packed).unwrap()).unwrap();
        words.to_mut()[0] = semisort::CODES as u64;
        let mut buckets = Buckets::from_words(words, 8, CuckooLayout::Packed);
        assert!((1..256).all(|fingerprint| buckets.count(0, fingerprint) == 4));
        assert!((1..256).all(|fingerprint| buckets.count(1, fingerprint) == 0));
        assert!(!buckets.put(0, 1) && buckets.put(1, 1));
    }
}
