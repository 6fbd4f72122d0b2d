//! A filter that grows: a chain of stages, each larger and stricter than the previous one [ABPH07].
//!
//! ```text
//! stage 0 [n keys, rate P(1-r)]   stage 1 [n·s, P(1-r)·r]   stage 2 [n·s², P(1-r)·r²]   …
//!
//! insert(key):   in some stage? then it is not new.  Else into the last stage; if that is full, add one first.
//! contains(key): in some stage?                      The newest first: it has the most keys.
//! ```
//!
//! An absent key is wrongly found if any stage finds it, so its rate is at most the sum of the stages' rates, and the
//! series sums to P however many stages there are. The price is bits, since later stages are stricter, and cache lines
//! touched, since every stage is queried: see [`sizing::scalable_bits_per_key`](crate::sizing::scalable_bits_per_key). As with every plan the rate is that at
//! the mean fill; a chain that starts at 1,000 keys scatters about it by 2 to 4 % (standard deviation), nearly all of
//! it in the small first stages.
//!
//! A stage that has just opened is empty, so a chain takes twice the bits of a full one at that moment, and three times after the
//! first stage: at 1 %, 14 bits a key in the first stage, 42 when the second has opened, 29 to 33 when a later
//! one has. Smaller steps do not help much: a chain that grows a thousandfold in k equal steps has k stages to share the
//! rate, each of 1.44 · log2(k/P) bits, and the best of them (about 60 stages, all of which a lookup has to ask) still
//! takes 20.3 bits after each step. Who can say roughly how many keys will come plans the first stage for them.
//!
//! Two kinds of stage cannot be built as planned; neither stops the growth:
//!
//! 1. A *blocked* stage stricter than its 32 hash bits allow (about 10^-7) becomes a Bloom stage.
//! 2. A stage stricter than a 64-bit hash allows is planned at that floor, n_i/2^64. The floors of all stages sum to
//!    N/2^64 for N keys, which any filter over 64-bit hashes has on top of its rate; so the rate is met as long as P is
//!    far above N/2^64, and no filter could do better.

mod kind;
mod params;
mod stage;

pub(super) use kind::PLANS;
pub use params::ScalableParams;
pub use stage::{StageInfo, StageKind};

use params::MAX_STAGES;
use stage::Stage;

use crate::error::{DecodeError, Mismatch, ParamError};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist, Sections};
use crate::hash::{GROUP, HashFn, Key, KeyTypes, expect_uniform};
use crate::kernel::{LINE_WORDS, try_for_each_ahead};
use crate::kinds::check_lengths;
use crate::kinds::fill::{Fill, FillProgress};
use crate::kinds::union::UnionProgress;

/// No rate below 1 that a float can represent takes less than 1/64 bit per key.
const MAX_KEYS_PER_BIT: u64 = 64;

/// A filter that grows with its keys and keeps its rate.
///
/// ```
/// use ironbloom::Scalable;
/// let mut seen = Scalable::with_rate(1000, 0.01)?;    // room for 1,000 keys at first
/// for key in 0..10_000u32 {
///     seen.insert(key.to_le_bytes())?;                // Err only if there is no memory to grow
/// }
/// assert!(seen.contains(9_999u32.to_le_bytes()));     // never wrong
/// assert_eq!(seen.stages().len(), 4);                 // 1,000 + 2,000 + 4,000 + 8,000
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scalable {
    params: ScalableParams,
    hash_fn: HashFn,
    held: KeyTypes,
    /// The stages, at least one; the last takes the inserts.
    stages: Vec<Stage>,
}

impl Scalable {
    /// Creates a chain of one empty stage. Fails only if allocation fails.
    pub fn new(params: ScalableParams, hash_fn: HashFn) -> Result<Self, ParamError> {
        let (held, stages) = (KeyTypes::NONE, vec![params.stage(0, hash_fn)?]);
        Ok(Self { params, hash_fn, held, stages })
    }

    /// Creates a chain with initial room for `initial_capacity` keys that keeps `rate` however far it grows.
    pub fn with_rate(initial_capacity: u64, rate: f64) -> Result<Self, ParamError> {
        Self::new(ScalableParams::new(initial_capacity, rate)?, HashFn::default())
    }

