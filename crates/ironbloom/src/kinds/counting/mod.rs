//! The counting Bloom filter \[FCAB00\]: a four-bit counter where a Bloom filter has a bit, so keys can be removed.
//!
//! ```text
//! word    | c0 | c1 | c2 | … | c15 |          16 four-bit counters, c0 lowest
//!
//! insert(key):   for each distinct p_i(h)   counter += 1, up to 15
//! remove(key):   is one of them 0? refuse.  else counter -= 1, except those at 15
//! contains(key): are all of them above 0?
//! ```
//!
//! Positions are those of a [`BloomParams`], with one counter for each of its bits. Two probes of one key that fall on
//! one counter count once, in `insert` and in `remove` alike.
//!
//! A counter that reaches 15 is *stuck*: how many keys share it is no longer known, so it is never decremented again,
//! and the keys it covers stay "maybe" until [`CountingBloom::clear`]. Among distinct keys that does not happen: a
//! counter of a full filter is Poisson with mean ln 2, and 15 or more have a chance of 1.6·10^-15
//! ([`sizing::counter_overflow`]). Repeated keys are a different matter: 15 inserts of one key make all its counters
//! stuck. If your data is like that, use [`DLeft`](crate::DLeft), where a stuck key costs one cell and does not affect
//! other keys.
//!
//! Four times the size of a Bloom filter is a high price. In return, filters can be merged and still support removal.

mod kind;

pub(super) use kind::PLANS;

