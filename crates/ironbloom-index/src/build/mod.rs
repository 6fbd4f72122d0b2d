//! From the rows of a table to the columns of a segment: by several threads, in bounded memory, always the same bytes.
//!
//! ```text
//!  passes over the rows:   column 0                    column 1                 …     as many columns at a time as fit
//!  parts of the table:     part 0 │ part 1 │ part 2 │ part 0 │ part 1 │ …             row groups, runs of lines
//!
//!  a thread takes a part ──► decode ──► fingerprints ──► waits for its turn ──► cells of the column
//!                                   ──► smallest and largest of each block
//!  the last part of a pass ──► cells ──► 16 shares, encoded by any thread ──► joined ──► spilled
//! ```
//!
//! Threads read different parts at the same time, but hand them over in the order of the rows, so the cells are those that one
//! thread would have made. The thread whose turn it is never waits, so all of them get on. A pass begins when there is memory
//! for its cells, that is, usually when those of the last pass have been encoded.

mod progress;
mod queue;
mod tables;
mod turn;

pub use progress::BuildProgress;
pub(crate) use progress::Meter;
pub(crate) use tables::{NewTables, about, about_rows};

use std::ops::Range;

use arrow::array::{Array, RecordBatch};

use ironbloom_blocks::Params;
use ironbloom_blocks::bounds::BlockSpans;

use self::queue::SegmentBuild;
use crate::fingerprints::append_fingerprints;
use crate::images::push_images;
use crate::indexed_error::IndexedError;
use crate::resources::Resources;
use crate::segment::SegmentColumn;
use crate::segment_bounds::SegmentBounds;
use crate::table::Table;
use crate::workspace::Workspace;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Rows of a table that will be a segment.
pub(crate) struct Rows<'a> {
    pub(crate) table: &'a Table,
    /// The numbers of the columns in the table.
    pub(crate) columns: &'a [usize],
    pub(crate) rows: Range<u64>,
    pub(crate) params: Params,
    pub(crate) bucket_bits: u32,
}

/// Reads these rows, and seals their columns.
pub(crate) fn columns_of(
    rows: &Rows<'_>,
    resources: Resources,
    workspace: &Workspace,
    meter: &Meter,
) -> Result<(Vec<SegmentColumn>, SegmentBounds), IndexedError> {
    SegmentBuild::new(rows, resources, workspace, meter).columns()
}

/// What is kept of the rows of a column that were read, until it is their turn.
struct Gathered {
    prints: Vec<u32>,
    spans: BlockSpans,
}

impl Gathered {
    /// Nothing so far; the next row is this one of the segment.
    fn new(block_rows: u32, row: u64) -> Self {
        Self { prints: Vec::new(), spans: BlockSpans::starting_at(block_rows, row) }
    }

    fn push(&mut self, array: &dyn Array) {
        let known = append_fingerprints(array, &mut self.prints);
        assert!(known, "a kind for every type that can be encoded");
        push_images(array, &mut self.spans);
    }
}

/// Adds a batch to what was gathered of its columns.
fn gather(gathered: &mut [Gathered], batch: &RecordBatch) {
    for (gathered, array) in gathered.iter_mut().zip(batch.columns()) {
        gathered.push(array);
    }
}
