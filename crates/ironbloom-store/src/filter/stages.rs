//! Filters of several stages for many threads: one that grows, and one that forgets.
//!
//! ```text
//!  growing   [ 1M ][ 2M ][ 4M ←        ]      a full stage is followed by a larger one, of a lower rate
//!  window    [ 1M ][ 1M ][ 1M ][ 1M ][ ←  ]   a full stage is followed by another, and the oldest goes
//! ```
//!
//! A stage is an atomic filter of the library. Readers take the list as it is, in one step, and ask all of its stages;
//! writers set bits of the last. The list is replaced when a stage is added: who holds the old one still reaches the
//! same stages.
//!
//! The window holds the keys of the last `window` puts for certain: four full stages of a quarter of it each, beside the one that is
//! being filled. Between a window and what was stored before it began stands blindness: until four stages have been
//! filled, "not here" does not mean "not recent", and every key may be there.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use ironbloom::{
    AnyFilter, AtomicBlockedBloom, AtomicBloom, BlockedBloomParams, BloomParams, HashFn,
    ParamError, Persist, ScalableParams,
};

use super::{Image, ImageWriter, check_hash};
use crate::options::Plan;

/// Full stages of a window.
const FULL_STAGES: u64 = 4;

/// See the module header.
pub(crate) struct Stages {
    list: ArcSwap<Vec<Arc<Stage>>>,
    /// Held by who changes the list.
    changing: Mutex<()>,
    series: Series,
    hash_fn: HashFn,
    /// Stages of a window still to be filled before "not here" means anything.
    blind: AtomicU64,
}

/// How the next stage follows from the number of those before it.
#[derive(Clone, Copy)]
enum Series {
    Growing(ScalableParams),
    Window { keys: u64, rate: f64 },
}

enum Stage {
    Blocked(AtomicBlockedBloom),
    /// For rates that one cache line a key cannot deliver.
    Bloom(AtomicBloom),
}

impl Stage {
    fn new(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        let rate = rate.max(ironbloom::sizing::hash_floor(capacity));
        match BlockedBloomParams::for_rate(capacity, rate) {
            Ok(params) => Ok(Self::Blocked(AtomicBlockedBloom::new(params, hash_fn)?)),
            Err(_) => {
                let params = BloomParams::for_rate(capacity, rate)?;
                Ok(Self::Bloom(AtomicBloom::new(params, hash_fn)?))
            }
        }
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        match self {
            Self::Blocked(filter) => filter.contains_hash(hash),
            Self::Bloom(filter) => filter.contains_hash(hash),
        }
    }

    fn insert(&self, hash: u64) -> bool {
        match self {
            Self::Blocked(filter) => filter.insert_hash(hash),
            Self::Bloom(filter) => filter.insert_hash(hash),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Blocked(filter) => filter.len(),
            Self::Bloom(filter) => filter.len(),
        }
    }

    fn capacity(&self) -> u64 {
        match self {
            Self::Blocked(filter) => filter.params().capacity(),
            Self::Bloom(filter) => filter.params().capacity(),
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Blocked(filter) => filter.is_full(),
            Self::Bloom(filter) => filter.is_full(),
        }
    }

    fn size_in_bytes(&self) -> usize {
        match self {
            Self::Blocked(filter) => filter.size_in_bytes(),
            Self::Bloom(filter) => filter.size_in_bytes(),
        }
    }

    fn from_bytes(plan: &Plan, bytes: &[u8]) -> Result<Self, String> {
        match AnyFilter::from_bytes(bytes).map_err(|error| error.to_string())? {
            AnyFilter::Blocked(plain) => {
                check_hash(plan, plain.hash_fn())?;
                Ok(Self::Blocked(plain.into()))
            }
            AnyFilter::Bloom(plain) => {
                check_hash(plan, plain.hash_fn())?;
                Ok(Self::Bloom(plain.into()))
            }
            other => Err(format!("a stage of kind {}", other.kind())),
        }
    }
}

impl Series {
    /// Stage `number` of the series, counted from 0.
    fn stage(&self, number: u64, hash_fn: HashFn) -> Result<Stage, ParamError> {
        match self {
            Self::Growing(params) => {
                let i = u32::try_from(number).unwrap_or(u32::MAX);
                Stage::new(params.stage_capacity(i), params.stage_rate(i), hash_fn)
            }
            Self::Window { keys, rate } => {
                let rate = rate / (FULL_STAGES + 1) as f64;
                Stage::new(keys.div_ceil(FULL_STAGES), rate, hash_fn)
            }
        }
    }
}

impl Stages {
    /// One that grows with its keys, from so many on.
    pub(crate) fn growing(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        Self::new(Series::Growing(ScalableParams::new(capacity, rate)?), hash_fn)
    }

