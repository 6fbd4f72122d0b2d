//! `ironbloom index find`: the rows that match.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use ironbloom_index::arrow::datatypes::Schema;
use ironbloom_index::{
    Condition, Explanation, Indexed, IndexedError, Location, Match, Predicate, Search, TableError,
    name_in, object_requests,
};

use super::names::Names;
use super::order::{Order, Ordered};
use super::place::Places;
use super::show::{self, Show};
use super::values::one_of;
use crate::failure::Advice;
use crate::{Outcome, number, output};

/// Show the rows that match
///
/// A condition compares a column with a literal: i3 = 306047, name = 'O''Hara', a in (1, 2), b is null, b is not null; also
/// <, <=, >, >=, !=, between, like, ilike, starts_with(column, 'text'), and, or, not and parentheses. =, in and is null find blocks of
/// rows in any table; <, <=, >, >=, between and like 'abc%' exclude blocks where rows are in order; what remains is read and
/// compared. Text and dates are written in single quotes, unusual column names in double quotes. A timestamp without an offset
/// is in the column's time zone; or name another one: '2024-06-01 12:00 Europe/Oslo'. Other patterns, functions, arithmetic
/// and comparisons of two columns are not supported.
///
/// Rows are shown in the order of the tables and of the rows in them, unless --order says otherwise.
///
/// A table that is missing or has changed is an error if rows of it may match. With --skip-changed it is skipped and named.
///
/// A table is opened only if the index names blocks of it (and one table for the names and types of the columns). It is
/// refused if it is missing, or if its length or fingerprint differs: that of the footer of a Parquet file, or of the
/// beginning, the end and samples of a CSV file. Whatever is read of an indexed column or of a CSV file is compared with a
/// checksum; pages of other columns only if their writer stored checksums. Other changes are not noticed: rows that would
/// match now are not found, and a changed value in a column without checksums is shown as it is now. verify --tables reads
/// all tables: it notices all changes except in columns without checksums, which it names.
///
/// Exit status 0 if rows match, 1 if none does, 2 after an error, 3 if a table was skipped: then there may be more rows.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index find t.ibx 'i3 = 306047' 'i8 = 571233'
  ironbloom index find t.ibx \"city = 'Bergen'\" \"city = 'Oslo'\" --or --select name,city
  ironbloom index find t.ibx \"day = '2024-02-29' and amount > 100\" --format csv > days.csv
  ironbloom index find t.ibx \"time >= '2024-06-01' and url like '/cart%'\" --count
  ironbloom index find t.ibx 'id = 7' --count --explain
  ironbloom index find t.ibx --values ids.txt --column user_id --format parquet > found.parquet
  ironbloom index find t.ibx --values ids.parquet --column user_id=id --select _file,_row")]
pub(crate) struct FindArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    /// Conditions that rows must satisfy, all of them
    #[arg(value_name = "CONDITION", required_unless_present = "values")]
    conditions: Vec<String>,

    /// One more condition: --column has one of the values in this file (- for standard input), one per line; or in the column
    /// of that name of a Parquet or CSV file. Can be repeated, each with its --column
    #[arg(long, value_name = "FILE", requires = "column")]
    values: Vec<PathBuf>,

    /// The column of --values; NAME=OTHER if it is called OTHER in that file
    #[arg(long, value_name = "NAME", requires = "values")]
    column: Vec<String>,

    /// Take names of columns for equal if they differ only in upper and lower case
    #[arg(long)]
    ignore_case: bool,

    /// Rows must satisfy one of the conditions, not all
    #[arg(long)]
    or: bool,

    /// Columns to show [default: all]; quote a name that has a comma: '"a,b",c'. _file and _row are where a row is: its table,
    /// and its number there, counted from 0
    #[arg(long, value_name = "A,B", value_parser = Names::parse)]
    select: Option<Names>,

    /// Show rows in the order of these columns instead of that of the tables: 'day desc,name'. Nulls come last. All rows are
    /// held in memory, or with --limit only that many
    #[arg(long, value_name = "A,B desc", value_parser = Order::parse, conflicts_with = "count")]
    order: Option<Order>,

    /// Stop after this many rows
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "count")]
    limit: Option<u64>,

    /// Print only the number of rows
    #[arg(long, conflicts_with_all = ["select", "format"])]
    count: bool,

    /// How rows are shown
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Skip tables that are missing, have changed or cannot be read, and name them on standard error; the exit status is
    /// then 3
    #[arg(long)]
    skip_changed: bool,

    /// Print to standard error what was read, and how long it took
    #[arg(long)]
    explain: bool,
}

