//! Tables that keep a list of their files themselves: which files make up the table now?
//!
//! ```text
//!  Iceberg   metadata/*.metadata.json ──► manifest list ──► manifests (Avro) ──► data files, delete files
//!  Delta     _delta_log/: checkpoint (Parquet) and commits after it (JSON)   ──► data files, deletion vectors
//!                                                                                    │
//!                                                                                Snapshot
//! ```
//!
//! Only the table's own metadata counts: files in its folder that it does not name are not read, and what it needs and is
//! not supported is refused by name. Nothing is ever written.

mod avro;
mod deletes;
mod delta;
mod delta_log;
mod delta_schema;
mod iceberg;
mod iceberg_schema;

use std::collections::HashSet;
use std::fmt;

use roaring::RoaringTreemap;

pub(crate) use deletes::write_rows;
pub(crate) use delta_schema::{DeltaShape, physical_name};
pub(crate) use iceberg_schema::{IcebergShape, id_of};

use self::deletes::Deletes;
use crate::file_bytes::FileBytes;
use crate::location::Location;
use crate::part::Part;
use crate::table::TableError;

/// A format of tables that keep a list of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFormat {
    /// Apache Iceberg, versions 1 to 3.
    Iceberg,
    /// Delta Lake.
    Delta,
}

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iceberg => "Iceberg",
            Self::Delta => "Delta",
        })
    }
}

/// A version of such a table: the current one, or an earlier one that its metadata still knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableVersion {
    pub(crate) format: TableFormat,
    pub(crate) at: Option<String>,
}

impl From<TableFormat> for TableVersion {
    fn from(format: TableFormat) -> Self {
        Self { format, at: None }
    }
}

impl TableFormat {
    /// The version of this number of a Delta table; of Iceberg the snapshot of this id, or of the branch or tag of this name.
    pub fn at(self, version: impl Into<String>) -> TableVersion {
        TableVersion { format: self, at: Some(version.into()) }
    }
}

/// A table that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum CatalogError {
    /// It uses something that is not supported.
    Unsupported {
        /// The table.
        table: Location,
        /// What it uses.
        what: String,
    },
    /// A file of its metadata is invalid.
    Invalid {
        /// The file.
        file: Location,
        /// What is wrong.
        what: String,
    },
    /// A file cannot be read.
    Table(TableError),
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { table, what } => {
                write!(f, "{}: {what}, which is not supported", table.display())
            }
            Self::Invalid { file, what } => write!(f, "{}: {what}", file.display()),
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CatalogError {}

impl From<TableError> for CatalogError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

impl CatalogError {
    fn invalid(file: &Location, what: impl Into<String>) -> Self {
        Self::Invalid { file: file.into(), what: what.into() }
    }

    fn unsupported(table: &Location, what: impl Into<String>) -> Self {
        Self::Unsupported { table: table.into(), what: what.into() }
    }
}

/// The columns of a table, in the words of its own metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Iceberg(IcebergShape),
    Delta(DeltaShape),
}

/// A table at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The id of Iceberg's snapshot, or Delta's version.
    pub(crate) id: i64,
    /// What tells the table from another one at the same place, such as one that was created after it was dropped.
    pub(crate) table_id: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) files: Vec<DataFile>,
}

/// A file of rows.
#[derive(Debug)]
pub(crate) struct DataFile {
    pub(crate) path: Location,
    pub(crate) part: Part,
    deletes: Deletes,
}

impl DataFile {
    /// The rows of the file that have been deleted.
    pub(crate) fn deleted(&self) -> Result<RoaringTreemap, CatalogError> {
        self.deletes.rows()
    }
}

/// The table at this place in this version.
pub(crate) fn snapshot(version: &TableVersion, table: &Location) -> Result<Snapshot, CatalogError> {
    let at = version.at.as_deref();
    let snapshot = match version.format {
        TableFormat::Iceberg => iceberg::snapshot(table, at),
        TableFormat::Delta => delta::snapshot(table, at),
    }?;
    each_file_once(table, snapshot)
}

/// Refuses a table that lists a file twice. Other readers show its rows twice, and an index has them once.
fn each_file_once(table: &Location, snapshot: Snapshot) -> Result<Snapshot, CatalogError> {
    let mut seen = HashSet::new();
    match snapshot.files.iter().find(|file| !seen.insert(&file.path)) {
        Some(twice) => {
            let name = twice.path.display();
            Err(CatalogError::unsupported(table, format!("it lists {name} twice")))
        }
        None => Ok(snapshot),
    }
}

/// The table that was last read from this place, as it is now; and the place to look next time.
pub(crate) fn newest(
    format: TableFormat,
    table: &Location,
) -> Result<(Location, Snapshot), CatalogError> {
    let (place, snapshot) = match format {
        TableFormat::Iceberg => iceberg::newest(table)?,
        TableFormat::Delta => (table.clone(), delta::snapshot(table, None)?),
    };
    Ok((place, each_file_once(table, snapshot)?))
}

/// The format of the table in this folder, if it is one.
pub fn table_format(folder: &Location) -> Option<TableFormat> {
    let log = folder.join("_delta_log");
    let has_log = match log.as_file() {
        Some(path) => path.is_dir(),
        // There are no folders, only objects in them.
        None => names_in(&log).is_ok_and(|names| !names.is_empty()),
    };
    if has_log {
        return Some(TableFormat::Delta);
    }
    let names = names_in(&folder.join("metadata")).ok()?;
    names.iter().any(|name| name.ends_with(".metadata.json")).then_some(TableFormat::Iceberg)
}

/// Whether there is nothing in a file of metadata.
fn is_empty(path: &Location) -> Result<bool, CatalogError> {
    let file = FileBytes::open(path);
    let file =
        file.map_err(|error| CatalogError::Table(TableError::Io { path: path.into(), error }))?;
    Ok(file.len() == 0)
}

/// All bytes of a file of metadata.
fn bytes_of(path: &Location) -> Result<Vec<u8>, CatalogError> {
    let failed = |error| CatalogError::Table(TableError::Io { path: path.into(), error });
    let file = FileBytes::open(path).map_err(failed)?;
    file.read(0..file.len()).map_err(failed)
}

/// The names of what is in a folder.
fn names_in(folder: &Location) -> Result<Vec<String>, CatalogError> {
    let failed = |error| CatalogError::Table(TableError::Io { path: folder.into(), error });
    let Some(path) = folder.as_file() else { return objects_in(folder).map_err(failed) };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(feature = "object_store")]
fn objects_in(folder: &Location) -> std::io::Result<Vec<String>> {
    let objects = crate::object::list_objects(folder)?;
    let names = objects.iter().filter_map(|object| object.within(folder));
    Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
}

#[cfg(not(feature = "object_store"))]
fn objects_in(_: &Location) -> std::io::Result<Vec<String>> {
    Err(std::io::Error::other(crate::location::NO_STORES))
}

/// A path on this machine, of a path or a `file:` address.
fn local(address: &str) -> &str {
    let rest = address.strip_prefix("file:").unwrap_or(address);
    match rest.strip_prefix("//") {
        Some(path) if rest.len() < address.len() => path.strip_prefix("localhost").unwrap_or(path),
        _ => rest,
    }
}
