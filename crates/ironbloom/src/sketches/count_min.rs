//! The count-min sketch (Cormode and Muthukrishnan 2005): how often was a key added?
//!
//! ```text
//!            width
//! row 0   | 3 | 0 | 9 | 1 |      a key has one cell in each row; adding it n times adds n to each of them
//! row 1   | 0 | 4 | 1 | 8 |      its count is the least of them: other keys can only make a cell larger
//! ```
//!
//! A count is never below the truth, as long as no cell is full (2^32 - 1). Above the truth it is by more than
//! `total · 2 / width` with a probability of 2^-depth at most.
//!
//! Cells are kept as the little-endian bytes that files have: they are loaded and saved without a copy.

use super::ADDRESSABLE;
use super::error::{MergeError, PlanError};
use super::file::Sketch;
use super::murmur2::{LANES, murmur2_lanes};
use crate::hash::Modulus;
use crate::memory::prefetch;
use crate::redisbloom::error::DecodeError;
use crate::redisbloom::fields::{FieldReader, FieldWriter};
use crate::redisbloom::limits::{MemoryLimit, copy, zeros};

const CELL_BYTES: usize = 4;

/// A count that has reached this is no longer a count: the cell is full.
const FULL: u32 = u32::MAX;

/// Keys whose cells are prefetched together.
const GROUP: usize = 16;

/// Cells of a key that are remembered while their cache lines are on the way; sketches with more rows go without.
const MAX_KEPT: usize = 16;

/// The size of a count-min sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountMinPlan {
    /// Cells of a row.
    pub width: u64,
    /// Number of rows.
    pub depth: u64,
}

impl CountMinPlan {
    /// The size for counts that are too large by more than `error` times the sum of all counts with this `probability` at
    /// most. The rounding, with the depth in single precision, is RedisBloom's.
    ///
    /// # Errors
    ///
    /// Unless both lie strictly between 0 and 1, and the size can be counted.
    pub fn for_error(error: f64, probability: f64) -> Result<Self, PlanError> {
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        PlanError::unless(is_share(error), "error: it must lie strictly between 0 and 1")?;
        let what = "probability: it must lie strictly between 0 and 1";
        PlanError::unless(is_share(probability), what)?;
        let width = (2.0 / error).ceil();
        let depth = ((probability as f32).log10() / 0.5f32.log10()).ceil();
        let is_finite = width < (1u64 << 63) as f64 && depth.is_finite();
        PlanError::unless(is_finite, "size")?;
        let plan = Self { width: width as u64, depth: depth as u64 };
        plan.cells().map(|_| plan)
    }

    /// Number of cells, if it is one.
    fn cells(self) -> Result<u64, PlanError> {
        let cells = self.width.checked_mul(self.depth);
        let cells = cells.filter(|cells| (1..=i64::MAX as u64).contains(cells));
        cells.ok_or(PlanError::Param { what: "size" })
    }

    /// Bytes of the cells.
    ///
    /// # Errors
    ///
    /// If there are none, or more than can be addressed.
    pub fn bytes(self) -> Result<u64, PlanError> {
        let cells = self.cells()?;
        let bytes = cells.saturating_mul(CELL_BYTES as u64);
        if bytes > ADDRESSABLE { Err(PlanError::Memory { bytes }) } else { Ok(bytes) }
    }
}

/// Counts of keys, never below the truth.
///
/// ```
/// # use ironbloom::sketches::CountMin;
/// let mut counts = CountMin::new(1000, 5)?;
/// assert_eq!(counts.add("a", 3), 3);
/// counts.add_each(&["a", "b"], &[1, 7], &mut [0, 0]);
/// assert_eq!((counts.count("a"), counts.count("b"), counts.total()), (4, 7, 11));
/// # Ok::<(), ironbloom::sketches::PlanError>(())
/// ```
#[derive(Debug)]
pub struct CountMin {
    plan: CountMinPlan,
    modulus: Modulus,
    /// What was added, modulo 2^64.
    total: u64,
    cells: Vec<u8>,
}

impl CountMin {
    /// A sketch of this size.
    ///
    /// # Errors
    ///
    /// If it has no cells, or memory is lacking.
    pub fn new(width: u64, depth: u64) -> Result<Self, PlanError> {
        Self::planned(CountMinPlan { width, depth }, MemoryLimit::NONE)
    }

    /// A sketch for this error: see [`CountMinPlan::for_error`].
    ///
    /// # Errors
    ///
    /// If there is none, or memory is lacking.
    pub fn with_error(error: f64, probability: f64) -> Result<Self, PlanError> {
        Self::planned(CountMinPlan::for_error(error, probability)?, MemoryLimit::NONE)
    }