    /// Inserts a key unless some stage already has it. `Ok(true)` if it was new, that is, certainly not in the filter
    /// before. On error (no memory for another stage) nothing has changed.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert(&mut self, key: impl Key) -> Result<bool, ParamError> {
        let held = self.held;
        let hash = self.hash_new(&key);
        self.insert_hash(hash).inspect_err(|_| self.held = held)
    }

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). `Ok(true)` if it was new.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool, ParamError> {
        expect_uniform(&[hash]);
        if self.contains_hash(hash) {
            return Ok(false);
        }
        if self.newest().is_full() {
            self.grow()?;
        }
        Ok(self.newest().insert_hash(hash))
    }

    fn newest(&mut self) -> &mut Stage {
        self.stages.last_mut().expect("a chain has a stage")
    }

    #[cold]
    fn grow(&mut self) -> Result<(), ParamError> {
        self.stages.push(self.params.stage(self.stages.len(), self.hash_fn)?);
        Ok(())
    }

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes, overlapping memory accesses. After an error the
    /// hashes before the one that did not fit are in, and none after it.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), ParamError> {
        try_for_each_ahead(self, hashes, Self::touch, |filter, _, hash, ()| {
            filter.insert_hash(hash).map(drop)
        })
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch. Fails only if allocating the memory
    /// to grow fails.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    pub fn insert_keys<K: Key>(&mut self, keys: &[K]) -> Result<(), ParamError> {
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

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes in order; sets `new[i]` to whether `hashes[i]` was
    /// new, so a repeated hash is new at most the first time. Memory accesses overlap. After an error the filter is as
    /// described for [`insert_hashes`](Self::insert_hashes); the entries of hashes not inserted are left unchanged.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), ParamError> {
        check_lengths(hashes.len(), new.len());
        try_for_each_ahead(self, hashes, Self::touch, |filter, i, hash, ()| {
            new[i] = filter.insert_hash(hash)?;
            Ok(())
        })
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
        self.stages.iter().rev().any(|stage| stage.contains_hash(hash))
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
        for (hashes, found) in hashes.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.contains_group(hashes, found);
        }
    }

    /// Queries the stages one after the other, the newest and largest first, each only for the hashes not found so far.
    fn contains_group(&self, hashes: &[u64], found: &mut [bool]) {
        let (mut asked, mut places) = ([0; GROUP], [0; GROUP]);
        let mut len = hashes.len();
        asked[..len].copy_from_slice(hashes);
        places.iter_mut().enumerate().for_each(|(i, place)| *place = i);
        found.fill(true);
        let mut here = [false; GROUP];
        for stage in self.stages.iter().rev() {
            stage.contains_hashes(&asked[..len], &mut here[..len]);
            let mut kept = 0;
            for i in 0..len {
                // Always written, and counted only if kept: no branch to mispredict.
                (asked[kept], places[kept]) = (asked[i], places[i]);
                kept += usize::from(!here[i]);
            }
            len = kept;
        }
        places[..len].iter().for_each(|&place| found[place] = false);
    }

    /// Prefetches the cache lines of a hash in all stages.
    #[inline]
    fn touch(&self, hash: u64) {
        for stage in &self.stages {
            stage.touch(hash);
        }
    }

    /// Returns an error unless [`union_with`](Self::union_with) would accept `other`.
    pub fn check_union(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        self.held.united(self.len(), other.held, other.len())?;
        Mismatch::unless_equal(Mismatch::STAGES, self.stages.len(), other.stages.len())?;
        self.stages.iter().zip(&other.stages).try_for_each(|(one, two)| one.check_same(two))
    }

    /// Adds every key of `other`, which must have the same number of stages of the same shapes. Fails, changing
    /// nothing, unless the two set the same bits for the same key. The counts become estimates.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_union(other)?;
        UnionProgress::all(other.stages.len(), |progress, most| {
            self.union_step(other, progress, most)
        })
    }

    /// Performs a step of [`union_with`](Self::union_with): adds the next words of a stage, at most `most_words`.
    /// Between two steps both filters may be used, take keys and grow. At the end of a stage its count becomes an
    /// estimate; the union is done when `progress.stage` is the number of stages that `other` had at the start. Fails,
    /// changing nothing, unless both have this stage in the same shape.
    pub fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), Mismatch> {
        Mismatch::unless_equal("hash function", self.hash_fn, other.hash_fn)?;
        let held = self.held.united(self.len(), other.held, other.len())?;
        let in_both = self.stages.len().min(other.stages.len());
        if progress.stage >= in_both {
            return Mismatch::unless_equal("stage", progress.stage, in_both - 1);
        }
        let (one, two) = (&mut self.stages[progress.stage], &other.stages[progress.stage]);
        one.check_same(two)?;
        self.held = held;
        let mut of_stage = UnionProgress { stage: 0, ..*progress };
        one.union_step(two, &mut of_stage, most_words)?;
        *progress = UnionProgress { stage: progress.stage + of_stage.stage, ..of_stage };
        Ok(())
    }

    /// Creates an empty filter with stages like this one's, which a union with it therefore accepts. Fails only if
    /// allocation fails.
    pub fn empty_like(&self) -> Result<Self, ParamError> {
        let stage = |i| self.params.stage(i, self.hash_fn);
        let stages =
            (0..self.stages.len()).map(stage).collect::<Result<Vec<Stage>, ParamError>>()?;
        Ok(Self { stages, ..*self })
    }

    /// Removes all keys, and all stages but the first.
    pub fn clear(&mut self) {
        self.held = KeyTypes::NONE;
        self.stages.truncate(1);
        self.newest().clear();
    }

    /// Number of keys counted: inserts that were new.
    pub fn len(&self) -> u64 {
        self.stages().map(|stage| stage.len).fold(0, u64::saturating_add)
    }

    /// True if nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of distinct keys estimated from the bits set: the sum over the stages.
    pub fn estimate_len(&self) -> f64 {
        self.stages.iter().map(Stage::estimate_len).sum()
    }

    /// The current rate, from the bits set: 1 − Π (1 − rate of stage i).
    pub fn estimate_rate(&self) -> f64 {
        FillProgress::at_once(|progress, most| self.fill_step(progress, most)).rate
    }

    /// Performs a step of counting the bits: counts the next words of a stage, at most `most_words`. Between two steps
    /// the filter may take keys and grow; stages that were added are counted as well. The last step, and any after it,
    /// returns the result.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        if let Some(stage) = self.stages.get(progress.stages().len()) {
            stage.count(progress, most_words);
        }
        let stages = progress.stages();
        (stages.len() >= self.stages.len()).then(|| Fill {
            bits: stages.iter().map(|stage| stage.bits).sum(),
            ones: stages.iter().map(|stage| stage.ones).sum(),
            // By the logarithm of the product: 1 − x would lose the digits of a small x.
            rate: -stages.iter().map(|stage| (-stage.rate).ln_1p()).sum::<f64>().exp_m1(),
        })
    }

    /// Fraction of the bits of all stages that are set.
    pub fn fill(&self) -> f64 {
        let bits = |stage: &Stage| stage.info().bits as f64;
        let ones: f64 = self.stages.iter().map(|stage| stage.fill() * bits(stage)).sum();
        ones / self.stages.iter().map(bits).sum::<f64>()
    }

    /// Number of new keys that can be inserted before the next one starts another stage, which takes
    /// [`ScalableParams::stage_bytes`].
    pub fn room(&self) -> u64 {
        self.stages.last().expect("a chain has a stage").room()
    }

    /// False while keys are inserted: the filter grows instead. True if a union put more keys into a stage than it was
    /// planned for, so that the requested rate is no longer met. Scans the bits of full stages.
    pub fn is_over_capacity(&self) -> bool {
        self.stages.iter().any(Stage::is_over_capacity)
    }

    /// Number of keys that the existing stages have room for.
    pub fn capacity(&self) -> u64 {
        self.stages().map(|stage| stage.capacity).fold(0, u64::saturating_add)
    }

    /// The current stages, oldest first.
    pub fn stages(&self) -> impl ExactSizeIterator<Item = StageInfo> {
        self.stages.iter().map(Stage::info)
    }

    /// The stage that takes keys.
    pub fn newest_stage(&self) -> StageInfo {
        self.stages.last().expect("a chain has a stage").info()
    }

    /// The plan.
    pub fn params(&self) -> ScalableParams {
        self.params
    }

    /// The hash function.
    pub fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Size of the bit array in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.stages.iter().map(|stage| size_of_val(stage.words())).sum()
    }
}

