//! `ironbloom index build`: an index from tables.

use std::time::Instant;

use anyhow::Result;
use clap::Args;
use ironbloom_index::{
    BuildProgress, CsvOptions, Index, Location, Params, ReadOptions, TableFormat, csv_options_in,
    index_followed_table, index_tables_with,
};

use super::csv::CsvArgs;
use super::hive::HiveArgs;
use super::names::Names;
use super::resources::ResourceArgs;
use super::{info, paths};
use crate::progress::Progress;
use crate::{Outcome, dash, file, number, output};

/// Build an index on Parquet, CSV or TSV tables
///
/// The tables stay where they are and are read again when rows are searched. If a table changes, searches report it, and the
/// index must be rebuilt. An existing index is replaced; any other file is not, unless it is empty.
///
/// A folder stands for all tables in it and in its subfolders, a quoted pattern ('logs/*/2024-??.csv') for the matching
/// files ([a-c] stands for one of these characters, ** for any folders), and - for the files listed on standard input, one
/// per line. Tables and the index may also be in buckets (s3://bucket/key, gs://, az://, https://), where a prefix stands for
/// all tables under it; see `ironbloom index`. CSV and TSV files may be compressed (.csv.gz, .csv.zst): they are decompressed
/// into a temporary file whenever rows are read.
///
/// If all tables are in folders such as country=SE/day=2026-01-01/, these are columns, too: they can be shown, and conditions
/// on them exclude whole tables. A column of the same name in a table is not read then. --hive off turns this off.
///
/// --iceberg and --delta index the current snapshot of such a table: the files that its own metadata names, without the rows
/// that have been deleted, with its current columns. The table is only read. What is not supported is refused by name.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index build t.parquet -o t.ibx
  ironbloom index build 2024-*.parquet -o 2024.ibx --columns user_id,url
  ironbloom index build --delta lake/sales -o sales.ibx
  ironbloom index build --delta lake/sales --at 41 -o sales-41.ibx
  ironbloom index build 's3://bucket/logs/*.parquet' -o s3://bucket/logs/t.ibx
  ironbloom index build t.csv -o t.ibx --selectivity 4     half the size, more rows to compare
  ironbloom index build t.txt -o t.ibx --delimiter ';' --null NA --schema zip:text,day:date
  find . -name '*.csv' | ironbloom index build - -o t.ibx  the files that are listed")]
pub(crate) struct BuildArgs {
    /// The tables, all with the indexed columns: files, folders, patterns, URLs, or - for a list on standard input
    #[arg(value_name = "TABLE", required_unless_present_any = ["iceberg", "delta"])]
    tables: Vec<Location>,

    /// An Iceberg table: its folder, or its metadata file (*.metadata.json). `index refresh` follows it
    #[arg(long, value_name = "PATH", group = "lake", conflicts_with_all = ["tables", "hive_types"])]
    iceberg: Option<Location>,

    /// A Delta table: its folder. `index refresh` follows it
    #[arg(long, value_name = "PATH", group = "lake", conflicts_with_all = ["tables", "hive_types"])]
    delta: Option<Location>,

    /// Index this version of the table instead of the current one: of Delta its number, of Iceberg the id of a snapshot, a tag or a
    /// branch. The index stays with it, and cannot be refreshed
    #[arg(long, value_name = "VERSION", requires = "lake", allow_hyphen_values = true)]
    at: Option<String>,

    /// The index
    #[arg(short, long, value_name = "FILE")]
    output: Location,

    /// Columns to index [default: all that can be indexed]; quote a name that has a comma: '"a,b",c'
    #[arg(long, value_name = "A,B", value_parser = Names::parse)]
    columns: Option<Names>,

    #[command(flatten)]
    csv: CsvArgs,

    #[command(flatten)]
    hive: HiveArgs,

    /// Rows per block, a power of two: the unit that is read and compared
    #[arg(long, value_name = "ROWS", default_value_t = Params::default().block_rows())]
    block_rows: u32,

