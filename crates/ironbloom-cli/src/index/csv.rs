//! The flags that say how CSV files are to be read.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use ironbloom_index::CsvOptions;

use super::names::Types;

/// How CSV files are read. An index remembers it.
#[derive(Args)]
#[command(next_help_heading = "CSV files")]
pub(super) struct CsvArgs {
    /// Delimiter of fields: a character, or tab [default: comma; tab in .tsv files]. With it, files of any name are read as CSV
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Quote around fields that contain delimiters or line ends: a character, or none [default: "]
    #[arg(long, value_name = "CHAR", value_parser = quote)]
    quote: Option<Quote>,

    /// There is no header: the first line is a row, and columns are called column_1, column_2, …
    #[arg(long)]
    no_header: bool,

    /// Types of columns: zip:text,day:date (bool, int, float, text, date, timestamp). Other types are inferred
    #[arg(long, value_name = "COLUMN:TYPE,…", value_parser = Types::parse)]
    schema: Option<Types>,

    /// Do not infer types: columns are text, except those in --schema
    #[arg(long)]
    all_text: bool,

    /// A word that means null, like the empty field. Can be repeated
    #[arg(long = "null", value_name = "WORD")]
    nulls: Vec<String>,

    /// What to do with rows that have the wrong number of fields, are not UTF-8, or do not match --schema
    #[arg(long, value_enum)]
    bad_rows: Option<BadRows>,
}

/// Character that encloses fields, if any.
#[derive(Clone, Copy, Debug)]
struct Quote(Option<u8>);

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BadRows {
    /// Stop at the first one (the default)
    Error,
    /// Skip them, and say how many
    Skip,
}

impl CsvArgs {
    /// These options on top of what an index remembers.
    pub(super) fn options(&self, remembered: CsvOptions) -> CsvOptions {
        let mut options = remembered;
        options.delimiter = self.delimiter.or(options.delimiter);
        if let Some(Quote(quote)) = self.quote {
            options.quote = quote;
        }
        options.header &= !self.no_header;
        options.all_text |= self.all_text;
        if let Some(Types(types)) = &self.schema {
            options.types.clone_from(types);
        }
        if !self.nulls.is_empty() {
            options.nulls.clone_from(&self.nulls);
        }
        if let Some(bad_rows) = self.bad_rows {
            options.skip_bad_rows = bad_rows == BadRows::Skip;
        }
        options
    }
}

fn delimiter(text: &str) -> Result<u8> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        text => character(text),
    }
}

fn quote(text: &str) -> Result<Quote> {
    match text {
        "none" | "" => Ok(Quote(None)),
        text => Ok(Quote(Some(character(text)?))),
    }
}

fn character(text: &str) -> Result<u8> {
    match text.as_bytes() {
        &[byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(byte),
        _ => bail!("`{text}` is not one ASCII character"),
    }
}
