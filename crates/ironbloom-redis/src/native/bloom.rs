//! The native filters of BF.*.
//!
//! ```text
//! LAYOUT BLOCKED                growing: stages of blocked filters, each with half the rate of the one before
//! LAYOUT BLOCKED NONSCALING     one blocked filter, which refuses keys when it is full
//! WINDOW n                      remembers the last n keys and forgets older ones
//! a file of `ironbloom build`   blocked, flat, growing or forgetting, as it was made
//! ```
//!
//! The library does the work, in batches. Added here: the memory limit is checked before a filter grows.

use std::convert::Infallible;

use ironbloom::format::native::{
    Header, Table, image_bytes, image_piece, prefer_huge_pages, table_start,
};
use ironbloom::hash::KeyError;
use ironbloom::memory::dense_at;
use ironbloom::{
    BlockedBloom, BlockedBloomParams, Bloom, DecodeError, Fill, FillProgress, HashFn, Insert,
    KeyType, Kind, Mismatch, ParamError, Scalable, ScalableParams, StageInfo, StageKind,
    UnionProgress, Windowed, WindowedParams,
};

use super::error::NativeError;
use super::images::Images;
use super::{Imaged, Reading};
use crate::error::{CreateError, InsertError};
use crate::limits::MemoryLimit;
use crate::stats;

/// Each stage has half the rate of the one before, as in RedisBloom's chains.
const TIGHTENING: f64 = 0.5;

/// A filter of crate `ironbloom`.
#[derive(Clone, Debug, PartialEq)]
pub enum NativeBloom {
    /// One blocked filter.
    Blocked(BlockedBloom),
    /// One flat or segmented filter.
    Flat(Bloom),
    /// Stages that are added as keys come.
    Growing(Scalable),
    /// The last keys.
    Window(Windowed),
}

/// The same expression for a filter of any kind.
macro_rules! each {
    ($native:expr, $filter:ident => $expression:expr) => {
        match $native {
            NativeBloom::Blocked($filter) => $expression,
            NativeBloom::Flat($filter) => $expression,
            NativeBloom::Growing($filter) => $expression,
            NativeBloom::Window($filter) => $expression,
        }
    };
}

/// The same expression for two filters of one kind that can be merged; `Err(None)` for others.
macro_rules! both {
    ($one:expr, $two:expr, $left:ident, $right:ident => $expression:expr) => {
        match ($one, $two) {
            (NativeBloom::Blocked($left), NativeBloom::Blocked($right)) => {
                $expression.map_err(Some)
            }
            (NativeBloom::Flat($left), NativeBloom::Flat($right)) => $expression.map_err(Some),
            (NativeBloom::Growing($left), NativeBloom::Growing($right)) => {
                $expression.map_err(Some)
            }
            _ => Err(None),
        }
    };
}

/// Why a filter was not made: the limit, or the parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlanError {
    /// It would be too large.
    Create(CreateError),
    /// There is no such filter.
    Params(ParamError),
}

impl From<CreateError> for PlanError {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl From<ParamError> for PlanError {
    fn from(error: ParamError) -> Self {
        match error {
            ParamError::Memory { bytes } => Self::Create(CreateError::Memory { bytes }),
            error => Self::Params(error),
        }
    }
}

impl NativeBloom {
    /// An empty blocked filter that refuses keys when it is full.
    pub fn blocked(
        capacity: u64,
        rate: f64,
        hash_fn: HashFn,
        limit: MemoryLimit,
    ) -> Result<Self, PlanError> {
        let params = BlockedBloomParams::for_rate(capacity, rate)?;
        limit.check(0, params.bits() / 8)?;
        Ok(Self::Blocked(BlockedBloom::new(params, hash_fn)?))
    }

    /// An empty chain of blocked filters that starts with room for `capacity` keys.
    pub fn growing(
        capacity: u64,
        rate: f64,
        growth: u64,
        hash_fn: HashFn,
        limit: MemoryLimit,
    ) -> Result<Self, PlanError> {
        let params = ScalableParams::new(capacity, rate)?
            .with_growth(growth)?
            .with_tightening(TIGHTENING)?
            .with_stages_of(StageKind::Blocked);
        limit.check(0, params.stage_bytes(0)?)?;
        Ok(Self::Growing(Scalable::new(params, hash_fn)?))
    }

