//! Writing: a new file next to the old one, synced, then renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use ironbloom::format::native::replace_file_at;
use ironbloom_blocks::Postings;
use ironbloom_blocks::bounds::BoundsHead;
use xxhash_rust::xxh3::xxh3_64;

use super::adopt::Begun;
use super::directory::{Extent, Fields};
use super::*;
use crate::checksum_tree::TreeBuilder;
use crate::error::{Error, FilePart};
use crate::index::Index;
use crate::location::Location;
use crate::section::{Form, Section, little_endian};
use crate::segment::SegmentColumn;
use crate::segment_bounds::SegmentBounds;
use crate::source::Blob;

/// Writes an index whose segments are sealed, and returns the header that it got.
pub(crate) fn save(index: &Index, target: &Location) -> Result<Vec<u8>, Error> {
    let Some(path) = target.as_file() else { return save_object(index, target) };
    let mut header = Vec::new();
    let write = |file: &File, temporary: &Path| {
        let begun = Begun::of(index);
        let taken = begun.and_then(|begun| Some((begun.take_name(temporary, file)?, begun)));
        header = match taken {
            Some((file, begun)) => {
                let header = write_index(index, file, Some(&begun))?;
                file.sync_all()?;
                header
            }
            None => write_index(index, file, None)?,
        };
        Ok(())
    };
    replace(path, write).map_err(|error| match error.downcast() {
        Ok(of_another_file) => of_another_file,
        Err(error) => Error::Io { path: path.into(), error },
    })?;
    Ok(header)
}

/// Without the feature.
#[cfg(not(feature = "object_store"))]
fn save_object(_: &Index, target: &Location) -> Result<Vec<u8>, Error> {
    let error = io::Error::new(ErrorKind::Unsupported, crate::location::NO_STORES);
    Err(Error::Io { path: target.clone(), error })
}

/// Puts an index into a bucket: as the next state of the one that it was read from, or in the place of any other.
#[cfg(feature = "object_store")]
fn save_object(index: &Index, target: &Location) -> Result<Vec<u8>, Error> {
    use crate::object::{current, replace};
    const TRIES: u32 = 3;
    let failed = |error| Error::Io { path: target.clone(), error };
    let origin = index.origin.as_ref().filter(|origin| origin.target == *target);
    let file = tempfile::tempfile().map_err(failed)?;
    let header = write_index(index, &file, None).map_err(|error| match error.downcast() {
        Ok(of_another_file) => of_another_file,
        Err(error) => failed(error),
    })?;
    let content = parts(&file).map_err(failed)?;
    for number in 1.. {
        let before = current(target, HEADER_BYTES as u64).map_err(failed)?;
        let head = before.as_ref().map(|before| &before.head);
        match (origin, head) {
            (Some(origin), head) if head != Some(&origin.header) => {
                return Err(Error::Overtaken { path: target.clone() });
            }
            (None, Some(head)) if !head.is_empty() && !head.starts_with(&MAGIC) => {
                return Err(Error::Occupied { path: target.clone() });
            }
            _ => {}
        }
        let Err(error) = replace(target, content.clone(), before.as_ref()) else {
            return Ok(header);
        };
        // The answer may have been lost after the store had done it, and a repeated request was then refused.
        let now = current(target, HEADER_BYTES as u64);
        if matches!(&now, Ok(Some(now)) if now.head == header) {
            return Ok(header);
        }
        match (error.kind(), origin) {
            (ErrorKind::AlreadyExists | ErrorKind::StaleNetworkFileHandle, Some(_)) => {
                return Err(Error::Overtaken { path: target.clone() });
            }
            // A new index replaces whatever others have put there meanwhile.
            (ErrorKind::AlreadyExists | ErrorKind::StaleNetworkFileHandle, None) => {}
            // A request whose answer is lost is not repeated by the store, because it may have been done. This one was not, if what
            // is there can be read.
            (ErrorKind::Other, _) if now.is_ok() && number < TRIES => {}
            _ => return Err(failed(error)),
        }
    }
    unreachable!("the last one returns")
}

/// A file in memory, for a request that may be repeated.
#[cfg(feature = "object_store")]
fn parts(file: &File) -> io::Result<Vec<bytes::Bytes>> {
    use std::io::Read as _;
    const PART_BYTES: u64 = 8 << 20;
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let mut parts = Vec::new();
    loop {
        let mut part = Vec::new();
        file.take(PART_BYTES).read_to_end(&mut part)?;
        if part.is_empty() {
            return Ok(parts);
        }
        parts.push(part.into());
    }
}

