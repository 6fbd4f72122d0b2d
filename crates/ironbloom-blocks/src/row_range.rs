//! Ranges of consecutive rows.

/// Consecutive rows. Each range starts a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row.
    pub first_row: u64,
    /// Number of rows.
    pub rows: u64,
}

/// Maximum number of rows in a segment, so that block and entry numbers fit 32 bits.
pub const MAX_ROWS: u64 = 1 << 30;

impl RowRange {
    /// Number of the row after the last.
    pub fn end(self) -> u64 {
        self.first_row + self.rows
    }

    /// Number of blocks.
    pub fn blocks(self, block_rows: u32) -> u64 {
        self.rows.div_ceil(block_rows.into())
    }
}
