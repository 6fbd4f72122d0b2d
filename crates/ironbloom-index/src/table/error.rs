//! What can be wrong with a table. Every error names the file.

use std::fmt;
use std::io;

use crate::evaluate::EvaluateError;
use crate::location::Location;
use crate::similar::write_similar;

/// A table that cannot be read, or not as requested.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be opened or read.
    Io {
        /// The file.
        path: Location,
        /// The error from the system.
        error: io::Error,
    },
    /// The file is neither Parquet nor CSV.
    NotATable {
        /// The file.
        path: Location,
        /// What it is instead.
        why: &'static str,
    },
    /// The bytes of a Parquet file are invalid.
    Damaged {
        /// The file.
        path: Location,
        /// What was found.
        what: String,
    },
    /// A column of 96-bit timestamps has values that no timestamp of 64 bits holds exactly.
    InexactTimestamps {
        /// The file.
        path: Location,
        /// The column.
        column: String,
    },
    /// A line of a CSV file is invalid.
    Line {
        /// The file.
        path: Location,
        /// The line, counted from 1.
        line: u64,
        /// What was found.
        what: String,
    },
    /// The file is not the one that was indexed.
    Changed {
        /// The file.
        path: Location,
        /// How it differs.
        what: String,
    },
    /// The file that was indexed does not exist any more.
    Missing {
        /// The file.
        path: Location,
    },
    /// The file is the one that was indexed, with rows added at its end. They can be appended to the index.
    Grown {
        /// The file.
        path: Location,
        /// Its length when it was indexed.
        before: u64,
        /// Its length now.
        now: u64,
    },
    /// The notes that an index keeps about this file do not match it.
    Notes {
        /// The file.
        path: Location,
        /// What is wrong with them.
        what: &'static str,
    },
    /// There is no such column.
    UnknownColumn {
        /// The file.
        path: Location,
        /// The requested name.
        column: String,
        /// Columns with a similar name.
        similar: Vec<String>,
    },
    /// Several columns have this name.
    AmbiguousColumn {
        /// The file.
        path: Location,
        /// The requested name.
        column: String,
    },
    /// The file does not fit the table that it is a part of.
    View {
        /// The file.
        path: Location,
        /// What does not fit.
        what: String,
    },
    /// A condition does not match the table.
    Condition {
        /// The file.
        path: Location,
        /// Why.
        error: EvaluateError,
    },
}

impl TableError {
    /// A file that could not be opened or read. A truncated file counts as changed.
    pub(crate) fn io(path: &Location, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::StaleNetworkFileHandle => {
                Self::changed(path, error.to_string())
            }
            io::ErrorKind::InvalidData => Self::damaged(path, error),
            _ => Self::Io { path: path.into(), error },
        }
    }

    /// Whether the file is missing, has changed or cannot be read; if not, the question or the index is wrong.
    pub fn is_of_the_file(&self) -> bool {
        match self {
            Self::Io { .. }
            | Self::NotATable { .. }
            | Self::Damaged { .. }
            | Self::Line { .. }
            | Self::Changed { .. }
            | Self::Grown { .. }
            | Self::InexactTimestamps { .. }
            | Self::View { .. }
            | Self::Missing { .. } => true,
            Self::Notes { .. }
            | Self::UnknownColumn { .. }
            | Self::AmbiguousColumn { .. }
            | Self::Condition { .. } => false,
        }
    }

    pub(crate) fn damaged(path: &Location, what: impl fmt::Display) -> Self {
        Self::Damaged { path: path.into(), what: what.to_string() }
    }

    pub(crate) fn changed(path: &Location, what: impl Into<String>) -> Self {
        Self::Changed { path: path.into(), what: what.into() }
    }

    pub(crate) fn notes(path: &Location, what: &'static str) -> Self {
        Self::Notes { path: path.into(), what }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::NotATable { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Damaged { path, what } => write!(f, "{}: damaged: {what}", path.display()),
            Self::InexactTimestamps { path, column } => write!(
                f,
                "{}: column {column} has timestamps (INT96) too far from 1970 for their precision: 64 bits cannot hold \
                 them exactly",
                path.display()
            ),
            Self::Line { path, line, what } => {
                write!(f, "{}: line {line}: {what}", path.display())
            }
            Self::Changed { path, what } => {
                write!(f, "rebuild: {} changed since it was indexed: {what}", path.display())
            }
            Self::Missing { path } => {
                write!(f, "{}: is missing, but existed when it was indexed", path.display())
            }
            Self::Grown { path, before, now } => write!(
                f,
                "append: {} has grown since it was indexed: from {before} to {now} bytes",
                path.display()
            ),
            Self::Notes { path, what } => {
                write!(f, "the index is damaged in its notes on {}: {what}", path.display())
            }
            Self::UnknownColumn { path, column, similar } => {
                write!(f, "{}: no column {column}", path.display())?;
                write_similar(f, similar)
            }
            Self::AmbiguousColumn { path, column } => {
                write!(f, "{}: several columns are called {column}", path.display())
            }
            Self::View { path, what } => write!(f, "{}: {what}", path.display()),
            Self::Condition { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// No source: the system's error is already in the message, and printing the chain would repeat it.
impl std::error::Error for TableError {}
