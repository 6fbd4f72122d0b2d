//! Where the rows of a CSV file start, found in one pass.
//!
//! The file goes through a buffer of a fixed size, so that neither long files nor long rows have to fit into memory.

use crate::location::Location;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader};
use std::ops::Range;

use csv_core::ReadRecordResult;
use xxhash_rust::xxh3::Xxh3;

use super::TableError;
use super::csv_options::Dialect;
use crate::file_bytes::{FileBytes, FileReader, PIECE_BYTES};

/// Rows of a stride: the default of the index for a block, so that one block is one stride.
pub(super) const STRIDE: u64 = 512;

/// Some consecutive lines of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stride {
    pub(super) bytes: Range<u64>,
    /// The checksum of these bytes when they were first read.
    pub(super) check: u32,
}

/// All rows of a file.
pub(super) struct Rows {
    pub(super) count: u64,
    pub(super) strides: Vec<Stride>,
    /// Rows that are skipped, in order.
    pub(super) bad: Vec<Range<u64>>,
}

/// What to do with rows that are not text, or whose number of fields differs from that of the first.
pub(super) enum BadRows<'a> {
    /// They are an error.
    Refuse,
    /// They are skipped, and so are those that begin at these bytes.
    Skip(&'a BTreeSet<u64>),
}

/// Goes through all rows. A quote that is never closed is an error in any case: all rows after it are inside it.
pub(super) fn find_rows(
    path: &Location,
    file: &FileBytes,
    dialect: Dialect,
    header: bool,
    bad_rows: &BadRows<'_>,
) -> Result<Rows, TableError> {
    let failed = |error| TableError::io(path, error);
    let wrong = |at, what: &str| Err(bad_line(path, file, at, what.into()));
    let mut records = Records::new(file, first_byte(file).map_err(failed)?, dialect);
    let mut text = Text { seen: records.at(), ..Text::default() };
    let mut columns = None;
    if header {
        columns = records.next(|bytes| text.check(bytes)).map_err(failed)?;
        if columns.is_none() {
            let why = "is empty: not even a header";
            return Err(TableError::NotATable { path: path.into(), why });
        }
        if let Some(at) = text.wrong {
            return wrong(at, NOT_TEXT);
        }
    }
    let mut cutter = Cutter::new(records.at());
    let mut bad = Vec::new();
    loop {
        let start = records.at();
        let see = |bytes: &[u8]| {
            text.check(bytes);
            cutter.see(bytes);
        };
        let next = records.next(see).map_err(failed)?;
        if records.quote_is_open {
            return wrong(start, "has a quote that is never closed");
        }
        if next.is_none() && !text.open.is_empty() {
            text.wrong = text.wrong.or(Some(text.seen - text.open.len() as u64));
        }
        let not_text = text.wrong.take();
        match (next, not_text, bad_rows) {
            (_, Some(at), BadRows::Refuse) => return wrong(at, NOT_TEXT),
            (Some(_), Some(_), BadRows::Skip(_)) => bad.push(start..records.at()),
            (None, ..) if columns.is_none() => {
                let why = "is empty";
                return Err(TableError::NotATable { path: path.into(), why });
            }
            (None, ..) => {
                let Rows { count, strides, .. } = cutter.finish(file.len());
                return Ok(Rows { count, strides, bad });
            }
            (Some(_), _, BadRows::Skip(also)) if also.contains(&start) => {
                bad.push(start..records.at());
            }
            (Some(fields), ..) if fields == *columns.get_or_insert(fields) => {
                cutter.end_row(records.at());
            }
            (Some(_), _, BadRows::Skip(_)) => bad.push(start..records.at()),
            (Some(fields), _, BadRows::Refuse) => {
                let first = if header { "the header" } else { "the first row" };
                let columns = columns.unwrap_or(0);
                let what = format!("has {fields} fields where {first} has {columns}");
                return wrong(start, &what);
            }
        }
    }
}

const NOT_TEXT: &str = "is not UTF-8";

/// Where the text begins: after a byte order mark.
pub(super) fn first_byte(file: &FileBytes) -> io::Result<u64> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let first = file.read(0..file.len().min(MARK.len() as u64))?;
    Ok(if first == MARK { MARK.len() as u64 } else { 0 })
}

