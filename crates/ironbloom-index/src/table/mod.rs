//! A table in a file, any rows and columns of which can be read without the rest.
//!
//! ```text
//!            ┌── parquet   rows → row group → page     page_map (where pages are), page_reader, page_cache, verify
//!            │             filters of its own            own_filters
//!            │             footer                        footer, row_groups, foreign (odd ones), thrift, quiet (its reader panics)
//!  Table ────┤
//!            └── csv       rows → stride of lines        csv_rows (where strides begin), csv_options, compressed (.gz, .zst)
//!
//!  view      a file as a part of a larger table: constant, renamed and widened columns, deleted rows (conform: types)
//! ```
//!
//! A table is opened once and then answers many queries: its footer is read once, and then only the bytes that a query
//! needs (`file_bytes`). The locations found while building an index (`notes`) are stored in the index and passed back
//! when the table is reopened: of pages, and of row groups in the footer, which is hashed but not parsed as a whole.
//!
//! **A changed table is detected** by three things: its length and a fingerprint (Parquet: of its footer; CSV: of its
//! beginning, its end and samples between), compared when it is opened; its length and time of change, compared for
//! each query while it is open; and checksums, compared when a page or stride is read, on the bytes that are then used:
//! ours of each page of an indexed column and each stride (of CSV also while it is indexed), and those of the writer in
//! pages of other columns, if there are some. A truncated file is detected when the missing part is read. What is not
//! detected is a change in a part that is not read, if length and footer stay the same: rows that such a change would
//! add to the answer are not found. [`Table::verify`] reads everything.

mod compressed;
mod conform;
mod csv;
mod csv_notes;
mod csv_options;
mod csv_rows;
mod csv_times;
mod error;
mod footer;
mod foreign;
mod held_bytes;
mod int96;
mod layout_error;
mod notes;
mod own_filters;
mod page_cache;
mod page_header;
mod page_map;
mod page_reader;
mod parquet;
mod parquet_parts;
mod partial_page;
mod peek;
mod quiet;
mod row_groups;
mod scan;
mod snappy;
use ironbloom::format::thrift;
mod verify;
mod view;
mod zones;

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub use csv_notes::csv_options_in;
pub use csv_options::{CsvOptions, csv_type};
pub use error::TableError;
pub use own_filters::OwnFilters;
pub use scan::Scan;

pub use conform::converted;
pub(crate) use conform::{Matching, NAME_IN_FILES};
pub(crate) use csv_options::type_name;
pub(crate) use peek::Peeked;
pub(crate) use view::View;

use self::compressed::Packing;
use self::csv::{CsvKind, CsvTable};
use self::footer::Footer;
use self::parquet::ParquetTable;
use self::view::{BoundView, rows_alone};
use crate::file_bytes::{FileBytes, Purpose};
use crate::location::Location;

/// What identifies an unchanged table when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bytes of the file.
    pub length: u64,
    /// Parquet: a hash of the footer. CSV: a hash of the beginning, the end and samples between.
    pub fingerprint: u64,
}

/// The cost of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reads {
    /// Pages of Parquet that were read and decompressed, or strides of CSV that were parsed.
    pub pages: u64,
    /// Pages that were still in the cache from an earlier read.
    pub cached_pages: u64,
    /// Bytes of the file that were read for this.
    pub bytes: u64,
}

impl Reads {
    /// Adds the cost of another read.
    pub fn add(&mut self, more: Self) {
        self.pages += more.pages;
        self.cached_pages += more.cached_pages;
        self.bytes += more.bytes;
    }
}

/// An open table. See the module documentation.
pub struct Table {
    file: FileBytes,
    identity: Identity,
    format: Format,
    /// If it is not seen as it is.
    view: Option<BoundView>,
}

enum Format {
    Parquet(Box<ParquetTable>),
    Csv(CsvTable),
}

/// Rows of a part of a CSV file.
const CSV_PART_ROWS: u64 = 1 << 16;

/// An object of at most this many bytes is requested as a whole: its footer alone would soon be followed by another request, which
/// takes as long.
const WHOLE_OBJECT_BYTES: u64 = 2 << 20;