    /// A sketch of this size, if the limit allows it.
    ///
    /// # Errors
    ///
    /// If it has no cells or too many, or memory is lacking.
    pub fn planned(plan: CountMinPlan, limit: MemoryLimit) -> Result<Self, PlanError> {
        let bytes = plan.bytes()?;
        limit.check(0, bytes)?;
        Ok(Self::from_parts(plan, 0, zeros(bytes)?))
    }

    fn from_parts(plan: CountMinPlan, total: u64, cells: Vec<u8>) -> Self {
        Self { plan, modulus: Modulus::new(plan.width), total, cells }
    }

    /// Its size.
    pub fn plan(&self) -> CountMinPlan {
        self.plan
    }

    /// The sum of all counts that were added, modulo 2^64.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Size in bytes: the cells, and what RedisBloom counts besides.
    pub fn size_in_bytes(&self) -> u64 {
        32 + self.cells.len() as u64
    }

    /// Adds a key `count` times. The new count of the key; `u32::MAX` says that a cell is full.
    pub fn add(&mut self, key: impl AsRef<[u8]>, count: u64) -> u32 {
        let key = key.as_ref();
        self.total = self.total.wrapping_add(count);
        let mut least = FULL;
        for first in (0..self.plan.depth).step_by(LANES) {
            let hashes = murmur2_lanes(key, first as u32);
            for (row, hash) in (first..self.plan.depth).zip(hashes) {
                let cell = self.cell(row, hash);
                least = least.min(raise(&mut self.cells, cell, count));
            }
        }
        least
    }

    /// How often a key was added: never below the truth.
    pub fn count(&self, key: impl AsRef<[u8]>) -> u32 {
        let key = key.as_ref();
        let mut least = FULL;
        for first in (0..self.plan.depth).step_by(LANES) {
            let hashes = murmur2_lanes(key, first as u32);
            for (row, hash) in (first..self.plan.depth).zip(hashes) {
                least = least.min(get(&self.cells, self.cell(row, hash)));
            }
        }
        least
    }

    /// Adds keys in their order: `keys[i]` for `counts[i]` times, after which its count is `found[i]`.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn add_each<K: AsRef<[u8]>>(&mut self, keys: &[K], counts: &[u64], found: &mut [u32]) {
        assert!(keys.len() == counts.len() && keys.len() == found.len(), "slices of one length");
        let depth = self.plan.depth as usize;
        for ((keys, counts), found) in
            keys.chunks(GROUP).zip(counts.chunks(GROUP)).zip(found.chunks_mut(GROUP))
        {
            let Some(cells) = self.located(keys) else {
                for ((key, &count), found) in keys.iter().zip(counts).zip(found) {
                    *found = self.add(key, count);
                }
                continue;
            };
            for ((cells, &count), found) in cells.iter().zip(counts).zip(found) {
                self.total = self.total.wrapping_add(count);
                let raised = cells[..depth].iter().map(|&cell| raise(&mut self.cells, cell, count));
                *found = raised.fold(FULL, u32::min);
            }
        }
    }

    /// `found[i]` is the count of `keys[i]`.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    #[track_caller]
    pub fn count_each<K: AsRef<[u8]>>(&self, keys: &[K], found: &mut [u32]) {
        assert_eq!(keys.len(), found.len(), "keys and counts of a batch");
        let depth = self.plan.depth as usize;
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            let Some(cells) = self.located(keys) else {
                keys.iter().zip(found).for_each(|(key, found)| *found = self.count(key));
                continue;
            };
            for (cells, found) in cells.iter().zip(found) {
                let counts = cells[..depth].iter().map(|&cell| get(&self.cells, cell));
                *found = counts.fold(FULL, u32::min);
            }
        }
    }

    /// The cells of a group of keys, prefetched, unless there are too many rows to remember.
    #[inline]
    fn located<K: AsRef<[u8]>>(&self, keys: &[K]) -> Option<[[usize; MAX_KEPT]; GROUP]> {
        let depth = self.plan.depth as usize;
        if depth > MAX_KEPT {
            return None;
        }
        let mut cells = [[0; MAX_KEPT]; GROUP];
        for (key, cells) in keys.iter().zip(&mut cells) {
            for first in (0..depth).step_by(LANES) {
                let hashes = murmur2_lanes(key.as_ref(), first as u32);
                for (row, hash) in (first..depth).zip(hashes) {
                    let cell = self.cell(row as u64, hash);
                    prefetch(&self.cells, cell * CELL_BYTES);
                    cells[row] = cell;
                }
            }
        }
        Some(cells)
    }

    #[inline]
    fn cell(&self, row: u64, hash: u32) -> usize {
        // The number of cells fits, since they are there.
        (row * self.plan.width + self.modulus.of(u64::from(hash))) as usize
    }

    /// Adds what another sketch of the same size counted.
    ///
    /// # Errors
    ///
    /// If the sizes differ, or a cell or the total would be too large. Then nothing has changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        *self = Self::sum(&[(self, 1), (other, 1)])?;
        Ok(())
    }

    /// The sum of sketches of one size, each times its weight, which may be negative.
    ///
    /// # Errors
    ///
    /// If there are none, if sizes differ, or if a number or a partial sum is out of range: cells have 32 bits, the total 63.
    pub fn sum(sketches: &[(&Self, i64)]) -> Result<Self, MergeError> {
        let plan = sketches.first().ok_or(MergeError::Differs)?.0.plan;
        if sketches.iter().any(|(sketch, _)| sketch.plan != plan) {
            return Err(MergeError::Differs);
        }
        let totals = sketches.iter().map(|(sketch, weight)| (sketch.total, *weight));
        let total = weighted_sum(totals).ok_or(MergeError::Overflow)?;
        let total = u64::try_from(total).map_err(|_| MergeError::Overflow)?;
        let bytes = sketches[0].0.cells.len() as u64;
        let mut cells = zeros(bytes).map_err(|_| MergeError::Memory { bytes })?;
        for (i, cell) in cells.as_chunks_mut::<CELL_BYTES>().0.iter_mut().enumerate() {
            let counts =
                sketches.iter().map(|(sketch, weight)| (u64::from(get(&sketch.cells, i)), *weight));
            let sum = weighted_sum(counts).and_then(|sum| u32::try_from(sum).ok());
            let sum = sum.ok_or(MergeError::Overflow)?;
            // Pages of zeros stay untouched.
            if sum > 0 {
                *cell = sum.to_le_bytes();
            }
        }
        Ok(Self::from_parts(plan, total, cells))
    }

    /// The array of cells, for servers that move it in memory.
    #[doc(hidden)]
    pub fn array_to_move(&mut self) -> &mut Vec<u8> {
        &mut self.cells
    }
}

