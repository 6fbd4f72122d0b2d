//! All rows of a Parquet file, row group by row group: what an index is built from.
//!
//! What is read of a row group is read in one piece, if it is not too large, and the checksums of its pages are made from the
//! same bytes that are decoded: nothing is read twice.

use std::ops::Range;
use std::sync::PoisonError;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use super::held_bytes::HeldBytes;
use super::page_map::{self, ChunkPages};
use super::parquet::{ParquetTable, guarded, places};
use super::{Format, Scan, Table, TableError};

/// Most bytes of a row group that are held in memory; of more, each page is read when it is needed.
const MOST_HELD: u64 = 16 << 20;

impl Table {
    /// The end of the row group that has this row; of CSV, which has none, of all numbers.
    pub(crate) fn group_end(&self, row: u64) -> u64 {
        let Format::Parquet(table) = &self.format else { return u64::MAX };
        let group = table.group_starts.partition_point(|&start| start <= row);
        table.group_starts.get(group).copied().unwrap_or(u64::MAX)
    }
}

impl ParquetTable {
    /// These rows, cut where row groups begin.
    pub(super) fn parts(&self, rows: &Range<u64>) -> Vec<Range<u64>> {
        let groups = self.group_starts.windows(2);
        let parts = groups.map(|group| group[0].max(rows.start)..group[1].min(rows.end));
        parts.filter(|part| part.start < part.end).collect()
    }

    /// All rows of some columns from this one on, in order.
    pub(super) fn scan<'a>(
        &'a self,
        first_row: u64,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'a>, TableError> {
        self.whole()?;
        let columns = columns.to_vec();
        let mut parts = self.parts(&(first_row..self.rows())).into_iter();
        let mut current: Option<Scan<'a>> = None;
        let next = move || loop {
            if let Some(batch) = current.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            let file = self.file_reader();
            match self.scan_group(file, &parts.next()?, &columns, batch_rows) {
                Ok(scan) => current = Some(scan),
                Err(error) => return Some(Err(error)),
            }
        };
        let mut next = Some(next);
        Ok(Scan::new(std::iter::from_fn(move || {
            let batch = next.as_mut()?();
            if !matches!(batch, Some(Ok(_))) {
                next = None;
            }
            batch
        })))
    }

    /// Some columns of rows of one row group, to be indexed.
    pub(super) fn scan_part<'a>(
        &'a self,
        rows: &Range<u64>,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'a>, TableError> {
        let group = self.group_of(rows);
        let metadata = self.whole()?.metadata();
        let is_wanted = |leaf: &usize| {
            columns.contains(&metadata.file_metadata().schema_descr().get_column_root_idx(*leaf))
        };
        let row_group = metadata.row_group(group);
        let leaves: Vec<usize> = (0..row_group.num_columns()).filter(is_wanted).collect();
        let ranges = leaves.iter().map(|&leaf| {
            let (start, bytes) = row_group.column(leaf).byte_range();
            start..start + bytes
        });
        let wanted: u64 = ranges.clone().map(|range| range.end - range.start).sum();
        let start = ranges.clone().map(|range| range.start).min().unwrap_or(0);
        let end = ranges.map(|range| range.end).max().unwrap_or(0);
        let is_whole = self.group_starts[group..group + 2] == [rows.start, rows.end];
        // Columns that are not wanted may be in between.
        let file = if end - start <= MOST_HELD && wanted >= (end - start) / 2 {
            let bytes = self.file().read(start..end);
            let bytes = bytes.map_err(|error| TableError::io(self.file().location(), error))?;
            HeldBytes::of_file(self.file().clone(), start, bytes.into())
        } else {
            self.file_reader()
        };
        if is_whole {
            for &leaf in &leaves {
                let pages = self.checked_pages(group, leaf, &file)?;
                let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
                checked.insert((group, leaf), pages);
            }
        }
        self.scan_group(file, rows, columns, batch_rows)
    }

    /// Everything is read from the file.
    pub(super) fn file_reader(&self) -> HeldBytes {
        HeldBytes::of_file(self.file().clone(), 0, Bytes::new())
    }

    /// The pages of a chunk with their checksums; `None` if it is not known where they are.
    pub(super) fn checked_pages(
        &self,
        group: usize,
        leaf: usize,
        file: &HeldBytes,
    ) -> Result<Option<ChunkPages>, TableError> {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = checked.get(&(group, leaf)) {
            return Ok(pages.clone());
        }
        drop(checked);
        let pages = self.chunk_pages(group, leaf)?;
        let mut pages = pages.map(|pages| pages.as_ref().clone());
        if let Some(pages) = &mut pages {
            let chunk = self.whole()?.metadata().row_group(group).column(leaf);
            page_map::add_checksums(pages, file, chunk)
                .map_err(|error| TableError::io(self.file().location(), error))?;
        }
        Ok(pages)
    }

    fn group_of(&self, rows: &Range<u64>) -> usize {
        self.group_starts.partition_point(|&first| first <= rows.start) - 1
    }

    fn scan_group<'a>(
        &'a self,
        file: HeldBytes,
        rows: &Range<u64>,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'a>, TableError> {
        let metadata = self.whole()?;
        let mask = ProjectionMask::roots(self.descriptor(), columns.iter().copied());
        let order = places(columns);
        let path = self.file().location();
        let group = self.group_of(rows);
        let skipped = rows.start - self.group_starts[group];
        let mut left = rows.end - rows.start;
        let mut reader = guarded(path, || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .with_row_groups(vec![group])
                .with_offset(skipped as usize)
                .with_limit(left as usize)
                .build()
        })?;
        let mut failed = false;
        Ok(Scan::new(std::iter::from_fn(move || {
            if failed {
                return None;
            }
            let batch = guarded(path, || match reader.next().transpose()? {
                Some(batch) => {
                    left = left.saturating_sub(batch.num_rows() as u64);
                    Ok(Some(batch.project(&order)?))
                }
                // Rows that were not seen would not be in the index, and would never be found.
                None if left > 0 => Err(ParquetError::General(format!("{left} rows are missing"))),
                None => Ok(None),
            });
            failed = batch.is_err();
            batch.transpose()
        })))
    }
}
