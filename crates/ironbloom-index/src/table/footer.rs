//! The footer of a Parquet file: what is in the file, and where.
//!
//! ```text
//!  … row groups │ Thrift struct │ its length │ PAR1
//!               └──────────── Footer ─────────────┘ ──► load: repaired, corrected ──► adjusted: as it is used here
//!                     └── parse_group: with one of its row groups, or none
//! ```

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataReader,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::held_bytes::HeldBytes;
use super::layout_error::LayoutError;
use super::page_map::GroupNotes;
use super::zones::with_zones;
use super::{foreign, int96};
use crate::file_bytes::FileBytes;

/// The end of a file: the length of its metadata, and the magic.
const TAIL_BYTES: u64 = 8;

/// The end of a file, which says what is in it. It is read once: what was compared with the index is what is parsed.
pub(super) struct Footer {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
    /// A number that changes with it: schema, places and statistics of all columns.
    pub(super) fingerprint: u64,
}

impl Footer {
    pub(super) fn read(file: &FileBytes) -> io::Result<Self> {
        let length = file.len();
        let Some((start, tail)) = Self::find(file)? else {
            // There is none, which the parser will report.
            let mut hasher = Xxh3::new();
            let mut pieces = file.pieces(0..length);
            while let Some(piece) = pieces.next() {
                hasher.update(piece?);
            }
            let (start, bytes) = (length, Bytes::new());
            return Ok(Self { start, bytes, fingerprint: hasher.digest() });
        };
        let bytes = file.read(start..length)?;
        if !bytes.ends_with(&tail) {
            return Err(io::Error::other("it was written to while it was opened"));
        }
        let fingerprint = xxh3_64(&bytes);
        Ok(Self { start, bytes: bytes.into(), fingerprint })
    }

    /// The Thrift struct in it.
    pub(super) fn metadata(&self) -> &[u8] {
        let end = self.bytes.len().saturating_sub(TAIL_BYTES as usize);
        &self.bytes[..end]
    }

    /// Where it starts, and the bytes that say so.
    fn find(file: &FileBytes) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(at) = file.len().checked_sub(TAIL_BYTES) else { return Ok(None) };
        let tail = file.read(at..file.len())?;
        let metadata = tail.first_chunk().copied().map_or(0, u32::from_le_bytes);
        Ok(at.checked_sub(metadata.into()).map(|start| (start, tail)))
    }
}

/// What the footer says, with what other readers of Parquet overlook or correct.
pub(super) fn load(
    file: &FileBytes,
    footer: &Footer,
    held: &HeldBytes,
    options: ArrowReaderOptions,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let loaded = ArrowReaderMetadata::load(held, options.clone());
    let loaded = loaded.or_else(|error| {
        let repaired = foreign::repaired(footer.metadata()).ok_or(error)?;
        let metadata = ParquetMetaDataReader::decode_metadata(&repaired)?;
        ArrowReaderMetadata::try_new(metadata.into(), options.clone())
    })?;
    match foreign::corrected(loaded.metadata(), file, footer.start)? {
        Some(corrected) => ArrowReaderMetadata::try_new(corrected.into(), options),
        None => Ok(loaded),
    }
}

/// The metadata as it is used here. Some writers give the file another number of rows than its row groups have, and the
/// crate would read no more than that: the row groups count.
pub(super) fn adjusted(
    metadata: ArrowReaderMetadata,
    rows: u64,
    coarse: &[usize],
    options: ArrowReaderOptions,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let file = metadata.metadata().file_metadata();
    let miscounted = u64::try_from(file.num_rows()) != Ok(rows);
    let zoned = with_zones(&metadata);
    if !miscounted && coarse.is_empty() && zoned.is_none() {
        return Ok(metadata);
    }
    let whole = if miscounted {
        let counted = FileMetaData::new(
            file.version(),
            i64::try_from(rows)?,
            file.created_by().map(str::to_owned),
            file.key_value_metadata().cloned(),
            file.schema_descr_ptr(),
            file.column_orders().cloned(),
        );
        let whole = ParquetMetaDataBuilder::new(counted)
            .set_row_groups(metadata.metadata().row_groups().to_vec())
            .set_column_index(metadata.metadata().column_index().cloned())
            .set_offset_index(metadata.metadata().offset_index().cloned());
        Arc::new(whole.build())
    } else {
        Arc::clone(metadata.metadata())
    };
    let schema = zoned.as_ref().unwrap_or(metadata.schema());
    let options = match coarse {
        [] if zoned.is_none() => options,
        coarse => options.with_schema(int96::with_coarse(schema, coarse)),
    };
    ArrowReaderMetadata::try_new(whole, options)
}

/// How the footer is read; with the page index of the file if there are no notes, to which it would add nothing.
pub(super) fn reader_options(has_notes: bool) -> ArrowReaderOptions {
    let policy = if has_notes { PageIndexPolicy::Skip } else { PageIndexPolicy::Optional };
    ArrowReaderOptions::new().with_offset_index_policy(policy)
}

/// The footer with one row group, or with none.
pub(super) fn parse_group(
    footer: &Footer,
    noted: &GroupNotes,
    group: Option<usize>,
) -> Result<ParquetMetaData, ParquetError> {
    let alone = noted.spans.footer_of(footer.metadata(), group);
    let alone = alone.ok_or_else(|| ParquetError::General("a row group is missing".to_owned()))?;
    ParquetMetaDataReader::decode_metadata(&alone)
}

/// The first row of each row group and the number of all, if all chunks lie inside the file.
pub(super) fn check_layout(
    metadata: &ParquetMetaData,
    length: u64,
) -> Result<Vec<u64>, LayoutError> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut starts = vec![0u64];
    let mut rows = 0u64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let more = u64::try_from(group.num_rows())
            .map_err(|_| LayoutError::NegativeRows { group: number })?;
        rows = rows.checked_add(more).ok_or(LayoutError::TooManyRows { group: number })?;
        starts.push(rows);
        if group.num_columns() != columns {
            return Err(LayoutError::ColumnCount { group: number });
        }
        if let Some(chunk) = group.columns().iter().find(|chunk| !is_inside(chunk, length)) {
            let column = chunk.column_path().to_string();
            return Err(LayoutError::Outside { group: number, column });
        }
    }
    Ok(starts)
}

fn is_inside(chunk: &ColumnChunkMetaData, length: u64) -> bool {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let end = start.checked_add(chunk.compressed_size());
    start >= 0
        && chunk.compressed_size() >= 0
        && end.and_then(|end| u64::try_from(end).ok()).is_some_and(|end| end <= length)
}
