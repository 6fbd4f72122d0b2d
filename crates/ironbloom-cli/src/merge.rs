//! `ironbloom merge`: one filter from several.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::Scalable;
use ironbloom::any::AnyFilter;

use crate::turn::Turn;
use crate::{Outcome, dash, file, info, number, output, report};

/// Merge filters that were built with the same options: per shard, per day, per machine
///
/// The filters must have the same kind, shape, hash function and seed; if not, the difference is named, and nothing is
/// written. Fuse, windowed and joint filters cannot be merged.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom merge -o week.ibf mon.ibf tue.ibf wed.ibf
  ironbloom merge --intersect -o both.ibf a.ibf b.ibf     keys that may be in both")]
pub(crate) struct MergeArgs {
    /// Where to write the result; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Keep only what is in all of them (bloom, blocked, split-block, bitmap)
    #[arg(long)]
    intersect: bool,

    /// Print a report of the result as JSON
    #[arg(long)]
    json: bool,

    /// The filters; `-` reads one from standard input
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,
}

pub(crate) fn run(args: &MergeArgs) -> Result<Outcome> {
    let (first, rest) = args.filters.split_first().expect("clap asks for one");
    file::refuse_unwritable(&args.output)?;
    dash::refuse_report(&args.output, args.json)?;
    if args.filters.iter().filter(|path| dash::is(path)).count() > 1 {
        return Err(anyhow!("standard input is only one filter, and `-` is given more than once"));
    }
    let in_place = args.filters.iter().find(|filter| file::is_same(filter, &args.output));
    let _turn = in_place.map(|filter| Turn::take_if_same(filter, &args.output)).transpose()?;
    let mut merged = file::load(first)?;
    for path in rest {
        let other = file::load(path)?;
        let result =
            if args.intersect { merged.intersect_with(&other) } else { merged.union_with(&other) };
        result.map_err(|error| {
            anyhow::Error::from(error).context(format!(
                "cannot merge {} and {}",
                dash::input_name(first),
                dash::input_name(path)
            ))
        })?;
    }
    file::save(&merged, &args.output)?;
    match merged {
        AnyFilter::Scalable(ref scalable) => warn_if_rate_is_lost(&args.output, scalable),
        _ => file::warn_if_over_capacity(&args.output, &merged),
    }
    if args.json {
        output::print(&report::show_record(&info::record(&args.output, &merged), true))?;
    } else {
        output::note(&info::changed(&args.output, &merged, None));
    }
    Ok(Outcome::Found)
}

/// A scalable filter keeps its rate by growing. Merged stages hold the keys of both and cannot grow any more: that raises the
/// rate, but no capacity was exceeded.
fn warn_if_rate_is_lost(path: &Path, scalable: &Scalable) {
    if scalable.estimate_rate() > scalable.params().rate() {
        output::note(&format!(
            "warning: {}: the rate is now about {}, above the {} that its parts hold",
            dash::output_name(path),
            number::rate(scalable.estimate_rate()),
            number::rate(scalable.params().rate()),
        ));
    }
}
