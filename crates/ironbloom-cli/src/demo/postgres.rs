//! The table experiment in SQL, on an existing PostgreSQL: `ironbloom demo tables --postgres CONNECTION`.
//!
//! `psql` does the talking, so that every way to connect that it knows works here, too. Everything is created in a separate
//! schema, which is dropped at the end.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::Findings;
use crate::failure::Advice;
use crate::number;
use crate::report::{Cell, Record};

const SCHEMA: &str = "ironbloom_demo";

/// A database, as psql knows it.
struct Database<'a>(&'a str);

impl Database<'_> {
    /// Runs a statement, and returns its output, unaligned.
    fn run(&self, sql: &str) -> Result<String> {
        let output = Command::new("psql")
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.0])
            // Two commands: of several statements in one, psql would make a transaction, in which nothing can be vacuumed.
            .args(["-c", &format!("set search_path to {SCHEMA}, public"), "-c", sql])
            .output()
            .map_err(|error| {
                Advice::error(
                    format!("psql: {error}"),
                    "install PostgreSQL's client, or leave out --postgres",
                )
            })?;
        if !output.status.success() {
            bail!("PostgreSQL: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn timed(&self, sql: &str) -> Result<Duration> {
        let start = Instant::now();
        self.run(sql)?;
        Ok(start.elapsed())
    }

    /// Bytes of these indexes together.
    fn size(&self, indexes: &[String]) -> Result<u64> {
        let mut sum = 0;
        for index in indexes {
            let size = self.run(&format!("select pg_relation_size('{index}')"))?;
            sum += size.parse::<u64>().with_context(|| format!("a size, not {size:?}"))?;
        }
        Ok(sum)
    }

    /// How long the server says that a query took, the second time.
    fn execution(&self, query: &str) -> Result<Duration> {
        let explain = format!("explain (analyze, format json) {query}");
        self.run(&explain)?;
        let plan: serde_json::Value = serde_json::from_str(&self.run(&explain)?)?;
        let milliseconds = plan[0]["Execution Time"].as_f64().context("no Execution Time")?;
        Ok(Duration::from_secs_f64(milliseconds / 1e3))
    }
}

/// A table of this many rows; a `bloom` index and ten B-trees on it; queries on one, two and three columns.
pub(super) fn run(connection: &str, rows: usize) -> Result<Findings> {
    let database = Database(connection);
    database.run(&format!("create schema {SCHEMA}"))?;
    let records = compare(&database, rows);
    let dropped = database.run(&format!("drop schema {SCHEMA} cascade"));
    let records = records?;
    dropped?;
    Ok(Findings {
        title: "The same in PostgreSQL",
        about: format!(
            "{} rows in two tables, one with a bloom index on all columns, one with ten B-trees. Times are the server's,\n\
             of the second run, without planning.",
            number::count(rows as u64)
        ),
        records,
        see: "The bloom index is small and read whole for every question; B-trees are fast and large.".to_owned(),
    })
}

fn compare(database: &Database<'_>, rows: usize) -> Result<Vec<Record>> {
    let columns: Vec<String> = (1..=10).map(|i| format!("i{i}")).collect();
    let random: Vec<String> =
        columns.iter().map(|name| format!("trunc(random()*1000000)::int as {name}")).collect();
    database.run("create extension if not exists bloom")?;
    let select = format!("select {} from generate_series(1,{rows})", random.join(","));
    database.run(&format!("create table tb_bloom as {select}"))?;
    database.run("create table tb_bloom_c as select * from tb_bloom")?;
    database.run("vacuum analyze tb_bloom")?;
    database.run("vacuum analyze tb_bloom_c")?;
    let list = columns.join(",");
    let bloom_time =
        database.timed(&format!("create index bloomidx on tb_bloom using bloom ({list})"))?;
    let mut tree_time = Duration::ZERO;
    for column in &columns {
        let create = format!("create index btreeidx_{column} on tb_bloom_c ({column})");
        tree_time += database.timed(&create)?;
    }
    let trees: Vec<String> = columns.iter().map(|column| format!("btreeidx_{column}")).collect();
    let sizes = [database.size(&["bloomidx".to_owned()])?, database.size(&trees)?];
    let mut records = vec![
        record("size", sizes.map(|bytes| format!("{:.0} MB", bytes as f64 / 1e6))),
        record("build", [bloom_time, tree_time].map(number::time)),
    ];
    let conditions = ["i3=306047", "i8=571233", "i5=102938"];
    for count in 1..=3 {
        let condition = conditions[..count].join(" and ");
        let time =
            |table: &str| database.execution(&format!("select * from {table} where {condition}"));
        let times = [time("tb_bloom")?, time("tb_bloom_c")?];
        let plural = if count == 1 { "" } else { "s" };
        records.push(record(&format!("{count} column{plural}"), times.map(number::time)));
    }
    Ok(records)
}

fn record(name: &str, [bloom, trees]: [String; 2]) -> Record {
    vec![
        ("", Cell::text(name)),
        ("PostgreSQL bloom", Cell::text(bloom)),
        ("PostgreSQL, ten B-trees", Cell::text(trees)),
    ]
}