/// The payload is a table with one line per stage, then the words of the stages. The capacity in the header is the
/// initial one; the parameters are rate, growth, tightening, kind of stages and number of stages.
impl Persist for Scalable {
    fn encode(&self) -> Image<'_> {
        let [rate, growth, tightening, kind] = self.params.encode();
        let table = self.stages.iter().flat_map(Stage::encode).collect();
        let image =
            Image::new(Kind::Scalable, self.hash_fn, self.len(), self.params.initial_capacity())
                .of_keys(self.held)
                .params(&[rate, growth, tightening, kind, self.stages.len() as u64])
                .owned_section(table);
        self.stages.iter().fold(image, |image, stage| image.section(stage.words()))
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        let header = parts.expect_kind(Kind::Scalable)?;
        let [rate, growth, tightening, kind, count] = header.first_params()?;
        let fields = [rate, growth, tightening, kind];
        let params = ScalableParams::decode(fields, header.capacity)?;
        if !(1..=MAX_STAGES as u64).contains(&count) {
            return Err(DecodeError::Invalid { what: "number of stages", value: count });
        }
        let (hash_fn, held, len) = (header.hash_fn, header.key_types, header.len);
        let mut sections = Sections::new(parts.words);
        let table = sections.take_lines(count)?;
        let mut stages = Vec::with_capacity(count as usize);
        for (i, line) in table.chunks_exact(LINE_WORDS).enumerate() {
            let line = std::array::from_fn(|i| line[i]);
            let stage = Stage::decode(line, hash_fn, &mut sections)?;
            // The next stage is planned from these numbers, so they must be backed by actual bits.
            let capacity = stage.info().capacity;
            let most = stage.info().bits.saturating_mul(MAX_KEYS_PER_BIT);
            if capacity != params.stage_capacity(i as u32) || capacity > most {
                return Err(DecodeError::Invalid { what: "stage capacity", value: capacity });
            }
            stages.push(stage);
        }
        sections.finish()?;
        let filter = Self { params, hash_fn, held, stages };
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
    use crate::kernel::Words;
    use crate::sizing;

