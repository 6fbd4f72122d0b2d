//! Parquet files: only the pages that hold the requested rows and columns are touched.
//!
//! ```text
//!  rows 5000..5512, column b
//!        │
//!        ├─ row group 2 holds rows 4096..6144          by the footer, read once
//!        └─ page 3 of its chunk of b holds 4608..5632  by the notes of the index, the page index, or the page headers
//!              └─ decompress (or cached), skip 392 values, decode 512
//! ```

use crate::location::Location;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use ironbloom::format::parquet_file::StoredFilter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, RowGroups, RowSelection,
};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::SerializedPageReader;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use super::footer::{Footer, adjusted, check_layout, load, parse_group, reader_options};
use super::held_bytes::HeldBytes;
use super::int96;
use super::page_cache::PageCache;
use super::page_map::{self, ChunkPages, GroupNotes, PageMap, Spot};
use super::page_reader::{CHANGED, ChunkReader, ColumnChunk, Meter, OneChunk, PageSource};
use super::row_groups::GroupSpans;
use super::{Reads, TableError, foreign, quiet};
use crate::file_bytes::{CUT_OFF, FileBytes, REPLACED};

/// The bytes at the start and at the end of every Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// The same of files whose footer is encrypted.
pub(super) const ENCRYPTED_MAGIC: &[u8] = b"PARE";
/// Why such files are refused, and those of which only columns are encrypted.
pub(super) const ENCRYPTED: &str = "is encrypted, and tables are read without keys";

/// Cache for decompressed pages, per table. Pages of pyarrow and DuckDB take up to 1 MiB.
const CACHE_BYTES: usize = 64 << 20;

/// Rows of one batch of a read. Larger ones gain nothing.
const BATCH_ROWS: usize = 1 << 16;

/// An open Parquet file.
pub(super) struct ParquetTable {
    file: FileBytes,
    footer: Footer,
    schema: SchemaRef,
    descriptor: SchemaDescPtr,
    /// The first row of each row group, and the number of all rows.
    pub(super) group_starts: Vec<u64>,
    groups: Vec<OnceLock<Group>>,
    /// With these, row groups are parsed when they are first needed.
    noted: Option<GroupNotes>,
    /// All that the footer says: from the beginning if there are no such notes, or else when it is needed.
    whole: OnceLock<ArrowReaderMetadata>,
    /// Columns of `int96` that are read in microseconds.
    coarse: Vec<usize>,
    cache: Arc<PageCache>,
    projections: Mutex<HashMap<Vec<usize>, Arc<Projection>>>,
    /// Pages of a row group and leaf column with their checksums, made while they were read to be indexed.
    pub(super) checked: Mutex<HashMap<(usize, usize), Option<ChunkPages>>>,
    /// The filters of row groups and leaf columns that have been asked for; `None` where there is none.
    pub(super) own_filters: Mutex<HashMap<(usize, usize), Option<StoredFilter>>>,
}

/// A row group that has been parsed.
pub(super) struct Group {
    /// Of all row groups, or of this one alone; and its number there.
    metadata: Arc<ParquetMetaData>,
    place: usize,
    /// By leaf column; looked up when they are first needed.
    pages: Vec<PageSlot>,
}

type PageSlot = OnceLock<Option<Arc<ChunkPages>>>;

impl Group {
    pub(super) fn row_group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.place)
    }
}

/// How some columns are read from the file.
struct Projection {
    levels: FieldLevels,
    /// For each requested column, its position among those read: the file has its own order.
    order: Vec<usize>,
}

impl ParquetTable {
    /// Opens a file by its footer, and by what an index knows of it.
    pub(super) fn open(
        file: FileBytes,
        footer: Footer,
        notes: Option<&[u8]>,
    ) -> Result<Self, TableError> {
        let wrong = |what| TableError::notes(file.location(), what);
        match notes.map(GroupNotes::read).transpose().map_err(wrong)?.flatten() {
            Some(noted) => Self::open_noted(file, footer, noted),
            None => Self::open_whole(file, footer, notes),
        }
    }

