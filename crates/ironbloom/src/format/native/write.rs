//! Writing: chunks with checksums, and files that are replaced whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Image;
use super::header::{CHECKSUM_AT, CHUNK_BYTES, encode_header, get64};

/// The name under which [`Persist::save`](super::Persist::save) writes before it renames. A program that is
/// interrupted may remove it. (If that name is taken, by a save of another thread, a number is added.)
pub fn temporary_path(path: &Path) -> PathBuf {
    // Part of the name is enough, and a long one would leave no room for the rest.
    let stem: String =
        path.file_name().unwrap_or_default().to_string_lossy().chars().take(40).collect();
    path.with_file_name(format!(".{stem}.{}.tmp", std::process::id()))
}

/// Cuts what is written into chunks and remembers their checksums.
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
        // A pipe or a device is written to; renaming over it would replace it.
        return write_image(image, BufWriter::new(File::options().write(true).open(path)?));
    }
    let target = behind_links(path);
    let (temporary, file) = create_temporary(&target)?;
    // Before the first byte: what only its owner may read is never there for others.
    let protected =
        existing.map_or(Ok(()), |existing| file.set_permissions(existing.permissions()));
    let written = protected
        .and_then(|()| write_synced(image, file))
        .and_then(|()| fs::rename(&temporary, &target));
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_directory(&target);
    Ok(())
}

/// The file that a name stands for: behind a symbolic link it is the file that changes, not the link, also if the
/// file is not there yet.
fn behind_links(path: &Path) -> PathBuf {
    const MOST_LINKS: u32 = 40; // as Linux
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::read_link(&target) else { return target };
        target = target.parent().map_or_else(|| link.clone(), |parent| parent.join(&link));
    }
    target
}

/// A file that nobody else writes to: not another thread that saves under the same name.
fn create_temporary(target: &Path) -> io::Result<(PathBuf, File)> {
    const TRIES: u32 = 1000;
    let first = temporary_path(target);
    for number in 0..TRIES {
        let path =
            if number == 0 { first.clone() } else { first.with_extension(format!("{number}.tmp")) };
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (path, file)),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{} exists", first.display())))
}

fn write_synced(image: &Image<'_>, file: File) -> io::Result<()> {
    write_image(image, BufWriter::new(&file))?;
    file.sync_all()
}

/// Makes the rename itself survive a power cut. A file system that cannot sync a directory is not an error.
fn sync_directory(path: &Path) {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(parent) {
        let _ = directory.sync_all();
    }
}
