//! Cuckoo and d-left filters for many threads.
//!
//! ```text
//!  hash ── low bits ──► [ shard ] ──► small filter, 16 KiB, never changed
//!                            └─────── replaced by a changed copy
//! ```
//!
//! Both kinds move or count fingerprints when they change, so a reader could look while one is being moved. Therefore a
//! filter is never changed in place: a writer copies the small filter that its key belongs to, changes the copy, and
//! swaps it for the original in one step. Readers see one or the other, and never wait. The copy takes about a
//! microsecond, in front of a store that takes many; the memory is that of one filter, where two copies that writers
//! change in turn (left-right) would take twice as much.
//!
//! The library takes a hash's place from its high bits and its fingerprint from a mixture of all, so the shard is
//! chosen by the low ones.
//!
//! **No put is ever refused.** A key for which its shard has no room goes to a small table of whole hashes next to it,
//! the spill, until the filter is rebuilt with more room.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use ironbloom::{
    Cuckoo, CuckooParams, DLeft, DLeftParams, Full, HashFn, ParamError, Persist, Remove,
};

use super::{Image, ImageError, ImageWriter, Maker, SharedFilter, check_hash, sealed, unsealed};
use crate::options::FilterSpec;

pub(crate) const CUCKOO: Maker = maker::<Cuckoo>();
pub(crate) const D_LEFT: Maker = maker::<DLeft>();

const fn maker<F: Sharded>() -> Maker {
    Maker {
        empty: |spec, capacity| Ok(Arc::new(Shards::<F>::new(capacity, spec.rate, spec.hash_fn)?)),
        from_image: |spec, capacity, image| {
            Ok(Arc::new(Shards::<F>::from_image(spec, capacity, image)?))
        },
        can_publish: false,
    }
}

/// Bytes of a shard: small enough to copy, and with enough keys that their number differs little from shard to shard.
const SHARD_BYTES: u64 = 16 << 10;

/// Maximum number of shards, which would be half a terabyte.
pub(crate) const MAX_SHARDS: u64 = 1 << 25;

/// A kind whose small filters make up a large one.
trait Sharded: Clone + Persist + Remove<Error = Full> + Send + Sync + 'static {
    fn with_rate(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError>;
    /// Bits of a filter for this many keys.
    fn bits_for(capacity: u64, rate: f64) -> Result<u64, ParamError>;
}

/// See the module documentation.
struct Shards<F> {
    shards: Box<[ArcSwap<Shard<F>>]>,
    capacity: u64,
    len: AtomicU64,
    spilled: AtomicU64,
}

#[derive(Clone)]
struct Shard<F> {
    filter: F,
    /// How many keys with a hash did not fit.
    spill: HashMap<u64, u32>,
}

impl<F: Sharded> Shard<F> {
    fn contains(&self, hash: u64) -> bool {
        self.filter.contains_hash(hash)
            || (!self.spill.is_empty() && self.spill.contains_key(&hash))
    }

    /// False if the key went to the spill.
    fn insert(&mut self, hash: u64) -> bool {
        let stored = self.filter.insert_hash(hash).is_ok();
        if !stored {
            self.spill_one(hash);
        }
        stored
    }

    fn spill_one(&mut self, hash: u64) {
        *self.spill.entry(hash).or_default() += 1;
    }

    /// The spill goes first: the fingerprint in the filter may be that of another key, which needs it. What the spill
    /// has is for exactly this hash, and keys with the same hash are interchangeable.
    fn remove(&mut self, hash: u64) -> bool {
        match self.spill.get_mut(&hash) {
            Some(1) => self.spill.remove(&hash).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
            None => self.filter.remove_hash(hash),
        }
    }
}

impl<F: Sharded> Shards<F> {
    /// An empty filter for this many keys.
    fn new(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        let bits = F::bits_for(capacity, rate)?;
        let count = bits.div_ceil(8 * SHARD_BYTES).max(1);
        // The number of keys in a shard is binomial: four standard deviations more than the mean, of which few shards
        // have more.
        let mean = capacity.div_ceil(count);
        let most = if count == 1 { mean } else { mean + 4 * (mean as f64).sqrt() as u64 };
        let empty = Shard { filter: F::with_rate(most, rate, hash_fn)?, spill: HashMap::new() };
        ensure_memory(count, empty.filter.size_in_bytes() as u64)?;
        // One empty shard is shared by all: each is copied when its first key arrives.
        let empty = Arc::new(empty);
        let shards = (0..count).map(|_| ArcSwap::new(empty.clone())).collect();
        Ok(Self { shards, capacity, len: AtomicU64::new(0), spilled: AtomicU64::new(0) })
    }

