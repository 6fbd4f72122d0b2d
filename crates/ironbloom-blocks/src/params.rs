//! The granularity of the index. Two numbers determine its size and the cost of a lookup.
//!
//! ```text
//! B  rows per block, a power of two                     a lookup names blocks, so these rows are read for one hit
//! s  selectivity, in bits                               of the rows that do not match, one in 2^s is a candidate
//! H  = 2^s · B buckets per column                       so that a bucket names a block wrongly once in 2^s rows
//! ```
//!
//! A cell takes about s + 2.13 bits: its share of an Elias–Fano sequence over H buckets times N/B blocks. A test in the
//! index measures it.

use std::fmt;

/// A parameter outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// Name of the parameter.
    pub what: &'static str,
    /// The requested value.
    pub value: u64,
    /// The allowed range.
    pub allowed: &'static str,
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}, got {}", self.what, self.allowed, self.value)
    }
}

impl std::error::Error for ParamError {}

/// Rows per block and selectivity, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    block_rows: u32,
    selectivity: u32,
}

/// Maximum bits of a bucket number: the high bits of a 32-bit fingerprint.
const MAX_BUCKET_BITS: u32 = 30;
/// Below this, sorting would not benefit from its first split (`cells.rs`), and the index would be useless.
const MIN_BUCKET_BITS: u32 = 9;

impl Params {
    /// Takes rows per block, and bits of selectivity per column.
    pub fn new(block_rows: u32, selectivity: u32) -> Result<Self, ParamError> {
        if !block_rows.is_power_of_two() || block_rows > 1 << 16 {
            let allowed = "a power of two up to 65536";
            return Err(ParamError { what: "block rows", value: block_rows.into(), allowed });
        }
        if !(1..=20).contains(&selectivity)
            || block_rows.trailing_zeros() + selectivity > MAX_BUCKET_BITS
        {
            let allowed = "between 1 and 20, and 2^30 at most times the block rows";
            return Err(ParamError { what: "selectivity", value: selectivity.into(), allowed });
        }
        Ok(Self { block_rows, selectivity })
    }

    /// Rows per block.
    pub fn block_rows(self) -> u32 {
        self.block_rows
    }

    /// Selectivity in bits.
    pub fn selectivity(self) -> u32 {
        self.selectivity
    }

    /// Bits of a bucket number, in a segment of this many rows.
    ///
    /// A lookup reads the lists of its buckets, so lists must not grow as fast as the table: from 2^24 rows on, there
    /// are twice as many buckets for every four times as many rows. Each doubling costs one bit per cell.
    pub fn bucket_bits(self, rows: u64) -> u32 {
        let least = (self.block_rows.trailing_zeros() + self.selectivity).max(MIN_BUCKET_BITS);
        let doublings = rows.max(1).ilog2().saturating_sub(FEW_ROWS_BITS).div_ceil(2);
        (least + doublings).min(MAX_BUCKET_BITS)
    }
}

/// Log2 of the number of rows below which the number of buckets follows from the parameters alone.
const FEW_ROWS_BITS: u32 = 24;

/// Number of cells, out of `cells`, above which a value would crowd its bucket and gets its own list.
pub(crate) fn heavy(cells: u64, bucket_bits: u32) -> u64 {
    ((4 * cells) >> bucket_bits).max(64)
}

impl Default for Params {
    /// 512 rows per block, 10 bits: 12.13 bits per cell.
    fn default() -> Self {
        Self { block_rows: 512, selectivity: 10 }
    }
}
