//! `ironbloom verify`: is a file still what was written?

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use ironbloom::format::native;

use crate::report::{self, Cell};
use crate::{Outcome, file, output};

/// Read a whole filter file and check it against its checksums
///
/// Names every damaged part with its place in the file. Status 0 if the file is whole, 2 if it is not.
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom verify backup/*.ibf")]
pub(crate) struct VerifyArgs {
    /// The filters
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let mut records = Vec::new();
    let mut damaged = 0;
    for path in &args.filters {
        let mut damage: Vec<String> = match native::verify(path) {
            Ok(verification) => verification.damaged.iter().map(ToString::to_string).collect(),
            Err(ironbloom::FileError::Decode { error, .. }) => vec![error.to_string()],
            Err(error) => return Err(error.into()),
        };
        // Checksums can fit around parameters that make no filter: opening it is the rest of the check.
        if damage.is_empty() {
            damage.extend(file::open(path).err().map(|error| error.to_string()));
        }
        damaged += usize::from(!damage.is_empty());
        let state = if damage.is_empty() { "whole".to_owned() } else { damage.join("; ") };
        records.push(vec![
            ("file", Cell::text(path.display().to_string())),
            ("state", Cell::text(state)),
        ]);
    }
    output::print(&report::show_table(&records, args.json))?;
    if damaged > 0 {
        bail!("{damaged} of {} files damaged", args.filters.len());
    }
    Ok(Outcome::Found)
}