fn replace(path: &Path, write: impl FnOnce(&File, &Path) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file"));
    }
    replace_file_at(path, write)
}

/// Writes sections one after the other, each from a multiple of 64 bytes on.
struct Sections<W> {
    out: W,
    at: u64,
}

impl<W: Write> Sections<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<u64> {
        let padding = self.at.next_multiple_of(LINE_BYTES as u64) - self.at;
        self.write(&[0; LINE_BYTES][..padding as usize])?;
        Ok(self.at)
    }

    fn section(&mut self, bytes: &[u8], checksum: u64) -> io::Result<Extent> {
        let start = self.align()?;
        self.write(bytes)?;
        Ok(Extent { start, bytes: bytes.len() as u64, checksum })
    }

    /// What is already stored is copied as it is, with its checksum: any damage stays visible. An error says which part
    /// of which file could not be read.
    fn copy(&mut self, section: &Section, part: impl FnOnce() -> FilePart) -> io::Result<Extent> {
        let start = self.align()?;
        let mut pieces = section.pieces();
        while let Some(piece) = pieces.next() {
            match piece {
                Ok(piece) => self.write(piece)?,
                Err(error) => return Err(io::Error::other(section.piece_error(error, part()))),
            }
        }
        Ok(Extent { start, bytes: section.len(), checksum: section.checksum() })
    }

    fn column(
        &mut self,
        column: &SegmentColumn,
        part: impl FnOnce() -> FilePart,
    ) -> io::Result<(Form, Extent)> {
        match column {
            SegmentColumn::Stored(column) => match column.loaded() {
                Some(postings) => self.postings(postings),
                None => Ok((column.section.form(), self.copy(&column.section, part)?)),
            },
            SegmentColumn::Sealed(postings) => self.postings(postings),
            SegmentColumn::Growing(_) => unreachable!("sealed before"),
        }
    }

    fn postings(&mut self, postings: &Postings) -> io::Result<(Form, Extent)> {
        Ok((Form::Tree, self.tree_section(&little_endian(postings.words()))?))
    }

    /// A section that can be verified in pieces.
    fn tree_section(&mut self, bytes: &[u8]) -> io::Result<Extent> {
        let mut builder = TreeBuilder::default();
        builder.update(bytes);
        let (tree, root) = builder.finish();
        let extent = self.section(bytes, root)?;
        self.write(&tree)?;
        Ok(extent)
    }

    /// The bounds of a segment; `None` if they are not known.
    fn bounds(
        &mut self,
        bounds: &SegmentBounds,
        part: impl FnOnce() -> FilePart,
    ) -> io::Result<Option<Extent>> {
        Ok(Some(match bounds {
            SegmentBounds::Unknown => return Ok(None),
            SegmentBounds::Sealed(columns) => {
                let words: Vec<u64> =
                    columns.iter().flat_map(|column| column.words()).copied().collect();
                self.tree_section(&little_endian(&words))?
            }
            SegmentBounds::Stored(stored) => self.copy(&stored.section, part)?,
            SegmentBounds::Growing(_) => unreachable!("sealed before"),
        }))
    }

    fn blob(&mut self, blob: &Blob, part: impl FnOnce() -> FilePart) -> io::Result<Extent> {
        match blob {
            Blob::Owned(bytes) => self.section(bytes, xxh3_64(bytes)),
            Blob::Stored { section, loaded } => match loaded.get() {
                Some(bytes) => self.section(bytes, section.checksum()),
                None => self.copy(section, part),
            },
        }
    }
}

