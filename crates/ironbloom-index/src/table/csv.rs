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

use crate::location::Location;
use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch, StringArray};
use arrow::csv::ReaderBuilder;
use arrow::csv::reader::{Decoder, Format};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use regex::Regex;
use xxhash_rust::xxh3::Xxh3;

use super::compressed::{Content, Packing};
use super::csv_notes::{self, CsvNotes};
use super::csv_options::{CsvOptions, Dialect};
use super::csv_rows::{BadRows, Records, STRIDE, Stride, bad_line, find_rows, first_byte, line_at};
use super::csv_times::{Offsets, is_leap_second, may_have_leap_seconds, with_zones, without_zones};
use super::notes;
use super::{Reads, Scan, TableError};
use crate::file_bytes::{CUT_OFF, FileBytes, PIECE_BYTES, REPLACED};

/// An open CSV file.
pub(super) struct CsvTable {
    content: Content,
    options: CsvOptions,
    dialect: Dialect,
    null_regex: Option<Regex>,
    schema: SchemaRef,
    rows: u64,
    strides: Vec<Stride>,
    /// Rows that are skipped, in order.
    bad: Vec<Range<u64>>,
}

/// What is known about a file before its rows are looked at.
#[derive(Clone)]
pub(super) struct CsvKind {
    pub(super) options: CsvOptions,
    pub(super) delimiter: u8,
    pub(super) packing: Option<Packing>,
}

impl CsvTable {
    /// Goes through the file. Types are inferred, except for columns that `known` has a type of.
    pub(super) fn from_content(
        file: FileBytes,
        kind: CsvKind,
        known: Option<&Schema>,
    ) -> Result<Self, TableError> {
        let mut table = Self::unread(file, kind);
        table.find_rows(&BTreeSet::new())?;
        table.find_types(known)?;
        let misfits = table.find_misfits()?;
        if !misfits.is_empty() {
            table.find_rows(&misfits)?;
        }
        Ok(table)
    }

    /// A file of which nothing is known yet.
    fn unread(file: FileBytes, kind: CsvKind) -> Self {
        let CsvKind { options, delimiter, packing } = kind;
        Self {
            content: Content::new(file, packing),
            dialect: options.dialect(delimiter),
            null_regex: options.null_regex(),
            options,
            schema: Arc::new(Schema::empty()),
            rows: 0,
            strides: Vec::new(),
            bad: Vec::new(),
        }
    }

    /// The names of the columns of a file.
    pub(super) fn names(file: FileBytes, kind: CsvKind) -> Result<Vec<String>, TableError> {
        let names = Self::unread(file, kind).infer(Some(0))?;
        Ok(names.fields().iter().map(|field| field.name().clone()).collect())
    }

    fn find_rows(&mut self, misfits: &BTreeSet<u64>) -> Result<(), TableError> {
        let bad_rows =
            if self.options.skip_bad_rows { BadRows::Skip(misfits) } else { BadRows::Refuse };
        let bytes = self.content.bytes()?;
        let found =
            find_rows(self.location(), bytes, self.dialect, self.options.header, &bad_rows)?;
        (self.rows, self.strides, self.bad) = (found.count, found.strides, found.bad);
        Ok(())
    }

    /// The columns of the file, with types as they are given, known, or inferred.
    fn find_types(&mut self, known: Option<&Schema>) -> Result<(), TableError> {
        let given = |name: &str| {
            let given = self.options.types.iter().find(|(column, _)| column == name);
            let known = || known.and_then(|known| known.field_with_name(name).ok());
            // A column of nulls may have values now.
            let known = || known().map(Field::data_type).filter(|known| **known != DataType::Null);
            given.map(|(_, data_type)| data_type).or_else(known).cloned()
        };
        let names = self.infer(Some(0))?;
        for (column, _) in &self.options.types {
            if names.field_with_name(column).is_err() {
                let similar =
                    crate::similar::similar(column, names.fields().iter().map(|f| f.name()));
                let (path, column) = (self.location().clone(), column.clone());
                return Err(TableError::UnknownColumn { path, column, similar });
            }
        }
        let all_given = names.fields().iter().all(|field| given(field.name()).is_some());
        let inferred = if self.options.all_text || all_given { names } else { self.infer(None)? };
        let mut doubtful = Vec::new();
        let mut fields = Vec::new();
        for (column, field) in inferred.fields().iter().enumerate() {
            let data_type = match given(field.name()) {
                Some(data_type) => data_type,
                None if self.options.all_text => DataType::Utf8,
                None => {
                    doubtful.push(column);
                    field.data_type().clone()
                }
            };
            fields.push(Field::new(field.name(), data_type, true));
        }
        self.schema = Arc::new(Schema::new(fields));
        self.distrust(doubtful)
    }