use crate::error::{DecodeError, Mismatch, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{Words, contains_each, for_each_ahead, is_near_for_many, prefetch};
use crate::kinds::bloom::{BloomParams, MAX_PROBES};
use crate::kinds::check_lengths;
use crate::sizing;

const COUNTER_BITS: u64 = 4;
const COUNTERS_PER_WORD: u64 = 64 / COUNTER_BITS;

/// The largest count, which also stands for everything above.
const STUCK: u64 = 15;

/// The lowest bit of every counter of a word.
const LOWEST: u64 = 0x1111_1111_1111_1111;

/// Every second counter of a word, so that each has four free bits above it.
const EVEN: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// A Bloom filter from which keys can be removed, and which merges as a multiset.
///
/// Remove only what was inserted. A false positive cannot be distinguished from a key that was inserted: removing it decrements
/// the counters of other keys, which may then be reported absent.
///
/// ```
/// use ironbloom::CountingBloom;
/// let mut here = CountingBloom::with_rate(1_000_000, 0.01)?;
/// here.insert("alice");
/// here.insert("alice");                   // counted, so it takes two removals
/// assert!(here.remove("alice") && here.contains("alice"));
/// assert!(here.remove("alice") && !here.contains("alice"));
/// assert!(!here.remove("alice"));         // refused: certainly not there
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CountingBloom {
    params: BloomParams,
    hash_fn: HashFn,
    held: KeyTypes,
    words: Words,
    len: u64,
}

impl CountingBloom {
    /// Creates an empty filter with a counter for each bit of this shape. Fails only if allocation fails.
    pub fn new(params: BloomParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        let words = Words::zeroed(counter_bits(&params))?;
        Ok(Self { params, hash_fn, held: KeyTypes::NONE, words, len: 0 })
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(BloomParams::for_rate(capacity, rate)?, HashFn::default())
    }

    /// Inserts a key. Returns true if it was new, that is, certainly not in the filter before; otherwise its count goes
    /// up by one. The fifteenth insert of one key makes its counters stuck: it can no longer be removed.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> bool {
        let hash = self.hash_new(&key);
        self.insert_hash(hash)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). Returns true if it was new.
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        expect_uniform(&[hash]);
        let mut buffer = [0; MAX_PROBES as usize];
        let words = self.words.to_mut();
        let mut new = false;
        for &position in distinct_positions(&self.params, hash, &mut buffer) {
            let (word, shift) = address(position);
            let count = words[word] >> shift & STUCK;
            new |= count == 0;
            words[word] += u64::from(count < STUCK) << shift;
        }
        self.len = self.len.saturating_add(1);
        new
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        for_each_ahead(self, hashes, Self::touch, |filter, _, hash, ()| {
            filter.insert_hash(hash);
        });
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert_keys<K: Key>(&mut self, keys: &[K]) {
        self.note_keys(KeyTypes::of_keys(keys));
        let hash_fn = self.hash_fn;
        let mut buffer = [0; GROUP];
        for group in keys.chunks(GROUP) {
            self.insert_hashes(hash_fn.hash_group(group, &mut buffer));
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
        self.params.contains(hash, |position| self.is_counted(position))
    }

    /// Returns 1 if the counter at this position is not zero, else 0.
    #[inline(always)]
    fn is_counted(&self, position: u64) -> u64 {
        let (word, shift) = address(position);
        u64::from(self.words[word] >> shift & STUCK != 0)
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
        if is_near_for_many(self.size_in_bytes()) {
            return contains_each(hashes, found, |hash| self.contains_hash(hash));
        }
        let touch = |position| prefetch(&self.words, address(position).0);
        self.params.contains_all(hashes, found, touch, |position| self.is_counted(position));
    }

    /// Removes a key that was inserted, once. Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes others disappear** if it looks present, which happens at the
    /// filter's rate: the counters of other keys are decremented, and those keys are then reported absent. No filter
    /// can detect this; [`removal`](crate::removal) estimates how much of a list that would affect, before you remove
    /// it.
    ///
    /// A key with a stuck counter no longer counts, but if all its counters are stuck it is still found.
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
    /// Removing a key that was never inserted makes others disappear if it looks present: see [`remove`](Self::remove).
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if !self.contains_hash(hash) {
            return false;
        }
        let mut buffer = [0; MAX_PROBES as usize];
        let words = self.words.to_mut();
        for &position in distinct_positions(&self.params, hash, &mut buffer) {
            let (word, shift) = address(position);
            let count = words[word] >> shift & STUCK;
            words[word] -= u64::from(count < STUCK) << shift;
        }
        self.len = self.len.saturating_sub(1); // a file's count cannot be trusted
        true
    }

    /// Prefetches the cache lines that the probes of a hash will need.
    #[inline]
    fn touch(&self, hash: u64) {
        let words: &[u64] = &self.words;
        self.params.positions(hash, self.params.all(), |position| {
            prefetch(words, address(position).0);
        });
    }

    /// Adds every key of `other` as many times as it occurs there: counters are added, up to 15, and end up exactly as
    /// if both sets of keys had been inserted here. Fails, changing nothing, if the two do not use the same counters
    /// for the same key.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)?;
        self.held = self.held.united(self.len, other.held, other.len)?;
        self.words.combine(&other.words, add_counters);
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.words.clear();
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

    /// Number of distinct keys, estimated from the counters above 0 \[SB07\]. Infinite when all are.
    pub fn estimate_len(&self) -> f64 {
        sizing::estimate_len(self.params.bits(), self.params.probes(), self.occupied())
    }

    /// The current rate, from the counters above 0: the probability that k random probes each find one.
    pub fn estimate_rate(&self) -> f64 {
        self.fill().powi(self.params.probes() as i32)
    }

    /// Fraction of the counters above 0: about one half in a filter at capacity.
    pub fn fill(&self) -> f64 {
        self.occupied() as f64 / self.params.bits() as f64
    }

    fn occupied(&self) -> u64 {
        let any_bit = |word: u64| (word | word >> 1 | word >> 2 | word >> 3) & LOWEST;
        self.words.iter().map(|&word| u64::from(any_bit(word).count_ones())).sum()
    }

    /// Number of stuck counters: those that reached 15 and are never decremented again.
    pub fn saturated(&self) -> u64 {
        let all_bits = |word: u64| word & word >> 1 & word >> 2 & word >> 3 & LOWEST;
        self.words.iter().map(|&word| u64::from(all_bits(word).count_ones())).sum()
    }

    /// True once more keys were counted than planned: the requested rate may no longer be met.
    pub fn is_over_capacity(&self) -> bool {
        self.len > self.params.capacity()
    }

    /// The shape; its bits are the counters.
    pub fn params(&self) -> BloomParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the counters in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

/// Storage of all counters. `BloomParams` allows at most 2^60 of them, so this cannot overflow.
fn counter_bits(params: &BloomParams) -> u64 {
    params.bits() * COUNTER_BITS
}

/// Returns word and shift of a counter.
#[inline]
fn address(position: u64) -> (usize, u64) {
    ((position / COUNTERS_PER_WORD) as usize, position % COUNTERS_PER_WORD * COUNTER_BITS)
}

/// Returns the counters of a hash, each once however many probes fall on it.
#[inline]
fn distinct_positions<'a>(
    params: &BloomParams,
    hash: u64,
    buffer: &'a mut [u64; MAX_PROBES as usize],
) -> &'a [u64] {
    let mut len = 0;
    params.positions(hash, params.all(), |position| {
        if !buffer[..len].contains(&position) {
            buffer[len] = position;
            len += 1;
        }
    });
    &buffer[..len]
}

/// Adds the counters of two words, each sum at most 15.
fn add_counters(a: u64, b: u64) -> u64 {
    let add_even = |a: u64, b: u64| {
        let sum = (a & EVEN) + (b & EVEN);
        let carry = sum >> COUNTER_BITS & EVEN;
        (sum | (carry * STUCK)) & EVEN
    };
    add_even(a, b) | add_even(a >> COUNTER_BITS, b >> COUNTER_BITS) << COUNTER_BITS
}

