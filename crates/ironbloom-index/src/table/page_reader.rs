//! The pages of one column chunk, for the decoders of the `parquet` crate.
//!
//! Its own reader would do, except for two things that cost milliseconds: it reads and decompresses a page again for
//! each query, and the dictionary of a chunk even if the page that is read does not use it (writers stop using it when
//! it has grown too large, which for columns of many different values is most of the chunk).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;

use super::held_bytes::{HeldBytes, failed};
use super::page_cache::PageCache;
use super::page_map::{ChunkPages, Spot};
use super::partial_page::Fault;
use super::verify::{self, Crc};
use super::{notes, partial_page};
use crate::file_bytes::FileBytes;

/// What one query has read.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) pages: AtomicU64,
    pub(super) cached: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Pages are read from here.
#[derive(Clone)]
pub(super) struct PageSource {
    pub(super) file: FileBytes,
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) cache: Arc<PageCache>,
    pub(super) meter: Arc<Meter>,
}

/// The text by which a changed page is recognised further up, where the file name is known.
pub(super) const CHANGED: &str = "page differs from when it was indexed";

/// From this many rows of a row group on, it is a scan: pages that are read as a whole are not kept. They would push out each other,
/// and memory that is used again costs less than fresh memory.
const SCAN_ROWS: usize = 1 << 15;

/// Whether a page goes into the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

/// A column in a row group.
pub(super) struct ColumnChunk {
    /// The number of its row group in the metadata of the source.
    pub(super) group: usize,
    pub(super) leaf: usize,
    pub(super) pages: Arc<ChunkPages>,
}

/// The pages of one chunk, in order; those that are skipped are never touched.
pub(super) struct ChunkReader {
    source: PageSource,
    chunk: ColumnChunk,
    /// Rows that will be read, in order: of a page that holds few of them only parts are decompressed.
    wanted: Arc<[Range<usize>]>,
    /// So many that nothing of what is read now will still be in the cache when it is needed again.
    is_scan: bool,
    next: usize,
    /// The dictionary has been returned.
    dictionary_given: bool,
    /// A page waiting for its dictionary to be returned first.
    waiting: Option<Page>,
}

impl ChunkReader {
    pub(super) fn new(source: PageSource, chunk: ColumnChunk, wanted: Arc<[Range<usize>]>) -> Self {
        let is_scan = wanted.iter().map(ExactSizeIterator::len).sum::<usize>() >= SCAN_ROWS;
        Self { source, chunk, wanted, is_scan, next: 0, dictionary_given: false, waiting: None }
    }

    fn metadata(&self) -> &ColumnChunkMetaData {
        self.source.metadata.row_group(self.chunk.group).column(self.chunk.leaf)
    }

    /// A page of values, in which the wanted ones are present.
    fn load_data(&self, page: usize) -> Result<Page> {
        let data = &self.chunk.pages.pages[page];
        let start = data.first_row as usize;
        let rows = start..start + self.chunk.pages.rows_of(page) as usize;
        if self.is_scan && self.wanted.iter().any(|range| is_inside(&rows, range)) {
            return self.load(data.spot, Keep::No);
        }
        if !data.pieces.is_empty() && !self.source.cache.contains(data.spot.offset) {
            let wanted = within(&self.wanted, rows);
            let request = partial_page::Request {
                file: &self.source.file,
                chunk: self.metadata(),
                page: data,
                wanted: &wanted,
            };
            let part = request.load().map_err(|fault| match fault {
                Fault::Changed(at) => self.changed(at),
                Fault::Io(error) => failed(error),
            });
            if let Some(part) = part? {
                self.source.meter.pages.fetch_add(1, Ordering::Relaxed);
                self.source.meter.bytes.fetch_add(part.bytes_read as u64, Ordering::Relaxed);
                return Ok(part.page);
            }
        }
        self.load(data.spot, Keep::Yes)
    }

