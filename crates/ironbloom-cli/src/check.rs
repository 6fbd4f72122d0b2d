//! `ironbloom check`: which keys may be in a filter?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::any::AnyFilter;
use ironbloom::multi::MultiFilter;

use crate::failure::Advice;
use crate::foreign::{self, ForeignArgs};
use crate::input::{self, InputArgs, Keys};
use crate::output::Lines;
use crate::report::{self, Cell};
use crate::secret::SecretArgs;
use crate::{Outcome, dash, file, output, rows};

/// Print the keys that may be in a filter
///
/// Every key that was inserted is printed, and a few others, at the filter's rate. The exit status is 0 if any key may be
/// present and 1 if none is, also with --absent and --count. Lines are printed unchanged: a carriage return at the end of a
/// line is not part of the key (unless --exact-bytes is given), but stays in the output.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom check seen.ibf new.txt                 lines that may have been seen
  ironbloom check seen.ibf --absent new.txt        lines that are certainly new
  printf %s alice | ironbloom check -0 users.ibf   one key, by exit status
  ironbloom check seen.ibf --count new.txt         only the numbers; --json for programs
  ironbloom check emails.ibf --csv email --rows users.csv    whole rows, below their header
  ironbloom check users.guava --keys long ids.txt            a filter of another program

Filters of rows (--kind joint):
  ironbloom check t.ibf --where size=large --where color=green    is there such a row?
  ironbloom check t.ibf more.csv                                  rows that may be there, as CSV")]
pub(crate) struct CheckArgs {
    /// The filter; `-` reads it from standard input, and keys from files only
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Ask a filter of rows for a row with this value. Repeat for other attributes
    #[arg(
        long = "where",
        value_name = "NAME=VALUE",
        conflicts_with_all = ["inputs", "null", "exact_bytes", "csv", "tsv", "delimiter", "no_header", "rows"]
    )]
    clauses: Vec<String>,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    secret: SecretArgs,

    /// Threads that hash keys
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

/// The form in which answers are printed.
#[derive(Args)]
pub(crate) struct AnswerArgs {
    /// Print the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only the numbers of present and absent keys
    #[arg(long, short = 'c')]
    count: bool,

    /// Print only the numbers of present and absent keys, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    whole: RowsArgs,
}

/// Rows instead of keys, in commands that print what they were given.
#[derive(Args, Clone, Copy)]
pub(crate) struct RowsArgs {
    /// With --csv or --tsv: print the header and whole rows, not only the keys
    #[arg(long, conflicts_with_all = ["null", "exact_bytes"])]
    rows: bool,
}

impl RowsArgs {
    /// The input, with its rows if they are wanted.
    pub(crate) fn apply(self, input: &InputArgs) -> Result<InputArgs> {
        if self.rows && input.table.columns().is_none() && input.row_columns.is_none() {
            return Err(Advice::error(
                "--rows is for tables, and no column is named",
                "name the column that holds the keys: --csv COLUMN",
            ));
        }
        Ok(InputArgs { whole_rows: self.rows, ..input.clone() })
    }
}

impl AnswerArgs {
    fn only_numbers(&self) -> bool {
        self.count || self.json
    }

    /// The input, with its rows if they are to be printed.
    pub(crate) fn input(&self, input: &InputArgs) -> Result<InputArgs> {
        self.whole.apply(input)
    }
}

/// Numbers of keys that are present and absent.
#[derive(Default)]
struct Counts {
    present: u64,
    absent: u64,
}

