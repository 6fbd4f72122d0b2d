//! Buckets of four fingerprints, in one of two layouts with the same interface.
//!
//! ```text
//! Plain     | slot 0 | slot 1 | slot 2 | slot 3 |             f bits each: 4 f
//! Packed    | code | high 0 | high 1 | high 2 | high 3 |      12 bits, then f - 4 each: 4 f - 4
//! ```
//!
//! Packed sorts the fingerprints by their low nibbles, keeps the four nibbles as one code ([`semisort`]) and the
//! high parts in the same order. Either way a bucket has an even number of bits, at most 128, and is stored as
//! two numbers of half its width. An empty bucket is all zeros in both.
//!
//! A plain bucket of fingerprints of up to 16 bits (rates down to 10^-4) fits a word, which is fast: one load reads the
//! bucket, all four slots are compared at once ([`Lanes`]), and one word is written.

use super::lanes::Lanes;
use super::placement::Place;
use super::semisort;
use crate::bits::packed::{Packed, WINDOW_BITS, flip, window};
use crate::error::ParamError;
use crate::kernel::Words;

/// Slots per bucket. Four fill to 95 % and are the best choice for rates from 10^-5 to 2·10^-3 [FAKM14].
pub(super) const SLOTS: usize = 4;

/// The mark of an empty slot. No key has this fingerprint.
pub(super) const EMPTY: u32 = 0;

/// The fingerprints of a bucket, in arbitrary order.
pub(super) type Bucket = [u32; SLOTS];

/// How the four fingerprints of a bucket are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CuckooLayout {
    /// Side by side: faster.
    #[default]
    Plain,
    /// Semi-sorted: one bit per slot smaller, at the cost of decoding.
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

    /// The narrowest fingerprint this layout can store.
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

    /// Bits per bucket.
    pub(super) fn bucket_bits(self, fingerprint_bits: u32) -> u32 {
        2 * self.half_bits(fingerprint_bits)
    }
}

/// Access to buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Access {
    /// Plain, four lanes of one word. A bucket begins at the first or the fifth bit of a byte, so that a [`window`]
    /// there covers all of it.
    Word(Lanes),
    /// Plain, two lanes in each of two words.
    TwoWords(Lanes),
    /// Packed.
    Code,
}

/// An array of buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buckets {
    halves: Packed,
    fingerprint_bits: u32,
    access: Access,
}

impl Buckets {
    /// Creates `len` empty buckets.
    pub(super) fn empty(
        len: u64,
        fingerprint_bits: u32,
        layout: CuckooLayout,
    ) -> Result<Self, ParamError> {
        let halves = Packed::zeroed(2 * len, layout.half_bits(fingerprint_bits))?;
        Ok(Self::new(halves, fingerprint_bits, layout))
    }

    /// Takes words with room for [`bits_for`](Self::bits_for) bits.
    pub(super) fn from_words(words: Words, fingerprint_bits: u32, layout: CuckooLayout) -> Self {
        let halves = Packed::from_words(words, layout.half_bits(fingerprint_bits));
        Self::new(halves, fingerprint_bits, layout)
    }

    fn new(halves: Packed, fingerprint_bits: u32, layout: CuckooLayout) -> Self {
        let lanes = |count| Lanes::new(fingerprint_bits, count);
        let access = match layout {
            CuckooLayout::Plain if halves.width() <= 32 => Access::Word(lanes(4)),
            CuckooLayout::Plain => Access::TwoWords(lanes(2)),
            CuckooLayout::Packed => Access::Code,
        };
        Self { halves, fingerprint_bits, access }
    }

    /// Bits of storage for `len` buckets. `None` if that exceeds 64 bits.
    pub(super) fn bits_for(len: u64, fingerprint_bits: u32, layout: CuckooLayout) -> Option<u64> {
        Packed::bits_for(len.checked_mul(2)?, layout.half_bits(fingerprint_bits))
    }

    /// Returns the four fingerprints of a bucket.
    #[inline]
    pub(super) fn get(&self, bucket: u64) -> Bucket {
        let Access::Word(lanes) = &self.access else { return self.get_wide_or_packed(bucket) };
        let bits = self.word(bucket);
        [lanes.get(bits, 0), lanes.get(bits, 1), lanes.get(bits, 2), lanes.get(bits, 3)]
    }

