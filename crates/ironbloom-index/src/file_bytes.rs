//! A file or an object read in pieces, by offset, into our own memory.
//!
//! Others can change a file while it is open. A memory map would expose the change through references that Rust assumes
//! to be constant, and touching a truncated part kills the process. So nothing here maps a file: bytes are copied once,
//! checked, and then used, and what cannot be read is an error. Replacing a file by renaming another one over it
//! changes nothing for a process that has the old one open.
//!
//! An object in a bucket is read by requests for ranges, each for the version that was opened (`object/`). Whoever knows
//! several ranges says so before reading them ([`prefetch`](FileBytes::prefetch)): they are requested together.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use crate::location::Location;
#[cfg(feature = "object_store")]
use crate::object::ObjectBytes;

/// Bytes of a buffer through which long ranges go: many times what a system call costs, and still in the cache when they
/// are hashed.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// How the message starts when bytes are missing that were there when the file was opened.
pub(crate) const CUT_OFF: &str = "it was cut off while it was open";
/// The message when an object is not the one that was opened.
pub(crate) const REPLACED: &str = "it was replaced while it was open";

/// What an object is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Some parts of it are read, now and by later processes: they are kept in a folder.
    Ask,
    /// All of it is read, perhaps several times by this process.
    Scan,
}

/// An open file or object. Copies share it.
#[derive(Clone, Debug)]
pub(crate) struct FileBytes(Arc<OpenFile>);

#[derive(Debug)]
struct OpenFile {
    place: Place,
    location: Location,
    /// When it was opened.
    len: u64,
    /// Bytes read from it since.
    read: AtomicU64,
}

#[derive(Debug)]
enum Place {
    File {
        file: File,
        /// To see whether it changes while it is open.
        opened: Stamp,
        is_regular: bool,
        /// For a file of our own that has no name.
        unnamed: AtomicBool,
    },
    #[cfg(feature = "object_store")]
    Object(Box<ObjectBytes>),
}

/// File metadata that changes with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Opens a file to read it. Opening a named pipe would wait for a writer.
#[cfg(target_os = "linux")]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

impl FileBytes {
    /// To read some parts of it. Directories are rejected: where they can be opened they cannot be read.
    pub(crate) fn open(location: impl Into<Location>) -> io::Result<Self> {
        Self::open_for(location.into(), Purpose::Ask)
    }

    /// See [`open`](Self::open).
    pub(crate) fn open_for(location: Location, purpose: Purpose) -> io::Result<Self> {
        let Some(path) = location.as_file() else {
            return Self::open_object(location, purpose, None);
        };
        let file = open_without_waiting(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self::new(file, location, &metadata))
    }

    /// As [`open`](Self::open); but if this is an object, it is taken to be of this version, and to have this length. If it
    /// is not, reading it is an error of the kind [`ErrorKind::StaleNetworkFileHandle`].
    pub(crate) fn open_version(location: Location, version: &str, len: u64) -> io::Result<Self> {
        if location.is_object() && !version.is_empty() {
            return Self::open_object(location, Purpose::Ask, Some((version, len)));
        }
        Self::open(location)
    }

    #[cfg(feature = "object_store")]
    fn open_object(
        location: Location,
        purpose: Purpose,
        known: Option<(&str, u64)>,
    ) -> io::Result<Self> {
        let object = ObjectBytes::open(&location, purpose, known)?;
        let len = object.len();
        let place = Place::Object(Box::new(object));
        Ok(Self(Arc::new(OpenFile { place, location, len, read: AtomicU64::new(0) })))
    }

    #[cfg(not(feature = "object_store"))]
    fn open_object(_: Location, _: Purpose, _: Option<(&str, u64)>) -> io::Result<Self> {
        Err(io::Error::new(ErrorKind::Unsupported, crate::location::NO_STORES))
    }

    fn new(file: File, location: Location, metadata: &Metadata) -> Self {
        let (opened, is_regular) = (Stamp::of(metadata), metadata.is_file());
        let unnamed = AtomicBool::new(false);
        let place = Place::File { file, opened, is_regular, unnamed };
        Self(Arc::new(OpenFile { place, location, len: opened.length, read: AtomicU64::new(0) }))
    }