    fn infer(&self, rows: Option<usize>) -> Result<Schema, TableError> {
        let path = self.location();
        let bytes = self.content.bytes()?;
        let start = first_byte(bytes).map_err(|error| TableError::io(path, error))?;
        let input = WithoutRows { file: bytes, at: start, bad: &self.bad };
        let input = BufReader::with_capacity(PIECE_BYTES, input);
        let (schema, _) = self.format().infer_schema(input, rows).map_err(|error| {
            let text = error.to_string();
            match [CUT_OFF, REPLACED].iter().find_map(|what| text.find(what)) {
                Some(at) => TableError::changed(path, &text[at..]),
                None => bad_line(path, bytes, 0, text),
            }
        })?;
        Ok(schema)
    }

    fn format(&self) -> Format {
        let format = Format::default()
            .with_header(self.options.header)
            .with_delimiter(self.dialect.delimiter)
            .with_quote(self.dialect.quote_byte());
        match &self.null_regex {
            Some(regex) => format.with_null_regex(regex.clone()),
            None => format,
        }
    }

    /// Types are inferred from the shape of values. 2024-99-99 has that of a date, and 01234 that of a number, which would
    /// lose its zero: such columns are text.
    fn distrust(&mut self, columns: Vec<usize>) -> Result<(), TableError> {
        let mut fields = self.schema.fields().to_vec();
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        for column in columns {
            match fields[column].data_type() {
                DataType::Date32 | DataType::Timestamp(..) => times.push(column),
                DataType::Int64 | DataType::Float64 => numbers.push(column),
                _ => {}
            }
        }
        let mut retype = |column: usize, data_type: DataType| {
            let field = fields[column].as_ref().clone().with_data_type(data_type);
            fields[column] = Arc::new(field);
        };
        let mut offsets = vec![Offsets::default(); self.schema.fields().len()];
        for stride in 0..self.strides.len() {
            if times.is_empty() && numbers.is_empty() {
                break;
            }
            let (strides, bytes) = (stride..stride + 1, self.read_strides(stride..stride + 1)?);
            times.retain(|&column| {
                let parses = self.decode(&strides, &bytes, &[column]).is_ok();
                if !parses {
                    retype(column, DataType::Utf8);
                } else if *self.schema.field(column).data_type() != DataType::Date32 {
                    let texts = self.texts(&strides, &bytes, column);
                    let texts = texts.iter().flat_map(|texts| texts.iter().flatten());
                    texts.for_each(|text| offsets[column].add(text));
                }
                parses
            });
            if !numbers.is_empty() && may_have_padded_numbers(&bytes, self.dialect) {
                numbers.retain(|&column| {
                    let texts = self.texts(&strides, &bytes, column);
                    let padded =
                        texts.is_some_and(|texts| texts.iter().flatten().any(is_padded_number));
                    if padded {
                        retype(column, DataType::Utf8);
                    }
                    !padded
                });
            }
        }
        for column in times {
            retype(column, offsets[column].fitted(self.schema.field(column).data_type()));
        }
        self.schema = Arc::new(Schema::new(fields));
        Ok(())
    }

