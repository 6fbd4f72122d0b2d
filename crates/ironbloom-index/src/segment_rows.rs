//! The rows of a segment, and how its blocks are numbered.
//!
//! ```text
//!  blocks      0        1       │ 2       │ 3        4       │ 5
//!  rows        a 0–511  a 512–900 b 0–40    gone               a 901–1400
//! ```
//!
//! A segment has rows of one source or of many: with thousands of small files, a question reads one list instead of thousands. When a source
//! is removed, its rows in a shared segment are gone; they keep their numbers until the segment is merged with others.

use std::ops::Range;

use ironbloom_blocks::{BlockSet, Move, RowRange};

use crate::index::Block;

/// Rows of sources, in the order of their blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentRows {
    block_rows: u32,
    ranges: Vec<SourceRows>,
}

/// Rows of a source that follow each other. They start a new block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceRows {
    /// Its position among the sources of the index; `None` if it is gone.
    pub(crate) source: Option<usize>,
    pub(crate) rows: RowRange,
    first_block: u32,
}

impl SegmentRows {
    /// Rows of one source.
    pub(crate) fn of(source: usize, rows: RowRange, block_rows: u32) -> Self {
        Self::join([(Some(source), rows)], block_rows)
    }

    /// Rows of sources. Those that follow rows of the same source that end with a full block do not start a new one.
    pub(crate) fn join(
        parts: impl IntoIterator<Item = (Option<usize>, RowRange)>,
        block_rows: u32,
    ) -> Self {
        let mut joined = Self { block_rows, ranges: Vec::new() };
        for (source, rows) in parts {
            let first_block = joined.blocks();
            match joined.ranges.last_mut() {
                Some(last)
                    if last.source == source
                        && last.rows.end() == rows.first_row
                        && last.rows.rows.is_multiple_of(block_rows.into()) =>
                {
                    last.rows.rows += rows.rows;
                }
                _ => joined.ranges.push(SourceRows { source, rows, first_block }),
            }
        }
        joined
    }

    pub(crate) fn ranges(&self) -> &[SourceRows] {
        &self.ranges
    }

    /// The sources that have rows here, and these rows.
    pub(crate) fn present(&self) -> impl Iterator<Item = (usize, RowRange)> {
        self.ranges.iter().filter_map(|range| Some((range.source?, range.rows)))
    }

    /// The only source; `None` if there are several, or some that are gone.
    pub(crate) fn only_source(&self) -> Option<usize> {
        let first = self.ranges.first()?.source;
        first.filter(|_| self.ranges.iter().all(|range| range.source == first))
    }

    /// The first source that has rows here, and its first row: segments are in this order.
    pub(crate) fn first(&self) -> Option<(usize, u64)> {
        self.present().next().map(|(source, rows)| (source, rows.first_row))
    }

    /// Number of rows, without those that are gone.
    pub(crate) fn rows(&self) -> u64 {
        self.present().map(|(_, rows)| rows.rows).sum()
    }

    /// Number of blocks, with those that are gone.
    pub(crate) fn blocks(&self) -> u32 {
        self.ranges.last().map_or(0, |last| self.blocks_of(last).end)
    }

    /// Number of blocks, without those that are gone.
    pub(crate) fn present_blocks(&self) -> u64 {
        self.present().map(|(_, rows)| rows.blocks(self.block_rows)).sum()
    }

    pub(crate) fn has_gone(&self) -> bool {
        self.ranges.iter().any(|range| range.source.is_none())
    }

    fn blocks_of(&self, range: &SourceRows) -> Range<u32> {
        range.first_block..range.first_block + range.rows.blocks(self.block_rows) as u32
    }

    /// Sets the number of rows of the last range.
    pub(crate) fn grow(&mut self, rows: u64) {
        if let Some(last) = self.ranges.last_mut() {
            last.rows.rows = rows;
        }
    }

    /// Gives the sources these positions; those without one are gone. Returns whether any rows are left.
    pub(crate) fn place(&mut self, places: &[Option<usize>]) -> bool {
        for range in &mut self.ranges {
            range.source = range.source.and_then(|source| places[source]);
        }
        self.present().next().is_some()
    }

