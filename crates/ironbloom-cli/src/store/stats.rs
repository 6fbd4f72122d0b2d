//! `ironbloom store stats`: what has a guard saved, and would another filter pay?

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom_store::{Stats, checkpoint_beside};

use super::show;
use crate::{Outcome, output};

/// Show what the guard of a store has saved, and what other filters would have
///
/// Reads the guard's last checkpoint, not the store, which may be in use. Delta is the average extra time of a lookup compared
/// with an exact set in memory: P2·(C2 − C1), the share of false positives times the cost of one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom store stats users.redb
  ironbloom store stats --json users.ibg | jq .time_saved_seconds")]
pub(crate) struct StatsArgs {
    /// The store, or the checkpoint file of its guard (.ibg)
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &StatsArgs) -> Result<Outcome> {
    let checkpoint = match args.path.extension() {
        Some(extension) if extension == "ibg" => args.path.clone(),
        _ => checkpoint_beside(&args.path),
    };
    let stats =
        Stats::read(&checkpoint).map_err(|why| anyhow!("{}: {why}", checkpoint.display()))?;
    output::print(&show::stats(&stats, args.json))?;
    Ok(Outcome::Found)
}
