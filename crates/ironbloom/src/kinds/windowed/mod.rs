//! A filter that forgets: the age-partitioned Bloom filter [SBA20].
//!
//! ```text
//! age       0   1   2   3   4   5        k = 3, l = 3: six slices in a ring
//!         [ · ][ x ][ x ][ x ][ · ][ · ] a key inserted one generation ago
//!
//! insert(key):   one bit in each of the k youngest slices
//! contains(key): are its bits set in k neighbouring slices?
//! a generation ends: the oldest slice is cleared and becomes the youngest
//! ```
//!
//! The bit of a key in a slice depends on the key and the slice alone, so the k bits of a key move along together as
//! slices age. A key inserted b generations ago has its bits at ages b to b+k-1:
//!
//! | generations since the insert | the key is |
//! |---|---|
//! | 0 to l | found, always |
//! | l+1 to l+k-1 | fading: b-l of its k bits are gone, and others may have set those |
//! | l+k and more | like any key that was never inserted: found at the rate |
//!
//! A generation ends after g inserts ([`WindowedParams::for_keys`]) or when the caller says that its time is up
//! ([`WindowedParams::for_time`] and [`Windowed::advance_to`]); the system clock is never read. The shape comes from
//! the exact formula at the worst moment, the end of a generation ([`sizing::window_shape`]).
//!
//! After the slices there is one word for each: the number of inserts in the generation it opened.

mod kind;

pub(super) use kind::PLANS;

use std::time::Duration;

use crate::bits::{address, clear_bits, count_ones_in};
use crate::error::{DecodeError, ParamError, check_range, check_rate};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform, fastrange, remix};
use crate::kernel::{Words, contains_ahead, for_each_ahead, prefetch};
use crate::kinds::check_lengths;
use crate::kinds::fill::{Fill, FillProgress};
use crate::sizing::{self, MAX_SLICES, WindowShape};

/// Powers of the multiplier of the probe sequence: `hash · POWERS[j]` is the hash after j applications of [`remix`].
const POWERS: [u64; MAX_SLICES as usize] = {
    let mut powers = [1; MAX_SLICES as usize];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = remix(powers[i - 1]);
        i += 1;
    }
    powers
};

/// The validated shape of a [`Windowed`]: plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedParams {
    shape: WindowShape,
    capacity: u64,
    span: Option<Duration>,
}

impl WindowedParams {
    /// Plans the smallest filter that remembers the last `window` inserts at `rate`.
    pub fn for_keys(window: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(window, rate)?;
        Self::checked(sizing::window_shape(window, rate), window, None)
    }

    /// Plans the smallest filter that remembers every key for at least `span`, at `rate` if no more than `capacity`
    /// keys arrive per span, evenly spread. A span is at most 584 years, the limit of nanoseconds in 64 bits.
    pub fn for_time(span: Duration, capacity: u64, rate: f64) -> Result<Self, ParamError> {
        check_rate(capacity, rate)?;
        Self::checked(sizing::window_shape(capacity, rate), capacity, Some(span))
    }

    /// Plans a filter of exactly this shape: k probes, l ages, g inserts per generation, and the bits of each of
    /// its k + l slices. It remembers the last l·g inserts.
    pub fn for_shape(shape: WindowShape) -> Result<Self, ParamError> {
        let window = u64::from(shape.ages).saturating_mul(shape.generation);
        Self::checked(shape, window, None)
    }

    fn checked(
        shape: WindowShape,
        capacity: u64,
        span: Option<Duration>,
    ) -> Result<Self, ParamError> {
        let WindowShape { probes, ages, generation, slice_bits } = shape;
        let most = u64::from(MAX_SLICES);
        check_range("probes", u64::from(probes), 1, most - 1)?;
        check_range("ages", u64::from(ages), 1, most - u64::from(probes))?;
        let slices = u64::from(probes + ages);
        check_range("bits of a slice", slice_bits, 1, (u64::MAX >> 4) / slices)?;
        check_range("generation", generation, 1, u64::MAX / most)?;
        check_range("capacity", capacity, 1, u64::from(ages) * generation)?;
        if let Some(span) = span {
            let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            check_range("span in nanoseconds", nanos, 1, u64::MAX - 1)?;
        }
        Ok(Self { shape, capacity, span })
    }

