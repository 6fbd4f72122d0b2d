//! Writing: a new file next to the old one, synced, then renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use ironbloom::format::native::replace_file;
use ironbloom_blocks::Postings;
use xxhash_rust::xxh3::xxh3_64;

use super::directory::{Extent, Fields};
use super::*;
use crate::checksum_tree::TreeBuilder;
use crate::error::{Error, FilePart};
use crate::index::Index;
use crate::section::{Form, Section};
use crate::segment::SegmentColumn;
use crate::source::{Blob, Source};

/// Writes an index whose segments are sealed, and returns the header that it got.
pub(crate) fn save(index: &Index, path: &Path) -> Result<Vec<u8>, Error> {
    let mut header = Vec::new();
    let write = |file: &File| {
        header = write_index(index, file)?;
        Ok(())
    };
    replace(path, write).map_err(|error| match error.downcast() {
        Ok(of_another_file) => of_another_file,
        Err(error) => Error::Io { path: path.to_owned(), error },
    })?;
    Ok(header)
}

fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file"));
    }
    replace_file(path, write)
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
        let bytes = little_endian(postings.words());
        let mut builder = TreeBuilder::default();
        builder.update(&bytes);
        let (tree, root) = builder.finish();
        let extent = self.section(&bytes, root)?;
        self.write(&tree)?;
        Ok((Form::Tree, extent))
    }

    fn blob(&mut self, source: &Source) -> io::Result<Extent> {
        match &source.blob {
            Blob::Owned(bytes) => self.section(bytes, xxh3_64(bytes)),
            Blob::Stored { section, loaded } => match loaded.get() {
                Some(bytes) => self.section(bytes, section.checksum()),
                None => self.copy(section, || source.blob_part()),
            },
        }
    }
}

fn little_endian(words: &[u64]) -> std::borrow::Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        bytemuck::cast_slice(words).into()
    } else {
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>().into()
    }
}

fn write_index(index: &Index, file: &File) -> io::Result<Vec<u8>> {
    let mut sections = Sections { out: BufWriter::with_capacity(1 << 20, file), at: 0 };
    sections.write(&[0; HEADER_BYTES])?;
    let mut fields = Fields::default();
    fields.put_u32(index.params().block_rows());
    fields.put_u32(index.params().selectivity());
    fields.put_len(index.columns().len());
    for column in index.columns() {
        fields.put_name(&column.name);
        fields.put_u8(column.kind as u8);
    }
    fields.put_len(index.sources.len());
    for source in &index.sources {
        fields.put_name(&source.name);
        fields.put_u64(source.bytes);
        fields.put_u64(source.fingerprint);
        fields.put_u64(source.rows);
        fields.put_extent(sections.blob(source)?);
    }
    fields.put_len(index.segments.len());
    for number in 0..index.segments.len() {
        write_segment(index, number, &mut sections, &mut fields)?;
    }
    let start = sections.align()?;
    sections.write(&fields.0)?;
    sections.out.flush()?;
    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let header = header(sections.at, start, xxh3_64(&fields.0));
    file.write_all(&header)?;
    Ok(header.to_vec())
}

fn write_segment(
    index: &Index,
    number: usize,
    sections: &mut Sections<impl Write>,
    fields: &mut Fields,
) -> io::Result<()> {
    let segment = &index.segments[number];
    fields.put_len(segment.source);
    fields.put_len(segment.rows.0.len());
    for range in &segment.rows.0 {
        fields.put_u64(range.first_row);
        fields.put_u64(range.rows);
    }
    for (column, held) in segment.columns.iter().enumerate() {
        let part = || index.column_part(number, segment, column);
        let (form, extent) = sections.column(held, part)?;
        fields.put_u8(form.number());
        fields.put_extent(extent);
    }
    Ok(())
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