    /// Parses of the footer only what is not in its row groups.
    fn open_noted(file: FileBytes, footer: Footer, noted: GroupNotes) -> Result<Self, TableError> {
        let path = file.location();
        let wrong = |what| TableError::notes(path, what);
        if !noted.spans.fits(footer.metadata()) {
            return Err(wrong("another number of row groups"));
        }
        let frame = guarded(path, || parse_group(&footer, &noted, None))?;
        let coarse = noted.coarse(&frame).map_err(wrong)?;
        let mut group_starts = vec![0u64];
        for &rows in &noted.rows {
            let start = group_starts[group_starts.len() - 1].checked_add(rows);
            group_starts.push(start.ok_or_else(|| wrong("too many rows"))?);
        }
        if group_starts.last().copied() != u64::try_from(frame.file_metadata().num_rows()).ok() {
            return Err(wrong("another number of rows"));
        }
        let rows = group_starts.last().copied().unwrap_or(0);
        let options = reader_options(true);
        let frame = guarded(path, || {
            let frame = ArrowReaderMetadata::try_new(frame.into(), options.clone())?;
            adjusted(frame, rows, &coarse, options)
        })?;
        Ok(Self {
            groups: std::iter::repeat_with(OnceLock::new).take(noted.rows.len()).collect(),
            noted: Some(noted),
            whole: OnceLock::new(),
            ..Self::with_schema(file, footer, &frame, group_starts, coarse)
        })
    }

    /// Parses the whole footer.
    fn open_whole(
        file: FileBytes,
        footer: Footer,
        notes: Option<&[u8]>,
    ) -> Result<Self, TableError> {
        let path = file.location();
        // No encrypted file has been indexed, and looking for this takes as long as parsing.
        if notes.is_none() && foreign::is_encrypted(footer.metadata()) {
            return Err(TableError::NotATable { path: path.into(), why: ENCRYPTED });
        }
        let options = reader_options(notes.is_some());
        let held = HeldBytes::of_file(file.clone(), footer.start, footer.bytes.clone());
        let metadata = guarded(path, || load(&file, &footer, &held, options.clone()))?;
        let group_starts =
            check_layout(metadata.metadata(), file.len()).map_err(|error| error.of_file(path))?;
        let (pages, coarse) = match notes {
            Some(notes) => known_pages(notes, metadata.metadata())
                .map_err(|what| TableError::notes(path, what))?,
            None => {
                let seen = guarded(path, || int96::look(&held, metadata.metadata()))?;
                let int96::Coarse(coarse) = seen.map_err(|int96::Inexact(column)| {
                    TableError::InexactTimestamps { path: path.into(), column }
                })?;
                (unknown_pages(metadata.metadata()), coarse)
            }
        };
        let rows = group_starts.last().copied().unwrap_or(0);
        let metadata = guarded(path, || adjusted(metadata, rows, &coarse, options))?;
        let group = |(place, pages)| {
            OnceLock::from(Group { metadata: Arc::clone(metadata.metadata()), place, pages })
        };
        Ok(Self {
            groups: pages.into_iter().enumerate().map(group).collect(),
            whole: OnceLock::from(metadata.clone()),
            ..Self::with_schema(file, footer, &metadata, group_starts, coarse)
        })
    }