    fn grown(kind: StageKind) -> Scalable {
        let params = ScalableParams::new(100, 0.01).unwrap().with_stages_of(kind);
        let mut filter = Scalable::new(params, HashFn::default()).unwrap();
        let hashes: Vec<u64> = (0..1000).map(mix64).collect();
        filter.insert_hashes(&hashes).unwrap();
        assert_eq!(filter.stages().len(), 4);
        filter
    }

    fn decode(image: &Image<'_>) -> Result<Scalable, DecodeError> {
        let words: Vec<u64> = image.sections.iter().flat_map(|s| s.iter().copied()).collect();
        let mut payload = Words::zeroed(words.len() as u64 * 64).unwrap();
        payload.to_mut().copy_from_slice(&words);
        Scalable::decode(Parts { header: image.header.clone(), words: payload })
    }

    #[test]
    fn a_blocked_stage_too_strict_for_its_hash_becomes_a_bloom_stage() {
        let params = ScalableParams::new(1000, 1e-6).unwrap().with_stages_of(StageKind::Blocked);
        let kind = |i| params.stage(i, HashFn::default()).unwrap().info().kind;
        assert_eq!(kind(0), StageKind::Blocked);
        assert_eq!(kind(12), StageKind::Bloom);
    }

    #[test]
    fn a_stage_too_strict_for_any_hash_is_planned_at_the_floor() {
        let params = ScalableParams::new(1, 1e-18).unwrap().with_tightening(1e-300).unwrap();
        for i in 0..10 {
            let Stage::Bloom(stage) = params.stage(i, HashFn::default()).unwrap() else { panic!() };
            let capacity = stage.params().capacity();
            assert!(
                stage.params().rate_at(capacity) <= 1e-18_f64.max(sizing::hash_floor(capacity))
            );
        }
    }

    #[test]
    fn room_and_bytes_tell_when_and_how_much_a_chain_grows() {
        for kind in [StageKind::Bloom, StageKind::Blocked] {
            let mut filter = grown(kind);
            let (stages, bytes) = (filter.stages().len(), filter.size_in_bytes() as u64);
            let next = filter.params().stage_bytes(stages).unwrap();
            let mut key = 1000;
            while filter.stages().len() == stages {
                let room = filter.room();
                let is_new = filter.insert_hash(mix64(key)).unwrap();
                assert_eq!(filter.stages().len() > stages, room == 0 && is_new);
                key += 1;
            }
            assert_eq!(filter.size_in_bytes() as u64, bytes + next);
            assert!(filter.params().stage_bytes(MAX_STAGES).is_err());
        }
    }

