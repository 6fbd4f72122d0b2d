//! The rows of a segment, and how its blocks are numbered.

/// Rows that follow each other. Each range starts a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row.
    pub first_row: u64,
    /// Number of rows.
    pub rows: u64,
}

/// Maximum number of rows in a segment, so that numbers of blocks and of entries fit 32 bits.
pub const MAX_ROWS: u64 = 1 << 30;

impl RowRange {
    /// The row after the last.
    pub fn end(self) -> u64 {
        self.first_row + self.rows
    }

    fn blocks(self, block_rows: u32) -> u64 {
        self.rows.div_ceil(block_rows.into())
    }
}

/// Ranges of rows, ascending. One, unless segments were merged whose last block was not full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRanges(pub Vec<RowRange>);

impl RowRanges {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|range| range.rows).sum()
    }

    /// Number of blocks.
    pub fn blocks(&self, block_rows: u32) -> u32 {
        self.0.iter().map(|range| range.blocks(block_rows)).sum::<u64>() as u32
    }

    /// The rows of a block.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn block(&self, mut block: u64, block_rows: u32) -> RowRange {
        for range in &self.0 {
            let blocks = range.blocks(block_rows);
            if block < blocks {
                let skip = block * u64::from(block_rows);
                let rows = (range.rows - skip).min(block_rows.into());
                return RowRange { first_row: range.first_row + skip, rows };
            }
            block -= blocks;
        }
        panic!("no block {block} after the last")
    }

    /// Joins the ranges of segments, where one ends with a full block and the next goes on.
    pub fn join<'a>(segments: impl Iterator<Item = &'a Self>, block_rows: u32) -> Self {
        let mut joined: Vec<RowRange> = Vec::new();
        for range in segments.flat_map(|ranges| &ranges.0) {
            match joined.last_mut() {
                Some(last)
                    if last.end() == range.first_row
                        && last.rows.is_multiple_of(block_rows.into()) =>
                {
                    last.rows += range.rows;
                }
                _ => joined.push(*range),
            }
        }
        Self(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first_row: u64, rows: u64) -> RowRange {
        RowRange { first_row, rows }
    }

    #[test]
    fn ranges_are_joined_only_where_no_row_changes_its_block() {
        let joined = |segments: &[RowRanges]| RowRanges::join(segments.iter(), 16).0;
        let one = |first_row, rows| RowRanges(vec![range(first_row, rows)]);
        assert_eq!(joined(&[one(0, 32), one(32, 5)]), [range(0, 37)]);
        assert_eq!(joined(&[one(0, 31), one(31, 5)]), [range(0, 31), range(31, 5)]);
        assert_eq!(joined(&[one(0, 32), one(40, 5)]), [range(0, 32), range(40, 5)]);
    }

    #[test]
    fn every_row_is_in_its_block_and_in_no_other() {
        let ranges = RowRanges(vec![range(0, 31), range(31, 5), range(100, 16)]);
        assert_eq!((ranges.rows(), ranges.blocks(16)), (52, 4));
        let blocks: Vec<_> = (0..4).map(|block| ranges.block(block, 16)).collect();
        assert_eq!(blocks, [range(0, 16), range(16, 15), range(31, 5), range(100, 16)]);
    }
}
