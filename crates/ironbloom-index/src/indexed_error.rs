//! What can go wrong with an index, its tables, or both together.

use std::fmt;

use crate::catalog::CatalogError;
use crate::error::Error;
use crate::layout::FolderError;
use crate::location::Location;
use crate::table::TableError;

/// An error from an index or its tables.
#[derive(Debug)]
#[non_exhaustive]
pub enum IndexedError {
    /// From the index.
    Index(Error),
    /// From a table; the error names it.
    Table(TableError),
    /// From the index, because of this table.
    Indexing {
        /// The file.
        path: Location,
        /// What is wrong.
        error: Error,
    },
    /// A table path that an index cannot store: it is not UTF-8, or has no folder.
    Path {
        /// The file.
        path: Location,
    },
    /// Tables that are not in folders of the same columns, although these should be columns.
    Folders(String),
    /// From the metadata of a table of Iceberg or Delta.
    Catalog(CatalogError),
    /// The index does not follow such a table.
    NotFollowing {
        /// The index.
        path: Location,
    },
    /// The index was built from one version of such a table, and stays with it.
    OneVersion {
        /// The index.
        path: Location,
        /// The version, as it was given.
        at: String,
    },
    /// Where the table was that the index follows, there is another one now.
    AnotherTable {
        /// Where it is.
        path: Location,
        /// The id of the table that was indexed.
        known: String,
        /// The id of the table that is there.
        found: String,
    },
    /// The index follows such a table, which alone says which files belong to it.
    Following {
        /// The index.
        path: Location,
    },
    /// No table was given.
    NoTables,
    /// Whoever watches the progress of a build has panicked. Nobody sees this.
    Stopped,
}

impl fmt::Display for IndexedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::Indexing { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Path { path } => {
                write!(f, "{}: an index keeps only paths that are UTF-8", path.display())
            }
            Self::Folders(what) => f.write_str(what),
            Self::Catalog(error) => error.fmt(f),
            Self::NotFollowing { path } => write!(
                f,
                "{}: was not built from an Iceberg or Delta table, so there is nothing to follow",
                path.display()
            ),
            Self::OneVersion { path, at } => write!(
                f,
                "{}: was built from version {at} of its table, and stays with it; use `index build` for another one",
                path.display()
            ),
            Self::AnotherTable { path, known, found } => write!(
                f,
                "{}: is another table than the one that was indexed (its id is {found}, and was {known}); use `index build`",
                path.display()
            ),
            Self::Following { path } => write!(
                f,
                "{}: follows a table, which says itself which files belong to it; use `index refresh`",
                path.display()
            ),
            Self::NoTables => f.write_str("an index needs a table"),
            Self::Stopped => f.write_str("the build was stopped"),
        }
    }
}

impl std::error::Error for IndexedError {}

impl IndexedError {
    /// Whether a single table is missing or has changed, and the others may be intact.
    pub fn is_of_one_table(&self) -> bool {
        matches!(self, Self::Table(error) if error.is_of_the_file())
    }
}

impl IndexedError {
    /// True if a table cannot be opened because the process, or the system, has too many files open.
    pub(crate) fn is_of_too_many_files(&self) -> bool {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        let Self::Table(TableError::Io { error, .. }) = self else { return false };
        cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
    }
}

impl From<Error> for IndexedError {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl From<CatalogError> for IndexedError {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

impl From<FolderError> for IndexedError {
    fn from(error: FolderError) -> Self {
        Self::Folders(error.0)
    }
}

impl From<TableError> for IndexedError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}