    #[inline]
    fn index(&self, hash: u64) -> usize {
        (((hash & u64::from(u32::MAX)) * self.shards.len() as u64) >> 32) as usize
    }

    fn from_image(spec: &FilterSpec, capacity: u64, image: &Image<'_>) -> Result<Self, ImageError> {
        let (filters, spill) = match image.parts.split_last() {
            Some((spill, filters)) if image.note > 0 => (filters, unsealed(spill, image.note)?),
            _ => (&image.parts[..], Vec::new()),
        };
        if filters.is_empty() {
            return Err(ImageError::PartCount(image.parts.len()));
        }
        let mut len = spill.len() as u64;
        let mut shards = Vec::with_capacity(filters.len());
        for (number, bytes) in filters.iter().enumerate() {
            let filter =
                F::from_bytes(bytes).map_err(|error| ImageError::Part { number, error })?;
            check_hash(spec, filter.hash_fn())?;
            len += filter.len();
            shards.push(ArcSwap::new(Arc::new(Shard { filter, spill: HashMap::new() })));
        }
        let spilled = AtomicU64::new(spill.len() as u64);
        let all = Self { shards: shards.into(), capacity, len: AtomicU64::new(len), spilled };
        for hash in spill {
            all.shards[all.index(hash)].rcu(|old| {
                let mut shard = Shard::clone(old);
                shard.spill_one(hash);
                shard
            });
        }
        Ok(all)
    }
}

impl<F: Sharded> SharedFilter for Shards<F> {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.shards[self.index(hash)].load().contains(hash)
    }

    fn insert(&self, hash: u64) -> bool {
        let mut looked_new = false;
        let mut stored = false;
        self.shards[self.index(hash)].rcu(|old| {
            let mut shard = Shard::clone(old);
            looked_new = !shard.contains(hash);
            stored = shard.insert(hash);
            shard
        });
        self.len.fetch_add(1, Ordering::Relaxed);
        self.spilled.fetch_add(u64::from(!stored), Ordering::Relaxed);
        looked_new
    }

    /// Sorts the hashes by shard, so that each shard is copied once.
    fn insert_many(&self, hashes: &mut [u64]) {
        hashes.sort_unstable_by_key(|&hash| hash as u32);
        for group in hashes.chunk_by(|&a, &b| self.index(a) == self.index(b)) {
            let mut stored = 0;
            self.shards[self.index(group[0])].rcu(|old| {
                let mut shard = Shard::clone(old);
                stored = group.iter().filter(|&&hash| shard.insert(hash)).count();
                shard
            });
            self.len.fetch_add(group.len() as u64, Ordering::Relaxed);
            self.spilled.fetch_add((group.len() - stored) as u64, Ordering::Relaxed);
        }
    }

    fn remove(&self, hash: u64) {
        let mut removed = false;
        self.shards[self.index(hash)].rcu(|old| {
            let mut shard = Shard::clone(old);
            removed = shard.remove(hash);
            shard
        });
        self.len.fetch_sub(u64::from(removed), Ordering::Relaxed);
    }

    fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    /// A full shard counts as well: most others are then full, too.
    fn is_over_capacity(&self) -> bool {
        self.len() > self.capacity || self.spilled.load(Ordering::Relaxed) > 0
    }

    fn size_in_bytes(&self) -> u64 {
        let shard = |shard: &ArcSwap<Shard<F>>| {
            let shard = shard.load();
            let spill = shard.spill.capacity() * size_of::<(u64, u32)>();
            (shard.filter.size_in_bytes() + spill + size_of::<Shard<F>>()) as u64
        };
        self.shards.iter().map(shard).sum()
    }

    /// The same shards, none of which will ever change.
    fn frozen(self: Arc<Self>) -> Arc<dyn SharedFilter> {
        Arc::new(Self {
            shards: self.shards.iter().map(|shard| ArcSwap::new(shard.load_full())).collect(),
            capacity: self.capacity,
            len: AtomicU64::new(self.len()),
            spilled: AtomicU64::new(self.spilled.load(Ordering::Relaxed)),
        })
    }

    /// The shards one by one, then the hashes of the spill, if there are any, as bytes.
    fn write_image(&self, out: &mut ImageWriter<'_>) -> io::Result<u64> {
        let mut spill = Vec::new();
        for shard in &self.shards {
            let shard = shard.load();
            out.filter(&shard.filter)?;
            for (hash, &count) in &shard.spill {
                spill.extend(std::iter::repeat_n(*hash, count as usize));
            }
        }
        let count = spill.len() as u64;
        if count > 0 {
            out.bytes(&sealed(spill))?;
        }
        Ok(count)
    }
}

