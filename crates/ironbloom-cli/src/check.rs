//! `ironbloom check`: which keys may be in a filter?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::any::AnyFilter;
use ironbloom::multi::MultiFilter;

use crate::input::{self, InputArgs, Keys};
use crate::report::{self, Cell};
use crate::{Outcome, file, output, rows};

/// Print the keys that may be in a filter
///
/// Every key that was inserted is printed; of the others a few are, at the filter's rate. The status is 0 if any
/// key may be present and 1 if none is, also with --absent and --count.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom check seen.ibf new.txt                 lines that may have been seen
  ironbloom check seen.ibf --absent new.txt        lines that are certainly new
  printf %s alice | ironbloom check -0 users.ibf   one key, by exit status
  ironbloom check seen.ibf --count --json new.txt  only the numbers

Filters of rows (--kind joint):
  ironbloom check t.ibf --where size=large --where color=green    is there such a row?
  ironbloom check t.ibf more.csv                                  rows that may be there, as CSV")]
pub(crate) struct CheckArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Ask for a row with this value, of a filter of rows. Repeat it for other attributes
    #[arg(
        long = "where",
        value_name = "NAME=VALUE",
        conflicts_with_all = ["inputs", "null", "csv"]
    )]
    clauses: Vec<String>,

    #[command(flatten)]
    answer: AnswerArgs,

    /// Threads that hash keys
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

/// What is printed of the answers.
#[derive(Args)]
pub(crate) struct AnswerArgs {
    /// Print the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only how many are present and absent
    #[arg(long)]
    count: bool,

    /// With --count: print JSON
    #[arg(long, requires = "count")]
    json: bool,
}

/// How many keys are present, how many are not.
#[derive(Default)]
struct Counts {
    present: u64,
    absent: u64,
}

/// Prints the keys that are asked for as their answers come, and counts all.
pub(crate) struct Answers<'a> {
    args: &'a AnswerArgs,
    delimiter: u8,
    counts: Counts,
    lines: Vec<u8>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(args: &'a AnswerArgs, input: &InputArgs) -> Self {
        output::widen_pipe();
        let (counts, lines) = (Counts::default(), Vec::new());
        Self { args, delimiter: input.delimiter(), counts, lines }
    }

    /// A flag for each of these keys: may it be present?
    pub(crate) fn take(&mut self, keys: &Keys, found: &[bool]) -> Result<()> {
        let here = found.iter().filter(|&&found| found).count() as u64;
        self.counts.present += here;
        self.counts.absent += found.len() as u64 - here;
        if self.args.count {
            return Ok(());
        }
        self.lines.clear();
        keys.select(found, !self.args.absent, self.delimiter, &mut self.lines);
        output::write(&self.lines)
    }

    pub(crate) fn finish(self) -> Result<Outcome> {
        self.counts.report(self.args)
    }
}

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome> {
    let filter = file::open(&args.filter)?;
    let counts = match filter.as_multi() {
        Some(filter) if args.clauses.is_empty() => check_rows(args, filter)?,
        Some(filter) => check_clauses(args, filter)?,
        None if args.clauses.is_empty() => check_keys(args, &filter)?,
        None => return Err(rows::refuse_keys(&args.filter, &filter)),
    };
    counts.report(&args.answer)
}

fn check_keys(args: &CheckArgs, filter: &AnyFilter) -> Result<Counts> {
    let key_hash = filter.key_hash();
    key_hash.of(b"0").map_err(|error| file::named(&args.filter, error))?;
    let mut answers = Answers::new(&args.answer, &args.input);
    let mut found = Vec::new();
    input::for_each_block(
        &args.input,
        usize::from(args.threads),
        move |keys| file::hashes(keys, key_hash),
        |keys, hashes| {
            found.resize(hashes.len(), false);
            filter.contains_hashes(&hashes, &mut found);
            answers.take(&keys, &found)
        },
    )?;
    Ok(answers.counts)
}

/// Rows from CSV, printed as CSV.
fn check_rows(args: &CheckArgs, filter: &dyn MultiFilter) -> Result<Counts> {
    output::widen_pipe();
    let mut counts = Counts::default();
    let attributes = filter.attributes();
    let threads = usize::from(args.threads);
    rows::for_each_block_of(&args.input, &args.filter, attributes, threads, |keys, hashes| {
        let mut lines = csv::Writer::from_writer(Vec::new());
        for (row, hashes) in keys.iter().zip(hashes.chunks_exact(attributes.len())) {
            let query: Vec<Option<u64>> = hashes.iter().copied().map(Some).collect();
            let found = filter.contains_hashed(&query)?;
            counts.add(found);
            if !args.answer.count && found != args.answer.absent {
                lines.write_record(input::fields(row))?;
            }
        }
        output::write(&lines.into_inner().map_err(|error| error.into_error())?)
    })?;
    Ok(counts)
}

/// One row, or all rows with some values, asked for by name.
fn check_clauses(args: &CheckArgs, filter: &dyn MultiFilter) -> Result<Counts> {
    let query = rows::query(filter.attributes(), &args.clauses)?;
    let found = rows::contains(&args.filter, filter, &query)?;
    let mut counts = Counts::default();
    counts.add(found);
    if !args.answer.count && found != args.answer.absent {
        output::print(&format!("{}\n", args.clauses.join(" ")))?;
    }
    Ok(counts)
}

impl Counts {
    fn add(&mut self, found: bool) {
        self.present += u64::from(found);
        self.absent += u64::from(!found);
    }

    /// The end of a command that asked: the numbers if they are wanted, and the status.
    fn report(&self, args: &AnswerArgs) -> Result<Outcome> {
        let &Self { present, absent } = self;
        if args.count {
            let record = vec![("present", Cell::count(present)), ("absent", Cell::count(absent))];
            output::print(&report::show_record(&record, args.json))?;
        }
        Ok(if present > 0 { Outcome::Found } else { Outcome::NotFound })
    }
}