    /// Selectivity: a row that does not match is read with a probability of 2^-BITS per column; the index takes about BITS + 2
    /// bits per cell
    #[arg(long, value_name = "BITS", default_value_t = Params::default().selectivity())]
    selectivity: u32,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &BuildArgs) -> Result<Outcome> {
    if let Some(output) = args.output.as_file() {
        dash::require_file(
            output,
            "an index must be a file: it is read from its place, beside its tables",
        )?;
        file::refuse_unwritable(output)?;
    }
    let followed = match (&args.iceberg, &args.delta) {
        (Some(table), _) => Some((TableFormat::Iceberg, table)),
        (_, Some(table)) => Some((TableFormat::Delta, table)),
        _ => None,
    };
    let tables = paths::tables(&args.tables)?;
    refuse_same(&args.output, &tables)?;
    Index::check_replaceable(&args.output)?;
    let params = Params::new(args.block_rows, args.selectivity)?;
    let start = Instant::now();
    let columns = args.columns.as_ref().map(|Names(names)| names.as_slice());
    let mut options = ReadOptions::default();
    options.csv = args.csv.options(CsvOptions::default());
    options.hive = args.hive.options();
    let resources = args.resources.resources();
    let mut index = with_build_progress(|progress| {
        let file = &args.output;
        anyhow::Ok(match followed {
            Some((format, table)) => {
                let version = args.at.as_ref().map_or(format.into(), |at| format.at(at));
                index_followed_table(version, table, columns, params, file, resources, progress)?
            }
            None => {
                index_tables_with(&tables, columns, params, file, &options, resources, progress)?
            }
        })
    })?;
    report_bad_rows(&index, |_| true)?;
    super::lock(&args.output)?.save(&mut index)?;
    output::print(&if args.json {
        info::description(&args.output, &index, true)?
    } else {
        summary(&args.output, &index, start)
    })?;
    Ok(Outcome::Found)
}

/// Refuses an index that is also a table.
fn refuse_same(output: &Location, tables: &[Location]) -> Result<()> {
    let Some(path) = output.as_file() else {
        anyhow::ensure!(!tables.contains(output), "{output}: is both an input and the output");
        return Ok(());
    };
    let files = tables.iter().filter_map(|table| Some(table.as_file()?.to_owned()));
    file::refuse_same(path, &files.collect::<Vec<_>>())
}

/// Builds an index and shows the progress.
pub(super) fn with_build_progress<T>(build: impl FnOnce(&mut dyn FnMut(BuildProgress)) -> T) -> T {
    let mut progress = Progress::new(None);
    let made = build(&mut |now| progress.update_tables(now.rows, now.bytes, now.total_bytes));
    progress.finish();
    made
}

/// Reads tables and shows the progress.
pub(super) fn with_progress<T>(read: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    let mut progress = Progress::new(None);
    let made = read(&mut |rows| progress.update_rows(rows));
    progress.finish();
    made
}

/// Names the tables of which rows were skipped.
pub(super) fn report_bad_rows(index: &Index, is_meant: impl Fn(&str) -> bool) -> Result<()> {
    let sources = index.sources().iter().enumerate();
    for (number, source) in sources.filter(|(_, source)| is_meant(source.name())) {
        if let Some((_, bad @ 1..)) = csv_options_in(index.blob(number)?) {
            let rows = number::plural(bad, "bad row");
            output::note(&format!("{}: {rows} skipped", source.name()));
        }
    }
    Ok(())
}

/// Reports what was built, how fast, and its size.
fn summary(file: &Location, index: &Index, start: Instant) -> String {
    let info = index.info();
    let seconds = start.elapsed().as_secs_f64();
    format!(
        "{}: {} of {} in {seconds:.1} s, {} rows/s\n\n{}",
        file.display(),
        number::plural(info.rows, "row"),
        number::plural(info.columns.len() as u64, "column"),
        number::count((info.rows as f64 / seconds) as u64),
        info::columns(index, false),
    )
}
