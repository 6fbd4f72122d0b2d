//! One variant for each way to fail. Errors carry fields, not sentences: `Display` makes the sentence, naming the file
//! and the column.

use crate::location::Location;
use std::fmt;
use std::io;

use ironbloom_blocks::{ParamError, ValueKind};

/// An error from an index.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    Io {
        /// The file.
        path: Location,
        /// The error it reported.
        error: io::Error,
    },
    /// The first bytes are not those of an index file.
    NotAnIndex {
        /// The file.
        path: Location,
    },
    /// Written by a later release.
    Version {
        /// The file.
        path: Location,
        /// The version of the file.
        found: u32,
    },
    /// The length does not match the header.
    Length {
        /// The file.
        path: Location,
        /// Bytes according to the header.
        expected: u64,
        /// Bytes actually present.
        found: u64,
    },
    /// A checksum does not match, or the content is impossible: the bytes were damaged after they were written.
    Damaged {
        /// The file.
        path: Location,
        /// What is damaged.
        part: FilePart,
        /// Its first byte in the file.
        offset: u64,
        /// Its bytes.
        len: u64,
    },
    /// The index was changed by another process after it was opened. Saving it would undo that change.
    Overtaken {
        /// The file.
        path: Location,
    },
    /// There is a file that is not an index where an index should be saved.
    Occupied {
        /// The file.
        path: Location,
    },
    /// There is no such column in the index, or in a batch that must have it.
    NoColumn {
        /// The requested column.
        column: String,
        /// The existing columns.
        known: Vec<String>,
    },
    /// The column appears twice.
    TwoColumns {
        /// Its name.
        column: String,
    },
    /// There are no columns to index.
    NoColumns,
    /// Columns of this type cannot be indexed.
    Type {
        /// The column.
        column: String,
        /// Its type, as Arrow prints it.
        found: String,
    },
    /// The kind of the column differs from that of the index, the batch or the value.
    Kind {
        /// The column.
        column: String,
        /// What the index holds.
        expected: ValueKind,
        /// What was given.
        found: String,
    },
    /// There is no such source in the index.
    NoSource {
        /// The requested name.
        source: String,
    },
    /// The source is already in the index.
    TwoSources {
        /// Its name.
        source: String,
    },
    /// Rows to be appended to a source do not start where it ends.
    Gap {
        /// The source.
        source: String,
        /// Rows it has.
        rows: u64,
        /// The row the new ones start with.
        first_row: u64,
    },
    /// Two indexes that cannot be joined.
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What the left one has.
        left: String,
        /// What the right one has.
        right: String,
    },
    /// A parameter lies outside its range.
    Param(ParamError),
}

impl From<ParamError> for Error {
    fn from(error: ParamError) -> Self {
        Self::Param(error)
    }
}

impl Error {
    /// Whether an index in a bucket was replaced while it was open. Opening it again gets the new one.
    pub fn is_replaced(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::StaleNetworkFileHandle)
    }
}

/// A part of an index file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePart {
    /// The first bytes.
    Header,
    /// The list of columns, sources and segments.
    Directory,
    /// What the index holds for a column in the rows of a source.
    Column {
        /// The column.
        column: String,
        /// The source.
        source: String,
        /// The number of the segment.
        segment: usize,
    },
    /// The smallest and the largest values of the blocks of a source, in all columns.
    Bounds {
        /// The source.
        source: String,
        /// The number of the segment.
        segment: usize,
    },
    /// What the table's reader stores about a source.
    Blob {
        /// The source.
        source: String,
    },
    /// Which rows of a source have been deleted.
    Deleted {
        /// The source.
        source: String,
    },
}

impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("header"),
            Self::Directory => f.write_str("directory"),
            Self::Column { column, source, segment } => {
                write!(f, "column {column} of {source} (segment {segment})")
            }
            Self::Bounds { source, segment } => {
                write!(f, "smallest and largest values of {source} (segment {segment})")
            }
            Self::Blob { source } => write!(f, "page table of {source}"),
            Self::Deleted { source } => write!(f, "list of deleted rows of {source}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotAnIndex { path } => write!(f, "{}: not an Ironbloom index", path.display()),
            Self::Version { path, found } => write!(
                f,
                "{}: format version {found} is newer than this program understands",
                path.display()
            ),
            Self::Length { path, expected, found } => {
                write!(f, "{}: {found} bytes instead of {expected}", path.display())
            }
            Self::Damaged { path, part, offset, len } => write!(
                f,
                "{}: {part} is damaged, in bytes {offset}..{}",
                path.display(),
                offset.saturating_add(*len)
            ),
            Self::Overtaken { path } => write!(
                f,
                "{}: was changed by another process after it was opened; nothing was saved",
                path.display()
            ),
            Self::Occupied { path } => {
                write!(f, "{}: is not an Ironbloom index, so it is not overwritten", path.display())
            }
            Self::NoColumn { column, known } => {
                write!(f, "no column {column}; the columns are {}", known.join(", "))
            }
            Self::TwoColumns { column } => write!(f, "column {column} is given twice"),
            Self::NoColumns => f.write_str("no columns to index"),
            Self::Type { column, found } => {
                write!(f, "column {column}: type {found} cannot be indexed")
            }
            Self::Kind { column, expected, found } => {
                write!(f, "column {column} holds {expected}, not {found}")
            }
            Self::NoSource { source } => write!(f, "{source} is not in the index"),
            Self::TwoSources { source } => write!(f, "{source} is already in the index"),
            Self::Gap { source, rows, first_row } => {
                write!(
                    f,
                    "{source} has {rows} rows in the index, but the new ones start at row {first_row}"
                )
            }
            Self::Mismatch { what, left, right } => write!(f, "{what} differs: {left} and {right}"),
            Self::Param(error) => error.fmt(f),
        }
    }
}

/// No source: the system's error is already in the message, and printing the chain would repeat it.
impl std::error::Error for Error {}
