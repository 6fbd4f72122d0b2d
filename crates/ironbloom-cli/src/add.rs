//! `ironbloom add`: more keys into an existing filter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use ironbloom::any::AnyFilter;
use ironbloom::hash::KeyForm;

use crate::input::{self, BadKey, InputArgs};
use crate::secret::SecretArgs;
use crate::turn::Turn;
use crate::{Outcome, dash, file, foreign, info, output, report, rows};

/// Add keys to a filter
///
/// The file is replaced once all keys have been added, and left unchanged if anything fails. Another process that changes it at the
/// same time waits. A warning is printed if the
/// filter now holds more keys than its capacity. Scalable filters grow; fuse filters do not accept keys. Rows for a joint
/// filter are read from CSV: from the columns named like its attributes, unless --csv names others.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom add seen.ibf today.txt
  zcat -f logs/* | ironbloom add seen.ibf
  ironbloom add monday.ibf tuesday.txt -o both.ibf    monday.ibf is not changed
  ironbloom add t.ibf more.csv                        rows of a joint filter")]
pub(crate) struct AddArgs {
    /// The filter; `-` reads it from standard input, and keys from files only
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    /// Where to write the result [default: FILE, which is replaced; `-` is standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print a report of the filter as JSON
    #[arg(long)]
    json: bool,

    /// What lines are, where the filter (or an attribute of rows) holds keys of several types or none yet: text or long (integers)
    #[arg(long, value_name = "FORM", value_parser = foreign::forms(), hide_possible_values = true)]
    keys: Option<KeyForm>,

    #[command(flatten)]
    secret: SecretArgs,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &AddArgs) -> Result<Outcome> {
    let output = args.output.as_ref().unwrap_or(&args.filter);
    dash::refuse_both(&args.filter, &args.input)?;
    dash::refuse_report(output, args.json)?;
    file::refuse_same(output, &args.input.inputs)?;
    file::refuse_unwritable(output)?;
    let _turn = Turn::take_if_same(&args.filter, output)?;
    let mut filter = args.secret.load(&args.filter)?;
    let mut read = 0;
    match filter.as_multi_mut() {
        Some(filter) => {
            let attributes = filter.attributes().clone();
            let keys = file::key_type(args.keys)?;
            let values = rows::values_of(&args.filter, &attributes, keys)?;
            filter.note_keys(&rows::types(&values));
            rows::for_each_block_of(
                &args.input,
                &args.filter,
                &attributes,
                keys,
                1,
                |_, hashes| {
                    read += (hashes.len() / attributes.len()) as u64;
                    let mut rows = hashes.chunks_exact(attributes.len());
                    rows.try_for_each(|row| rows::insert(&args.filter, filter, row))
                },
            )?;
        }
        None => read = add_keys(args, &mut filter)?,
    }
    file::save(&filter, output)?;
    file::warn_if_over_capacity(output, &filter);
    if args.json {
        let record = info::record_with_read(output, &filter, read);
        output::print(&report::show_record(&record, true))?;
    } else {
        output::note(&info::changed(output, &filter, Some(read)));
    }
    Ok(Outcome::Found)
}

/// Adds all keys, and says how many.
fn add_keys(args: &AddArgs, filter: &mut AnyFilter) -> Result<u64> {
    if foreign::is_foreign(filter) {
        foreign::require_form(&args.filter, filter)?;
        return foreign::insert_all(&args.input, filter);
    }
    let mut read = 0;
    let key_hash = file::text_hash(&args.filter, filter, file::key_type(args.keys)?)?;
    filter.note_keys(file::line_types(key_hash));
    filter.insert_hashes(&[]).map_err(|error| file::named(&args.filter, error))?;
    input::for_each_block(
        &args.input,
        1,
        move |keys| file::hashes(keys, key_hash),
        |_, hashes| {
            read += hashes.len() as u64;
            file::insert(filter, &hashes).map_err(|error| match error.downcast::<BadKey>() {
                Ok(bad) => bad.into(), // gets the name of the input, which is what must be corrected
                Err(error) => file::named(&args.filter, error),
            })
        },
    )?;
    Ok(read)
}
