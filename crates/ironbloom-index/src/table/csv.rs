//! CSV files: lines are found again by strides.
//!
//! ```text
//!  header │ rows 0..512 │ rows 512..1024 │ …          a stride is 512 rows; its bytes and checksum are noted
//! ```
//!
//! Rows of text are of any length, and a line end may stand inside quotes, so the only way to row 5000 is through all rows
//! before it, once. Building goes that way and notes where each stride begins. Types are inferred from all rows and noted too: a
//! column is what every one of its values is (integer, float, boolean, date, timestamp), and text otherwise. Empty fields are
//! null, in columns of text as well.
//!
//! Quoting, line ends and inference are those of the `arrow-csv` crate, which reads the values.

use std::io::Cursor;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use bytes::Bytes;
use csv_core::ReadRecordResult;
use xxhash_rust::xxh3::Xxh3;

use super::notes::{self, Reader, Writer};
use super::{Reads, Scan, TableError};

/// Rows of a stride: the default of the index for a block, so that one block is one stride.
const STRIDE: u64 = 512;

/// An open CSV file.
pub(super) struct CsvTable {
    bytes: Bytes,
    delimiter: u8,
    schema: SchemaRef,
    rows: u64,
    strides: Vec<Stride>,
}

/// Some consecutive lines of the file.
struct Stride {
    bytes: Range<usize>,
    /// Known from the notes; nothing to compare with while the index is built.
    check: Option<u32>,
}

/// Where rows begin.
struct Lines {
    /// The first byte of each stride, and the end of the file.
    starts: Vec<usize>,
    rows: u64,
}

impl CsvTable {
    pub(super) fn open(
        path: &Path,
        bytes: Bytes,
        delimiter: u8,
        notes: Option<&[u8]>,
    ) -> Result<Self, TableError> {
        match notes {
            Some(notes) => Self::from_notes(notes, bytes, delimiter)
                .map_err(|what| TableError::notes(path, what)),
            None => Self::from_content(path, bytes, delimiter),
        }
    }

    fn from_content(path: &Path, bytes: Bytes, delimiter: u8) -> Result<Self, TableError> {
        if let Err(error) = std::str::from_utf8(&bytes) {
            return Err(bad_line(path, &bytes, error.valid_up_to(), "is not UTF-8".into()));
        }
        let lines = find_lines(path, &bytes, delimiter)?;
        let format = Format::default().with_header(true).with_delimiter(delimiter);
        let (schema, _) = format
            .infer_schema(Cursor::new(&bytes), None)
            .map_err(|error| bad_line(path, &bytes, 0, error.to_string()))?;
        let strides = lines.starts.windows(2);
        let strides = strides.map(|two| Stride { bytes: two[0]..two[1], check: None }).collect();
        let schema = Arc::new(schema);
        let mut table = Self { bytes, delimiter, schema, rows: lines.rows, strides };
        table.distrust_times();
        Ok(table)
    }