    /// A file that is open already, under the name that messages should have.
    pub(crate) fn of_file(file: File, location: &Location) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self::new(file, location.clone(), &metadata))
    }

    /// A file of our own, without a name, that is written to while it is read. What is not there yet is an error when it is read.
    pub(crate) fn of_growing_file(file: File, location: &Location) -> Self {
        let opened = Stamp { length: u64::MAX, modified: None };
        let unnamed = AtomicBool::new(true);
        let place = Place::File { file, opened, is_regular: true, unnamed };
        let (location, read) = (location.clone(), AtomicU64::new(0));
        Self(Arc::new(OpenFile { place, location, len: u64::MAX, read }))
    }

    /// The file of our own that has no name, for the one caller who will give it one.
    pub(crate) fn take_unnamed(&self) -> Option<&File> {
        match &self.0.place {
            Place::File { file, unnamed, .. } => {
                unnamed.swap(false, Ordering::AcqRel).then_some(file)
            }
            #[cfg(feature = "object_store")]
            Place::Object(_) => None,
        }
    }

    /// The number of the file in its file system.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn inode(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        match &self.0.place {
            Place::File { file, .. } => file.metadata().unwrap().ino(),
            #[cfg(feature = "object_store")]
            Place::Object(_) => unreachable!("no file"),
        }
    }

    /// Whether this is a copy of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn location(&self) -> &Location {
        &self.0.location
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.0.len
    }

    /// Bytes that have been read from it, some perhaps several times.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// Whether it is a file or an object, not a pipe or a device.
    pub(crate) fn is_regular(&self) -> bool {
        match &self.0.place {
            Place::File { is_regular, .. } => *is_regular,
            #[cfg(feature = "object_store")]
            Place::Object(_) => true,
        }
    }

    /// Whether each read may be a request to a server.
    pub(crate) fn is_object(&self) -> bool {
        self.location().is_object()
    }

    /// What names the version of an object: its ETag. Empty for files, and for stores without ETags.
    pub(crate) fn version(&self) -> &str {
        match &self.0.place {
            Place::File { .. } => "",
            #[cfg(feature = "object_store")]
            Place::Object(object) => object.version(),
        }
    }

    /// Whether it is still what it was when it was opened: a file by its length and time of change, an object by its
    /// version (asked for at most once a second).
    pub(crate) fn is_unchanged(&self) -> io::Result<bool> {
        match &self.0.place {
            Place::File { file, opened, .. } => Ok(Stamp::of(&file.metadata()?) == *opened),
            #[cfg(feature = "object_store")]
            Place::Object(object) => object.is_unchanged(),
        }
    }

    /// Says that these ranges will be read. Those of an object are requested now, together.
    ///
    /// # Errors
    ///
    /// As reading them; and [`ErrorKind::WouldBlock`] while reads are [planned](planned).
    pub(crate) fn prefetch(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        match &self.0.place {
            Place::File { .. } => {
                let _ = ranges;
                Ok(())
            }
            #[cfg(feature = "object_store")]
            Place::Object(object) => object.prefetch(ranges),
        }
    }

    /// Fills `buffer` with the bytes from `offset` on. [`ErrorKind::UnexpectedEof`] if there are too few.
    pub(crate) fn read_into(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.0.place {
            Place::File { file, .. } => self.read_file(file, buffer, offset),
            #[cfg(feature = "object_store")]
            Place::Object(object) => {
                if offset.saturating_add(buffer.len() as u64) > self.len() {
                    return Err(self.cut_off(self.len()));
                }
                self.0.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
                object.read_into(buffer, offset)
            }
        }
    }

    fn read_file(&self, file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match read_at(file, buffer, offset) {
                Ok(0) => return Err(self.cut_off(offset)),
                Ok(read) => {
                    self.0.read.fetch_add(read as u64, Ordering::Relaxed);
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
    /// These bytes. Nothing is allocated for those that the file never had.
    pub(crate) fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        if range.end > self.len() {
            return Err(self.cut_off(self.len()));
        }
        let len = usize::try_from(range.end.saturating_sub(range.start));
        let len = len.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        bytes.resize(len, 0);
        self.read_into(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// These bytes, piece by piece.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Pieces<'_> {
        Pieces { file: self, range, buffer: Vec::new() }
    }

    /// Reads from `start` on, to the end that the file had when it was opened.
    pub(crate) fn reader(&self, start: u64) -> FileReader {
        FileReader { file: self.clone(), at: start }
    }

    fn cut_off(&self, offset: u64) -> io::Error {
        let what = format!("{CUT_OFF}: no byte {offset} where there were {} bytes", self.len());
        io::Error::new(ErrorKind::UnexpectedEof, what)
    }
}

/// See [`FileBytes::pieces`].
pub(crate) struct Pieces<'a> {
    file: &'a FileBytes,
    range: Range<u64>,
    buffer: Vec<u8>,
}

impl Pieces<'_> {
    /// The next [`PIECE_BYTES`], or what is left; `None` at the end. After an error the same piece is tried again.
    pub(crate) fn next(&mut self) -> Option<io::Result<&[u8]>> {
        let left = self.range.end.saturating_sub(self.range.start);
        if left == 0 {
            return None;
        }
        self.buffer.resize(left.min(PIECE_BYTES as u64) as usize, 0);
        Some(self.file.read_into(&mut self.buffer, self.range.start).map(|()| {
            self.range.start += self.buffer.len() as u64;
            &self.buffer[..]
        }))
    }
}

