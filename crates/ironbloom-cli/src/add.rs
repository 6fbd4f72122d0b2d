//! `ironbloom add`: more keys into an existing filter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::Persist as _;
use ironbloom::any::AnyFilter;

use crate::input::{self, InputArgs};
use crate::{Outcome, file, rows};

/// Add keys to a filter
///
/// The file is replaced when all keys are in, and is left as it was if anything fails. A filter that gets more
/// keys than it was planned for says so; scalable filters grow, fuse filters cannot take any. Rows, for a joint filter,
/// come from CSV: from the columns that have the names of its attributes, unless --csv names others.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom add seen.ibf today.txt
  zcat -f logs/* | ironbloom add seen.ibf
  ironbloom add t.ibf more.csv                        rows of a joint filter")]
pub(crate) struct AddArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &AddArgs) -> Result<Outcome> {
    let mut filter = AnyFilter::load(&args.filter)?;
    match filter.as_multi_mut() {
        Some(filter) => {
            let attributes = filter.attributes().clone();
            rows::for_each_block_of(&args.input, &args.filter, &attributes, 1, |_, hashes| {
                let mut rows = hashes.chunks_exact(attributes.len());
                rows.try_for_each(|row| rows::insert(&args.filter, filter, row))
            })?;
        }
        None => add_keys(args, &mut filter)?,
    }
    file::save(&filter, &args.filter)?;
    file::warn_if_over_capacity(&args.filter, &filter);
    Ok(Outcome::Found)
}

fn add_keys(args: &AddArgs, filter: &mut AnyFilter) -> Result<()> {
    let key_hash = filter.key_hash();
    filter.insert_hashes(&[]).map_err(|error| file::named(&args.filter, error))?;
    input::for_each_block(
        &args.input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| filter.insert_hashes(&hashes).map_err(|error| file::named(&args.filter, error)),
    )
}