    /// One that remembers the keys of the last `keys` puts, and some more.
    pub(crate) fn window(keys: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        BlockedBloomParams::for_rate(keys, rate)?; // a rate or a length that cannot be
        Self::new(Series::Window { keys, rate }, hash_fn)
    }

    fn new(series: Series, hash_fn: HashFn) -> Result<Self, ParamError> {
        let first = Arc::new(series.stage(0, hash_fn)?);
        Ok(Self {
            list: ArcSwap::from_pointee(vec![first]),
            changing: Mutex::new(()),
            series,
            hash_fn,
            blind: AtomicU64::new(0),
        })
    }

    /// There are keys that it will never be told of.
    pub(crate) fn go_blind(&self) {
        self.blind.store(FULL_STAGES, Ordering::Relaxed);
    }

    pub(crate) fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.is_blind() || self.list.load().iter().rev().any(|stage| stage.contains(hash))
    }

    /// False if the key looked as if it were there already.
    pub(crate) fn insert(&self, hash: u64) -> bool {
        match self.series {
            Series::Growing(_) => {
                let list = self.list.load();
                let (last, others) = list.split_last().expect("a list has a stage");
                if others.iter().any(|stage| stage.contains(hash)) || !last.insert(hash) {
                    return false;
                }
                if last.is_full() {
                    self.follow(last);
                }
                true
            }
            // Also a key of an older stage goes to the newest: it is recent now. One writer at a time, so that none
            // inserts into a stage that has just become old.
            Series::Window { .. } => {
                let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let list = self.list.load();
                let (last, others) = list.split_last().expect("a list has a stage");
                let known = others.iter().any(|stage| stage.contains(hash));
                let new = last.insert(hash);
                // What looked new was new, so there are at least as many keys as were counted.
                if new && last.len() >= last.capacity() {
                    self.shift(&list);
                }
                new && !known
            }
        }
    }

    /// Adds a stage behind this one, if nobody has done so yet. Without memory for it, the last goes on to take keys:
    /// its rate grows, its answers stay right.
    fn follow(&self, last: &Arc<Stage>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let list = self.list.load();
        if list.last().is_some_and(|now| !Arc::ptr_eq(now, last)) {
            return;
        }
        if let Ok(stage) = self.series.stage(list.len() as u64, self.hash_fn) {
            let mut longer = Vec::clone(&list);
            longer.push(Arc::new(stage));
            self.list.store(Arc::new(longer));
        }
    }

    /// Adds a stage to a window, which may lose its oldest by that. The caller changes the list alone.
    fn shift(&self, list: &[Arc<Stage>]) {
        if let Ok(stage) = self.series.stage(list.len() as u64, self.hash_fn) {
            let kept = list.len().saturating_sub(FULL_STAGES as usize);
            let mut shifted = list[kept..].to_vec();
            shifted.push(Arc::new(stage));
            self.list.store(Arc::new(shifted));
            let blind = self.blind.load(Ordering::Relaxed).saturating_sub(1);
            self.blind.store(blind, Ordering::Relaxed);
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.list.load().iter().map(|stage| stage.len()).sum()
    }

    pub(crate) fn capacity(&self) -> u64 {
        match self.series {
            Series::Growing(_) => self.list.load().iter().map(|stage| stage.capacity()).sum(),
            Series::Window { keys, .. } => keys,
        }
    }

    /// Only if a stage could not be followed by another.
    pub(crate) fn is_over_capacity(&self) -> bool {
        matches!(self.series, Series::Growing(_))
            && self.list.load().last().is_some_and(|stage| stage.is_full())
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        self.list.load().iter().map(|stage| stage.size_in_bytes() as u64).sum()
    }

    pub(crate) fn write_image<W: Write>(&self, out: &mut ImageWriter<W>) -> io::Result<u64> {
        // The blindness before the stages: what becomes full meanwhile is then no proof of more than there is.
        let blind = self.blind.load(Ordering::Relaxed);
        for stage in self.list.load_full().iter() {
            match &**stage {
                Stage::Blocked(filter) => out.filter(&filter.snapshot())?,
                Stage::Bloom(filter) => out.filter(&filter.snapshot())?,
            }
        }
        Ok(blind)
    }

    /// The same series with the stages of an image.
    pub(crate) fn with_image(self, plan: &Plan, image: &Image<'_>) -> Result<Self, String> {
        let stage = |(number, bytes): (usize, &&[u8])| {
            let stage = Stage::from_bytes(plan, bytes);
            stage.map(Arc::new).map_err(|error| format!("part {number}: {error}"))
        };
        let list = image.parts.iter().enumerate().map(stage).collect::<Result<Vec<_>, _>>()?;
        if list.is_empty() {
            return Err("no parts".to_owned());
        }
        self.list.store(Arc::new(list));
        self.blind.store(image.note.min(FULL_STAGES), Ordering::Relaxed);
        Ok(self)
    }
}
