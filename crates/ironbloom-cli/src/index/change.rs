//! `ironbloom index append`, `compact` and `drop`: an index follows its tables.

use anyhow::{Context as _, Result, bail};
use clap::Args;
use ironbloom_index::{Index, Indexed, IndexedError, Location, append_tables, parse, source_name};

use super::build::{report_bad_rows, with_build_progress};
use super::csv::CsvArgs;
use super::resources::ResourceArgs;
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
    index: Location,

    /// The tables to add: files, folders, patterns, URLs, or - for a list on standard input
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<Location>,

    #[command(flatten)]
    csv: CsvArgs,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn append(args: &AppendArgs) -> Result<Outcome> {
    let tables = paths::tables(&args.tables)?;
    let csv = |remembered| args.csv.options(remembered);
    let lock = || super::lock(&args.index);
    let resources = args.resources.resources();
    let index = with_build_progress(|progress| {
        anyhow::Ok(append_tables(&args.index, &tables, csv, resources, lock, Turn::save, progress)?)
    })?;
    let mut names = Vec::new();
    for table in &tables {
        names.push(source_name(table, &args.index)?);
    }
    report_bad_rows(&index, |name| names.iter().any(|meant| meant == name))?;
    report(&args.index, &index, args.json)
}

/// Merge the segments of each table, and those of small tables, into one
///
/// Every segment adds to the time of a lookup. The tables are not read. What is left of dropped tables is removed. Segments
/// that are too large to be merged in the memory given stay as they are: of 1 GiB, such of 150 million rows together.
#[derive(Args)]
pub(crate) struct CompactArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn compact(args: &CompactArgs) -> Result<Outcome> {
    let folder = ironbloom_index::temporary_folder(&args.index);
    let index = super::change(&args.index, |index| {
        Ok(index.compact_within(args.resources.resources(), &folder)?)
    })?;
    report(&args.index, &index, args.json)
}

/// Remove tables from an index
///
/// The tables themselves are not touched, and need not exist any more.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index drop 2024.ibx 2024-01.parquet
  ironbloom index drop sales.ibx --where \"country = 'SE' and day < '2026-01-01'\"")]
pub(crate) struct DropArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    /// The tables, by their paths or as `index info` shows them
    #[arg(value_name = "TABLE", required_unless_present = "condition")]
    tables: Vec<Location>,

    /// The tables in folders that satisfy this condition, such as those in country=SE/
    #[arg(long = "where", value_name = "CONDITION", conflicts_with = "tables")]
    condition: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn drop(args: &DropArgs) -> Result<Outcome> {
    if Indexed::open(&args.index)?.followed().is_some() {
        return Err(IndexedError::Following { path: args.index.clone() }.into());
    }
    let index = super::change(&args.index, |index| {
        for name in dropped(index, args)? {
            index.remove(&name)?;
        }
        Ok(())
    })?;
    report(&args.index, &index, args.json)
}

/// The names of the tables that are meant.
fn dropped(index: &Index, args: &DropArgs) -> Result<Vec<String>> {
    let Some(condition) = &args.condition else {
        let names = args.tables.iter().map(|table| known_name(index, table, &args.index));
        return names.collect();
    };
    // In its present state: another writer may have changed it before our turn.
    let indexed = Indexed::open(&args.index)?;
    let columns = indexed.constant_schema();
    if columns.fields().is_empty() {
        bail!("{}: its tables are not in folders such as country=SE", args.index.display());
    }
    let names: Vec<&str> = columns.fields().iter().map(|field| field.name().as_str()).collect();
    let about = || format!("--where is about the names of folders ({})", names.join(", "));
    let predicate = parse(condition, &columns).with_context(about)?;
    let tables = indexed.tables_where(&predicate)?;
    if tables.is_empty() {
        bail!("{}: no table is in folders where {condition}", args.index.display());
    }
    let names = tables.into_iter().map(|number| indexed.index().sources()[number].name());
    Ok(names.filter(|name| index.source(name).is_some()).map(str::to_owned).collect())
}

/// The name of a table in the index: as given, or found by its path.
fn known_name(index: &Index, table: &Location, file: &Location) -> Result<String> {
    let as_given = table.to_string();
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

fn report(file: &Location, index: &Index, json: bool) -> Result<Outcome> {
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
