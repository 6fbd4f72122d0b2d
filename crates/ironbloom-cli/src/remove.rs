//! `ironbloom remove`: keys out of a filter that can forget them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use ironbloom::RemovalCheck;
use ironbloom::any::{AnyFilter, Operation, Refused};
use ironbloom::hash::KeyForm;
use ironbloom::removal::Verdict;

use crate::failure::Advice;
use crate::input::{self, InputArgs};
use crate::report::{self, Cell};
use crate::secret::SecretArgs;
use crate::turn::Turn;
use crate::{Outcome, dash, file, foreign, number, output, rows};

/// Remove keys from a filter (counting, d-left, cuckoo, bitmap, joint)
///
/// Remove only keys that were inserted, and each only as often as it was inserted. Most other keys are recognised as absent
/// and counted as such; but at the filter's rate a key looks present although it is not, and removing it makes another key
/// disappear. Except for bitmaps, no filter can detect that. So the list as a whole is checked and refused if it cannot be
/// right: if it would remove more keys than there are, or if so many of its keys are absent or repeated that some of the
/// others must only look present. The file is then not changed, unless --force is given. A list of keys that all look
/// present, such as the output of `ironbloom check`, is not detected.
///
/// `ironbloom build` inserts a key once, however often it occurs; `ironbloom add` inserts it once more.
///
/// Rows of a joint filter are read from CSV, as in `ironbloom add`. The exit status is 0 if any key was removed, 1 if none
/// was.
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

    /// What lines are, where the filter holds keys of several types: text or long (integers)
    #[arg(long, value_name = "FORM", value_parser = foreign::forms(), hide_possible_values = true)]
    keys: Option<KeyForm>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Remove what looks present even if other keys disappear with it
    #[arg(long)]
    force: bool,

    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RemoveArgs) -> Result<Outcome> {
    dash::require_file(
        &args.filter,
        "the filter to remove from must be a file: it is read and then replaced",
    )?;
    let _turn = Turn::take_if_same(&args.filter, &args.filter)?;
    let mut filter = args.secret.load(&args.filter)?;
    refuse_unless_removable(&filter).with_context(|| args.filter.display().to_string())?;
    let hashes = read(args, &filter)?;
    let mut check = check(&filter, &hashes)?;
    let removed = remove(&mut filter, &hashes).map_err(|error| file::named(&args.filter, error))?;
    if !args.force {
        check.removed(removed); // from memory: the file is still what it was
        judge(args, &check)?;
    }
    let absent = (hashes.len() / width(&filter)) as u64 - removed;
    if removed > 0 {
        file::save(&filter, &args.filter)?;
    }
    let record = vec![("removed", Cell::count(removed)), ("absent", Cell::count(absent))];
    output::print(&report::show_record(&record, args.json))?;
    Ok(if removed > 0 { Outcome::Found } else { Outcome::NotFound })
}

/// Hashes of a key: one, or one for each attribute of a row.
fn width(filter: &AnyFilter) -> usize {
    filter.as_multi().map_or(1, |filter| filter.attributes().len())
}

/// The hashes of the whole list, those of a row one after the other. A list can be judged only as a whole.
fn read(args: &RemoveArgs, filter: &AnyFilter) -> Result<Vec<u64>> {
    let mut all: Vec<u64> = Vec::new();
    let mut keep = |hashes: Vec<u64>| {
        all.try_reserve(hashes.len())
            .map_err(|_| anyhow!("not enough memory for the hashes of all keys to be removed"))?;
        all.extend_from_slice(&hashes);
        Ok(())
    };
    match filter.as_multi() {
        Some(rows) => rows::for_each_block_of(
            &args.input,
            &args.filter,
            rows.attributes(),
            file::key_type(args.keys)?,
            1,
            |_, hashes| keep(hashes),
        )?,
        None => {
            let key_hash = file::text_hash(&args.filter, filter, file::key_type(args.keys)?)?;
            input::for_each_block(
                &args.input,
                1,
                move |keys| file::hashes(keys, key_hash),
                |_, hashes| keep(hashes),
            )?;
        }
    }
    Ok(all)
}

