//! The `ironbloom` program: one file a command, and this table of contents.

#![cfg_attr(
    not(all(feature = "index", feature = "redis", feature = "store")),
    allow(dead_code, unused_imports, reason = "what only the commands use that are left out")
)]

mod add;
mod build;
mod check;
mod convert;
mod dash;
mod dedup;
mod dedup_state;
mod demo;
mod eth;
mod failure;
mod file;
mod foreign;
#[cfg(feature = "index")]
mod index;
mod info;
mod input;
mod interrupt;
mod kinds;
mod merge;
mod number;
mod output;
mod parquet;
mod plan;
mod plot;
mod progress;
mod recommend;
#[cfg(feature = "redis")]
mod redis;
mod remove;
mod report;
mod rows;
mod secret;
mod shell;
#[cfg(feature = "store")]
mod store;
mod turn;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

/// Know what is not there: Bloom filters and their family.
///
/// A filter answers "might this key be here?" from a few bits per key: no is certain, yes may be wrong, at a rate
/// you choose. Keys are bytes: the lines of a file, of standard input, or a column of CSV.
#[derive(Parser)]
#[command(name = "ironbloom", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  ironbloom plan --capacity 10M --rate 1%         what would each kind cost?
  ironbloom build -o seen.ibf urls.txt            a filter from the lines of a file
  ironbloom check seen.ibf new.txt                the lines that may be in it
  ironbloom dedup access.log                      first occurrences, in order, in little memory
  ironbloom index build t.parquet -o t.ibx        an index on all columns of a table
  ironbloom index find t.ibx 'id = 7'             the rows with that value
  ironbloom demo                                  the classic experiments, on this machine

Exit status: 0 success (check: some key may be present), 1 (check: none is; remove: none was), 2 error, \
3 (index find --skip-changed: tables were skipped). \
`ironbloom help COMMAND` explains a command with examples.";

#[derive(Subcommand)]
enum Command {
    Plan(plan::PlanArgs),
    Build(build::BuildArgs),
    Check(check::CheckArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Merge(merge::MergeArgs),
    Info(info::InfoArgs),
    Verify(verify::VerifyArgs),
    Convert(convert::ConvertArgs),
    Parquet(parquet::ParquetArgs),
    Eth(eth::EthArgs),
    Dedup(dedup::DedupArgs),
    #[cfg(feature = "index")]
    Index(index::IndexArgs),
    #[cfg(feature = "redis")]
    Redis(redis::RedisArgs),
    #[cfg(feature = "store")]
    Store(store::StoreArgs),
    Demo(demo::DemoArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// Outcome of a successful command, in the manner of `grep`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Found,
    NotFound,
    /// A part could not be searched, which was accepted in advance.
    Incomplete,
}

fn main() -> ExitCode {
    interrupt::install();
    let result = match Program::try_parse() {
        Ok(program) => run(program.command),
        Err(asked) if !asked.use_stderr() => show_help(&asked),
        Err(wrong) => refuse_flags(&wrong),
    };
    match result {
        Ok(Outcome::Found) => ExitCode::SUCCESS,
        Ok(Outcome::NotFound) => ExitCode::from(1),
        Ok(Outcome::Incomplete) => ExitCode::from(3),
        Err(error) => {
            output::note(&format!("error: {}", failure::message(&error)));
            if let Some(hint) = failure::hint(&error) {
                output::note(&format!("\nhint: {hint}"));
            }
            ExitCode::from(2)
        }
    }
}

/// Says which flags are wrong, in colours if the terminal has them, unless there is a secret to leave out; status 2.
fn refuse_flags(wrong: &clap::Error) -> ! {
    let text = wrong.to_string();
    if output::without_secrets(&text) == text {
        wrong.exit();
    }
    output::note(text.trim_end());
    std::process::exit(2)
}

/// Prints help or the version, in colours if the terminal has them. Failing to print is an error.
fn show_help(asked: &clap::Error) -> Result<Outcome> {
    let printed = asked.print().and_then(|()| std::io::stdout().flush());
    output::end_if_closed(printed).context("standard output")?;
    Ok(Outcome::Found)
}

fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Plan(args) => plan::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Parquet(args) => parquet::run(&args),
        Command::Eth(args) => eth::run(&args),
        Command::Dedup(args) => dedup::run(&args),
        #[cfg(feature = "index")]
        Command::Index(args) => index::run(&args),
        #[cfg(feature = "redis")]
        Command::Redis(args) => redis::run(&args),
        #[cfg(feature = "store")]
        Command::Store(args) => store::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    /// The width to which help is wrapped, on wide terminals and in files.
    const WIDTH: usize = 100;

    fn commands(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().flat_map(commands);
        std::iter::once(command).chain(below).collect()
    }

    /// A line that is broken by hand and wrapped as well ends in the middle of the screen.
    #[test]
    fn no_line_below_the_help_of_a_command_is_broken_twice() {
        let program = super::Program::command();
        for command in commands(&program) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for paragraph in text.split("\n\n").filter(|paragraph| paragraph.contains('\n')) {
                for line in paragraph.lines() {
                    assert!(line.chars().count() <= WIDTH, "{}: {line}", command.get_name());
                }
            }
        }
    }
}
