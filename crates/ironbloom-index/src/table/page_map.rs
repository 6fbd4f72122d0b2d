//! Where the pages of a Parquet file are.
//!
//! ```text
//!  row group 0                                              row group 1
//!  ├─ column 0  dictionary? │ page │ page │ page            ├─ column 0 …
//!  │            rows          0..    900..  1800..          │
//!  └─ column 1  …                                           └─ …
//! ```
//!
//! To read the rows 1000 to 1100 one must know that they are in the second page, and where that is. Files may say so in
//! a page index at the end; pyarrow and DuckDB write none by default. The page headers say it too, but that means going
//! from one to the next through the whole file. Building an index does so anyway, and keeps the result as notes,
//! together with a checksum of each page read, so that later reads are known to return what was indexed.

use std::io;
use std::ops::Range;

use parquet::basic::{Compression, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

use super::held_bytes::HeldBytes;
use super::layout_error::LayoutError;
use super::notes::{self, NotesReader, NotesWriter};
use super::page_header::{self, PageHeader, PageKind};
use super::row_groups::GroupSpans;
use super::snappy;
use super::verify::{Crc, WRONG_CRC, crc_of};
use crate::file_bytes::FileBytes;

/// One page in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// Where its header begins.
    pub(super) offset: u64,
    /// Bytes including the header.
    pub(super) bytes: u32,
    /// The checksum of these bytes, if they were read before.
    pub(super) check: Option<u32>,
}

/// A page of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataPage {
    pub(super) spot: Spot,
    /// Rows of the row group before this page.
    pub(super) first_row: u64,
    /// The parts that can be decompressed separately; empty if that is impossible or not worthwhile.
    pub(super) pieces: Box<[Piece]>,
}

/// A part of a page. See [`snappy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it begins, in bytes from the start of the page. The first begins with the page's header.
    pub(super) start: u32,
    /// The checksum of its bytes.
    pub(super) check: u32,
}

impl Spot {
    /// Its bytes in the file.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.bytes)
    }
}

/// The pages of one column in one row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkPages {
    pub(super) dictionary: Option<Spot>,
    pub(super) pages: Vec<DataPage>,
    /// Rows of the row group.
    pub(super) rows: u64,
}

impl ChunkPages {
    /// Rows of page number `page`.
    pub(super) fn rows_of(&self, page: usize) -> u64 {
        let end = self.pages.get(page + 1).map_or(self.rows, |next| next.first_row);
        end - self.pages[page].first_row
    }

    /// The pages that hold these rows of the row group, and the dictionary, which they may need.
    pub(super) fn spots<'a>(&'a self, rows: &'a [Range<usize>]) -> impl Iterator<Item = &'a Spot> {
        let is_wanted = |&page: &usize| {
            let start = self.pages[page].first_row as usize;
            let end = start + self.rows_of(page) as usize;
            let first = rows.partition_point(|range| range.end <= start);
            rows.get(first).is_some_and(|range| range.start < end)
        };
        let pages = (0..self.pages.len()).filter(is_wanted).map(|page| &self.pages[page].spot);
        self.dictionary.iter().chain(pages)
    }

    /// Whether the locations of the pages are plausible: one after the other inside the chunk, with rows ascending
    /// from 0.
    fn is_sound(&self, chunk: &ColumnChunkMetaData) -> bool {
        let (start, length) = chunk.byte_range();
        let mut spots = self.dictionary.iter().chain(self.pages.iter().map(|page| &page.spot));
        let end = spots.try_fold(start, |free, spot| {
            let fits = spot.offset >= free && spot.bytes > 0;
            fits.then(|| spot.offset.checked_add(spot.bytes.into())).flatten()
        });
        let rows_rise = self.pages.windows(2).all(|two| two[0].first_row < two[1].first_row);
        let first_and_last = match (self.pages.first(), self.pages.last()) {
            (Some(first), Some(last)) => first.first_row == 0 && last.first_row < self.rows,
            _ => self.rows == 0,
        };
        let pieces_rise = self.pages.iter().all(DataPage::has_sound_pieces);
        end.is_some_and(|end| end <= start + length) && rows_rise && first_and_last && pieces_rise
    }
}

impl DataPage {
    fn new(spot: Spot, first_row: u64) -> Self {
        Self { spot, first_row, pieces: Box::default() }
    }

