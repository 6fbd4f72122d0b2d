//! The columns of a table before it is read: one schema for many tables is made of them.

use super::csv::CsvTable;
use super::{CsvOptions, Table, TableError, kind_of, open_parquet};
use crate::file_bytes::{FileBytes, Purpose};
use crate::location::Location;
use crate::table::Known;

/// A table whose columns are known.
pub(crate) enum Peeked {
    /// Names and types, which cost no more than opening it.
    Table(Box<Table>),
    /// Names alone: the types of CSV are known when all lines were read.
    Names(Vec<String>),
}

impl Table {
    /// Looks at the columns of a table, to be indexed.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open). What is wrong with the lines of CSV shows when it is opened.
    pub(crate) fn peek(path: &Location, csv: &CsvOptions) -> Result<Peeked, TableError> {
        let file = FileBytes::open_for(path.clone(), Purpose::Scan);
        let file = file.map_err(|error| TableError::io(path, error))?;
        let opened = |table| Ok(Peeked::Table(Box::new(table)));
        if !file.is_regular() {
            return opened(Self::open_with(path, csv)?);
        }
        match kind_of(&file, csv)? {
            None => {
                let (identity, format) = open_parquet(&file, Known::Nothing)?;
                opened(Self { file, identity, format, view: None })
            }
            // It is decompressed for its first line as for all of them.
            Some(kind) if kind.packing.is_some() => opened(Self::open_with(path, csv)?),
            Some(kind) => Ok(Peeked::Names(CsvTable::names(file, kind).unwrap_or_default())),
        }
    }
}
