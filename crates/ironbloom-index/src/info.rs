//! What an index holds, and how large it is: read from the directory alone.

use ironbloom_blocks::ValueKind;

use crate::error::Error;
use crate::index::Index;
use crate::layout::deleted_rows;
use crate::section::Fault;

/// The contents and size of an index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Rows of all sources, also those that were deleted from their table: see [`Index::deleted_rows`].
    pub rows: u64,
    /// Blocks of all segments.
    pub blocks: u64,
    /// Segments.
    pub segments: usize,
    /// Bytes of all columns, lists and bounds, not counting the data of the sources.
    pub bytes: u64,
    /// Bytes of these that hold the smallest and the largest values of blocks, with their checksums.
    pub bounds_bytes: u64,
    /// Bytes stored for the readers of the tables.
    pub blob_bytes: u64,
    /// The columns.
    pub columns: Vec<ColumnInfo>,
}

/// What an index holds for a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Size in bytes, of lists and bounds.
    pub bytes: u64,
    /// Bytes of these that hold the smallest and the largest values of blocks.
    pub bounds_bytes: u64,
    /// Bits per row, null or not.
    pub bits_per_cell: f64,
}

impl Index {
    /// How many rows of this table have been deleted, and are never found. Reads the list of them.
    ///
    /// # Panics
    ///
    /// If there is no such source, or if its rows were given in memory in another form than that of Iceberg and Delta tables.
    pub fn deleted_rows(&self, source: usize) -> Result<u64, Error> {
        let rows = deleted_rows(self.deleted(source)?).map(|rows| rows.len());
        rows.ok_or_else(|| {
            let source = &self.sources[source];
            let fault = Fault::Damaged(0..source.deleted.len());
            source.deleted.error(fault, source.deleted_part())
        })
    }

    /// The contents and size of the index. Reads only the directory.
    pub fn info(&self) -> Info {
        let rows = self.sources.iter().map(|source| source.rows).sum();
        let columns: Vec<ColumnInfo> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let lists = self.all_segments().map(|(_, part)| part.columns[i].size_in_bytes());
                let bounds = self.all_segments().map(|(_, part)| part.bounds.size_in_bytes(i));
                let bounds_bytes: u64 = bounds.sum();
                let bytes = lists.sum::<u64>() + bounds_bytes;
                let bits_per_cell = if rows == 0 { 0.0 } else { 8.0 * bytes as f64 / rows as f64 };
                let (name, kind) = (column.name.clone(), column.kind);
                ColumnInfo { name, kind, bytes, bounds_bytes, bits_per_cell }
            })
            .collect();
        let checksums =
            self.all_segments().map(|(_, part)| part.bounds.checksum_bytes(columns.len()));
        let checksums: u64 = checksums.sum();
        Info {
            rows,
            blocks: self.blocks(),
            segments: self.all_segments().count(),
            bytes: columns.iter().map(|column| column.bytes).sum::<u64>() + checksums,
            bounds_bytes: columns.iter().map(|column| column.bounds_bytes).sum::<u64>() + checksums,
            blob_bytes: self.sources.iter().map(|source| source.blob.len()).sum(),
            columns,
        }
    }
}