    /// An empty filter that remembers the last `window` keys.
    pub fn window(
        window: u64,
        rate: f64,
        hash_fn: HashFn,
        limit: MemoryLimit,
    ) -> Result<Self, PlanError> {
        let params = WindowedParams::for_keys(window, rate)?;
        limit.check(0, params.bits() / 8)?;
        Ok(Self::Window(Windowed::new(params, hash_fn)?))
    }

    /// The function that keys are hashed with, which is never an external one.
    pub fn hash_fn(&self) -> HashFn {
        each!(self, filter => filter.hash_fn())
    }

    /// Inserts hashes in their order; `new[i]` tells whether `hashes[i]` was new. Stops at the first that is refused: how
    /// many came before it, and why. The limit is asked only if the filter has to grow.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn insert_each(
        &mut self,
        hashes: &[u64],
        new: &mut [bool],
        limit: impl Fn() -> MemoryLimit,
    ) -> Result<(), (usize, InsertError)> {
        assert_eq!(hashes.len(), new.len(), "hashes and answers of a batch");
        each!(self, filter => filter.note_keys(KeyType::Bytes.into()));
        let was_dense = self.is_dense();
        let outcome = match self {
            Self::Blocked(filter) => insert_fixed(filter, hashes, new),
            Self::Flat(filter) => insert_fixed(filter, hashes, new),
            Self::Growing(filter) => insert_growing(filter, hashes, new, limit),
            Self::Window(filter) => {
                filter.insert_each(hashes, new);
                Ok(())
            }
        };
        if !was_dense && self.is_dense() {
            self.prefer_huge_pages();
        }
        outcome
    }

    /// Whether nearly every page of it has been written to, of a growing one those of the newest stage.
    fn is_dense(&self) -> bool {
        let (bits, places, len) = match self {
            // All bits of a key are in one line.
            Self::Blocked(filter) => (filter.params().bits(), 1, filter.len()),
            Self::Flat(filter) => (filter.params().bits(), filter.params().probes(), filter.len()),
            Self::Growing(filter) => match filter.newest_stage() {
                StageInfo { kind: StageKind::Blocked, bits, len, .. } => (bits, 1, len),
                StageInfo { bits, probes, len, .. } => (bits, probes, len),
            },
            // Every slice was opened, and cleared for it.
            Self::Window(filter) => return filter.len() >= filter.params().capacity(),
        };
        len >= dense_at(bits / 8, places)
    }

    fn prefer_huge_pages(&self) {
        each!(self, filter => prefer_huge_pages(filter));
    }