    #[test]
    fn equal_chains_unite_and_others_are_refused() {
        let (mut one, two) = (grown(StageKind::Blocked), grown(StageKind::Blocked));
        let hashes: Vec<u64> = (0..1000).map(mix64).collect();
        one.clear();
        let more: Vec<u64> = (5000..6000).map(mix64).collect();
        one.insert_hashes(&more).unwrap();
        one.union_with(&two).unwrap();
        assert!(hashes.iter().chain(&more).all(|&hash| one.contains_hash(hash)));
        assert!((one.fill() - two.fill()) > 0.1, "{} {}", one.fill(), two.fill());
        let before = one.clone();
        let mut longer = two.clone();
        longer.insert_hashes(&(9000..12_000).map(mix64).collect::<Vec<_>>()).unwrap();
        // The first stage matches, the second does not.
        let params = two.params().with_growth(3).unwrap();
        let mut steeper = Scalable::new(params, HashFn::default()).unwrap();
        steeper.insert_hashes(&(20_000..22_000).map(mix64).collect::<Vec<_>>()).unwrap();
        assert_eq!(steeper.stages().len(), two.stages().len());
        for other in [&longer, &steeper, &grown(StageKind::Bloom)] {
            assert!(one.union_with(other).is_err());
            assert_eq!(one, before);
        }
    }

    #[test]
    fn growth_without_end_is_refused_for_lack_of_memory() {
        let params = ScalableParams::new(1_000_000_000_000_000, 0.01).unwrap();
        assert!(matches!(params.stage(40, HashFn::default()), Err(ParamError::Memory { .. })));
        let params = ScalableParams::new(1, 0.01).unwrap();
        assert!(matches!(params.stage(63, HashFn::default()), Err(ParamError::Memory { .. })));
        assert!(params.stage(MAX_STAGES, HashFn::default()).is_err());
    }

    /// A file whose stages are full and whose next stage cannot be allocated: the insert fails and nothing changes.
    #[test]
    fn an_insert_that_cannot_grow_changes_nothing() {
        let mut filter = grown(StageKind::Bloom);
        filter.params.initial_capacity = 1_000_000_000_000_000;
        let hashes: Vec<u64> = (1000..3000).map(mix64).collect();
        let mut new = vec![false; hashes.len()];
        let refused = filter.insert_each(&hashes, &mut new);
        assert!(matches!(refused, Err(ParamError::Memory { .. })), "{refused:?}");
        assert!(filter.stages().all(|stage| stage.full) && new.iter().any(|&new| new));
        let before = filter.clone();
        let absent = hashes.iter().copied().find(|&hash| !filter.contains_hash(hash)).unwrap();
        assert!(filter.insert_hash(absent).is_err());
        assert_eq!(filter, before);
    }

    #[test]
    fn a_table_that_does_not_fit_its_payload_is_refused() {
        for kind in [StageKind::Bloom, StageKind::Blocked] {
            let filter = grown(kind);
            assert_eq!(decode(&filter.encode()).as_ref(), Ok(&filter));
            for word in 0..4 * LINE_WORDS {
                for value in [0, 1, 5, 1 << 20, 1 << 58, u64::MAX / 512, u64::MAX] {
                    let mut image = filter.encode();
                    let table = image.sections[0].to_mut();
                    let changed = table[word] != value;
                    table[word] = value;
                    // Layout, scheme, capacity and probes also have other valid values.
                    if let Ok(mut other) = decode(&image) {
                        assert!(
                            !changed || [1, 2, 5, 6, 7].contains(&(word % LINE_WORDS)),
                            "{word} {value}"
                        );
                        other.insert_hash(mix64(5000)).unwrap();
                        assert!(other.contains_hash(mix64(5000)) && other.capacity() > 0);
                    }
                }
            }
        }
    }

    #[test]
    fn parameters_that_no_chain_has_are_refused() {
        let filter = grown(StageKind::Bloom);
        let nan = f64::NAN.to_bits();
        let wrong = [(0, nan), (0, 0), (0, 2f64.to_bits()), (1, 1), (1, 17), (2, nan), (2, 0)];
        let counts = [(3, 2), (4, 0), (4, 3), (4, 5), (4, 65), (4, u64::MAX)];
        for (param, value) in wrong.into_iter().chain(counts) {
            let mut image = filter.encode();
            image.header.params[param] = value;
            assert!(decode(&image).is_err(), "{param} {value}");
        }
        for (len, capacity) in [(999_999, 100), (filter.len(), 0), (filter.len(), u64::MAX)] {
            let mut image = filter.encode();
            (image.header.len, image.header.capacity) = (len, capacity);
            assert!(decode(&image).is_err(), "{len} {capacity}");
        }
        let mut image = filter.encode();
        image.sections.push(vec![0; LINE_WORDS].into());
        assert!(matches!(decode(&image), Err(DecodeError::Length { .. })));
    }
}