    fn has_sound_pieces(&self) -> bool {
        let rise = self.pieces.windows(2).all(|two| two[0].start < two[1].start);
        let first_and_last = match (self.pieces.first(), self.pieces.last()) {
            (Some(first), Some(last)) => first.start == 0 && last.start < self.spot.bytes,
            _ => true,
        };
        rise && first_and_last
    }

    /// The bytes of a piece, from the start of the page.
    pub(super) fn piece_range(&self, piece: usize) -> Range<usize> {
        let end = self.pieces.get(piece + 1).map_or(self.spot.bytes, |next| next.start);
        self.pieces[piece].start as usize..end as usize
    }
}

/// The pages by the file's own page index, if it has a valid one for this chunk.
pub(super) fn from_page_index(
    metadata: &ParquetMetaData,
    group: usize,
    leaf: usize,
) -> Option<ChunkPages> {
    let locations = metadata.offset_index()?.get(group)?.get(leaf)?.page_locations();
    let chunk = metadata.row_group(group).column(leaf);
    let mut pages = Vec::with_capacity(locations.len());
    for location in locations {
        let offset = u64::try_from(location.offset).ok()?;
        let bytes = u32::try_from(location.compressed_page_size).ok()?;
        let first_row = u64::try_from(location.first_row_index).ok()?;
        pages.push(DataPage::new(Spot { offset, bytes, check: None }, first_row));
    }
    // The index does not mention a dictionary: it is whatever comes before the first page.
    let (start, _) = chunk.byte_range();
    let before = u32::try_from(pages.first()?.spot.offset.checked_sub(start)?).ok()?;
    let dictionary = (before > 0).then_some(Spot { offset: start, bytes: before, check: None });
    let rows = u64::try_from(metadata.row_group(group).num_rows()).ok()?;
    let pages = ChunkPages { dictionary, pages, rows };
    pages.is_sound(chunk).then_some(pages)
}

