//! Any sequence of operations on any kind of small filter, beside an exact list of the keys that must be in it.
#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use ironbloom::any::{AnyFilter, Refused};
use ironbloom::hash::mix64;
use ironbloom::*;
use ironbloom_fuzz::{found, survives_its_file};
use libfuzzer_sys::fuzz_target;

/// A few keys, so that they meet, or any hash at all.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Key {
    Few(u8),
    Hash(u64),
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert(Key),
    InsertMany(Vec<u8>),
    Remove(Key),
    Union(Vec<u8>),
    Intersect(Vec<u8>),
    SaveAndLoad,
    Wait { seconds: u8 },
}

#[derive(Arbitrary, Debug)]
enum Shape {
    Bitmap,
    Bloom { segmented: bool, scheme: u8 },
    TinyBloom { bits: u8, probes: u8, scheme: u8 },
    Blocked,
    SplitBlock,
    Counting,
    TinyCounting { bits: u8, probes: u8 },
    DLeft { remainder_bits: Option<u8> },
    Cuckoo { packed: bool, fingerprint_bits: Option<u8> },
    Fuse { four: bool, keys: Vec<u8> },
    Scalable { blocked: bool, growth: u8, tightening: u8 },
    Windowed { span: Option<u8> },
}

#[derive(Arbitrary, Debug)]
struct Input {
    shape: Shape,
    capacity: u8,
    /// A rate of this many 256ths.
    rate: u8,
    operations: Vec<Operation>,
}

const HASH: HashFn = HashFn::External { id: 0 };

fn make(shape: &Shape, capacity: u64, rate: f64) -> Result<AnyFilter, ParamError> {
    let scheme = |number: u8| Scheme::ALL[usize::from(number) % Scheme::ALL.len()];
    Ok(match *shape {
        Shape::Bitmap => AnyFilter::Bitmap(Bitmap::new(capacity)?),
        Shape::Bloom { segmented, scheme: number } => {
            let params = BloomParams::for_rate(capacity, rate)?;
            let params = if segmented { params.segmented() } else { params };
            AnyFilter::Bloom(Bloom::new(params.with_scheme(scheme(number))?, HASH)?)
        }
        Shape::TinyBloom { bits, probes, scheme: number } => {
            let params = BloomParams::for_bits(bits.into(), probes.into())?;
            AnyFilter::Bloom(Bloom::new(params.with_scheme(scheme(number))?, HASH)?)
        }
        Shape::Blocked => AnyFilter::Blocked(BlockedBloom::with_rate(capacity, rate)?),
        Shape::SplitBlock => AnyFilter::SplitBlock(SplitBlock::with_rate(capacity, rate)?),
        Shape::Counting => AnyFilter::Counting(CountingBloom::with_rate(capacity, rate)?),
        Shape::TinyCounting { bits, probes } => {
            let params = BloomParams::for_bits(bits.into(), probes.into())?;
            AnyFilter::Counting(CountingBloom::new(params, HASH)?)
        }
        Shape::DLeft { remainder_bits } => {
            let params = match remainder_bits {
                Some(bits) => DLeftParams::with_remainder_bits(capacity, bits.into())?,
                None => DLeftParams::for_rate(capacity, rate)?,
            };
            AnyFilter::DLeft(DLeft::new(params, HASH)?)
        }
        Shape::Cuckoo { packed, fingerprint_bits } => {
            let layout = if packed { CuckooLayout::Packed } else { CuckooLayout::Plain };
            let params = match fingerprint_bits {
                Some(bits) => CuckooParams::with_fingerprint(capacity, bits.into(), layout)?,
                None if packed => CuckooParams::packed_for_rate(capacity, rate)?,
                None => CuckooParams::for_rate(capacity, rate)?,
            };
            AnyFilter::Cuckoo(Cuckoo::new(params, HASH)?)
        }
        Shape::Fuse { four, ref keys } => {
            let arity = if four { Arity::Four } else { Arity::Three };
            let hashes: Vec<u64> = keys.iter().map(|&key| mix64(key.into())).collect();
            let params = FuseParams::for_rate(rate)?.with_arity(arity);
            AnyFilter::Fuse(BinaryFuse::from_hashes(&hashes, params, HASH)?)
        }
        Shape::Scalable { blocked, growth, tightening } => {
            let kind = if blocked { StageKind::Blocked } else { StageKind::Bloom };
            let params = ScalableParams::new(capacity, rate)?
                .with_growth(growth.into())?
                .with_tightening(f64::from(tightening) / 256.0)?;
            AnyFilter::Scalable(Scalable::new(params.with_stages_of(kind), HASH)?)
        }
        Shape::Windowed { span: None } => AnyFilter::Windowed(Windowed::for_keys(capacity, rate)?),
        Shape::Windowed { span: Some(span) } => {
            let span = Duration::from_secs(span.into());
            let mut filter = Windowed::for_time(span, capacity, rate)?;
            filter.advance_to(Duration::ZERO);
            AnyFilter::Windowed(filter)
        }
    })
}

/// A filter, and what must be in it.
struct Pair {
    filter: AnyFilter,
    empty: AnyFilter,
    now: Duration,
    /// Every insert that is not removed, oldest first, with its time.
    live: Vec<(u64, Duration)>,
}

