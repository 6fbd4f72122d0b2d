//! Blocked Bloom filters: all bits of a key in one cache line, so that a lookup is one memory access.
//!
//! ```text
//! BlockedBloom   block = 512 bits = 8 lanes of 64     one cache line
//! SplitBlock     block = 256 bits = 8 lanes of 32     half a line; Parquet's filter, bit for bit
//!
//!   hash ──high bits──► block          lane 0   lane 1   …   lane 7
//!        ──low 32 bits─► × salt_i ──►  [·1····] [····1·] … [1·····]      one bit in each lane
//! ```
//!
//! Keys fall into blocks at random, and crowded blocks answer "yes" too often. The rate of such a filter is therefore a
//! Poisson mixture over its blocks ([`sizing::split_block_rate`]), and the classic formula undersizes it (9.68 bits/key
//! where 1 % takes 10.53 with 32-bit lanes). At equal rate it is larger than a classic filter: 10.1 bits/key instead of
//! 9.6 at 1 %, 15.7 instead of 14.4 at 0.1 %. Below 10^-5 use [`crate::Bloom`].
//!
//! The 64-bit product that picks the block uses all of the hash, so block numbers do not stop at 2^32. Parquet
//! specifies 32 bits for its filter, more than enough for up to 2^31 blocks.

mod kind;

pub(in crate::kinds) use kind::{PLANS, SPLIT_PLANS};

use std::num::NonZeroUsize;

use crate::error::{DecodeError, Mismatch, ParamError, check_range, check_rate};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{self, Blocks, Words};
use crate::kinds::check_lengths;
use crate::kinds::fill::{Fill, FillProgress};
use crate::kinds::union::UnionProgress;
use crate::shared::threads;
use crate::sizing;
use crate::sizing::Thresholds;

/// Lanes per block, and bits set per key.
const LANES: u32 = kernel::LANES as u32;

/// The in-block bits come from 32 hash bits, so two keys of one block agree in all of them once in 2^32. A rate is
/// rejected when that floor would make up more than a twentieth of it.
const FLOOR_SHARE: f64 = 20.0;

/// The validated shape of a [`Blocked`] filter of blocks of `WORDS` words, 8 or 4: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedParams<const WORDS: usize> {
    blocks: u64,
    capacity: u64,
}

impl<const WORDS: usize> BlockedParams<WORDS> {
    /// Bits per lane.
    const LANE: u32 = 64 * WORDS as u32 / LANES;
    const BLOCK_BITS: u64 = 64 * WORDS as u64;
    const MAX_BLOCKS: u64 = if WORDS == 4 { 1 << 31 } else { 1 << 48 };