/// See [`FileBytes::reader`]. Without a buffer.
pub(crate) struct FileReader {
    file: FileBytes,
    at: u64,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.len().saturating_sub(self.at).min(buffer.len() as u64) as usize;
        self.file.read_into(&mut buffer[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

/// Also moves the file's own position, which is not used here.
#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironbloom_testing::TemporaryFile;

    fn file(bytes: &[u8]) -> (TemporaryFile, FileBytes) {
        let path = TemporaryFile::new("bytes");
        std::fs::write(&path, bytes).unwrap();
        let open = FileBytes::open(path.path()).unwrap();
        (path, open)
    }

    #[test]
    fn every_way_of_reading_gives_the_same_bytes() {
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES + 7).map(|i| (i * 31 % 253) as u8).collect();
        let (_path, file) = file(&bytes);
        let end = bytes.len() as u64;
        for range in [0..end, 5..end, 5..5, 1..PIECE_BYTES as u64 + 1, end..end] {
            let wanted = &bytes[range.start as usize..range.end as usize];
            assert_eq!(file.read(range.clone()).unwrap(), wanted);
            let (mut pieces, mut joined) = (file.pieces(range.clone()), Vec::new());
            while let Some(piece) = pieces.next() {
                joined.extend_from_slice(piece.unwrap());
            }
            assert_eq!(joined, wanted);
            let mut rest = Vec::new();
            file.reader(range.start).read_to_end(&mut rest).unwrap();
            assert_eq!(rest, bytes[range.start as usize..]);
        }
    }

    #[test]
    fn what_is_not_there_is_an_error_and_costs_no_memory() {
        let (path, file) = file(b"0123456789");
        let cut_off = |result: io::Result<Vec<u8>>| {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        };
        cut_off(file.read(0..1 << 60));
        cut_off(file.read(8..11));
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4).unwrap();
        assert_eq!(file.read(0..4).unwrap(), b"0123");
        cut_off(file.read(0..5));
        cut_off(file.read(5..8));
        let mut rest = Vec::new();
        let error = file.reader(0).read_to_end(&mut rest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "an end that comes too early is no end");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_named_pipe_is_refused_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = ironbloom_testing::Scratch::new("pipe");
        let pipe = folder.file("t.csv");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(!FileBytes::open(pipe.as_path()).unwrap().is_regular());
        let refused = crate::table::Table::open(pipe.as_path()).err().unwrap().to_string();
        assert!(refused.contains("is not a regular file"), "{refused}");
        assert!(crate::Index::open(pipe.as_path()).is_err());
    }
}
