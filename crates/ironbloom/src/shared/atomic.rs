//! Bloom filters shared between threads without locks.
//!
//! A Bloom filter only ever turns zeros into ones, so concurrent inserts need no more than an atomic OR per word.
//! Guarantees and limits:
//!
//! - A key whose `insert` has returned **in the same thread**, or in another one that has since been joined or
//!   otherwise synchronised with, is found. The filter itself publishes nothing: all accesses are relaxed.
//! - Two threads that insert the **same new key** at the same time may both get `true` ("was new"), because the k bits
//!   are set one after the other and each thread may be first on some of them. At least one of them gets `true`. Where
//!   that matters (billing, exactly-once), decide ownership elsewhere.
//! - `clear` and merging need `&mut self`: a clear that races with inserts would lose keys.
//!
//! Both types convert to the plain kind and back without copying, which is also how they are saved.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ParamError;
use crate::hash::{AtomicKeyTypes, GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{
    AtomicWords, LINE_BYTES, contains_all_shared, contains_each, contains_shared, for_each_ahead,
    insert_shared, is_near_for_many, prefetch_line, set, touch_shared,
};
use crate::kinds::blocked::{BlockedBloom, BlockedBloomParams};
use crate::kinds::bloom::{Bloom, BloomParams};
use crate::kinds::filter::{check_lengths, filter_by_methods, insert_always};
use crate::shared::counter::Counter;
use crate::sizing::Thresholds;

/// The bits of a hash in cells that other threads write to: all that [`Atomic`] needs to know about a kind.
///
/// Implemented by [`BloomParams`] and [`BlockedBloomParams`].
pub trait Layout: Copy + PartialEq + fmt::Debug {
    /// The capacity of the filter.
    #[doc(hidden)]
    fn planned_keys(&self) -> u64;

    /// Returns true if all bits of the hash are set.
    #[doc(hidden)]
    fn contains_in(&self, words: &AtomicWords, hash: u64) -> bool;

    /// Sets all bits of the hash. Returns true if some were not set.
    #[doc(hidden)]
    fn insert_into(&self, words: &AtomicWords, hash: u64) -> bool;

    /// Prefetches the cache lines of the hash.
    #[doc(hidden)]
    fn touch_in(&self, words: &AtomicWords, hash: u64);

    /// [`contains_in`](Self::contains_in) for many hashes.
    #[doc(hidden)]
    fn contains_all_in(&self, words: &AtomicWords, hashes: &[u64], found: &mut [bool]);
}

/// Returns the cell at a position of a Bloom filter, and the bit in it.
#[inline(always)]
fn cell(cells: &[AtomicU64], position: u64) -> (&AtomicU64, u64) {
    (&cells[(position / 64) as usize], position % 64)
}

#[inline(always)]
fn bit(cells: &[AtomicU64], position: u64) -> u64 {
    let (cell, bit) = cell(cells, position);
    cell.load(Ordering::Relaxed) >> bit
}

#[inline(always)]
fn touch(cells: &[AtomicU64], word: usize) {
    prefetch_line(cells.as_ptr().wrapping_add(word).cast());
}

impl Layout for BloomParams {
    fn planned_keys(&self) -> u64 {
        self.capacity()
    }

    #[inline]
    fn contains_in(&self, words: &AtomicWords, hash: u64) -> bool {
        let cells = words.cells();
        match self.plain() {
            Some(flat) => flat.contains(cells, hash),
            None => self.contains(hash, |position| bit(cells, position)),
        }
    }

    #[inline]
    fn insert_into(&self, words: &AtomicWords, hash: u64) -> bool {
        let cells = words.cells();
        match self.plain() {
            Some(flat) => flat.insert_shared(cells, hash),
            None => self.fold(hash, self.all(), false, |new, position| {
                let (cell, bit) = cell(cells, position);
                new | set(cell, bit)
            }),
        }
    }

    #[inline]
    fn touch_in(&self, words: &AtomicWords, hash: u64) {
        let cells = words.cells();
        self.positions(hash, self.all(), |position| touch(cells, (position / 64) as usize));
    }

    fn contains_all_in(&self, words: &AtomicWords, hashes: &[u64], found: &mut [bool]) {
        if is_near_for_many(words.size_in_bytes()) {
            return contains_each(hashes, found, |hash| self.contains_in(words, hash));
        }
        let cells = words.cells();
        let touch = |position: u64| touch(cells, (position / 64) as usize);
        self.contains_all(hashes, found, touch, |position| bit(cells, position));
    }
}

impl Layout for BlockedBloomParams {
    fn planned_keys(&self) -> u64 {
        self.capacity()
    }

    // Inlined: a second call would cost a seventh of an in-cache lookup, and a fifth beyond it, where the processor
    // looks only a limited number of instructions ahead.
    #[inline(always)]
    fn contains_in(&self, words: &AtomicWords, hash: u64) -> bool {
        contains_shared(words, hash)
    }

    #[inline]
    fn insert_into(&self, words: &AtomicWords, hash: u64) -> bool {
        insert_shared(words, hash)
    }

    #[inline]
    fn touch_in(&self, words: &AtomicWords, hash: u64) {
        touch_shared(words, hash);
    }

    fn contains_all_in(&self, words: &AtomicWords, hashes: &[u64], found: &mut [bool]) {
        contains_all_shared(words, hashes, found);
    }
}

/// A filter that many threads insert into at once; see [`AtomicBloom`] and [`AtomicBlockedBloom`].
pub struct Atomic<P: Layout> {
    params: P,
    hash_fn: HashFn,
    held: AtomicKeyTypes,
    words: AtomicWords,
    len: Counter,
    thresholds: Thresholds,
}

/// A [`Bloom`] that many threads insert into at once. For what racing inserts return see [`crate::atomic`].
///
/// ```
/// let seen = ironbloom::AtomicBloom::with_rate(1000, 0.01)?;
/// std::thread::scope(|scope| {
///     for thread in 0..4u8 {
///         let seen = &seen;
///         scope.spawn(move || (0..100u8).for_each(|i| { seen.insert([thread, i]); }));
///     }
/// });
/// assert!(seen.contains([3, 99]));
/// let plain: ironbloom::Bloom = seen.into();      // to save, merge or estimate
/// assert!(plain.contains([0, 0]));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
pub type AtomicBloom = Atomic<BloomParams>;

/// A [`BlockedBloom`] that many threads insert into at once. For what racing inserts return see [`crate::atomic`].
pub type AtomicBlockedBloom = Atomic<BlockedBloomParams>;

impl<P: Layout> Atomic<P> {
    /// Inserts a key. Returns true if it was new; two racing inserts of the same new key may both return true.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&self, key: impl Key) -> bool {
        let hash = self.held.get().hash(self.hash_fn, &key);
        self.held.note(key.encoded().key_type().into());
        self.insert_hash(hash)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). Returns true if it was new; two
    /// racing inserts of the same new key may both return true.
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        expect_uniform(&[hash]);
        let new = self.params.insert_into(&self.words, hash);
        if new {
            self.len.add(1);
        }
        new
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses.
    pub fn insert_hashes(&self, hashes: &[u64]) {
        expect_uniform(hashes);
        let (params, words) = (self.params, &self.words);
        let mut added = 0;
        for_each_ahead(
            &mut added,
            hashes,
            |_, hash| params.touch_in(words, hash),
            |added, _, hash, ()| *added += u64::from(params.insert_into(words, hash)),
        );
        self.len.add(added);
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert_keys<K: Key>(&self, keys: &[K]) {
        self.held.note(KeyTypes::of_keys(keys));
        let hash_fn = self.hash_fn;
        let mut buffer = [0; GROUP];
        for group in keys.chunks(GROUP) {
            self.insert_hashes(hash_fn.hash_group(group, &mut buffer));
        }
    }

    /// Returns true if the key might be in the filter. `false` is certain for keys whose insert happened before.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.held.get().hash(self.hash_fn, &key))
    }

    /// Returns true if the key with this [uniform](crate::hash#uniform-hashes) hash might be in the filter. `false` is
    /// certain for keys whose insert happened before.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.params.contains_in(&self.words, hash)
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
        self.params.contains_all_in(&self.words, hashes, found);
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.words.clear();
        self.held = AtomicKeyTypes::new(KeyTypes::NONE, 0);
        self.len = Counter::new(0);
    }

    /// Number of keys counted: inserts that returned true. Racing inserts of one key may count twice.
    pub fn len(&self) -> u64 {
        self.len.get()
    }

    /// True if nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True once the filter holds more keys than planned, so that the requested rate is no longer met: see
    /// [`Bloom::is_over_capacity`]. Scans all bits if the count is near the capacity, otherwise none.
    pub fn is_over_capacity(&self) -> bool {
        let ones = |cell: &AtomicU64| u64::from(cell.load(Ordering::Relaxed).count_ones());
        self.thresholds.is_exceeded(self.len(), || self.words.cells().iter().map(ones).sum())
    }

    /// True once the count has reached the capacity: the point where a filter of several stages starts another. Uses
    /// only the count, for callers that check at every insert; the order of the keys must be independent of their
    /// hashes.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.thresholds.ends_stage(self.len())
    }

    /// The shape.
    pub fn params(&self) -> P {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// The types of the keys, as far as known.
    pub fn key_types(&self) -> KeyTypes {
        self.hash_fn.declared().unwrap_or(self.held.get())
    }

    /// Records the types of keys whose hashes are inserted next: see [`KeyTypes`].
    pub fn note_keys(&self, types: KeyTypes) {
        self.held.note(types);
    }

    /// Size of the bit array in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

impl AtomicBloom {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: BloomParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        Ok(Bloom::new(params, hash_fn)?.into())
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Ok(Bloom::with_rate(capacity, rate)?.into())
    }

    /// Returns a plain copy of the current state, to save or to estimate from. Concurrent inserts may or may not be
    /// included.
    pub fn snapshot(&self) -> Bloom {
        let (held, len) = (self.held.get(), self.len());
        Bloom::from_parts(self.params, self.hash_fn, held, self.words.snapshot(), len)
    }
}

