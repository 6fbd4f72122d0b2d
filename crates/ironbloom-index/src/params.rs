//! How fine the index is. Two numbers decide its size and what a lookup costs.
//!
//! ```text
//! B  rows a block, a power of two                       a lookup names blocks, so these rows are read for one hit
//! s  selectivity, in bits                               of the rows that do not match, one in 2^s is a candidate
//! H  = 2^s · B buckets a column                         so that a bucket names a block wrongly once in 2^s rows
//! ```
//!
//! A cell takes about s + 2.13 bits: its share of an Elias–Fano sequence over H buckets times N/B blocks
//! (structures §14.2; `tests/size.rs` measures it).

use crate::error::Error;

/// Rows a block and selectivity, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    block_rows: u32,
    selectivity: u32,
}

/// Buckets are the high bits of a 32-bit fingerprint, so that there are at most so many bits of them.
const MOST_BUCKET_BITS: u32 = 30;
/// Below this, sorting would not gain from its first cut (`postings/cells.rs`), nor would the index be of any use.
const LEAST_BUCKET_BITS: u32 = 9;

impl Params {
    /// Rows a block, and how many bits of selectivity each column has.
    pub fn new(block_rows: u32, selectivity: u32) -> Result<Self, Error> {
        if !block_rows.is_power_of_two() || block_rows > 1 << 16 {
            let allowed = "a power of two up to 65536";
            return Err(Error::Param { what: "block rows", value: block_rows.into(), allowed });
        }
        if !(1..=20).contains(&selectivity)
            || block_rows.trailing_zeros() + selectivity > MOST_BUCKET_BITS
        {
            let allowed = "between 1 and 20, and 2^30 at most times the block rows";
            return Err(Error::Param { what: "selectivity", value: selectivity.into(), allowed });
        }
        Ok(Self { block_rows, selectivity })
    }

    /// Rows a block.
    pub fn block_rows(self) -> u32 {
        self.block_rows
    }

    /// Selectivity in bits.
    pub fn selectivity(self) -> u32 {
        self.selectivity
    }

    /// Bits of the number of a bucket.
    pub(crate) fn bucket_bits(self) -> u32 {
        (self.block_rows.trailing_zeros() + self.selectivity).max(LEAST_BUCKET_BITS)
    }

    /// A value in more than so many of n cells would fill its bucket for the others there, and gets a list of its own.
    pub(crate) fn heavy(self, cells: u64) -> u64 {
        ((4 * cells) >> self.bucket_bits()).max(64)
    }
}

impl Default for Params {
    /// 512 rows a block, 10 bits: 12.13 bits a cell.
    fn default() -> Self {
        Self { block_rows: 512, selectivity: 10 }
    }
}
