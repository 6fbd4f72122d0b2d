//! Multi-stage filters for many threads: one that grows, and one that forgets.
//!
//! ```text
//!  growing   [ 1M ][ 2M ][ 4M ←        ]      a full stage is followed by a larger one, of a lower rate
//!  window    [ 1M ][ 1M ][ 1M ][ 1M ][ ←  ]   a full stage is followed by another, and the oldest goes
//! ```
//!
//! A stage is an atomic filter of the library. Readers load the current list in one step and query all of its stages;
//! writers set bits of the last. The list is replaced when a stage is added: readers of the old one still reach the
//! same stages.
//!
//! The window holds the keys of the last `window` puts for certain. A put is inserted when it begins, so that nobody
//! sees it stored and absent, and again when it ends: from there it counts, since thousands of others may have come
//! between the two. The oldest stage is dropped when the full ones after it hold as many puts that ended in them as the
//! window promises: usually four of a quarter each. A window is initially blind to what was stored before it started:
//! until as many puts have ended, "not here" does not mean "not recent", and every key may be there.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use ironbloom::{
    AnyFilter, AtomicBlockedBloom, AtomicBloom, BlockedBloomParams, BloomParams, HashFn,
    ParamError, Persist, ScalableParams,
};

use super::{Image, ImageError, ImageWriter, Maker, SharedFilter, check_hash, sealed, unsealed};
use crate::options::FilterSpec;

pub(crate) const GROWING: Maker = Maker {
    empty: |spec, capacity| Ok(Arc::new(Stages::growing(capacity, spec.rate, spec.hash_fn)?)),
    from_image: |spec, capacity, image| {
        let empty = Stages::growing(capacity.max(spec.capacity), spec.rate, spec.hash_fn);
        Ok(Arc::new(empty.map_err(ImageError::Params)?.with_image(spec, image)?))
    },
    can_publish: false,
};

/// For a window the capacity is a promise, not an estimate: what the store holds does not matter.
pub(crate) const WINDOW: Maker = Maker {
    empty: |spec, _| Ok(Arc::new(Stages::window(spec.capacity, spec.rate, spec.hash_fn)?)),
    from_image: |spec, _, image| {
        let empty = Stages::window(spec.capacity, spec.rate, spec.hash_fn);
        Ok(Arc::new(empty.map_err(ImageError::Params)?.with_image(spec, image)?))
    },
    can_publish: false,
};

/// Usual number of full stages of a window.
const FULL_STAGES: u64 = 4;
/// Keys above the capacity of a stage at which a put that begins is the first of a new one. Usually a put that ends is: this is
/// for many in one call.
const SLACK: u64 = 64;

/// The note of an image whose last part counts puts. Version 1 had the number of blind stages there, at most four.
const COUNTED: u64 = 1 << 8;

/// See the module documentation.
struct Stages {
    list: ArcSwap<Vec<Arc<Stage>>>,

    /// Held while changing the list.
    changing: Mutex<()>,
    series: Series,
    hash_fn: HashFn,
    /// Puts that must still end in a window before "not here" means anything.
    blind: AtomicU64,
}

/// How the next stage follows from the number of previous stages.
#[derive(Clone, Copy)]
enum Series {
    Growing(ScalableParams),
    Window { keys: u64, rate: f64 },
}

struct Stage {
    bits: Bits,
    /// Puts that ended while this was the last stage of a window.
    ended: AtomicU64,
}

#[derive(Clone)]
enum Bits {
    Blocked(AtomicBlockedBloom),
    /// For rates that one cache line per key cannot deliver.
    Bloom(AtomicBloom),
}

/// The same expression for both layouts.
macro_rules! of_both {
    ($bits:expr, $filter:ident => $answer:expr) => {
        match $bits {
            Bits::Blocked($filter) => $answer,
            Bits::Bloom($filter) => $answer,
        }
    };
}

impl Stage {
    fn with_ended(bits: Bits, ended: u64) -> Self {
        Self { bits, ended: AtomicU64::new(ended) }
    }

    fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

impl std::ops::Deref for Stage {
    type Target = Bits;

    fn deref(&self) -> &Bits {
        &self.bits
    }
}

impl Bits {
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
        of_both!(self, filter => filter.contains_hash(hash))
    }

    fn insert(&self, hash: u64) -> bool {
        of_both!(self, filter => filter.insert_hash(hash))
    }

    fn len(&self) -> u64 {
        of_both!(self, filter => filter.len())
    }

    fn capacity(&self) -> u64 {
        of_both!(self, filter => filter.params().capacity())
    }

    fn is_full(&self) -> bool {
        of_both!(self, filter => filter.is_full())
    }

    fn size_in_bytes(&self) -> usize {
        of_both!(self, filter => filter.size_in_bytes())
    }

    fn hash_fn(&self) -> HashFn {
        of_both!(self, filter => filter.hash_fn())
    }

    fn write(&self, out: &mut ImageWriter<'_>) -> io::Result<()> {
        of_both!(self, filter => out.filter(&filter.snapshot()))
    }

