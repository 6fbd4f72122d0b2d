//! Reading bytes at an offset. A query reads hundreds of slices: each in one system call, without
//! moving a position.

use std::fs::File;
use std::io::{self, Cursor};

/// A source that an index is read from.
pub trait ReadAt {
    /// Number of bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills the buffer with the bytes starting at an offset. Fewer bytes are an error.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl<T: AsRef<[u8]>> ReadAt for Cursor<T> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.get_ref().as_ref().len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let rest = start.and_then(|start| self.get_ref().as_ref().get(start..));
        let bytes = rest.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