/// Writes all sections, but for those with which the file has begun, and returns the header.
fn write_index(index: &Index, mut file: &File, begun: Option<&Begun<'_>>) -> io::Result<Vec<u8>> {
    let (at, mut present) =
        begun.map_or((HEADER_BYTES as u64, 0), |begun| (begun.end, begun.sections));
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    let mut sections = Sections { out: BufWriter::with_capacity(1 << 20, file), at };
    // Column by column, so that what a question needs of all segments lies together.
    let mut columns = Vec::new();
    for column in 0..index.columns().len() {
        let mut extents = Vec::new();
        for (number, segment) in index.segments.iter().enumerate() {
            let column_here = &segment.columns[column];
            let part = || index.column_part(number, segment, column);
            extents.push(match present.checked_sub(1) {
                Some(left) => {
                    present = left;
                    place_of(column_here)
                }
                None => sections.column(column_here, part)?,
            });
        }
        columns.push(extents);
    }
    let mut bounds = Vec::new();
    for (number, segment) in index.segments.iter().enumerate() {
        bounds.push(sections.bounds(&segment.bounds, || index.bounds_part(number, segment))?);
    }
    let mut blobs = Vec::new();
    for source in &index.sources {
        let blob = sections.blob(&source.blob, || source.blob_part())?;
        let deleted = match source.has_deleted_rows() {
            true => Some(sections.blob(&source.deleted, || source.deleted_part())?),
            false => None,
        };
        blobs.push((blob, deleted));
    }
    let start = sections.align()?;
    let fields = directory(index, &blobs, &columns, &bounds);
    sections.write(&fields)?;
    let header = header(sections.at + HEADER_BYTES as u64, start, xxh3_64(&fields));
    sections.write(&header)?;
    sections.out.flush()?;
    drop(sections);
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    Ok(header.to_vec())
}

/// Where a column is that its file has already.
fn place_of(column: &SegmentColumn) -> (Form, Extent) {
    let SegmentColumn::Stored(stored) = column else { unreachable!("found in a file before") };
    let (section, range) = (&stored.section, stored.section.range());
    let bytes = range.end - range.start;
    (section.form(), Extent { start: range.start, bytes, checksum: section.checksum() })
}

/// The directory: where the blobs and the deleted rows of sources are, and the columns and bounds of segments.
fn directory(
    index: &Index,
    blobs: &[(Extent, Option<Extent>)],
    columns: &[Vec<(Form, Extent)>],
    bounds: &[Option<Extent>],
) -> Vec<u8> {
    let mut fields = Fields::default();
    fields.put_u32(index.params().block_rows());
    fields.put_u32(index.params().selectivity());
    fields.put_bytes(&index.layout);
    fields.put_len(index.columns().len());
    for column in index.columns() {
        fields.put_name(&column.name);
        fields.put_u8(column.kind as u8);
    }
    fields.put_len(index.sources.len());
    for (source, &(blob, deleted)) in index.sources.iter().zip(blobs) {
        fields.put_name(&source.name);
        fields.put_u64(source.bytes);
        fields.put_u64(source.fingerprint);
        fields.put_u64(source.rows);
        fields.put_extent(blob);
        fields.put_name(&source.version);
        fields.put_bytes(&source.view);
        fields.put_u8(deleted.is_some().into());
        if let Some(deleted) = deleted {
            fields.put_extent(deleted);
        }
    }
    fields.put_len(index.segments.len());
    for (number, segment) in index.segments.iter().enumerate() {
        fields.put_len(segment.rows.ranges().len());
        for range in segment.rows.ranges() {
            match range.source {
                Some(source) => fields.put_len(source),
                None => fields.put_u32(GONE),
            }
            fields.put_u64(range.rows.first_row);
            fields.put_u64(range.rows.rows);
        }
        for column in columns {
            let (form, extent) = column[number];
            fields.put_u8(form.number());
            fields.put_extent(extent);
        }
        fields.put_u8(bounds[number].is_some().into());
        if let Some(extent) = bounds[number] {
            fields.put_extent(extent);
            let heads = (0..segment.columns.len()).filter_map(|column| segment.bounds.head(column));
            heads.for_each(|head| put_bounds_head(head, &mut fields));
        }
    }
    fields.0
}

fn put_bounds_head(head: &BoundsHead, fields: &mut Fields) {
    let frame = head.frame();
    if frame.is_empty() {
        return fields.put_u8(NO_VALUES);
    }
    fields.put_u8(head.code());
    fields.put_wide(frame.low.0 ^ IMAGE_SIGN);
    fields.put_wide(frame.high.0 - frame.low.0);
}

fn header(length: u64, directory: u64, checksum: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &MAGIC);
    put(VERSION_AT, &VERSION.to_le_bytes());
    put(LENGTH_AT, &length.to_le_bytes());
    put(DIRECTORY_AT, &directory.to_le_bytes());
    put(CHECKSUM_AT, &checksum.to_le_bytes());
    let seal = xxh3_64(&bytes[..SEAL_AT]);
    bytes[SEAL_AT..].copy_from_slice(&seal.to_le_bytes());
    bytes
}
