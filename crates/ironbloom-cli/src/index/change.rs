//! `ironbloom index append`, `compact` and `drop`: an index follows its tables.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use ironbloom_index::{Index, append_tables, source_name};

use super::build::{report_bad_rows, with_progress};
use super::csv::CsvArgs;
use super::{Turn, info, paths};
use crate::failure::Advice;
use crate::{Outcome, number, output};

/// Add tables to an index, or the new rows of tables that have grown
///
/// Name a CSV or TSV file of the index again after lines were added to it; first drop a Parquet file that was rewritten. The new
/// index is written beside the old one and then replaces it: processes that have the old one open keep it.
///
/// New CSV files are read like those of the index, unless options say otherwise; files that have grown are read exactly as
/// before.
///
/// Several processes may change an index at the same time: they take turns, and no change is lost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index append 2024.ibx 2024-12.parquet
  ironbloom index append log.ibx log.csv                 after lines were added to it")]
pub(crate) struct AppendArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// The tables to add: files, folders, patterns, or - for a list on standard input
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,

    #[command(flatten)]
    csv: CsvArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn append(args: &AppendArgs) -> Result<Outcome> {
    let tables = paths::tables(&args.tables)?;
    let csv = |remembered| args.csv.options(remembered);
    let lock = || super::lock(&args.index);
    let (lock, mut index) = with_progress(|progress| {
        anyhow::Ok(append_tables(&args.index, &tables, csv, lock, progress)?)
    })?;
    let mut names = Vec::new();
    for table in &tables {
        names.push(source_name(table, &args.index)?);
    }
    report_bad_rows(&index, |name| names.iter().any(|meant| meant == name))?;
    Turn::new(lock).save(&mut index)?;
    report(&args.index, &index, args.json)
}

/// Merge the segments of each table into one
///
/// Every segment adds to the time of a lookup. The tables are not read.
#[derive(Args)]
pub(crate) struct CompactArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn compact(args: &CompactArgs) -> Result<Outcome> {
    let turn = Turn::new(super::lock(&args.index)?);
    let mut index = turn.open()?;
    index.compact()?;
    turn.save(&mut index)?;
    report(&args.index, &index, args.json)
}

/// Remove a table from an index
///
/// The table itself is not touched, and need not exist any more.
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom index drop 2024.ibx 2024-01.parquet")]
pub(crate) struct DropArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// The tables, by their paths or as `index info` shows them
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn drop(args: &DropArgs) -> Result<Outcome> {
    let turn = Turn::new(super::lock(&args.index)?);
    let mut index = turn.open()?;
    for table in &args.tables {
        let name = known_name(&index, table, &args.index)?;
        index.remove(&name)?;
    }
    turn.save(&mut index)?;
    report(&args.index, &index, args.json)
}

/// The name of a table in the index: as given, or found by its path.
fn known_name(index: &Index, table: &Path, file: &Path) -> Result<String> {
    let as_given = table.to_string_lossy().into_owned();
    let by_path = source_name(table, file).ok();
    let names = [Some(as_given.clone()), by_path];
    names.into_iter().flatten().find(|name| index.source(name).is_some()).ok_or_else(|| {
        let known: Vec<&str> = index.sources().iter().map(|source| source.name()).collect();
        Advice::error(
            format!("{}: no table {as_given}", file.display()),
            format!("it has {}", known.join(", ")),
        )
    })
}

fn report(file: &Path, index: &Index, json: bool) -> Result<Outcome> {
    if json {
        output::print(&info::description(file, index, true)?)?;
        return Ok(Outcome::Found);
    }
    let info = index.info();
    output::print(&format!(
        "{}: {} of {} in {}, {}\n",
        file.display(),
        number::plural(info.rows, "row"),
        number::plural(index.sources().len() as u64, "table"),
        number::plural(info.segments as u64, "segment"),
        number::bytes(info.bytes),
    ))?;
    Ok(Outcome::Found)
}