    #[inline(never)]
    fn get_wide_or_packed(&self, bucket: u64) -> Bucket {
        let Access::TwoWords(lanes) = &self.access else { return self.unpack(self.bits(bucket)) };
        let [low, high] = self.halves.row(2 * bucket);
        [lanes.get(low, 0), lanes.get(low, 1), lanes.get(high, 0), lanes.get(high, 1)]
    }

    /// Returns true if the fingerprint is in one of its two buckets. Both are always checked: an unpredictable branch
    /// after the first costs more than checking the second.
    #[inline]
    pub(super) fn contains(&self, place: Place) -> bool {
        let Access::Word(lanes) = &self.access else { return self.count(place) > 0 };
        let find = |bucket| lanes.holding(self.word(bucket), place.fingerprint);
        find(place.bucket) | find(place.other) != 0
    }

    /// Counts the slots in its two buckets that hold the fingerprint. A bucket with a code that no filter writes counts
    /// as all four: a damaged filter answers "maybe", not "no".
    #[inline]
    pub(super) fn count(&self, place: Place) -> u32 {
        let Place { fingerprint, bucket, other } = place;
        self.count_in(bucket, fingerprint) + self.count_in(other, fingerprint)
    }

    #[inline(never)]
    fn count_in(&self, bucket: u64, fingerprint: u32) -> u32 {
        match &self.access {
            Access::Word(lanes) => lanes.holding(self.word(bucket), fingerprint).count_ones(),
            Access::TwoWords(lanes) => {
                let [low, high] = self.halves.row(2 * bucket);
                let [low, high] =
                    [lanes.holding(low, fingerprint), lanes.holding(high, fingerprint)];
                low.count_ones() + high.count_ones()
            }
            Access::Code => {
                let bits = self.bits(bucket);
                if code(bits) as usize >= semisort::CODES {
                    return SLOTS as u32;
                }
                self.unpack(bits).iter().map(|&slot| u32::from(slot == fingerprint)).sum()
            }
        }
    }

    /// The room in a bucket: 0 if it is full, otherwise larger the emptier it is. (Approximately: gaps left by removed
    /// fingerprints may make it compare wrongly, but it is 0 only for a full bucket.)
    #[inline]
    pub(super) fn room(&self, bucket: u64) -> u64 {
        match &self.access {
            Access::Word(lanes) => lanes.empty(self.word(bucket)),
            Access::TwoWords(lanes) => {
                let [low, high] = self.halves.row(2 * bucket);
                u64::from(lanes.empty(low).count_ones() + lanes.empty(high).count_ones())
            }
            Access::Code => self.room_by_count(bucket),
        }
    }

    #[inline(never)]
    fn room_by_count(&self, bucket: u64) -> u64 {
        self.get(bucket).iter().map(|&slot| u64::from(slot == EMPTY)).sum()
    }

    /// Stores a fingerprint in the emptier of its two buckets. Returns false if both are full.
    ///
    /// Branchless, so that the next insert does not have to wait for this one's buckets.
    #[inline]
    pub(super) fn put_in_emptier(&mut self, place: Place) -> bool {
        let Place { fingerprint, bucket, other } = place;
        let [a, b] = [self.room(bucket), self.room(other)];
        let (emptier, room) = if a >= b { (bucket, a) } else { (other, b) };
        room != 0 && self.put(emptier, room, fingerprint)
    }

    /// Stores a fingerprint in its first bucket if that has room for two or more, otherwise in the emptier. Returns
    /// false if both are full.
    ///
    /// For a single insert, which would wait for the second bucket: until a filter is half full, it rarely has to.
    #[inline]
    pub(super) fn put_near(&mut self, place: Place) -> bool {
        let room = self.room(place.bucket);
        let has_two = match self.access {
            Access::Word(_) => room & room.wrapping_sub(1) != 0,
            Access::TwoWords(_) | Access::Code => room >= 2,
        };
        if has_two {
            return self.put(place.bucket, room, place.fingerprint);
        }
        self.put_in_emptier(place)
    }

