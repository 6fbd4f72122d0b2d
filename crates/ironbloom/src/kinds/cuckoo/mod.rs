//! The cuckoo filter [FAKM14]: a table of fingerprints that supports removal.
//!
//! ```text
//!                 ┌────────── i ──► [ · | F | · | · ]        bucket of four slots
//! hash ──► F, i ──┤
//!                 └─ (m−i−r(F)) ──► [ · | · | · | · ]        the other bucket: from i and F alone
//!
//! contains(key):  is F in one of the two?
//! insert(key):    put F into the emptier of the two; if both are full, move a fingerprint to *its* other bucket, and
//!                 one from there, and so on, until one finds an empty slot
//! remove(key):    empty one slot of the two that holds F
//! ```
//!
//! The other bucket follows from the fingerprint and the bucket it is in, so a fingerprint can be moved even though its
//! key is not stored. Four slots per bucket fill to 95 % before an insert fails. Differences from the paper:
//!
//! 1. Any even number of buckets, not only powers of two ([`CuckooParams`]).
//! 2. An insert searches for a path before it moves anything (`room`). If there is none it returns [`Full`], and
//!    nothing has changed. Dropping the last fingerprint moved, as many implementations do, makes *another* key
//!    disappear.
//! 3. Fingerprints are 1 + a number in 0..2^f − 1, all equally likely, instead of mapping 0 to 1.

mod kind;

pub(in crate::kinds) use kind::{PLANS, describe, shape};

mod bucket;
mod lanes;
mod params;
mod placement;
mod relocation;
mod semisort;

pub use bucket::CuckooLayout;
pub use params::CuckooParams;

use std::ops::Range;

use bucket::{Buckets, EMPTY, SLOTS};
use placement::{Place, Places};
use relocation::make_room;

use crate::error::{DecodeError, Full, MergeError, Mismatch, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{contains_ahead, try_for_each_ahead};
use crate::kinds::check_lengths;
use crate::sizing;

/// A cuckoo filter: keys can be removed, at 10.5 bits per key for 1 % (9.5 packed).
///
/// ```
/// use ironbloom::Cuckoo;
/// let mut online = Cuckoo::with_rate(1_000_000, 0.01)?;
/// online.insert("alice")?;                // Full if there is no room
/// assert!(online.contains("alice"));      // never wrong
/// assert!(online.remove("alice"));
/// assert!(!online.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Every insert takes a slot, even for a key that is already present. The two buckets of a key have eight slots, so the
/// ninth insert of one key is refused however empty the filter is; [`insert_new`](Self::insert_new) stores a key once.
///
/// A packed bucket with bits that no filter writes, as in a damaged file that was mapped unverified, answers "maybe"
/// for every key; an insert that has to move its fingerprints rewrites it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cuckoo {
    params: CuckooParams,
    places: Places,
    hash_fn: HashFn,
    held: KeyTypes,
    buckets: Buckets,
    len: u64,
}