/// How rows are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned, for people
    Table,
    /// With a header line; null is an empty field, empty text is ""
    Csv,
    /// One JSON object per line
    #[value(alias = "json")]
    Jsonl,
    /// An Arrow IPC stream, with types
    Arrow,
    /// A Parquet file
    Parquet,
}

pub(crate) fn run(args: &FindArgs) -> Result<Outcome> {
    const TRIES: u32 = 5;
    // An index in a bucket may be replaced while it is read, and the old one is gone then: the new one answers.
    for _ in 1..TRIES {
        let mut has_begun = false;
        match find(args, &mut has_begun) {
            Err(error) if !has_begun && is_replaced(&error) => {}
            done => return done,
        }
    }
    find(args, &mut false)
}

/// Returns true if the index has changed since it was opened.
fn is_replaced(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(IndexedError::Index(error)) if error.is_replaced())
}

/// Rows of the table with this number, or an error.
type Found = Result<(usize, Match), IndexedError>;

/// Shows what matches; `has_begun` is set before anything is shown.
fn find(args: &FindArgs, has_begun: &mut bool) -> Result<Outcome> {
    let start = Instant::now();
    let indexed = Indexed::open(&args.index)?;
    if indexed.index().sources().is_empty() && indexed.followed().is_none() {
        anyhow::bail!("{}: there is no table in it", args.index.display());
    }
    let schema = indexed.schema().map_err(advised)?;
    let predicate = predicate(args, &schema)?;
    let opened = start.elapsed();
    let names = selected(args, &schema);
    let order = args.order.as_ref().map(|order| renamed(order, args, &schema));
    let places = Places::new(with_order(&names, order.as_ref()), &schema);
    let mut search = indexed.find(&predicate, &places.read())?;
    if args.skip_changed {
        search.skip_changed();
    }
    if args.count {
        search.count_only();
    }
    *has_begun = true;
    let mut show: Box<dyn Show> = match args.format {
        _ if args.count => Box::new(show::Count::default()),
        Format::Table => Box::new(show::Aligned::new(&names)),
        Format::Csv => Box::new(show::Csv::new(&names)),
        Format::Jsonl => Box::new(show::JsonLines::new(&names)),
        Format::Arrow => Box::new(show::ArrowStream::new(places.types(&names)?)?),
        Format::Parquet => Box::new(show::ParquetFile::new(places.types(&names)?)?),
    };
    let mut left = args.limit.unwrap_or(u64::MAX);
    if let Some(order) = &order {
        let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let read = places.types(&with_order(&names, Some(order)))?;
        show = Box::new(Ordered::new(show, read, order, names.len(), limit)?);
        // The first rows may be anywhere.
        left = u64::MAX;
    }
    let mut rows = 0;
    let search = ahead(search, |found| {
        for found in found {
            let (number, found) = found.map_err(advised)?;
            let batch = places.with_places(&found, &indexed.location(number))?;
            let shown = batch.num_rows().min(usize::try_from(left).unwrap_or(usize::MAX));
            rows += shown;
            left -= shown as u64;
            show.batch(&batch.slice(0, shown))?;
            if left == 0 {
                break;
            }
        }
        show.finish()
    })?;
    if args.explain {
        let index_bytes = indexed.index().bytes_read();
        output::note(&explanation(&search.explanation(), index_bytes, opened, start.elapsed()));
        if args.index.is_object() || object_requests() > 0 {
            output::note(&format!("requests {}", number::count(object_requests())));
        }
    }
    for error in search.skipped() {
        output::note(&format!("skipped: {error}"));
    }
    Ok(match rows {
        _ if !search.skipped().is_empty() => Outcome::Incomplete,
        0 => Outcome::NotFound,
        _ => Outcome::Found,
    })
}

/// Shows what a search finds while it goes on, and returns it when it has ended or enough was shown.
fn ahead<'a>(
    search: Search<'a>,
    show: impl FnOnce(Receiver<Found>) -> Result<()>,
) -> Result<Search<'a>> {
    /// Steps that may wait to be shown.
    const WAITING: usize = 1;
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(WAITING);
        let searching = scope.spawn(move || {
            let mut search = search;
            for found in &mut search {
                // What nothing is waiting for any more need not be found.
                if sender.send(found).is_err() {
                    break;
                }
            }
            search
        });
        let shown = show(receiver);
        let search = searching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        shown.map(|()| search)
    })
}

