//! The table of variants (space, lookup time, deletion), measured instead of quoted.

use anyhow::Result;
use clap::ValueEnum as _;
use ironbloom::Filter as _;
use ironbloom::Kind;
use ironbloom::any::AnyFilter;

use super::{Findings, nanoseconds, numbers};
use crate::kinds::KindArg;
use crate::number;
use crate::report::{Cell, Record};

const KEYS: u64 = 1_000_000;
const PROBED: u64 = 1_000_000;
const RATE: f64 = 0.01;

pub(super) fn run() -> Result<Findings> {
    // A bitmap holds integers and a joint filter rows.
    let others = [Kind::Bitmap, Kind::Joint];
    let kinds =
        KindArg::value_variants().iter().copied().filter(|kind| !others.contains(&kind.kind));
    let records = kinds.map(measure).collect::<Result<_>>()?;
    Ok(Findings {
        title: "The kinds of filter, measured",
        about: format!(
            "{} keys at 1 % in every kind: bits per key, nanoseconds per key in batches (without hashing), the\n\
             rate measured with as many absent keys, and whether a removed key is gone.",
            number::count(KEYS)
        ),
        records,
        see: "Counting pays four times the space for deletion; d-left twice; cuckoo hardly more than a Bloom filter.\n\
              Fuse is the smallest and takes no more keys; windowed counts the keys of its window."
            .to_owned(),
    })
}

fn measure(kind: KindArg) -> Result<Record> {
    let present: Vec<u64> = numbers(7, KEYS).collect();
    let absent: Vec<u64> = numbers(8, PROBED).collect();
    let (insert, filter) = nanoseconds(present.len(), || kind.build(&present, KEYS, RATE, 0));
    let mut filter = filter?;
    let mut found = vec![false; present.len()];
    let (hit, ()) = nanoseconds(present.len(), || filter.contains_hashes(&present, &mut found));
    let lost = found.iter().filter(|&&found| !found).count();
    anyhow::ensure!(lost == 0, "{}: {lost} keys lost", kind.name);
    let mut found = vec![false; absent.len()];
    let (miss, ()) = nanoseconds(absent.len(), || filter.contains_hashes(&absent, &mut found));
    let wrong = found.iter().filter(|&&found| found).count();
    Ok(vec![
        ("kind", Cell::text(kind.name)),
        ("bits/key", Cell::float(filter.size_in_bytes() as f64 * 8.0 / KEYS as f64, 2)),
        ("insert ns", Cell::float(insert, 1)),
        ("hit ns", Cell::float(hit, 1)),
        ("miss ns", Cell::float(miss, 1)),
        ("measured rate", Cell::rate(wrong as f64 / PROBED as f64)),
        ("removed keys gone", deletion(&mut filter, &present)),
    ])
}

/// Removes a thousand keys and counts those that are gone; a few stay, as false positives.
fn deletion(filter: &mut AnyFilter, present: &[u64]) -> Cell {
    let some = &present[..1000];
    let removed = some.iter().all(|&hash| filter.remove_hash(hash).unwrap_or(false));
    if !removed {
        return Cell::none("cannot remove");
    }
    let gone = some.iter().filter(|&&hash| !filter.contains_hash(hash)).count();
    Cell::text(format!("{gone} of 1000"))
}
