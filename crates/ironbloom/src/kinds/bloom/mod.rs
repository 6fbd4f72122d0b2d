//! The Bloom filter. Start reading here.
//!
//! ```text
//! insert(key):   h = hash(key);  for i in 0..k  set bit p_i(h)
//! contains(key): h = hash(key);  are all k bits set?
//! ```
//!
//! A key that was inserted has all its bits set, so "no" is certain. A key that was not inserted finds all k bits set
//! by others with a probability, the *rate*, that follows from the numbers of bits m, probes k and keys n
//! ([`crate::sizing`]). Two layouts share the code:
//!
//! ```text
//! flat        [···············m bits···············]        every probe falls anywhere
//! segmented   [··m/k··|··m/k··|··m/k··| … |··m/k··]        probe i falls in slice i
//! ```
//!
//! The flat layout is up to 2 % smaller (more for a handful of keys); slices can be ANDed, sharded and aged individually,
//! which is why the scalable, windowed and multi-attribute kinds use them.

mod batch;
mod kind;
mod params;

pub(in crate::kinds) use kind::{PLANS, describe, shape};
pub use params::{BloomLayout, BloomParams, MAX_PROBES};

use std::num::NonZeroUsize;

use crate::bits::address;
use crate::error::{DecodeError, Mismatch, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{Words, contains_each, for_each_ahead, is_near_for_many, prefetch};
use crate::kinds::check_lengths;
use crate::kinds::fill::{Fill, FillProgress};
use crate::kinds::union::UnionProgress;
use crate::shared::threads;
use crate::sizing;
use crate::sizing::Thresholds;

/// A Bloom filter: the smallest filter that supports incremental inserts, at any rate.
///
/// ```
/// use ironbloom::Bloom;
/// let mut seen = Bloom::with_rate(1_000_000, 0.01)?;
/// assert!(seen.insert("alice"));          // true: was new, as HashSet::insert
/// assert!(seen.contains("alice"));        // never wrong
/// assert!(!seen.contains("bob"));         // wrong for one key in a hundred once it is full
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bloom {
    params: BloomParams,
    hash_fn: HashFn,
    held: KeyTypes,
    words: Words,
    len: u64,
    thresholds: Thresholds,
}

impl Bloom {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: BloomParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        Ok(Self::from_parts(params, hash_fn, KeyTypes::NONE, Words::zeroed(params.bits)?, 0))
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(BloomParams::for_rate(capacity, rate)?, HashFn::default())
    }

    pub(crate) fn from_parts(
        params: BloomParams,
        hash_fn: HashFn,
        held: KeyTypes,
        words: Words,
        len: u64,
    ) -> Self {
        Self { params, hash_fn, held, words, len, thresholds: params.thresholds() }
    }

    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Inserts a key. Returns true if it was new, that is, certainly not in the filter before.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> bool {
        let hash = self.hash_new(&key);
        self.insert_hash(hash)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). Returns true if it was new.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        expect_uniform(&[hash]);
        let new = match self.params.plain() {
            Some(flat) => flat.insert(self.words.to_mut(), hash),
            None => self.insert_by_fold(hash),
        };
        self.len += u64::from(new);
        new
    }

    #[cold]
    fn insert_by_fold(&mut self, hash: u64) -> bool {
        let words = self.words.to_mut();
        let missing = self.params.fold(hash, self.params.all(), 0, |missing, position| {
            let (word, mask) = address(position);
            let before = words[word];
            words[word] |= mask;
            missing | mask & !before
        });
        missing != 0
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        for_each_ahead(self, hashes, Self::touch, |bloom, _, hash, ()| {
            bloom.insert_hash(hash);
        });
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes that the caller knows to be distinct and not yet in
    /// the filter: each counts as a key. [`insert_hashes`](Self::insert_hashes) cannot know that and does not count
    /// those whose bits were all set already; their share is about the mean rate while the filter fills.
    pub fn insert_distinct_hashes(&mut self, hashes: &[u64]) {
        let len = self.len.saturating_add(hashes.len() as u64);
        self.insert_hashes(hashes);
        self.len = len;
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

    /// Inserts the [uniform](crate::hash#uniform-hashes) hashes of all shards on this and `threads - 1` other threads,
    /// each taking the next shard when it finishes one. The count becomes an estimate, the same for any number of
    /// threads above one.
    ///
    /// Temporarily needs the memory of `threads` filters; fails, changing nothing, if it cannot be allocated.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use ironbloom::{Bloom, HashFn};
    /// let files = [["alice", "bob"], ["carol", "dave"]];
    /// let hash_fn = HashFn::default();
    /// let shards = files.iter().map(|keys| keys.iter().map(|key| hash_fn.hash(key)));
    ///
    /// let mut users = Bloom::with_rate(1000, 0.01)?;
    /// users.insert_shards(shards, NonZeroUsize::new(2).unwrap())?;
    /// assert!(users.contains("alice") && users.contains("dave"));
    /// # Ok::<(), ironbloom::ParamError>(())
    /// ```
    pub fn insert_shards<S: IntoIterator<Item = u64>>(
        &mut self,
        shards: impl IntoIterator<Item = S, IntoIter: Send>,
        threads: NonZeroUsize,
    ) -> Result<(), ParamError> {
        let empty = || Self::new(self.params, self.hash_fn);
        let mut others = threads::others(threads, empty)?;
        threads::insert(self, &mut others, shards, Self::insert_hashes);
        for other in &others {
            self.union_with(other).expect("made with the same shape");
        }
        if !others.is_empty() {
            self.len = self.recount(); // from the bits alone, whichever thread inserted what
        }
        Ok(())
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
        match self.params.plain() {
            Some(flat) => flat.contains(&self.words, hash),
            None => self.contains_by_fold(hash),
        }
    }

    #[cold]
    fn contains_by_fold(&self, hash: u64) -> bool {
        self.params.contains(hash, |position| self.bit(position))
    }

    /// Returns the bit at this position, as the lowest of the result.
    #[inline(always)]
    fn bit(&self, position: u64) -> u64 {
        self.words[(position / 64) as usize] >> (position % 64)
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
        let touch = |position: u64| prefetch(&self.words, (position / 64) as usize);
        self.params.contains_all(hashes, found, touch, |position| self.bit(position));
    }

    /// Prefetches the cache lines that the probes of a hash will need.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) {
        let words: &[u64] = &self.words;
        self.params.positions(hash, self.params.all(), |position| {
            prefetch(words, address(position).0);
        });
    }

    /// Returns an error unless [`union_with`](Self::union_with) would accept `other`.
    pub fn check_union(&self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)
    }

    /// Adds every key of `other`: the bits are then exactly those of a filter into which both sets of keys were
    /// inserted. Fails, changing nothing, if the two filters do not set the same bits for the same key. The count
    /// becomes an estimate.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.union_step(other, &mut UnionProgress::default(), usize::MAX)
    }

    /// Performs a step of [`union_with`](Self::union_with): adds the next words, at most `most_words`. Between two
    /// steps both filters may be used and take keys. After the last step, `progress.stage` is 1 and the count becomes
    /// an estimate. Fails, changing nothing, like `union_with`.
    pub fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), Mismatch> {
        Mismatch::unless_equal("stage", progress.stage, 0)?;
        self.check_same(other)?;
        self.held = self.held.united(self.len, other.held, other.len)?;
        if let Some(ones) = progress.step(&mut self.words, &other.words, most_words) {
            let most = self.len.saturating_add(other.len);
            let estimate = self.estimate_from(ones).round() as u64;
            self.len = estimate.max(self.len).max(other.len).min(most);
        }
        Ok(())
    }

    /// Keeps the bits set in both filters. Every key that was in both is still found; the rate is at most that of
    /// either side, but higher than that of a filter built from the common keys alone.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)?;
        self.held = self.held.united(self.len, other.held, other.len)?;
        self.words.combine(&other.words, |a, b| a & b);
        self.len = self.recount().min(self.len).min(other.len);
        Ok(())
    }

    /// Estimated number of distinct keys in the union of both sets.
    pub fn estimate_union_len(&self, other: &Self) -> Result<f64, Mismatch> {
        self.check_same(other)?;
        let both = self.words.iter().zip(other.words.iter());
        let ones = both.map(|(a, b)| u64::from((a | b).count_ones())).sum();
        Ok(self.estimate_from(ones))
    }

    /// Estimated number of keys that are in both sets: |A| + |B| − |A ∪ B|.
    ///
    /// The error is that of three estimates, so for sets that barely overlap it can exceed the result itself. Infinite
    /// if all bits of the union are set.
    pub fn estimate_intersection_len(&self, other: &Self) -> Result<f64, Mismatch> {
        let union = self.estimate_union_len(other)?;
        if union.is_infinite() {
            return Ok(f64::INFINITY);
        }
        Ok((self.estimate_len() + other.estimate_len() - union).max(0.0))
    }

    /// Estimated Jaccard similarity |A ∩ B| / |A ∪ B|, between 0 and 1. Two empty sets are equal: 1. NaN if all bits of
    /// the union are set, since nothing can be inferred from them.
    pub fn estimate_jaccard(&self, other: &Self) -> Result<f64, Mismatch> {
        let union = self.estimate_union_len(other)?;
        if union.is_infinite() {
            return Ok(f64::NAN);
        }
        if union == 0.0 {
            return Ok(1.0);
        }
        Ok((self.estimate_intersection_len(other)? / union).clamp(0.0, 1.0))
    }

    fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)
    }

    fn estimate_from(&self, ones: u64) -> f64 {
        sizing::estimate_len(self.params.bits, self.params.probes, ones)
    }

    /// The estimate as a count, for when exact counting is no longer possible.
    fn recount(&self) -> u64 {
        self.estimate_len().round() as u64
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.words.clear();
        (self.len, self.held) = (0, KeyTypes::NONE);
    }

    /// Number of keys counted: inserts that were new, or known to be. After a union or an intersection, an estimate.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of distinct keys, estimated from the set bits \[SB07\]. Infinite when all bits are set.
    pub fn estimate_len(&self) -> f64 {
        self.estimate_from(self.words.count_ones())
    }

    /// The current rate, from the bits set: the probability that k random probes all find a one.
    pub fn estimate_rate(&self) -> f64 {
        FillProgress::at_once(|progress, most| self.fill_step(progress, most)).rate
    }

    /// Performs a step of counting the bits: counts the next words, at most `most_words`. Between two steps the filter
    /// may take keys. The last step, and any after it, returns the result.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        progress.only_stage(|progress| self.count_stage(progress, most_words))
    }

    /// Counts the next words of this filter as a stage.
    pub(crate) fn count_stage(&self, progress: &mut FillProgress, most_words: usize) {
        let BloomParams { bits, probes, range, .. } = self.params;
        let counted = match self.params.layout {
            BloomLayout::Flat => {
                let ones = progress.count_array(bytemuck::cast_slice(&self.words), most_words);
                ones.map(|ones| (ones, (ones as f64 / bits as f64).powi(probes as i32)))
            }
            BloomLayout::Segmented => {
                let slices = progress.count_sections(&self.words, range, probes, most_words);
                slices.map(|slices| {
                    let rate = slices.iter().map(|&ones| ones as f64 / range as f64).product();
                    (slices.iter().sum(), rate)
                })
            }
        };
        if let Some((ones, rate)) = counted {
            progress.end_stage(Fill { bits, ones, rate });
        }
    }

    /// Fraction of the bits that are set: about one half in a filter at capacity.
    pub fn fill(&self) -> f64 {
        self.words.count_ones() as f64 / self.params.bits as f64
    }

    /// True once the filter holds more keys than planned, so that the requested rate is no longer met: the number of
    /// set bits exceeds what the planned number of keys sets by more than 5 standard deviations. A filter exactly at
    /// capacity reports this less than once in a million, whatever the order of its keys; one with a tenth more keys
    /// does from about 10,000 keys on.
    ///
    /// Scans all bits if the count is near the capacity, otherwise none.
    pub fn is_over_capacity(&self) -> bool {
        self.thresholds.is_exceeded(self.len, || self.words.count_ones())
    }

    /// Number of new keys that can still be inserted before the count reaches the capacity. This is right for keys in
    /// random order; where the count estimates all keys (after a union) or is the true number
    /// ([`insert_distinct_hashes`](Self::insert_distinct_hashes)), it is too low by the mean rate of the filter so far.
    pub fn room(&self) -> u64 {
        self.thresholds.room(self.len)
    }

    pub(crate) fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// The shape.
    pub fn params(&self) -> BloomParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the bit array in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

impl Persist for Bloom {
    fn encode(&self) -> Image<'_> {
        Image::new(Kind::Bloom, self.hash_fn, self.len, self.params.capacity)
            .of_keys(self.held)
            .params(&self.params.encode())
            .section(&self.words)
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Bloom)?;
        let params = BloomParams::decode(header.first_params()?, header.capacity)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        Ok(Self::from_parts(params, hash_fn, held, parts.words_of(params.bits)?, len))
    }
}
