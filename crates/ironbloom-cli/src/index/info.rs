//! `ironbloom index info`: what is in an index?

use anyhow::Result;
use clap::Args;
use ironbloom_index::{Index, Indexed, Location};

use crate::report::{self, Cell, Record};
use crate::{Outcome, output};

/// Show what an index holds: tables, columns, bits per cell
#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    let index = Index::open(&args.index)?;
    output::print(&description(&args.index, &index, args.json)?)?;
    if args.json {
        return Ok(Outcome::Found);
    }
    let indexed = Indexed::open(&args.index)?;
    if let Some((format, table, snapshot)) = indexed.followed() {
        let verb = if indexed.version_asked_for().is_some() { "stays with" } else { "follows" };
        let table = table.display();
        output::print(&format!("\n{verb} the {format} table {table}, snapshot {snapshot}\n"))?;
    }
    Ok(Outcome::Found)
}

/// Everything about an index.
pub(super) fn description(file: &Location, index: &Index, json: bool) -> Result<String> {
    let info = index.info();
    let sources = 0..index.sources().len();
    let deleted =
        sources.map(|source| index.deleted_rows(source)).collect::<Result<Vec<_>, _>>()?;
    let all_deleted: u64 = deleted.iter().sum();
    let mut record: Record = vec![
        ("file", Cell::text(file.display().to_string())),
        ("rows", Cell::count(info.rows)),
        ("block rows", Cell::count(index.params().block_rows().into())),
        ("selectivity", Cell::count(index.params().selectivity().into())),
        ("blocks", Cell::count(info.blocks)),
        ("segments", Cell::count(info.segments as u64)),
        ("size of columns", Cell::bytes(info.bytes)),
        ("size of min and max", Cell::bytes(info.bounds_bytes)),
        ("size of notes on tables", Cell::bytes(info.blob_bytes)),
    ];
    if json || all_deleted > 0 {
        record.insert(2, ("deleted rows", Cell::count(all_deleted)));
    }
    let tables = tables(index, &deleted, json);
    let parts = [report::show_record(&record, json), columns(index, json), tables];
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
            ("min and max", Cell::bytes(column.bounds_bytes)),
            ("bits/cell", Cell::float(column.bits_per_cell, 2)),
        ]
    };
    report::show_table(&index.info().columns.iter().map(record).collect::<Vec<_>>(), json)
}

/// The tables, with the number of rows that have been deleted from each.
fn tables(index: &Index, deleted: &[u64], json: bool) -> String {
    let with_deleted = json || deleted.iter().any(|&rows| rows > 0);
    let record = |(source, &deleted): (&ironbloom_index::Source, &u64)| {
        let mut record = vec![
            ("table", Cell::text(source.name())),
            ("rows", Cell::count(source.rows())),
            ("file size", Cell::bytes(source.bytes())),
        ];
        if with_deleted {
            record.insert(2, ("deleted rows", Cell::count(deleted)));
        }
        record
    };
    let tables = index.sources().iter().zip(deleted);
    report::show_table(&tables.map(record).collect::<Vec<_>>(), json)
}