/// What an index knows about a file.
#[derive(Clone, Copy)]
enum Known<'a> {
    Nothing,
    /// It has not changed since it was indexed. The version is that of an object, or empty.
    Everything(Identity, &'a str, &'a [u8]),
    /// Rows may have been added since.
    Beginning(&'a [u8]),
}

impl Table {
    /// Opens a Parquet or CSV file, to index it.
    ///
    /// Parquet is recognised by its content, CSV (commas) and TSV (tabs) by the file extension; these may be compressed
    /// (`.csv.gz`, `.csv.zst`). The first line of a CSV file names the columns; their types are inferred from all lines,
    /// which takes one pass.
    ///
    /// If others truncate or overwrite the file while the table is open, reading a missing or changed part is an error
    /// (the module documentation says how changes are detected). Replacing it by renaming another file over it changes
    /// nothing for an open table.
    ///
    /// # Errors
    ///
    /// [`TableError`] if it cannot be opened, is neither Parquet nor CSV, has no columns or is damaged.
    pub fn open(path: impl Into<Location>) -> Result<Self, TableError> {
        Self::open_with(path, &CsvOptions::default())
    }

    /// As [`open`](Self::open), with CSV read in this way.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(path: impl Into<Location>, csv: &CsvOptions) -> Result<Self, TableError> {
        Self::open_as(path.into(), csv, Known::Nothing)
    }

    /// Opens a table that has been indexed and may have grown since: CSV is read as it was then, and its columns keep
    /// their types (a column of nulls may get one).
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and [`TableError::Notes`].
    pub fn open_grown(path: impl Into<Location>, notes: &[u8]) -> Result<Self, TableError> {
        Self::open_as(path.into(), &CsvOptions::default(), Known::Beginning(notes))
    }

    /// Opens a table that has been indexed, with its identity and the notes made when it was indexed.
    ///
    /// # Errors
    ///
    /// [`TableError::Changed`] if it has changed, [`TableError::Notes`] if the notes do not match, and as
    /// [`open`](Self::open).
    pub fn open_known(
        path: impl Into<Location>,
        identity: Identity,
        notes: &[u8],
    ) -> Result<Self, TableError> {
        Self::open_version(path, identity, "", notes)
    }

    /// As [`open_known`](Self::open_known), with the [version](Self::version) that an object had when it was indexed. As long as
    /// it is of that version, nothing need be requested to know that it has not changed. If it is of another version, it is
    /// compared as a file is.
    ///
    /// # Errors
    ///
    /// As [`open_known`](Self::open_known).
    pub fn open_version(
        path: impl Into<Location>,
        identity: Identity,
        version: &str,
        notes: &[u8],
    ) -> Result<Self, TableError> {
        let (path, csv) = (path.into(), CsvOptions::default());
        if path.is_object() && !version.is_empty() {
            let known = Known::Everything(identity, version, notes);
            match Self::open_as(path.clone(), &csv, known) {
                // Said once more, by what is there now.
                Err(TableError::Changed { .. } | TableError::Io { .. }) => {}
                done => return done,
            }
        }
        Self::open_as(path, &csv, Known::Everything(identity, "", notes))
    }

    fn open_as(path: Location, csv: &CsvOptions, known: Known<'_>) -> Result<Self, TableError> {
        let named = |error: io::Error| match (error.kind(), known) {
            (ErrorKind::NotFound, Known::Everything(..)) => {
                TableError::Missing { path: path.clone() }
            }
            _ => TableError::io(&path, error),
        };
        let purpose = match known {
            Known::Everything(..) => Purpose::Ask,
            Known::Nothing | Known::Beginning(_) => Purpose::Scan,
        };
        let file = match known {
            Known::Everything(identity, version, _) if !version.is_empty() => {
                FileBytes::open_version(path.clone(), version, identity.length).and_then(|file| {
                    if identity.length <= WHOLE_OBJECT_BYTES {
                        file.prefetch(std::slice::from_ref(&(0..identity.length)))?;
                    }
                    Ok(file)
                })
            }
            _ => FileBytes::open_for(path.clone(), purpose),
        };
        let file = file.map_err(named)?;
        if !file.is_regular() {
            let why = "is not a regular file, and a table is read in pieces";
            return Err(TableError::NotATable { path, why });
        }
        let remembered = match known {
            Known::Everything(_, _, notes) | Known::Beginning(notes) => csv_options_in(notes),
            Known::Nothing => None,
        };
        let csv = remembered.as_ref().map_or(csv, |(options, _)| options);
        // What was indexed as Parquet is compared with that, whatever it is now; its first bytes are not asked for.
        let was_parquet = matches!(known, Known::Everything(..)) && remembered.is_none();
        let kind = if was_parquet && file.is_object() { None } else { kind_of(&file, csv)? };
        let (identity, format) = match kind {
            None => open_parquet(&file, known)?,
            Some(kind) => open_csv(&file, kind, known)?,
        };
        let table = Self { file, identity, format, view: None };
        if table.schema().fields().is_empty() {
            return Err(TableError::NotATable { path, why: "has no columns" });
        }
        Ok(table)
    }

    /// The same table, seen like this: columns are those of the view from now on.
    ///
    /// # Errors
    ///
    /// [`TableError::View`] if a column of the file does not have the type, or one that can be converted.
    pub(crate) fn with_view(mut self, view: &View) -> Result<Self, TableError> {
        if !view.is_plain() {
            let bound = BoundView::new(view, self.file_schema());
            self.view = Some(bound.map_err(|what| self.misfit(what))?);
        }
        Ok(self)
    }

    fn misfit(&self, what: String) -> TableError {
        TableError::View { path: self.location().clone(), what }
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        self.file.location()
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        self.view.as_ref().map_or_else(|| self.file_schema(), BoundView::schema)
    }

    /// Names and types of the columns in the file.
    fn file_schema(&self) -> &SchemaRef {
        match &self.format {
            Format::Parquet(table) => table.schema(),
            Format::Csv(table) => table.schema(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        match &self.format {
            Format::Parquet(table) => table.rows(),
            Format::Csv(table) => table.rows(),
        }
    }

    /// What to compare when it is opened again.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// What names the version of an object, its ETag; empty for a file.
    pub fn version(&self) -> &str {
        self.file.version()
    }

    /// The number of a column in the schema.
    ///
    /// # Errors
    ///
    /// [`TableError::UnknownColumn`] if there is none of this name, [`TableError::AmbiguousColumn`] if there are several.
    pub fn column(&self, name: &str) -> Result<usize, TableError> {
        let fields = self.schema().fields();
        let mut found = (0..fields.len()).filter(|&column| fields[column].name() == name);
        let (path, column) = (self.location().clone(), name.to_owned());
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (Some(_), Some(_)) => Err(TableError::AmbiguousColumn { path, column }),
            (None, _) => {
                let similar =
                    crate::similar::similar(name, fields.iter().map(|field| field.name()));
                Err(TableError::UnknownColumn { path, column, similar })
            }
        }
    }

    /// What the index should store, to be passed to [`open_known`](Self::open_known): where pages or lines begin, the
    /// types that were inferred, and checksums of the indexed columns (which reads all of them).
    ///
    /// # Errors
    ///
    /// [`TableError::Damaged`] if the page headers are invalid.
    pub fn notes(&self, indexed: &[usize]) -> Result<Vec<u8>, TableError> {
        let in_file = self.view.as_ref().map(|view| view.in_file(indexed));
        match &self.format {
            Format::Parquet(table) => table.notes(in_file.as_deref().unwrap_or(indexed)),
            Format::Csv(table) => Ok(table.notes()),
        }
    }

    /// All rows of these columns, in order, in batches of up to `batch_rows`. The columns are in the order given.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file is damaged, here or from the iterator, which then ends.
    ///
    /// # Panics
    ///
    /// If a column is not in the schema, or `batch_rows` is 0.
    pub fn scan(&self, columns: &[usize], batch_rows: usize) -> Result<Scan<'_>, TableError> {
        self.scan_from(0, columns, batch_rows)
    }

    /// As [`scan`](Self::scan), from a row on.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    ///
    /// # Panics
    ///
    /// As [`scan`](Self::scan).
    pub fn scan_from(
        &self,
        first_row: u64,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'_>, TableError> {
        assert!(batch_rows > 0, "batches need rows");
        self.assert_columns(columns);
        let left = self.rows().saturating_sub(first_row);
        self.scan_seen(left, columns, batch_rows, |columns| {
            self.scan_file(first_row, columns, batch_rows)
        })
    }

    /// These columns as they are seen, of `rows` rows that `scan` reads the columns of the file of.
    fn scan_seen<'a>(
        &'a self,
        rows: u64,
        columns: &[usize],
        batch_rows: usize,
        scan: impl FnOnce(&[usize]) -> Result<Scan<'a>, TableError>,
    ) -> Result<Scan<'a>, TableError> {
        let Some(view) = &self.view else { return scan(columns) };
        let in_file = view.in_file(columns);
        let batches = if in_file.is_empty() {
            let starts = (0..rows).step_by(batch_rows);
            let length = move |start: u64| (rows - start).min(batch_rows as u64) as usize;
            Scan::new(starts.map(move |start| Ok(rows_alone(length(start)))))
        } else {
            scan(&in_file)?
        };
        let columns = columns.to_vec();
        Ok(Scan::new(
            batches
                .map(move |batch| view.seen(&columns, &batch?).map_err(|what| self.misfit(what))),
        ))
    }

    fn scan_file(
        &self,
        first_row: u64,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'_>, TableError> {
        match &self.format {
            Format::Parquet(table) => table.scan(first_row, columns, batch_rows),
            Format::Csv(table) => table.scan(first_row..table.rows(), columns, batch_rows),
        }
    }

    /// These rows, cut into parts that are read without the others at little extra cost, in order: row groups of Parquet, runs of
    /// lines of CSV.
    pub(crate) fn parts(&self, rows: Range<u64>) -> Vec<Range<u64>> {
        match &self.format {
            Format::Parquet(table) => table.parts(&rows),
            Format::Csv(_) => {
                // Whole strides, wherever the first one begins.
                let ends = (rows.start / CSV_PART_ROWS + 1..).map(|part| part * CSV_PART_ROWS);
                let ends = ends.take_while(|&end| end < rows.end).chain([rows.end]);
                let part = |start: &mut u64, end| Some(std::mem::replace(start, end)..end);
                ends.scan(rows.start, part).collect()
            }
        }
    }

    /// Whether a column is read without the others at no extra cost.
    pub(crate) fn has_separate_columns(&self) -> bool {
        matches!(self.format, Format::Parquet(_))
    }

    /// As [`scan`](Self::scan), one of the [`parts`](Self::parts).
    pub(crate) fn scan_part(
        &self,
        rows: Range<u64>,
        columns: &[usize],
        batch_rows: usize,
    ) -> Result<Scan<'_>, TableError> {
        self.assert_columns(columns);
        self.scan_seen(rows.end - rows.start, columns, batch_rows, |columns| match &self.format {
            Format::Parquet(table) => table.scan_part(&rows, columns, batch_rows),
            Format::Csv(table) => table.scan(rows.clone(), columns, batch_rows),
        })
    }

    /// The rows that this table had when these notes were made, if since then rows were only added at its end, as
    /// happens to CSV: they are indexed already, and an index continues there with [`scan_from`](Self::scan_from). All
    /// old rows are read and verified against their checksums.
    ///
    /// # Errors
    ///
    /// [`TableError::Changed`] if anything else differs; for Parquet always, since its files are written once.
    pub fn rows_before(&self, notes: &[u8]) -> Result<u64, TableError> {
        match &self.format {
            Format::Parquet(_) => Err(TableError::changed(self.location(), "its content differs")),
            Format::Csv(table) => table.rows_before(notes),
        }
    }

    /// Reads all columns of a table that has been [indexed](Self::open_known), and compares them with what they were: by the
    /// checksums that were made when it was indexed (of indexed columns of Parquet, and all of CSV), and by those that the
    /// writer of a Parquet file put into its pages.
    pub fn verify(&self) -> Compared {
        match &self.format {
            Format::Parquet(table) => table.verify(),
            Format::Csv(table) => {
                let errors = table.verify().err().into_iter().collect();
                Compared { errors, unchecked: Vec::new() }
            }
        }
    }

    /// These rows of these columns, in order, from as few pages as possible. The cost is added to `reads`.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the file is damaged, or has changed since it was indexed.
    ///
    /// # Panics
    ///
    /// If the ranges are not sorted, overlap or reach beyond the table, or a column is not in the schema.
    pub fn read_rows(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
        reads: &mut Reads,
    ) -> Result<Vec<RecordBatch>, TableError> {
        let mut free = 0;
        for range in ranges {
            assert!(range.start >= free && range.end >= range.start, "ranges must rise");
            free = range.end;
        }
        assert!(free <= self.rows(), "rows up to {free} of {}", self.rows());
        self.assert_columns(columns);
        let Some(view) = &self.view else { return self.read_file_rows(ranges, columns, reads) };
        let in_file = view.in_file(columns);
        let batches = if in_file.is_empty() {
            let rows = ranges.iter().map(|range| (range.end - range.start) as usize).sum();
            vec![rows_alone(rows)]
        } else {
            self.read_file_rows(ranges, &in_file, reads)?
        };
        let seen = |batch: &RecordBatch| view.seen(columns, batch);
        batches.iter().map(seen).collect::<Result<_, _>>().map_err(|what| self.misfit(what))
    }

    fn read_file_rows(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
        reads: &mut Reads,
    ) -> Result<Vec<RecordBatch>, TableError> {
        match &self.format {
            Format::Parquet(table) => table.read_rows(ranges, columns, reads),
            Format::Csv(table) => table.read_rows(ranges, columns, reads),
        }
    }

    /// Says that these rows of these columns will be read. Of an object, what holds them is requested now, together; of a
    /// file, nothing is done.
    ///
    /// # Errors
    ///
    /// As [`read_rows`](Self::read_rows).
    pub(crate) fn prefetch(
        &self,
        ranges: &[Range<u64>],
        columns: &[usize],
    ) -> Result<(), TableError> {
        match &self.format {
            Format::Parquet(table) => table.prefetch(ranges, columns),
            Format::Csv(table) => table.prefetch(ranges),
        }
    }

    /// Whether each read may be a request to a server.
    pub(crate) fn is_object(&self) -> bool {
        self.file.is_object()
    }

    /// Compares the file with what it was when it was opened, by length and time of change; an object by its version.
    ///
    /// # Errors
    ///
    /// [`TableError::Changed`] if someone has written to it.
    pub fn check_unchanged(&self) -> Result<(), TableError> {
        match self.file.is_unchanged() {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(TableError::changed(self.location(), "it was written to while it was open"))
            }
            Err(error) => Err(TableError::io(self.location(), error)),
        }
    }

    fn assert_columns(&self, columns: &[usize]) {
        let known = self.schema().fields().len();
        assert!(columns.iter().all(|&column| column < known), "a column beyond the {known} known");
    }
}