    /// Number of inserts remembered (by keys), or expected in a span (by time).
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Minimum time a key is remembered, if the window is by time.
    pub fn span(&self) -> Option<Duration> {
        self.span
    }

    /// Duration of a generation, if the window is by time: span / ages, rounded up.
    pub fn tick(&self) -> Option<Duration> {
        let ages = u64::from(self.shape.ages);
        self.span.map(|span| Duration::from_nanos((span.as_nanos() as u64).div_ceil(ages)))
    }

    /// Slices set by an insert and neighbours needed by a query, k.
    pub fn probes(&self) -> u32 {
        self.shape.probes
    }

    /// Generations remembered in full, l.
    pub fn ages(&self) -> u32 {
        self.shape.ages
    }

    /// Inserts in a generation, g: the exact number for a window by keys, the planned maximum for a window by time.
    pub fn generation(&self) -> u64 {
        self.shape.generation
    }

    /// Number of bits in each of the k + l slices.
    pub fn slice_bits(&self) -> u64 {
        self.shape.slice_bits
    }

    /// Number of bits in all slices.
    pub fn bits(&self) -> u64 {
        u64::from(self.slices()) * self.shape.slice_bits
    }

    /// The rate at the worst moment, at the end of a full generation.
    pub fn rate(&self) -> f64 {
        let WindowShape { probes, ages, generation, slice_bits } = self.shape;
        sizing::windowed_rate(probes, ages, generation, slice_bits)
    }

    fn slices(&self) -> u32 {
        self.shape.probes + self.shape.ages
    }

    /// Index of the first word after the slices, where the counts start.
    fn counts_at(&self) -> usize {
        self.bits().div_ceil(64) as usize
    }

    /// Number of bits of slices and counts.
    fn stored_bits(&self) -> u64 {
        (self.bits().div_ceil(64) + u64::from(self.slices())) * 64
    }

    /// First bit of a slice, and the first bit after it.
    fn slice_range(&self, slice: u32) -> (u64, u64) {
        let start = u64::from(slice) * self.shape.slice_bits;
        (start, start + self.shape.slice_bits)
    }

    /// The bit of a hash in a slice.
    #[inline]
    fn position(&self, hash: u64, slice: u32) -> u64 {
        let bits = self.shape.slice_bits;
        u64::from(slice) * bits + fastrange(hash.wrapping_mul(POWERS[slice as usize]), bits)
    }
}

/// A filter that remembers recent keys and forgets older ones.
///
/// ```
/// use ironbloom::Windowed;
/// let mut recent = Windowed::for_keys(1000, 0.001)?;  // "seen in the last 1,000 inserts?"
/// assert!(recent.insert("alice"));                    // true: not seen lately
/// assert!(!recent.insert("alice"));                   // seen, and refreshed
/// for key in 0..5000u32 {
///     recent.insert(key.to_le_bytes());
/// }
/// assert!(recent.contains(4000u32.to_le_bytes()));    // never wrong within the window
/// assert!(!recent.contains("alice"));                 // long forgotten
///
/// // The last ten minutes, in which 1,000 keys are expected. The caller has the clock.
/// use std::time::Duration;
/// let mut lately = Windowed::for_time(Duration::from_secs(600), 1000, 0.001)?;
/// lately.advance_to(Duration::from_secs(1_700_000_000));
/// lately.insert("bob");
/// lately.advance_to(Duration::from_secs(1_700_000_600));
/// assert!(lately.contains("bob"));
/// lately.advance_to(Duration::from_secs(1_700_001_800));
/// assert!(!lately.contains("bob"));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Windowed {
    params: WindowedParams,
    hash_fn: HashFn,
    held: KeyTypes,
    words: Words,
    /// The slice of age 0; the slice of age a is a places after it in the ring.
    youngest: u32,
    /// Start of the current generation, if the clock has started.
    began: Option<Duration>,
}

