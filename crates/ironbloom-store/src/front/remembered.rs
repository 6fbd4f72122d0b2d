//! Keys that looked stored and turned out not to be, so that they need not be looked up again.
//!
//! A lookup that the filter could not answer, and for which the store found nothing, was a false positive. Real lookups
//! repeat, so its hash is remembered here, beside the filter, and the next one is answered without the store. The memory
//! is bounded by half a bit for each key that the filter is planned for.
//!
//! **It never makes a stored key absent**, for these reasons:
//!
//! - An entry is a whole hash of 64 bits, the one by which the filter knows the key. No other hash matches it.
//! - It is made only where every write is seen: where nobody else writes to the store, or a follower hears of what others
//!   write and proves that it does.
//! - It is made at the gate of its key, and only if no put of its stripe has begun or ended since before the store was
//!   asked, none of this key is in progress, and the key is not in doubt. So none was in progress at any moment since,
//!   the store did not hold the key when it was asked, and no write since could have stored it.
//! - A put that begins, and a note, remove it at the same gate before the store is written to.
//! - Whatever makes the filter worthless (others have written, the store was exchanged, a follower is deaf) forgets all,
//!   and so does a filter that was built from a scan: it may know what nobody has told. A lookup that had asked the store
//!   before that remembers nothing.
//!
//! Forgetting is always allowed, so a full place simply loses an entry that was not asked for lately.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Entries that share a place: two cache lines.
const PLACES: usize = 16;
/// Keys of the capacity for each entry: sixteen take 136 bytes, 68 bits each, so that half a bit is left for a key.
const KEYS_PER_ENTRY: u64 = 2 * 68;
const MOST_ENTRIES: u64 = 1 << 24;

pub(super) struct Remembered {
    buckets: Box<[Bucket]>,
    len: AtomicU64,
    /// Held while changing the hashes. One is enough: whoever inserts has asked the store before.
    changing: Mutex<()>,
}

/// Hashes, zero where there is none, and which of them were asked for lately.
#[derive(Default)]
struct Bucket {
    hashes: [AtomicU64; PLACES],
    recent: AtomicU16,
}

impl Remembered {
    /// For a filter that is planned for this many keys.
    pub(super) fn new(capacity: u64) -> Self {
        let entries = (capacity / KEYS_PER_ENTRY).clamp(PLACES as u64, MOST_ENTRIES);
        let buckets = entries / PLACES as u64; // at least one
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            len: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &Bucket {
        let place = (u128::from(hash.rotate_left(32)) * self.buckets.len() as u128) >> 64;
        &self.buckets[place as usize]
    }

    #[inline]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let bucket = self.bucket(hash);
        let found = bucket.place_of(hash).filter(|_| hash != 0);
        if let Some(place) = found {
            bucket.recent.fetch_or(1 << place, Ordering::Relaxed);
        }
        found.is_some()
    }

    /// The caller holds the gate of the hash.
    pub(super) fn insert(&self, hash: u64) {
        let bucket = self.bucket(hash);
        let _changing = self.change();
        if hash == 0 || bucket.place_of(hash).is_some() {
            return;
        }
        let place = bucket.place_of(0).unwrap_or_else(|| bucket.oldest(hash));
        let before = bucket.hashes[place].swap(hash, Ordering::AcqRel);
        self.len.fetch_add(u64::from(before == 0), Ordering::Relaxed);
    }

    /// The caller holds the gate of the hash.
    pub(super) fn forget(&self, hash: u64) {
        let bucket = self.bucket(hash);
        if bucket.place_of(hash).is_none() || hash == 0 {
            return;
        }
        let _changing = self.change();
        if let Some(place) = bucket.place_of(hash) {
            bucket.hashes[place].store(0, Ordering::Release);
            self.len.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn forget_all(&self) {
        let _changing = self.change();
        for bucket in &self.buckets {
            for hash in &bucket.hashes {
                let before = hash.swap(0, Ordering::AcqRel);
                self.len.fetch_sub(u64::from(before != 0), Ordering::Relaxed);
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn size_in_bytes(&self) -> u64 {
        (self.buckets.len() * size_of::<Bucket>()) as u64
    }
}

impl Bucket {
    #[inline]
    fn place_of(&self, hash: u64) -> Option<usize> {
        self.hashes.iter().position(|kept| kept.load(Ordering::Acquire) == hash)
    }

    /// A place that was not asked for lately; the hash picks the first one that is looked at. If all were, all become
    /// old.
    fn oldest(&self, hash: u64) -> usize {
        let recent = self.recent.load(Ordering::Relaxed);
        let first = hash as usize % PLACES;
        let old =
            (0..PLACES).map(|i| (first + i) % PLACES).find(|place| recent & (1 << place) == 0);
        if old.is_none() {
            self.recent.store(0, Ordering::Relaxed);
        }
        old.unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_whole_hashes_and_bounded() {
        let remembered = Remembered::new(100_000);
        let hash = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..100_000).for_each(|i| remembered.insert(hash(i)));
        assert!(remembered.len() > 500 && remembered.len() * KEYS_PER_ENTRY <= 101_000);
        assert!(8 * remembered.size_in_bytes() <= 100_000, "a bit for each key at most");
        assert!(!(0..100_000).any(|i| remembered.contains(hash(i) ^ 1)));
        let known: Vec<u64> = (0..100_000).map(hash).filter(|&h| remembered.contains(h)).collect();
        assert_eq!(known.len() as u64, remembered.len());
        known.iter().for_each(|&hash| remembered.forget(hash));
        assert!(remembered.len() == 0 && !known.iter().any(|&hash| remembered.contains(hash)));
        remembered.insert(7);
        remembered.forget_all();
        assert!(!remembered.contains(7) && remembered.len() == 0);
    }

    #[test]
    fn what_is_asked_for_stays() {
        let remembered = Remembered::new(1);
        remembered.insert(3);
        for i in 100..1000 {
            assert!(remembered.contains(3), "after {i}");
            remembered.insert(i);
        }
    }
}
