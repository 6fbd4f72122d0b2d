//! The tables an index was built from.

use std::sync::OnceLock;

use crate::error::{Error, FilePart};
use crate::section::{Fault, Section};

/// What is known about a table once all its rows have been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMeta {
    /// Length of the file.
    pub bytes: u64,
    /// A fingerprint of its footer, or of whatever changes when the table does.
    pub fingerprint: u64,
    /// What names the version of an object, its ETag; empty for a file.
    pub version: String,
    /// Anything the table's reader wants to get back: page offsets, block offsets.
    pub blob: Vec<u8>,
    /// A few bytes that are at hand without reading the blob, such as the values of columns that are constant in the file.
    pub view: Vec<u8>,
    /// Rows that have been deleted and must not be shown, in any form; empty if there are none.
    pub deleted: Vec<u8>,
}

/// A table in an index.
#[derive(Debug)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) fingerprint: u64,
    pub(crate) rows: u64,
    pub(crate) version: String,
    pub(crate) blob: Blob,
    pub(crate) view: Vec<u8>,
    /// Without any bytes if there are none.
    pub(crate) deleted: Blob,
}

impl Source {
    /// Its name, as given when it was added: the path of a file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Length of the file when it was indexed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The fingerprint it had when it was indexed.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Number of indexed rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What is at hand of its [`SourceMeta`].
    pub fn view(&self) -> &[u8] {
        &self.view
    }

    /// Whether rows have been deleted.
    pub fn has_deleted_rows(&self) -> bool {
        self.deleted.len() > 0
    }

    /// The version of the object that was indexed, its ETag; empty for a file.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of its blob, for errors.
    pub(crate) fn blob_part(&self) -> FilePart {
        FilePart::Blob { source: self.name.clone() }
    }

    /// The name of its deleted rows, for errors.
    pub(crate) fn deleted_part(&self) -> FilePart {
        FilePart::Deleted { source: self.name.clone() }
    }
}

/// The bytes that the table's reader keeps here.
#[derive(Debug)]
pub(crate) enum Blob {
    Owned(Vec<u8>),
    Stored {
        section: Section,
        /// Set on first use.
        loaded: OnceLock<Vec<u8>>,
    },
}

impl Blob {
    /// Read from its file if that has not been done before.
    pub(crate) fn bytes(&self) -> Result<&[u8], Fault> {
        match self {
            Self::Owned(bytes) => Ok(bytes),
            Self::Stored { section, loaded } => {
                if let Some(bytes) = loaded.get() {
                    return Ok(bytes);
                }
                let bytes = section.bytes()?;
                Ok(loaded.get_or_init(|| bytes))
            }
        }
    }

    /// Whether what is in the file now is what was written.
    pub(crate) fn verify(&self) -> Result<(), Fault> {
        match self {
            Self::Owned(_) => Ok(()),
            Self::Stored { section, .. } => section.bytes().map(|_| ()),
        }
    }

    #[cold]
    pub(crate) fn error(&self, fault: Fault, part: FilePart) -> Error {
        let Self::Stored { section, .. } = self else {
            unreachable!("what is in memory has no faults")
        };
        section.error(fault, part)
    }

    /// Where it is in its file, if it is yet to be read.
    pub(crate) fn stored_range(&self) -> Option<std::ops::Range<u64>> {
        match self {
            Self::Stored { section, loaded } if loaded.get().is_none() => Some(section.range()),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Owned(bytes) => bytes.len() as u64,
            Self::Stored { section, .. } => section.len(),
        }
    }
}