impl Windowed {
    /// Creates an empty filter of this shape. Fails only if allocation fails.
    pub fn new(params: WindowedParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        let words = Words::zeroed(params.stored_bits())?;
        Ok(Self { params, hash_fn, held: KeyTypes::NONE, words, youngest: 0, began: None })
    }

    /// Creates an empty filter that remembers the last `window` inserts at `rate`.
    pub fn for_keys(window: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(WindowedParams::for_keys(window, rate)?, HashFn::default())
    }

    /// Creates an empty filter that remembers every key for at least `span`, at `rate` if no more than `capacity` keys
    /// arrive per span.
    pub fn for_time(span: Duration, capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(WindowedParams::for_time(span, capacity, rate)?, HashFn::default())
    }

    /// Inserts a key, or refreshes it. Returns true if it was new, that is, certainly not inserted in the window.
    ///
    /// Every insert counts, new or not: it ages the others, and its key is remembered from now on.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> bool {
        let hash = self.hash_new(&key);
        self.insert_hash(hash)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes), or refreshes it. Returns true if
    /// it was new.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        let new = !self.contains_hash(hash);
        self.remember(hash);
        new
    }

    /// Sets the bits of a hash and counts it, and ends the generation if the window is by keys and it is complete.
    #[inline]
    fn remember(&mut self, hash: u64) {
        expect_uniform(&[hash]);
        let words = self.words.to_mut();
        for age in 0..self.params.shape.probes {
            let slice = slice_of(self.youngest, age, self.params.slices());
            let (word, mask) = address(self.params.position(hash, slice));
            words[word] |= mask;
        }
        let count = &mut words[self.params.counts_at() + self.youngest as usize];
        *count = count.saturating_add(1);
        if *count >= self.params.shape.generation && self.params.span.is_none() {
            self.turn();
        }
    }

    /// Ends the generation: the oldest slice is cleared and becomes the youngest.
    #[cold]
    fn turn(&mut self) {
        self.youngest = slice_of(self.youngest, self.params.slices() - 1, self.params.slices());
        let (start, end) = self.params.slice_range(self.youngest);
        let words = self.words.to_mut();
        clear_bits(words, start, end);
        words[self.params.counts_at() + self.youngest as usize] = 0;
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses.
    pub fn insert_hashes(&mut self, hashes: &[u64]) {
        for_each_ahead(self, hashes, Self::touch_young, |filter, _, hash, ()| {
            filter.remember(hash)
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

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes in order; sets `new[i]` to whether `hashes[i]` was
    /// new, so a repeated hash is new at most the first time. Memory accesses overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) {
        check_lengths(hashes.len(), new.len());
        let touch = |filter: &Self, hash| {
            filter.touch(hash);
            filter.touch_young(hash);
        };
        for_each_ahead(self, hashes, touch, |filter, i, hash, ()| {
            new[i] = filter.insert_hash(hash);
        });
    }

    /// Sets the current time, as the time since any fixed origin (such as the Unix epoch), and ends the generations
    /// that are over. The first call starts the clock; a time before the last one is ignored; a jump over all
    /// generations forgets everything. Has no effect if the window is by keys ([`WindowedParams::for_keys`]).
    ///
    /// A key counts as inserted at the time last set, so call this before an insert as well as before a query.
    pub fn advance_to(&mut self, now: Duration) {
        let Some(tick) = self.params.tick() else { return };
        let Some(began) = self.began else {
            self.began = Some(now);
            return;
        };
        let passed = now.saturating_sub(began).as_nanos();
        let ticks = passed / tick.as_nanos();
        if ticks == 0 {
            return;
        }
        if ticks >= u128::from(self.params.slices()) {
            self.words.clear();
        } else {
            (0..ticks).for_each(|_| self.turn());
        }
        self.began = Some(now - Duration::from_nanos((passed % tick.as_nanos()) as u64));
    }

    /// Returns true if the key might have been inserted recently. `false` is certain: it was not inserted within the
    /// window.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn contains(&self, key: impl Key) -> bool {
        self.contains_hash(self.held.hash(self.hash_fn, &key))
    }

    /// Returns true if the key with this [uniform](crate::hash#uniform-hashes) hash might have been inserted recently.
    /// `false` is certain.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let words: &[u64] = &self.words;
        let slices = self.params.slices();
        has_run(self.params.shape.probes, self.params.shape.ages, |age| {
            let slice = slice_of(self.youngest, age, slices);
            let (word, mask) = address(self.params.position(hash, slice));
            words[word] & mask != 0
        })
    }

    /// Sets `found[i]` to whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` might have been inserted
    /// recently. Memory accesses overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        contains_ahead(hashes, found, |hash| self.touch(hash), |hash, ()| self.contains_hash(hash));
    }

    /// Prefetches the cache lines a query is most likely to need: the first of each run it tries.
    #[inline]
    fn touch(&self, hash: u64) {
        self.landmarks().for_each(|age| self.touch_age(hash, age));
    }

    /// Prefetches the cache lines that an insert writes.
    #[inline]
    fn touch_young(&self, hash: u64) {
        (0..self.params.shape.probes).for_each(|age| self.touch_age(hash, age));
    }

    #[inline]
    fn touch_age(&self, hash: u64, age: u32) {
        let slice = slice_of(self.youngest, age, self.params.slices());
        prefetch(&self.words, address(self.params.position(hash, slice)).0);
    }

    /// The ages l, l−k, l−2k …: each remembered generation has set bits in just one of their slices.
    #[inline]
    fn landmarks(&self) -> impl Iterator<Item = u32> {
        let WindowShape { probes, ages, .. } = self.params.shape;
        (0..=ages / probes).map(move |i| ages - i * probes)
    }

    /// Forgets all keys. The clock keeps running.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Number of inserts remembered for certain: those of the current generation and of the l before it. A key inserted
    /// twice counts twice. With a window by keys, at most `ages · generation` plus part of a generation.
    pub fn len(&self) -> u64 {
        (0..=self.params.shape.ages).map(|age| self.inserts(age)).fold(0, u64::saturating_add)
    }

    /// True if no insert is remembered for certain. Fading keys may still be found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of inserts in the generation of this age.
    fn inserts(&self, age: u32) -> u64 {
        let slice = slice_of(self.youngest, age, self.params.slices());
        self.words[self.params.counts_at() + slice as usize]
    }

    /// Number of distinct keys remembered for certain, estimated from the bits set. Infinite when a slice is full.
    ///
    /// The slice of age a holds the k generations up to age a, so the slices of ages l, l−k, l−2k … hold every
    /// remembered generation once. A key refreshed after k generations counts twice.
    pub fn estimate_len(&self) -> f64 {
        let bits = self.params.shape.slice_bits;
        self.landmarks().map(|age| sizing::estimate_len(bits, 1, self.ones(age))).sum()
    }

    /// The current rate, from the bits set: the chance that a random key finds k neighbours set.
    pub fn estimate_rate(&self) -> f64 {
        FillProgress::at_once(|progress, most| self.fill_step(progress, most)).rate
    }

    /// Performs a step of counting the bits: counts the next words, at most `most_words`. Between two steps the filter
    /// may take keys and forget others. The last step, and any after it, returns the result.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        let (slice_bits, slices) = (self.params.shape.slice_bits, self.params.slices());
        if progress.stages().is_empty()
            && let Some(ones) = progress.count_sections(&self.words, slice_bits, slices, most_words)
        {
            let fill = |age| {
                let slice = slice_of(self.youngest, age, slices);
                ones[slice as usize] as f64 / slice_bits as f64
            };
            let fills: Vec<f64> = (0..slices).map(fill).collect();
            let rate = sizing::run_rate(self.params.shape.probes, &fills);
            let ones = ones.iter().sum();
            progress.end_stage(Fill { bits: self.params.bits(), ones, rate });
        }
        progress.stages().first().copied()
    }

    /// Fraction of the bits of all slices that are set.
    pub fn fill(&self) -> f64 {
        count_ones_in(&self.words, 0, self.params.bits()) as f64 / self.params.bits() as f64
    }

    /// Number of bits set in the slice of this age.
    fn ones(&self, age: u32) -> u64 {
        let slice = slice_of(self.youngest, age, self.params.slices());
        let (start, end) = self.params.slice_range(slice);
        count_ones_in(&self.words, start, end)
    }

    /// True while some generation whose bits are still there had more inserts than planned: the requested rate may not
    /// be met, but nothing is forgotten early. Never true if the window is by keys.
    pub fn is_over_capacity(&self) -> bool {
        (0..self.params.slices()).any(|age| self.inserts(age) > self.params.shape.generation)
    }

    /// The shape.
    pub fn params(&self) -> WindowedParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of bits and counts in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }
}

