//! `ironbloom index verify`: is an index whole, and are its tables as they were?

use anyhow::{Result, bail};
use clap::Args;
use ironbloom_index::{Indexed, Location};

use super::build::with_progress;
use crate::number::plural;
use crate::report::{self, Cell, Record};
use crate::{Outcome, output};

/// Check an index against its checksums; with --tables, its tables, too
///
/// Without --tables, the tables are not read. With it, all pages of the indexed columns are read and compared with the
/// checksums of the index, and pages of other columns with those of their writer. Every damaged part and every changed table
/// is named.
///
/// Checks that `index find` makes by itself:
///
/// A table is opened only if the index names blocks of it (and one table for the names and types of the columns). It is
/// refused if it is missing, or if its length or fingerprint differs: that of the footer of a Parquet file, or of the
/// beginning, the end and samples of a CSV file. Whatever is read of an indexed column or of a CSV file is compared with a
/// checksum; pages of other columns only if their writer stored checksums. Other changes are not noticed: rows that would
/// match now are not found, and a changed value in a column without checksums is shown as it is now. verify --tables reads
/// all tables: it notices all changes except in columns without checksums, which it names.
///
/// Exit status 0 if everything is intact, 2 if not.
#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The index
    #[arg(value_name = "INDEX")]
    index: Location,

    /// Also read all tables and compare them with what was indexed
    #[arg(long)]
    tables: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &VerifyArgs) -> Result<Outcome> {
    let verified = match Indexed::open(&args.index) {
        Ok(indexed) => verified(&indexed, args.tables),
        Err(error) => Verified { wrong: vec![error.to_string()], ..Verified::default() },
    };
    if args.json {
        output::print(&report::show_record(&verified.record(args), true))?;
    } else if verified.wrong.is_empty() {
        output::print(&verified.summary(args))?;
    }
    if verified.wrong.is_empty() {
        return Ok(Outcome::Found);
    }
    bail!("{}", verified.wrong.join("\nerror: "))
}

/// Result of the verification.
#[derive(Default)]
struct Verified {
    rows: u64,
    tables: u64,
    wrong: Vec<String>,
    /// Columns without checksums.
    unchecked: Vec<String>,
}

fn verified(indexed: &Indexed, with_tables: bool) -> Verified {
    let index = indexed.index();
    let mut verified = Verified {
        rows: index.info().rows,
        tables: index.sources().len() as u64,
        wrong: index.verify().iter().map(ToString::to_string).collect(),
        unchecked: Vec::new(),
    };
    if with_tables {
        let check = with_progress(|progress| indexed.verify_tables(progress));
        verified.wrong.extend(check.errors.iter().map(ToString::to_string));
        let unchecked = check.unchecked.iter();
        let named = unchecked.map(|(table, columns)| format!("{table}: {}", columns.join(", ")));
        verified.unchecked = named.collect();
    }
    verified
}

impl Verified {
    fn summary(&self, args: &VerifyArgs) -> String {
        let mut text = format!(
            "{}: whole, {} of {}; {}\n",
            args.index.display(),
            plural(self.rows, "row"),
            plural(self.tables, "table"),
            match args.tables {
                true => "the tables are as they were indexed",
                false => "the tables were not read (--tables does)",
            }
        );
        for columns in &self.unchecked {
            text += &format!("not compared, because there are no checksums: {columns}\n");
        }
        text
    }

    fn record(&self, args: &VerifyArgs) -> Record {
        let whole = self.wrong.is_empty();
        let state = if whole { "whole".to_owned() } else { self.wrong.join("; ") };
        let mut record = vec![
            ("file", Cell::text(args.index.display().to_string())),
            ("state", Cell::text(state)),
            ("tables", Cell::text(if args.tables { "read" } else { "not read" })),
        ];
        if args.tables {
            record.push(("not compared", Cell::text(self.unchecked.join("; "))));
        }
        record
    }
}
