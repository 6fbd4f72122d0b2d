//! The tables an index was built from.

use std::sync::OnceLock;

use crate::error::FilePart;
use crate::section::{Fault, Section};

/// What is known about a table once all its rows have been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMeta {
    /// Length of the file.
    pub bytes: u64,
    /// A fingerprint of its footer, or of whatever changes when the table does.
    pub fingerprint: u64,
    /// Anything the table's reader wants to get back: page offsets, block offsets.
    pub blob: Vec<u8>,
}

/// A table in an index.
#[derive(Debug)]
pub struct Source {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) fingerprint: u64,
    pub(crate) rows: u64,
    pub(crate) blob: Blob,
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

    /// The name of its blob, for errors.
    pub(crate) fn blob_part(&self) -> FilePart {
        FilePart::Blob { source: self.name.clone() }
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

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Owned(bytes) => bytes.len() as u64,
            Self::Stored { section, .. } => section.len(),
        }
    }
}
