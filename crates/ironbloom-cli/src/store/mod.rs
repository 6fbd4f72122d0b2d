//! `ironbloom store`: a filter in front of a slow store. One file a command.

mod bench;
mod lookups;
mod show;
mod stats;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::Outcome;

/// A filter in front of a slow store: measure what it saves
///
/// Lookups for keys that are not stored are answered from a few bits in memory and never reach the store.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  ironbloom store bench --keys 10M --miss 90%
  ironbloom store bench --backend postgres --url 'host=/run/postgresql' --keys 1M --miss 90%
  ironbloom store stats users.redb"
)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::BenchArgs),
    Stats(stats::StatsArgs),
}

pub(crate) fn run(args: &StoreArgs) -> Result<Outcome> {
    match &args.command {
        Command::Bench(args) => bench::run(args),
        Command::Stats(args) => stats::run(args),
    }
}