    /// Stores a fingerprint in a bucket with this [`room`](Self::room), which is not 0.
    #[inline]
    pub(super) fn put(&mut self, bucket: u64, room: u64, fingerprint: u32) -> bool {
        let Access::Word(lanes) = &self.access else {
            return self.replace(bucket, EMPTY, fingerprint);
        };
        let (start, flips) = (self.start(bucket), lanes.at_first(room, fingerprint));
        flip(self.halves.words_mut(), start, flips);
        true
    }

    /// Empties one slot of a bucket that holds this fingerprint, if there is one.
    #[inline]
    pub(super) fn take(&mut self, bucket: u64, fingerprint: u32) -> bool {
        self.replace(bucket, fingerprint, EMPTY)
    }

    /// Replaces one fingerprint of a bucket with another, if it is there.
    pub(super) fn replace(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        match self.access {
            Access::Word(lanes) => {
                let found = lanes.holding(self.word(bucket), old);
                found != 0 && self.put(bucket, found, old ^ new)
            }
            Access::TwoWords(lanes) => [2 * bucket, 2 * bucket + 1].into_iter().any(|half| {
                let bits = self.halves.get(half);
                let found = lanes.holding(bits, old);
                if found != 0 {
                    self.halves.set(half, bits ^ lanes.at_first(found, old ^ new));
                }
                found != 0
            }),
            Access::Code => {
                let mut slots = self.unpack(self.bits(bucket));
                let place = slots.iter_mut().find(|slot| **slot == old);
                place.map(|slot| *slot = new).map(|()| self.set_packed(bucket, slots)).is_some()
            }
        }
    }

    /// Position of a bucket's first bit.
    #[inline]
    fn start(&self, bucket: u64) -> u64 {
        bucket * u64::from(2 * self.halves.width())
    }

    /// The bits of a bucket that fits a word, with arbitrary bits above them.
    #[inline]
    fn word(&self, bucket: u64) -> u64 {
        window(self.words(), self.start(bucket))
    }

    /// The bits of a packed bucket.
    #[inline]
    fn bits(&self, bucket: u64) -> u128 {
        let half = self.halves.width();
        if 2 * half <= WINDOW_BITS {
            return u128::from(self.word(bucket) & u64::MAX >> (64 - 2 * half));
        }
        let [low, high] = self.halves.row(2 * bucket);
        u128::from(low) | u128::from(high) << half
    }

    #[inline]
    fn unpack(&self, bits: u128) -> Bucket {
        let high_bits = self.fingerprint_bits - 4;
        let mask = u32::MAX >> (32 - high_bits);
        let low_pair = (bits >> semisort::CODE_BITS) as u64;
        let high_pair = (bits >> (semisort::CODE_BITS + 2 * high_bits)) as u64;
        let slot = |highs: u64, nibble: u32| (highs as u32 & mask) << 4 | nibble;
        let [a, b, c, d] = semisort::unrank(code(bits));
        [
            slot(low_pair, a),
            slot(low_pair >> high_bits, b),
            slot(high_pair, c),
            slot(high_pair >> high_bits, d),
        ]
    }

    fn pack(&self, mut slots: Bucket) -> u128 {
        // By nibble, then by high part, so that equal buckets have equal bits.
        slots.sort_unstable_by_key(|slot| slot.rotate_right(4));
        let high_bits = self.fingerprint_bits - 4;
        let highs =
            slots.iter().rev().fold(0, |highs, slot| highs << high_bits | u128::from(slot >> 4));
        highs << semisort::CODE_BITS | u128::from(semisort::rank(slots.map(|slot| slot & 15)))
    }

    fn set_packed(&mut self, bucket: u64, slots: Bucket) {
        let (bits, half) = (self.pack(slots), self.halves.width());
        self.halves.set(2 * bucket, bits as u64 & u64::MAX >> (64 - half));
        self.halves.set(2 * bucket + 1, (bits >> half) as u64);
    }

    /// Prefetches the cache line of a bucket.
    #[inline]
    pub(super) fn touch(&self, bucket: u64) {
        self.halves.touch(2 * bucket);
    }

    #[inline]
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