/// The pages by their headers. `Ok(None)` if they do not say how many rows they hold, as in lists of version 1.
pub(super) fn from_headers(
    file: &FileBytes,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Result<Option<ChunkPages>, LayoutError> {
    let (start, length) = chunk.byte_range();
    let column = || chunk.column_path().to_string();
    let mut found = ChunkPages { dictionary: None, pages: Vec::new(), rows };
    let (mut at, end) = (start, start + length);
    let mut first_row = 0;
    while first_row < rows && at < end {
        let header = header_at(file, at..end)?;
        let header = header.ok_or_else(|| LayoutError::NoPageHeader { at, column: column() })?;
        let size = header.header_bytes.checked_add(header.body_bytes);
        let bytes = size
            .and_then(|size| u32::try_from(size).ok())
            .filter(|&size| u64::from(size) <= end - at)
            .ok_or(LayoutError::PageTooLong { at })?;
        let spot = Spot { offset: at, bytes, check: None };
        match header.kind {
            PageKind::Dictionary => found.dictionary = Some(spot),
            PageKind::Data => {
                let flat = chunk.column_descr().max_rep_level() == 0;
                let Some(rows) = header.rows.or(header.values.filter(|_| flat)) else {
                    return Ok(None);
                };
                // Pages without rows are legal, with nothing to read.
                if rows > 0 {
                    found.pages.push(DataPage::new(spot, first_row));
                    first_row += rows;
                }
            }
            PageKind::Other => {}
        }
        at += u64::from(bytes);
    }
    if first_row != rows || !found.is_sound(chunk) {
        let (column, found) = (column(), first_row);
        return Err(LayoutError::PageRows { column, found, expected: rows });
    }
    Ok(Some(found))
}

/// The header at the start of these bytes of a file. Its length is known only after reading it: usually some ten bytes,
/// but it can contain values.
pub(super) fn header_at(file: &FileBytes, range: Range<u64>) -> io::Result<Option<PageHeader>> {
    const MAX_BYTES: u64 = 16 << 20;
    let longest = (range.end - range.start).min(MAX_BYTES);
    let mut length = longest.min(256);
    loop {
        let bytes = file.read(range.start..range.start + length)?;
        let header = page_header::parse(&bytes);
        if header.is_some() || length == longest {
            return Ok(header);
        }
        length = longest.min(length * 16);
    }
}

/// The pages of all chunks, row group by row group; `None` where they are not known.
pub(super) type PageMap = Vec<Vec<Option<ChunkPages>>>;

const TAG: [u8; 4] = *b"IBNP";

/// How a chunk is written.
const UNKNOWN: u64 = 0;
const PLAIN: u64 = 1;
const CHECKED: u64 = 2;

/// The map as notes, and the columns of 96-bit timestamps that are read in microseconds. See [`read_notes`] for the
/// layout.
pub(super) fn write_notes(map: &PageMap, coarse: &[usize]) -> Vec<u8> {
    let mut writer = NotesWriter::new(TAG);
    writer.number(map.len() as u64);
    for group in map {
        writer.number(group.len() as u64);
        for chunk in group {
            write_chunk(&mut writer, chunk.as_ref());
        }
    }
    if !coarse.is_empty() {
        writer.number(coarse.len() as u64);
        coarse.iter().for_each(|&column| writer.number(column as u64));
    }
    writer.finish()
}

const GROUPS_TAG: [u8; 4] = *b"IBNG";

/// As [`write_notes`], with the places of the row groups in the footer, so that neither the footer nor the notes have to be
/// parsed as a whole. See [`GroupNotes`] for the layout.
pub(super) fn write_group_notes(
    map: &PageMap,
    spans: &GroupSpans,
    rows: &[u64],
    coarse: &[usize],
) -> Vec<u8> {
    let mut writer = NotesWriter::new(GROUPS_TAG);
    spans.write(&mut writer);
    let mut pages = NotesWriter::part();
    for (group, &rows) in map.iter().zip(rows) {
        let mut part = NotesWriter::part();
        part.number(group.len() as u64);
        group.iter().for_each(|chunk| write_chunk(&mut part, chunk.as_ref()));
        writer.number(rows);
        writer.number(part.len() as u64);
        pages.append(&part);
    }
    writer.number(coarse.len() as u64);
    coarse.iter().for_each(|&column| writer.number(column as u64));
    writer.append(&pages);
    writer.finish()
}

/// Notes of which only the parts are parsed that belong to wanted row groups.
///
/// ```text
///  row groups in the footer (`row_groups.rs`)
///  for each of them: its rows, bytes of its pages here
///  columns of 96-bit timestamps in microseconds, then the number of each
///  the pages of each row group, as in `read_notes`: columns, then for each …
/// ```
pub(super) struct GroupNotes {
    bytes: Box<[u8]>,
    pub(super) spans: GroupSpans,
    /// Rows of each row group.
    pub(super) rows: Vec<u64>,
    /// Where the pages of each row group are in the bytes.
    pages: Vec<Range<usize>>,
    coarse: Vec<u64>,
}

impl GroupNotes {
    /// `None` if the notes are of another form.
    pub(super) fn read(notes: &[u8]) -> Result<Option<Self>, &'static str> {
        if !notes.starts_with(&GROUPS_TAG) {
            return Ok(None);
        }
        let mut reader = NotesReader::new(notes, GROUPS_TAG)?;
        let spans = GroupSpans::read(&mut reader)?;
        let (mut rows, mut lengths) = (Vec::new(), Vec::new());
        for _ in 0..spans.len() {
            rows.push(reader.number()?);
            lengths.push(usize::try_from(reader.number()?).map_err(|_| "pages are too many")?);
        }
        let coarse = (0..reader.count(1)?).map(|_| reader.number()).collect::<Result<_, _>>()?;
        let mut bytes = Vec::new();
        let mut pages = Vec::new();
        for length in lengths {
            let start = bytes.len();
            bytes.extend_from_slice(reader.part(length)?);
            pages.push(start..bytes.len());
        }
        reader.finish()?;
        Ok(Some(Self { bytes: bytes.into(), spans, rows, pages, coarse }))
    }

    /// The columns of 96-bit timestamps that are read in microseconds, compared with the schema.
    pub(super) fn coarse(&self, metadata: &ParquetMetaData) -> Result<Vec<usize>, &'static str> {
        self.coarse.iter().map(|&column| coarse_column(column, metadata)).collect()
    }

    /// The pages of a row group, compared with its metadata.
    pub(super) fn pages(
        &self,
        number: usize,
        group: &RowGroupMetaData,
    ) -> Result<Vec<Option<ChunkPages>>, &'static str> {
        let mut reader = NotesReader::of_part(&self.bytes[self.pages[number].clone()]);
        let chunks = read_group(&mut reader, group)?;
        reader.finish()?;
        Ok(chunks)
    }
}