    /// A table of which no row group is known yet.
    fn with_schema(
        file: FileBytes,
        footer: Footer,
        metadata: &ArrowReaderMetadata,
        group_starts: Vec<u64>,
        coarse: Vec<usize>,
    ) -> Self {
        Self {
            file,
            footer,
            schema: Arc::clone(metadata.schema()),
            descriptor: metadata.metadata().file_metadata().schema_descr_ptr(),
            group_starts,
            groups: Vec::new(),
            noted: None,
            whole: OnceLock::new(),
            coarse,
            cache: Arc::new(PageCache::new(CACHE_BYTES)),
            projections: Mutex::default(),
            checked: Mutex::default(),
            own_filters: Mutex::default(),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> u64 {
        self.group_starts.last().copied().unwrap_or(0)
    }

    pub(super) fn file(&self) -> &FileBytes {
        &self.file
    }

    /// The columns as they are stored.
    pub(super) fn descriptor(&self) -> &SchemaDescriptor {
        &self.descriptor
    }

    pub(super) fn row_groups(&self) -> usize {
        self.groups.len()
    }

    /// A row group, parsed now if that has not been done before.
    pub(super) fn group(&self, number: usize) -> Result<&Group, TableError> {
        let slot = &self.groups[number];
        if let Some(group) = slot.get() {
            return Ok(group);
        }
        let group = self.parse_group(number)?;
        Ok(slot.get_or_init(|| group))
    }

    fn parse_group(&self, number: usize) -> Result<Group, TableError> {
        let noted = self.noted.as_ref().expect("without notes, all are parsed when it is opened");
        let path = self.file.location();
        let metadata = guarded(path, || parse_group(&self.footer, noted, Some(number)))?;
        let starts = check_layout(&metadata, self.file.len())
            .map_err(|what| TableError::damaged(path, what))?;
        let wrong = |what| TableError::notes(path, what);
        if starts != [0, noted.rows[number]] {
            return Err(wrong("a row group has another number of rows"));
        }
        let pages = noted.pages(number, metadata.row_group(0)).map_err(wrong)?;
        let pages = pages.into_iter().map(known_slot).collect();
        Ok(Group { metadata: metadata.into(), place: 0, pages })
    }

    /// All row groups.
    pub(super) fn whole(&self) -> Result<&ArrowReaderMetadata, TableError> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let options = reader_options(true);
        let held =
            HeldBytes::of_file(self.file.clone(), self.footer.start, self.footer.bytes.clone());
        let whole = guarded(self.file.location(), || {
            let whole = load(&self.file, &self.footer, &held, options.clone())?;
            adjusted(whole, self.rows(), &self.coarse, options)
        })?;
        check_layout(whole.metadata(), self.file.len())
            .map_err(|what| TableError::damaged(self.file.location(), what))?;
        Ok(self.whole.get_or_init(|| whole))
    }

    /// Where all pages are, with checksums of those of the given columns.
    pub(super) fn notes(&self, indexed: &[usize]) -> Result<Vec<u8>, TableError> {
        let metadata = self.whole()?.metadata();
        let mut map = PageMap::new();
        for group in 0..metadata.num_row_groups() {
            let mut chunks = Vec::new();
            for leaf in 0..metadata.row_group(group).num_columns() {
                let root = metadata.file_metadata().schema_descr().get_column_root_idx(leaf);
                chunks.push(match indexed.contains(&root) {
                    true => self.checked_pages(group, leaf, &self.file_reader())?,
                    false => self.chunk_pages(group, leaf)?.map(|pages| pages.as_ref().clone()),
                });
            }
            map.push(chunks);
        }
        Ok(match self.separate_groups(metadata) {
            Some(spans) => {
                let rows: Vec<u64> =
                    self.group_starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
                page_map::write_group_notes(&map, &spans, &rows, &self.coarse)
            }
            None => page_map::write_notes(&map, &self.coarse),
        })
    }

    /// Where the row groups are in the footer, if each can be parsed without the others: nothing had to be repaired, and
    /// what comes out is the same.
    fn separate_groups(&self, metadata: &ParquetMetaData) -> Option<GroupSpans> {
        let footer = self.footer.metadata();
        let spans = GroupSpans::find(footer)?;
        let parse = |group| {
            let footer = spans.footer_of(footer, group)?;
            let parsed = quiet::caught(|| ParquetMetaDataReader::decode_metadata(&footer));
            parsed.ok()?.ok()
        };
        let frame = parse(None)?;
        let counts = [metadata, &frame].map(|found| found.file_metadata().num_rows());
        let same = |number: usize| {
            parse(Some(number)).is_some_and(|alone| {
                let (alone, among) = (alone.row_groups(), metadata.row_group(number));
                alone.len() == 1
                    && alone[0].num_rows() == among.num_rows()
                    && alone[0].columns() == among.columns()
            })
        };
        let all_same = spans.len() == metadata.num_row_groups() && (0..spans.len()).all(same);
        (all_same && counts[0] == counts[1]).then_some(spans)
    }

    /// Some rows of some columns, in order. The ranges are sorted, disjoint and inside the table.
    pub(super) fn read_rows(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
        reads: &mut Reads,
    ) -> Result<Vec<RecordBatch>, TableError> {
        let projection = self.projection(columns)?;
        let meter = Arc::new(Meter::default());
        let mut batches = Vec::new();
        self.prefetch(ranges, columns)?;
        for (group, ranges) in self.by_group(ranges) {
            let source = PageSource {
                file: self.file.clone(),
                metadata: Arc::clone(&self.group(group)?.metadata),
                cache: Arc::clone(&self.cache),
                meter: Arc::clone(&meter),
            };
            self.read_group(source, group, &ranges, &projection, &mut batches)?;
        }
        reads.pages += meter.pages.load(Ordering::Relaxed);
        reads.cached_pages += meter.cached.load(Ordering::Relaxed);
        reads.bytes += meter.bytes.load(Ordering::Relaxed);
        Ok(batches)
    }

    /// Requests the pages that hold these rows of these columns, together, if the file is an object.
    pub(super) fn prefetch(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
    ) -> Result<(), TableError> {
        if !self.file.is_object() {
            return Ok(());
        }
        let mut wanted = Vec::new();
        for (group, ranges) in self.by_group(ranges) {
            for leaf in 0..self.descriptor.num_columns() {
                if !columns.contains(&self.descriptor.get_column_root_idx(leaf)) {
                    continue;
                }
                let Some(pages) = self.chunk_pages(group, leaf)? else { continue };
                wanted.extend(pages.spots(&ranges).map(Spot::range));
            }
        }
        self.file.prefetch(&wanted).map_err(|error| TableError::io(self.file.location(), error))
    }

    fn read_group(
        &self,
        source: PageSource,
        group: usize,
        ranges: &[Range<usize>],
        projection: &Projection,
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(), TableError> {
        let wanted: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let rows = (self.group_starts[group + 1] - self.group_starts[group]) as usize;
        let selection = RowSelection::from_consecutive_ranges(ranges.iter().cloned(), rows);
        let place = self.group(group)?.place;
        let one = OneGroup { table: self, source, group, place, wanted: ranges.into() };
        guarded(self.file.location(), || {
            let reader = ParquetRecordBatchReader::try_new_with_row_groups(
                &projection.levels,
                &one,
                wanted.min(BATCH_ROWS),
                Some(selection),
            )?;
            let mut got = 0;
            for batch in reader {
                let batch = batch?.project(&projection.order)?;
                got += batch.num_rows();
                batches.push(batch);
            }
            // A column that ends early gives fewer rows, and all later row numbers would be wrong.
            if got == wanted {
                Ok(())
            } else {
                Err(ParquetError::General(format!("{got} rows where {wanted} should be")))
            }
        })
    }

    /// The ranges split at row group boundaries, each relative to its group.
    pub(super) fn by_group(&self, ranges: &[Range<u64>]) -> Vec<(usize, Vec<Range<usize>>)> {
        let mut groups: Vec<(usize, Vec<Range<usize>>)> = Vec::new();
        for range in ranges {
            let mut start = range.start;
            while start < range.end {
                let group = self.group_starts.partition_point(|&first| first <= start) - 1;
                let (first, next) = (self.group_starts[group], self.group_starts[group + 1]);
                let end = range.end.min(next);
                let local = (start - first) as usize..(end - first) as usize;
                match groups.last_mut() {
                    Some((last, ranges)) if *last == group => ranges.push(local),
                    _ => groups.push((group, vec![local])),
                }
                start = end;
            }
        }
        groups
    }

    /// What the file's schema makes of some columns; cached, because queries use the same ones again and again.
    fn projection(&self, columns: &[usize]) -> Result<Arc<Projection>, TableError> {
        let mut known = self.projections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(projection) = known.get(columns) {
            return Ok(Arc::clone(projection));
        }
        let schema = self.descriptor();
        let mask = ProjectionMask::roots(schema, columns.iter().copied());
        let hint = Some(self.schema().fields());
        let levels =
            guarded(self.file.location(), || parquet_to_arrow_field_levels(schema, mask, hint))?;
        let projection = Arc::new(Projection { levels, order: places(columns) });
        known.insert(columns.to_vec(), Arc::clone(&projection));
        Ok(projection)
    }

    /// Where the pages of a chunk are; `None` if that is known only by reading them.
    pub(super) fn chunk_pages(
        &self,
        group: usize,
        leaf: usize,
    ) -> Result<Option<Arc<ChunkPages>>, TableError> {
        let Group { metadata, place, pages } = self.group(group)?;
        let slot = &pages[leaf];
        if let Some(pages) = slot.get() {
            return Ok(pages.clone());
        }
        let pages = match page_map::from_page_index(metadata, *place, leaf) {
            Some(pages) => Some(pages),
            None => {
                let row_group = metadata.row_group(*place);
                let rows = row_group.num_rows() as u64;
                page_map::from_headers(&self.file, row_group.column(leaf), rows)
                    .map_err(|error| error.of_file(self.file.location()))?
            }
        };
        Ok(slot.get_or_init(|| pages.map(Arc::new)).clone())
    }
}

/// One row group as the decoders see it.
struct OneGroup<'a> {
    table: &'a ParquetTable,
    source: PageSource,
    group: usize,
    /// Its number in the metadata of the source.
    place: usize,
    /// The rows that will be requested.
    wanted: Arc<[Range<usize>]>,
}

impl RowGroups for OneGroup<'_> {
    fn num_rows(&self) -> usize {
        self.metadata().row_group(self.place).num_rows() as usize
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>, ParquetError> {
        let pages = self
            .table
            .chunk_pages(self.group, leaf)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        let reader: Box<dyn PageReader> = match pages {
            Some(pages) => {
                let chunk = ColumnChunk { group: self.place, leaf, pages };
                let wanted = Arc::clone(&self.wanted);
                Box::new(ChunkReader::new(self.source.clone(), chunk, wanted))
            }
            // Lists whose pages do not say how many rows they hold: from the start of the chunk, page by page.
            None => {
                let chunk = self.metadata().row_group(self.place).column(leaf);
                self.source.meter.bytes.fetch_add(chunk.byte_range().1, Ordering::Relaxed);
                let file = HeldBytes::of_file(self.source.file.clone(), 0, Bytes::new());
                Box::new(SerializedPageReader::new(Arc::new(file), chunk, self.num_rows(), None)?)
            }
        };
        Ok(Box::new(OneChunk(Some(reader))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata().row_group(self.place)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.source.metadata
    }
}

fn known_slot(pages: Option<ChunkPages>) -> PageSlot {
    OnceLock::from(pages.map(Arc::new))
}

fn unknown_pages(metadata: &ParquetMetaData) -> Vec<Vec<PageSlot>> {
    let group = |group: &RowGroupMetaData| {
        std::iter::repeat_with(OnceLock::new).take(group.num_columns()).collect()
    };
    metadata.row_groups().iter().map(group).collect()
}

fn known_pages(
    notes: &[u8],
    metadata: &ParquetMetaData,
) -> Result<(Vec<Vec<PageSlot>>, Vec<usize>), &'static str> {
    let (map, coarse) = page_map::read_notes(notes, metadata)?;
    let slots = map.into_iter().map(|group| group.into_iter().map(known_slot).collect()).collect();
    Ok((slots, coarse))
}

/// For each column its place among the distinct ones in the order of the file.
pub(super) fn places(columns: &[usize]) -> Vec<usize> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    columns.iter().map(|column| sorted.partition_point(|other| other < column)).collect()
}

/// Runs what the `parquet` crate does with bytes from the file. It returns an error for most damage and panics for some
/// (subtractions, slices and assertions in its decoders); here a damaged file is always an error.
pub(super) fn guarded<T>(
    path: &Location,
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, TableError> {
    match quiet::caught(work) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(named(path, &error)),
        Err(panic) => {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(TableError::damaged(path, what.unwrap_or("cannot be decoded")))
        }
    }
}

fn named(path: &Location, error: &ParquetError) -> TableError {
    let text = match error {
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::ArrowError(text) => {
            text.clone()
        }
        other => other.to_string(),
    };
    told(path, &text)
}

/// Words in errors of the `parquet` crate about files that other readers accept, and what is not supported then.
const UNSUPPORTED: [(&str, &str); 1] = [(
    "Invalid delta bit width",
    "has integers of 32 bits whose differences are stored in 33 (DELTA_BINARY_PACKED, as DuckDB writes them with \
     parquet_version v2), which is not supported: write it with parquet_version v1",
)];

/// The error that this text stands for: errors become text on the way here.
fn told(path: &Location, text: &str) -> TableError {
    if let Some(at) = [CHANGED, CUT_OFF, REPLACED].iter().find_map(|what| text.find(what)) {
        return TableError::changed(path, &text[at..]);
    }
    if let Some((_, why)) = UNSUPPORTED.iter().find(|(words, _)| text.contains(words)) {
        return TableError::NotATable { path: path.into(), why };
    }
    TableError::damaged(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array, types::Int64Type};
    use ironbloom_testing::TemporaryFile;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    /// A file of ten row groups of a hundred rows.
    fn file() -> (TemporaryFile, FileBytes) {
        let path = TemporaryFile::new("bytes");
        let numbers = Int64Array::from_iter_values(0..1000);
        let batch = RecordBatch::try_from_iter([("a", Arc::new(numbers) as _)]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
        let output = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(output, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = FileBytes::open(path.path()).unwrap();
        (path, file)
    }

    fn open(file: &FileBytes, notes: Option<&[u8]>) -> ParquetTable {
        ParquetTable::open(file.clone(), Footer::read(file).unwrap(), notes).unwrap()
    }

    fn read(table: &ParquetTable, rows: Range<u64>) -> Vec<i64> {
        let batches = table.read_rows(&[rows], &[0], &mut Reads::default()).unwrap();
        let values =
            |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        batches.iter().flat_map(values).collect()
    }

    #[test]
    fn only_the_row_groups_that_are_read_are_parsed() {
        let (_path, file) = file();
        let notes = open(&file, None).notes(&[0]).unwrap();
        let table = open(&file, Some(&notes));
        assert_eq!((table.rows(), table.row_groups()), (1000, 10));
        assert_eq!(read(&table, 350..450), (350..450).collect::<Vec<_>>());
        let parsed = |table: &ParquetTable| -> Vec<usize> {
            (0..10).filter(|&group| table.groups[group].get().is_some()).collect()
        };
        assert_eq!(parsed(&table), [3, 4]);
        assert!(table.whole.get().is_none());
        // A scan needs all of them, and gets them from the whole footer.
        let scanned: usize = table.scan(0, &[0], 64).unwrap().map(|b| b.unwrap().num_rows()).sum();
        assert_eq!(scanned, 1000);
        assert!(table.verify().errors.is_empty());
        assert_eq!(open(&file, Some(&notes)).notes(&[0]).unwrap(), notes);
    }

    /// As they were written before row groups could be parsed one by one, and are still if a footer is odd.
    #[test]
    fn notes_of_the_first_form_are_read() {
        let (_path, file) = file();
        let table = open(&file, None);
        let pages = |group| vec![table.chunk_pages(group, 0).unwrap().map(|p| p.as_ref().clone())];
        let map: PageMap = (0..10).map(pages).collect();
        let table = open(&file, Some(&page_map::write_notes(&map, &[])));
        assert!(table.noted.is_none());
        assert_eq!(read(&table, 350..450), (350..450).collect::<Vec<_>>());
    }

    #[test]
    fn notes_that_do_not_fit_the_footer_are_an_error() {
        let (_path, file) = file();
        let table = open(&file, None);
        let spans = GroupSpans::find(table.footer.metadata()).unwrap();
        let pages = |group| vec![table.chunk_pages(group, 0).unwrap().map(|p| p.as_ref().clone())];
        let map: PageMap = (0..10).map(pages).collect();
        let mut rows = vec![100; 10];
        rows[3] = 99;
        rows[4] = 101;
        let notes = page_map::write_group_notes(&map, &spans, &rows, &[]);
        let table = open(&file, Some(&notes));
        assert_eq!(read(&table, 0..100), (0..100).collect::<Vec<_>>());
        let rows = std::slice::from_ref(&(350..360));
        let error = table.read_rows(rows, &[0], &mut Reads::default()).unwrap_err();
        assert!(matches!(error, TableError::Notes { .. }), "{error}");
        // No timestamps are in this column.
        let notes = page_map::write_group_notes(&map, &spans, &[100; 10], &[0]);
        let opened = ParquetTable::open(file.clone(), Footer::read(&file).unwrap(), Some(&notes));
        assert!(matches!(opened.err(), Some(TableError::Notes { .. })));
    }
}
