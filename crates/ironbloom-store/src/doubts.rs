//! Keys for which it is unknown whether they were, or will be, stored.
//!
//! A put that ended with an error, a panic or a dropped future may have been written, or may be written later: a server
//! can still have it in its queue when the client has given up. A scan that runs before the write takes effect does not
//! see it, so a filter built from that scan would answer "absent" for a stored key. Such a key is therefore remembered
//! *outside* the filter, and stays when the filter is replaced; checkpoints save it.
//!
//! They are remembered in a Bloom filter of fixed size, created at the first doubt. That bounds the memory: a doubt is
//! never forgotten, and if there are more of them than planned, more keys look doubtful, in the end all of them. Then
//! every lookup goes to the store, which is slow but correct.
//!
//! A doubt ends when a scan starts after the last moment its write could take effect. Only the store or its user can
//! say how long that is ([`Backend::lands_within`](crate::Backend::lands_within),
//! [`Options::lands_within`](crate::Options::lands_within)). If neither does, it never ends.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ironbloom::{
    AtomicBlockedBloom, BlockedBloom, BlockedBloomParams, DecodeError, HashFn, Persist,
};

/// Planned number of doubts, and the fraction of other keys that then look doubtful: half a megabyte.
const CAPACITY: u64 = 1 << 18;
const RATE: f64 = 0.001;

/// See the module documentation.
pub(crate) struct Doubts {
    hash_fn: HashFn,
    /// Whether every key is in doubt, because it is not known which are.
    everything: bool,
    filter: OnceLock<AtomicBlockedBloom>,
    count: AtomicU64,
    last: Mutex<Option<Instant>>,
}

/// Why bytes are not these doubts.
#[derive(Debug)]
#[expect(dead_code, reason = "shown when a test fails")]
pub(crate) enum DoubtsError {
    Filter(DecodeError),
    /// The keys were hashed by another function.
    OtherHash,
}

impl Doubts {
    /// No doubts yet, for keys hashed with this function.
    pub(crate) fn new(hash_fn: HashFn) -> Self {
        let (filter, count, last) = (OnceLock::new(), AtomicU64::new(0), Mutex::new(None));
        Self { hash_fn, everything: false, filter, count, last }
    }

    /// Every key, from now on: what was in doubt cannot be read.
    pub(crate) fn everything(hash_fn: HashFn) -> Self {
        let last = Mutex::new(Some(Instant::now()));
        Self { everything: true, last, ..Self::new(hash_fn) }
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.everything
    }

    /// True if no key is in doubt.
    pub(crate) fn is_empty(&self) -> bool {
        !self.everything && self.len() == 0
    }

    /// No write that is in doubt now can take effect any more.
    pub(crate) fn settle(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn hash_fn(&self) -> HashFn {
        self.hash_fn
    }

    /// Might this key be in doubt?
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.everything || self.filter.get().is_some_and(|filter| filter.contains_hash(hash))
    }

    /// The write of this key may take effect from now on, or may have done so.
    pub(crate) fn insert(&self, hash: u64) {
        self.filter.get_or_init(|| empty(self.hash_fn)).insert_hash(hash);
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// How many there were; a key may be among them several times.
    pub(crate) fn len(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// True if no write can take effect any more, provided that each does so within this time or never.
    pub(crate) fn are_over(&self, lands_within: Option<Duration>) -> bool {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match (last, lands_within) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(last), Some(time)) => last.elapsed() >= time,
        }
    }

    /// The bytes of a `.ibf` file of these doubts and of writes that are in progress; none if there are neither.
    pub(crate) fn to_bytes(&self, under_way: &[u64]) -> Vec<u8> {
        if self.filter.get().is_none() && under_way.is_empty() {
            return Vec::new();
        }
        let mut copy = match self.filter.get() {
            Some(filter) => filter.snapshot(),
            None => empty(self.hash_fn).into(),
        };
        copy.insert_hashes(under_way);
        copy.to_bytes()
    }

    /// From what [`to_bytes`](Self::to_bytes) has made. They count as new, since their age is unknown.
    pub(crate) fn from_bytes(bytes: &[u8], hash_fn: HashFn) -> Result<Self, DoubtsError> {
        let doubts = Self::new(hash_fn);
        if bytes.is_empty() {
            return Ok(doubts);
        }
        let filter = BlockedBloom::from_bytes(bytes).map_err(DoubtsError::Filter)?;
        if filter.hash_fn() != hash_fn {
            return Err(DoubtsError::OtherHash);
        }
        *doubts.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        doubts.count.store(filter.len(), Ordering::Relaxed);
        let _ = doubts.filter.set(filter.into());
        Ok(doubts)
    }
}

/// # Panics
///
/// If half a megabyte cannot be allocated: continuing without it would give a wrong answer.
fn empty(hash_fn: HashFn) -> AtomicBlockedBloom {
    let params = BlockedBloomParams::for_rate(CAPACITY, RATE).expect("a valid rate");
    AtomicBlockedBloom::new(params, hash_fn).expect("memory for keys in doubt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u32, to: u32) -> impl Iterator<Item = u64> {
        (from..to).map(|i| HashFn::default().hash(i.to_le_bytes()))
    }

    #[test]
    fn more_doubts_than_planned_for_are_all_kept() {
        let doubts = Doubts::new(HashFn::default());
        assert!(!hashes(0, 1000).any(|hash| doubts.contains(hash)));
        let many = 4 * CAPACITY as u32;
        hashes(0, many).for_each(|hash| doubts.insert(hash));
        assert!(hashes(0, many).all(|hash| doubts.contains(hash)));
        let back = Doubts::from_bytes(&doubts.to_bytes(&[1]), HashFn::default()).unwrap();
        assert!(hashes(0, many).all(|hash| back.contains(hash)) && back.contains(1));
    }

    #[test]
    fn few_doubts_make_few_others_doubtful() {
        let doubts = Doubts::new(HashFn::default());
        hashes(0, CAPACITY as u32).for_each(|hash| doubts.insert(hash));
        let others =
            hashes(1 << 24, (1 << 24) + 100_000).filter(|&hash| doubts.contains(hash)).count();
        // 100 are expected, and six standard deviations are 60.
        assert!(others <= 160, "{others} of 100,000");
    }

    #[test]
    fn a_doubt_is_over_only_when_its_time_is() {
        let doubts = Doubts::new(HashFn::default());
        assert!(doubts.are_over(None) && doubts.to_bytes(&[]).is_empty());
        doubts.insert(1);
        assert!(!doubts.are_over(None));
        assert!(!doubts.are_over(Some(Duration::from_secs(100_000))));
        assert!(doubts.are_over(Some(Duration::ZERO)));
        let back = Doubts::from_bytes(&doubts.to_bytes(&[]), HashFn::default()).unwrap();
        assert!(!back.are_over(None) && back.len() == 1);
        assert!(Doubts::from_bytes(&[1, 2, 3], HashFn::default()).is_err());
    }
}
