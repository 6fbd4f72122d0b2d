//! What a build may use, and how many rows that makes.

use ironbloom_blocks::{MAX_ROWS, Params};

/// Memory and threads of a build.
///
/// ```
/// use ironbloom_index::Resources;
///
/// let small = Resources::default().with_memory(256 << 20).with_threads(1);
/// assert_eq!((small.memory(), small.threads()), (256 << 20, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    memory: u64,
    threads: usize,
}

impl Default for Resources {
    /// 1 GiB, and as many threads as there are processors.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory: 1 << 30, threads }
    }
}

/// Bytes that a row takes in the cells of a column.
const CELL_BYTES: u64 = 4;
/// Bytes that a row of a column takes while it is encoded, besides its cell, times two: 14 bits each in the encoded parts and
/// in what they are joined to.
const TWICE_ENCODED_BYTES: u64 = 7;

impl Resources {
    /// Keeps the memory of a build below this many bytes, by spilling what is finished to a temporary file, and by splitting
    /// tables. What is decoded at the moment, some ten megabytes for each thread, cannot be made smaller.
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { memory: bytes, ..self }
    }

    /// Uses this many threads, at least one. The index does not depend on their number.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// Bytes.
    pub fn memory(self) -> u64 {
        self.memory
    }

    /// Number of threads.
    pub fn threads(self) -> usize {
        self.threads
    }

    /// For cells and what they are encoded to. The rest is for pages that are being decoded.
    pub(crate) fn for_cells(self) -> u64 {
        self.memory / 4 * 3
    }

    /// For sealed columns that are not spilled.
    pub(crate) fn for_sealed(self) -> u64 {
        self.memory / 16
    }

    /// Rows of a segment, whole blocks, of which this many columns are read at a time.
    pub(crate) fn segment_rows(self, columns: usize, params: Params) -> u64 {
        let row_bytes_twice = 2 * CELL_BYTES * columns as u64 + TWICE_ENCODED_BYTES;
        let block = u64::from(params.block_rows());
        let rows = (self.for_cells() / row_bytes_twice).saturating_mul(2).min(MAX_ROWS);
        (rows / block).max(1) * block
    }

    /// Rows whose columns can be merged one by one: inputs, output, and what it is made from.
    pub(crate) fn mergeable_rows(self) -> u64 {
        (self.for_cells() / (3 * TWICE_ENCODED_BYTES)).saturating_mul(4).min(MAX_ROWS)
    }
}

/// Bytes of the cells of these rows and columns.
pub(crate) fn cell_bytes(rows: u64, columns: usize) -> u64 {
    CELL_BYTES * rows * columns as u64
}

/// Bytes of a column of this number of rows while its parts are joined.
pub(crate) fn joining_bytes(rows: u64) -> u64 {
    rows * TWICE_ENCODED_BYTES / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gibibyte_is_enough_for_a_hundred_million_rows_read_column_by_column() {
        let resources = Resources::default();
        assert!(resources.segment_rows(1, Params::default()) >= 100_000_000);
        assert!(resources.segment_rows(4, Params::default()) >= 30_000_000);
        let rows = resources.segment_rows(1, Params::default());
        assert!(cell_bytes(rows, 1) + joining_bytes(rows) <= resources.for_cells());
        assert_eq!(resources.with_memory(0).segment_rows(7, Params::default()), 512);
    }
}