impl Persist for CountingBloom {
    fn encode(&self) -> Image<'_> {
        Image::new(Kind::Counting, self.hash_fn, self.len, self.params.capacity())
            .of_keys(self.held)
            .params(&self.params.encode())
            .section(&self.words)
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Counting)?;
        let params = BloomParams::decode(header.first_params()?, header.capacity)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        Ok(Self { params, hash_fn, held, words: parts.words_of(counter_bits(&params))?, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use std::f64::consts::LN_2;

    fn counter(filter: &CountingBloom, position: u64) -> u64 {
        let (word, shift) = address(position);
        filter.words[word] >> shift & STUCK
    }

    fn external(bits: u64, probes: u32) -> CountingBloom {
        let params = BloomParams::for_bits(bits, probes).unwrap();
        CountingBloom::new(params, HashFn::External { id: 0 }).unwrap()
    }

    #[test]
    fn two_words_of_counters_add_one_by_one() {
        for step in 0..10_000 {
            let (a, b) = (mix64(step), mix64(!step));
            let sum = add_counters(a, b);
            for shift in (0..64).step_by(4) {
                let naive = ((a >> shift & STUCK) + (b >> shift & STUCK)).min(STUCK);
                assert_eq!(sum >> shift & STUCK, naive, "{a:x} {b:x}");
            }
        }
    }

    /// 20 probes in 20 counters: every key has colliding probes.
    #[test]
    fn probes_that_share_a_counter_count_once() {
        let params = BloomParams::for_bits(20, 20).unwrap();
        for key in 0..100 {
            let mut filter = CountingBloom::new(params, HashFn::External { id: 0 }).unwrap();
            let hash = mix64(key);
            filter.insert_hash(hash);
            assert!((0..20).all(|i| counter(&filter, i) <= 1));
            let touched = (0..20).filter(|&i| counter(&filter, i) == 1).count();
            assert!(touched < 20, "no two probes of key {key} met");
            filter.insert_hash(hash);
            assert!((0..20).all(|i| [0, 2].contains(&counter(&filter, i))));
            assert!(filter.remove_hash(hash) && filter.remove_hash(hash));
            assert!(filter.words.iter().all(|&word| word == 0));
        }
    }

    #[test]
    fn a_counter_stops_at_15_and_stays_there() {
        let mut filter = external(1000, 5);
        let hash = mix64(1);
        for inserted in 1..=20 {
            filter.insert_hash(hash);
            let highest = (0..1000).map(|i| counter(&filter, i)).max().unwrap();
            assert_eq!(highest, inserted.min(STUCK));
        }
        assert_eq!(filter.saturated(), 5);
        for _ in 0..20 {
            assert!(filter.remove_hash(hash));
        }
        assert_eq!((filter.saturated(), filter.occupied(), filter.len()), (5, 5, 0));
    }

    #[test]
    fn removing_all_keys_leaves_all_counters_zero() {
        let mut filter = external(100_000, 7);
        let hashes: Vec<u64> = (0..10_000).map(mix64).collect();
        filter.insert_hashes(&hashes);
        assert!(filter.occupied() > 40_000);
        assert!(hashes.iter().rev().all(|&hash| filter.remove_hash(hash)));
        assert!(filter.words.iter().all(|&word| word == 0));
        assert!(filter.is_empty());
    }

    /// A count is Binomial(m, P(Poisson(ln 2) = j)), its sigma at most √(m P): 4.5 sigma for each of 10 counts.
    #[test]
    fn counters_of_a_full_filter_are_poisson() {
        let bits = 1_000_000;
        let mut filter = external(bits, 7);
        filter.insert_hashes(&(0..filter.params.capacity()).map(mix64).collect::<Vec<_>>());
        let mut histogram = [0u64; 16];
        for position in 0..bits {
            histogram[counter(&filter, position) as usize] += 1;
        }
        let mut probability = (-LN_2).exp();
        for (count, &found) in histogram.iter().enumerate().take(10) {
            let expected = bits as f64 * probability;
            let bound = 4.5 * expected.sqrt() + 1.0;
            assert!((found as f64 - expected).abs() < bound, "{count}: {found}, not {expected}");
            probability *= LN_2 / (count + 1) as f64;
        }
        assert_eq!(histogram[10..].iter().sum::<u64>(), 0);
    }

    #[test]
    fn a_file_with_impossible_fields_is_refused() {
        let filter = external(1000, 7);
        let decode = |change: &dyn Fn(&mut Parts)| {
            let header = filter.encode().header;
            let mut parts = Parts { header, words: filter.words.clone() };
            change(&mut parts);
            CountingBloom::decode(parts)
        };
        assert_eq!(decode(&|_| {}), Ok(filter.clone()));
        assert!(decode(&|parts| parts.header.kind = Kind::Bloom).is_err());
        assert!(decode(&|parts| parts.header.capacity = 0).is_err());
        for bits in [0, 6, 4000, 1 << 60, 1 << 62, u64::MAX] {
            assert!(decode(&|parts| parts.header.params[0] = bits).is_err(), "{bits} counters");
        }
        for probes in [0, 65, 1 << 32 | 7, u64::MAX] {
            assert!(decode(&|parts| parts.header.params[1] = probes).is_err(), "{probes} probes");
        }
        assert!(decode(&|parts| parts.words = Words::zeroed(64).unwrap()).is_err());
    }

    #[test]
    fn a_count_from_a_file_cannot_overflow() {
        let mut full = external(1000, 7);
        full.len = u64::MAX;
        full.insert_hash(mix64(1));
        assert_eq!(full.len(), u64::MAX);
        full.union_with(&full.clone()).unwrap();
        full.len = 0;
        assert!(full.remove_hash(mix64(1)));
        assert_eq!(full.len(), 0);
    }
}
