//! `ironbloom verify`: is a file still what was written?

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use ironbloom::any::AnyFilter;
use ironbloom::format::native;
use ironbloom::{FileError, Persist as _};

use crate::report::{self, Cell};
use crate::{Outcome, dash, number, output};

/// Read a whole filter file and check it against its checksums
///
/// Names every damaged part and its position in the file. Exit status 0 if the file is intact, 2 if not.
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom verify backup/*.ibf")]
pub(crate) struct VerifyArgs {
    /// The filters; `-` reads one from standard input
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
        let damage = damage(path);
        damaged += usize::from(!damage.is_empty());
        let state = if damage.is_empty() { "whole".to_owned() } else { damage.join("; ") };
        records
            .push(vec![("file", Cell::text(dash::input_name(path))), ("state", Cell::text(state))]);
    }
    output::print(&report::show_table(&records, args.json))?;
    if damaged > 0 {
        let files = number::plural(args.filters.len() as u64, "file");
        bail!("{damaged} of {files} damaged or unreadable");
    }
    Ok(Outcome::Found)
}

/// Problems of a file, part by part. A file that cannot be read must not hide the state of the others.
///
/// Reading the filter is the whole check: checksums can match around invalid parameters. Only the list of all damaged parts
/// needs a second pass, which a pipe does not allow.
fn damage(path: &Path) -> Vec<String> {
    if dash::is(path) {
        return dash::read()
            .err()
            .map(|error| error.root_cause().to_string())
            .into_iter()
            .collect();
    }
    let Err(error) = AnyFilter::load(path) else { return Vec::new() };
    let is_file = std::fs::metadata(path).is_ok_and(|m| m.is_file());
    match is_file.then(|| native::verify(path)) {
        Some(Ok(verification)) if !verification.damaged.is_empty() => {
            verification.damaged.iter().map(ToString::to_string).collect()
        }
        _ => vec![cause(error)],
    }
}

/// The error without the name of the file, which is shown beside it.
fn cause(error: FileError) -> String {
    match error {
        FileError::Io { error, .. } => error.to_string(),
        FileError::Decode { error, .. } => error.to_string(),
        other => other.to_string(),
    }
}