    /// `found[i]` tells whether `hashes[i]` might be here.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    pub fn contains_each(&self, hashes: &[u64], found: &mut [bool]) {
        each!(self, filter => filter.contains_hashes(hashes, found))
    }

    /// Whether a key might be here.
    pub fn contains(&self, hash: u64) -> bool {
        each!(self, filter => filter.contains_hash(hash))
    }

    /// Whether a key that was there changes the filter when it is inserted again: it is remembered again, and ages the
    /// others.
    pub fn counts_repeats(&self) -> bool {
        matches!(self, Self::Window(_))
    }

    /// Says what differs unless [`union_with`](Self::union_with) would take the other.
    pub fn check_union(&self, other: &Self) -> Result<(), Option<Mismatch>> {
        both!(self, other, one, two => one.check_union(two))
    }

    /// Adds the keys of a filter of the same shape, or says what differs and changes nothing.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Option<Mismatch>> {
        both!(self, other, one, two => one.union_with(two))
    }

    /// A step of a union that is made in several: adds the next words of a stage, `most_words` at most. Between two steps both
    /// filters may take keys and grow. The union is done when `progress.stage` is the number of stages that the other had at
    /// the start.
    pub fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), Option<Mismatch>> {
        let stage = progress.stage;
        both!(&mut *self, other, one, two => one.union_step(two, progress, most_words))?;
        if progress.stage > stage {
            let of_stage = match self {
                Self::Growing(filter) => filter.stages().nth(stage).map(|it| (it.len, it.capacity)),
                filter => Some((filter.len(), filter.capacity())),
            };
            of_stage.inspect(|&(len, capacity)| stats::merged(len as f64, capacity));
        }
        Ok(())
    }

    /// An empty filter of the same shape.
    pub fn empty_like(&self) -> Result<Self, PlanError> {
        let hash_fn = self.hash_fn();
        let empty = match self {
            Self::Blocked(filter) => Self::Blocked(BlockedBloom::new(filter.params(), hash_fn)?),
            Self::Flat(filter) => Self::Flat(Bloom::new(filter.params(), hash_fn)?),
            Self::Growing(filter) => Self::Growing(filter.empty_like()?),
            Self::Window(filter) => Self::Window(Windowed::new(filter.params(), hash_fn)?),
        };
        // Its keys will be added, and touch every page.
        if self.is_dense() {
            empty.prefer_huge_pages();
        }
        Ok(empty)
    }

    /// Keys counted: inserts that were new; of a window, those that it remembers.
    pub fn len(&self) -> u64 {
        each!(self, filter => filter.len())
    }

    /// Whether no key is in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys planned for.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Blocked(filter) => filter.params().capacity(),
            Self::Flat(filter) => filter.params().capacity(),
            Self::Growing(filter) => filter.capacity(),
            Self::Window(filter) => filter.params().capacity(),
        }
    }

    /// Factor between the capacities of two stages, if it grows.
    pub fn growth(&self) -> Option<u64> {
        match self {
            Self::Growing(filter) => Some(filter.params().growth()),
            _ => None,
        }
    }

    /// Number of stages.
    pub fn stages(&self) -> u64 {
        match self {
            Self::Growing(filter) => filter.stages().len() as u64,
            _ => 1,
        }
    }

    /// The layout in a word.
    pub fn layout(&self) -> &'static str {
        match self {
            Self::Blocked(_) => "blocked",
            Self::Flat(_) => "bloom",
            Self::Growing(filter) if filter.params().stages_of() == StageKind::Blocked => "blocked",
            Self::Growing(_) => "bloom",
            Self::Window(_) => "window",
        }
    }

    /// A step of a count of the bits that is made in several: counts the next words of a stage, `most_words` at most. Between
    /// two steps the filter may take keys and grow. With the last step, and after it, returns what was counted.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        each!(self, filter => filter.fill_step(progress, most_words))
    }

    /// The lines of BF.DEBUG, in RedisBloom's form: the number of keys, then a line a stage.
    pub fn debug_lines(&self) -> Vec<String> {
        let line = |bits: u64, probes: u32, capacity: u64, len: u64, rate: f64| {
            let bytes = bits.div_ceil(8);
            format!(
                "bytes:{bytes} bits:{bits} hashes:{probes} hashwidth:64 capacity:{capacity} size:{len} ratio:{rate:e}"
            )
        };
        let mut lines = vec![format!("size:{}", self.len())];
        match self {
            Self::Blocked(filter) => {
                let params = filter.params();
                let rate = params.rate_at(params.capacity());
                lines.push(line(params.bits(), 8, params.capacity(), filter.len(), rate));
            }
            Self::Flat(filter) => {
                let params = filter.params();
                let rate = params.rate_at(params.capacity());
                let (bits, probes) = (params.bits(), params.probes());
                lines.push(line(bits, probes, params.capacity(), filter.len(), rate));
            }
            Self::Growing(filter) => {
                lines.extend(filter.stages().enumerate().map(|(i, stage)| {
                    let StageInfo { bits, probes, capacity, len, .. } = stage;
                    line(bits, probes, capacity, len, filter.params().stage_rate(i as u32))
                }));
            }
            Self::Window(filter) => {
                let params = filter.params();
                let (bits, probes) = (params.bits(), params.probes());
                lines.push(line(bits, probes, params.capacity(), filter.len(), params.rate()));
            }
        }
        lines
    }
}

/// A filter of one size.
trait Fixed: Insert<Error = Infallible> {
    /// New keys that it still takes.
    fn room(&self) -> u64;
}

impl Fixed for BlockedBloom {
    fn room(&self) -> u64 {
        self.room()
    }
}

impl Fixed for Bloom {
    fn room(&self) -> u64 {
        self.room()
    }
}

/// Looks all of them up first, which brings their cache lines near; then inserts the absent ones. A full filter still accepts
/// keys that it already has.
fn insert_fixed(
    filter: &mut impl Fixed,
    hashes: &[u64],
    new: &mut [bool],
) -> Result<(), (usize, InsertError)> {
    filter.contains_hashes(hashes, new);
    for (i, &hash) in hashes.iter().enumerate() {
        if new[i] {
            new[i] = false;
        } else if filter.room() > 0 {
            // A key that is twice in this batch is not new the second time.
            let Ok(is_new) = filter.insert_hash(hash);
            new[i] = is_new;
        } else if !filter.contains_hash(hash) {
            return Err((i, InsertError::Full));
        }
    }
    Ok(())
}

