//! Deduplication: tells which keys come for the first time. A few exact hashes first, then a filter that grows; or a
//! window.
//!
//! ```
//! use ironbloom::dedup::Deduplicator;
//!
//! let mut seen = Deduplicator::of_all(1e-6)?;                  // the rate at which a new key is taken for a known one
//! let hashes = ["a", "b", "a"].map(|key| seen.hash_fn().hash(key));
//! let mut new = [false; 3];
//! seen.insert_each(&hashes, &mut new)?;
//! assert_eq!(new, [true, true, false]);
//! # Ok::<(), ironbloom::ParamError>(())
//! ```
//!
//! Repeated keys are dropped, so an adversary must not know which new key is mistaken for a known one: keys are hashed
//! under a random key, which the saved state contains, unless the caller chooses a function.
//!
//! A filter made for a million keys suits large inputs, where there are few stages to query, and is wasteful for three
//! keys. So the first keys are kept exactly. A filter is created once there are many keys, or when the state is saved,
//! in the size that they need.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use crate::any::AnyFilter;
use crate::error::ParamError;
use crate::hash::{HashFn, KeyTypes};
use crate::{Scalable, ScalableParams, StageKind, Windowed, WindowedParams};

/// Capacity of the first stage for large inputs, and the growth of each later one: few stages to query.
const FIRST_STAGE: u64 = 1_000_000;
const GROWTH: u64 = 4;

/// Number of keys kept exactly, in less memory than a filter of [`FIRST_STAGE`].
const MAX_EXACT: u64 = FIRST_STAGE / GROWTH;

/// The smallest first stage of a saved state, about 9 KB. Its stages grow to match those of large inputs.
const MIN_STAGE: u64 = FIRST_STAGE / GROWTH.pow(5);

/// The first stage of a state with this many keys, from which stages grow to [`FIRST_STAGE`].
fn first_stage(keys: u64) -> u64 {
    let mut stage = FIRST_STAGE;
    while stage / GROWTH >= keys.max(MIN_STAGE) {
        stage /= GROWTH;
    }
    stage
}

fn params(first_stage: u64, rate: f64) -> Result<ScalableParams, ParamError> {
    let params = ScalableParams::new(first_stage, rate)?;
    Ok(params.with_growth(GROWTH)?.with_stages_of(StageKind::Blocked))
}

/// A hasher for a set of hashes, which need not be hashed again.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// An exact set of hashes.
#[derive(Debug)]
struct Exact {
    rate: f64,
    hash_fn: HashFn,
    types: KeyTypes,
    seen: HashSet<u64, BuildHasherDefault<Identity>>,
    in_order: Vec<u64>,
}

impl Exact {
    fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) {
        for (&hash, new) in hashes.iter().zip(new) {
            *new = self.seen.insert(hash);
            if *new {
                self.in_order.push(hash);
            }
        }
    }

    /// Converts the keys to a filter that grows.
    fn to_filter(&self, first_stage: u64) -> Result<Scalable, ParamError> {
        let mut filter = Scalable::new(params(first_stage, self.rate)?, self.hash_fn)?;
        filter.note_keys(self.types);
        filter.insert_hashes(&self.in_order)?;
        Ok(filter)
    }
}

#[derive(Debug)]
enum Memory {
    Exact(Exact),
    All(Scalable),
    Window(Windowed),
}

/// Remembers keys by their hashes. See the module documentation.
#[derive(Debug)]
pub struct Deduplicator(Memory);

