//! `ironbloom demo`: classic experiments, on this machine.
//!
//! Each experiment is a file. It prints what it does, a table, and what the table shows. Numbers are measured here and
//! now, and published ones are quoted beside them.

mod attributes;
mod double_hashing;
mod integers;
#[cfg(feature = "index")]
mod postgres;
mod strings;
#[cfg(feature = "index")]
mod tables;
mod variants;

use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueEnum};
use ironbloom::hash::mix64;
use serde_json::json;

use crate::report::{self, Record};
use crate::{Outcome, number, output};

/// Run the classic experiments on this machine: measured, not quoted
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom demo                      all six, a minute or two and 3 GB of memory
  ironbloom demo tables --rows 1M     the index on tables, smaller
  ironbloom demo variants --json      one of them, for a program")]
pub(crate) struct DemoArgs {
    /// The experiments to run [default: all]
    #[arg(value_enum)]
    experiments: Vec<Experiment>,

    /// Rows of the table in the first experiment
    #[arg(long, value_parser = number::parse_count, default_value = "10M")]
    rows: u64,

    /// Also run the table experiment in SQL on PostgreSQL (takes minutes and some GB there): a connection string for psql
    #[arg(long, value_name = "CONNECTION", num_args = 0..=1, default_missing_value = "postgres")]
    postgres: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Experiment {
    /// A table of 10 million rows: an index on all ten columns, a signature file, sorted columns
    #[cfg(feature = "index")]
    Tables,
    /// 150,000 strings inserted, 50,000 probed, at 1 %
    Strings,
    /// 10,000 to 100,000 keys at 10 %, before and after the double-hashing "optimisation"
    DoubleHashing,
    /// 10 million integers: bitmap, hash table, Bloom filter
    Integers,
    /// All kinds: space, time, deletion
    Variants,
    /// Rows of two to five attributes: mixed-up rows, space, deletion
    Attributes,
}

/// The results of an experiment.
struct Findings {
    title: &'static str,
    about: String,
    records: Vec<Record>,
    see: String,
}

pub(crate) fn run(args: &DemoArgs) -> Result<Outcome> {
    let all = Experiment::value_variants();
    let chosen = if args.experiments.is_empty() { all } else { &args.experiments };
    let mut documents = Vec::new();
    for &experiment in chosen {
        let findings = match experiment {
            #[cfg(feature = "index")]
            Experiment::Tables => tables::run(args.rows as usize)?,
            Experiment::Strings => strings::run()?,
            Experiment::DoubleHashing => double_hashing::run()?,
            Experiment::Integers => integers::run()?,
            Experiment::Variants => variants::run()?,
            Experiment::Attributes => attributes::run()?,
        };
        show(findings, args.json, &mut documents)?;
        #[cfg(feature = "index")]
        if let (Experiment::Tables, Some(connection)) = (experiment, &args.postgres) {
            show(postgres::run(connection, args.rows as usize)?, args.json, &mut documents)?;
        }
    }
    if args.json {
        output::print(&format!("{:#}\n", serde_json::Value::Array(documents)))?;
    }
    Ok(Outcome::Found)
}

/// Prints the findings, or keeps them for the JSON document at the end.
fn show(findings: Findings, json: bool, documents: &mut Vec<serde_json::Value>) -> Result<()> {
    let Findings { title, about, records, see } = findings;
    if json {
        let results = report::json_records(&records);
        documents.push(json!({ "experiment": title, "results": results }));
        return Ok(());
    }
    let (rule, table) = ("─".repeat(title.chars().count()), report::text_table(&records));
    output::print(&format!("{title}\n{rule}\n{about}\n\n{table}\n{see}\n\n"))
}

/// Nanoseconds per operation of something that does `operations`.
fn nanoseconds<T>(operations: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = std::hint::black_box(work());
    (start.elapsed().as_nanos() as f64 / operations as f64, result)
}

/// Distinct, well-mixed numbers: a stream that cannot collide with another.
fn numbers(stream: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| mix64(stream << 40 | i))
}

/// A random-looking string key of 16 letters.
fn string_key(number: u64) -> String {
    let letter = |i: u32| char::from(b'a' + ((number >> (4 * i)) & 15) as u8);
    (0..16).map(letter).collect()
}
