//! The d-left counting filter [BMPSV06]: fingerprints with small counters, half the size of a counting Bloom filter.
//!
//! ```text
//! key ── hash ── F = (bucket, remainder)                   the true fingerprint
//!                   ├─ P_0(F) ─► subtable 0  |········|··●·····|····      a bucket is 8 cells
//!                   ├─ P_1(F) ─► subtable 1  |········|········|····
//!                   ├─ P_2(F) ─► subtable 2  |····●···|········|····      cell = remainder (r bits), counter (2 bits)
//!                   └─ P_3(F) ─► subtable 3  |········|········|····      counter 0: the cell is empty
//!
//! insert(key):   in one of the four buckets?  counter += 1, up to 3
//!                else a cell in the least loaded bucket, the leftmost of equals;  none free: the stash
//! remove(key):   in none of them? refuse.     else counter -= 1, except at 3
//! contains(key): in one of the four buckets, or in the stash?
//! ```
//!
//! Choosing the least loaded of four buckets evens out the load so well that at a mean load of 6 no bucket needs a
//! ninth cell: none did with 10^5 keys replaced six times over. The stash of 64 is for the exceptions.
//!
//! Every P_i is a bijection, so a matching cell stands for exactly this key's F: see `fingerprint.rs`.
//!
//! A counter at 3 is *stuck*: it stands for three or more and is never decremented again, so its keys stay "maybe"
//! until [`DLeft::clear`]. The third insert of one key does that; three of n distinct keys that share one F do it
//! n·λ²/6 times, λ = 24/2^r: once in 3·10^6 keys at r = 14.

mod kind;

pub(super) use kind::PLANS;

mod fingerprint;
mod lanes;
mod stash;

pub use fingerprint::DLeftParams;