fn check(filter: &AnyFilter, hashes: &[u64]) -> Result<RemovalCheck> {
    let Some(multi) = filter.as_multi() else { return Ok(filter.check_removal(hashes)?) };
    let mut check = RemovalCheck::nothing(filter.len(), filter.estimate_rate());
    let mut rows: Vec<&[u64]> = hashes.chunks_exact(width(filter)).collect();
    rows.sort_unstable();
    for copies in rows.chunk_by(|one, two| one == two) {
        let query: Vec<Option<u64>> = copies[0].iter().copied().map(Some).collect();
        check.count(copies.len() as u64, multi.contains_hashed(&query)?);
    }
    Ok(check)
}

/// Refuses a list that cannot be right, and warns about one that is doubtful.
fn judge(args: &RemoveArgs, check: &RemovalCheck) -> Result<()> {
    let count = number::count;
    let asked = count(check.present() + check.absent());
    let (present, absent) = (count(check.present()), count(check.absent()));
    let why = match check.verdict() {
        Verdict::Plausible => return Ok(()),
        Verdict::Doubtful => {
            let chance = number::rate(check.expected_wrong());
            let what = if check.gone() > check.absent() {
                format!(
                    "{}; the chance is about {chance} that another key went with them",
                    too_often(check)
                )
            } else {
                format!(
                    "{absent} of {asked} keys are certainly not there; the chance is about {chance} that one of the \
                     {present} that look present is not either, and takes another key with it"
                )
            };
            output::note(&format!("warning: {}: {what}", args.filter.display()));
            return Ok(());
        }
        Verdict::TooMany => format!(
            "{} of keys that look present, from a filter of {}",
            number::plural(check.copies(), "removal"),
            number::plural(check.keys(), "key"),
        ),
        Verdict::Chance => format!(
            "{present} of {asked} keys look present, no more than false positives explain: perhaps none of them was \
             ever inserted"
        ),
        _ if check.gone() > check.absent() => format!(
            "{}, and about {} would disappear with them",
            too_often(check),
            number::plural(check.expected_wrong().round() as u64, "other key"),
        ),
        _ => format!(
            "{absent} of {asked} keys are certainly not there, so about {} of the {present} that look present are \
             false positives, and as many other keys would disappear",
            count(check.expected_wrong().round() as u64),
        ),
    };
    Err(Advice::error(
        format!("{}: {why}", args.filter.display()),
        "nothing was changed; remove only keys that were inserted, each as often as it was, or say --force",
    ))
}

/// Mostly about lists with repeated keys.
fn too_often(check: &RemovalCheck) -> String {
    format!(
        "{} of {} removals found nothing: keys are in the list more often than they were inserted",
        number::count(check.gone()),
        number::count(check.copies()),
    )
}

/// Number of keys that were present. A bitmap cannot hold keys beyond its bound.
fn remove(filter: &mut AnyFilter, hashes: &[u64]) -> Result<u64> {
    let width = width(filter);
    let mut removed = 0;
    if let Some(rows) = filter.as_multi_mut() {
        for row in hashes.chunks_exact(width) {
            removed += u64::from(rows.remove_hashed(row)?);
        }
        return Ok(removed);
    }
    for &hash in hashes {
        removed += match filter.remove_hash(hash) {
            Ok(gone) => u64::from(gone),
            Err(Refused::OutOfBounds(_)) => 0,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(removed)
}

/// Fails before any input is read.
fn refuse_unless_removable(filter: &AnyFilter) -> Result<(), Refused> {
    if filter.abilities().remove {
        return Ok(());
    }
    Err(Refused::Unsupported { kind: filter.kind(), operation: Operation::Remove })
}