    /// The reader of `arrow` makes another moment of a second 60, which no timestamp is.
    fn refuse_leap_seconds(
        &self,
        schema: &SchemaRef,
        rows: usize,
        bytes: &[u8],
        columns: &[usize],
    ) -> Result<(), ArrowError> {
        if !may_have_leap_seconds(bytes) {
            return Ok(());
        }
        for &column in columns {
            if !matches!(schema.field(column).data_type(), DataType::Timestamp(..)) {
                continue;
            }
            let mut fields = schema.fields().to_vec();
            fields[column] = Arc::new(Field::new("text", DataType::Utf8, true));
            let schema = Arc::new(Schema::new(fields));
            let texts = self.decode_as(&schema, rows, bytes, &[column])?;
            let texts = texts.column(0).as_string::<i32>();
            if let Some(text) = texts.iter().flatten().find(|text| is_leap_second(text)) {
                let what = format!("{text} is a leap second, which no timestamp is");
                return Err(ArrowError::CsvError(what));
            }
        }
        Ok(())
    }

    /// A column of some strides as it is written.
    fn texts(&self, strides: &Range<usize>, bytes: &[u8], column: usize) -> Option<StringArray> {
        let mut fields = self.schema.fields().to_vec();
        fields[column] = Arc::new(Field::new("text", DataType::Utf8, true));
        let schema = Arc::new(Schema::new(fields));
        let batch = self.decode_as(&schema, self.rows_of(strides), bytes, &[column]).ok()?;
        batch.column(0).as_string_opt::<i32>().cloned()
    }

    /// Where the rows begin that have a value of another type than was given for its column. Without leave to skip them,
    /// the first one is an error.
    fn find_misfits(&self) -> Result<BTreeSet<u64>, TableError> {
        let mut misfits = BTreeSet::new();
        let fields = self.schema.fields();
        let is_given = |&column: &usize| {
            let mut given = self.options.types.iter().map(|(name, _)| name);
            given.any(|name| name == fields[column].name())
        };
        let columns: Vec<usize> = (0..fields.len()).filter(is_given).collect();
        if columns.is_empty() {
            return Ok(misfits);
        }
        for stride in 0..self.strides.len() {
            let bytes = self.read_strides(stride..stride + 1)?;
            if self.decode(&(stride..stride + 1), &bytes, &columns).is_err() {
                self.find_misfits_in(stride, &columns, &mut misfits)?;
            }
        }
        Ok(misfits)
    }

    /// Row by row.
    fn find_misfits_in(
        &self,
        stride: usize,
        columns: &[usize],
        misfits: &mut BTreeSet<u64>,
    ) -> Result<(), TableError> {
        let (path, bytes) = (self.location(), self.content.bytes()?);
        let failed = |error| TableError::io(path, error);
        let end = self.strides[stride].bytes.end;
        let mut records = Records::new(bytes, self.strides[stride].bytes.start, self.dialect);
        while records.at() < end {
            let start = records.at();
            if records.next(|_| ()).map_err(failed)?.is_none() {
                break;
            }
            if self.bad.binary_search_by_key(&start, |row| row.start).is_ok() {
                continue;
            }
            let row = bytes.read(start..records.at()).map_err(failed)?;
            if let Err(error) = self.decode_as(&self.schema, 1, &row, columns) {
                if !self.options.skip_bad_rows {
                    return Err(bad_line(path, bytes, start, error.to_string()));
                }
                misfits.insert(start);
            }
        }
        Ok(())
    }