/// What [`Table::verify`] has found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Compared {
    /// What has changed, once for each column; empty if all is as it was.
    pub errors: Vec<TableError>,
    /// Columns that have no checksums in some pages: changes there are not noticed.
    pub unchecked: Vec<String>,
}

fn open_parquet(file: &FileBytes, known: Known<'_>) -> Result<(Identity, Format), TableError> {
    let path = file.location();
    if let Known::Everything(known, ..) = known {
        compare_length(path, known, file.len())?;
    }
    let footer = Footer::read(file).map_err(|error| TableError::io(path, error))?;
    let identity = Identity { length: file.len(), fingerprint: footer.fingerprint };
    let notes = match known {
        Known::Everything(known, _, notes) => {
            compare(path, known, identity)?;
            Some(notes)
        }
        Known::Nothing | Known::Beginning(_) => None,
    };
    Ok((identity, Format::Parquet(Box::new(ParquetTable::open(file.clone(), footer, notes)?))))
}

fn open_csv(
    file: &FileBytes,
    kind: CsvKind,
    known: Known<'_>,
) -> Result<(Identity, Format), TableError> {
    let path = file.location();
    let fingerprint =
        |length| csv::fingerprint(file, length).map_err(|error| TableError::io(path, error));
    let identity = match known {
        // The same version is the same file: the samples of a fingerprint would be a request each.
        Known::Everything(known, version, _) if !version.is_empty() => known,
        _ => Identity { length: file.len(), fingerprint: fingerprint(file.len())? },
    };
    let damaged = |what| TableError::notes(path, what);
    let table = match known {
        Known::Nothing => CsvTable::from_content(file.clone(), kind, None)?,
        Known::Beginning(notes) => {
            let noted = csv_notes::CsvNotes::read(notes).map_err(damaged)?;
            CsvTable::from_content(file.clone(), kind, Some(&noted.schema))?
        }
        Known::Everything(known, _, notes) => {
            let (before, now) = (known.length, identity.length);
            let has_grown = before < now && kind.packing.is_none();
            if has_grown && fingerprint(before)? == known.fingerprint {
                return Err(TableError::Grown { path: path.into(), before, now });
            }
            compare(path, known, identity)?;
            CsvTable::from_notes(notes, file.clone(), kind.delimiter).map_err(damaged)?
        }
    };
    Ok((identity, Format::Csv(table)))
}

