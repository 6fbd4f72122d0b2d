//! Writing: chunks with checksums.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Image;
use super::header::{CHECKSUM_AT, CHUNK_BYTES, encode_header, get64};
use super::replace::replace_file;

/// Cuts its input into chunks and records their checksums.
struct ChunkWriter<W> {
    out: W,
    chunk: Vec<u8>,
    checksums: Vec<u8>,
}

impl<W: Write> ChunkWriter<W> {
    fn new(out: W) -> Self {
        Self { out, chunk: Vec::with_capacity(CHUNK_BYTES), checksums: Vec::new() }
    }

    fn write(&mut self, word: u64) -> io::Result<()> {
        self.chunk.extend_from_slice(&word.to_le_bytes());
        if self.chunk.len() == CHUNK_BYTES { self.finish_chunk() } else { Ok(()) }
    }

    fn finish_chunk(&mut self) -> io::Result<()> {
        let number = self.checksums.len() as u64 / 8;
        let checksum = xxh3_64_with_seed(&self.chunk, number);
        self.checksums.extend_from_slice(&checksum.to_le_bytes());
        self.out.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    fn finish(mut self, header_checksum: u64) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.finish_chunk()?;
        }
        let table = xxh3_64_with_seed(&self.checksums, header_checksum);
        self.out.write_all(&self.checksums)?;
        self.out.write_all(&table.to_le_bytes())?;
        self.out.flush()
    }
}

pub(super) fn write_image(image: &Image<'_>, mut out: impl Write) -> io::Result<()> {
    let header = encode_header(&image.header);
    out.write_all(&header)?;
    let mut chunks = ChunkWriter::new(out);
    for section in &image.sections {
        for &word in section.iter() {
            chunks.write(word)?;
        }
    }
    chunks.finish(get64(&header, CHECKSUM_AT))
}

pub(super) fn save_image(image: &Image<'_>, path: &Path) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|m| m.is_dir()) {
        return Err(ErrorKind::IsADirectory.into());
    }
    if existing.as_ref().is_some_and(|m| !m.is_file()) {
        // A pipe or device is written directly; renaming over it would replace it.
        return write_image(image, BufWriter::new(File::options().write(true).open(path)?));
    }
    replace_file(path, |file| write_image(image, BufWriter::new(file)))
}