impl AtomicBlockedBloom {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: BlockedBloomParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        Ok(BlockedBloom::new(params, hash_fn)?.into())
    }

    /// Creates an empty filter that holds `capacity` keys at `rate`.
    pub fn with_rate(capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Ok(BlockedBloom::with_rate(capacity, rate)?.into())
    }

    /// Returns a plain copy of the current state, to save or to estimate from. Concurrent inserts may or may not be
    /// included.
    pub fn snapshot(&self) -> BlockedBloom {
        let (held, len) = (self.held.get(), self.len());
        BlockedBloom::from_parts(self.params, self.hash_fn, held, self.words.snapshot(), len)
    }
}

impl From<Bloom> for AtomicBloom {
    fn from(plain: Bloom) -> Self {
        let (params, hash_fn, thresholds) = (plain.params(), plain.hash_fn(), plain.thresholds());
        let held = AtomicKeyTypes::new(plain.key_types(), plain.len());
        let len = Counter::new(plain.len());
        Self {
            params,
            hash_fn,
            held,
            words: AtomicWords::from_words(plain.into_words()),
            len,
            thresholds,
        }
    }
}

impl From<AtomicBloom> for Bloom {
    fn from(atomic: AtomicBloom) -> Self {
        let (held, len) = (atomic.held.get(), atomic.len());
        Self::from_parts(atomic.params, atomic.hash_fn, held, atomic.words.into_words(), len)
    }
}