/// Adds what to do about a table that has changed.
fn advised(error: IndexedError) -> anyhow::Error {
    const HINT: &str = "bring it back, or take it out with `index drop` and add it again with `index append` (of an Iceberg or \
                        Delta table: `index refresh`); --skip-changed finds rows in the other tables";
    // A table that has only grown has a hint already.
    let has_grown = matches!(error, IndexedError::Table(TableError::Grown { .. }));
    if error.is_of_one_table() && !has_grown {
        Advice::error(error.to_string(), HINT)
    } else {
        error.into()
    }
}

fn predicate(args: &FindArgs, schema: &Schema) -> Result<Predicate> {
    let typed = |text: &String| {
        let mut condition = Condition::parse(text)?;
        if args.ignore_case {
            condition = condition.with_names_of(schema);
        }
        condition.typed(schema).with_context(|| format!("in `{text}`"))
    };
    let mut parts = args.conditions.iter().map(typed).collect::<Result<Vec<_>>>()?;
    anyhow::ensure!(
        args.values.len() == args.column.len(),
        "there are {} --values and {} --column: each list is for one column",
        args.values.len(),
        args.column.len()
    );
    for (file, column) in args.values.iter().zip(&args.column) {
        parts.push(one_of(named(column, args, schema), file, schema)?);
    }
    Ok(if args.or { Predicate::Or(parts) } else { Predicate::And(parts) })
}

/// The column that a name means.
fn named<'a>(name: &'a str, args: &FindArgs, schema: &'a Schema) -> &'a str {
    let known = args.ignore_case.then(|| name_in(schema, name)).flatten();
    known.unwrap_or(name)
}

fn renamed(order: &Order, args: &FindArgs, schema: &Schema) -> Order {
    let mut order = order.clone();
    for column in &mut order.0 {
        column.name = named(&column.name, args, schema).to_owned();
    }
    order
}

fn selected<'a>(args: &'a FindArgs, schema: &'a Schema) -> Vec<&'a str> {
    match &args.select {
        _ if args.count => Vec::new(),
        Some(Names(names)) => names.iter().map(|name| named(name, args, schema)).collect(),
        None => schema.fields().iter().map(|field| field.name().as_str()).collect(),
    }
}

/// The columns that are read: those that are shown, and then others to order by.
fn with_order<'a>(shown: &[&'a str], order: Option<&'a Order>) -> Vec<&'a str> {
    let mut read = shown.to_vec();
    for column in order.into_iter().flat_map(|order| &order.0) {
        if !read.contains(&column.name.as_str()) {
            read.push(&column.name);
        }
    }
    read
}

/// Describes the work done, one line for each step.
fn explanation(did: &Explanation, index_bytes: u64, opened: Duration, all: Duration) -> String {
    let tables = &did.tables;
    let (mut reads, time) = (tables.verify_reads, number::time);
    reads.add(tables.select_reads);
    let share = 100.0 * did.candidates as f64 / did.considered.max(1) as f64;
    let own = tables.own_filters;
    let own = if own.asked == 0 {
        String::new()
    } else {
        let asked = number::plural(own.asked, "row group");
        format!("filters  of Parquet: {asked} asked, {} excluded\n", number::count(own.excluded))
    };
    format!(
        "index    {} read\n\
         tables   {} excluded by their folders\n\
         blocks   {} considered, {} ({share:.3} %)\n\
         {own}\
         pages    {} read, {} from the cache, {}\n\
         rows     {} compared, {} match\n\
         time     opening {}, index {}, reading {}, comparing {}, showing {}, all {}",
        number::bytes(index_bytes),
        number::count(did.excluded_tables),
        number::count(did.considered),
        number::plural(did.candidates, "candidate"),
        number::count(reads.pages),
        number::count(reads.cached_pages),
        number::bytes(reads.bytes),
        number::count(tables.rows_verified),
        number::count(tables.rows_matched),
        time(opened),
        time(did.index_time),
        time(tables.read_time),
        time(tables.compare_time),
        time(tables.select_time),
        time(all),
    )
}