    /// Random replacements of fingerprints, few of them distinct per bucket, checked against plain arrays.
    #[test]
    fn a_bucket_holds_what_was_put_and_disturbs_no_neighbour() {
        const LEN: u64 = 50;
        for (bits, layout) in each_shape() {
            let mut buckets = Buckets::empty(LEN, bits, layout).unwrap();
            let mut model = [[EMPTY; SLOTS]; LEN as usize];
            let most = u32::MAX >> (32 - bits);
            let fingerprint = |random: u64| match random % 8 {
                0 | 1 => EMPTY,
                2 => most,
                3 => 1,
                _ => (mix64(random % 32) >> (64 - bits)) as u32,
            };
            for step in 0..5000u64 {
                let bucket = mix64(step) % LEN;
                let (old, new) = (fingerprint(mix64(step << 20)), fingerprint(mix64(step << 40)));
                let slots = &mut model[bucket as usize];
                let found = slots.iter_mut().find(|slot| **slot == old);
                assert_eq!(buckets.replace(bucket, old, new), found.is_some());
                found.into_iter().for_each(|slot| *slot = new);
                let case = format!("{bits} bits, {layout:?}, {slots:x?}");
                let count = |wanted| slots.iter().filter(|slot| **slot == wanted).count() as u32;
                assert_eq!(buckets.room(bucket) != 0, count(EMPTY) > 0, "{case}");
                for wanted in [old | 1, new | 1, most, 1] {
                    assert_eq!(buckets.count_in(bucket, wanted), count(wanted), "{case}");
                    let other = (bucket + 1) % LEN;
                    let place = Place { fingerprint: wanted, bucket, other };
                    let both = count(wanted) + buckets.count_in(other, wanted);
                    assert_eq!(buckets.count(place), both, "{case}");
                    assert_eq!(buckets.contains(place), both > 0, "{case}");
                }
            }
            for (bucket, mut slots) in model.into_iter().enumerate() {
                let mut found = buckets.get(bucket as u64);
                found.sort_unstable();
                slots.sort_unstable();
                assert_eq!(found, slots, "{bits} bits, {layout:?}");
            }
        }
    }

    #[test]
    fn the_emptier_bucket_is_filled_first() {
        for (bits, layout) in each_shape() {
            let mut buckets = Buckets::empty(2, bits, layout).unwrap();
            for used in 1..=4 {
                let place = Place { fingerprint: 3, bucket: 0, other: 1 };
                assert!(buckets.put_in_emptier(place) && buckets.put_in_emptier(place));
                assert_eq!((buckets.count_in(0, 3), buckets.count_in(1, 3)), (used, used));
            }
            assert!(!buckets.put_in_emptier(Place { fingerprint: 1, bucket: 0, other: 1 }));
        }
    }

    #[test]
    fn putting_and_taking_fill_and_empty_four_slots() {
        for (bits, layout) in each_shape() {
            let most = u32::MAX >> (32 - bits);
            let mut buckets = Buckets::empty(2, bits, layout).unwrap();
            for fingerprint in [most, 1, most, 8] {
                assert!(buckets.replace(1, EMPTY, fingerprint));
            }
            assert!(!buckets.replace(1, EMPTY, 1));
            assert_eq!(
                (buckets.count_in(1, most), buckets.count_in(1, 8), buckets.count_in(1, 2)),
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
            buckets.set_packed(0, [17, 1, EMPTY, 16]);
            buckets.set_packed(1, [16, EMPTY, 1, 17]);
            assert_eq!(buckets.bits(0), buckets.bits(1));
        }
    }

    #[test]
    fn a_code_that_no_filter_writes_matches_everything_and_has_no_room() {
        let mut words =
            Words::zeroed(Buckets::bits_for(2, 8, CuckooLayout::Packed).unwrap()).unwrap();
        words.to_mut()[0] = semisort::CODES as u64;
        let mut buckets = Buckets::from_words(words, 8, CuckooLayout::Packed);
        assert!((1..256).all(|fingerprint| buckets.count_in(0, fingerprint) == 4));
        assert!((1..256).all(|fingerprint| buckets.count_in(1, fingerprint) == 0));
        assert!(!buckets.replace(0, EMPTY, 1) && buckets.replace(1, EMPTY, 1));
    }
}