fn write_chunk(writer: &mut NotesWriter, chunk: Option<&ChunkPages>) {
    let Some(chunk) = chunk else { return writer.number(UNKNOWN) };
    let spots = || chunk.dictionary.iter().chain(chunk.pages.iter().map(|page| &page.spot));
    let checked = spots().all(|spot| spot.check.is_some());
    writer.number(if checked { CHECKED } else { PLAIN });
    writer.number(chunk.pages.len() as u64);
    writer.number(chunk.dictionary.is_some().into());
    let mut free = spots().next().map_or(0, |spot| spot.offset);
    writer.number(free);
    for spot in spots() {
        writer.number(spot.offset - free);
        writer.number(spot.bytes.into());
        if let Some(check) = spot.check.filter(|_| checked) {
            writer.checksum(check);
        }
        free = spot.offset + u64::from(spot.bytes);
    }
    for (number, page) in chunk.pages.iter().enumerate() {
        writer.number(chunk.rows_of(number));
        if checked {
            write_pieces(writer, page);
        }
    }
}

fn write_pieces(writer: &mut NotesWriter, page: &DataPage) {
    writer.number(page.pieces.len() as u64);
    for (number, piece) in page.pieces.iter().enumerate() {
        writer.number(page.piece_range(number).len() as u64);
        writer.checksum(piece.check);
    }
}

fn read_pieces(reader: &mut NotesReader<'_>) -> Result<Box<[Piece]>, &'static str> {
    let mut start = 0u32;
    let pieces = (0..reader.count(5)?).map(|_| {
        let piece = Piece { start, check: 0 };
        let bytes = u32::try_from(reader.number()?).ok();
        start = bytes.and_then(|bytes| start.checked_add(bytes)).ok_or("a piece is too long")?;
        Ok(Piece { check: reader.checksum()?, ..piece })
    });
    pieces.collect()
}

/// The map from notes, compared with the file's metadata.
///
/// ```text
///  row groups, then for each: columns, then for each:
///    0 not known, 1 without checksums, 2 with
///    pages, dictionary (0 or 1), offset of the first of them
///    for dictionary and pages: bytes skipped before it, its bytes, checksum
///    for pages: rows; with checksums also pieces, then for each: its bytes, checksum
///  if there are any: columns of 96-bit timestamps in microseconds, then the number of each
/// ```
pub(super) fn read_notes(
    notes: &[u8],
    metadata: &ParquetMetaData,
) -> Result<(PageMap, Vec<usize>), &'static str> {
    let mut reader = NotesReader::new(notes, TAG)?;
    if reader.number()? != metadata.num_row_groups() as u64 {
        return Err("another number of row groups");
    }
    let mut map = Vec::with_capacity(metadata.num_row_groups());
    for group in metadata.row_groups() {
        map.push(read_group(&mut reader, group)?);
    }
    let coarse = if reader.is_empty() { Vec::new() } else { read_coarse(&mut reader, metadata)? };
    reader.finish()?;
    Ok((map, coarse))
}

fn read_group(
    reader: &mut NotesReader<'_>,
    group: &RowGroupMetaData,
) -> Result<Vec<Option<ChunkPages>>, &'static str> {
    if reader.number()? != group.num_columns() as u64 {
        return Err("another number of columns");
    }
    let rows = group.num_rows() as u64;
    group.columns().iter().map(|chunk| read_chunk(reader, chunk, rows)).collect()
}

fn read_coarse(
    reader: &mut NotesReader<'_>,
    metadata: &ParquetMetaData,
) -> Result<Vec<usize>, &'static str> {
    (0..reader.count(1)?).map(|_| coarse_column(reader.number()?, metadata)).collect()
}

/// The number of a column, if it is one of 96-bit timestamps.
fn coarse_column(column: u64, metadata: &ParquetMetaData) -> Result<usize, &'static str> {
    let roots = metadata.file_metadata().schema_descr().root_schema().get_fields();
    let is_one = |column: usize| {
        let root = roots.get(column).filter(|root| root.is_primitive());
        root.is_some_and(|root| root.get_physical_type() == Type::INT96)
    };
    let column = usize::try_from(column).ok().filter(|&column| is_one(column));
    column.ok_or("a column is not of 96-bit timestamps")
}