impl From<BlockedBloom> for AtomicBlockedBloom {
    fn from(plain: BlockedBloom) -> Self {
        let (params, hash_fn, thresholds) = (plain.params(), plain.hash_fn(), plain.thresholds());
        let held = AtomicKeyTypes::new(plain.key_types(), plain.len());
        let len = Counter::new(plain.len());
        let words = AtomicWords::from_words(plain.into_words());
        // Lookups rely on this: every line is a block.
        assert_eq!(words.size_in_bytes() as u64, LINE_BYTES as u64 * params.blocks());
        Self { params, hash_fn, held, words, len, thresholds }
    }
}

impl From<AtomicBlockedBloom> for BlockedBloom {
    fn from(atomic: AtomicBlockedBloom) -> Self {
        let (held, len) = (atomic.held.get(), atomic.len());
        Self::from_parts(atomic.params, atomic.hash_fn, held, atomic.words.into_words(), len)
    }
}

filter_by_methods!((<P: Layout>) Atomic<P>, |atomic| atomic.params.planned_keys());
insert_always!((<P: Layout>) Atomic<P>);

impl<P: Layout> Clone for Atomic<P> {
    /// Copies the current state. Concurrent inserts may or may not be included.
    fn clone(&self) -> Self {
        Self {
            params: self.params,
            hash_fn: self.hash_fn,
            held: AtomicKeyTypes::new(self.held.get(), self.len()),
            words: AtomicWords::from_words(self.words.snapshot()),
            len: Counter::new(self.len()),
            thresholds: self.thresholds,
        }
    }
}

impl<P: Layout> PartialEq for Atomic<P> {
    /// Returns true if both have the same shape, hash function, count and bits at this moment.
    fn eq(&self, other: &Self) -> bool {
        let ones = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        self.params == other.params
            && self.hash_fn == other.hash_fn
            && self.held.get() == other.held.get()
            && self.len() == other.len()
            && self.words.cells().iter().map(ones).eq(other.words.cells().iter().map(ones))
    }
}

impl<P: Layout> fmt::Debug for Atomic<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atomic")
            .field("params", &self.params)
            .field("hash_fn", &self.hash_fn)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