    /// Part `number` of an image.
    fn from_bytes(spec: &FilterSpec, number: usize, bytes: &[u8]) -> Result<Self, ImageError> {
        let plain =
            AnyFilter::from_bytes(bytes).map_err(|error| ImageError::Part { number, error })?;
        let bits = match plain {
            AnyFilter::Blocked(plain) => Self::Blocked(plain.into()),
            AnyFilter::Bloom(plain) => Self::Bloom(plain.into()),
            other => return Err(ImageError::PartKind { number, found: other.kind() }),
        };
        check_hash(spec, bits.hash_fn())?;
        Ok(bits)
    }
}

impl Series {
    /// Stage `number` of the series, counted from 0.
    fn stage(&self, number: u64, hash_fn: HashFn) -> Result<Stage, ParamError> {
        let bits = match self {
            Self::Growing(params) => {
                let i = u32::try_from(number).unwrap_or(u32::MAX);
                Bits::new(params.stage_capacity(i), params.stage_rate(i), hash_fn)
            }
            Self::Window { keys, rate } => {
                let rate = rate / (FULL_STAGES + 1) as f64;
                Bits::new(keys.div_ceil(FULL_STAGES), rate, hash_fn)
            }
        };
        Ok(Stage::with_ended(bits?, 0))
    }
}

impl Stages {
    /// A filter that grows with its keys, starting with this many.
    fn growing(capacity: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
        Self::new(Series::Growing(ScalableParams::new(capacity, rate)?), hash_fn)
    }

    /// A filter that remembers the keys of the last `keys` puts, and some more.
    fn window(keys: u64, rate: f64, hash_fn: HashFn) -> Result<Self, ParamError> {
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

    /// Number of puts that a window promises to remember.
    fn promised(&self) -> u64 {
        match self.series {
            Series::Growing(_) => 0,
            Series::Window { keys, .. } => keys,
        }
    }

    /// Adds a stage after this one, if nobody has done so yet. Without memory for it, the last stage keeps taking keys:
    /// its rate grows, but its answers stay correct.
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

    /// Adds a stage to a window, which may drop its oldest. The caller must be the only one changing the list.
    fn shift(&self, list: &[Arc<Stage>]) {
        if let Ok(stage) = self.series.stage(list.len() as u64, self.hash_fn) {
            let (mut kept, mut ended) = (list.len(), 0);
            while kept > 0 && ended < self.promised() {
                kept -= 1;
                ended += list[kept].ended();
            }
            let mut shifted = list[kept..].to_vec();
            shifted.push(Arc::new(stage));
            self.list.store(Arc::new(shifted));
        }
    }

    /// The same series with the stages of an image.
    fn with_image(self, spec: &FilterSpec, image: &Image<'_>) -> Result<Self, ImageError> {
        let (stages, counts) = match image.parts.split_last() {
            Some((counts, stages)) if image.note == COUNTED => {
                (stages, Some(unsealed(counts, stages.len() as u64 + 1)?))
            }
            _ => (&image.parts[..], None),
        };
        if stages.is_empty() {
            return Err(ImageError::PartCount(image.parts.len()));
        }
        let mut list = Vec::with_capacity(stages.len());
        for (number, bytes) in stages.iter().enumerate() {
            let bits = Bits::from_bytes(spec, number, bytes)?;
            let ended = counts.as_ref().map_or_else(|| bits.len(), |counts| counts[number + 1]);
            list.push(Arc::new(Stage::with_ended(bits, ended)));
        }
        self.list.store(Arc::new(list));
        // Version 1 counted blindness in stages, and every key of a stage as a put that ended in it.
        let blind = match counts {
            Some(counts) => counts[0],
            None => image.note.min(FULL_STAGES) * self.promised().div_ceil(FULL_STAGES),
        };
        self.blind.store(blind.min(self.promised()), Ordering::Relaxed);
        Ok(self)
    }
}

impl SharedFilter for Stages {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.is_blind() || self.list.load().iter().rev().any(|stage| stage.contains(hash))
    }

