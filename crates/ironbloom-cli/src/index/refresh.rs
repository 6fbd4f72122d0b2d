//! `ironbloom index refresh`: an index follows its table.

use anyhow::Result;
use clap::Args;
use ironbloom_index::{Location, Refresh, Refreshed, refresh_index};

use super::Turn;
use super::build::with_build_progress;
use super::resources::ResourceArgs;
use crate::number::plural;
use crate::report::{self, Cell, Record};
use crate::{Outcome, output};

/// Bring an index up to date with the Iceberg or Delta table that it was built from
///
/// Files that are new in the table are read and added, those that are no longer in it are dropped, and rows that have been
/// deleted since are not found any more. Columns that were renamed, dropped or added are followed, too. Files that stay are
/// not read again. The new index replaces the old one when it is complete: until then, and if the program is killed, the
/// index answers for the snapshot that it had.
///
/// Exit status 0, also if nothing has changed; with --check 1 if the index is up to date.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom index refresh sales.ibx
  ironbloom index refresh sales.ibx --check && echo stale
  ironbloom index refresh sales.ibx --table warehouse/sales/metadata/00042-1c5f.metadata.json")]
pub(crate) struct RefreshArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    /// Where the table, or its metadata file, is now [default: where it was]
    #[arg(long, value_name = "PATH")]
    table: Option<Location>,

    /// Only say what would change
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    resources: ResourceArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RefreshArgs) -> Result<Outcome> {
    let what = if args.check { Refresh::Check } else { Refresh::Apply };
    let (table, resources) = (args.table.as_ref(), args.resources.resources());
    let lock = || super::lock(&args.index);
    let refreshed = with_build_progress(|progress| {
        let (file, save) = (&args.index, Turn::save);
        anyhow::Ok(refresh_index(file, table, what, resources, lock, save, progress)?)
    })?;
    output::print(&if args.json {
        report::show_record(&record(&args.index, &refreshed), true)
    } else {
        summary(&args.index, &refreshed)
    })?;
    Ok(if args.check && refreshed.is_nothing() { Outcome::NotFound } else { Outcome::Found })
}

fn record(file: &Location, did: &Refreshed) -> Record {
    vec![
        ("file", Cell::text(file.display().to_string())),
        ("snapshot before", Cell::text(did.before.to_string())),
        ("snapshot", Cell::text(did.now.to_string())),
        ("files added", Cell::count(did.added as u64)),
        ("files dropped", Cell::count(did.dropped as u64)),
        ("files with other deletes", Cell::count(did.with_other_deletes as u64)),
        ("columns", Cell::text(if did.columns_changed { "changed" } else { "as they were" })),
    ]
}

fn summary(file: &Location, did: &Refreshed) -> String {
    if did.is_nothing() {
        return format!("{}: up to date with snapshot {}\n", file.display(), did.now);
    }
    let mut changes = vec![
        format!("{} added", plural(did.added as u64, "file")),
        format!("{} dropped", did.dropped),
    ];
    if did.with_other_deletes > 0 {
        changes.push(format!("{} with other deletes", did.with_other_deletes));
    }
    if did.columns_changed {
        changes.push("other columns".to_owned());
    }
    let (before, now) = (did.before, did.now);
    format!("{}: snapshot {before} to {now}: {}\n", file.display(), changes.join(", "))
}
