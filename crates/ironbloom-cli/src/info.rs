//! `ironbloom info`: what is in a filter file?

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::describe::FactValue;
use ironbloom::{Filter as _, KeyType, KeyTypes};

use crate::foreign::{self, ForeignArgs};
use crate::number::plural;
use crate::report::{self, Cell, Record};
use crate::secret::SecretArgs;
use crate::{Outcome, dash, failure, number, output, rows};

/// Show what a filter file holds: kind, hash, parameters, keys, rate
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom info seen.ibf
  ironbloom info --json seen.ibf | jq .estimated_rate
  ironbloom info --json *.ibf | jq '.[].estimated_keys'     several files: a list
  ironbloom info users.bin                        a filter of Guava, Spark, …, recognised by content

Keys are counted when they are inserted, and one that looks present already is not counted. Over capacity most look \
present: then the number is only a lower bound, and the estimate, from the bits that are set, is nearer.")]
pub(crate) struct InfoArgs {
    /// The filters; `-` reads one from standard input
    #[arg(value_name = "FILE", required = true)]
    filters: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    foreign: ForeignArgs,
}

pub(crate) fn run(args: &InfoArgs) -> Result<Outcome> {
    // Each by itself: one that cannot be read must not hide the others.
    let mut records = Vec::new();
    let mut failures = Vec::new();
    for path in &args.filters {
        match foreign::load(path, args.foreign, &SecretArgs::default()) {
            Ok(filter) => records.push(record(path, &filter)),
            Err(error) => failures.push(error),
        }
    }
    let (several, last) = (args.filters.len() > 1, failures.pop());
    let shown = match records.as_slice() {
        records if several && args.json => format!("{:#}\n", report::json_records(records)),
        records => {
            let shown = records.iter().map(|record| report::show_record(record, args.json));
            shown.collect::<Vec<_>>().join("\n")
        }
    };
    if !records.is_empty() {
        output::print(&shown)?;
    }
    for error in failures {
        output::note(&format!("error: {}", failure::message(&error)));
    }
    last.map_or(Ok(Outcome::Found), Err)
}

/// Keys given to a command, as far as it knows.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    /// All that were read.
    pub(crate) read: u64,
    /// The distinct ones among them, if they were counted.
    pub(crate) distinct: Option<u64>,
}

impl Given {
    /// The distinct ones, counted or else estimated from the filter that was empty before. A Bloom filter does not count a
    /// key that looks present when it comes, so when it is overfull its own count is far too low.
    fn distinct(self, filter: &AnyFilter) -> Option<u64> {
        let estimate = filter.estimate_len();
        let estimated = || {
            let known = estimate.is_finite() && !is_saturated(filter);
            known.then(|| (estimate.round() as u64).clamp(filter.len().min(self.read), self.read))
        };
        self.distinct.or_else(estimated)
    }
}

/// Returns true if the filter is too full for a useful estimate.
fn is_saturated(filter: &AnyFilter) -> bool {
    filter.is_over_capacity() && filter.estimate_rate() > 0.9
}

/// A filter that was built, in one line.
pub(crate) fn built(path: &Path, filter: &AnyFilter, given: Given) -> String {
    let distinct = given.distinct(filter);
    let keys = match distinct {
        Some(keys) if given.distinct.is_some() || filter.len() == given.read => plural(keys, "key"),
        Some(keys) => {
            format!("{} read, about {} distinct", plural(given.read, "key"), number::count(keys))
        }
        None => format!(
            "{} read, far too many to estimate the distinct ones",
            plural(given.read, "key")
        ),
    };
    summary(path, filter, &keys, distinct)
}

/// A filter that was added to or merged, in one line.
pub(crate) fn changed(path: &Path, filter: &AnyFilter, read: Option<u64>) -> String {
    let read = read.map_or(String::new(), |read| format!("{} read, now ", plural(read, "key")));
    summary(path, filter, &format!("{read}{}", counted_keys(filter)), Some(known_keys(filter)))
}

fn summary(path: &Path, filter: &AnyFilter, keys: &str, number: Option<u64>) -> String {
    let bytes = filter.size_in_bytes() as u64;
    let name = dash::output_name(path);
    let mut text = format!("{name}: {}, {keys}, {}", filter.kind(), number::bytes(bytes));
    if let Some(number) = number.filter(|&number| number > 0) {
        text += &format!(", {:.2} bits/key", bytes as f64 * 8.0 / number as f64);
    }
    if number != Some(0) {
        text += &format!(", rate {}", number::rate(filter.estimate_rate()));
    }
    text
}

/// `1,000 keys`, or `at least 39 keys` of a filter that holds more than it has counted.
pub(crate) fn counted_keys(filter: &AnyFilter) -> String {
    match filter {
        _ if !counts_too_few(filter) => plural(filter.len(), "key"),
        _ if is_saturated(filter) => format!("at least {}", plural(filter.len(), "key")),
        _ => format!("about {}", plural(known_keys(filter), "key")),
    }
}

