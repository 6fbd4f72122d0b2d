//! The tables an index was made from.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::words::Mapping;

/// What is known of a table when all its rows were seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMeta {
    /// Length of the file.
    pub bytes: u64,
    /// A fingerprint of its footer, or of whatever changes when the table does.
    pub fingerprint: u64,
    /// Anything the table's reader wants back: page offsets, block offsets.
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

    /// Rows that are indexed.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// The bytes that the table's reader keeps here.
#[derive(Debug)]
pub(crate) enum Blob {
    Owned(Vec<u8>),
    Stored { map: Mapping, bytes: Range<usize>, checksum: u64 },
}

impl Blob {
    /// `None` if they are damaged.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Owned(bytes) => Some(bytes),
            Self::Stored { map, bytes, checksum } => {
                let bytes = map.bytes().get(bytes.clone())?;
                (xxh3_64(bytes) == *checksum).then_some(bytes)
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Owned(bytes) => bytes.len() as u64,
            Self::Stored { bytes, .. } => bytes.len() as u64,
        }
    }
}
