//! CSV files: rows are located by strides.
//!
//! ```text
//!  header │ rows 0..512 │ rows 512..1024 │ …          a stride is 512 rows; its bytes and checksum are noted
//! ```
//!
//! Rows of text have any length, and a line end may be inside quotes, so the only way to row 5000 is through all rows
//! before it, once. Building does that and records where each stride starts. Types are inferred from all rows and
//! recorded too: a column is what every one of its values is (integer, float, boolean, date, timestamp), and text
//! otherwise. Empty fields are null, in columns of text as well.
//!
//! Quoting, line ends and inference are those of the `arrow-csv` crate, which reads the values.

use std::io::{self, BufReader};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use xxhash_rust::xxh3::Xxh3;

use super::csv_rows::{Records, STRIDE, Stride, bad_line, find_rows, line_at};
use super::notes::{self, Reader, Writer};
use super::{Reads, Scan, TableError};
use crate::file_bytes::{CUT_OFF, FileBytes, PIECE_BYTES};

/// An open CSV file.
pub(super) struct CsvTable {
    file: FileBytes,
    delimiter: u8,
    schema: SchemaRef,
    rows: u64,
    strides: Vec<Stride>,
}

impl CsvTable {
    pub(super) fn open(
        file: FileBytes,
        delimiter: u8,
        notes: Option<&[u8]>,
    ) -> Result<Self, TableError> {
        match notes {
            Some(notes) => {
                let path = file.path().to_owned();
                Self::from_notes(notes, file, delimiter)
                    .map_err(|what| TableError::notes(&path, what))
            }
            None => Self::from_content(file, delimiter),
        }
    }

    fn from_content(file: FileBytes, delimiter: u8) -> Result<Self, TableError> {
        let path = file.path();
        let rows = find_rows(path, &file, delimiter)?;
        let format = Format::default().with_header(true).with_delimiter(delimiter);
        let input = BufReader::with_capacity(PIECE_BYTES, file.reader(0));
        let (schema, _) = format.infer_schema(input, None).map_err(|error| {
            let text = error.to_string();
            match text.find(CUT_OFF) {
                Some(at) => TableError::changed(path, &text[at..]),
                None => bad_line(path, &file, 0, text),
            }
        })?;
        let (schema, strides) = (Arc::new(schema), rows.strides);
        let mut table = Self { file, delimiter, schema, rows: rows.count, strides };
        table.distrust_times()?;
        Ok(table)
    }

    /// Dates and times are inferred from their shape, and 2024-99-99 has it: such a column is text.
    fn distrust_times(&mut self) -> Result<(), TableError> {
        let mut fields = self.schema.fields().to_vec();
        let of_time =
            |field: &Field| matches!(field.data_type(), DataType::Date32 | DataType::Timestamp(..));
        let mut trusted: Vec<usize> =
            (0..fields.len()).filter(|&column| of_time(&fields[column])).collect();
        for stride in 0..self.strides.len() {
            if trusted.is_empty() {
                break;
            }
            let (strides, bytes) = (stride..stride + 1, self.read_strides(stride..stride + 1)?);
            trusted.retain(|&column| {
                let parses = self.decode(&strides, &bytes, &[column]).is_ok();
                if !parses {
                    let text = fields[column].as_ref().clone().with_data_type(DataType::Utf8);
                    fields[column] = Arc::new(text);
                }
                parses
            });
        }
        self.schema = Arc::new(Schema::new(fields));
        Ok(())
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn scan<'a>(
        &'a self,
        first_row: u64,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'a>, TableError> {
        let columns = columns.to_vec();
        let batch_rows = batch_rows as u64;
        let batches = self.rows.saturating_sub(first_row).div_ceil(batch_rows);
        let starts = (0..batches).map(move |batch| first_row + batch * batch_rows);
        Ok(Scan::new(starts.map(move |start| {
            let rows = start..self.rows.min(start.saturating_add(batch_rows));
            let mut batches = self.read_run(&[rows], &columns)?;
            Ok(batches.swap_remove(0))
        })))
    }

