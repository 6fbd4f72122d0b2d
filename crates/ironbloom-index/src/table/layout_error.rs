//! What can be wrong with the layout of a Parquet file: row groups, column chunks and pages that cannot be as they say.

use crate::location::Location;
use std::fmt;
use std::io;

use super::TableError;

#[derive(Debug)]
pub(super) enum LayoutError {
    Io(io::Error),
    NegativeRows { group: usize },
    TooManyRows { group: usize },
    ColumnCount { group: usize },
    Outside { group: usize, column: String },
    NoPageHeader { at: u64, column: String },
    PageTooLong { at: u64 },
    PageRows { column: String, found: u64, expected: u64 },
}

impl LayoutError {
    /// The error of this file.
    pub(super) fn of_file(self, path: &Location) -> TableError {
        match self {
            Self::Io(error) => TableError::io(path, error),
            wrong => TableError::damaged(path, wrong),
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NegativeRows { group } => write!(f, "row group {group} has fewer than 0 rows"),
            Self::TooManyRows { group } => write!(f, "row group {group} has too many rows"),
            Self::ColumnCount { group } => {
                write!(f, "row group {group} has another number of columns than the file")
            }
            Self::Outside { group, column } => {
                write!(f, "row group {group} has its column {column} outside the file")
            }
            Self::NoPageHeader { at, column } => {
                write!(f, "no page header at byte {at}, in column {column}")
            }
            Self::PageTooLong { at } => {
                write!(f, "the page at byte {at} is longer than its column")
            }
            Self::PageRows { column, found, expected } => {
                write!(
                    f,
                    "the pages of column {column} hold {found} rows, its row group {expected}"
                )
            }
        }
    }
}

impl std::error::Error for LayoutError {}

impl From<io::Error> for LayoutError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