impl Cuckoo {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: CuckooParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        let buckets = Buckets::empty(params.buckets(), params.fingerprint_bits(), params.layout())?;
        let (places, held) = (Places::new(params), KeyTypes::NONE);
        Ok(Self { params, places, hash_fn, held, buckets, len: 0 })
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(CuckooParams::for_rate(capacity, rate)?, HashFn::default())
    }

    /// Inserts a key, again if it is already present. Returns true if it was new; false if it might have been present
    /// before. Fails, changing nothing, if there is no room: the filter is then about 95 % full, or this key (or others
    /// with its fingerprint and buckets) was inserted eight times.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Full> {
        let held = self.held;
        let hash = self.hash_new(&key);
        self.insert_hash(hash).inspect_err(|_| self.held = held)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes), again if it is already present.
    /// Returns true if it was new; false if it might have been present before.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, Full> {
        expect_uniform(&[hash]);
        let place = self.places.of(hash);
        let new = !self.buckets.contains(place); // reads the buckets that are needed next
        self.store(place)?;
        Ok(new)
    }

    /// Like [`insert_hash`](Self::insert_hash), for callers that do not need to know whether it was present, and insert
    /// one key at a time: it usually waits for only one of the two buckets.
    #[inline]
    pub fn insert_hash_again(&mut self, hash: u64) -> Result<(), Full> {
        expect_uniform(&[hash]);
        let place = self.touch(hash);
        let is_put = self.buckets.put_near(place) || self.make_room(place);
        self.counted(is_put)
    }

    /// Like [`insert_hash_again`](Self::insert_hash_again), for a hash that the library mixed itself and need not
    /// check.
    #[inline]
    pub(crate) fn insert_mixed(&mut self, hash: u64) -> Result<(), Full> {
        self.store(self.places.of(hash))
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses. Stops at the first one
    /// refused; the growth of [`len`](Self::len) shows which one.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        expect_uniform(hashes);
        try_for_each_ahead(self, hashes, Self::touch, |filter, _, _, place| filter.store(place))
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch. Stops at the first key refused.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert_keys<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let (held, len, hash_fn) = (self.held, self.len(), self.hash_fn);
        self.note_keys(KeyTypes::of_keys(keys));
        let mut buffer = [0; GROUP];
        let mut groups = keys.chunks(GROUP);
        let inserted =
            groups.try_for_each(|keys| self.insert_hashes(hash_fn.hash_group(keys, &mut buffer)));
        inserted.inspect_err(|_| {
            if self.len() == len {
                self.held = held;
            }
        })
    }

    /// Inserts a key unless it might already be present. Returns true if it was new, that is, certainly not in the
    /// filter before.
    ///
    /// A key for which this returned false because of a false positive must not be removed: that would remove the other
    /// key's fingerprint.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert_new(&mut self, key: impl Key) -> Result<bool, Full> {
        let held = self.held;
        let hash = self.hash_new(&key);
        self.insert_new_hash(hash).inspect_err(|_| self.held = held)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes), unless it might already be
    /// present. Returns true if it was new.
    pub fn insert_new_hash(&mut self, hash: u64) -> Result<bool, Full> {
        expect_uniform(&[hash]);
        let place = self.places.of(hash);
        if self.buckets.contains(place) {
            return Ok(false);
        }
        self.store(place)?;
        Ok(true)
    }

    /// Stores a fingerprint in one of its two buckets.
    #[inline]
    fn store(&mut self, place: Place) -> Result<(), Full> {
        let is_put = self.buckets.put_in_emptier(place) || self.make_room(place);
        self.counted(is_put)
    }

    #[inline]
    fn make_room(&mut self, place: Place) -> bool {
        make_room(&self.places, &mut self.buckets, place)
    }

    #[inline]
    fn counted(&mut self, is_put: bool) -> Result<(), Full> {
        if !is_put {
            return Err(Full { len: self.len, capacity: self.params.capacity() });
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Removes a key that was inserted, once. Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes another key disappear** if it looks present, which happens at the
    /// filter's rate: the other key's fingerprint is removed, and that key is then reported absent. No filter can
    /// detect this; [`removal`](crate::removal) estimates how much of a list that would affect, before you remove it.
    /// (Two keys that *were* inserted and have the same fingerprint and buckets are interchangeable: removing one never
    /// harms the other.)
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn remove(&mut self, key: impl Key) -> bool {
        self.remove_hash(self.held.hash(self.hash_fn, &key))
    }

    /// Removes a key that was inserted, once, by its [uniform](crate::hash#uniform-hashes) hash. Returns false,
    /// changing nothing, if it is certainly absent.
    ///
    /// Removing a key that was never inserted makes another disappear if it looks present: see
    /// [`remove`](Self::remove).
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let Place { fingerprint, bucket, other } = self.places.of(hash);
        let removed =
            self.buckets.take(bucket, fingerprint) || self.buckets.take(other, fingerprint);
        self.len = self.len.saturating_sub(u64::from(removed));
        removed
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.held.hash(self.hash_fn, &key))
    }

    /// Returns true if the key with this [uniform](crate::hash#uniform-hashes) hash might be in the filter. `false` is
    /// certain.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.buckets.contains(self.places.of(hash))
    }

    /// Sets `found[i]` to whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` might be present. Memory
    /// accesses overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        let answer = |_, place| self.buckets.contains(place);
        contains_ahead(hashes, found, |hash| self.touch(hash), answer);
    }

    /// Counts how often the key was inserted and not removed, 0 to 8: never too low, and too high only at the filter's
    /// rate.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn count(&self, key: impl Key) -> u32 {
        self.count_hash(self.held.hash(self.hash_fn, &key))
    }

    /// Counts how often the key with this [uniform](crate::hash#uniform-hashes) hash was inserted and not removed. See
    /// [`count`](Self::count).
    #[inline]
    pub fn count_hash(&self, hash: u64) -> u32 {
        self.buckets.count(self.places.of(hash))
    }

    /// Prefetches both buckets of a hash, so that they are in the cache when it is inserted or looked up shortly after.
    /// Useful if you have many hashes and other work to do for each; otherwise use
    /// [`insert_hashes`](Self::insert_hashes) and [`contains_hashes`](Self::contains_hashes).
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        self.touch(hash);
    }

    /// Prefetches the buckets of a hash, and returns its place.
    #[inline]
    fn touch(&self, hash: u64) -> Place {
        let place = self.places.of(hash);
        self.buckets.touch(place.bucket);
        self.buckets.touch(place.other);
        place
    }

    /// Adds every key of `other` as many times as it occurs there. Fails, changing nothing, if the two do not keep the
    /// same fingerprint of a key in the same buckets, or if there is no room.
    ///
    /// Works on a copy, so it temporarily needs the memory of two filters.
    pub fn union_with(&mut self, other: &Self) -> Result<(), MergeError> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)?;
        let mut union = self.clone();
        union.held = self.held.united(self.len, other.held, other.len)?;
        for (bucket, fingerprint) in other.fingerprints() {
            union.store(self.places.beside(bucket, fingerprint))?;
        }
        *self = union;
        Ok(())
    }

    /// Moves keys of some buckets into `other`, a filter of the same shape and hash, as long as that is below its
    /// capacity, and only into free slots, so it takes no longer than scanning the buckets. Keys that do not fit stay.
    /// Returns the number of keys moved; fails, changing nothing, if the two are not compatible.
    ///
    /// Every key is found in one of the two before and after, and can be removed from whichever has it.
    pub fn move_into(&mut self, other: &mut Self, buckets: Range<u64>) -> Result<u64, Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)?;
        other.held = other.held.united(other.len, self.held, self.len)?;
        let mut moved = 0;
        for bucket in buckets.start..buckets.end.min(self.params.buckets()) {
            for fingerprint in self.buckets.get(bucket) {
                if other.len >= other.params.capacity() {
                    return Ok(moved);
                }
                let place = self.places.beside(bucket, fingerprint);
                if fingerprint == EMPTY || !other.buckets.put_in_emptier(place) {
                    continue;
                }
                if self.buckets.take(bucket, fingerprint) {
                    self.len = self.len.saturating_sub(1);
                    other.len = other.len.saturating_add(1);
                    moved += 1;
                } else {
                    // A packed bucket with bits that no filter writes: the fingerprint read from it is not really in
                    // it.
                    let _ = other.buckets.take(place.bucket, fingerprint)
                        || other.buckets.take(place.other, fingerprint);
                }
            }
        }
        Ok(moved)
    }

    /// Yields every fingerprint with its bucket.
    fn fingerprints(&self) -> impl Iterator<Item = (u64, u32)> {
        let slots = |bucket| self.buckets.get(bucket).map(|slot| (bucket, slot));
        (0..self.params.buckets()).flat_map(slots).filter(|&(_, slot)| slot != EMPTY)
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.buckets.clear();
        (self.len, self.held) = (0, KeyTypes::NONE);
    }

    /// Number of keys: inserts minus removals.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if nothing was inserted, or everything was removed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys, counted from the slots in use: exact, but scans all of them.
    pub fn estimate_len(&self) -> f64 {
        self.fingerprints().count() as f64
    }

    /// The current rate, from the slots in use.
    pub fn estimate_rate(&self) -> f64 {
        sizing::cuckoo_rate(self.params.fingerprint_bits(), SLOTS as u32, self.fill())
    }

    /// Fraction of the slots that are in use, the load of the table. Beyond 0.95 inserts start to fail.
    pub fn fill(&self) -> f64 {
        self.estimate_len() / self.params.slots() as f64
    }

    /// True once more keys were counted than planned: the requested rate is no longer met.
    pub fn is_over_capacity(&self) -> bool {
        self.len > self.params.capacity()
    }

    /// The shape.
    pub fn params(&self) -> CuckooParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the slots in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.buckets.words().size_in_bytes()
    }
}