    /// Inserts a key whose put begins. False if it looked present already.
    fn insert(&self, hash: u64) -> bool {
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
            // A key of an older stage also goes to the newest: it is recent now. One writer at a time, so that none
            // inserts into a stage that has just become old.
            Series::Window { .. } => {
                let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
                let list = self.list.load();
                let (last, others) = list.split_last().expect("a list has a stage");
                let known = others.iter().any(|stage| stage.contains(hash));
                let new = last.insert(hash);
                if new && last.len() >= last.capacity() + SLACK {
                    self.shift(&list);
                }
                new && !known
            }
        }
    }

    /// The put of a key that was inserted has ended. In a window it is recent from here on. Each put that was
    /// acknowledged counts, whatever the filter had said of its key.
    fn acknowledge(&self, hash: u64, counts: bool) {
        if matches!(self.series, Series::Growing(_)) {
            return;
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let list = self.list.load();
        let last = list.last().expect("a list has a stage");
        last.insert(hash);
        if counts {
            let ended = last.ended.fetch_add(1, Ordering::Relaxed) + 1;
            let blind = self.blind.load(Ordering::Relaxed).saturating_sub(1);
            self.blind.store(blind, Ordering::Relaxed);
            if ended >= self.promised().div_ceil(FULL_STAGES) || last.len() >= last.capacity() {
                self.shift(&list);
            }
        }
    }

    fn len(&self) -> u64 {
        self.list.load().iter().map(|stage| stage.len()).sum()
    }

    fn capacity(&self) -> u64 {
        match self.series {
            Series::Growing(_) => self.list.load().iter().map(|stage| stage.capacity()).sum(),
            Series::Window { keys, .. } => keys,
        }
    }

    /// Only if a stage could not be followed by another.
    fn is_over_capacity(&self) -> bool {
        matches!(self.series, Series::Growing(_))
            && self.list.load().last().is_some_and(|stage| stage.is_full())
    }

    fn size_in_bytes(&self) -> u64 {
        self.list.load().iter().map(|stage| stage.size_in_bytes() as u64).sum()
    }

    fn go_blind(&self) {
        self.blind.store(self.promised(), Ordering::Relaxed); // nothing, for one that grows
    }

    fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed) > 0
    }

    /// A copy of a window's last stage, next to the same others. A growing filter is its own snapshot: later inserts
    /// are harmless there.
    fn frozen(self: Arc<Self>) -> Arc<dyn SharedFilter> {
        if matches!(self.series, Series::Growing(_)) {
            return self;
        }
        let mut list = Vec::clone(&self.list.load());
        if let Some(last) = list.last_mut() {
            *last = Arc::new(Stage::with_ended(last.bits.clone(), last.ended()));
        }
        Arc::new(Self {
            list: ArcSwap::from_pointee(list),
            changing: Mutex::new(()),
            series: self.series,
            hash_fn: self.hash_fn,
            blind: AtomicU64::new(self.blind.load(Ordering::Relaxed)),
        })
    }

    /// The stages one by one; of a window, then its blindness and the puts that ended in each stage, as bytes. They are
    /// those of the moment at which it was frozen.
    fn write_image(&self, out: &mut ImageWriter<'_>) -> io::Result<u64> {
        let list = self.list.load_full();
        for stage in list.iter() {
            stage.write(out)?;
        }
        if matches!(self.series, Series::Growing(_)) {
            return Ok(0);
        }
        let blind = self.blind.load(Ordering::Relaxed);
        let ended = list.iter().map(|stage| stage.ended());
        out.bytes(&sealed(std::iter::once(blind).chain(ended).collect()))?;
        Ok(COUNTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(i: u64) -> u64 {
        HashFn::default().hash(i.to_le_bytes())
    }

    fn window(keys: u64) -> Stages {
        Stages::window(keys, 0.001, HashFn::default()).unwrap()
    }

    #[test]
    fn puts_that_begin_push_nothing_out_before_they_end() {
        let window = window(100);
        (0..100).for_each(|i| {
            window.insert(hash(i));
            window.acknowledge(hash(i), true);
        });
        // A thousand in one call: they begin together, and then they end.
        (1000..2000).for_each(|i| {
            window.insert(hash(i));
        });
        assert!((0..100).all(|i| window.contains(hash(i))), "none of the others has ended");
        (1000..2000).for_each(|i| window.acknowledge(hash(i), true));
        assert!((1900..2000).all(|i| window.contains(hash(i))));
        assert!((0..100).filter(|&i| window.contains(hash(i))).count() < 10);
        let stages = window.list.load().len();
        assert!(stages <= 6, "{stages} stages");
    }

    #[test]
    fn a_window_of_the_first_version_is_read() {
        let window = window(100);
        (0..100).for_each(|i| {
            window.insert(hash(i));
            window.acknowledge(hash(i), true);
        });
        window.go_blind();
        let mut bytes = Vec::new();
        let mut out = ImageWriter::new(&mut bytes);
        window.write_image(&mut out).unwrap();
        let lengths = out.finish().unwrap();
        let mut parts = Vec::new();
        let mut rest = &bytes[..];
        for &length in &lengths[..lengths.len() - 1] {
            let (part, after) = rest.split_at(length as usize);
            parts.push(part);
            rest = after;
        }
        let spec = FilterSpec {
            kind: crate::GuardKind::Windowed,
            capacity: 100,
            rate: 0.001,
            hash_fn: HashFn::default(),
        };
        let empty = || Stages::window(100, 0.001, HashFn::default()).unwrap();
        let old = empty().with_image(&spec, &Image { parts: parts.clone(), note: 3 }).unwrap();
        assert_eq!(old.blind.load(Ordering::Relaxed), 75);
        assert!((0..100).all(|i| old.contains(hash(i))));
        parts.push(rest);
        let new =
            empty().with_image(&spec, &Image { parts: parts.clone(), note: COUNTED }).unwrap();
        assert_eq!(new.blind.load(Ordering::Relaxed), 100);
        parts.pop();
        parts.push(&rest[..8]);
        assert!(empty().with_image(&spec, &Image { parts, note: COUNTED }).is_err());
    }
}