    pub(super) fn read_rows(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
        reads: &mut Reads,
    ) -> Result<Vec<RecordBatch>, TableError> {
        let mut batches = Vec::new();
        // Ranges in the same stride go together, so that no stride is parsed twice.
        let wanted = ranges.iter().filter(|range| !range.is_empty()).cloned().collect::<Vec<_>>();
        for run in wanted.chunk_by(|a, b| strides_of(a).end > strides_of(b).start) {
            let strides = strides_of(&(run[0].start..run[run.len() - 1].end));
            let bytes = self.bytes_of(&strides);
            reads.pages += strides.len() as u64;
            reads.bytes += bytes.end - bytes.start;
            batches.extend(self.read_run(run, columns)?);
        }
        Ok(batches)
    }

    /// Rows from adjacent strides: parsed once, then cut.
    fn read_run(
        &self,
        run: &[Range<u64>],
        columns: &[usize],
    ) -> Result<Vec<RecordBatch>, TableError> {
        let strides = strides_of(&(run[0].start..run[run.len() - 1].end));
        let first_row = strides.start as u64 * STRIDE;
        let bytes = self.read_strides(strides.clone())?;
        let batch = self.decode(&strides, &bytes, columns).map_err(|error| {
            let first_byte = self.bytes_of(&strides).start;
            let what = format!("or soon after: {error}");
            bad_line(self.file.path(), &self.file, first_byte, what)
        })?;
        let cut = |range: &Range<u64>| {
            batch.slice((range.start - first_row) as usize, (range.end - range.start) as usize)
        };
        Ok(run.iter().map(cut).collect())
    }

    fn bytes_of(&self, strides: &Range<usize>) -> Range<u64> {
        match self.strides.get(strides.clone()) {
            Some([first, .., last]) => first.bytes.start..last.bytes.end,
            Some([only]) => only.bytes.clone(),
            _ => self.file.len()..self.file.len(),
        }
    }

    /// The bytes of some strides, which are what they were when the rows were counted.
    fn read_strides(&self, strides: Range<usize>) -> Result<Vec<u8>, TableError> {
        let path = self.file.path();
        let range = self.bytes_of(&strides);
        let bytes = self.file.read(range.clone()).map_err(|error| TableError::io(path, error))?;
        for stride in &self.strides[strides] {
            let start = (stride.bytes.start - range.start) as usize;
            let end = (stride.bytes.end - range.start) as usize;
            if notes::checksum(&bytes[start..end]) != stride.check {
                let what = match line_at(&self.file, stride.bytes.start) {
                    Ok(line) => format!("differs from line {line} on"),
                    Err(_) => format!("differs from byte {} on", stride.bytes.start),
                };
                return Err(TableError::changed(path, what));
            }
        }
        Ok(bytes)
    }

    fn decode(
        &self,
        strides: &Range<usize>,
        bytes: &[u8],
        columns: &[usize],
    ) -> Result<RecordBatch, ArrowError> {
        let first = strides.start as u64 * STRIDE;
        let rows = (self.rows.min(strides.end as u64 * STRIDE) - first) as usize;
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.schema))
            .with_delimiter(self.delimiter)
            .with_projection(columns.to_vec())
            .with_batch_size(rows)
            .build_decoder();
        // The parser strips a byte order mark from the front of its input; in the middle of a file it is a character
        // like any other. An empty line is ignored, and moves it away from the front.
        feed(&mut decoder, b"\n")?;
        feed(&mut decoder, bytes)?;
        decoder.decode(&[])?; // ends a last line without a line end
        let batch = decoder.flush()?.filter(|batch| batch.num_rows() == rows);
        batch.ok_or_else(|| ArrowError::CsvError(format!("there are no {rows} rows")))
    }

    /// Delimiter, columns (name and type), rows, the start of the first stride, then the bytes and checksum of each.
    pub(super) fn notes(&self) -> Vec<u8> {
        let mut writer = Writer::new(TAG);
        writer.number(self.delimiter.into());
        writer.number(self.schema.fields().len() as u64);
        for field in self.schema.fields() {
            writer.text(field.name());
            writer.number(type_number(field.data_type()));
        }
        writer.number(self.rows);
        writer.number(self.bytes_of(&(0..1)).start);
        for stride in &self.strides {
            writer.number(stride.bytes.end - stride.bytes.start);
            writer.checksum(stride.check);
        }
        writer.finish()
    }

    fn from_notes(notes: &[u8], file: FileBytes, delimiter: u8) -> Result<Self, &'static str> {
        let mut reader = Reader::new(notes, TAG)?;
        if reader.number()? != u64::from(delimiter) {
            return Err("another delimiter");
        }
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
            let end = free.checked_add(reader.number()?).filter(|&end| end <= file.len());
            let end = end.ok_or("a stride lies outside the file")?;
            strides.push(Stride { bytes: free..end, check: reader.checksum()? });
            free = end;
        }
        reader.finish()?;
        Ok(Self { file, delimiter, schema: Arc::new(Schema::new(fields)), rows, strides })
    }
}