/// Returns the slice of an age in a ring of `slices`.
#[inline]
fn slice_of(youngest: u32, age: u32, slices: u32) -> u32 {
    let slice = youngest + age;
    if slice >= slices { slice - slices } else { slice }
}

/// Returns true if `k` neighbours are set among the ages `0..k + l`.
///
/// ```text
/// ages   0 1 2 3 4 5 6 7 8 9       k = 4, l = 6: the run 6..=9 is tried first, upwards
///                    x x -         8 is not set, so no run holds 8, and one that ends below it begins at 4
///                x x ^ ^           4 and 5 are set, 6 and 7 are known: found
/// ```
///
/// A bit that is not set rules out the k runs that hold it, so the first bit of a run often saves the others:
/// [SBA20, algorithm 2].
#[inline]
fn has_run(k: u32, l: u32, is_set: impl Fn(u32) -> bool) -> bool {
    let (mut start, mut known) = (l, 0);
    loop {
        // The `known` bits at the end of this run were seen set while a later one was tried.
        let end = start + k - known;
        let Some(unset) = (start..end).find(|&age| !is_set(age)) else { return true };
        if unset < k {
            return false;
        }
        known = unset - start;
        start = unset - k;
    }
}

/// The parameters are probes, ages, generation and bits of a slice; the span in nanoseconds, zero if the window is by
/// keys; the youngest slice; and 1 if the clock has started, with the seconds and nanoseconds at which the current
/// generation began.
impl Persist for Windowed {
    fn encode(&self) -> Image<'_> {
        let WindowShape { probes, ages, generation, slice_bits } = self.params.shape;
        let span = self.params.span.map_or(0, |span| span.as_nanos() as u64);
        let began = self.began.unwrap_or_default();
        Image::new(Kind::Windowed, self.hash_fn, self.len(), self.params.capacity)
            .of_keys(self.held)
            .params(&[
                u64::from(probes),
                u64::from(ages),
                generation,
                slice_bits,
                span,
                u64::from(self.youngest),
                u64::from(self.began.is_some()),
                began.as_secs(),
                u64::from(began.subsec_nanos()),
            ])
            .section(&self.words)
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Windowed)?;
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        let [_, _, generation, slice_bits, span, _, started, seconds, _] = header.first_params()?;
        let shape = WindowShape {
            probes: parts.small(0, "number of probes")?,
            ages: parts.small(1, "number of ages")?,
            generation,
            slice_bits,
        };
        let span = (span > 0).then(|| Duration::from_nanos(span));
        let params = WindowedParams::checked(shape, header.capacity, span)?;
        let youngest = parts.small(5, "youngest slice")?;
        if youngest >= params.slices() {
            let value = u64::from(youngest);
            return Err(DecodeError::Invalid { what: "youngest slice", value });
        }
        let nanos = parts.small(8, "nanoseconds")?;
        let began = match (started, seconds, nanos) {
            (0, 0, 0) => None,
            (1, _, 0..1_000_000_000) if span.is_some() => Some(Duration::new(seconds, nanos)),
            _ => return Err(DecodeError::Invalid { what: "clock", value: started }),
        };
        let words = parts.words_of(params.stored_bits())?;
        let filter = Self { params, hash_fn, held, words, youngest, began };
        if filter.len() != len {
            return Err(DecodeError::Invalid { what: "number of keys", value: len });
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    #[test]
    fn a_run_is_found_just_where_a_naive_search_finds_one() {
        for slices in 2..=14u32 {
            for k in 1..slices {
                let run = (1u32 << k) - 1;
                for bits in 0..1u32 << slices {
                    let naive = (0..=slices - k).any(|start| bits >> start & run == run);
                    let found = has_run(k, slices - k, |age| bits >> age & 1 == 1);
                    assert_eq!(found, naive, "{k} of {bits:0width$b}", width = slices as usize);
                }
            }
        }
    }

    #[test]
    fn a_miss_looks_at_few_slices() {
        let looked = std::cell::Cell::new(0);
        assert!(!has_run(10, 38, |_| {
            looked.set(looked.get() + 1);
            false
        }));
        assert_eq!(looked.get(), 4); // ages 38, 28, 18 and 8
    }

    #[test]
    fn positions_are_those_of_the_probe_sequence() {
        let params = WindowedParams::for_keys(1000, 0.01).unwrap();
        let range = params.slice_bits();
        crate::Scheme::Remix.fold(
            mix64(1),
            0..params.slices(),
            range,
            (),
            |(), slice, position| {
                assert_eq!(params.position(mix64(1), slice), u64::from(slice) * range + position);
            },
        );
    }

    /// The slices in which a key of each age has bits, starting from an empty filter.
    #[test]
    fn the_bits_of_a_key_age_together() {
        let mut filter = Windowed::for_time(Duration::from_secs(1), 1000, 0.01).unwrap();
        let WindowShape { probes, ages, .. } = filter.params.shape;
        filter.insert_hash(mix64(7));
        for turns in 0..probes + ages {
            for age in 0..probes + ages {
                assert_eq!(filter.ones(age), u64::from((turns..turns + probes).contains(&age)));
            }
            assert_eq!(filter.contains_hash(mix64(7)), turns <= ages);
            assert_eq!(filter.len(), u64::from(turns <= ages));
            filter.turn();
        }
        assert!(filter.words.iter().all(|&word| word == 0));
    }

    fn decode(image: &Image<'_>) -> Result<Windowed, DecodeError> {
        let mut payload = Words::zeroed(image.sections[0].len() as u64 * 64).unwrap();
        payload.to_mut().copy_from_slice(&image.sections[0]);
        Windowed::decode(Parts { header: image.header.clone(), words: payload })
    }

    #[test]
    fn parameters_that_no_window_has_are_refused() {
        let mut filter = Windowed::for_time(Duration::from_secs(60), 100, 0.01).unwrap();
        filter.advance_to(Duration::from_secs(1000));
        filter.insert_hashes(&(0..50).map(mix64).collect::<Vec<_>>());
        assert_eq!(decode(&filter.encode()).as_ref(), Ok(&filter));
        for param in 0..9 {
            for value in [0, 2, 47, 48, 1 << 31, 1 << 33, 1 << 59, u64::MAX / 48, u64::MAX] {
                let mut image = filter.encode();
                let changed = image.header.params[param] != value;
                image.header.params[param] = value;
                // Generation, span, youngest slice and time also have other valid values.
                if let Ok(mut other) = decode(&image) {
                    assert!(!changed || [2, 4, 5, 7, 8].contains(&param), "{param} {value}");
                    other.insert_hash(mix64(99));
                    assert!(other.contains_hash(mix64(99)));
                    other.advance_to(Duration::MAX);
                }
            }
        }
        for (len, capacity) in [(49, 100), (50, 0), (50, u64::MAX)] {
            let mut image = filter.encode();
            (image.header.len, image.header.capacity) = (len, capacity);
            assert!(decode(&image).is_err(), "{len} {capacity}");
        }
        let mut image = filter.encode();
        image.sections[0].to_mut().extend([0; 8]);
        assert!(matches!(decode(&image), Err(DecodeError::Length { .. })));
    }

    #[test]
    fn a_count_that_no_window_has_does_no_harm() {
        let mut filter = Windowed::for_keys(100, 0.01).unwrap();
        let counts = filter.params.counts_at();
        let slices = filter.params.slices() as usize;
        filter.words.to_mut()[counts..counts + slices].fill(u64::MAX);
        let mut filter = decode(&filter.encode()).unwrap();
        filter.insert_hashes(&(0..1000).map(mix64).collect::<Vec<_>>());
        assert!((900..1000).all(|key| filter.contains_hash(mix64(key))));
    }
}
