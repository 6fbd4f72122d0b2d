//! HeavyKeeper (Gong and others 2018): the k keys that were added most often, and about how often.
//!
//! ```text
//! buckets   rows of (fingerprint, count): a key has one bucket in each row. A key that finds another's fingerprint there makes
//!           that count decay, with a probability of decay^count, until the bucket is its own
//! heap      k keys with their counts, the smallest first: a key whose count is not below it takes its place
//! ```
//!
//! Rare keys lose their buckets soon, frequent ones practically never. Counts are too small rather than too large; only keys with
//! the same fingerprint, one pair in 2^32, are counted together.
//!
//! Layout, hashes and the order of the heap are RedisBloom's, down to the steps it leaves out: after a decay the heap may be
//! out of order, and a key whose count is 0 may enter it. The random numbers are not. RedisBloom takes those of the C library,
//! so that its replicas count differently. Here they are a sequence that is part of the state, and is saved in eight bytes that
//! RedisBloom ignores: equal sketches stay equal.

mod decay;
mod heap;

use self::decay::Decay;
use self::heap::Heap;
pub use self::heap::Listed;
use super::ADDRESSABLE;
use super::error::PlanError;
use super::file::Sketch;
use super::murmur2::{LANES, murmur2, murmur2_lanes};
use crate::hash::{Modulus, SplitMix64};
use crate::memory::prefetch;
use crate::redisbloom::error::DecodeError;
use crate::redisbloom::fields::{FieldReader, FieldWriter};
use crate::redisbloom::limits::{MemoryLimit, ask, copy, zeros};

/// The seed of fingerprints.
const FINGERPRINT_SEED: u32 = 1919;

const BUCKET_BYTES: usize = 8;

/// Bytes of an entry of the heap in files and in RedisBloom's memory.
const RECORD_BYTES: usize = 24;

/// What RedisBloom has beside buckets and heap: mostly its table of powers.
const FIXED_BYTES: u64 = 2088;

/// Keys whose buckets are prefetched together.
const GROUP: usize = 16;

/// The parameters of a [`TopK`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopKPlan {
    /// Number of keys that are kept.
    pub k: u32,
    /// Buckets of a row.
    pub width: u32,
    /// Number of rows.
    pub depth: u32,
    /// Probability that a count of 1 decays, above 0 and at most 1.
    pub decay: f64,
}

impl TopKPlan {
    /// RedisBloom's default: 7 rows of 8 buckets. For more than a few keys, use [`for_keys`](Self::for_keys).
    pub fn small(k: u32) -> Self {
        Self { k, width: 8, depth: 7, decay: 0.9 }
    }

    /// Plans k · ln k buckets in each row, and 5 rows or more.
    pub fn for_keys(k: u32) -> Self {
        let log = f64::from(k.max(2)).ln();
        let width = (f64::from(k) * log).ceil().clamp(8.0, f64::from(u32::MAX));
        Self { k, width: width as u32, depth: (log.ceil() as u32).max(5), decay: 0.9 }
    }

    fn checked(self) -> Result<Self, PlanError> {
        PlanError::unless(self.k > 0, "k: it must be 1 or more")?;
        PlanError::unless(self.width > 0, "width: it must be 1 or more")?;
        PlanError::unless(self.depth > 0, "depth: it must be 1 or more")?;
        let is_probability = self.decay > 0.0 && self.decay <= 1.0;
        PlanError::unless(is_probability, "decay: it must be above 0 and at most 1")?;
        Ok(self)
    }

    /// Bytes of the buckets.
    fn bucket_bytes(self) -> Option<u64> {
        (u64::from(self.width) * u64::from(self.depth)).checked_mul(BUCKET_BYTES as u64)
    }

    fn heap_bytes(self) -> u64 {
        u64::from(self.k) * RECORD_BYTES as u64
    }
}

/// The keys that were added most often.
///
/// ```
/// # use ironbloom::sketches::{TopK, TopKPlan};
/// let mut top = TopK::new(TopKPlan::for_keys(2))?;
/// for word in "to be or not to be to".split(' ') {
///     top.add(word, 1);
/// }
/// let list = top.list();
/// assert_eq!((list[0].key, list[0].count), (&b"to"[..], 3));
/// assert_eq!((list[1].key, list[1].count), (&b"be"[..], 2));
/// # Ok::<(), ironbloom::sketches::PlanError>(())
/// ```
#[derive(Debug)]
pub struct TopK {
    plan: TopKPlan,
    modulus: Modulus,
    decay: Decay,
    /// Pairs of fingerprint and count, little-endian as in files.
    buckets: Vec<u8>,
    heap: Heap,
    random: SplitMix64,
}