    /// Dates and times are inferred from their shape, and 2024-99-99 has it: such a column is text.
    fn distrust_times(&mut self) {
        let mut fields = self.schema.fields().to_vec();
        for (column, field) in self.schema.fields().iter().enumerate() {
            let of_time = matches!(field.data_type(), DataType::Date32 | DataType::Timestamp(..));
            if of_time && !self.parses(column) {
                fields[column] = Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8));
            }
        }
        self.schema = Arc::new(Schema::new(fields));
    }

    fn parses(&self, column: usize) -> bool {
        (0..self.strides.len()).all(|stride| self.decode(stride..stride + 1, &[column]).is_ok())
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn scan<'a>(
        &'a self,
        path: &'a Path,
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
            let mut batches = self.read_run(path, &[rows], &columns)?;
            Ok(batches.swap_remove(0))
        })))
    }

    pub(super) fn read_rows(
        &self,
        path: &Path,
        ranges: &[Range<u64>],
        columns: &[usize],
        reads: &mut Reads,
    ) -> Result<Vec<RecordBatch>, TableError> {
        let mut batches = Vec::new();
        // Ranges in the same stride go together, so that no stride is parsed twice.
        let wanted = ranges.iter().filter(|range| !range.is_empty()).cloned().collect::<Vec<_>>();
        for run in wanted.chunk_by(|a, b| strides_of(a).end > strides_of(b).start) {
            let strides = strides_of(&(run[0].start..run[run.len() - 1].end));
            self.verify(path, strides.clone())?;
            reads.pages += strides.len() as u64;
            reads.bytes += self.bytes_of(&strides).len() as u64;
            batches.extend(self.read_run(path, run, columns)?);
        }
        Ok(batches)
    }

    /// Rows out of strides that touch each other: parsed once, then cut.
    fn read_run(
        &self,
        path: &Path,
        run: &[Range<u64>],
        columns: &[usize],
    ) -> Result<Vec<RecordBatch>, TableError> {
        let strides = strides_of(&(run[0].start..run[run.len() - 1].end));
        let first_byte = self.bytes_of(&strides).start;
        let first_row = strides.start as u64 * STRIDE;
        let batch = self.decode(strides, columns).map_err(|error| {
            bad_line(path, &self.bytes, first_byte, format!("or soon after: {error}"))
        })?;
        let cut = |range: &Range<u64>| {
            batch.slice((range.start - first_row) as usize, (range.end - range.start) as usize)
        };
        Ok(run.iter().map(cut).collect())
    }

    fn bytes_of(&self, strides: &Range<usize>) -> Range<usize> {
        match self.strides.get(strides.clone()) {
            Some([first, .., last]) => first.bytes.start..last.bytes.end,
            Some([only]) => only.bytes.clone(),
            _ => self.bytes.len()..self.bytes.len(),
        }
    }

    fn decode(&self, strides: Range<usize>, columns: &[usize]) -> Result<RecordBatch, ArrowError> {
        let first = strides.start as u64 * STRIDE;
        let rows = (self.rows.min(strides.end as u64 * STRIDE) - first) as usize;
        let mut decoder = ReaderBuilder::new(Arc::clone(&self.schema))
            .with_delimiter(self.delimiter)
            .with_projection(columns.to_vec())
            .with_batch_size(rows)
            .build_decoder();
        // The parser takes a byte order mark off the front of its input; in the middle of a file it is a character like any
        // other. An empty line is nothing, and moves it from the front.
        feed(&mut decoder, b"\n")?;
        feed(&mut decoder, &self.bytes[self.bytes_of(&strides)])?;
        decoder.decode(&[])?; // ends a last line without a line end
        let batch = decoder.flush()?.filter(|batch| batch.num_rows() == rows);
        batch.ok_or_else(|| ArrowError::CsvError(format!("there are no {rows} rows")))
    }

    fn verify(&self, path: &Path, strides: Range<usize>) -> Result<(), TableError> {
        for stride in &self.strides[strides] {
            let found = || notes::checksum(&self.bytes[stride.bytes.clone()]);
            if stride.check.is_some_and(|check| check != found()) {
                let line = line_at(&self.bytes, stride.bytes.start);
                return Err(TableError::changed(path, format!("differs from line {line} on")));
            }
        }
        Ok(())
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
        writer.number(self.bytes_of(&(0..1)).start as u64);
        for stride in &self.strides {
            writer.number(stride.bytes.len() as u64);
            writer.checksum(notes::checksum(&self.bytes[stride.bytes.clone()]));
        }
        writer.finish()
    }

    fn from_notes(notes: &[u8], bytes: Bytes, delimiter: u8) -> Result<Self, &'static str> {
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
        let mut free = usize::try_from(reader.number()?).map_err(|_| "a stride is too far")?;
        let mut strides = Vec::new();
        for _ in 0..rows.div_ceil(STRIDE) {
            let length = usize::try_from(reader.number()?).ok();
            let end = length.and_then(|length| free.checked_add(length));
            let end = end.filter(|&end| end <= bytes.len());
            let end = end.ok_or("a stride lies outside the file")?;
            strides.push(Stride { bytes: free..end, check: Some(reader.checksum()?) });
            free = end;
        }
        reader.finish()?;
        Ok(Self { bytes, delimiter, schema: Arc::new(Schema::new(fields)), rows, strides })
    }
}