/// Returns true if there are clearly more keys than the filter counted: below its capacity it misses only the few that looked
/// present, and the estimate from its bits is no better.
fn counts_too_few(filter: &AnyFilter) -> bool {
    let more = || filter.is_over_capacity() && filter.estimate_len().round() > filter.len() as f64;
    !filter.abilities().exact_len && (more() || is_saturated(filter))
}

/// The keys counted, or estimated if those are more.
fn known_keys(filter: &AnyFilter) -> u64 {
    let estimate = filter.estimate_len();
    let estimate = if estimate.is_finite() { estimate.round() as u64 } else { 0 };
    if counts_too_few(filter) { estimate.max(filter.len()) } else { filter.len() }
}

/// The record with the number of keys that a command has read.
pub(crate) fn record_with_read(path: &Path, filter: &AnyFilter, read: u64) -> Record {
    let mut record = record(path, filter);
    let before = record.iter().position(|(name, _)| *name == "keys").unwrap_or(0);
    record.insert(before, ("keys read", Cell::count(read)));
    record
}

/// Of which types the keys are, as far as the file says.
fn key_types(filter: &AnyFilter) -> String {
    let of = |types: KeyTypes| match types.is_empty() {
        true => "not recorded".to_owned(),
        false => types.to_string(),
    };
    match (filter.as_multi(), filter) {
        (Some(rows), _) => {
            let attributes = rows.attributes();
            let of = |i| format!("{}: {}", attributes.names()[i], of(attributes.key_types(i)));
            (0..attributes.len()).map(of).collect::<Vec<_>>().join("; ")
        }
        (None, AnyFilter::Bitmap(_)) => KeyType::Integer.to_string(),
        (None, AnyFilter::Foreign(foreign)) => {
            foreign.form().map_or_else(|| of(KeyTypes::NONE), |form| form.to_string())
        }
        (None, AnyFilter::RedisBloom(_)) => KeyType::Bytes.to_string(),
        (None, filter) => of(filter.key_types()),
    }
}

/// The filter field by field.
pub(crate) fn record(path: &Path, filter: &AnyFilter) -> Record {
    let bytes = filter.size_in_bytes() as u64;
    let hash = match filter.key_hash() {
        KeyHash::Row(hash_fn) => format!("{hash_fn}, another for each attribute"),
        KeyHash::Integer => "none, keys are integers".to_owned(),
        KeyHash::Hash(hash_fn)
        | KeyHash::Held(hash_fn, _)
        | KeyHash::Digits(hash_fn)
        | KeyHash::Foreign(hash_fn) => hash_fn.to_string(),
    };
    let mut record: Record = vec![
        ("file", Cell::text(dash::input_name(path))),
        ("kind", Cell::text(filter.kind().name())),
        ("hash", Cell::text(hash)),
        ("key types", Cell::text(key_types(filter))),
        ("keys", counted(filter)),
        ("estimated keys", estimate(filter.estimate_len())),
        ("capacity", capacity(filter)),
        ("over capacity", Cell::yes_no(filter.is_over_capacity())),
        ("estimated rate", Cell::rate(filter.estimate_rate())),
        ("size", Cell::bytes(bytes)),
        (
            "bits/key",
            if filter.is_empty() {
                Cell::none("–")
            } else {
                Cell::float(bytes as f64 * 8.0 / known_keys(filter) as f64, 2)
            },
        ),
    ];
    record.extend(parameters(filter));
    record
}

/// Other programs rarely record it.
fn capacity(filter: &AnyFilter) -> Cell {
    match (filter, filter.capacity()) {
        (AnyFilter::Foreign(_), 0) => Cell::none("not recorded"),
        (_, capacity) => Cell::count(capacity),
    }
}

fn counted(filter: &AnyFilter) -> Cell {
    let cell = Cell::count(filter.len());
    if counts_too_few(filter) { cell.saying(|number| format!("at least {number}")) } else { cell }
}

fn estimate(value: f64) -> Cell {
    if value.is_finite() {
        Cell::count(value.round() as u64)
    } else {
        Cell::none("all bits are set")
    }
}

/// Facts that are specific to the kind.
fn parameters(filter: &AnyFilter) -> Record {
    filter.describe().into_iter().map(|(name, value)| (name, cell(value))).collect()
}

fn cell(value: FactValue) -> Cell {
    match value {
        FactValue::Count(count) => Cell::count(count),
        FactValue::Rate(rate) => Cell::rate(rate),
        FactValue::Ratio(ratio) => {
            Cell::float(ratio, 3).saying(|text| text.strip_suffix('0').unwrap_or(text).to_owned())
        }
        FactValue::Flag(flag) => Cell::yes_no(flag),
        FactValue::Text(text) => Cell::text(text),
        FactValue::Counts(counts) => rows::by_name(&counts),
        _ => Cell::none("–"),
    }
}
