//! Keys from CSV and its relatives: which column, which delimiter, and the rows that keys are from.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;

use super::keys::Keys;
use super::strict::Strict;
use crate::failure::Advice;
use crate::number;

/// Which column of a table holds the keys, and how the table is written.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TableArgs {
    /// Keys are this column of CSV: its name in the header line, or its number, from 1 (joint: rows are these
    /// columns, e.g. size,color)
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["null", "exact_bytes"])]
    csv: Option<String>,

    /// The same for fields separated by tabs, in which quotes are characters like others
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["csv", "null", "exact_bytes"])]
    tsv: Option<String>,

    /// Character between the fields of CSV, e.g. ';' or '\t' [default: ,]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter, conflicts_with_all = ["tsv", "null", "exact_bytes"])]
    delimiter: Option<u8>,

    /// The table has no header line: its first line is a row, and columns are numbered
    #[arg(long, conflicts_with_all = ["null", "exact_bytes"])]
    no_header: bool,
}

/// Why text cannot separate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DelimiterError {
    Reserved,
    NotOneCharacter,
}

impl fmt::Display for DelimiterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reserved => "quotes and line ends have another meaning in CSV",
            Self::NotOneCharacter => "one ASCII character is needed, e.g. ';', or '\\t' for a tab",
        })
    }
}

impl std::error::Error for DelimiterError {}

/// One ASCII character, or `\t`, because shells make it hard to type one.
fn parse_delimiter(text: &str) -> Result<u8, DelimiterError> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" => Err(DelimiterError::Reserved),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err(DelimiterError::NotOneCharacter),
    }
}

impl TableArgs {
    /// Names of the column, or of the columns of a row.
    pub(crate) fn columns(&self) -> Option<&String> {
        self.csv.as_ref().or(self.tsv.as_ref())
    }

    /// Options that mean nothing unless a table is read.
    pub(super) fn refuse_without_table(&self) -> Result<()> {
        let option = match (self.delimiter, self.no_header) {
            (Some(_), _) => "--delimiter",
            (_, true) => "--no-header",
            _ => return Ok(()),
        };
        Err(Advice::error(
            format!("{option} is for tables, and no column is named"),
            "name the column that holds the keys: --csv COLUMN",
        ))
    }

    fn field_delimiter(&self) -> u8 {
        if self.tsv.is_some() { b'\t' } else { self.delimiter.unwrap_or(b',') }
    }

    /// True if fields may be quoted.
    fn is_quoted(&self) -> bool {
        self.tsv.is_none()
    }

    /// A writer of rows like those that are read.
    pub(crate) fn writer(&self) -> csv::Writer<Vec<u8>> {
        let style =
            if self.is_quoted() { csv::QuoteStyle::Necessary } else { csv::QuoteStyle::Never };
        csv::WriterBuilder::new()
            .delimiter(self.field_delimiter())
            .quote_style(style)
            .flexible(true)
            .from_writer(Vec::new())
    }
}

/// Part of a table that is read.
pub(super) enum Columns<'a> {
    /// One column, whose values are keys.
    Key(&'a String),
    /// Several, whose values together are rows.
    Row(&'a [String]),
}

/// Records in a block.
const BLOCK_RECORDS: usize = 8192;

/// The tables of all inputs, read one after the other.
pub(super) struct Tables<'a> {
    pub(super) args: &'a TableArgs,
    pub(super) columns: Columns<'a>,
    /// True if the text of the rows is wanted, too.
    pub(super) with_rows: bool,
    /// The header of the first table: with rows, the others must have the same.
    pub(super) header: Option<csv::ByteRecord>,
}

impl Tables<'_> {
    /// Sends the keys of one table. `Ok(false)` if the receiver is gone.
    pub(super) fn read(
        &mut self,
        input: Box<dyn Read>,
        source: &Arc<str>,
        send: &mut impl FnMut(Keys) -> bool,
    ) -> Result<bool> {
        let names = match self.columns {
            Columns::Key(column) => std::slice::from_ref(column),
            Columns::Row(columns) => columns,
        };
        let (delimiter, quoted) = (self.args.field_delimiter(), self.args.is_quoted());
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .quoting(quoted)
            .has_headers(!self.args.no_header)
            .from_reader(Strict::new(input, delimiter, quoted));
        let header = match self.args.no_header {
            true => None,
            false => {
                let header = reader.byte_headers().map_err(|error| malformed(error, 1))?.clone();
                reader.get_mut().next_line();
                Some(header)
            }
        };
        let indices = names
            .iter()
            .map(|name| column_index(name, header.as_ref()))
            .collect::<Result<Vec<usize>>>()?;
        let mut keys = Keys::of_table(source, self.with_rows);
        keys.header = self.text_of_header(header)?;
        if keys.header.is_some() {
            let rest = Keys::of_table(source, self.with_rows);
            if !send(std::mem::replace(&mut keys, rest)) {
                return Ok(false);
            }
        }
        let mut record = csv::ByteRecord::new();
        let mut row = Row::new(self.args);
        loop {
            let outcome = reader.read_byte_record(&mut record);
            let line = reader.get_mut().next_line();
            if !outcome.map_err(|error| malformed(error, line))? {
                break;
            }
            if let Some(missing) = indices.iter().position(|&index| index >= record.len()) {
                return Err(anyhow!(
                    "line {line}: {}, column {:?} is number {}",
                    number::plural(record.len() as u64, "field"),
                    names[missing],
                    indices[missing] + 1
                ));
            }
            match self.columns {
                Columns::Key(_) => keys.push(&record[indices[0]], line),
                Columns::Row(_) => {
                    keys.push_fields(indices.iter().map(|&index| &record[index]), line);
                }
            }
            if self.with_rows {
                keys.push_row(row.text(&record)?);
            }
            if keys.len() == BLOCK_RECORDS {
                let rest = Keys::of_table(source, self.with_rows);
                if !send(std::mem::replace(&mut keys, rest)) {
                    return Ok(false);
                }
            }
        }
        Ok(keys.len() == 0 || send(keys))
    }

    /// The header as text, once, if rows are wanted.
    fn text_of_header(&mut self, header: Option<csv::ByteRecord>) -> Result<Option<Vec<u8>>> {
        let Some(header) = header.filter(|_| self.with_rows) else { return Ok(None) };
        match &self.header {
            None => {
                let mut text = Row::new(self.args).text(&header)?.to_vec();
                text.push(b'\n');
                self.header = Some(header);
                Ok(Some(text))
            }
            Some(first) if *first == header => Ok(None),
            Some(_) => Err(Advice::error(
                "has another header than the first table",
                "rows of different tables cannot be printed below one header: ask for them one by one",
            )),
        }
    }
}

