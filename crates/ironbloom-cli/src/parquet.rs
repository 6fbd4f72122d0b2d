//! `ironbloom parquet`: the Bloom filters in Parquet files.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use ironbloom::format::parquet_file::ParquetFile;

use crate::failure::Advice;
use crate::report::{self, Cell};
use crate::{Outcome, output};

/// The Bloom filters that writers put into Parquet files
#[derive(Args)]
pub(crate) struct ParquetArgs {
    #[command(subcommand)]
    command: ParquetCommand,
}

#[derive(Subcommand)]
enum ParquetCommand {
    Blooms(BloomsArgs),
    Check(CheckArgs),
}

/// List the filters of a file, by row group and column
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom parquet blooms events.parquet")]
struct BloomsArgs {
    /// The Parquet file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which row groups may hold a value, according to their filters?
///
/// A row group without a filter may hold anything. Values are those of the column's type: integers, decimals, dates as
/// 2026-11-18, times as 2026-11-18T09:30:00.25Z (with a zone or in UTC; without a zone where the column has none), text as it is,
/// other bytes as text or as hexadecimal digits after 0x. The exit status is 0 if some row group may hold all values, and 1 if
/// none does.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom parquet check events.parquet --where user_id=306047
  ironbloom parquet check events.parquet --where user_id=306047 --where country=SE    both at once")]
struct CheckArgs {
    /// The Parquet file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The column, by its path with dots, and a value. Repeat for several: all must hold
    #[arg(long = "where", value_name = "COLUMN=VALUE", required = true)]
    clauses: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ParquetArgs) -> Result<Outcome> {
    match &args.command {
        ParquetCommand::Blooms(args) => blooms(args),
        ParquetCommand::Check(args) => check(args),
    }
}

fn open(path: &PathBuf) -> Result<ParquetFile<File>> {
    let name = || path.display().to_string();
    ParquetFile::open(File::open(path).with_context(name)?).with_context(name)
}

fn blooms(args: &BloomsArgs) -> Result<Outcome> {
    let mut file = open(&args.file)?;
    let mut records = Vec::new();
    for group in 0..file.groups.len() {
        for column in 0..file.columns.len() {
            let filter =
                file.filter(group, column).with_context(|| args.file.display().to_string())?;
            let Some(filter) = filter else { continue };
            records.push(vec![
                ("row group", Cell::count(group as u64)),
                ("rows", Cell::count(file.groups[group].rows)),
                ("column", Cell::text(&file.columns[column].path)),
                ("size", Cell::bytes(32 * filter.params().blocks())),
                ("fill", Cell::float(filter.fill(), 3)),
                ("estimated keys", Cell::count(filter.estimate_len().round() as u64)),
                ("estimated rate", Cell::rate(filter.estimate_rate())),
            ]);
        }
    }
    if records.is_empty() && !args.json {
        output::note("no filters");
        return Ok(Outcome::NotFound);
    }
    output::print(&report::show_table(&records, args.json))?;
    Ok(if records.is_empty() { Outcome::NotFound } else { Outcome::Found })
}

fn check(args: &CheckArgs) -> Result<Outcome> {
    let mut file = open(&args.file)?;
    let name = || args.file.display().to_string();
    let mut may = vec![true; file.groups.len()];
    for clause in &args.clauses {
        let Some((column, value)) = clause.split_once('=') else {
            return Err(Advice::error(
                format!("not a column and a value: {clause:?}"),
                "write it as --where COLUMN=VALUE",
            ));
        };
        let column = file.column(column.trim()).with_context(name)?;
        let has_filter =
            file.groups.iter().any(|group| group.chunks[column].filter_offset.is_some());
        if !has_filter {
            let column = &file.columns[column].path;
            output::note(&format!("note: {column} has no filters: every row group may hold it"));
        }
        let found = file.may_hold(column, value.trim()).with_context(name)?;
        may.iter_mut().zip(found).for_each(|(may, found)| *may &= found);
    }
    let records: Vec<_> = (0..may.len())
        .filter(|&group| may[group])
        .map(|group| {
            vec![
                ("row group", Cell::count(group as u64)),
                ("rows", Cell::count(file.groups[group].rows)),
            ]
        })
        .collect();
    if !records.is_empty() || args.json {
        output::print(&report::show_table(&records, args.json))?;
    }
    Ok(if records.is_empty() { Outcome::NotFound } else { Outcome::Found })
}
