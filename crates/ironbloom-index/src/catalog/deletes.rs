//! Which rows of a data file have been deleted: deletion vectors, and files of positions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::AsArray as _;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use roaring::RoaringTreemap;

use super::CatalogError;
use crate::file_bytes::FileBytes;
use crate::location::Location;
use crate::table::{Matching, Table, TableError, View};

/// What begins a deletion vector, as Delta and Iceberg write them.
const MAGIC: [u8; 4] = 1_681_511_377u32.to_le_bytes();

/// Rows read at a time from a file of positions.
const BATCH_ROWS: usize = 1 << 16;

/// Where the deleted rows of a data file are listed. Nothing is read before it is asked for.
#[derive(Debug)]
pub(super) enum Deletes {
    None,
    /// A bitmap of its own: magic and rows.
    Inline(Vec<u8>),
    /// A bitmap in a file: its length, magic and rows, and a checksum.
    Vector {
        file: Location,
        start: u64,
        len: Option<u64>,
    },
    /// Files that list data files and positions; this data file is called so there.
    Positions {
        files: Vec<Arc<PositionFile>>,
        name: String,
    },
}

impl Deletes {
    pub(super) fn rows(&self) -> Result<RoaringTreemap, CatalogError> {
        match self {
            Self::None => Ok(RoaringTreemap::new()),
            Self::Inline(bytes) => bitmap(bytes)
                .ok_or_else(|| invalid(&Location::from("the log"), "a deletion vector is invalid")),
            Self::Vector { file, start, len } => vector(file, *start, *len),
            Self::Positions { files, name } => {
                let mut rows = RoaringTreemap::new();
                for file in files {
                    rows |= file.rows_of(name)?;
                }
                Ok(rows)
            }
        }
    }
}

fn invalid(file: &Location, what: &str) -> CatalogError {
    CatalogError::invalid(file, what)
}

/// `all` is how long it is, if that is known.
#[expect(clippy::big_endian_bytes, reason = "lengths and checksums of deletion vectors are")]
fn vector(path: &Location, start: u64, all: Option<u64>) -> Result<RoaringTreemap, CatalogError> {
    let wrong = || invalid(path, "a deletion vector is damaged");
    let failed = |error| CatalogError::Table(TableError::io(path, error));
    let file = FileBytes::open(path).map_err(failed)?;
    let end = |start: u64, len: u64| start.checked_add(len).filter(|&end| end <= file.len());
    let body = end(start, 4).ok_or_else(wrong)?;
    let len = file.read(start..body).map_err(failed)?;
    let len = u32::from_be_bytes(len.try_into().expect("four bytes"));
    let sum = end(body, len.into()).ok_or_else(wrong)?;
    let last = end(sum, 4).ok_or_else(wrong)?;
    if all.is_some_and(|all| all != last - start) {
        return Err(wrong());
    }
    let bytes = file.read(body..sum).map_err(failed)?;
    let expected = file.read(sum..last).map_err(failed)?;
    if crc32fast::hash(&bytes).to_be_bytes() != expected[..] {
        return Err(wrong());
    }
    bitmap(&bytes).ok_or_else(wrong)
}

fn bitmap(bytes: &[u8]) -> Option<RoaringTreemap> {
    let rows = bytes.strip_prefix(&MAGIC)?;
    RoaringTreemap::deserialize_from(rows).ok()
}

/// How an index keeps deleted rows: no bytes if there are none.
pub(crate) fn write_rows(rows: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !rows.is_empty() {
        rows.serialize_into(&mut bytes).expect("writing to memory does not fail");
    }
    bytes
}

/// A file of positions, read when it is first needed: it may concern many data files.
#[derive(Debug)]
pub(super) struct PositionFile {
    path: Location,
    by_file: Mutex<Option<HashMap<String, RoaringTreemap>>>,
}

impl PositionFile {
    pub(super) fn new(path: Location) -> Self {
        Self { path, by_file: Mutex::default() }
    }

    fn rows_of(&self, name: &str) -> Result<RoaringTreemap, CatalogError> {
        let mut known = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = Some(self.read()?);
        }
        let by_file = known.as_ref().expect("set above");
        Ok(by_file.get(name).cloned().unwrap_or_default())
    }

    fn read(&self) -> Result<HashMap<String, RoaringTreemap>, CatalogError> {
        let schema = Schema::new(vec![
            Field::new("file_path", DataType::Utf8, true),
            Field::new("pos", DataType::Int64, true),
        ]);
        let view = View { columns: Some((schema.into(), Matching::Name)), ..View::default() };
        let table = Table::open(&self.path)?.with_view(&view)?;
        let mut by_file: HashMap<String, RoaringTreemap> = HashMap::new();
        for batch in table.scan(&[0, 1], BATCH_ROWS)? {
            let batch = batch?;
            let names = batch.column(0).as_string::<i32>().iter();
            let rows = batch.column(1).as_primitive::<Int64Type>().iter();
            for (name, row) in names.zip(rows) {
                let row = row.and_then(|row| u64::try_from(row).ok());
                let (Some(name), Some(row)) = (name, row) else {
                    return Err(invalid(&self.path, "it lists rows without a file or a position"));
                };
                match by_file.get_mut(name) {
                    Some(rows) => rows.insert(row),
                    None => by_file.entry(name.to_owned()).or_default().insert(row),
                };
            }
        }
        Ok(by_file)
    }
}
