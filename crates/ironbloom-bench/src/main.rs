//! Measures the filters of Ironbloom beside their peers, and writes the results as Markdown, CSV and SVG.
//!
//! ```text
//! keys        the keys: present, absent, looked up
//! contender   one interface for all filters      ours, peers, sbbf, yardstick: the filters
//! measure     builds, fills and lookups in turns  threads: the same for filters that threads share
//! table       measurements                        stats: medians
//! bars        our targets
//! report      Markdown                            csv, plots and svg: the other files
//! machine     the machine                         number, progress: for people to read
//! ```

mod bars;
mod contender;
mod csv;
mod keys;
mod machine;
mod measure;
mod number;
mod ours;
mod peers;
mod plots;
mod progress;
mod report;
mod sbbf;
mod stats;
mod svg;
mod table;
mod threads;
mod yardstick;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Parser;

use crate::contender::{Side, Spec};
use crate::keys::KeyType;
use crate::machine::Machine;
use crate::measure::Effort;
use crate::progress::Progress;
use crate::report::Report;
use crate::table::Table;

/// Measure all kinds of filters beside their peers.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// Numbers of keys.
    #[arg(long, value_delimiter = ',', value_parser = number::parse_count,
          default_values_t = [250_000, 1_000_000, 10_000_000, 100_000_000])]
    sizes: Vec<u64>,

    /// Types of keys.
    #[arg(long, value_delimiter = ',', default_values = ["u64", "strings"])]
    keys: Vec<KeyType>,

    /// Rounds of lookups.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,

    /// Lookups in a turn.
    #[arg(long, default_value = "1M", value_parser = number::parse_count)]
    queries: u64,

    /// Only the filters whose names contain one of these words, and no threads.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// Where the files go.
    #[arg(long, default_value = "docs/benchmarks")]
    out: PathBuf,

    /// A look at whether it works, in seconds: one fill, three rounds, 100,000 lookups a turn. The numbers mean little.
    #[arg(long)]
    quick: bool,
}

impl Arguments {
    fn effort(&self, n: u64, key_type: KeyType) -> Effort {
        let (rounds, queries) = (self.rounds, self.queries as usize);
        if self.quick {
            Effort {
                n,
                key_type,
                rounds: rounds.min(3),
                queries: queries.min(100_000),
                fill_work: n,
            }
        } else {
            Effort { n, key_type, rounds, queries, fill_work: 30_000_000 }
        }
    }

    fn specs(&self) -> Vec<Spec> {
        let wanted = |name: &str| {
            let name = name.to_lowercase();
            self.only.is_empty() || self.only.iter().any(|word| name.contains(&word.to_lowercase()))
        };
        let all = ours::all().into_iter().chain(peers::all());
        let chosen = all.filter(|spec| wanted(spec.name));
        chosen.chain(yardstick::all()).collect()
    }