/// A sum whose parts are all in the range of an `i64`.
fn weighted_sum(numbers: impl Iterator<Item = (u64, i64)>) -> Option<i64> {
    numbers.into_iter().try_fold(0i64, |sum, (number, weight)| {
        let product = i64::try_from(i128::from(number) * i128::from(weight)).ok()?;
        sum.checked_add(product)
    })
}

#[inline]
fn get(cells: &[u8], cell: usize) -> u32 {
    u32::from_le_bytes(cells.as_chunks::<CELL_BYTES>().0[cell])
}

/// Adds to a cell, which stays full once it is. The new count.
#[inline]
fn raise(cells: &mut [u8], cell: usize, count: u64) -> u32 {
    let place = &mut cells.as_chunks_mut::<CELL_BYTES>().0[cell];
    let sum = u64::from(u32::from_le_bytes(*place)).saturating_add(count);
    let sum = u32::try_from(sum).unwrap_or(FULL);
    *place = sum.to_le_bytes();
    sum
}

impl Clone for CountMin {
    fn clone(&self) -> Self {
        Self::from_parts(self.plan, self.total, copy(&self.cells))
    }
}

impl PartialEq for CountMin {
    fn eq(&self, other: &Self) -> bool {
        (self.plan, self.total) == (other.plan, other.total) && self.cells == other.cells
    }
}

impl Eq for CountMin {}

/// Fields: width, depth, total, and the cells row after row.
impl Sketch for CountMin {
    const KIND: u32 = 1;
    const NAME: &'static str = "count-min sketch";

    fn encode(&self, to: &mut impl FieldWriter) {
        to.unsigned(self.plan.width);
        to.unsigned(self.plan.depth);
        to.unsigned(self.total);
        to.string(&self.cells);
    }

    fn decode(from: &mut impl FieldReader) -> Result<Self, DecodeError> {
        let plan = CountMinPlan { width: from.unsigned()?, depth: from.unsigned()? };
        let total = from.unsigned()?;
        let bytes = plan.bytes().map_err(|_| DecodeError::Field { what: "width and depth" })?;
        let cells = from.string()?;
        DecodeError::unless(cells.len() as u64 == bytes, "number of cells")?;
        Ok(Self::from_parts(plan, total, cells))
    }
}