/// The rows of a file from some place on, by the rules of the reader in `arrow`.
pub(super) struct Records {
    parser: csv_core::Reader,
    input: BufReader<FileReader>,
    at: u64,
    /// Whether the file ended inside quotes.
    pub(super) quote_is_open: bool,
    /// Fields and their ends go here; they are not used.
    output: Box<[u8; 4096]>,
    ends: Box<[usize; 256]>,
}

impl Records {
    pub(super) fn new(file: &FileBytes, start: u64, dialect: Dialect) -> Self {
        Self {
            parser: dialect.parser(),
            input: BufReader::with_capacity(PIECE_BYTES, file.reader(start)),
            at: start,
            quote_is_open: false,
            output: Box::new([0; 4096]),
            ends: Box::new([0; 256]),
        }
    }

    /// The end of the last row.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The number of fields of the next row, or `None` at the end. `see` is given all bytes in order.
    pub(super) fn next(&mut self, mut see: impl FnMut(&[u8])) -> io::Result<Option<usize>> {
        let mut fields = 0;
        // What the parser is given at the end of the file. A line end closes a row, unless it is inside quotes; only
        // then the end itself has to close it.
        let mut ending: &[u8] = b"\n";
        loop {
            let bytes = self.input.fill_buf()?;
            let at_end = bytes.is_empty();
            let bytes = if at_end { ending } else { bytes };
            let (output, ends) = (&mut self.output[..], &mut self.ends[..]);
            let (result, read, _, ended) = self.parser.read_record(bytes, output, ends);
            fields += ended;
            if at_end {
                self.quote_is_open = bytes.is_empty() && matches!(result, ReadRecordResult::Record);
                ending = &ending[read..];
            } else {
                see(&bytes[..read]);
                self.input.consume(read);
                self.at += read as u64;
            }
            match result {
                ReadRecordResult::Record => return Ok(Some(fields)),
                ReadRecordResult::End => return Ok(None),
                _ => {}
            }
        }
    }
}

/// Whether bytes that come in pieces are UTF-8.
#[derive(Default)]
struct Text {
    seen: u64,
    /// The start of an incomplete character.
    open: Vec<u8>,
    /// Position of the first byte that is not part of a character.
    wrong: Option<u64>,
}

impl Text {
    fn check(&mut self, bytes: &[u8]) {
        let start = self.seen - self.open.len() as u64;
        self.seen += bytes.len() as u64;
        if self.open.is_empty() {
            self.check_from(start, bytes);
        } else {
            let mut joined = std::mem::take(&mut self.open);
            joined.extend_from_slice(bytes);
            self.check_from(start, &joined);
        }
    }

    fn check_from(&mut self, start: u64, bytes: &[u8]) {
        let Err(error) = std::str::from_utf8(bytes) else { return };
        match error.error_len() {
            None => self.open = bytes[error.valid_up_to()..].to_vec(),
            Some(_) => self.wrong = self.wrong.or(Some(start + error.valid_up_to() as u64)),
        }
    }
}

/// Cuts rows into strides, and hashes their bytes.
///
/// A stride ends where the next one starts, and the last one at the end of the file: when its last row has ended it is
/// not yet known whether more rows follow, or only line ends that belong to it.
struct Cutter {
    done: Vec<Stride>,
    rows: u64,
    start: u64,
    hasher: Xxh3,
    full: Option<Full>,
}

/// A stride that has all its rows.
struct Full {
    end: u64,
    check: u32,
    /// Of the bytes since then.
    next: Xxh3,
}

impl Cutter {
    fn new(start: u64) -> Self {
        Self { done: Vec::new(), rows: 0, start, hasher: Xxh3::new(), full: None }
    }

    fn see(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        if let Some(full) = &mut self.full {
            full.next.update(bytes);
        }
    }

    fn end_row(&mut self, at: u64) {
        if let Some(Full { end, check, next }) = self.full.take() {
            self.done.push(Stride { bytes: self.start..end, check });
            (self.start, self.hasher) = (end, next);
        }
        self.rows += 1;
        if self.rows.is_multiple_of(STRIDE) {
            let check = self.hasher.digest() as u32;
            self.full = Some(Full { end: at, check, next: Xxh3::new() });
        }
    }

