//! Files that are compressed as a whole: `t.csv.gz`, `t.csv.zst`.
//!
//! Row 5000 of such a file can be reached only through all bytes before it. So the file is decompressed when its rows
//! are first needed, into a temporary file without a name, which is gone when the table is closed, even if the process
//! is killed.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use flate2::read::MultiGzDecoder;

use super::TableError;
use crate::file_bytes::{FileBytes, PIECE_BYTES};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    const MAGIC_BYTES: u64 = 4;

    /// How this file is compressed, by its first bytes.
    pub(super) fn of(file: &FileBytes) -> io::Result<Option<Self>> {
        let first = file.read(0..file.len().min(Self::MAGIC_BYTES))?;
        Ok(if first.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if first == [0x28, 0xb5, 0x2f, 0xfd] {
            Some(Self::Zstd)
        } else {
            None
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// The bytes of a file, without its compression.
pub(super) struct Content {
    file: FileBytes,
    packing: Option<Packing>,
    unpacked: OnceLock<FileBytes>,
}

impl Content {
    pub(super) fn new(file: FileBytes, packing: Option<Packing>) -> Self {
        Self { file, packing, unpacked: OnceLock::new() }
    }

    pub(super) fn packing(&self) -> Option<Packing> {
        self.packing
    }

    /// The file as it is.
    pub(super) fn file(&self) -> &FileBytes {
        &self.file
    }

    /// What is in it; decompressed at the first call.
    pub(super) fn bytes(&self) -> Result<&FileBytes, TableError> {
        let Some(packing) = self.packing else { return Ok(&self.file) };
        if let Some(bytes) = self.unpacked.get() {
            return Ok(bytes);
        }
        let unpacked = self.unpack(packing)?;
        Ok(self.unpacked.get_or_init(|| unpacked))
    }

    fn unpack(&self, packing: Packing) -> Result<FileBytes, TableError> {
        let path = self.file.location();
        let failed = |error| TableError::io(path, error);
        let input = io::BufReader::with_capacity(PIECE_BYTES, self.file.reader(0));
        let mut decoder: Box<dyn Read> = match packing {
            Packing::Gzip => Box::new(MultiGzDecoder::new(input)),
            Packing::Zstd => {
                Box::new(zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?)
            }
        };
        let mut output = tempfile::tempfile().map_err(failed)?;
        copy(&mut decoder, &mut output, failed, |error| {
            TableError::damaged(path, format_args!("{}: {error}", packing.name()))
        })?;
        FileBytes::of_file(output, path).map_err(failed)
    }
}

/// Copies all bytes. The message depends on the side of an error: a full disk is not a damaged file.
fn copy(
    input: &mut dyn Read,
    output: &mut File,
    failed: impl Fn(io::Error) -> TableError,
    damaged: impl Fn(io::Error) -> TableError,
) -> Result<(), TableError> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => io::Write::write_all(output, &buffer[..read]).map_err(&failed)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(damaged(error)),
        }
    }
}