    /// A whole page.
    fn load(&self, spot: Spot, keep: Keep) -> Result<Page> {
        let meter = &self.source.meter;
        if let Some(page) = self.source.cache.get(spot.offset) {
            meter.cached.fetch_add(1, Ordering::Relaxed);
            return Ok(page);
        }
        meter.pages.fetch_add(1, Ordering::Relaxed);
        meter.bytes.fetch_add(spot.bytes.into(), Ordering::Relaxed);
        let end = spot.offset + u64::from(spot.bytes);
        let bytes = self.source.file.read(spot.offset..end).map_err(failed)?;
        match spot.check {
            Some(check) if notes::checksum(&bytes) != check => {
                return Err(self.changed(spot.offset));
            }
            None if verify::crc_of(&bytes) == Crc::Wrong => {
                let (what, column) = (verify::WRONG_CRC, self.metadata().column_path());
                let text = format!("{what}: column {column}, byte {}", spot.offset);
                return Err(ParquetError::General(text));
            }
            _ => {}
        }
        let page = self.decompress(spot, bytes.into())?;
        if keep == Keep::Yes {
            self.source.cache.put(spot.offset, &page);
        }
        Ok(page)
    }

    fn changed(&self, at: u64) -> ParquetError {
        let column = self.metadata().column_path();
        ParquetError::General(format!("{CHANGED}: column {column}, byte {at}"))
    }

    /// The page in these bytes, by the reader of the `parquet` crate, which has the codecs.
    fn decompress(&self, spot: Spot, bytes: Bytes) -> Result<Page> {
        let location = PageLocation {
            offset: spot.offset as i64,
            compressed_page_size: spot.bytes as i32,
            first_row_index: 0,
        };
        let mut reader = SerializedPageReader::new(
            Arc::new(HeldBytes::alone(spot.offset, bytes)),
            self.metadata(),
            self.chunk.pages.rows as usize,
            Some(vec![location]),
        )?;
        // It assumes that whatever comes before the first page is the dictionary. Skipping does not read it.
        if spot.offset != self.metadata().byte_range().0 {
            reader.skip_next_page()?;
        }
        reader
            .get_next_page()?
            .ok_or_else(|| ParquetError::General(format!("no page at byte {}", spot.offset)))
    }
}

/// True if all rows of one range are in another.
fn is_inside(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The parts of sorted ranges that lie in a page, counted from its first row.
fn within(ranges: &[Range<usize>], page: Range<usize>) -> Vec<Range<usize>> {
    let first = ranges.partition_point(|range| range.end <= page.start);
    let inside = ranges[first..].iter().take_while(|range| range.start < page.end);
    inside
        .map(|range| range.start.max(page.start) - page.start..range.end.min(page.end) - page.start)
        .collect()
}

impl PageReader for ChunkReader {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        if let Some(page) = self.waiting.take() {
            return Ok(Some(page));
        }
        if self.next >= self.chunk.pages.pages.len() {
            return Ok(None);
        }
        let page = self.load_data(self.next)?;
        self.next += 1;
        if !self.dictionary_given
            && uses_dictionary(&page)
            && let Some(dictionary) = self.chunk.pages.dictionary
        {
            self.dictionary_given = true;
            self.waiting = Some(page);
            return Ok(Some(self.load(dictionary, Keep::Yes)?));
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        // `waiting` is never set here: a caller that was given a dictionary requests the page right away.
        Ok((self.next < self.chunk.pages.pages.len()).then(|| PageMetadata {
            num_rows: Some(self.chunk.pages.rows_of(self.next) as usize),
            num_levels: None,
            is_dict: false,
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.next += 1;
        Ok(())
    }
}

fn uses_dictionary(page: &Page) -> bool {
    matches!(page.encoding(), Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY)
}

impl Iterator for ChunkReader {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// The one chunk that a column has in a row group.
pub(super) struct OneChunk(pub(super) Option<Box<dyn PageReader>>);

impl Iterator for OneChunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for OneChunk {}