    /// The command line that repeats this run, without the output folder, which is private.
    fn command(&self) -> String {
        let sizes: Vec<String> = self.sizes.iter().map(|&n| number::short(n)).collect();
        let keys: Vec<String> = self.keys.iter().map(KeyType::to_string).collect();
        let mut command = format!(
            "cargo run --release -p ironbloom-bench -- --sizes {} --keys {} --rounds {} --queries {}",
            sizes.join(","),
            keys.join(","),
            self.rounds,
            number::short(self.queries)
        );
        if !self.only.is_empty() {
            command += &format!(" --only {}", self.only.join(","));
        }
        if self.quick {
            command += " --quick";
        }
        command
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let machine = Machine::here(); // before we become the load ourselves
    let specs = arguments.specs();
    let mut progress = Progress::new();
    let (mut tables, mut scalings) = (Vec::new(), Vec::new());
    for &key_type in &arguments.keys {
        for &n in &arguments.sizes {
            let effort = arguments.effort(n, key_type);
            let mut show =
                |step| progress.show(&format!("{} {key_type} keys: {step}", number::short(n)));
            tables.push(measure::measure(&effort, &specs, &mut show));
            if arguments.only.is_empty() {
                scalings.extend(threads::measure(&effort, &mut show));
            }
            // After each size, so that an interrupted run keeps its results.
            write(&arguments, &machine, &tables, &scalings)?;
        }
    }
    answers_are_right(&tables)
}

fn write(
    arguments: &Arguments,
    machine: &Machine,
    tables: &[Table],
    scalings: &[threads::Scaling],
) -> anyhow::Result<()> {
    let plots = plots::all(tables);
    let report = Report {
        machine,
        command: arguments.command(),
        tables,
        scalings,
        bars: bars::check(tables, scalings),
    };
    let folder = &arguments.out;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut files = vec![
        ("peers.md".to_owned(), report::markdown(&report, &plots)),
        ("peers.csv".to_owned(), csv::csv(tables, scalings)),
    ];
    files.extend(plots.into_iter().map(|plot| (plot.name, plot.svg)));
    for (name, text) in files {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Our filters must never answer wrongly, however fast they are. (Peers that do are marked in the report.)
fn answers_are_right(tables: &[Table]) -> anyhow::Result<()> {
    for table in tables {
        for row in table.side(Side::Ours) {
            let keys = format!("{} {} keys", number::grouped(table.n), table.key_type);
            if row.is_wrong() {
                bail!(
                    "{} with {keys}: {} not found, {} refused, {} batches with other answers",
                    row.name,
                    row.missing,
                    row.refused,
                    row.disagreements
                );
            }
            if !row.keeps_rate(table.n) {
                bail!("{} with {keys}: rate {:.4} % is over 1 %", row.name, row.rate() * 100.0);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smoke(key_type: KeyType) -> Table {
        let arguments = Arguments::parse_from(["bench", "--quick", "--queries", "10k"]);
        let effort = arguments.effort(10_000, key_type);
        measure::measure(&effort, &arguments.specs(), &mut |_| ())
    }

    #[test]
    fn every_filter_finds_its_keys_and_ours_keep_their_rate() {
        for key_type in [KeyType::U64, KeyType::Strings] {
            let table = smoke(key_type);
            assert_eq!(table.rows.len(), 29);
            answers_are_right(std::slice::from_ref(&table)).unwrap();
            for row in table.side(Side::Peer) {
                assert_eq!((row.missing, row.refused), (0, 0), "{} {key_type}", row.name);
                // cuckoofilter has tags of 8 bits, which give 3 %; growable-bloom-filter adds up its stages.
                assert!(row.rate() < 0.06, "{} {key_type}: {}", row.name, row.rate());
            }
        }
    }

    #[test]
    fn a_filter_of_ours_that_loses_a_key_or_misses_the_rate_is_an_error() {
        let mut row = table::Row::new("Bloom", Side::Ours);
        (row.absent, row.found) = (1_000_000, 10_000);
        let verdict = |row: &table::Row| {
            let rows = vec![row.clone()];
            answers_are_right(&[Table { n: 1_000_000, key_type: KeyType::U64, rows }])
        };
        assert!(verdict(&row).is_ok());
        assert!(verdict(&table::Row { found: 12_000, ..row.clone() }).is_err());
        assert!(verdict(&table::Row { missing: 1, ..row }).is_err());
    }

    #[test]
    fn the_command_in_the_report_names_no_folder() {
        let arguments =
            Arguments::parse_from(["bench", "--out", "/home/somebody", "--sizes", "1m"]);
        assert!(!arguments.command().contains("somebody"));
        assert!(arguments.command().contains("--sizes 1M --keys u64,strings"));
    }

    #[test]
    fn threads_find_what_threads_inserted() {
        let arguments = Arguments::parse_from(["bench", "--quick", "--queries", "5k"]);
        let scalings = threads::measure(&arguments.effort(10_000, KeyType::U64), &mut |_| ());
        assert_eq!(scalings.len(), 12);
        assert!(scalings.iter().all(|s| s.missing == 0 && s.speedup().is_some()));
    }
}