    /// Plans the smallest filter that holds `capacity` keys at `rate`.
    pub fn for_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        let below = match check_rate(capacity, rate) {
            Err(ParamError::RateBelowHash { .. }) => true,
            other => other.map(|()| Self::is_below_hash(capacity, rate))?,
        };
        if below {
            let floor = Self::least_rate(capacity, rate);
            return Err(ParamError::RateBelowHash { rate, floor });
        }
        Self::checked(sizing::split_blocks(capacity, rate, LANES, Self::LANE), capacity)
    }

    /// Returns true if keys that agree in all their bits would be a significant part of this rate.
    fn is_below_hash(capacity: u64, rate: f64) -> bool {
        let blocks = sizing::split_blocks(capacity, rate, LANES, Self::LANE);
        rate < FLOOR_SHARE * capacity as f64 / blocks as f64 / 2f64.powi(32)
    }

    /// Finds the lowest accepted rate above `refused`, for the error message, by bisecting its logarithm.
    fn least_rate(capacity: u64, refused: f64) -> f64 {
        let (mut below, mut above) = (refused.ln(), 0.5f64.ln());
        for _ in 0..30 {
            let middle = (below + above) / 2.0;
            if Self::is_below_hash(capacity, middle.exp()) {
                below = middle;
            } else {
                above = middle;
            }
        }
        above.exp()
    }

    /// Plans a filter of `bits` bits, rounded up to whole blocks, that is half full when its capacity is reached.
    pub fn for_bits(bits: u64) -> Result<Self, ParamError> {
        let blocks = bits.div_ceil(Self::BLOCK_BITS);
        let capacity = blocks as f64 * f64::from(Self::LANE) * std::f64::consts::LN_2;
        Self::checked(blocks, capacity as u64)
    }

    pub(crate) fn checked(blocks: u64, capacity: u64) -> Result<Self, ParamError> {
        const { assert!(WORDS == 4 || WORDS == 8, "lanes have 32 or 64 bits") };
        check_range("blocks", blocks, 1, Self::MAX_BLOCKS)?;
        check_range("capacity", capacity, 1, u64::MAX)?;
        Ok(Self { blocks, capacity })
    }

    /// Sets the capacity: the number of keys planned for.
    pub fn with_capacity(self, capacity: u64) -> Result<Self, ParamError> {
        Self::checked(self.blocks, capacity)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns the block of a key, by its hash: the only one that a lookup reads.
    pub(crate) fn block_of(&self, hash: u64) -> u64 {
        crate::kernel::block_of::<WORDS>(hash, self.blocks) as u64
    }

    /// Number of bits.
    pub fn bits(&self) -> u64 {
        self.blocks * Self::BLOCK_BITS
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The expected rate with `len` keys in the filter.
    pub fn rate_at(&self, len: u64) -> f64 {
        sizing::split_block_rate(self.blocks, LANES, Self::LANE, len)
    }

    /// The thresholds for `capacity` keys. The rate formula without the mixture is accurate enough here, and opening a
    /// file must be instant.
    fn thresholds(&self) -> Thresholds {
        let (bits, capacity) = (self.bits(), self.capacity);
        let occupancy = sizing::split_block_occupancy(self.blocks, LANES, Self::LANE, capacity);
        Thresholds::new(capacity, bits, |len| sizing::bloom_rate(bits, LANES, len), occupancy)
    }

    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("number of blocks", self.blocks, other.blocks)
    }
}

/// A blocked filter with blocks of `WORDS` words in eight lanes; see [`BlockedBloom`] and [`SplitBlock`].
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked<const WORDS: usize> {
    params: BlockedParams<WORDS>,
    hash_fn: HashFn,
    held: KeyTypes,
    blocks: Blocks<WORDS>,
    len: u64,
    thresholds: Thresholds,
}

/// One cache line per key: the fastest filter here, 5 % larger than [`Bloom`](crate::Bloom) at 1 %.
///
/// ```
/// let mut seen = ironbloom::BlockedBloom::with_rate(1_000_000, 0.01)?;
/// seen.insert("alice");
/// assert!(seen.contains("alice"));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
pub type BlockedBloom = Blocked<8>;

/// Shape of a [`BlockedBloom`].
pub type BlockedBloomParams = BlockedParams<8>;

/// Parquet's split block filter, bit for bit: XXH64 with seed 0 by default.
pub type SplitBlock = Blocked<4>;

/// Shape of a [`SplitBlock`].
pub type SplitBlockParams = BlockedParams<4>;

impl<const WORDS: usize> Blocked<WORDS> {
    const KIND: Kind = if WORDS == 4 { Kind::SplitBlock } else { Kind::Blocked };