fn read_chunk(
    reader: &mut NotesReader<'_>,
    chunk: &ColumnChunkMetaData,
    rows: u64,
) -> Result<Option<ChunkPages>, &'static str> {
    const OUTSIDE: &str = "a page lies outside its column";
    let checked = match reader.number()? {
        UNKNOWN => return Ok(None),
        PLAIN => false,
        CHECKED => true,
        _ => return Err("a column of unknown kind"),
    };
    let count = reader.count(2)?;
    let has_dictionary = reader.number()? == 1;
    let mut free = reader.number()?;
    let mut spot = |reader: &mut NotesReader<'_>| -> Result<Spot, &'static str> {
        let offset = free.checked_add(reader.number()?).ok_or(OUTSIDE)?;
        let bytes = u32::try_from(reader.number()?).map_err(|_| OUTSIDE)?;
        let check = if checked { Some(reader.checksum()?) } else { None };
        free = offset.checked_add(bytes.into()).ok_or(OUTSIDE)?;
        Ok(Spot { offset, bytes, check })
    };
    let dictionary = if has_dictionary { Some(spot(reader)?) } else { None };
    let spots = (0..count).map(|_| spot(reader)).collect::<Result<Vec<_>, _>>()?;
    let mut first_row = 0u64;
    let mut pages = Vec::with_capacity(count);
    for spot in spots {
        let rows = reader.number()?;
        let pieces = if checked { read_pieces(reader)? } else { Box::default() };
        pages.push(DataPage { spot, first_row, pieces });
        first_row = first_row.checked_add(rows).ok_or(OUTSIDE)?;
    }
    let pages = ChunkPages { dictionary, pages, rows };
    if first_row != rows || !pages.is_sound(chunk) {
        return Err(OUTSIDE);
    }
    Ok(Some(pages))
}

/// Fills in the checksums of all pages of a chunk, and their pieces. A page that does not match the checksum of its writer is
/// an error: it is not what was written.
pub(super) fn add_checksums(
    pages: &mut ChunkPages,
    file: &HeldBytes,
    chunk: &ColumnChunkMetaData,
) -> io::Result<()> {
    let read = |spot: &Spot| {
        let bytes = file.read(spot.offset..spot.offset + u64::from(spot.bytes))?;
        if crc_of(&bytes) == Crc::Wrong {
            let (column, at) = (chunk.column_path(), spot.offset);
            let what = format!("{WRONG_CRC}: column {column}, byte {at}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(bytes)
    };
    if let Some(dictionary) = &mut pages.dictionary {
        dictionary.check = Some(notes::checksum(&read(dictionary)?));
    }
    let in_pieces = chunk.compression() == Compression::SNAPPY && fixed_width(chunk).is_some();
    for page in &mut pages.pages {
        let bytes = read(&page.spot)?;
        page.spot.check = Some(notes::checksum(&bytes));
        if in_pieces {
            page.pieces = find_pieces(&bytes).unwrap_or_default();
        }
    }
    Ok(())
}

/// Bytes of a value, if all have the same and none are repeated.
pub(super) fn fixed_width(chunk: &ColumnChunkMetaData) -> Option<usize> {
    let column = chunk.column_descr();
    match column.physical_type() {
        _ if column.max_rep_level() > 0 => None,
        Type::INT32 | Type::FLOAT => Some(4),
        Type::INT64 | Type::DOUBLE => Some(8),
        Type::INT96 => Some(12),
        Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).ok(),
        Type::BOOLEAN | Type::BYTE_ARRAY => None,
    }
}

/// The pieces of a page whose values can be found without those before them.
fn find_pieces(page: &[u8]) -> Option<Box<[Piece]>> {
    /// With fewer pieces there is little to save.
    const FEWEST: usize = 3;
    let header = page_header::parse(page).filter(|header| header.is_plain_v1)?;
    let starts = snappy::pieces(&page[header.header_bytes..])?;
    if starts.len() < FEWEST {
        return None;
    }
    // The first one includes the header, which is read for each of them.
    let place = |start: usize| if start == 0 { 0 } else { start + header.header_bytes };
    let ends = starts[1..].iter().map(|&start| place(start)).chain([page.len()]);
    let pieces = starts.iter().zip(ends).map(|(&start, end)| {
        let start = place(start);
        Some(Piece { start: u32::try_from(start).ok()?, check: notes::checksum(&page[start..end]) })
    });
    pieces.collect()
}
