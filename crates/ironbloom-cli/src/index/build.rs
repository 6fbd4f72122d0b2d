//! `ironbloom index build`: an index from tables.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use ironbloom_index::{CsvOptions, Index, Params, csv_options_in, index_tables_with};

use super::csv::CsvArgs;
use super::names::Names;
use super::{Turn, info, paths};
use crate::progress::Progress;
use crate::{Outcome, dash, file, number, output};

/// Build an index on Parquet, CSV or TSV tables
///
/// The tables stay where they are and are read again when rows are searched. If a table changes, searches report it, and the
/// index must be rebuilt. An existing index is replaced; any other file is not, unless it is empty.
///
/// A folder stands for all tables in it and in its subfolders, a quoted pattern ('logs/*/2024-??.csv') for the matching
/// files, and - for the files listed on standard input, one per line. CSV and TSV files may be compressed (.csv.gz,
/// .csv.zst): they are decompressed into a temporary file whenever rows are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index build t.parquet -o t.ibx
  ironbloom index build 2024-*.parquet -o 2024.ibx --columns user_id,url
  ironbloom index build t.csv -o t.ibx --selectivity 4     half the size, more rows to compare
  ironbloom index build t.txt -o t.ibx --delimiter ';' --null NA --schema zip:text,day:date
  find . -name '*.csv' | ironbloom index build - -o t.ibx  the files that are listed")]
pub(crate) struct BuildArgs {
    /// The tables, all with the indexed columns: files, folders, patterns, or - for a list on standard input
    #[arg(value_name = "TABLE", required = true)]
    tables: Vec<PathBuf>,

    /// The index
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Columns to index [default: all that can be indexed]; quote a name that has a comma: '"a,b",c'
    #[arg(long, value_name = "A,B", value_parser = Names::parse)]
    columns: Option<Names>,

    #[command(flatten)]
    csv: CsvArgs,

    /// Rows per block, a power of two: the unit that is read and compared
    #[arg(long, value_name = "ROWS", default_value_t = Params::default().block_rows())]
    block_rows: u32,

    /// Selectivity: a row that does not match is read with a probability of 2^-BITS per column; the index takes about BITS + 2
    /// bits per cell
    #[arg(long, value_name = "BITS", default_value_t = Params::default().selectivity())]
    selectivity: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &BuildArgs) -> Result<Outcome> {
    dash::require_file(
        &args.output,
        "an index must be a file: it is read from its place, beside its tables",
    )?;
    let tables = paths::tables(&args.tables)?;
    file::refuse_same(&args.output, &tables)?;
    file::refuse_unwritable(&args.output)?;
    Index::check_replaceable(&args.output)?;
    let params = Params::new(args.block_rows, args.selectivity)?;
    let start = Instant::now();
    let columns = args.columns.as_ref().map(|Names(names)| names.as_slice());
    let csv = args.csv.options(CsvOptions::default());
    let mut index = with_progress(|progress| {
        anyhow::Ok(index_tables_with(&tables, columns, params, &args.output, &csv, progress)?)
    })?;
    report_bad_rows(&index, |_| true)?;
    Turn::new(super::lock(&args.output)?).save(&mut index)?;
    output::print(&if args.json {
        info::description(&args.output, &index, true)?
    } else {
        summary(&args.output, &index, start)
    })?;
    Ok(Outcome::Found)
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

/// What was built, how fast, and its size.
fn summary(file: &Path, index: &Index, start: Instant) -> String {
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
