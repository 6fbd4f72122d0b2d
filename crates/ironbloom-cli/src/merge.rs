//! `ironbloom merge`: one filter from several.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::Persist as _;
use ironbloom::any::AnyFilter;

use crate::{Outcome, file};

/// Merge filters that were built alike: per shard, per day, per machine
///
/// The filters must agree in kind, shape, hash and seed; anything else is refused by name, and nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom merge -o week.ibf mon.ibf tue.ibf wed.ibf
  ironbloom merge --intersect -o both.ibf a.ibf b.ibf     keys that may be in both")]
pub(crate) struct MergeArgs {
    /// Where to write the result
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep only what is in all of them (bloom, blocked, split-block, bitmap)
    #[arg(long)]
    intersect: bool,

    /// The filters
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<Outcome> {
    let (first, rest) = args.filters.split_first().expect("clap asks for one");
    let mut merged = AnyFilter::load(first)?;
    for path in rest {
        let other = file::open(path)?;
        let result =
            if args.intersect { merged.intersect_with(&other) } else { merged.union_with(&other) };
        result.map_err(|error| {
            anyhow::Error::from(error).context(format!(
                "cannot merge {} and {}",
                first.display(),
                path.display()
            ))
        })?;
    }
    file::save(&merged, &args.output)?;
    file::warn_if_over_capacity(&args.output, &merged);
    Ok(Outcome::Found)
}
