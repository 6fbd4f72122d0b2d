//! `ironbloom add`: more keys into an existing filter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::Persist as _;
use ironbloom::any::AnyFilter;

use crate::input::{self, InputArgs};
use crate::{Outcome, file};

/// Add keys to a filter
///
/// The file is replaced when all keys are in, and is left as it was if anything fails. A filter that gets more
/// keys than it was planned for says so; scalable filters grow, fuse filters cannot take any.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom add seen.ibf today.txt
  zcat -f logs/* | ironbloom add seen.ibf")]
pub(crate) struct AddArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &AddArgs) -> Result<Outcome> {
    let mut filter = AnyFilter::load(&args.filter)?;
    let key_hash = filter.key_hash();
    filter.insert_hashes(&[]).map_err(|error| file::named(&args.filter, error))?;
    input::for_each_block(
        &args.input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| filter.insert_hashes(&hashes).map_err(|error| file::named(&args.filter, error)),
    )?;
    file::save(&filter, &args.filter)?;
    file::warn_if_over_capacity(&args.filter, &filter);
    Ok(Outcome::Found)
}