/// The text of one row at a time, quoted where it must be, without the line end.
struct Row<'a> {
    args: &'a TableArgs,
    /// Rows written so far: a writer cannot be emptied, so it is replaced when it has many.
    writer: csv::Writer<Vec<u8>>,
}

impl<'a> Row<'a> {
    fn new(args: &'a TableArgs) -> Self {
        Self { args, writer: args.writer() }
    }

    fn text(&mut self, record: &csv::ByteRecord) -> Result<&[u8]> {
        const MANY: usize = 1 << 20;
        if self.writer.get_ref().len() > MANY {
            self.writer = self.args.writer();
        }
        let start = self.writer.get_ref().len();
        self.writer.write_byte_record(record)?;
        self.writer.flush()?;
        let text = &self.writer.get_ref()[start..];
        Ok(text.strip_suffix(b"\n").unwrap_or(text))
    }
}

/// An error in a table, in the row that begins on this line.
fn malformed(error: csv::Error, line: u64) -> anyhow::Error {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let fields = number::plural(*len, "field");
            anyhow!("line {line}: {fields}, where the first row has {expected_len}")
        }
        csv::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            anyhow!("{error}")
        }
        _ => error.into(),
    }
}

/// The place of a column that is named, or counted from 1. A name that looks like a number is a name first.
fn column_index(column: &str, header: Option<&csv::ByteRecord>) -> Result<usize> {
    let mut named = header.into_iter().flat_map(|header| {
        header.iter().enumerate().filter(|(_, name)| *name == column.as_bytes())
    });
    match (named.next(), named.next()) {
        (Some((index, _)), None) => return Ok(index),
        (Some((one, _)), Some((two, _))) => {
            return Err(Advice::error(
                format!("line 1: columns {} and {} are both called {column:?}", one + 1, two + 1),
                "give the number of the column, from 1",
            ));
        }
        (None, _) => {}
    }
    let most = header.map_or(usize::MAX, csv::ByteRecord::len);
    match column.parse::<usize>() {
        Ok(number) if (1..=most).contains(&number) => return Ok(number - 1),
        Ok(0) => return Err(anyhow!("no column 0: columns are counted from 1")),
        _ => {}
    }
    Err(match header {
        Some(header) if header.is_empty() => Advice::error(
            format!("no column {column:?}: the table is empty"),
            "a table begins with a header line, unless --no-header says that it has none",
        ),
        Some(header) => {
            let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            Advice::error(
                format!("no column {column:?}"),
                format!("the columns are: {}", names.join(", ")),
            )
        }
        None => Advice::error(
            format!("no column {column:?}: the table has no header"),
            "give the number of the column, from 1",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_named_or_counted_from_one() {
        let header = csv::ByteRecord::from(vec!["id", "2", "e-mail"]);
        let index = |column: &str| column_index(column, Some(&header)).ok();
        assert_eq!(index("id"), Some(0));
        assert_eq!(index("e-mail"), Some(2));
        assert_eq!(index("3"), Some(2));
        assert_eq!(index("2"), Some(1));
        assert_eq!([index("0"), index("4"), index("-1"), index("name")], [None; 4]);
        assert_eq!(column_index("7", None).ok(), Some(6));
        assert!(column_index("id", None).is_err());
        let twice = csv::ByteRecord::from(vec!["id", "name", "id"]);
        let error = column_index("id", Some(&twice)).unwrap_err().to_string();
        assert_eq!(error, "line 1: columns 1 and 3 are both called \"id\"");
    }

    #[test]
    fn a_delimiter_is_one_character_that_csv_has_no_other_use_for() {
        assert_eq!(parse_delimiter(";"), Ok(b';'));
        assert_eq!([parse_delimiter("\\t"), parse_delimiter("\t")], [Ok(b'\t'), Ok(b'\t')]);
        for text in ["", ";;", "\"", "\n", "ä"] {
            assert!(parse_delimiter(text).is_err(), "{text:?}");
        }
    }
}
