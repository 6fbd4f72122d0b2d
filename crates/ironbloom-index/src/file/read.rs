//! Reading: the header and the directory are checked immediately, everything else when it is used.

use std::fs;
use std::io;
use std::sync::OnceLock;

use ironbloom_blocks::bounds::{BoundsHead, Image, Span};
use ironbloom_blocks::{MAX_ROWS, Params, RowRange, ValueKind};
use xxhash_rust::xxh3::xxh3_64;

use super::directory::{Extent, Rest};
use super::*;
use crate::checksum_tree::stored_bytes;
use crate::error::{Error, FilePart};
use crate::file_bytes::FileBytes;
use crate::index::{Index, Origin};
use crate::location::Location;
use crate::schema::{Column, check_columns};
use crate::section::{Form, Section};
use crate::segment::{Segment, SegmentColumn, StoredPostings};
use crate::segment_bounds::{SegmentBounds, StoredBounds};
use crate::segment_rows::SegmentRows;
use crate::source::{Blob, Source};

pub(crate) fn open(path: &Location) -> Result<Index, Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    let file = FileBytes::open(path).map_err(failed)?;
    let header = header_of(&file).map_err(failed)?;
    let (version, start) = read_header(&header, file.len(), path)?;
    let mut directory = file.read(start..file.len()).map_err(failed)?;
    if version >= WITH_TRAILER {
        let trailer = directory.split_off(directory.len().saturating_sub(HEADER_BYTES));
        if trailer != header {
            let (offset, len) = (file.len() - trailer.len() as u64, trailer.len() as u64);
            let path = path.clone();
            return Err(Error::Damaged { path, part: FilePart::Header, offset, len });
        }
    }
    let damaged = || Error::Damaged {
        path: path.to_owned(),
        part: FilePart::Directory,
        offset: start,
        len: directory.len() as u64,
    };
    if xxh3_64(&directory) != number(&header, CHECKSUM_AT) {
        return Err(damaged());
    }
    let index = Reading { file: &file, version, end: start, rest: Rest(&directory) }.index();
    let mut index = index.ok_or_else(damaged)?;
    let target = match path.as_file() {
        Some(path) => ironbloom::format::native::behind_links(path).map_err(failed)?.into(),
        None => path.clone(),
    };
    index.origin = Some(Origin { target, header });
    index.file = Some(file);
    Ok(index)
}

/// The header of an open file. That of an object is taken from its end, which has been requested.
fn header_of(file: &FileBytes) -> io::Result<Vec<u8>> {
    let bytes = file.len().min(HEADER_BYTES as u64);
    if file.is_object() {
        let trailer = file.read(file.len() - bytes..file.len())?;
        if trailer.starts_with(&MAGIC) {
            return Ok(trailer);
        }
    }
    file.read(0..bytes)
}

/// The first bytes of a file: at most those of a header.
pub(crate) fn header(path: &Location) -> io::Result<Vec<u8>> {
    let file = FileBytes::open(path)?;
    file.read(0..file.len().min(HEADER_BYTES as u64))
}

/// See [`Index::check_replaceable`].
pub(crate) fn check_replaceable(path: &Location) -> Result<(), Error> {
    // Whatever is not a file is refused when it is replaced.
    if path.as_file().is_some_and(|path| !fs::metadata(path).is_ok_and(|found| found.is_file())) {
        return Ok(());
    }
    #[cfg(feature = "object_store")]
    if path.is_object() {
        let failed = |error| Error::Io { path: path.to_owned(), error };
        crate::object::check_replaceable(path).map_err(failed)?;
    }
    let header = match header(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        header => header.map_err(|error| Error::Io { path: path.to_owned(), error })?,
    };
    if header.is_empty() || header.starts_with(&MAGIC) {
        Ok(())
    } else {
        Err(Error::Occupied { path: path.to_owned() })
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// The version, and where the directory starts, in a file of `found` bytes that begins with these: inside it, after the
/// header.
fn read_header(bytes: &[u8], found: u64, path: &Location) -> Result<(u32, u64), Error> {
    let path = || path.to_owned();
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::NotAnIndex { path: path() });
    }
    let Some(header) = bytes.get(..HEADER_BYTES) else {
        return Err(Error::Length { path: path(), expected: HEADER_BYTES as u64, found });
    };
    let damaged = Error::Damaged {
        path: path(),
        part: FilePart::Header,
        offset: 0,
        len: HEADER_BYTES as u64,
    };
    if xxh3_64(&header[..SEAL_AT]) != number(header, SEAL_AT) {
        return Err(damaged);
    }
    let version = number(header, VERSION_AT) as u32;
    if !(FIRST_VERSION..=VERSION).contains(&version) {
        return Err(Error::Version { path: path(), found: version });
    }
    let expected = number(header, LENGTH_AT);
    if expected != found {
        return Err(Error::Length { path: path(), expected, found });
    }
    let spare = header[ZERO_AT..LENGTH_AT].iter().chain(&header[SPARE_AT..SEAL_AT]);
    let start = number(header, DIRECTORY_AT);
    if spare.copied().any(|byte| byte != 0) || !(HEADER_BYTES as u64..=found).contains(&start) {
        return Err(damaged);
    }
    Ok((version, start))
}

