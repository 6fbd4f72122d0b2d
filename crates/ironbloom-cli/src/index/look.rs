//! `ironbloom index info` and `verify`: what is in an index, and is it whole?

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use ironbloom_index::{Index, Indexed};

use crate::number::plural;
use crate::report::{self, Cell, Record};
use crate::{Outcome, failure, output};

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

/// Read a whole index and check it against its checksums, and its tables against what they were
///
/// Names every damaged part and every changed table. Status 0 if all is well, 2 if not.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(args: &VerifyArgs) -> Result<Outcome> {
    let index = Index::open(&args.index).map_err(anyhow::Error::from);
    let wrong = match &index {
        Ok(index) => faults(index, &args.index),
        Err(error) => vec![failure::message(error)],
    };
    if args.json {
        let state = if wrong.is_empty() { "whole".to_owned() } else { wrong.join("; ") };
        let record = vec![
            ("file", Cell::text(args.index.display().to_string())),
            ("state", Cell::text(state)),
        ];
        output::print(&report::show_record(&record, true))?;
    }
    let index = index?;
    if wrong.is_empty() && !args.json {
        let info = index.info();
        output::print(&format!(
            "{}: whole, {} of {}\n",
            args.index.display(),
            plural(info.rows, "row"),
            plural(index.sources().len() as u64, "table")
        ))?;
    }
    if wrong.is_empty() {
        return Ok(Outcome::Found);
    }
    bail!("{}", wrong.join("\nerror: "))
}

/// What is wrong with an index that could be opened, or with its tables.
fn faults(index: &Index, path: &Path) -> Vec<String> {
    let mut wrong: Vec<String> = index.verify().iter().map(ToString::to_string).collect();
    if wrong.is_empty() {
        wrong.extend(Indexed::open(path).err().map(|error| error.to_string()));
    }
    wrong
}