    /// Where the blocks that are left go if the first of them gets this number.
    pub(crate) fn moves(&self, first: u32) -> Vec<Move> {
        let mut to = first;
        let mut moves: Vec<Move> = Vec::new();
        for range in self.ranges.iter().filter(|range| range.source.is_some()) {
            let blocks = self.blocks_of(range);
            let len = blocks.len() as u32;
            match moves.last_mut() {
                Some(last) if last.blocks.end == blocks.start => last.blocks.end = blocks.end,
                _ => moves.push(Move { blocks, to }),
            }
            to += len;
        }
        moves
    }

    /// Calls back with the rows of blocks of these sources.
    pub(crate) fn each_block(
        &self,
        blocks: &BlockSet,
        is_meant: &dyn Fn(usize) -> bool,
        mut call: impl FnMut(Block),
    ) {
        let mut rest = match blocks {
            BlockSet::All => None,
            BlockSet::Some(some) => Some(some.as_slice()),
        };
        for range in &self.ranges {
            let own = self.blocks_of(range);
            let some = rest.as_mut().map(|rest| {
                let some = rest.partition_point(|&block| block < own.end);
                rest.split_off(..some).unwrap_or_default()
            });
            let Some(source) = range.source.filter(|&source| is_meant(source)) else { continue };
            let mut call = |block: u32| call(self.block(range, source, block));
            match some {
                None => own.for_each(&mut call),
                Some(some) => some.iter().copied().for_each(&mut call),
            }
        }
    }

    fn block(&self, range: &SourceRows, source: usize, block: u32) -> Block {
        let skip = u64::from(block - range.first_block) * u64::from(self.block_rows);
        let rows = (range.rows.rows - skip).min(self.block_rows.into()) as u32;
        Block { source, first_row: range.rows.first_row + skip, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first_row: u64, rows: u64) -> RowRange {
        RowRange { first_row, rows }
    }

    fn ranges(rows: &SegmentRows) -> Vec<(Option<usize>, RowRange)> {
        rows.ranges().iter().map(|range| (range.source, range.rows)).collect()
    }

    #[test]
    fn ranges_are_joined_only_where_no_row_changes_its_block() {
        let joined = |parts: &[(Option<usize>, RowRange)]| {
            ranges(&SegmentRows::join(parts.iter().copied(), 16))
        };
        let a = |first_row, rows| (Some(0), range(first_row, rows));
        assert_eq!(joined(&[a(0, 32), a(32, 5)]), [a(0, 37)]);
        for apart in
            [[a(0, 31), a(31, 5)], [a(0, 32), a(40, 5)], [a(0, 32), (Some(1), range(32, 5))]]
        {
            assert_eq!(joined(&apart), apart);
        }
    }

    #[test]
    fn every_row_is_in_its_block_and_those_of_sources_that_are_gone_in_none() {
        let parts = [(Some(0), range(0, 31)), (Some(2), range(0, 5)), (Some(1), range(100, 16))];
        let mut rows = SegmentRows::join(parts, 16);
        assert_eq!((rows.rows(), rows.blocks(), rows.only_source()), (52, 4, None));
        let found = |rows: &SegmentRows, blocks: &BlockSet, is_meant: &dyn Fn(usize) -> bool| {
            let mut found = Vec::new();
            rows.each_block(blocks, is_meant, |block| {
                found.push((block.source, block.first_row, block.rows));
            });
            found
        };
        let all = [(0, 0, 16), (0, 16, 15), (2, 0, 5), (1, 100, 16)];
        assert_eq!(found(&rows, &BlockSet::All, &|_| true), all);
        assert_eq!(found(&rows, &BlockSet::Some(vec![1, 3]), &|_| true), [all[1], all[3]]);
        assert_eq!(found(&rows, &BlockSet::Some(vec![1, 3]), &|source| source == 1), [all[3]]);
        assert_eq!(rows.moves(7), [Move { blocks: 0..4, to: 7 }]);

        assert!(rows.place(&[Some(0), Some(1), None]));
        assert_eq!((rows.rows(), rows.blocks(), rows.present_blocks()), (47, 4, 3));
        assert_eq!(found(&rows, &BlockSet::All, &|_| true), [all[0], all[1], all[3]]);
        assert_eq!(found(&rows, &BlockSet::Some(vec![2, 3]), &|_| true), [all[3]]);
        assert_eq!(rows.moves(7), [Move { blocks: 0..2, to: 7 }, Move { blocks: 3..4, to: 9 }]);
        assert!(!rows.place(&[None, None]));
        assert_eq!(rows.first(), None);
    }
}