impl Deduplicator {
    /// Remembers all keys. A new key is mistaken for a known one at this rate; which one is unpredictable.
    ///
    /// # Errors
    ///
    /// [`ParamError`] if no filter can reach the rate.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn of_all(rate: f64) -> Result<Self, ParamError> {
        Self::of_all_with(rate, HashFn::random())
    }

    /// Like [`of_all`](Self::of_all), for keys hashed with this function.
    ///
    /// # Errors
    ///
    /// Same as [`of_all`](Self::of_all).
    pub fn of_all_with(rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        params(FIRST_STAGE, rate)?; // fails now rather than after many keys
        let (seen, in_order, types) = (HashSet::default(), Vec::new(), KeyTypes::NONE);
        Ok(Self(Memory::Exact(Exact { rate, hash_fn, types, seen, in_order })))
    }

    /// Remembers the last `keys` keys.
    ///
    /// # Errors
    ///
    /// [`ParamError`] if no filter holds that many at this rate.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn of_window(keys: u64, rate: f64) -> Result<Self, ParamError> {
        Self::of_window_with(keys, rate, HashFn::random())
    }

    /// Like [`of_window`](Self::of_window), for keys hashed with this function.
    ///
    /// # Errors
    ///
    /// Same as [`of_window`](Self::of_window).
    pub fn of_window_with(keys: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        let params = WindowedParams::for_keys(keys, rate)?;
        Ok(Self(Memory::Window(Windowed::new(params, hash_fn)?)))
    }

    /// Records the types of keys whose hashes are inserted next: see [`KeyTypes`].
    pub fn note_keys(&mut self, types: KeyTypes) {
        match &mut self.0 {
            Memory::Exact(exact) => exact.types = exact.types.union(types),
            Memory::All(filter) => filter.note_keys(types),
            Memory::Window(filter) => filter.note_keys(types),
        }
    }

    /// Continues from a filter of [`into_filter`](Self::into_filter). Other kinds are handed back.
    pub fn from_filter(filter: AnyFilter) -> Result<Self, Box<AnyFilter>> {
        match filter {
            AnyFilter::Scalable(filter) => Ok(Self(Memory::All(filter))),
            AnyFilter::Windowed(filter) => Ok(Self(Memory::Window(filter))),
            other => Err(Box::new(other)),
        }
    }

    /// The hash function of the keys.
    pub fn hash_fn(&self) -> HashFn {
        match &self.0 {
            Memory::Exact(exact) => exact.hash_fn,
            Memory::All(filter) => filter.hash_fn(),
            Memory::Window(filter) => filter.hash_fn(),
        }
    }

    /// Inserts keys in order; sets `new[i]` to whether `hashes[i]` came for the first time.
    ///
    /// # Errors
    ///
    /// [`ParamError::Memory`] if the filter cannot grow.
    pub fn insert_each(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<(), ParamError> {
        match &mut self.0 {
            Memory::Exact(exact) => {
                exact.insert_each(hashes, new);
                if exact.in_order.len() as u64 > MAX_EXACT {
                    self.0 = Memory::All(exact.to_filter(FIRST_STAGE)?);
                }
                Ok(())
            }
            Memory::All(filter) => filter.insert_each(hashes, new),
            Memory::Window(filter) => {
                filter.insert_each(hashes, new);
                Ok(())
            }
        }
    }

    /// Returns the filter to be saved.
    ///
    /// # Errors
    ///
    /// [`ParamError::Memory`] if it cannot be created.
    pub fn into_filter(self) -> Result<AnyFilter, ParamError> {
        Ok(match self.0 {
            Memory::Exact(exact) => {
                let stage = first_stage(exact.in_order.len() as u64);
                AnyFilter::Scalable(exact.to_filter(stage)?)
            }
            Memory::All(filter) => AnyFilter::Scalable(filter),
            Memory::Window(filter) => AnyFilter::Windowed(filter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stage_holds_the_keys_and_leads_to_the_stages_of_large_inputs() {
        for keys in [0, 1, 3, 976, 977, 5_000, 60_000, 250_000, 250_001] {
            let stage = first_stage(keys);
            assert!(stage >= keys && (MIN_STAGE..=FIRST_STAGE).contains(&stage), "{keys}: {stage}");
            assert!(stage / GROWTH < keys.max(MIN_STAGE), "{keys}: {stage} is too large");
        }
    }

    #[test]
    fn few_keys_and_many_are_told_apart_alike() {
        let mut seen = Deduplicator::of_all(1e-6).unwrap();
        let hash_fn = seen.hash_fn();
        let hash = |i: u64| hash_fn.hash(i.to_le_bytes());
        let mut distinct = 0;
        // Each key twice, across the boundary between the two.
        for block in 0..40u64 {
            let hashes: Vec<u64> = (block * 8_000..block * 8_000 + 16_000).map(hash).collect();
            let mut new = vec![false; hashes.len()];
            seen.insert_each(&hashes, &mut new).unwrap();
            assert!(block == 0 || new[..8_000].iter().all(|&new| !new), "block {block}");
            distinct += new.iter().filter(|&&new| new).count();
        }
        assert!(matches!(seen.0, Memory::All(_)));
        assert!((327_995..=328_000).contains(&distinct), "{distinct}"); // one in a million may be lost
    }
}