    /// The hash function of a filter created by [`with_rate`](Self::with_rate).
    pub const DEFAULT_HASH: HashFn =
        if WORDS == 4 { HashFn::Xxh64 { seed: 0 } } else { HashFn::Xxh3 { seed: 0 } };

    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: BlockedParams<WORDS>, hash_fn: HashFn) -> Result<Self, ParamError> {
        Ok(Self::from_parts(params, hash_fn, KeyTypes::NONE, Words::zeroed(params.bits())?, 0))
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(BlockedParams::for_rate(capacity, rate)?, Self::DEFAULT_HASH)
    }

    pub(crate) fn from_parts(
        params: BlockedParams<WORDS>,
        hash_fn: HashFn,
        held: KeyTypes,
        words: Words,
        len: u64,
    ) -> Self {
        let blocks = Blocks::new(words, params.blocks);
        Self { params, hash_fn, held, blocks, len, thresholds: params.thresholds() }
    }

    pub(crate) fn into_words(self) -> Words {
        self.blocks.into_words()
    }

    pub(crate) fn words(&self) -> &[u64] {
        self.blocks.words()
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
        let new = self.blocks.insert(hash);
        self.len += u64::from(new);
        new
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        expect_uniform(hashes);
        self.len += self.blocks.insert_all(hashes);
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes that the caller knows to be distinct and not yet in
    /// the filter: each counts as a key, even if its bits were all set.
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
    /// use ironbloom::{BlockedBloom, HashFn};
    /// let files = [["alice", "bob"], ["carol", "dave"]];
    /// let hash_fn = HashFn::default();
    /// let shards = files.iter().map(|keys| keys.iter().map(|key| hash_fn.hash(key)));
    ///
    /// let mut users = BlockedBloom::with_rate(1000, 0.01)?;
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
        self.blocks.contains(hash)
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
        self.blocks.contains_all(hashes, found);
    }

    /// Prefetches the cache line of a hash.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) {
        self.blocks.touch(hash);
    }

    /// Returns an error unless [`union_with`](Self::union_with) would accept `other`.
    pub fn check_union(&self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)
    }

    /// Adds every key of `other`. Fails, changing nothing, if the two do not set the same bits for the same key. The
    /// count becomes an estimate.
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
        let (to, from) = (self.blocks.words_mut(), other.blocks.words());
        if let Some(ones) = progress.step(to, from, most_words) {
            let most = self.len.saturating_add(other.len);
            let estimate = sizing::estimate_len(self.params.bits(), LANES, ones).round() as u64;
            self.len = estimate.max(self.len).max(other.len).min(most);
        }
        Ok(())
    }

    /// Keeps the bits set in both filters: every key that was in both is still found.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_same(other)?;
        self.held = self.held.united(self.len, other.held, other.len)?;
        self.blocks.words_mut().combine(other.blocks.words(), |a, b| a & b);
        self.len = self.recount().min(self.len).min(other.len);
        Ok(())
    }

    fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.params.check_same(&other.params)
    }

    fn recount(&self) -> u64 {
        self.estimate_len().round() as u64
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.blocks.words_mut().clear();
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

    /// Number of distinct keys, estimated from the set bits. Infinite when all bits are set.
    ///
    /// A key sets one bit in each lane, so lane i of all blocks together is a Bloom filter with one probe, and the
    /// uneven load of the blocks, which affects the rate, cancels out of the expected fill.
    pub fn estimate_len(&self) -> f64 {
        sizing::estimate_len(self.params.bits(), LANES, self.blocks.words().count_ones())
    }

    /// The current rate, from the bits set: the mean over the blocks of the product over their lanes.
    pub fn estimate_rate(&self) -> f64 {
        FillProgress::at_once(|progress, most| self.fill_step(progress, most)).rate
    }

    /// Performs a step of counting the bits: counts the next words, at most `most_words`, and one block at least.
    /// Between two steps the filter may take keys. The last step, and any after it, returns the result.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        progress.only_stage(|progress| self.count_stage(progress, most_words))
    }

    /// Counts the next blocks of this filter as a stage.
    pub(crate) fn count_stage(&self, progress: &mut FillProgress, most_words: usize) {
        let counted = progress.count_blocks(self.blocks.all(), most_words, block_tally);
        if let Some((ones, rates)) = counted {
            let rate = rates / self.params.blocks as f64;
            progress.end_stage(Fill { bits: self.params.bits(), ones, rate });
        }
    }

    /// Fraction of the bits that are set.
    pub fn fill(&self) -> f64 {
        self.blocks.words().count_ones() as f64 / self.params.bits() as f64
    }

    /// True once the filter holds more keys than planned, so that the requested rate is no longer met: see
    /// [`Bloom::is_over_capacity`](crate::Bloom::is_over_capacity). Scans all bits if the count is near the capacity,
    /// otherwise none.
    pub fn is_over_capacity(&self) -> bool {
        self.thresholds.is_exceeded(self.len, || self.blocks.words().count_ones())
    }

    /// Number of new keys that can still be inserted before the count reaches the capacity: see
    /// [`Bloom::room`](crate::Bloom::room).
    pub fn room(&self) -> u64 {
        self.thresholds.room(self.len)
    }

    pub(crate) fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// The shape.
    pub fn params(&self) -> BlockedParams<WORDS> {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the bit array in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.blocks.words().size_in_bytes()
    }
}