fn compare(path: &Location, known: Identity, found: Identity) -> Result<(), TableError> {
    compare_length(path, known, found.length)?;
    if known.fingerprint != found.fingerprint {
        return Err(TableError::changed(path, "its content differs"));
    }
    Ok(())
}

fn compare_length(path: &Location, known: Identity, found: u64) -> Result<(), TableError> {
    if known.length == found {
        return Ok(());
    }
    let what = format!("it had {} bytes and has {found}", known.length);
    Err(TableError::changed(path, what))
}

/// Whether this file is Parquet, or how it is read as CSV.
fn kind_of(file: &FileBytes, options: &CsvOptions) -> Result<Option<CsvKind>, TableError> {
    let (path, length) = (file.location(), file.len());
    let failed = |error| TableError::io(path, error);
    let refuse = |why| Err(TableError::NotATable { path: path.into(), why });
    let magic = parquet::MAGIC.len() as u64;
    let four = |start: u64| file.read(start..start + magic).map_err(failed);
    let (first, last) =
        if length < magic { Default::default() } else { (four(0)?, four(length - magic)?) };
    let begins = first == parquet::MAGIC;
    if begins && last == parquet::MAGIC {
        return Ok(None);
    }
    if first == parquet::ENCRYPTED_MAGIC && last == parquet::ENCRYPTED_MAGIC {
        return refuse(parquet::ENCRYPTED);
    }
    let packing = Packing::of(file).map_err(failed)?;
    let csv = |delimiter| Ok(Some(CsvKind { options: options.clone(), delimiter, packing }));
    match (extension(path, packing.is_some()).as_str(), options.delimiter) {
        ("parquet" | "pq", _) if packing.is_some() => refuse(COMPRESSED),
        (_, Some(delimiter)) if !begins => csv(delimiter),
        ("csv", _) => csv(b','),
        ("tsv", _) => csv(b'\t'),
        // Truncated, which its reader will report.
        _ if begins => Ok(None),
        ("parquet" | "pq", _) if length == 0 => refuse("is empty"),
        ("parquet" | "pq", _) => refuse("does not begin as a Parquet file"),
        ("bz2" | "xz", _) => refuse(COMPRESSED),
        _ => refuse("is neither Parquet nor named .csv or .tsv"),
    }
}

const COMPRESSED: &str = "is compressed as a whole; decompress it first";

/// The last extension in lower case; of `t.csv.gz` the one before if the file is compressed.
fn extension(path: &Location, packed: bool) -> String {
    let name = path.name();
    let name = Path::new(&*name);
    let outer = name.extension();
    let is_packing = packed && outer.is_some_and(|end| end == "gz" || end == "zst");
    let name = if is_packing { name.file_stem().map(Path::new) } else { Some(name) };
    let extension = name.and_then(Path::extension).and_then(|end| end.to_str());
    extension.unwrap_or("").to_ascii_lowercase()
}