/// Inserts batches that the newest stage has room for. Between them, one key decides whether a stage is added.
fn insert_growing(
    filter: &mut Scalable,
    hashes: &[u64],
    new: &mut [bool],
    limit: impl Fn() -> MemoryLimit,
) -> Result<(), (usize, InsertError)> {
    let mut at = 0;
    while at < hashes.len() {
        let room = usize::try_from(filter.room()).unwrap_or(usize::MAX).min(hashes.len() - at);
        if room > 0 {
            let end = at + room;
            filter
                .insert_each(&hashes[at..end], &mut new[at..end])
                .map_err(|error| (at, refused(error)))?;
            at = end;
            continue;
        }
        new[at] = if filter.contains_hash(hashes[at]) {
            false
        } else {
            grow_and_insert(filter, hashes[at], limit()).map_err(|error| (at, error))?
        };
        at += 1;
    }
    Ok(())
}

fn grow_and_insert(
    filter: &mut Scalable,
    hash: u64,
    limit: MemoryLimit,
) -> Result<bool, InsertError> {
    let more = filter.params().stage_bytes(filter.stages().len()).map_err(refused)?;
    limit.check(filter.size_in_bytes() as u64, more).map_err(InsertError::Growth)?;
    let before = filter.stages().len();
    let outcome = filter.insert_hash(hash).map_err(refused);
    stats::GROWTHS.add((filter.stages().len() - before) as u64);
    outcome
}

fn refused(error: ParamError) -> InsertError {
    InsertError::Growth(match error {
        ParamError::Memory { bytes } => CreateError::Memory { bytes },
        _ => CreateError::Shape,
    })
}

/// Refuses filters of external hashes, which cannot be queried by key, and of keys that are not the bytes that clients send.
pub(super) fn check_keys(header: &Header) -> Result<(), NativeError> {
    match header.hash_fn {
        HashFn::External { id } => return Err(NativeError::External { id }),
        hash_fn => hash_fn.accepts(KeyType::Bytes).map_err(NativeError::Keys)?,
    }
    let held = header.key_types;
    Err(NativeError::Keys(match held.only() {
        Some(KeyType::Bytes) => return Ok(()),
        Some(_) => KeyError::NotHeld { held, found: KeyType::Bytes },
        None if held.is_empty() => return Ok(()),
        None => KeyError::Ambiguous { held },
    }))
}

impl Imaged for NativeBloom {
    const NUMBERS: usize = 0;

    fn numbers(&self) -> Vec<u64> {
        Vec::new()
    }

    fn image_bytes(&self) -> u64 {
        each!(self, filter => image_bytes(filter))
    }

    fn image_piece<'t>(
        &self,
        offset: u64,
        most: usize,
        tables: &dyn Fn() -> &'t [Table],
    ) -> Vec<u8> {
        let table = || &tables()[0];
        each!(self, filter => image_piece(filter, offset, most, table))
    }

    fn needs_table(&self, offset: u64, most: usize) -> bool {
        let start = each!(self, filter => table_start(filter));
        offset.saturating_add(most as u64) > start && offset < self.image_bytes()
    }

    fn read_image(
        &self,
        reading: &mut Reading,
        most_chunks: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> bool {
        each!(self, filter => reading.read_on(filter, most_chunks, visit))
    }

    fn from_images(images: Images, _numbers: &[u64]) -> Result<Self, NativeError> {
        let found = images.len();
        let mut images = images.finish()?;
        let count = images.len();
        let image = images.swap_remove(0);
        let (kind, expected) = (image.header().kind, image.header().file_bytes());
        let keys = check_keys(image.header());
        let filter = match kind {
            Kind::Blocked => Self::Blocked(image.finish()?),
            Kind::Bloom => Self::Flat(image.finish()?),
            Kind::Scalable => Self::Growing(image.finish()?),
            Kind::Windowed => match image.finish::<Windowed>()? {
                filter if filter.params().span().is_some() => return Err(NativeError::Clock),
                filter => Self::Window(filter),
            },
            found => return Err(NativeError::Kind { found }),
        };
        keys?;
        match count {
            1 => Ok(filter),
            _ => Err(DecodeError::Length { expected, found }.into()),
        }
    }

    fn array_bytes(&self) -> u64 {
        let bytes = each!(self, filter => filter.size_in_bytes());
        bytes as u64
    }
}
