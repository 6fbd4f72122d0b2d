//! A file read in pieces, by offset, into our own memory.
//!
//! Others can change a file while it is open. A memory map would expose the change through references that Rust assumes
//! to be constant, and touching a truncated part kills the process. So nothing here maps a file: bytes are copied once,
//! checked, and then used, and what cannot be read is an error. Replacing a file by renaming another one over it
//! changes nothing for a process that has the old one open.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a buffer through which long ranges go: many times what a system call costs, and still in the cache when they
/// are hashed.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// How the message starts when bytes are missing that were there when the file was opened.
pub(crate) const CUT_OFF: &str = "it was cut off while it was open";

/// An open file. Copies share it.
#[derive(Clone, Debug)]
pub(crate) struct FileBytes(Arc<OpenFile>);

#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    /// When it was opened.
    len: u64,
    /// Bytes read from it since.
    read: AtomicU64,
}

impl FileBytes {
    /// Directories are rejected: where they can be opened they cannot be read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        Ok(Self::new(file, path, metadata.len()))
    }

    fn new(file: File, path: &Path, len: u64) -> Self {
        Self(Arc::new(OpenFile { file, path: path.to_owned(), len, read: AtomicU64::new(0) }))
    }

    /// A file that is open already, under the name that messages should have.
    pub(crate) fn of_file(file: File, path: &Path) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self::new(file, path, len))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.0.len
    }

    /// Bytes that have been read from it, some perhaps several times.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// The current metadata of the file.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.0.file.metadata()
    }

    /// Fills `buffer` with the bytes from `offset` on. [`ErrorKind::UnexpectedEof`] if there are too few.
    pub(crate) fn read_into(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match read_at(&self.0.file, buffer, offset) {
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

    fn file(name: &str, bytes: &[u8]) -> (PathBuf, FileBytes) {
        let path = std::env::temp_dir().join(format!("ironbloom-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let open = FileBytes::open(&path).unwrap();
        (path, open)
    }

    #[test]
    fn every_way_of_reading_gives_the_same_bytes() {
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES + 7).map(|i| (i * 31 % 253) as u8).collect();
        let (path, file) = file("same-bytes", &bytes);
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
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_there_is_an_error_and_costs_no_memory() {
        let (path, file) = file("not-there", b"0123456789");
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
        std::fs::remove_file(path).unwrap();
    }
}
