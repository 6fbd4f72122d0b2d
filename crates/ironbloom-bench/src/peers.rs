//! The peers: other crates, configured for the same number of keys and the same rate.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hash;
use std::sync::Arc;

use cuckoofilter::CuckooFilter;
use datasketches::bloom::{BloomFilter as DataSketches, BloomFilterBuilder};
use fastbloom::{AtomicBloomFilter, BloomFilter};
use growable_bloom_filter::GrowableBloom;
use scalable_cuckoo_filter::ScalableCuckooFilter;
use xorf::{BinaryFuse8, Filter as _};

use crate::contender::{
    ByHash, ByKey, Contender, Hashed, Keyed, Make, MakeEmpty, RATE, Side, Spec, keyed,
};
use crate::keys::KeyType;
use crate::ours::first_stage;
use crate::sbbf::SplitBlocks;

/// Keys for a peer with two hash functions: fixed, so that runs can be repeated, and different from each other.
const SEED: [u8; 32] = *b"one hash function, then another.";

/// Peers that are created empty and then filled.
const FILLED: [(&str, MakeEmpty); 11] = [
    ("fastbloom", |n, _| Box::new(Hashed(fastbloom(n)))),
    ("fastbloom (its hasher)", |n, key_type| keyed(fastbloom(n), key_type)),
    ("fastbloom atomic", |n, _| Box::new(Hashed(Arc::new(fastbloom_atomic(n))))),
    ("sbbf-rs 10 bits", |n, _| Box::new(Hashed(SplitBlocks::with_bits(10 * n)))),
    ("sbbf-rs 1 %", |n, _| Box::new(Hashed(SplitBlocks::with_rate(n, RATE)))),
    ("cuckoofilter", |n, key_type| {
        keyed(CuckooFilter::<DefaultHasher>::with_capacity(n as usize), key_type)
    }),
    ("scalable_cuckoo_filter", scalable_cuckoo),
    ("qfilter", |n, _| Box::new(Hashed(qfilter::Filter::new(n, RATE).expect("within its bounds")))),
    ("bloomfilter", bloomfilter),
    ("growable-bloom-filter", |n, key_type| keyed(Growable::new(first_stage(n)), key_type)),
    ("datasketches", |n, key_type| {
        let filter = BloomFilterBuilder::with_accuracy(n, RATE).build();
        keyed(filter.expect("within its bounds"), key_type)
    }),
];

/// All peers.
pub(crate) fn all() -> Vec<Spec> {
    let filled = FILLED.map(|(name, make)| (name, Make::Empty(make)));
    // It mixes integer keys itself; mixing them first would only slow it down.
    let xorf = Make::Built { hash: |key| key, build: |keys| Box::new(Hashed(xorf(keys))) };
    let spec = |(name, make)| Spec { name, side: Side::Peer, batches: false, make };
    filled.into_iter().chain([("xorf BinaryFuse8", xorf)]).map(spec).collect()
}

fn fastbloom(n: u64) -> BloomFilter {
    BloomFilter::with_false_pos(RATE).seed(&7).expected_items(n as usize)
}

/// fastbloom's thread-safe filter.
pub(crate) fn fastbloom_atomic(n: u64) -> AtomicBloomFilter {
    AtomicBloomFilter::with_false_pos(RATE).seed(&7).expected_items(n as usize)
}

fn xorf(keys: &[u64]) -> BinaryFuse8 {
    BinaryFuse8::try_from(keys).expect("all keys are distinct")
}

fn scalable_cuckoo(n: u64, key_type: KeyType) -> Box<dyn Contender> {
    match key_type {
        KeyType::U64 => Box::new(Keyed::<_, u64>::new(ScalableCuckooFilter::new(n as usize, RATE))),
        KeyType::Strings => {
            Box::new(Keyed::<_, [u8]>::new(ScalableCuckooFilter::new(n as usize, RATE)))
        }
    }
}

fn bloomfilter(n: u64, key_type: KeyType) -> Box<dyn Contender> {
    fn make<K: ?Sized>(n: u64) -> bloomfilter::Bloom<K> {
        bloomfilter::Bloom::new_for_fp_rate_with_seed(n as usize, RATE, &SEED)
            .expect("within its bounds")
    }
    match key_type {
        KeyType::U64 => Box::new(Keyed::<_, u64>::new(make(n))),
        KeyType::Strings => Box::new(Keyed::<_, [u8]>::new(make(n))),
    }
}

impl ByHash for BloomFilter {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.num_bits() / 8
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert_hash(hash);
        true
    }
}

impl<K: Hash + ?Sized> ByKey<K> for BloomFilter {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.insert(key);
        true
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn size_in_bytes(&self) -> usize {
        self.num_bits() / 8
    }
}

/// Shared, so that each of two threads can have a handle.
impl ByHash for Arc<AtomicBloomFilter> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.as_ref().contains_hash(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.num_bits() / 8
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.as_ref().insert_hash(hash);
        true
    }
}

impl ByHash for qfilter::Filter {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_fingerprint(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.memory_usage()
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.insert_fingerprint(false, hash).is_ok()
    }
}

impl ByHash for BinaryFuse8 {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains(&hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.len()
    }

    #[inline]
    fn of_number(number: u64) -> u64 {
        number
    }
}

impl<K: Hash + ?Sized> ByKey<K> for CuckooFilter<DefaultHasher> {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.add(key).is_ok()
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn size_in_bytes(&self) -> usize {
        self.memory_usage()
    }
}

impl<K: Hash + ?Sized> ByKey<K> for ScalableCuckooFilter<K> {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.insert(key);
        true
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn size_in_bytes(&self) -> usize {
        self.bits().div_ceil(8) as usize
    }
}

impl<K: Hash + ?Sized> ByKey<K> for bloomfilter::Bloom<K> {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.set(key);
        true
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.check(key)
    }

    fn size_in_bytes(&self) -> usize {
        self.len().div_ceil(8) as usize
    }
}

impl<K: Hash + ?Sized> ByKey<K> for DataSketches {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.insert(key);
        true
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.contains(&key)
    }

    fn size_in_bytes(&self) -> usize {
        self.estimated_size()
    }
}

/// The growable filter with the capacity of its first stage, since it does not report its size.
struct Growable {
    filter: GrowableBloom,
    first_stage: u64,
}

impl Growable {
    fn new(first_stage: u64) -> Self {
        Self { filter: GrowableBloom::new(RATE, first_stage as usize), first_stage }
    }
}

impl<K: Hash + ?Sized> ByKey<K> for Growable {
    #[inline]
    fn insert_key(&mut self, key: &K) -> bool {
        self.filter.insert(key);
        true
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        self.filter.contains(key)
    }

    /// Computed from the formulas in its source (2.1.1): stage i has ceil(log2(1 / (rate · 0.85^i))) slices of capacity
    /// / ln 2 bits, and twice the capacity of the previous stage.
    fn size_in_bytes(&self) -> usize {
        let mut bits = 0.0;
        let (mut capacity, mut rate, mut left) =
            (self.first_stage as f64, RATE, self.filter.capacity() as f64);
        while left > 0.0 {
            bits += (1.0 / rate).log2().ceil() * (capacity / std::f64::consts::LN_2).ceil();
            left -= capacity;
            capacity *= 2.0;
            rate *= 0.85;
        }
        (bits / 8.0) as usize
    }
}