impl CsvTable {
    /// The rows of the file that these notes are of, if this one is that with rows added at its end; else how it differs.
    pub(super) fn rows_before(&self, path: &Path, notes: &[u8]) -> Result<u64, TableError> {
        let old = Self::from_notes(notes, self.bytes.clone(), self.delimiter)
            .map_err(|what| TableError::notes(path, what))?;
        if old.schema != self.schema {
            return Err(TableError::changed(path, "its columns or their types differ"));
        }
        old.verify(path, 0..old.strides.len())?;
        if !old.ends_with_a_row() {
            return Err(TableError::changed(path, "its last row goes on"));
        }
        Ok(old.rows)
    }

    /// Whether the last stride ends where its last row does, also with what the file has behind it: a line or a quote that was
    /// left open goes on there.
    fn ends_with_a_row(&self) -> bool {
        let Some(last) = self.strides.last() else { return true };
        let mut parser = parser(self.delimiter);
        let mut at = last.bytes.start;
        for _ in (self.strides.len() as u64 - 1) * STRIDE..self.rows {
            match read_record(&mut parser, &self.bytes[at..]) {
                Some((_, used)) => at += used,
                None => return false,
            }
        }
        let left_over = self.bytes.get(at..last.bytes.end);
        left_over.is_some_and(|rest| rest.iter().all(|&byte| byte == b'\n' || byte == b'\r'))
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

/// A number that changes with the content: of the beginning, the end, and samples between. All of it would have to be read
/// for each opening; the checksum of a stride tells when it is read.
pub(super) fn fingerprint(bytes: &[u8]) -> u64 {
    const ENDS: usize = 64 << 10;
    const SAMPLES: usize = 64;
    const SAMPLE_BYTES: usize = 256;
    let mut hasher = Xxh3::new();
    hasher.update(&bytes[..bytes.len().min(ENDS)]);
    hasher.update(&bytes[bytes.len().saturating_sub(ENDS)..]);
    if bytes.len() > 2 * ENDS {
        for sample in 0..SAMPLES {
            let start = bytes.len() / SAMPLES * sample;
            hasher.update(&bytes[start..start + SAMPLE_BYTES]);
        }
    }
    hasher.digest()
}

/// Goes through all rows, and refuses those of another length than the header.
fn find_lines(path: &Path, bytes: &[u8], delimiter: u8) -> Result<Lines, TableError> {
    let mut parser = parser(delimiter);
    let Some((columns, mut at)) = read_record(&mut parser, bytes) else {
        return Err(TableError::NotATable {
            path: path.into(),
            why: "is empty: not even a header",
        });
    };
    let mut lines = Lines { starts: Vec::new(), rows: 0 };
    while let Some((fields, used)) = read_record(&mut parser, &bytes[at..]) {
        if fields != columns {
            let what = format!("has {fields} fields where the header has {columns}");
            return Err(bad_line(path, bytes, at, what));
        }
        if lines.rows.is_multiple_of(STRIDE) {
            lines.starts.push(at);
        }
        lines.rows += 1;
        at += used;
    }
    lines.starts.push(bytes.len());
    Ok(lines)
}

fn parser(delimiter: u8) -> csv_core::Reader {
    csv_core::ReaderBuilder::new().delimiter(delimiter).build()
}

/// Fields and bytes of the next record, or `None` at the end.
fn read_record(parser: &mut csv_core::Reader, bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut output, mut ends) = ([0; 4096], [0; 256]);
    let (mut fields, mut used) = (0, 0);
    loop {
        let (result, read, _, ended) = parser.read_record(&bytes[used..], &mut output, &mut ends);
        used += read;
        fields += ended;
        match result {
            ReadRecordResult::Record => return Some((fields, used)),
            ReadRecordResult::End => return None,
            // The last line may lack its end: the next call sees no input, and closes it.
            _ => {}
        }
    }
}

fn bad_line(path: &Path, bytes: &[u8], at: usize, what: String) -> TableError {
    TableError::Line { path: path.into(), line: line_at(bytes, at), what }
}

/// The number of the line of which a record that begins here is read: line ends left over from the one before are not it.
fn line_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes[at..].iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
    1 + bytes[..at + rest].iter().filter(|&&byte| byte == b'\n').count() as u64
}

const TAG: [u8; 4] = *b"IBNC";

/// The types that are inferred, by the numbers that stand for them in the notes.
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