use crate::bits::packed::Packed;
use crate::error::{DecodeError, Full, MergeError, Mismatch, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{LINE_BYTES, LINE_WORDS, contains_ahead, try_for_each_ahead};
use crate::kinds::check_lengths;
use fingerprint::Fingerprint;
use lanes::{Lanes, words_of_a_bucket};
use stash::Stash;

const SUBTABLES: u64 = 4;
const BUCKET_CELLS: u64 = 8;

const COUNTER_BITS: u32 = 2;

/// The largest count, which also stands for everything above, and the mask of the counter in a cell.
const STUCK: u64 = 3;

/// A filter from which keys can be removed, half the size of a [`CountingBloom`](crate::CountingBloom).
///
/// Remove only what was inserted. A false positive shares its fingerprint with a key that was inserted: removing it
/// removes that key, which is then reported absent.
///
/// ```
/// use ironbloom::DLeft;
/// let mut here = DLeft::with_rate(1_000_000, 0.01)?;
/// here.insert("alice")?;
/// assert!(here.contains("alice"));
/// assert!(here.remove("alice") && !here.contains("alice"));
/// assert!(!here.remove("alice"));         // refused: certainly not there
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DLeft {
    params: DLeftParams,
    hash_fn: HashFn,
    held: KeyTypes,
    cells: Packed,
    stash: Stash,
    len: u64,
}

/// A probe of one subtable: the bucket that starts at this cell, and the remainder.
#[derive(Clone, Copy, Default)]
struct Probe {
    start: u64,
    remainder: u64,
}

/// The probes of all subtables.
type Probes = [Probe; SUBTABLES as usize];

/// The location of a fingerprint.
#[derive(Clone, Copy)]
enum Location {
    Cell(u64),
    Stash(usize),
}

impl DLeft {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: DLeftParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        let cells = Packed::zeroed(params.cells(), params.width())?;
        let (held, stash) = (KeyTypes::NONE, Stash::default());
        Ok(Self { params, hash_fn, held, cells, stash, len: 0 })
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(DLeftParams::for_rate(capacity, rate)?, HashFn::default())
    }

    /// Inserts a key; if it is already present, its count goes up by one. Returns true if it was new; false if it might
    /// have been present before. The third insert of one key makes its counter stuck: it can no longer be removed.
    /// Returns [`Full`], changing nothing, if its four buckets and the stash are full.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Full> {
        let held = self.held;
        let hash = self.hash_new(&key);
        self.insert_hash(hash).inspect_err(|_| self.held = held)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). Returns true if it was new;
    /// false if it might have been there before.
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, Full> {
        expect_uniform(&[hash]);
        let new = self.add(self.params.fingerprint(hash), 1)?;
        self.len = self.len.saturating_add(1);
        Ok(new)
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses. Stops at the first one
    /// that does not fit: those before it are in, the rest are not, and [`len`](Self::len) has grown by the number
    /// inserted.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        try_for_each_ahead(self, hashes, Self::touch, |filter, _, hash, ()| {
            filter.insert_hash(hash).map(drop)
        })
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

    /// Counts a fingerprint `count` times. Returns true if it was new.
    fn add(&mut self, fingerprint: Fingerprint, count: u64) -> Result<bool, Full> {
        let probes = self.probes(fingerprint);
        if let Some(place) = self.find(fingerprint, &probes) {
            let cell = self.cell(place);
            let sum = (cell & STUCK) + count;
            self.set_cell(place, cell & !STUCK | sum.min(STUCK));
            return Ok(false);
        }
        if let Some((index, remainder)) = self.free_cell(&probes) {
            self.cells.set(index, remainder << COUNTER_BITS | count);
            return Ok(true);
        }
        if self.stash.insert(fingerprint, count) {
            return Ok(true);
        }
        Err(Full { len: self.len, capacity: self.params.capacity })
    }

    /// Finds the one location of a fingerprint.
    #[inline]
    fn find(&self, fingerprint: Fingerprint, probes: &Probes) -> Option<Location> {
        if !self.in_cells(probes) {
            return self.stash.find(fingerprint).map(Location::Stash);
        }
        let in_bucket = |probe: &Probe| {
            let holds = |&cell: &u64| cell & STUCK != 0 && cell >> COUNTER_BITS == probe.remainder;
            Some(probe.start + self.bucket(probe.start).iter().position(holds)? as u64)
        };
        probes.iter().find_map(in_bucket).map(Location::Cell)
    }

    /// Returns true if it is in one of the four buckets. Always checks all of them: the loads are independent, and a
    /// branch on each would be mispredicted more often than not.
    #[inline]
    fn in_cells(&self, probes: &Probes) -> bool {
        match words_of_a_bucket(self.params.width()) {
            2 => self.in_cells_of::<2>(probes),
            4 => self.in_cells_of::<4>(probes),
            _ => self.in_cells_of::<8>(probes),
        }
    }

    #[inline]
    fn in_cells_of<const W: usize>(&self, probes: &Probes) -> bool {
        let lanes = Lanes::<W>::new(self.params.width());
        let words: &[u64] = self.cells.words();
        let mut holding = 0;
        for probe in probes {
            let wanted = lanes.wanted(probe.remainder);
            for i in 0..W {
                holding |= lanes.holding(lanes.read(words, probe.start, i), wanted);
            }
        }
        holding != 0
    }

    /// Finds an empty cell in the least loaded of the four buckets, the leftmost of equals, and the remainder to store
    /// there.
    #[inline]
    fn free_cell(&self, probes: &Probes) -> Option<(u64, u64)> {
        match words_of_a_bucket(self.params.width()) {
            2 => self.free_cell_of::<2>(probes),
            4 => self.free_cell_of::<4>(probes),
            _ => self.free_cell_of::<8>(probes),
        }
    }

    #[inline]
    fn free_cell_of<const W: usize>(&self, probes: &Probes) -> Option<(u64, u64)> {
        let lanes = Lanes::<W>::new(self.params.width());
        let words: &[u64] = self.cells.words();
        // Load and number combined: the minimum is the leftmost of the least loaded.
        let mut least = u32::MAX;
        for (subtable, probe) in (0..).zip(probes) {
            let mut load = 0;
            for i in 0..W {
                load += lanes.occupied(lanes.read(words, probe.start, i)).count_ones();
            }
            least = least.min(load * SUBTABLES as u32 + subtable);
        }
        let Probe { start, remainder } = probes[least as usize % SUBTABLES as usize];
        let free = self.bucket(start).iter().position(|cell| cell & STUCK == 0)?;
        Some((start + free as u64, remainder))
    }

    /// Computes the probes of a fingerprint.
    #[inline]
    fn probes(&self, fingerprint: Fingerprint) -> Probes {
        let mut probes = Probes::default();
        for (subtable, probe) in (0..).zip(&mut probes) {
            let Fingerprint { bucket, remainder } = self.params.permute(subtable, fingerprint);
            *probe = Probe { start: self.params.bucket_start(subtable, bucket), remainder };
        }
        probes
    }

    /// Returns the cells of the bucket that starts here.
    #[inline]
    fn bucket(&self, start: u64) -> [u64; BUCKET_CELLS as usize] {
        self.cells.row(start)
    }

    fn cell(&self, place: Location) -> u64 {
        match place {
            Location::Cell(index) => self.cells.get(index),
            Location::Stash(entry) => self.stash.cell(entry),
        }
    }

    fn set_cell(&mut self, place: Location, cell: u64) {
        match place {
            Location::Cell(index) => self.cells.set(index, cell),
            Location::Stash(entry) => self.stash.set_cell(entry, cell),
        }
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
        let fingerprint = self.params.fingerprint(hash);
        self.keeps(fingerprint, &self.probes(fingerprint))
    }

    #[inline]
    fn keeps(&self, fingerprint: Fingerprint, probes: &Probes) -> bool {
        self.in_cells(probes) || self.stash.find(fingerprint).is_some()
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
        let ask = |hash| {
            let fingerprint = self.params.fingerprint(hash);
            let probes = self.probes(fingerprint);
            self.touch_buckets(&probes);
            (fingerprint, probes)
        };
        contains_ahead(hashes, found, ask, |_, (fingerprint, probes)| {
            self.keeps(fingerprint, &probes)
        });
    }

    /// Removes a key that was inserted, once. Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes another key disappear** if it looks present, which happens at the
    /// filter's rate: the count of the fingerprint it shares with another key is decremented, and that key is then
    /// reported absent. No filter can detect this; [`removal`](crate::removal) estimates how much of a list that would
    /// affect, before you remove it.
    ///
    /// A key whose counter is stuck no longer counts, but is still found.
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
        let fingerprint = self.params.fingerprint(hash);
        let Some(place) = self.find(fingerprint, &self.probes(fingerprint)) else { return false };
        let cell = self.cell(place);
        match cell & STUCK {
            STUCK => {}
            1 => self.set_cell(place, 0),
            _ => self.set_cell(place, cell - 1),
        }
        self.len = self.len.saturating_sub(1); // a file's count cannot be trusted
        true
    }

    /// Prefetches the cache lines of the four buckets of a hash.
    #[inline]
    fn touch(&self, hash: u64) {
        self.touch_buckets(&self.probes(self.params.fingerprint(hash)));
    }

    #[inline]
    fn touch_buckets(&self, probes: &Probes) {
        for probe in probes {
            self.cells.touch(probe.start);
        }
    }

    /// Adds every key of `other` as many times as it occurs there. Fails, changing nothing, if the two do not keep the
    /// same fingerprint for the same key, or if there is no room for the keys of both. Works on a copy.
    pub fn union_with(&mut self, other: &Self) -> Result<(), MergeError> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)?;
        let mut union = self.clone();
        union.held = self.held.united(self.len, other.held, other.len)?;
        for (fingerprint, count) in other.fingerprints() {
            union.add(fingerprint, count)?;
        }
        union.len = self.len.saturating_add(other.len);
        *self = union;
        Ok(())
    }

    /// Yields every true fingerprint with its count.
    fn fingerprints(&self) -> impl Iterator<Item = (Fingerprint, u64)> {
        let buckets = self.params.buckets;
        let in_cells = self.occupied_cells().map(move |(index, cell)| {
            let bucket = index / BUCKET_CELLS;
            let image = Fingerprint { bucket: bucket % buckets, remainder: cell >> COUNTER_BITS };
            (self.params.restore(bucket / buckets, image), cell & STUCK)
        });
        in_cells.chain(self.stash.entries())
    }

    fn occupied_cells(&self) -> impl Iterator<Item = (u64, u64)> {
        let cells = (0..self.params.cells()).map(|index| (index, self.cells.get(index)));
        cells.filter(|(_, cell)| cell & STUCK != 0)
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        let in_cells = self.occupied_cells().map(|(_, cell)| cell & STUCK);
        in_cells.chain(self.stash.entries().map(|(_, count)| count))
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.stash = Stash::default();
        (self.len, self.held) = (0, KeyTypes::NONE);
    }

    /// Number of keys, with repetitions: inserts minus removals.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if as many keys were removed as inserted.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys, with repetitions, from the counters. Exact unless some are stuck: those count as 3.
    pub fn estimate_len(&self) -> f64 {
        self.counts().sum::<u64>() as f64
    }

    /// The current rate: the fraction of all fingerprints that are stored.
    pub fn estimate_rate(&self) -> f64 {
        let kept = self.counts().count() as f64;
        // A forged file can keep one fingerprint in several places.
        (kept / (self.params.buckets as f64 * f64::from(self.params.remainder_bits).exp2()))
            .min(1.0)
    }

    /// Number of stuck counters: those that reached 3 and are never decremented again.
    pub fn saturated(&self) -> u64 {
        self.counts().filter(|&count| count == STUCK).count() as u64
    }

    /// Number of fingerprints in the stash. It holds 64; if it is not empty the filter is over capacity, or close to
    /// it.
    pub fn stashed(&self) -> u64 {
        self.stash.entries().count() as u64
    }

    /// True once more keys were counted than planned: the requested rate may no longer be met.
    pub fn is_over_capacity(&self) -> bool {
        self.len > self.params.capacity
    }

    /// The shape.
    pub fn params(&self) -> DLeftParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of cells and stash in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.cells.words().size_in_bytes() + size_of_val(self.stash.words())
    }
}

