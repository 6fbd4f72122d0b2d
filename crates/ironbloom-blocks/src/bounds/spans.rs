//! The exact spans of blocks that are still receiving rows.

use std::ops::Range;

use super::image::Span;
use crate::block_set::BlockSet;

/// First and last image of each block so far; 32 bytes each.
#[derive(Clone, Debug)]
pub struct BlockSpans {
    block_rows: u32,
    /// Number of the first span's block.
    first_block: u64,
    /// Number of the next row.
    row: u64,
    spans: Vec<Span>,
}

impl BlockSpans {
    /// Creates spans for blocks of this many rows.
    pub fn new(block_rows: u32) -> Self {
        Self::starting_at(block_rows, 0)
    }

    /// Creates spans for rows from this one on, to be [joined](Self::take_from) with earlier ones.
    pub fn starting_at(block_rows: u32, row: u64) -> Self {
        Self { block_rows, first_block: row / u64::from(block_rows), row, spans: Vec::new() }
    }

    /// Adds rows. `span_of` returns the span of a range of them, numbered from 0; each range is
    /// within one block.
    pub fn push(&mut self, rows: usize, mut span_of: impl FnMut(Range<usize>) -> Span) {
        let mut done = 0;
        while done < rows {
            let filled = (self.row % u64::from(self.block_rows)) as usize;
            if filled == 0 || self.spans.is_empty() {
                self.spans.push(Span::NONE);
            }
            let some = (rows - done).min(self.block_rows as usize - filled);
            let last = self.spans.last_mut().expect("a block was started");
            *last = last.with(span_of(done..done + some));
            done += some;
            self.row += some as u64;
        }
    }

    /// Moves the spans of other rows here. They may come in any order, but not before the first of
    /// these.
    ///
    /// # Panics
    ///
    /// If they begin before these.
    pub fn take_from(&mut self, other: &mut Self) {
        let first = other.first_block.checked_sub(self.first_block).expect("later rows") as usize;
        let end = first + other.spans.len();
        if self.spans.len() < end {
            self.spans.resize(end, Span::NONE);
        }
        for (span, more) in self.spans[first..].iter_mut().zip(&other.spans) {
            *span = span.with(*more);
        }
        self.row = self.row.max(other.row);
        *other = Self::starting_at(other.block_rows, other.row);
    }

    /// The span of each block; [`Span::NONE`] if all its values are null.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The span of all rows.
    pub fn frame(&self) -> Span {
        self.spans.iter().fold(Span::NONE, |all, &span| all.with(span))
    }

    /// Keeps those of these blocks that have an image in this span.
    pub fn narrow(&self, wanted: Span, blocks: BlockSet) -> BlockSet {
        let touches = |block: &u32| self.spans[*block as usize].overlaps(wanted);
        BlockSet::Some(match blocks {
            BlockSet::All => (0..self.spans.len() as u32).filter(touches).collect(),
            BlockSet::Some(blocks) => blocks.into_iter().filter(touches).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Image;

    #[test]
    fn rows_that_come_in_parts_fill_blocks_in_order() {
        let mut spans = BlockSpans::new(4);
        let mut next = 0;
        for rows in [0, 3, 1, 1, 9, 2] {
            spans.push(rows, |range| Span {
                low: Image((next + range.start) as u128),
                high: Image((next + range.end - 1) as u128),
            });
            next += rows;
        }
        let firsts: Vec<u128> = spans.spans().iter().map(|span| span.low.0).collect();
        let lasts: Vec<u128> = spans.spans().iter().map(|span| span.high.0).collect();
        assert_eq!((firsts, lasts), (vec![0, 4, 8, 12], vec![3, 7, 11, 15]));
    }

    #[test]
    fn parts_in_any_order_are_what_all_rows_are() {
        let rows = |spans: &mut BlockSpans, rows: Range<usize>| {
            spans.push(rows.len(), |range| Span {
                low: Image((rows.start + range.start) as u128),
                high: Image((rows.start + range.end - 1) as u128),
            });
        };
        let mut whole = BlockSpans::new(4);
        rows(&mut whole, 0..23);
        let mut joined = BlockSpans::new(4);
        for part in [13usize..17, 0..3, 17..23, 3..13] {
            let mut spans = BlockSpans::starting_at(4, part.start as u64);
            // Hand over in the middle as well.
            let middle = part.start.midpoint(part.end);
            rows(&mut spans, part.start..middle);
            joined.take_from(&mut spans);
            rows(&mut spans, middle..part.end);
            joined.take_from(&mut spans);
        }
        assert_eq!(joined.spans(), whole.spans());
    }
}
