//! Our filter kinds.

use std::sync::Arc;

use ironbloom::atomic::{Atomic, Layout};
use ironbloom::{
    Arity, AtomicBlockedBloom, AtomicBloom, BinaryFuse, BlockedBloom, Bloom, CountingBloom, Cuckoo,
    CuckooParams, DLeft, FuseParams, HashFn, Insert, ParamError, Scalable, SplitBlock, Windowed,
};

use crate::contender::{ByHash, Contender, Hashed, Make, MakeEmpty, RATE, Side, Spec};

/// Kinds that are created empty and then filled.
const FILLED: [(&str, MakeEmpty); 11] = [
    ("BlockedBloom", |n, _| empty(BlockedBloom::with_rate(n, RATE))),
    ("SplitBlock", |n, _| empty(SplitBlock::with_rate(n, RATE))),
    ("AtomicBlockedBloom", |n, _| ready(AtomicBlockedBloom::with_rate(n, RATE).map(Arc::new))),
    ("Bloom", |n, _| empty(Bloom::with_rate(n, RATE))),
    ("AtomicBloom", |n, _| ready(AtomicBloom::with_rate(n, RATE).map(Arc::new))),
    ("CountingBloom", |n, _| empty(CountingBloom::with_rate(n, RATE))),
    ("DLeft", |n, _| empty(DLeft::with_rate(n, RATE))),
    ("Cuckoo", |n, _| empty(Cuckoo::with_rate(n, RATE))),
    ("Cuckoo packed", |n, _| {
        let params = CuckooParams::packed_for_rate(n, RATE);
        empty(params.and_then(|params| Cuckoo::new(params, HashFn::default())))
    }),
    ("Scalable", |n, _| empty(Scalable::with_rate(first_stage(n), RATE))),
    ("Windowed", |n, _| empty(Windowed::for_keys(n, RATE))),
];

/// Our contenders.
pub(crate) fn all() -> Vec<Spec> {
    let filled = FILLED.map(|(name, make)| (name, Make::Empty(make)));
    let built = [
        ("BinaryFuse 3", built(|hashes| fuse(hashes, FuseParams::for_rate(RATE)))),
        ("BinaryFuse 3, 8 bits", built(|hashes| fuse(hashes, FuseParams::new(8, Arity::Three)))),
        ("BinaryFuse 4", built(|hashes| fuse(hashes, four()))),
    ];
    let spec = |(name, make)| Spec { name, side: Side::Ours, batches: true, make };
    filled.into_iter().chain(built).map(spec).collect()
}

/// Capacity of the first of five stages, each twice as large as the previous, that hold `n` keys:
/// growth is part of the measurement, and no stage is left half empty.
pub(crate) fn first_stage(n: u64) -> u64 {
    n.div_ceil(31)
}

/// A fuse filter mixes its input, as xorf does, so integers are passed as they are.
fn built(build: fn(&[u64]) -> Box<dyn Contender>) -> Make {
    Make::Built { hash: |number| number, build }
}

fn four() -> Result<FuseParams, ParamError> {
    FuseParams::for_rate(RATE).map(|params| params.with_arity(Arity::Four))
}

fn fuse(hashes: &[u64], params: Result<FuseParams, ParamError>) -> Box<dyn Contender> {
    ready(params.and_then(|params| BinaryFuse::from_hashes(hashes, params, HashFn::default())))
}

/// An empty filter of a kind that takes keys.
fn empty<F: Insert + 'static>(filter: Result<F, ParamError>) -> Box<dyn Contender> {
    ready(filter.map(Ours))
}

fn ready<F: ByHash + 'static, E: std::fmt::Display>(filter: Result<F, E>) -> Box<dyn Contender> {
    match filter {
        Ok(filter) => Box::new(Hashed(filter)),
        Err(error) => panic!("no filter to measure: {error}"),
    }
}

/// A kind that takes keys, used through the library's own trait.
struct Ours<F>(F);

impl<F: Insert> ByHash for Ours<F> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.0.insert_hash(hash).is_ok()
    }

    fn insert_hashes(&mut self, hashes: &[u64]) -> bool {
        self.0.insert_hashes(hashes).is_ok()
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.0.contains_hashes(hashes, found);
    }
}

impl ByHash for BinaryFuse {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.size_in_bytes()
    }

    #[inline]
    fn of_number(number: u64) -> u64 {
        number
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_hashes(hashes, found);
    }
}

/// Shared, so that each of two threads can have a handle.
impl<P: Layout> ByHash for Arc<Atomic<P>> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.as_ref().contains_hash(hash)
    }

    fn size_in_bytes(&self) -> usize {
        self.as_ref().size_in_bytes()
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.as_ref().insert_hash(hash);
        true
    }

    fn insert_hashes(&mut self, hashes: &[u64]) -> bool {
        self.as_ref().insert_hashes(hashes);
        true
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.as_ref().contains_hashes(hashes, found);
    }
}