/// The fingerprint of a key, and its buckets in the first rows.
#[derive(Clone, Copy)]
struct Located {
    fingerprint: u32,
    first_rows: [usize; LANES],
}

impl TopK {
    /// An empty sketch.
    ///
    /// # Errors
    ///
    /// If a parameter is out of range, or memory is lacking.
    pub fn new(plan: TopKPlan) -> Result<Self, PlanError> {
        Self::planned(plan, MemoryLimit::NONE)
    }

    /// An empty sketch, if the limit allows it.
    ///
    /// # Errors
    ///
    /// If a parameter is out of range, the limit forbids it, or memory is lacking.
    pub fn planned(plan: TopKPlan, limit: MemoryLimit) -> Result<Self, PlanError> {
        let plan = plan.checked()?;
        let buckets = plan.bucket_bytes().unwrap_or(u64::MAX);
        let bytes = buckets.saturating_add(plan.heap_bytes());
        if bytes > ADDRESSABLE {
            return Err(PlanError::Memory { bytes });
        }
        limit.check(0, bytes)?;
        let buckets = zeros(buckets)?;
        ask(plan.heap_bytes())?;
        Ok(Self::from_parts(plan, buckets, Heap::new(plan.k as usize), 0))
    }

    fn from_parts(plan: TopKPlan, buckets: Vec<u8>, heap: Heap, random: u64) -> Self {
        let (modulus, decay) = (Modulus::new(u64::from(plan.width)), Decay::new(plan.decay));
        Self { plan, modulus, decay, buckets, heap, random: SplitMix64(random) }
    }

    /// Its parameters.
    pub fn plan(&self) -> TopKPlan {
        self.plan
    }

    /// Size in bytes as RedisBloom counts it: without the keys themselves.
    pub fn size_in_bytes(&self) -> u64 {
        FIXED_BYTES + self.buckets.len() as u64 + self.plan.heap_bytes()
    }

    /// Bytes of the keys in the heap, which come on top.
    pub fn key_bytes(&self) -> u64 {
        self.heap.key_bytes()
    }

    /// Number of keys in the heap.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether the heap has no key.
    pub fn is_empty(&self) -> bool {
        self.heap.len() == 0
    }

    /// Adds a key `count` times. The key whose place it took, if there was one.
    pub fn add(&mut self, key: impl AsRef<[u8]>, count: u32) -> Option<Box<[u8]>> {
        let key = key.as_ref();
        let located = self.locate(key);
        self.add_located(key, located, count)
    }