impl Persist for DLeft {
    fn encode(&self) -> Image<'_> {
        let params = &self.params;
        Image::new(Kind::DLeft, self.hash_fn, self.len, params.capacity)
            .of_keys(self.held)
            .params(&[params.buckets, u64::from(params.remainder_bits), self.stash.lines()])
            .section(self.cells.words())
            .section(self.stash.words())
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        const LINE_BITS: u64 = 8 * LINE_BYTES as u64;
        let header = parts.expect_kind(Kind::DLeft)?;
        let [buckets, _, stash_lines] = header.first_params()?;
        let remainder_bits = parts.small(1, "remainder bits")?;
        let params = DLeftParams::checked(buckets, remainder_bits, header.capacity)?;
        if stash_lines > Stash::MAX_LINES {
            return Err(DecodeError::Invalid { what: "stash lines", value: stash_lines });
        }
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        let cell_lines = Packed::bits_for(params.cells(), params.width())
            .expect("the most buckets and the widest cells fit")
            .div_ceil(LINE_BITS);
        let mut words = parts.words_of((cell_lines + stash_lines) * LINE_BITS)?;
        let cell_lines = cell_lines as usize; // this many lines exist
        let stash = Stash::decode(&words[cell_lines * LINE_WORDS..], &params)?;
        let words = match stash_lines {
            0 => words,
            _ => words.split_lines(cell_lines).expect("the length was checked"),
        };
        let cells = Packed::from_words(words, params.width());
        Ok(Self { params, hash_fn, held, cells, stash, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::kernel::Words;
    use std::collections::HashSet;

    fn external(capacity: u64, remainder_bits: u32) -> DLeft {
        let params = DLeftParams::with_remainder_bits(capacity, remainder_bits).unwrap();
        DLeft::new(params, HashFn::External { id: 0 }).unwrap()
    }

    /// With one bucket per subtable there is room for 32 fingerprints, and for 64 more in the stash.
    fn one_bucket() -> DLeft {
        external(1, 32)
    }

    /// Remainders so short that many keys share a fingerprint, and more keys than planned, so that some are stashed.
    #[test]
    fn a_fingerprint_never_has_two_places() {
        let mut filter = external(2_000, 8);
        let mut live: Vec<u64> = Vec::new();
        for step in 0..30_000 {
            let random = mix64(step);
            if live.len() < 2_450 {
                filter.insert_hash(random).unwrap();
                live.push(random);
            } else {
                let out = live.swap_remove((random % 2_450) as usize);
                assert!(filter.remove_hash(out));
            }
        }
        assert!(filter.stashed() > 0);
        let kept: Vec<Fingerprint> = filter.fingerprints().map(|(kept, _)| kept).collect();
        let distinct: HashSet<Fingerprint> = kept.iter().copied().collect();
        assert_eq!(kept.len(), distinct.len());
        let wanted = live.iter().map(|&hash| filter.params.fingerprint(hash));
        assert!(wanted.collect::<HashSet<_>>().is_subset(&distinct));
    }

    #[test]
    fn removing_all_keys_leaves_all_cells_zero() {
        let mut filter = external(10_000, 14);
        let hashes: Vec<u64> = (0..10_000).map(mix64).collect();
        filter.insert_hashes(&hashes).unwrap();
        assert_eq!((filter.saturated(), filter.estimate_len()), (0, 10_000.0));
        assert!(hashes.iter().rev().all(|&hash| filter.remove_hash(hash)));
        assert!(filter.cells.words().iter().all(|&word| word == 0));
        assert!(filter.is_empty());
    }

    #[test]
    fn a_counter_stops_at_3_and_stays_there() {
        let mut filter = one_bucket();
        let hash = mix64(1);
        for inserted in 1..=6 {
            filter.insert_hash(hash).unwrap();
            assert_eq!(filter.counts().collect::<Vec<_>>(), [inserted.min(STUCK)]);
        }
        for _ in 0..6 {
            assert!(filter.remove_hash(hash));
        }
        assert_eq!(filter.counts().collect::<Vec<_>>(), [STUCK]);
        assert_eq!((filter.saturated(), filter.len()), (1, 0));
    }

    #[test]
    fn the_stash_counts_too_and_shrinks_to_nothing() {
        let mut filter = one_bucket();
        let hashes: Vec<u64> = (0..37).map(mix64).collect();
        filter.insert_hashes(&hashes).unwrap();
        assert_eq!((filter.stashed(), filter.stash.lines()), (5, 2));
        filter.insert_hash(hashes[36]).unwrap();
        assert_eq!((filter.stashed(), filter.estimate_len()), (5, 38.0));
        assert!(filter.remove_hash(hashes[36]) && filter.contains_hash(hashes[36]));
        assert!(filter.remove_hash(hashes[36]) && !filter.contains_hash(hashes[36]));
        assert_eq!((filter.stashed(), filter.stash.lines()), (4, 1));
        assert!(hashes[32..36].iter().all(|&hash| filter.remove_hash(hash)));
        assert_eq!(filter.stash, Stash::default());
    }

    fn decode(filter: &DLeft, change: impl Fn(&mut Parts)) -> Result<DLeft, DecodeError> {
        let Image { header, sections } = filter.encode();
        let all = sections.concat();
        let mut words = Words::zeroed(all.len() as u64 * 64).unwrap();
        words.to_mut().copy_from_slice(&all);
        let mut parts = Parts { header, words };
        change(&mut parts);
        DLeft::decode(parts)
    }

    #[test]
    fn a_file_with_impossible_fields_is_refused() {
        let mut filter = one_bucket();
        filter.insert_hashes(&(0..40).map(mix64).collect::<Vec<_>>()).unwrap();
        assert_eq!(decode(&filter, |_| {}), Ok(filter.clone()));
        assert!(decode(&filter, |parts| parts.header.kind = Kind::Cuckoo).is_err());
        assert!(decode(&filter, |parts| parts.header.capacity = 0).is_err());
        for (param, wrong) in [
            (0, [0, 2, 100, 1 << 45, 1 << 58, u64::MAX]),
            (1, [0, 57, 62, 63, 1 << 32 | 32, u64::MAX]),
            (2, [0, 1, 3, 17, 1 << 61, u64::MAX]),
        ] {
            for value in wrong {
                let refused = decode(&filter, |parts| parts.header.params[param] = value);
                assert!(refused.is_err(), "parameter {param} = {value}");
            }
        }
        assert!(decode(&filter, |parts| parts.words = Words::zeroed(0).unwrap()).is_err());
        let with_stash_of = |lines: u64| {
            decode(&filter, |parts| {
                let cells = filter.cells.words().len() as u64 * 64;
                parts.words = Words::zeroed(cells + lines * 512).unwrap();
                parts.header.params[2] = lines;
            })
        };
        assert!(with_stash_of(16).is_ok());
        let too_long = DecodeError::Invalid { what: "stash lines", value: 17 };
        assert_eq!(with_stash_of(17), Err(too_long));
    }

    #[test]
    fn a_file_with_impossible_stash_entries_is_refused() {
        let mut filter = one_bucket();
        filter.insert_hashes(&(0..35).map(mix64).collect::<Vec<_>>()).unwrap();
        let first = filter.cells.words().len();
        let set = |at: usize, value| {
            decode(&filter, move |parts: &mut Parts| parts.words.to_mut()[first + at] = value)
        };
        assert!(set(1, 5).is_ok());
        for (what, entry, value) in [
            ("bucket in the stash", 0, 1),         // there is only one bucket
            ("bucket in the stash", 6, 1),         // of an empty entry
            ("cell in the stash", 1, 4),           // a remainder without a count
            ("cell in the stash", 1, 1 << 34 | 1), // wider than a cell
            ("cell in the stash", 7, 1 << 63),
        ] {
            assert_eq!(set(entry, value), Err(DecodeError::Invalid { what, value }));
        }
    }

    #[test]
    fn a_count_from_a_file_cannot_overflow() {
        let mut filter = one_bucket();
        filter.len = u64::MAX;
        filter.insert_hash(mix64(1)).unwrap();
        filter.union_with(&filter.clone()).unwrap();
        assert_eq!(filter.len(), u64::MAX);
        filter.len = 0;
        assert!(filter.remove_hash(mix64(1)));
        assert_eq!(filter.len(), 0);
    }
}
