//! The Bloom filters in a Parquet file: their locations, and the bytes of a value that they hash.
//!
//! ```text
//!  … row groups, filters │ footer (Thrift) │ its length │ PAR1          a column chunk's metadata says where its filter is
//! ```
//!
//! A filter hashes a value in Parquet's plain encoding **of its physical type**, without the length of byte arrays:
//!
//! ```text
//!  INT32, INT64          4 or 8 bytes, little-endian, whatever the logical type: int8 and int16 are INT32
//!  FLOAT, DOUBLE         IEEE 754, little-endian; zero has two forms
//!  BYTE_ARRAY            the bytes
//!  FIXED_LEN_BYTE_ARRAY  the bytes; a decimal in all of them, big-endian, sign-extended
//! ```
//!
//! Where a value can be stored in several ways (a zero, a decimal of a variable number of bytes), all forms are looked
//! up. Other programs did otherwise and lost rows: int8 and int16 looked up as one or two bytes (apache/arrow-rs#5550),
//! fixed-length decimals by their minimal bytes (apache/datafusion#22994). A value that cannot occur in its column is
//! an error, and so is one of a type that has no rule here; a row group without a filter may hold anything.

mod footer;
mod plain;
mod stored;
mod value;

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

pub use footer::{Chunk, Column, Physical, RowGroup};
pub use plain::Plain;
pub use stored::StoredFilter;

use super::foreign::{ForeignError, parquet};
use crate::kinds::SplitBlock;

/// The end of a file: the length of its footer, and the magic.
const TAIL: u64 = 8;
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";

/// Maximum length of a footer, beyond any sane file, so that a forged length takes no memory.
const MAX_FOOTER: u64 = 1 << 30;

/// A Parquet file, as far as its filters are concerned.
#[derive(Debug)]
pub struct ParquetFile<F> {
    file: F,
    length: u64,
    /// The columns, in the order of the file.
    pub columns: Vec<Column>,
    /// The row groups.
    pub groups: Vec<RowGroup>,
}

/// A Parquet file that cannot be queried.
#[derive(Debug)]
#[non_exhaustive]
pub enum ParquetError {
    /// The operating system reported an error.
    Io(io::Error),
    /// It does not end as a Parquet file does.
    NotParquet,
    /// Its footer is encrypted.
    Encrypted,
    /// The footer is damaged.
    Footer {
        /// The byte of the file at which it begins.
        offset: u64,
    },
    /// A filter is damaged, or not in the specification.
    Filter {
        /// The byte of the file at which it begins.
        offset: u64,
        /// The problem, with offsets relative to the filter.
        error: ForeignError,
    },
    /// There is no such column.
    NoColumn {
        /// The name asked for.
        name: String,
    },
    /// The value cannot occur in this column.
    Value {
        /// The value.
        value: String,
        /// The values that the column has.
        wanted: String,
    },
}

impl fmt::Display for ParquetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotParquet => write!(f, "not a Parquet file"),
            Self::Encrypted => write!(f, "the footer is encrypted"),
            Self::Footer { offset } => write!(f, "the footer at byte {offset} is damaged"),
            Self::Filter { offset, error } => write!(f, "filter at byte {offset}: {error}"),
            Self::NoColumn { name } => write!(f, "there is no column {name:?}"),
            Self::Value { value, wanted } => write!(f, "{value:?} is not {wanted}"),
        }
    }
}

impl std::error::Error for ParquetError {}

impl From<io::Error> for ParquetError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns true if these are the first bytes of a Parquet file.
pub fn is_parquet(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(ENCRYPTED)
}

impl<F: Read + Seek> ParquetFile<F> {
    /// Reads the footer of a file.
    pub fn open(mut file: F) -> Result<Self, ParquetError> {
        let length = file.seek(SeekFrom::End(0))?;
        let tail = read_at(&mut file, length.saturating_sub(TAIL), TAIL.min(length))?;
        let Some((&footer, magic)) = tail.split_first_chunk::<4>() else {
            return Err(ParquetError::NotParquet);
        };
        match magic {
            MAGIC => {}
            ENCRYPTED => return Err(ParquetError::Encrypted),
            _ => return Err(ParquetError::NotParquet),
        }
        let footer = u64::from(u32::from_le_bytes(footer));
        let start = (length - TAIL).checked_sub(footer).filter(|_| footer <= MAX_FOOTER);
        let start = start.ok_or(ParquetError::Footer { offset: length - TAIL })?;
        let bytes = read_at(&mut file, start, footer)?;
        let (columns, groups) =
            footer::parse(&bytes).ok_or(ParquetError::Footer { offset: start })?;
        Ok(Self { file, length, columns, groups })
    }

    /// Returns the position of a column, by its dotted path.
    pub fn column(&self, name: &str) -> Result<usize, ParquetError> {
        let place = self.columns.iter().position(|column| column.path == name);
        place.ok_or_else(|| ParquetError::NoColumn { name: name.to_owned() })
    }

    /// Reads the filter of a column in a row group; `None` if there is none.
    pub fn filter(
        &mut self,
        group: usize,
        column: usize,
    ) -> Result<Option<SplitBlock>, ParquetError> {
        let chunk = self.groups.get(group).and_then(|group| group.chunks.get(column));
        let Some(offset) = chunk.and_then(|chunk| chunk.filter_offset) else { return Ok(None) };
        let damaged = |error| ParquetError::Filter { offset, error };
        let left = self.length.saturating_sub(offset);
        let head = read_at(&mut self.file, offset, left.min(parquet::MAX_HEADER))?;
        let (header, bits) = parquet::head(&head).map_err(damaged)?;
        // Never more than the file has: the error then says how much is missing.
        let bytes = read_at(&mut self.file, offset, left.min(header + bits))?;
        parquet::read(&bytes).map(Some).map_err(damaged)
    }

    /// For each row group, returns true if it may hold a value, given as text, in a column: if its filter finds it, or
    /// it has no filter.
    pub fn may_hold(&mut self, column: usize, value: &str) -> Result<Vec<bool>, ParquetError> {
        let forms = self.columns[column].encoded(value)?;
        let hashes: Vec<u64> = forms.iter().map(|form| StoredFilter::hash(form)).collect();
        let (file, length) = (&mut self.file, self.length);
        let mut read = |range: Range<u64>| read_at(file, range.start, range.end - range.start);
        let mut answers = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            answers.push(match group.chunks[column].filter_offset {
                Some(offset) => {
                    let filter = StoredFilter::open(offset, length, &mut read)?;
                    filter.has_any(&hashes, &mut read)?
                }
                None => true,
            });
        }
        Ok(answers)
    }
}

fn read_at(file: &mut (impl Read + Seek), offset: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