    /// Adds keys in their order, `keys[i]` for `counts[i]` times, and hands the keys whose places they took to `expelled`.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn add_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        counts: &[u32],
        mut expelled: impl FnMut(Option<Box<[u8]>>),
    ) {
        assert_eq!(keys.len(), counts.len(), "keys and counts of a batch");
        for (keys, counts) in keys.chunks(GROUP).zip(counts.chunks(GROUP)) {
            let mut located = [Located { fingerprint: 0, first_rows: [0; LANES] }; GROUP];
            for (key, located) in keys.iter().zip(&mut located) {
                *located = self.locate(key.as_ref());
            }
            for ((key, located), &count) in keys.iter().zip(located).zip(counts) {
                expelled(self.add_located(key.as_ref(), located, count));
            }
        }
    }

    /// Hashes a key and prefetches its first buckets.
    #[inline]
    fn locate(&self, key: &[u8]) -> Located {
        let mut first_rows = [0; LANES];
        let hashes = murmur2_lanes(key, 0);
        for (row, hash) in (0..self.plan.depth.min(LANES as u32)).zip(hashes) {
            let bucket = self.bucket(row, hash);
            prefetch(&self.buckets, bucket * BUCKET_BYTES);
            first_rows[row as usize] = bucket;
        }
        Located { fingerprint: murmur2(key, FINGERPRINT_SEED), first_rows }
    }

    #[inline]
    fn bucket(&self, row: u32, hash: u32) -> usize {
        (u64::from(row) * u64::from(self.plan.width) + self.modulus.of(u64::from(hash))) as usize
    }

    /// The bucket of a key in a row.
    #[inline]
    fn bucket_of(&self, row: u32, key: &[u8], located: &Located) -> usize {
        match located.first_rows.get(row as usize) {
            Some(&bucket) => bucket,
            None => self.bucket(row, murmur2(key, row)),
        }
    }

    fn add_located(&mut self, key: &[u8], located: Located, count: u32) -> Option<Box<[u8]>> {
        let smallest = self.heap.smallest();
        let mut best = 0;
        for row in 0..self.plan.depth {
            let bucket = self.bucket_of(row, key, &located);
            best = best.max(self.raise(bucket, located.fingerprint, count));
        }
        if best < smallest {
            return None;
        }
        self.heap.raise(located.fingerprint, key, best)
    }

    /// Adds to a bucket, or makes the count of another key in it decay. The count of the key there; 0 if the bucket is another's.
    #[inline]
    fn raise(&mut self, bucket: usize, fingerprint: u32, added: u32) -> u32 {
        let (holder, mut count) = bucket_at(&self.buckets, bucket);
        if count == 0 {
            set_bucket(&mut self.buckets, bucket, fingerprint, added);
            return added;
        }
        if holder == fingerprint {
            let count = count.wrapping_add(added);
            set_bucket(&mut self.buckets, bucket, fingerprint, count);
            return count;
        }
        let mut left = added;
        if self.plan.decay == 1.0 {
            // Every time takes one from the count, and what is left after that is the key's.
            if left < count {
                set_bucket(&mut self.buckets, bucket, holder, count - left);
                return 0;
            }
            left -= count - 1;
            set_bucket(&mut self.buckets, bucket, fingerprint, left);
            return left;
        }
        while left > 0 {
            let probability = self.decay.power(count);
            if probability <= decay::NEVER {
                break;
            }
            if probability < decay::RARE {
                // The times that come to nothing before one that makes it decay, if there is one.
                let failures = decay::failures(probability, left, self.random.next_u64());
                if failures == left {
                    break;
                }
                left -= failures;
            } else if decay::unit(self.random.next_u64()) >= probability {
                left -= 1;
                continue;
            }
            count -= 1;
            if count == 0 {
                set_bucket(&mut self.buckets, bucket, fingerprint, left);
                return left;
            }
            left -= 1;
        }
        set_bucket(&mut self.buckets, bucket, holder, count);
        0
    }

    /// Whether a key is among the k.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        self.heap.find(murmur2(key, FINGERPRINT_SEED), key).is_some()
    }

    /// About how often a key was added: 0 if no bucket is its own.
    pub fn count(&self, key: impl AsRef<[u8]>) -> u32 {
        let key = key.as_ref();
        let located = self.locate(key);
        let is_kept = self.heap.find(located.fingerprint, key).is_some();
        let least = if is_kept { self.heap.smallest() } else { 0 };
        let counts = (0..self.plan.depth)
            .map(|row| bucket_at(&self.buckets, self.bucket_of(row, key, &located)));
        let own = counts.filter(|&(holder, count)| holder == located.fingerprint && count >= least);
        own.map(|(_, count)| count).max().unwrap_or(0)
    }

    /// The keys by their counts, the largest first; those of a count of 0 are left out.
    pub fn list(&self) -> Vec<Listed<'_>> {
        self.heap.list()
    }

    /// Adds the keys that another sketch kept, with its counts. What it did not keep is lost: of a key that neither kept, the
    /// sum may be above the counts of keys here.
    pub fn merge(&mut self, other: &Self) {
        // The largest first: they find their place before rare keys take it.
        for Listed { key, count } in other.list() {
            self.add(key, count);
        }
    }

    /// The array of buckets, for servers that move it in memory.
    #[doc(hidden)]
    pub fn array_to_move(&mut self) -> &mut Vec<u8> {
        &mut self.buckets
    }
}

/// Fingerprint and count of a bucket.
#[inline]
fn bucket_at(buckets: &[u8], bucket: usize) -> (u32, u32) {
    let word = u64::from_le_bytes(buckets.as_chunks::<BUCKET_BYTES>().0[bucket]);
    (word as u32, (word >> 32) as u32)
}

