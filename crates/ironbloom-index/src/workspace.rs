//! The memory of a build, and its temporary file: where sealed columns wait for the file of the index.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ironbloom_blocks::{CELL_PARTS, CellPieces, PartMemory, Postings};

use crate::checksum_tree::TreeBuilder;
use crate::error::Error;
use crate::file::{HEADER_BYTES, LINE_BYTES};
use crate::file_bytes::FileBytes;
use crate::flusher::Flusher;
use crate::resources::Resources;
use crate::section::{Form, Section, little_endian};
use crate::segment::{SegmentColumn, StoredPostings};

/// The memory of a build, and its temporary file.
///
/// The file has no name, so nothing is left of it, however the process ends. Its sections lie like those of an index file: it
/// becomes the index, or they are copied there (`file/adopt.rs`).
pub(crate) struct Workspace {
    /// Where the temporary file is made, when it is needed.
    folder: PathBuf,
    /// Bytes of sealed columns that stay in memory.
    most_in_memory: u64,
    spilled: Mutex<Spilled>,
    /// Memory of cells that were encoded, for the next ones.
    spare: Mutex<CellPieces>,
    /// The same of encoded parts.
    spare_parts: Mutex<Vec<PartMemory>>,
    held: AtomicU64,
    peak: AtomicU64,
}

#[derive(Default)]
struct Spilled {
    in_memory: u64,
    file: Option<SpillFile>,
}

struct SpillFile {
    file: File,
    read: FileBytes,
    flusher: Flusher,
    /// Where the last section ends.
    end: u64,
}

/// Sections of more bytes are sent to the disk as they are written. Smaller ones may be merged soon, and then nobody needs them
/// there.
const FLUSHED_BYTES: usize = 16 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workspace {
    /// With a temporary file in this folder, if one is needed.
    pub(crate) fn new(folder: &Path, resources: Resources) -> Self {
        Self {
            folder: folder.to_owned(),
            most_in_memory: resources.for_sealed(),
            spilled: Mutex::default(),
            spare: Mutex::default(),
            spare_parts: Mutex::default(),
            held: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        }
    }

    /// Takes a sealed column of `blocks` blocks: it stays in memory if there is room, or else goes to the file.
    pub(crate) fn put(&self, postings: Postings, blocks: u32) -> Result<SegmentColumn, Error> {
        let bytes = size_of_val(postings.words()) as u64;
        let mut spilled = lock(&self.spilled);
        if spilled.in_memory + bytes <= self.most_in_memory {
            spilled.in_memory += bytes;
            self.hold(bytes);
            return Ok(SegmentColumn::Sealed(postings));
        }
        let section = spilled.write(&self.folder, &postings).map_err(|error| {
            let what = format!("the temporary file of the build: {error}");
            Error::Io { path: (&self.folder).into(), error: io::Error::new(error.kind(), what) }
        })?;
        Ok(SegmentColumn::Stored(Box::new(StoredPostings::new(section, blocks))))
    }

    /// Memory for the cells of one of `columns` columns.
    pub(crate) fn take_memory(&self, columns: usize) -> CellPieces {
        let mut spare = lock(&self.spare);
        let share = spare.bytes() / columns.max(1) as u64;
        let taken = spare.take(share);
        self.release(taken.bytes());
        taken
    }

    /// Gives it back, or what it has grown to.
    pub(crate) fn give_memory(&self, memory: CellPieces) {
        self.hold(memory.bytes());
        lock(&self.spare).add(memory);
    }

    /// Memory for a part that is encoded.
    pub(crate) fn take_part_memory(&self) -> PartMemory {
        let memory = lock(&self.spare_parts).pop().unwrap_or_default();
        self.release(memory.bytes());
        memory
    }

    /// Gives it back, with that of other parts. As many are kept as a column has.
    pub(crate) fn give_part_memory(&self, memory: Vec<PartMemory>) {
        let mut spare = lock(&self.spare_parts);
        for memory in memory {
            if spare.len() < CELL_PARTS {
                self.hold(memory.bytes());
                spare.push(memory);
            }
        }
    }

    /// Gives the memory of cells and parts back to the system: none will come.
    pub(crate) fn free_memory(&self) {
        let spare = std::mem::take(&mut *lock(&self.spare));
        let parts = std::mem::take(&mut *lock(&self.spare_parts));
        let parts_bytes: u64 = parts.iter().map(PartMemory::bytes).sum();
        self.release(spare.bytes() + parts_bytes);
    }

    /// Counts bytes that are held from now on.
    pub(crate) fn hold(&self, bytes: u64) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(held, Ordering::Relaxed);
    }

    /// Counts bytes that are not held any more.
    pub(crate) fn release(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The most bytes that were held at the same time.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

impl Spilled {
    fn write(&mut self, folder: &Path, postings: &Postings) -> io::Result<Section> {
        if self.file.is_none() {
            self.file = Some(SpillFile::new(folder)?);
        }
        self.file.as_mut().expect("made above").write(postings)
    }
}

impl SpillFile {
    fn new(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        let read = FileBytes::of_growing_file(file.try_clone()?, &folder.into());
        let flusher = Flusher::new(file.try_clone()?)?;
        Ok(Self { file, read, flusher, end: HEADER_BYTES as u64 })
    }

    fn write(&mut self, postings: &Postings) -> io::Result<Section> {
        let bytes = little_endian(postings.words());
        let mut builder = TreeBuilder::default();
        builder.update(&bytes);
        let (tree, root) = builder.finish();
        let start = self.end.next_multiple_of(LINE_BYTES as u64);
        self.file.seek(SeekFrom::Start(start))?;
        for some in bytes.chunks(FLUSHED_BYTES) {
            self.file.write_all(some)?;
            if bytes.len() > FLUSHED_BYTES {
                self.flusher.flush();
            }
        }
        self.file.write_all(&tree)?;
        let range = start..start + bytes.len() as u64;
        self.end = range.end + tree.len() as u64;
        Ok(Section::new(self.read.clone(), range, root, Form::Tree))
    }
}