impl Persist for Cuckoo {
    fn encode(&self) -> Image<'_> {
        Image::new(Kind::Cuckoo, self.hash_fn, self.len, self.params.capacity())
            .of_keys(self.held)
            .params(&self.params.encode())
            .section(self.buckets.words())
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Cuckoo)?;
        let params = CuckooParams::decode(header.first_params()?, header.capacity)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        let (bits, layout) = (params.fingerprint_bits(), params.layout());
        let room = Buckets::bits_for(params.buckets(), bits, layout)
            .ok_or(DecodeError::Invalid { what: "number of buckets", value: params.buckets() })?;
        let buckets = Buckets::from_words(parts.words_of(room)?, bits, layout);
        Ok(Self { params, places: Places::new(params), hash_fn, held, buckets, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::kernel::Words;

    /// Decodes a file with these fields and right checksums.
    fn decode(fields: [u64; 3], capacity: u64, words: Words) -> Result<Cuckoo, DecodeError> {
        let hash_fn = HashFn::External { id: 0 };
        let image = Image::new(Kind::Cuckoo, hash_fn, u64::MAX, capacity).params(&fields);
        Cuckoo::decode(Parts { header: image.header, words })
    }

    /// Up to the capacity, as for keys inserted in batches; with fingerprints in one word, in two, and packed.
    #[test]
    fn keys_inserted_one_at_a_time_are_all_there_and_find_room_up_to_the_capacity() {
        for (bits, layout) in [8, 13, 16, 17, 25]
            .into_iter()
            .flat_map(|bits| CuckooLayout::ALL.map(|layout| (bits, layout)))
        {
            let params = CuckooParams::with_fingerprint(20_000, bits, layout).unwrap();
            let mut filter = Cuckoo::new(params, HashFn::default()).unwrap();
            for key in 0..20_000 {
                let hash = mix64(key << 6 | u64::from(bits));
                assert!(filter.insert_hash_again(hash).is_ok(), "{bits} bits, {layout:?}: {key}");
                assert!(filter.contains_hash(hash), "{bits} bits, {layout:?}: {key}");
            }
            assert_eq!(filter.len(), 20_000);
            for key in 0..20_000 {
                let hash = mix64(key << 6 | u64::from(bits));
                assert!(filter.remove_hash(hash), "{bits} bits, {layout:?}: {key}");
            }
            assert!(filter.is_empty() && filter.estimate_len() == 0.0);
        }
    }

    #[test]
    fn fields_that_no_filter_has_are_refused() {
        let words = || Words::zeroed(100 * 4 * 8 + 64).unwrap();
        assert!(decode([100, 8, 0], 300, words()).is_ok());
        for fields in [
            [0, 8, 0],
            [1, 8, 0],
            [101, 8, 0],
            [1 << 62, 8, 0],
            [u64::MAX - 1, 32, 1],
            [100, 0, 0],
            [100, 3, 0],
            [100, 4, 1],
            [100, 33, 0],
            [100, u64::MAX, 0],
            [100, 8, 2],
            [100, 8, u64::MAX],
            [1 << 40, 32, 0],
            [200, 8, 0],
        ] {
            assert!(decode(fields, 300, words()).is_err(), "{fields:?}");
        }
        assert!(decode([100, 8, 0], 0, words()).is_err());
        assert!(decode([100, 8, 0], 401, words()).is_err());
    }

    /// Keys move until the other is at capacity, and are found in one of the two at every step.
    #[test]
    fn moving_keeps_every_key_in_one_of_the_two() {
        for packed in [false, true] {
            let params = if packed {
                CuckooParams::packed_for_rate(2000, 0.001).unwrap()
            } else {
                CuckooParams::for_rate(2000, 0.001).unwrap()
            };
            let mut older = Cuckoo::new(params, HashFn::default()).unwrap();
            let mut newer = older.clone();
            let hashes: Vec<u64> = (0..3000).map(mix64).collect();
            older.insert_hashes(&hashes[..1500]).unwrap();
            newer.insert_hashes(&hashes[1500..]).unwrap();
            let mut moved = 0;
            for start in (0..params.buckets()).step_by(37) {
                moved += newer.move_into(&mut older, start..start + 37).unwrap();
                let found = |&hash: &u64| older.contains_hash(hash) || newer.contains_hash(hash);
                assert!(hashes.iter().all(found));
            }
            assert_eq!((older.len(), newer.len(), moved), (2000, 1000, 500));
            assert_eq!((older.estimate_len(), newer.estimate_len()), (2000.0, 1000.0));
            let mut other = Cuckoo::with_rate(500, 0.01).unwrap();
            assert!(newer.move_into(&mut other, 0..10).is_err());
        }
    }

    #[test]
    fn any_payload_and_any_count_give_answers_and_not_a_panic() {
        for (layout, fingerprint_bits) in [(0, 4), (1, 5), (0, 32), (1, 32), (1, 8)] {
            let bits = 100 * 4 * (fingerprint_bits - layout) + 64;
            let mut words = Words::zeroed(bits).unwrap();
            for (word, seed) in words.to_mut()[..(bits / 64) as usize].iter_mut().zip(0..) {
                *word = mix64(seed);
            }
            let mut filter = decode([100, fingerprint_bits, layout], 300, words).unwrap();
            assert_eq!(filter.len(), u64::MAX);
            for hash in (0..1000).map(mix64) {
                let found = filter.contains_hash(hash);
                let (removed, stored) = (filter.remove_hash(hash), filter.insert_hash(hash));
                assert!(found || !removed);
                assert!(stored.is_err() || filter.contains_hash(hash));
            }
            assert!(filter.fill() <= 1.0);
            let mut union = filter.clone();
            if union.union_with(&filter).is_err() {
                assert_eq!(union, filter);
            }
        }
    }
}