/// A directory being read. `None` always means that it is invalid.
struct Reading<'a> {
    file: &'a FileBytes,
    version: u32,
    /// Where sections must end.
    end: u64,
    rest: Rest<'a>,
}

/// Bytes of an extent in the directory, without a form.
const EXTENT_BYTES: usize = 24;

impl Reading<'_> {
    fn index(&mut self) -> Option<Index> {
        let params = Params::new(self.rest.u32()?, self.rest.u32()?).ok()?;
        let layout = if self.version < WITH_TRAILER { Vec::new() } else { self.rest.bytes()? };
        let columns: Vec<Column> = (0..self.rest.count(5)?)
            .map(|_| {
                let name = self.rest.name()?;
                Some(Column { name, kind: ValueKind::from_number(self.rest.u8()?)? })
            })
            .collect::<Option<_>>()?;
        check_columns(&columns).ok()?;
        let sources: Vec<Source> =
            (0..self.rest.count(52)?).map(|_| self.source()).collect::<Option<_>>()?;
        let mut names: Vec<&str> = sources.iter().map(Source::name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let least = 4 + EXTENT_BYTES * columns.len();
        let count = self.rest.count(least)?;
        let segments: Vec<Segment> = (0..count)
            .map(|_| self.segment(count, &sources, columns.len(), params))
            .collect::<Option<_>>()?;
        if !self.rest.0.is_empty() || !cover(&sources, &segments) {
            return None;
        }
        let mut index = Index::empty(columns, params);
        (index.sources, index.segments) = (sources, segments);
        index.layout = layout;
        Some(index)
    }

    fn source(&mut self) -> Option<Source> {
        let name = self.rest.name()?;
        let (bytes, fingerprint, rows) = (self.rest.u64()?, self.rest.u64()?, self.rest.u64()?);
        let blob = self.blob()?;
        let (mut version, mut view) = (String::new(), Vec::new());
        let mut deleted = Blob::Owned(Vec::new());
        if self.version >= WITH_TRAILER {
            version = self.rest.name()?;
            view = self.rest.bytes()?;
            deleted = match self.rest.u8()? {
                0 => deleted,
                1 => self.blob()?,
                _ => return None,
            };
        }
        Some(Source { name, bytes, fingerprint, rows, version, blob, view, deleted })
    }

    fn blob(&mut self) -> Option<Blob> {
        let extent = self.rest.extent()?;
        let section = self.section(extent, Form::Whole)?;
        Some(Blob::Stored { section, loaded: OnceLock::new() })
    }

    /// One of this many segments.
    fn segment(
        &mut self,
        segments: usize,
        sources: &[Source],
        columns: usize,
        params: Params,
    ) -> Option<Segment> {
        let rows = match self.version < WITH_TRAILER {
            true => self.ranges_of_one()?,
            false => self.ranges()?,
        };
        let sum = rows.iter().try_fold(0u64, |sum, (_, range)| {
            range.first_row.checked_add(range.rows)?;
            sum.checked_add(range.rows)
        })?;
        let is_known = |source: Option<usize>| source.is_none_or(|source| source < sources.len());
        if sum > MAX_ROWS || !rows.iter().all(|&(source, _)| is_known(source)) {
            return None;
        }
        let rows = SegmentRows::join(rows, params.block_rows());
        let blocks = rows.blocks();
        let mut held = Vec::with_capacity(columns);
        for _ in 0..columns {
            let form = match self.version {
                FIRST_VERSION => Form::Whole,
                _ => Form::from_number(self.rest.u8()?)?,
            };
            let extent = self.rest.extent()?;
            let section = self.section(extent, form)?;
            let stored = StoredPostings::new(section, blocks).among(segments);
            held.push(SegmentColumn::Stored(Box::new(stored)));
        }
        let bounds = self.bounds(columns, blocks)?;
        Some(Segment { rows, columns: held, bounds })
    }

    fn range(&mut self) -> Option<RowRange> {
        Some(RowRange { first_row: self.rest.u64()?, rows: self.rest.u64()? })
    }

    fn ranges(&mut self) -> Option<Vec<(Option<usize>, RowRange)>> {
        let count = self.rest.count(20)?;
        let range = |_| {
            let source = Some(self.rest.u32()?).filter(|&source| source != GONE);
            Some((source.map(|source| source as usize), self.range()?))
        };
        (0..count).map(range).collect()
    }

    /// The rows of a segment in files before it could have several sources.
    fn ranges_of_one(&mut self) -> Option<Vec<(Option<usize>, RowRange)>> {
        let source = self.rest.u32()? as usize;
        (0..self.rest.count(16)?).map(|_| Some((Some(source), self.range()?))).collect()
    }

    fn bounds(&mut self, columns: usize, blocks: u32) -> Option<SegmentBounds> {
        if self.version < BOUNDS_VERSION {
            return Some(SegmentBounds::Unknown);
        }
        match self.rest.u8()? {
            0 => return Some(SegmentBounds::Unknown),
            1 => {}
            _ => return None,
        }
        let extent = self.rest.extent()?;
        let section = self.section(extent, Form::Tree)?;
        let heads: Vec<BoundsHead> =
            (0..columns).map(|_| self.bounds_head(blocks)).collect::<Option<_>>()?;
        Some(SegmentBounds::Stored(Box::new(StoredBounds::new(section, heads)?)))
    }

    fn bounds_head(&mut self, blocks: u32) -> Option<BoundsHead> {
        let code = self.rest.u8()?;
        if code == NO_VALUES {
            return BoundsHead::new(0, Span::NONE, blocks);
        }
        let low = self.rest.wide()? ^ IMAGE_SIGN;
        let high = low.checked_add(self.rest.wide()?)?;
        BoundsHead::new(code, Span { low: Image(low), high: Image(high) }, blocks)
    }

    fn section(&self, extent: Extent, form: Form) -> Option<Section> {
        let stored = match form {
            Form::Whole => extent.bytes,
            Form::Tree => stored_bytes(extent.bytes)?,
        };
        let end = extent.start.checked_add(stored)?;
        let inside = extent.start >= HEADER_BYTES as u64 && end <= self.end;
        let aligned = extent.start.is_multiple_of(LINE_BYTES as u64);
        let range = extent.start..extent.start + extent.bytes;
        let section = || Section::new(self.file.clone(), range, extent.checksum, form);
        (inside && aligned).then(section)
    }
}

/// Do the segments hold the rows of each source, all of them, each once? A row that no segment holds would never be found.
fn cover(sources: &[Source], segments: &[Segment]) -> bool {
    let mut ranges: Vec<(usize, u64, u64)> = segments
        .iter()
        .flat_map(|segment| segment.rows.present())
        .map(|(source, rows)| (source, rows.first_row, rows.rows))
        .collect();
    ranges.sort_unstable();
    let mut ranges = ranges.into_iter().peekable();
    sources.iter().enumerate().all(|(place, source)| {
        let mut next = 0;
        while let Some((_, first_row, rows)) = ranges.next_if(|&(owner, ..)| owner == place) {
            if first_row != next || rows == 0 {
                return false;
            }
            next += rows;
        }
        next == source.rows
    })
}
