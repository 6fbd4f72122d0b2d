//! `ironbloom index info` and `verify`: what is in an index, and is it whole?

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use ironbloom_index::{Index, Indexed};

use super::build::with_progress;
use crate::number::plural;
use crate::report::{self, Cell, Record};
use crate::{Outcome, output};

/// Show what an index holds: tables, columns, bits a cell
#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn info(args: &InfoArgs) -> Result<Outcome> {
    let index = Index::open(&args.index)?;
    output::print(&description(&args.index, &index, args.json)?)?;
    Ok(Outcome::Found)
}

/// Everything about an index.
pub(super) fn description(file: &Path, index: &Index, json: bool) -> Result<String> {
    let info = index.info();
    let record: Record = vec![
        ("file", Cell::text(file.display().to_string())),
        ("rows", Cell::count(info.rows)),
        ("block rows", Cell::count(index.params().block_rows().into())),
        ("selectivity", Cell::count(index.params().selectivity().into())),
        ("blocks", Cell::count(info.blocks)),
        ("segments", Cell::count(info.segments as u64)),
        ("size of columns", Cell::bytes(info.bytes)),
        ("size of notes on tables", Cell::bytes(info.blob_bytes)),
    ];
    let parts = [report::show_record(&record, json), columns(index, json), tables(index, json)];
    Ok(if json {
        let parts: Vec<serde_json::Value> =
            parts.iter().map(|part| serde_json::from_str(part)).collect::<Result<_, _>>()?;
        let [mut whole, columns, tables] = <[_; 3]>::try_from(parts).expect("three parts");
        whole["columns"] = columns;
        whole["tables"] = tables;
        format!("{whole:#}\n")
    } else {
        parts.join("\n")
    })
}

/// The columns with what they take.
pub(super) fn columns(index: &Index, json: bool) -> String {
    let record = |column: &ironbloom_index::ColumnInfo| {
        vec![
            ("column", Cell::text(&column.name)),
            ("values", Cell::text(column.kind.to_string())),
            ("size", Cell::bytes(column.bytes)),
            ("bits/cell", Cell::float(column.bits_per_cell, 2)),
        ]
    };
    report::show_table(&index.info().columns.iter().map(record).collect::<Vec<_>>(), json)
}

fn tables(index: &Index, json: bool) -> String {
    let record = |source: &ironbloom_index::Source| {
        vec![
            ("table", Cell::text(source.name())),
            ("rows", Cell::count(source.rows())),
            ("file size", Cell::bytes(source.bytes())),
        ]
    };
    report::show_table(&index.sources().iter().map(record).collect::<Vec<_>>(), json)
}

/// Check a whole index against its checksums; with --tables, all its tables, too
///
/// Without --tables the tables are not touched. With it, all pages of all indexed columns are read and compared with the
/// checksums of the index, and pages of other columns with those of their writer. Names every damaged part and every
/// changed table.
///
/// What index find notices by itself:
///
/// A table is opened only if the index names blocks of it (and one for the names and types of columns). It is refused
/// if it is missing, or if its length or a fingerprint of it differs: of the footer of a Parquet file, of the
/// beginning, the end and samples of a CSV file. Whatever is read of an indexed column, or of a CSV file, is compared
/// with a checksum; pages of other columns are if their writer has put checksums into them. A change in anything else
/// is not noticed: rows that it would add to the answer are not found, and a value that it changed in a column without
/// checksums is shown as it is now. verify --tables reads all tables: it notices changes everywhere except in columns
/// without checksums, which it names.
///
/// Status 0 if all is well, 2 if not.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Read all tables, too, and compare them with what they were when they were indexed
    #[arg(long)]
    tables: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<Outcome> {
    let verified = match Indexed::open(&args.index) {
        Ok(indexed) => verified(&indexed, args.tables),
        Err(error) => Verified { wrong: vec![error.to_string()], ..Verified::default() },
    };
    if args.json {
        output::print(&report::show_record(&verified.record(args), true))?;
    } else if verified.wrong.is_empty() {
        output::print(&verified.summary(args))?;
    }
    if verified.wrong.is_empty() {
        return Ok(Outcome::Found);
    }
    bail!("{}", verified.wrong.join("\nerror: "))
}

/// What was found.
#[derive(Default)]
struct Verified {
    rows: u64,
    tables: u64,
    wrong: Vec<String>,
    /// Columns without checksums.
    unchecked: Vec<String>,
}

fn verified(indexed: &Indexed, with_tables: bool) -> Verified {
    let index = indexed.index();
    let mut verified = Verified {
        rows: index.info().rows,
        tables: index.sources().len() as u64,
        wrong: index.verify().iter().map(ToString::to_string).collect(),
        unchecked: Vec::new(),
    };
    if with_tables {
        let check = with_progress(|progress| indexed.verify_tables(progress));
        verified.wrong.extend(check.errors.iter().map(ToString::to_string));
        let unchecked = check.unchecked.iter();
        let named = unchecked.map(|(table, columns)| format!("{table}: {}", columns.join(", ")));
        verified.unchecked = named.collect();
    }
    verified
}

impl Verified {
    fn summary(&self, args: &VerifyArgs) -> String {
        let mut text = format!(
            "{}: whole, {} of {}; {}\n",
            args.index.display(),
            plural(self.rows, "row"),
            plural(self.tables, "table"),
            match args.tables {
                true => "the tables are as they were indexed",
                false => "the tables were not read (--tables does)",
            }
        );
        for columns in &self.unchecked {
            text += &format!("not compared, because there are no checksums: {columns}\n");
        }
        text
    }

    fn record(&self, args: &VerifyArgs) -> Record {
        let whole = self.wrong.is_empty();
        let state = if whole { "whole".to_owned() } else { self.wrong.join("; ") };
        let mut record = vec![
            ("file", Cell::text(args.index.display().to_string())),
            ("state", Cell::text(state)),
            ("tables", Cell::text(if args.tables { "read" } else { "not read" })),
        ];
        if args.tables {
            record.push(("not compared", Cell::text(self.unchecked.join("; "))));
        }
        record
    }
}