/// The memory of all shards must be available, although it is allocated one by one: an impossible capacity is an error
/// when the guard is opened, not an abort when its keys arrive. What is allocated here is freed untouched.
fn ensure_memory(count: u64, bytes: u64) -> Result<(), ParamError> {
    let bytes = count.saturating_mul(bytes);
    let too_much = ParamError::Memory { bytes };
    if count > MAX_SHARDS {
        return Err(too_much);
    }
    let mut all = Vec::<u8>::new();
    all.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX)).map_err(|_| too_much)
}

impl Sharded for Cuckoo {
    fn with_rate(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        Self::new(CuckooParams::for_rate(capacity, rate)?, hash_fn)
    }

    fn bits_for(capacity: u64, rate: f64) -> Result<u64, ParamError> {
        Ok(CuckooParams::for_rate(capacity, rate)?.bits())
    }
}

impl Sharded for DLeft {
    fn with_rate(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        Self::new(DLeftParams::for_rate(capacity, rate)?, hash_fn)
    }

    fn bits_for(capacity: u64, rate: f64) -> Result<u64, ParamError> {
        Ok(DLeftParams::for_rate(capacity, rate)?.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard() -> Shard<Cuckoo> {
        let filter = <Cuckoo as Sharded>::with_rate(10, 0.1, HashFn::default()).unwrap();
        Shard { filter, spill: HashMap::new() }
    }

    /// Hashes that share their fingerprint and buckets.
    fn twins() -> [u64; 2] {
        let mut shard = shard();
        let first = HashFn::default().hash("first");
        shard.insert(first);
        let mut others = (0..100_000u32).map(|i| HashFn::default().hash(i.to_le_bytes()));
        [first, others.find(|&other| shard.filter.contains_hash(other)).unwrap()]
    }

    #[test]
    fn removing_a_spilled_key_takes_nothing_from_its_twin() {
        let [stored, spilled] = twins();
        let mut shard = shard();
        shard.insert(stored);
        shard.spill_one(spilled);
        shard.spill_one(spilled);
        assert!(shard.remove(spilled) && shard.contains(stored) && shard.contains(spilled));
        assert!(shard.remove(spilled) && shard.contains(stored));
        assert!(shard.spill.is_empty());
        assert!(shard.remove(stored) && !shard.contains(stored));
    }

    #[test]
    fn a_key_put_more_often_than_it_has_slots_is_spilled_and_comes_back() {
        let shards = Shards::<Cuckoo>::new(1000, 0.01, HashFn::default()).unwrap();
        let hash = HashFn::default().hash("again");
        (0..20).for_each(|_| assert!(shards.insert(hash) || shards.contains(hash)));
        assert!(shards.is_over_capacity() && shards.len() == 20);
        let mut bytes = Vec::new();
        let mut out = ImageWriter::new(&mut bytes);
        let note = shards.write_image(&mut out).unwrap();
        let lengths = out.finish().unwrap();
        assert_eq!((note, lengths.len()), (12, 2));
        let (filter, spill) = bytes.split_at(lengths[0] as usize);
        let spec = FilterSpec {
            kind: crate::GuardKind::Cuckoo,
            capacity: 1000,
            rate: 0.01,
            hash_fn: HashFn::default(),
        };
        let image = Image { parts: vec![filter, spill], note };
        let back = Shards::<Cuckoo>::from_image(&spec, 1000, &image).unwrap();
        assert_eq!((back.len(), back.is_over_capacity()), (20, true));
        for left in (0..20).rev() {
            assert!(back.contains(hash));
            back.remove(hash);
            assert_eq!(back.len(), left);
        }
        assert!(!back.contains(hash));
        let damaged = Image { parts: vec![filter, &spill[8..]], note };
        assert!(Shards::<Cuckoo>::from_image(&spec, 1000, &damaged).is_err());
    }

    #[test]
    fn shards_hold_their_keys_whichever_way_they_came() {
        let shards = Shards::<DLeft>::new(50_000, 0.01, HashFn::default()).unwrap();
        assert!(shards.shards.len() > 4, "{} shards", shards.shards.len());
        let mut hashes: Vec<u64> =
            (0..50_000u32).map(|i| HashFn::default().hash(i.to_le_bytes())).collect();
        let (many, single) = hashes.split_at_mut(40_000);
        shards.insert_many(many);
        single.iter().for_each(|&hash| assert!(shards.insert(hash) || shards.contains(hash)));
        assert!(hashes.iter().all(|&hash| shards.contains(hash)));
        assert_eq!((shards.len(), shards.is_over_capacity()), (50_000, false));
        hashes.iter().for_each(|&hash| shards.remove(hash));
        assert_eq!(shards.len(), 0);
    }
}
