//! `ironbloom remove`: keys out of a filter that can forget them.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use ironbloom::Persist as _;
use ironbloom::any::{AnyFilter, Refused};

use crate::input::{self, InputArgs};
use crate::report::{self, Cell};
use crate::{Outcome, file, output, rows};

/// Remove keys from a filter (counting, d-left, cuckoo, bitmap, joint)
///
/// A key that is certainly not there is refused and counted as absent. Only remove keys that were inserted: one
/// that was not, but looks present (a false positive), takes the trace of another key with it, and no filter of
/// these kinds can notice. Rows of a joint filter come from CSV, as in `ironbloom add`. The status is 0 if any key was removed, 1 if none was.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom build --kind cuckoo --capacity 1M -o users.ibf users.txt
  ironbloom remove users.ibf leavers.txt")]
pub(crate) struct RemoveArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RemoveArgs) -> Result<Outcome> {
    let mut filter = AnyFilter::load(&args.filter)?;
    refuse_unless_removable(&filter).with_context(|| args.filter.display().to_string())?;
    let (mut removed, mut absent) = (0u64, 0u64);
    let mut count = |gone: bool| {
        removed += u64::from(gone);
        absent += u64::from(!gone);
    };
    match filter.as_multi_mut() {
        Some(filter) => {
            let attributes = filter.attributes().clone();
            rows::for_each_block_of(&args.input, &args.filter, &attributes, 1, |_, hashes| {
                for row in hashes.chunks_exact(attributes.len()) {
                    let removed = filter.remove_hashed(row);
                    count(removed.map_err(|error| file::named(&args.filter, error))?);
                }
                Ok(())
            })?;
        }
        None => remove_keys(args, &mut filter, &mut count)?,
    }
    if removed > 0 {
        file::save(&filter, &args.filter)?;
    }
    let record = vec![("removed", Cell::count(removed)), ("absent", Cell::count(absent))];
    output::print(&report::show_record(&record, args.json))?;
    Ok(if removed > 0 { Outcome::Found } else { Outcome::NotFound })
}

fn remove_keys(
    args: &RemoveArgs,
    filter: &mut AnyFilter,
    count: &mut impl FnMut(bool),
) -> Result<()> {
    let key_hash = filter.key_hash();
    input::for_each_block(
        &args.input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| {
            for hash in hashes {
                match filter.remove_hash(hash) {
                    Ok(gone) => count(gone),
                    Err(Refused::OutOfBounds(_)) => count(false),
                    Err(error) => return Err(file::named(&args.filter, error)),
                }
            }
            Ok(())
        },
    )
}

/// Says no before any input is read.
fn refuse_unless_removable(filter: &AnyFilter) -> Result<(), Refused> {
    match filter {
        AnyFilter::Bitmap(_)
        | AnyFilter::Counting(_)
        | AnyFilter::DLeft(_)
        | AnyFilter::Cuckoo(_)
        | AnyFilter::Parallel(_)
        | AnyFilter::Joint(_) => Ok(()),
        _ => Err(Refused::Unsupported { kind: filter.kind(), operation: "remove keys" }),
    }
}