impl CsvTable {
    /// Reads all rows, and compares them with what they were.
    pub(super) fn verify(&self) -> Result<(), TableError> {
        for stride in 0..self.strides.len() {
            self.read_strides(stride..stride + 1)?;
        }
        Ok(())
    }

    /// The rows of the file these notes describe, if this file is the same with rows appended; otherwise how it
    /// differs.
    pub(super) fn rows_before(&self, notes: &[u8]) -> Result<u64, TableError> {
        let path = self.file.path();
        let old = Self::from_notes(notes, self.file.clone(), self.delimiter)
            .map_err(|what| TableError::notes(path, what))?;
        if old.schema != self.schema {
            return Err(TableError::changed(path, "its columns or their types differ"));
        }
        for stride in 0..old.strides.len() {
            old.read_strides(stride..stride + 1)?;
        }
        if !old.ends_with_a_row().map_err(|error| TableError::io(path, error))? {
            return Err(TableError::changed(path, "its last row goes on"));
        }
        Ok(old.rows)
    }

    /// Whether the last stride ends where its last row does, even with what now follows: a line or quote left open
    /// would continue there.
    fn ends_with_a_row(&self) -> io::Result<bool> {
        let Some(last) = self.strides.last() else { return Ok(true) };
        let mut records = Records::new(&self.file, last.bytes.start, self.delimiter);
        for _ in (self.strides.len() as u64 - 1) * STRIDE..self.rows {
            if records.next(|_| ())?.is_none() {
                return Ok(false);
            }
        }
        if records.at() > last.bytes.end {
            return Ok(false);
        }
        let left_over = self.file.read(records.at()..last.bytes.end)?;
        Ok(left_over.iter().all(|&byte| byte == b'\n' || byte == b'\r'))
    }
}

fn strides_of(rows: &Range<u64>) -> Range<usize> {
    (rows.start / STRIDE) as usize..rows.end.div_ceil(STRIDE) as usize
}

fn feed(decoder: &mut Decoder, mut bytes: &[u8]) -> Result<(), ArrowError> {
    while !bytes.is_empty() {
        let used = decoder.decode(bytes)?;
        if used == 0 {
            break;
        }
        bytes = &bytes[used..];
    }
    Ok(())
}

/// A number that changes with the content: of the beginning, the end, and samples between. A full hash would mean
/// reading everything on each open; the checksum of a stride is verified when it is read.
pub(super) fn fingerprint(file: &FileBytes) -> io::Result<u64> {
    const ENDS: u64 = 64 << 10;
    const SAMPLES: u64 = 64;
    const SAMPLE_BYTES: u64 = 256;
    let length = file.len();
    let mut hasher = Xxh3::new();
    hasher.update(&file.read(0..length.min(ENDS))?);
    hasher.update(&file.read(length.saturating_sub(ENDS)..length)?);
    if length > 2 * ENDS {
        for sample in 0..SAMPLES {
            let start = length / SAMPLES * sample;
            hasher.update(&file.read(start..start + SAMPLE_BYTES)?);
        }
    }
    Ok(hasher.digest())
}

const TAG: [u8; 4] = *b"IBNC";

/// The types that are inferred, by their numbers in the notes.
const TYPES: [DataType; 10] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int64,
    DataType::Float64,
    DataType::Utf8,
    DataType::Date32,
    DataType::Timestamp(TimeUnit::Second, None),
    DataType::Timestamp(TimeUnit::Millisecond, None),
    DataType::Timestamp(TimeUnit::Microsecond, None),
    DataType::Timestamp(TimeUnit::Nanosecond, None),
];

fn type_number(data_type: &DataType) -> u64 {
    let number = TYPES.iter().position(|known| known == data_type);
    number.expect("only these types are inferred") as u64
}

fn type_by_number(number: u64) -> Option<DataType> {
    TYPES.get(usize::try_from(number).ok()?).cloned()
}
