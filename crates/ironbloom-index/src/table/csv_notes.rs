//! What an index keeps about a CSV file.
//!
//! ```text
//!  IBNC   files read with the default options
//!    delimiter, columns (name and type), rows, the start of the first stride, then the bytes and checksum of each
//!  IBND   others
//!    options (`csv_options`), compression (0 none, 1 gzip, 2 zstd), then as IBNC, then bad rows: how many, and for each
//!    the bytes since the last one and its bytes
//! ```

use std::ops::Range;

use arrow::datatypes::{Field, Schema};

use super::compressed::Packing;
use super::csv_options::{CsvOptions, type_by_number, type_number};
use super::csv_rows::{STRIDE, Stride};
use super::notes::{NotesReader, NotesWriter};

const PLAIN: [u8; 4] = *b"IBNC";
const WITH_OPTIONS: [u8; 4] = *b"IBND";

/// How a CSV file was read, and where its rows are.
pub(super) struct CsvNotes {
    pub(super) options: CsvOptions,
    pub(super) packing: Option<Packing>,
    pub(super) delimiter: u8,
    pub(super) schema: Schema,
    pub(super) rows: u64,
    pub(super) strides: Vec<Stride>,
    pub(super) bad: Vec<Range<u64>>,
}

/// How the CSV file that these notes are about was read, and how many bad rows were skipped; `None` if they are
/// about another kind of file, or damaged.
pub fn csv_options_in(notes: &[u8]) -> Option<(CsvOptions, u64)> {
    let notes = CsvNotes::read(notes).ok()?;
    Some((notes.options, notes.bad.len() as u64))
}

impl CsvNotes {
    pub(super) fn write(&self) -> Vec<u8> {
        let is_plain = self.options == CsvOptions::default() && self.packing.is_none();
        let mut writer = NotesWriter::new(if is_plain { PLAIN } else { WITH_OPTIONS });
        if !is_plain {
            self.options.write(&mut writer);
            writer.number(match self.packing {
                None => 0,
                Some(Packing::Gzip) => 1,
                Some(Packing::Zstd) => 2,
            });
        }
        writer.number(self.delimiter.into());
        writer.number(self.schema.fields().len() as u64);
        for field in self.schema.fields() {
            writer.text(field.name());
            writer.number(type_number(field.data_type()));
        }
        writer.number(self.rows);
        writer.number(self.strides.first().map_or(0, |stride| stride.bytes.start));
        for stride in &self.strides {
            writer.number(stride.bytes.end - stride.bytes.start);
            writer.checksum(stride.check);
        }
        if !is_plain {
            self.write_bad_rows(&mut writer);
        }
        writer.finish()
    }

    fn write_bad_rows(&self, writer: &mut NotesWriter) {
        writer.number(self.bad.len() as u64);
        let mut free = 0;
        for row in &self.bad {
            writer.number(row.start - free);
            writer.number(row.end - row.start);
            free = row.end;
        }
    }

    pub(super) fn read(notes: &[u8]) -> Result<Self, &'static str> {
        let is_plain = !notes.starts_with(&WITH_OPTIONS);
        let mut reader = NotesReader::new(notes, if is_plain { PLAIN } else { WITH_OPTIONS })?;
        let (mut options, mut packing) = (CsvOptions::default(), None);
        if !is_plain {
            options = CsvOptions::read(&mut reader)?;
            packing = match reader.number()? {
                0 => None,
                1 => Some(Packing::Gzip),
                2 => Some(Packing::Zstd),
                _ => return Err("an unknown compression"),
            };
        }
        let delimiter = u8::try_from(reader.number()?).map_err(|_| "another delimiter")?;
        let mut fields = Vec::new();
        for _ in 0..reader.count(2)? {
            let name = reader.text()?;
            let data_type = type_by_number(reader.number()?).ok_or("an unknown type")?;
            fields.push(Field::new(name, data_type, true));
        }
        let rows = reader.number()?;
        let mut free = reader.number()?;
        let mut strides = Vec::new();
        for _ in 0..rows.div_ceil(STRIDE) {
            let end = free.checked_add(reader.number()?).ok_or(OUTSIDE)?;
            strides.push(Stride { bytes: free..end, check: reader.checksum()? });
            free = end;
        }
        let bad = if is_plain { Vec::new() } else { read_bad_rows(&mut reader)? };
        reader.finish()?;
        let schema = Schema::new(fields);
        Ok(Self { options, packing, delimiter, schema, rows, strides, bad })
    }
}

pub(super) const OUTSIDE: &str = "a stride lies outside the file";

fn read_bad_rows(reader: &mut NotesReader<'_>) -> Result<Vec<Range<u64>>, &'static str> {
    let mut free = 0u64;
    let rows = (0..reader.count(2)?).map(|_| {
        let start = free.checked_add(reader.number()?).ok_or(OUTSIDE)?;
        free = start.checked_add(reader.number()?).ok_or(OUTSIDE)?;
        Ok(start..free)
    });
    rows.collect()
}
