//! `ironbloom index info`: what is in an index?

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use ironbloom_index::Index;

use crate::report::{self, Cell, Record};
use crate::{Outcome, output};

/// Show what an index holds: tables, columns, bits per cell
#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
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