/// Prints the requested keys as their answers come, and counts all.
pub(crate) struct Answers<'a> {
    args: &'a AnswerArgs,
    delimiter: u8,
    counts: Counts,
    lines: Lines,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(args: &'a AnswerArgs, input: &InputArgs) -> Self {
        output::widen_pipe();
        let (counts, lines) = (Counts::default(), Lines::default());
        Self { args, delimiter: input.delimiter(), counts, lines }
    }

    /// A flag for each of these keys: may it be present?
    pub(crate) fn take(&mut self, keys: &Keys, found: &[bool]) -> Result<()> {
        let here = found.iter().filter(|&&found| found).count() as u64;
        self.counts.present += here;
        self.counts.absent += found.len() as u64 - here;
        if self.args.only_numbers() {
            return Ok(());
        }
        let (wanted, delimiter) = (!self.args.absent, self.delimiter);
        self.lines.print(|lines| keys.select(found, wanted, delimiter, lines))
    }

    pub(crate) fn finish(self) -> Result<Outcome> {
        self.counts.report(self.args)
    }
}

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome> {
    if args.clauses.is_empty() {
        dash::refuse_both(&args.filter, &args.input)?;
    }
    let filter = foreign::load(&args.filter, args.foreign, &args.secret)?;
    let counts = match filter.as_multi() {
        None if foreign::is_foreign(&filter) && args.clauses.is_empty() => {
            check_foreign(args, &filter)?
        }
        Some(filter) if args.clauses.is_empty() => check_rows(args, filter)?,
        Some(filter) => check_clauses(args, filter)?,
        None if args.clauses.is_empty() => check_keys(args, &filter)?,
        None => return Err(rows::refuse_keys(&args.filter, &filter)),
    };
    counts.report(&args.answer)
}

fn check_keys(args: &CheckArgs, filter: &AnyFilter) -> Result<Counts> {
    let key_hash = file::text_hash(&args.filter, filter, file::key_type(args.foreign.keys)?)?;
    let input = args.answer.input(&args.input)?;
    let mut answers = Answers::new(&args.answer, &input);
    let mut found = Vec::new();
    input::for_each_block(
        &input,
        usize::from(args.threads),
        move |keys| file::hashes(keys, key_hash),
        |keys, hashes| {
            found.resize(hashes.len(), false);
            filter.contains_hashes(&hashes, &mut found);
            answers.take(keys, &found)
        },
    )?;
    Ok(answers.counts)
}

/// Keys of another program's filter, which hashes them in its own way.
fn check_foreign(args: &CheckArgs, filter: &AnyFilter) -> Result<Counts> {
    foreign::require_form(&args.filter, filter)?;
    let input = args.answer.input(&args.input)?;
    let mut answers = Answers::new(&args.answer, &input);
    let threads = usize::from(args.threads);
    foreign::for_each_answer(&input, threads, filter.clone(), |keys, found| {
        answers.take(keys, &found)
    })?;
    Ok(answers.counts)
}

/// Rows from CSV, printed as CSV: the columns of the filter, or all.
fn check_rows(args: &CheckArgs, filter: &dyn MultiFilter) -> Result<Counts> {
    let input = InputArgs { whole_rows: args.answer.whole.rows, ..args.input.clone() };
    let mut answers = Answers::new(&args.answer, &input);
    let mut counts = Counts::default();
    let attributes = filter.attributes();
    let threads = usize::from(args.threads);
    let keys = file::key_type(args.foreign.keys)?;
    rows::for_each_block_of(&input, &args.filter, attributes, keys, threads, |keys, hashes| {
        let queries = hashes.chunks_exact(attributes.len()).map(|hashes| {
            filter.contains_hashed(&hashes.iter().copied().map(Some).collect::<Vec<_>>())
        });
        let found = queries.collect::<Result<Vec<bool>, _>>()?;
        if input.whole_rows {
            return answers.take(keys, &found);
        }
        let mut lines = input.table.writer();
        for (row, found) in keys.iter().zip(found) {
            counts.add(found);
            if !args.answer.only_numbers() && found != args.answer.absent {
                lines.write_record(input::fields(row))?;
            }
        }
        output::write(&lines.into_inner().map_err(|error| error.into_error())?)
    })?;
    Ok(if input.whole_rows { answers.counts } else { counts })
}

/// One row, or all rows with some values, asked for by name.
fn check_clauses(args: &CheckArgs, filter: &dyn MultiFilter) -> Result<Counts> {
    let query = rows::query(filter.attributes(), &args.clauses)?;
    let found = rows::contains(&args.filter, filter, &query, file::key_type(args.foreign.keys)?)?;
    let mut counts = Counts::default();
    counts.add(found);
    if !args.answer.only_numbers() && found != args.answer.absent {
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
        if args.only_numbers() {
            let record = vec![("present", Cell::count(present)), ("absent", Cell::count(absent))];
            output::print(&report::show_record(&record, args.json))?;
        }
        Ok(if present > 0 { Outcome::Found } else { Outcome::NotFound })
    }
}
