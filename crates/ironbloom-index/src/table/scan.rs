//! All rows of a table, wherever they come from.

use arrow::array::RecordBatch;

use super::error::TableError;

/// All rows of a table, batch by batch. See [`Table::scan`](super::Table::scan).
pub struct Scan<'a>(Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + 'a>);

impl<'a> Scan<'a> {
    pub(super) fn new(batches: impl Iterator<Item = Result<RecordBatch, TableError>> + 'a) -> Self {
        Self(Box::new(batches))
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<RecordBatch, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}