impl Pair {
    fn hash(&self, key: Key) -> u64 {
        match (key, &self.filter) {
            (Key::Few(key), AnyFilter::Bitmap(_)) => key.into(),
            (Key::Few(key), _) => mix64(key.into()),
            (Key::Hash(hash), AnyFilter::Bitmap(_)) => hash,
            // Hashes must be uniform, which filters check in debug builds; the ends of the range may occur among them.
            (Key::Hash(0), _) => 0,
            (Key::Hash(1), _) => u64::MAX,
            (Key::Hash(hash), _) => mix64(hash),
        }
    }

    fn hashes(&self, keys: &[u8]) -> Vec<u64> {
        keys.iter().map(|&key| self.hash(Key::Few(key))).collect()
    }

    fn has(&self, hash: u64) -> bool {
        self.live.iter().any(|&(live, _)| live == hash)
    }

    /// A bitmap is a set; all others are taken for multisets.
    fn remember(&mut self, hash: u64) {
        if !matches!(self.filter, AnyFilter::Bitmap(_)) || !self.has(hash) {
            self.live.push((hash, self.now));
        }
        if let AnyFilter::Windowed(filter) = &self.filter
            && filter.params().span().is_none()
        {
            let surplus = self.live.len().saturating_sub(filter.params().capacity() as usize);
            self.live.drain(..surplus);
        }
    }

    fn insert(&mut self, hash: u64) {
        let before = self.filter.clone();
        match self.filter.insert_hashes(&[hash]) {
            Ok(()) => self.remember(hash),
            Err(_) => assert_eq!(self.filter, before, "a refused insert changes something"),
        }
    }

    fn remove(&mut self, hash: u64) {
        let before = self.filter.clone();
        let position = self.live.iter().position(|&(live, _)| live == hash);
        if position.is_none() && self.filter.contains_hash(hash) {
            return; // a key that was never inserted must not be removed
        }
        match self.filter.remove_hash(hash) {
            Ok(removed) => assert_eq!(removed, position.is_some()),
            Err(Refused::Unsupported { .. } | Refused::OutOfBounds(_)) => {
                assert_eq!(self.filter, before, "a refused removal changes something");
                return;
            }
            Err(error) => panic!("{error}"),
        }
        match position {
            Some(position) => drop(self.live.remove(position)),
            None => assert_eq!(self.filter, before, "removing an absent key changes something"),
        }
    }

    /// A filter of the same shape with those of the hashes that it took.
    fn other(&self, hashes: &[u64]) -> (AnyFilter, Vec<u64>) {
        let mut other = self.empty.clone();
        let taken = hashes.iter().copied().filter(|&h| other.insert_hashes(&[h]).is_ok()).collect();
        (other, taken)
    }

    fn combine(&mut self, operation: &Operation) {
        let before = self.filter.clone();
        let outcome = match operation {
            Operation::Union(keys) => {
                let (other, taken) = self.other(&self.hashes(keys));
                let outcome = self.filter.union_with(&other);
                if outcome.is_ok() {
                    taken.into_iter().for_each(|hash| self.remember(hash));
                }
                outcome
            }
            Operation::Intersect(keys) => {
                let (other, taken) = self.other(&self.hashes(keys));
                let outcome = self.filter.intersect_with(&other);
                if outcome.is_ok() {
                    self.live.retain(|(hash, _)| taken.contains(hash));
                }
                outcome
            }
            _ => return,
        };
        if outcome.is_err() {
            assert_eq!(self.filter, before, "a refused operation changes something");
        }
    }

    fn wait(&mut self, seconds: u8) {
        let AnyFilter::Windowed(filter) = &mut self.filter else { return };
        let Some(span) = filter.params().span() else { return };
        self.now += Duration::from_secs(seconds.into());
        filter.advance_to(self.now);
        self.live.retain(|&(_, time)| self.now - time <= span);
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(key) => self.insert(self.hash(*key)),
            Operation::InsertMany(keys) => {
                self.hashes(keys).into_iter().for_each(|hash| self.insert(hash));
            }
            Operation::Remove(key) => self.remove(self.hash(*key)),
            Operation::Union(_) | Operation::Intersect(_) => self.combine(operation),
            Operation::SaveAndLoad => {
                survives_its_file(&self.filter);
                self.filter = AnyFilter::from_bytes(&self.filter.to_bytes()).unwrap();
            }
            Operation::Wait { seconds } => self.wait(*seconds),
        }
    }

    fn check(&self) {
        let hashes: Vec<u64> = self.live.iter().map(|&(hash, _)| hash).collect();
        assert_eq!(found(&self.filter, &hashes).len(), hashes.len(), "a key was lost");
        if let AnyFilter::Bitmap(bitmap) = &self.filter {
            let mut members = hashes;
            members.sort_unstable();
            assert!(bitmap.iter().eq(members.iter().copied()), "a bitmap is not exact");
            assert_eq!(bitmap.len(), members.len() as u64);
        }
    }
}

fuzz_target!(|input: Input| {
    let rate = f64::from(input.rate) / 256.0;
    let Ok(filter) = make(&input.shape, input.capacity.into(), rate) else { return };
    let empty = filter.clone();
    let mut pair = Pair { filter, empty, now: Duration::ZERO, live: Vec::new() };
    if let Shape::Fuse { keys, .. } = &input.shape {
        pair.hashes(keys).into_iter().for_each(|hash| pair.remember(hash));
    }
    for operation in &input.operations {
        pair.apply(operation);
        pair.check();
    }
});