/// Number of set bits in this block, and the probability that it covers a random mask.
fn block_tally<const WORDS: usize>(block: &[u64; WORDS]) -> (u32, f64) {
    let lane = BlockedParams::<WORDS>::LANE;
    let lane_mask = u64::MAX >> (64 - lane);
    let lanes = block
        .iter()
        .flat_map(|&word| (0..64 / lane).map(move |i| word >> (i * lane % 64) & lane_mask));
    lanes.map(u64::count_ones).fold((0, 1.0), |(ones, rate), of_lane| {
        (ones + of_lane, rate * (f64::from(of_lane) / f64::from(lane)))
    })
}

impl<const WORDS: usize> Persist for Blocked<WORDS> {
    fn encode(&self) -> Image<'_> {
        Image::new(Self::KIND, self.hash_fn, self.len, self.params.capacity)
            .of_keys(self.held)
            .params(&[self.params.blocks])
            .section(self.blocks.words())
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Self::KIND)?;
        let [blocks] = header.first_params()?;
        let params = BlockedParams::checked(blocks, header.capacity)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        Ok(Self::from_parts(params, hash_fn, held, parts.words_of(params.bits())?, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A naive reimplementation of the rule in the Parquet specification.
    #[test]
    fn a_split_block_sets_the_bits_that_parquet_prescribes() {
        let params = SplitBlockParams::for_rate(1000, 0.01).unwrap();
        let mut filter = SplitBlock::new(params, HashFn::External { id: 0 }).unwrap();
        let hash = 0xfedc_ba98_7654_3210;
        filter.insert_hash(hash);
        let block = ((hash >> 32) * params.blocks()) >> 32;
        for (lane, salt) in kernel::SALTS.into_iter().enumerate() {
            let expected = 1u32 << ((hash as u32).wrapping_mul(salt) >> 27);
            let word = filter.words()[block as usize * 4 + lane / 2];
            assert_eq!((word >> (32 * (lane % 2))) as u32, expected);
        }
    }

    #[test]
    fn a_rate_below_what_32_bits_deliver_is_refused() {
        assert!(matches!(
            BlockedBloomParams::for_rate(1_000_000, 1e-9),
            Err(ParamError::RateBelowHash { .. })
        ));
        assert!(BlockedBloomParams::for_rate(1_000_000, 1e-6).is_ok());
    }

    #[test]
    fn the_rate_named_in_a_refusal_is_accepted() {
        for capacity in [1, 10, 1_000_000] {
            let Err(ParamError::RateBelowHash { floor, .. }) =
                SplitBlockParams::for_rate(capacity, 1e-15)
            else {
                panic!("too low a rate was accepted");
            };
            assert!(SplitBlockParams::for_rate(capacity, floor * 1.001).is_ok(), "{floor}");
        }
    }
}