    /// Opens a file again.
    pub(super) fn from_notes(
        notes: &[u8],
        file: FileBytes,
        delimiter: u8,
    ) -> Result<Self, &'static str> {
        let notes = CsvNotes::read(notes)?;
        if delimiter != notes.delimiter {
            return Err("another delimiter");
        }
        let end = notes.strides.last().map_or(0, |stride| stride.bytes.end);
        if notes.packing.is_none() && end > file.len() {
            return Err(csv_notes::OUTSIDE);
        }
        Ok(Self {
            content: Content::new(file, notes.packing),
            dialect: notes.options.dialect(notes.delimiter),
            null_regex: notes.options.null_regex(),
            options: notes.options,
            schema: Arc::new(notes.schema),
            rows: notes.rows,
            strides: notes.strides,
            bad: notes.bad,
        })
    }

    /// See `csv_notes`.
    pub(super) fn notes(&self) -> Vec<u8> {
        let notes = CsvNotes {
            options: self.options.clone(),
            packing: self.content.packing(),
            delimiter: self.dialect.delimiter,
            schema: self.schema.as_ref().clone(),
            rows: self.rows,
            strides: self.strides.clone(),
            bad: self.bad.clone(),
        };
        notes.write()
    }

    fn location(&self) -> &Location {
        self.content.file().location()
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn scan<'a>(
        &'a self,
        rows: Range<u64>,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'a>, TableError> {
        let columns = columns.to_vec();
        let batch_rows = batch_rows as u64;
        let batches = rows.end.saturating_sub(rows.start).div_ceil(batch_rows);
        let starts = (0..batches).map(move |batch| rows.start + batch * batch_rows);
        Ok(Scan::new(starts.map(move |start| {
            let rows = start..rows.end.min(start.saturating_add(batch_rows));
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

    /// Requests the strides that hold these rows, together, if the file is an object.
    pub(super) fn prefetch(&self, ranges: &[Range<u64>]) -> Result<(), TableError> {
        let file = self.content.file();
        if !file.is_object() || self.content.packing().is_some() {
            return Ok(());
        }
        let bytes: Vec<_> = ranges.iter().map(|range| self.bytes_of(&strides_of(range))).collect();
        file.prefetch(&bytes).map_err(|error| TableError::io(self.location(), error))
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
            match self.content.bytes() {
                Ok(content) => bad_line(self.location(), content, first_byte, what),
                Err(error) => error,
            }
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
            _ => 0..0,
        }
    }

    fn rows_of(&self, strides: &Range<usize>) -> usize {
        (self.rows.min(strides.end as u64 * STRIDE) - strides.start as u64 * STRIDE) as usize
    }

    /// The bytes of some strides, which are what they were when the rows were counted, without skipped rows.
    fn read_strides(&self, strides: Range<usize>) -> Result<Vec<u8>, TableError> {
        let (path, content) = (self.location(), self.content.bytes()?);
        let range = self.bytes_of(&strides);
        let bytes = content.read(range.clone()).map_err(|error| TableError::io(path, error))?;
        for stride in &self.strides[strides] {
            let start = (stride.bytes.start - range.start) as usize;
            let end = (stride.bytes.end - range.start) as usize;
            if notes::checksum(&bytes[start..end]) != stride.check {
                let what = match line_at(content, stride.bytes.start) {
                    Ok(line) => format!("differs from line {line} on"),
                    Err(_) => format!("differs from byte {} on", stride.bytes.start),
                };
                return Err(TableError::changed(path, what));
            }
        }
        Ok(if self.bad.is_empty() { bytes } else { self.without_bad_rows(range, &bytes) })
    }

    fn without_bad_rows(&self, range: Range<u64>, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut at = range.start;
        let first = self.bad.partition_point(|row| row.end <= range.start);
        let bad = self.bad[first..].iter().take_while(|row| row.start < range.end);
        for piece in bad.map(|row| (row.start, row.end)).chain([(range.end, range.end)]) {
            kept.extend_from_slice(
                &bytes[(at - range.start) as usize..(piece.0 - range.start) as usize],
            );
            at = piece.1;
        }
        kept
    }

    fn decode(
        &self,
        strides: &Range<usize>,
        bytes: &[u8],
        columns: &[usize],
    ) -> Result<RecordBatch, ArrowError> {
        self.decode_as(&self.schema, self.rows_of(strides), bytes, columns)
    }

    fn decode_as(
        &self,
        schema: &SchemaRef,
        rows: usize,
        bytes: &[u8],
        columns: &[usize],
    ) -> Result<RecordBatch, ArrowError> {
        self.refuse_leap_seconds(schema, rows, bytes, columns)?;
        let mut decoder = ReaderBuilder::new(without_zones(schema))
            .with_format(self.format())
            .with_header(false)
            .with_projection(columns.to_vec())
            .with_batch_size(rows)
            .build_decoder();
        // The parser strips a byte order mark from the front of its input; in the middle of a file it is a character
        // like any other. An empty line is ignored, and moves it away from the front.
        feed(&mut decoder, b"\n")?;
        feed(&mut decoder, bytes)?;
        decoder.decode(&[])?; // ends a last line without a line end
        let batch = decoder.flush()?.filter(|batch| batch.num_rows() == rows);
        let none = || ArrowError::CsvError(format!("there are no {rows} rows"));
        with_zones(batch.ok_or_else(none)?, schema)
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
        let path = self.location();
        let old = Self::from_notes(notes, self.content.file().clone(), self.dialect.delimiter)
            .map_err(|what| TableError::notes(path, what))?;
        let same_column = |(old, new): (&FieldRef, &FieldRef)| {
            // A column of nulls may have a type now.
            let same_type =
                old.data_type() == new.data_type() || *old.data_type() == DataType::Null;
            old.name() == new.name() && same_type
        };
        let (fields, now) = (old.schema.fields(), self.schema.fields());
        if fields.len() != now.len() || !fields.iter().zip(now.iter()).all(same_column) {
            return Err(TableError::changed(path, "its columns or their types differ"));
        }
        if old.content.packing().is_some() {
            return Err(TableError::changed(path, "its content differs"));
        }
        for stride in 0..old.strides.len() {
            old.read_strides(stride..stride + 1)?;
        }
        if !old.ends_with_a_row()? {
            return Err(TableError::changed(path, "its last row goes on"));
        }
        Ok(old.rows)
    }

    /// Whether the last stride ends where its last row does, even with what now follows: a line or quote left open
    /// would continue there.
    fn ends_with_a_row(&self) -> Result<bool, TableError> {
        let Some(last) = self.strides.last() else { return Ok(true) };
        let failed = |error| TableError::io(self.location(), error);
        let content = self.content.bytes()?;
        let mut records = Records::new(content, last.bytes.start, self.dialect);
        let mut left = self.rows_of(&(self.strides.len() - 1..self.strides.len()));
        while left > 0 {
            let start = records.at();
            if records.next(|_| ()).map_err(failed)?.is_none() {
                return Ok(false);
            }
            let is_bad = self.bad.binary_search_by_key(&start, |row| row.start).is_ok();
            left -= usize::from(!is_bad);
        }
        // Skipped rows may follow the last one.
        while records.at() < last.bytes.end {
            let start = records.at();
            if self.bad.binary_search_by_key(&start, |row| row.start).is_err() {
                break;
            }
            records.next(|_| ()).map_err(failed)?;
        }
        if records.at() > last.bytes.end {
            return Ok(false);
        }
        let left_over = content.read(records.at()..last.bytes.end).map_err(failed)?;
        Ok(left_over.iter().all(|&byte| byte == b'\n' || byte == b'\r'))
    }
}

/// A file without some of its rows.
struct WithoutRows<'a> {
    file: &'a FileBytes,
    at: u64,
    bad: &'a [Range<u64>],
}

impl Read for WithoutRows<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(row) = self.bad.first().filter(|row| row.start <= self.at) {
            self.at = self.at.max(row.end);
            self.bad = &self.bad[1..];
        }
        let end = self.bad.first().map_or(self.file.len(), |row| row.start);
        let len = (end - self.at).min(buffer.len() as u64) as usize;
        self.file.read_into(&mut buffer[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

/// Whether a number of these rows may begin with a zero that it does not need. Also true for some text.
fn may_have_padded_numbers(bytes: &[u8], dialect: Dialect) -> bool {
    let begins = |byte: u8| {
        byte == dialect.delimiter
            || matches!(byte, b'\n' | b'\r' | b'-')
            || Some(byte) == dialect.quote
    };
    let first = matches!(bytes, [b'0', next, ..] if next.is_ascii_digit());
    let is_padded = |w: &[u8]| w[1] == b'0' && w[2].is_ascii_digit() && begins(w[0]);
    first || bytes.windows(3).any(is_padded)
}

fn is_padded_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    matches!(digits, [b'0', next, ..] if next.is_ascii_digit())
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
/// reading everything on each open; the checksum of a stride is verified when it is read. `length` is the part of the
/// file that counts.
pub(super) fn fingerprint(file: &FileBytes, length: u64) -> io::Result<u64> {
    const ENDS: u64 = 64 << 10;
    const SAMPLES: u64 = 64;
    const SAMPLE_BYTES: u64 = 256;
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
