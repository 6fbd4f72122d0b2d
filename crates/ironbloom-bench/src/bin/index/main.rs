//! Measures the index. `make bench-index` runs most of it.
//!
//! ```text
//! bench-index tables [ROWS]        the experiment of `ironbloom demo tables`, in memory (main.rs)
//! bench-index build                the builds of index and sorted columns, five times in turns
//! bench-index growth               1 M, 10 M, 100 M rows, two columns
//! bench-index skew                 columns that are not uniform (skew.rs)
//! bench-index ask INDEX ROUNDS     conditions from standard input, with everything open (ask.rs)
//! bench-index blocks [TABLE]       the cost of verifying a block of a Parquet file (blocks.rs)
//! ```
//!
//! In memory, the index is compared with a signature file like PostgreSQL's `bloom` (80 bits per row, 2 per column),
//! scanned whole, and with one sorted array of (value, row) per column, which stands in for a B-tree. All three are
//! verified on the same columns, and all must find the same rows.

mod ask;
mod blocks;
mod skew;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use ironbloom_index::{Index, Params};
use ironbloom_rivals::{Columns, Query, Signatures, SortedColumns, predicate, queries};

/// Measure the index on tables
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Ten random columns in memory: equality on one, two and three of them
    Tables {
        /// Rows of the table
        #[arg(default_value_t = 10_000_000)]
        rows: usize,
        /// Rows per block
        #[arg(long, default_value_t = 512)]
        block_rows: u32,
        /// Selectivity in bits
        #[arg(long, default_value_t = 10)]
        selectivity: u32,
    },
    /// Only the builds of index and sorted columns, five times in turns
    Build,
    /// 1 M, 10 M and 100 M rows, two columns
    Growth,
    /// Columns that are not uniform
    Skew,
    /// Ask the conditions on standard input, one per line, with index and tables open
    Ask {
        /// The index
        index: PathBuf,
        /// How often each condition is asked
        rounds: u32,
    },
    /// What it costs to verify a block of a Parquet file
    Blocks {
        /// A table whose first two columns are integers [default: a small one, made on the spot]
        table: Option<PathBuf>,
    },
}

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    match Arguments::parse().experiment {
        Experiment::Tables { rows, block_rows, selectivity } => {
            tables(rows, Params::new(block_rows, selectivity)?)
        }
        Experiment::Build => builds(),
        Experiment::Growth => growth(),
        Experiment::Skew => skew::run(),
        Experiment::Ask { index, rounds } => ask::run(&index, rounds),
        Experiment::Blocks { table } => blocks::run(table),
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

const VALUES: u64 = 1_000_000;

fn tables(rows: usize, params: Params) -> Result<(), Failure> {
    let table = Columns::random(rows, 10, VALUES);
    println!("{rows} rows, 10 columns of 1,000,000 values, one thread; {params:?}\n");
    let (index, index_time) = timed(|| table.index(params));
    let index = index?;
    let (sorted, sorted_time) = timed(|| SortedColumns::build(&table));
    let (signatures, signature_time) = timed(|| Signatures::build(&table));
    let info = index.info();
    let cells = (rows * 10) as f64;
    let print = |name: &str, bytes: u64, time: Duration| {
        let bits = 8.0 * bytes as f64 / cells;
        println!(
            "{name:<12} {:>8.1} MB  {bits:>6.2} bits a cell  built in {time:.2?}",
            bytes as f64 / 1e6
        );
    };
    print("index", info.bytes, index_time);
    print("sorted", sorted.size_in_bytes(), sorted_time);
    print("signatures", signatures.size_in_bytes(), signature_time);
    println!(
        "index / sorted: {:.2} of the build time\n",
        index_time.as_secs_f64() / sorted_time.as_secs_f64()
    );
    for columns in 1..=3 {
        for hit in [true, false] {
            compare(&table, &index, &sorted, &signatures, columns, hit)?;
        }
    }
    Ok(())
}

/// Builds index and sorted arrays alternately, since a single build depends on the machine's other work.
fn builds() -> Result<(), Failure> {
    let table = Columns::random(10_000_000, 10, VALUES);
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let (index, index_time) = timed(|| table.index(Params::default()));
        drop(index?);
        let (sorted, sorted_time) = timed(|| SortedColumns::build(&table));
        drop(sorted);
        let ratio = index_time.as_secs_f64() / sorted_time.as_secs_f64();
        println!("index {index_time:.2?}, sorted {sorted_time:.2?}: {ratio:.2}");
        ratios.push(ratio);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!("median {:.2}", ratios[ratios.len() / 2]);
    Ok(())
}

/// Looks up the same values in all three.
fn compare(
    table: &Columns,
    index: &Index,
    sorted: &SortedColumns,
    signatures: &Signatures,
    columns: usize,
    hit: bool,
) -> Result<(), Failure> {
    let queries = queries(table, columns, 20_000, (!hit).then_some(VALUES));
    let tally = run_index(table, index, &queries)?;
    let (found, sorted_time) =
        best_of(&queries, |queries| queries.iter().map(|query| sorted.find(query)).sum::<u64>());
    assert_eq!(tally.found, found, "index and sorted arrays must find the same rows");
    let few = &queries[..20];
    let ((scan_found, false_rows), scan_time) = timed(|| {
        few.iter().fold((0, 0), |(found, wrong), query| {
            let (more_found, more_wrong) = signatures.find(table, query);
            (found + more_found, wrong + more_wrong)
        })
    });
    assert_eq!(run_index(table, index, few)?.found, scan_found, "and so must the scan");
    println!(
        "{columns} column{} {}  index {:>7.2} µs ({:.2} without verifying; {:>6.3} blocks)  sorted {:>6.2} µs  \
         signatures {:>8.0} µs ({:.0} false rows)",
        if columns == 1 { " " } else { "s" },
        if hit { "hit " } else { "miss" },
        tally.whole,
        tally.lookup,
        tally.blocks as f64 / queries.len() as f64,
        sorted_time,
        scan_time.as_secs_f64() * 1e6 / few.len() as f64,
        false_rows as f64 / few.len() as f64,
    );
    Ok(())
}

/// Runs the queries in ten rounds; returns the sum of their results, and microseconds per query in the fastest round,
/// which other work on the machine disturbed least.
fn best_of(queries: &[Query], mut run: impl FnMut(&[Query]) -> u64) -> (u64, f64) {
    let mut found = 0;
    let mut best = f64::INFINITY;
    for round in queries.chunks(queries.len().div_ceil(10)) {
        let (more, time) = timed(|| run(round));
        found += more;
        best = best.min(time.as_secs_f64() * 1e6 / round.len() as f64);
    }
    (found, best)
}

/// Results and times of the queries on the index.
struct Tally {
    found: u64,
    blocks: usize,
    /// Microseconds per query, verified on the columns.
    whole: f64,
    /// Microseconds per query, candidates only.
    lookup: f64,
}

fn run_index(table: &Columns, index: &Index, queries: &[Query]) -> Result<Tally, Failure> {
    let candidates = |query: &Query| index.candidates(&predicate(table, query));
    let mut blocks = 0;
    for query in queries {
        blocks += candidates(query)?.blocks.len();
    }
    let (_, lookup) = best_of(queries, |queries| {
        queries
            .iter()
            .map(|query| candidates(query).map_or(0, |found| found.blocks.len() as u64))
            .sum()
    });
    let (found, whole) = best_of(queries, |queries| {
        let verified =
            |query: &Query| candidates(query).map_or(0, |found| table.verify(query, &found.blocks));
        queries.iter().map(verified).sum()
    });
    Ok(Tally { found, blocks, whole, lookup })
}

fn growth() -> Result<(), Failure> {
    for rows in [1_000_000, 10_000_000, 100_000_000] {
        let table = Columns::random(rows, 2, VALUES);
        let mut index = table.index(Params::default())?;
        let segments = index.info().segments;
        let (compacted, time) = timed(|| index.compact());
        compacted?;
        let info = index.info();
        print!(
            "{rows:>11} rows, {segments} segments made {} in {time:.2?}, {:.2} bits a cell:",
            info.segments, info.columns[0].bits_per_cell
        );
        for hit in [true, false] {
            let tally =
                run_index(&table, &index, &queries(&table, 2, 20_000, (!hit).then_some(VALUES)))?;
            print!("  {} {:.2} µs", if hit { "hit" } else { "miss" }, tally.whole);
        }
        println!();
    }
    Ok(())
}