    fn finish(mut self, file_len: u64) -> Rows {
        if self.rows > 0 {
            let check = self.hasher.digest() as u32;
            self.done.push(Stride { bytes: self.start..file_len, check });
        }
        Rows { count: self.rows, strides: self.done, bad: Vec::new() }
    }
}

/// An error about the row that begins at this byte.
pub(super) fn bad_line(path: &Location, file: &FileBytes, at: u64, what: String) -> TableError {
    match line_at(file, at) {
        Ok(line) => TableError::Line { path: path.into(), line, what },
        Err(error) => TableError::io(path, error),
    }
}

/// The line number of a record that starts here, not counting line ends left over from the previous one.
pub(super) fn line_at(file: &FileBytes, at: u64) -> io::Result<u64> {
    let mut pieces = file.pieces(0..file.len());
    let (mut line, mut offset) = (1, 0);
    while let Some(piece) = pieces.next() {
        let piece = piece?;
        let before = at.saturating_sub(offset).min(piece.len() as u64) as usize;
        let (before, rest) = piece.split_at(before);
        let left_over = rest.iter().position(|&byte| byte != b'\n' && byte != b'\r');
        let ends = before.iter().chain(&rest[..left_over.unwrap_or(rest.len())]);
        line += ends.filter(|&&byte| byte == b'\n').count() as u64;
        if left_over.is_some() {
            break;
        }
        offset += piece.len() as u64;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::super::notes;
    use super::*;
    use ironbloom_testing::TemporaryFile;

    fn rows_of(text: &[u8]) -> Result<Rows, TableError> {
        let path = TemporaryFile::new("bytes");
        std::fs::write(&path, text).unwrap();
        let commas = Dialect { delimiter: b',', quote: Some(b'"') };
        let file = FileBytes::open(path.path()).unwrap();
        find_rows(file.location(), &file, commas, true, &BadRows::Refuse)
    }

    #[test]
    fn strides_follow_each_other_to_the_end_and_have_the_checksums_of_their_bytes() {
        for rows in [0, 1, 1024, 1025] {
            for end in ["", "\n", "\n\r\n\n"] {
                let lines: Vec<String> =
                    (0..rows).map(|row| format!("{row},\"a\n{row}\"")).collect();
                let text = format!("id,text\n{}{end}", lines.join("\n"));
                let found = rows_of(text.as_bytes()).unwrap();
                assert_eq!(found.count, rows);
                assert_eq!(found.strides.len() as u64, rows.div_ceil(STRIDE));
                let mut free = "id,text\n".len() as u64;
                for stride in &found.strides {
                    let bytes =
                        &text.as_bytes()[stride.bytes.start as usize..stride.bytes.end as usize];
                    assert_eq!((stride.bytes.start, stride.check), (free, notes::checksum(bytes)));
                    free = stride.bytes.end;
                }
                assert!(rows == 0 || free == text.len() as u64);
            }
        }
    }

    #[test]
    fn rows_and_characters_may_lie_across_the_pieces_that_are_read() {
        // Every place of a row, and of a character of three bytes, at the border.
        for shift in 0..20 {
            let long = "x".repeat(PIECE_BYTES - 30 + shift);
            let text = format!("a,b\n{long},\"\u{20ac}\n\u{20ac}\"\n1,\u{20ac}\n");
            assert_eq!(rows_of(text.as_bytes()).unwrap().count, 2);
            let mut wrong = text.into_bytes();
            let last = wrong.len() - 3;
            wrong[last] = b'x'; // the second byte of the last character
            match rows_of(&wrong).err().unwrap() {
                TableError::Line { line, what, .. } => {
                    assert_eq!((line, what.as_str()), (4, "is not UTF-8"));
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_character_that_the_file_cuts_off_is_not_utf_8() {
        let error = rows_of(b"a\n1\n\xe2\x82").err().unwrap().to_string();
        assert!(error.ends_with("line 3: is not UTF-8"), "{error}");
    }
}
