//! `ironbloom check`: which keys may be in a filter?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::input::{self, InputArgs};
use crate::report::{self, Cell};
use crate::{Outcome, file, output};

/// Print the keys that may be in a filter
///
/// Every key that was inserted is printed; of the others a few are, at the filter's rate. The status is 0 if any
/// key may be present and 1 if none is, also with --absent and --count.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom check seen.ibf new.txt                 lines that may have been seen
  ironbloom check seen.ibf --absent new.txt        lines that are certainly new
  printf %s alice | ironbloom check -0 users.ibf   one key, by exit status
  ironbloom check seen.ibf --count --json new.txt  only the numbers")]
pub(crate) struct CheckArgs {
    /// The filter
    #[arg(value_name = "FILE")]
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Print the keys that are certainly absent instead
    #[arg(long)]
    absent: bool,

    /// Print only how many are present and absent
    #[arg(long)]
    count: bool,

    /// With --count: print JSON
    #[arg(long, requires = "count")]
    json: bool,

    /// Threads that hash keys
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
}

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome> {
    let filter = file::open(&args.filter)?;
    let key_hash = filter.key_hash();
    key_hash.of(b"0").map_err(|error| file::named(&args.filter, error))?;
    output::widen_pipe();
    let (mut present, mut absent) = (0u64, 0u64);
    let delimiter = args.input.delimiter();
    let (mut found, mut lines) = (Vec::new(), Vec::new());
    input::for_each_block(
        &args.input,
        usize::from(args.threads),
        move |keys| file::hashes(keys, key_hash),
        |keys, hashes| {
            found.resize(hashes.len(), false);
            filter.contains_hashes(&hashes, &mut found);
            let here = found.iter().filter(|&&found| found).count() as u64;
            present += here;
            absent += hashes.len() as u64 - here;
            if args.count {
                return Ok(());
            }
            lines.clear();
            keys.select(&found, !args.absent, delimiter, &mut lines);
            output::write(&lines)
        },
    )?;
    if args.count {
        let record = vec![("present", Cell::count(present)), ("absent", Cell::count(absent))];
        output::print(&report::show_record(&record, args.json))?;
    }
    Ok(if present > 0 { Outcome::Found } else { Outcome::NotFound })
}
