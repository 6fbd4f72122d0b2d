//! Reading: the header and the directory are checked immediately, everything else when it is used.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use ironbloom_blocks::{MAX_ROWS, Params, RowRange, RowRanges, ValueKind};
use xxhash_rust::xxh3::xxh3_64;

use super::directory::{Extent, Rest};
use super::*;
use crate::checksum_tree::stored_bytes;
use crate::error::{Error, FilePart};
use crate::file_bytes::FileBytes;
use crate::index::{Index, Origin};
use crate::lock::behind_links;
use crate::schema::{Column, check_columns};
use crate::section::{Form, Section};
use crate::segment::{Segment, SegmentColumn, StoredPostings};
use crate::source::{Blob, Source};

pub(crate) fn open(path: &Path) -> Result<Index, Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    let file = FileBytes::open(path).map_err(failed)?;
    let header = file.read(0..file.len().min(HEADER_BYTES as u64)).map_err(failed)?;
    let (version, start) = read_header(&header, file.len(), path)?;
    let directory = file.read(start..file.len()).map_err(failed)?;
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
    let target = behind_links(path).map_err(failed)?;
    index.origin = Some(Origin { target, header });
    index.file = Some(file);
    Ok(index)
}

/// The first bytes of a file: at most those of a header.
pub(crate) fn header(path: &Path) -> io::Result<Vec<u8>> {
    let file = FileBytes::open(path)?;
    file.read(0..file.len().min(HEADER_BYTES as u64))
}

/// See [`Index::check_replaceable`].
pub(crate) fn check_replaceable(path: &Path) -> Result<(), Error> {
    // Whatever is not a file is refused when it is replaced.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(());
    }
    let header = header(path).map_err(|error| Error::Io { path: path.to_owned(), error })?;
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
fn read_header(bytes: &[u8], found: u64, path: &Path) -> Result<(u32, u64), Error> {
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
        let least = 8 + EXTENT_BYTES * columns.len();
        let segments: Vec<Segment> = (0..self.rest.count(least)?)
            .map(|_| self.segment(&sources, columns.len(), params))
            .collect::<Option<_>>()?;
        if !self.rest.0.is_empty() || !cover(&sources, &segments) {
            return None;
        }
        let mut index = Index::empty(columns, params);
        (index.sources, index.segments) = (sources, segments);
        Some(index)
    }

    fn source(&mut self) -> Option<Source> {
        let name = self.rest.name()?;
        let (bytes, fingerprint, rows) = (self.rest.u64()?, self.rest.u64()?, self.rest.u64()?);
        let extent = self.rest.extent()?;
        let blob =
            Blob::Stored { section: self.section(extent, Form::Whole)?, loaded: OnceLock::new() };
        Some(Source { name, bytes, fingerprint, rows, blob })
    }

    fn segment(&mut self, sources: &[Source], columns: usize, params: Params) -> Option<Segment> {
        let source = self.rest.u32()? as usize;
        sources.get(source)?;
        let ranges: Vec<RowRange> = (0..self.rest.count(16)?)
            .map(|_| Some(RowRange { first_row: self.rest.u64()?, rows: self.rest.u64()? }))
            .collect::<Option<_>>()?;
        let rows = ranges.iter().try_fold(0u64, |sum, range| sum.checked_add(range.rows))?;
        if rows > MAX_ROWS {
            return None;
        }
        let mut segment =
            Segment { source, rows: RowRanges(ranges), columns: Vec::with_capacity(columns) };
        let blocks = segment.rows.blocks(params.block_rows());
        for _ in 0..columns {
            let form = match self.version {
                FIRST_VERSION => Form::Whole,
                _ => Form::from_number(self.rest.u8()?)?,
            };
            let extent = self.rest.extent()?;
            let section = self.section(extent, form)?;
            segment
                .columns
                .push(SegmentColumn::Stored(Box::new(StoredPostings::new(section, blocks))));
        }
        Some(segment)
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

/// Do the segments hold the rows of each source in order, all of them, each once? A row that no segment holds would never
/// be found.
fn cover(sources: &[Source], segments: &[Segment]) -> bool {
    let mut parts = segments.iter().peekable();
    let covered = sources.iter().enumerate().all(|(place, source)| {
        let mut next = 0;
        while let Some(segment) = parts.next_if(|segment| segment.source == place) {
            for range in &segment.rows.0 {
                if range.first_row != next || range.rows == 0 {
                    return false;
                }
                next += range.rows;
            }
        }
        next == source.rows
    });
    covered && parts.next().is_none()
}
