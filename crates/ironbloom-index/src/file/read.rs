//! Reading: the header and the directory are checked immediately, everything else when it is used.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::directory::{Place, Rest};
use super::*;
use crate::error::{Error, Part};
use crate::file_bytes::FileBytes;
use crate::index::{Index, Origin};
use crate::lock::behind_links;
use crate::params::Params;
use crate::schema::{Column, Kind, check_columns};
use crate::segment::{Chunk, MOST_ROWS, Run, Segment, StoredPostings};
use crate::source::{Blob, Source};
use crate::stored::Stored;

pub(crate) fn open(path: &Path) -> Result<Index, Error> {
    let failed = |error| Error::Io { path: path.to_owned(), error };
    let file = FileBytes::open(path).map_err(failed)?;
    let header = file.read(0..file.len().min(HEADER_BYTES as u64)).map_err(failed)?;
    let start = read_header(&header, file.len(), path)?;
    let directory = file.read(start..file.len()).map_err(failed)?;
    let damaged = || Error::Damaged {
        path: path.to_owned(),
        part: Part::Directory,
        offset: start,
        len: directory.len() as u64,
    };
    if xxh3_64(&directory) != number(&header, CHECKSUM_AT) {
        return Err(damaged());
    }
    let index = Reading { file: &file, end: start, rest: Rest(&directory) }.index();
    let mut index = index.ok_or_else(damaged)?;
    let target = behind_links(path).map_err(failed)?;
    index.origin = Some(Origin { target, header });
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

/// Where the directory starts, in a file of `found` bytes that begins with these: inside it, after the header.
fn read_header(bytes: &[u8], found: u64, path: &Path) -> Result<u64, Error> {
    let path = || path.to_owned();
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::NotAnIndex { path: path() });
    }
    let Some(header) = bytes.get(..HEADER_BYTES) else {
        return Err(Error::Length { path: path(), expected: HEADER_BYTES as u64, found });
    };
    let damaged =
        Error::Damaged { path: path(), part: Part::Header, offset: 0, len: HEADER_BYTES as u64 };
    if xxh3_64(&header[..SEAL_AT]) != number(header, SEAL_AT) {
        return Err(damaged);
    }
    let version = number(header, VERSION_AT) as u32;
    if version != VERSION {
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
    Ok(start)
}

/// A directory being read. `None` always means that it is invalid.
struct Reading<'a> {
    file: &'a FileBytes,
    /// Where chunks must end.
    end: u64,
    rest: Rest<'a>,
}

/// Bytes of a place in the directory.
const PLACE_BYTES: usize = 24;

impl Reading<'_> {
    fn index(&mut self) -> Option<Index> {
        let params = Params::new(self.rest.u32()?, self.rest.u32()?).ok()?;
        let columns: Vec<Column> = (0..self.rest.count(5)?)
            .map(|_| {
                let name = self.rest.name()?;
                Some(Column { name, kind: Kind::from_number(self.rest.u8()?)? })
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
        let least = 8 + PLACE_BYTES * columns.len();
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
        let place = self.rest.place()?;
        let blob = Blob::Stored { stored: self.stored(place)?, loaded: OnceLock::new() };
        Some(Source { name, bytes, fingerprint, rows, blob })
    }

    fn segment(&mut self, sources: &[Source], columns: usize, params: Params) -> Option<Segment> {
        let source = self.rest.u32()? as usize;
        sources.get(source)?;
        let runs: Vec<Run> = (0..self.rest.count(16)?)
            .map(|_| Some(Run { first_row: self.rest.u64()?, rows: self.rest.u64()? }))
            .collect::<Option<_>>()?;
        let rows = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.rows))?;
        if rows > MOST_ROWS {
            return None;
        }
        let mut segment = Segment { source, runs, chunks: Vec::with_capacity(columns) };
        let blocks = segment.blocks(params.block_rows());
        for _ in 0..columns {
            let place = self.rest.place()?;
            let stored = self.stored(place)?;
            let loaded = OnceLock::new();
            segment.chunks.push(Chunk::Stored(StoredPostings { stored, blocks, loaded }));
        }
        Some(segment)
    }

    fn stored(&self, place: Place) -> Option<Stored> {
        let end = place.start.checked_add(place.bytes)?;
        let inside = place.start >= HEADER_BYTES as u64 && end <= self.end;
        let aligned = place.start.is_multiple_of(LINE_BYTES as u64);
        let stored = || Stored::new(self.file.clone(), place.start..end, place.checksum);
        (inside && aligned).then(stored)
    }
}

/// Do the segments hold the rows of each source in order, all of them, each once? A row that no segment holds would never
/// be found.
fn cover(sources: &[Source], segments: &[Segment]) -> bool {
    let mut parts = segments.iter().peekable();
    let covered = sources.iter().enumerate().all(|(place, source)| {
        let mut next = 0;
        while let Some(segment) = parts.next_if(|segment| segment.source == place) {
            for run in &segment.runs {
                if run.first_row != next || run.rows == 0 {
                    return false;
                }
                next += run.rows;
            }
        }
        next == source.rows
    });
    covered && parts.next().is_none()
}