#[inline]
fn set_bucket(buckets: &mut [u8], bucket: usize, fingerprint: u32, count: u32) {
    let word = u64::from(fingerprint) | u64::from(count) << 32;
    buckets.as_chunks_mut::<BUCKET_BYTES>().0[bucket] = word.to_le_bytes();
}

impl Clone for TopK {
    fn clone(&self) -> Self {
        let (buckets, heap) = (copy(&self.buckets), self.heap.clone());
        Self::from_parts(self.plan, buckets, heap, self.random.0)
    }
}

impl PartialEq for TopK {
    fn eq(&self, other: &Self) -> bool {
        self.plan == other.plan
            && self.buckets == other.buckets
            && self.heap == other.heap
            && self.random.0 == other.random.0
    }
}

/// Fields: k, width, depth, decay; the buckets, row after row: fingerprint and count; the heap: of each entry fingerprint and
/// length of the key in 4 bytes each, 8 bytes that RedisBloom ignores (in the first entry the state of the random numbers,
/// otherwise zeros), the count in 4 bytes and 4 zeros; then each key with a zero after it.
impl Sketch for TopK {
    const KIND: u32 = 2;
    const NAME: &'static str = "top-k";

    fn encode(&self, to: &mut impl FieldWriter) {
        to.unsigned(u64::from(self.plan.k));
        to.unsigned(u64::from(self.plan.width));
        to.unsigned(u64::from(self.plan.depth));
        to.double(self.plan.decay);
        to.string(&self.buckets);
        let mut records = Vec::with_capacity(self.plan.k as usize * RECORD_BYTES);
        let mut state = self.random.0;
        for entry in self.heap.entries() {
            records.extend(entry.fingerprint.to_le_bytes());
            records.extend((entry.key.len() as u32).to_le_bytes());
            records.extend(std::mem::take(&mut state).to_le_bytes());
            records.extend(u64::from(entry.count).to_le_bytes());
        }
        to.string(&records);
        for entry in self.heap.entries() {
            to.string(&[entry.key, &[0]].concat());
        }
    }

    fn decode(from: &mut impl FieldReader) -> Result<Self, DecodeError> {
        let mut number = |what| {
            let number = u32::try_from(from.unsigned()?).ok().filter(|&number| number > 0);
            number.ok_or(DecodeError::Field { what })
        };
        let (k, width, depth) = (number("k")?, number("width")?, number("depth")?);
        // RedisBloom loads any decay, and a server must start with what it saved.
        let plan = TopKPlan { k, width, depth, decay: from.double()? };
        let buckets = from.string()?;
        let is_whole = Some(buckets.len() as u64) == plan.bucket_bytes();
        DecodeError::unless(is_whole, "number of buckets")?;
        let records = from.string()?;
        DecodeError::unless(records.len() as u64 == plan.heap_bytes(), "size of the heap")?;
        let mut heap = Heap::new(k as usize);
        let mut state = None;
        for (at, record) in records.as_chunks::<RECORD_BYTES>().0.iter().enumerate() {
            let [head, random, count] = [0, 1, 2].map(|i| word_of(record, i));
            state.get_or_insert(random);
            let mut key = from.string()?;
            DecodeError::unless(key.pop() == Some(0), "end of a key")?;
            heap.load(at, head as u32, count as u32, key);
        }
        Ok(Self::from_parts(plan, buckets, heap, state.unwrap_or(0)))
    }
}

fn word_of(record: &[u8; RECORD_BYTES], i: usize) -> u64 {
    u64::from_le_bytes(record.as_chunks::<8>().0[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At once what adding one at a time does.
    #[test]
    fn a_decay_of_one_takes_away_as_often_as_another_key_is_added() {
        for (first, then) in [(1, 1), (5, 3), (5, 5), (5, 6), (5, 100), (7, 0)] {
            let plan = TopKPlan { k: 1, width: 1, depth: 2, decay: 1.0 };
            let (mut at_once, mut singly) = (TopK::new(plan).unwrap(), TopK::new(plan).unwrap());
            at_once.add("a", first);
            at_once.add("b", then);
            (0..first).for_each(|_| drop(singly.add("a", 1)));
            (0..then).for_each(|_| drop(singly.add("b", 1)));
            assert_eq!(at_once.buckets, singly.buckets, "{first} {then}");
        }
    }
}
