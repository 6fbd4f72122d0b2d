//! Ten million integers. Which of a hash table, a bitmap and a Bloom filter?

use std::collections::HashSet;

use anyhow::Result;
use ironbloom::{Bitmap, BlockedBloom, Bloom, Filter, hash::mix64};

use super::{Findings, nanoseconds, numbers};
use crate::report::{Cell, Record};

const KEYS: u64 = 10_000_000;
const PROBED: u64 = 2_000_000;

pub(super) fn run() -> Result<Findings> {
    let mut records = Vec::new();
    for bound in [100_000_000, 1_000_000_000] {
        records.push(hash_table(bound));
        records.push(bitmap(bound)?);
        records.push(filter(
            "bloom, 1 %",
            bound,
            Bloom::with_rate(KEYS, 0.01)?,
            Bloom::insert_hash,
        ));
        records.push(filter(
            "blocked bloom, 1 %",
            bound,
            BlockedBloom::with_rate(KEYS, 0.01)?,
            BlockedBloom::insert_hash,
        ));
    }
    Ok(Findings {
        title: "Ten million integers: hash table, bitmap or Bloom filter",
        about: "Ten million random integers below 100 million, then below a billion. A common estimate counts 38 MB\n\
                for a hash table, 11.92 MB for a bitmap (119.2 MB for a billion), and asks for a Bloom filter beyond.\n\
                Random draws repeat: below 100 million 9.5 million are distinct, so the filters are not quite full."
            .to_owned(),
        records,
        see: "A real hash table takes twice that estimate. The bitmap is exact and smallest while\n\
              the range is small; a filter's size does not depend on the range, and one lookup in a hundred errs."
            .to_owned(),
    })
}

/// The integers that are in the set, and others that may be.
fn members(bound: u64) -> impl Iterator<Item = u64> {
    numbers(5, KEYS).map(move |number| number % bound)
}

fn probes(bound: u64) -> impl Iterator<Item = u64> {
    numbers(6, PROBED).map(move |number| number % bound)
}

fn record(name: &str, bound: u64, bytes: u64, insert: f64, lookup: f64, rate: f64) -> Record {
    vec![
        ("structure", Cell::text(name)),
        ("integers below", Cell::count(bound)),
        ("size", Cell::bytes(bytes)),
        ("insert ns", Cell::float(insert, 1)),
        ("lookup ns", Cell::float(lookup, 1)),
        ("false positives", Cell::rate(rate)),
    ]
}

fn hash_table(bound: u64) -> Record {
    let mut table: HashSet<u32> = HashSet::new();
    let (insert, ()) =
        nanoseconds(KEYS as usize, || table.extend(members(bound).map(|n| n as u32)));
    let (lookup, _) = nanoseconds(PROBED as usize, || {
        probes(bound).filter(|&n| table.contains(&(n as u32))).count()
    });
    // hashbrown: a power of two of buckets, at most 7/8 full, one control byte each.
    let buckets = (table.capacity() as u64 * 8 / 7).next_power_of_two();
    record("hash table (HashSet<u32>)", bound, buckets * 5, insert, lookup, 0.0)
}

fn bitmap(bound: u64) -> Result<Record> {
    let mut bitmap = Bitmap::new(bound)?;
    let (insert, result) = nanoseconds(KEYS as usize, || {
        members(bound).try_for_each(|number| bitmap.insert(number).map(drop))
    });
    result?;
    let (lookup, _) =
        nanoseconds(PROBED as usize, || probes(bound).filter(|&n| bitmap.contains(n)).count());
    Ok(record("bitmap", bound, bitmap.size_in_bytes() as u64, insert, lookup, 0.0))
}

fn filter<F: Filter>(
    name: &str,
    bound: u64,
    mut filter: F,
    insert_hash: impl Fn(&mut F, u64) -> bool,
) -> Record {
    let (insert, ()) = nanoseconds(KEYS as usize, || {
        for number in members(bound) {
            insert_hash(&mut filter, mix64(number));
        }
    });
    let (lookup, _) = nanoseconds(PROBED as usize, || {
        probes(bound).filter(|&number| filter.contains_hash(mix64(number))).count()
    });
    // Integers at or above the bound are certainly absent.
    let wrong = (0..PROBED).filter(|&n| filter.contains_hash(mix64(bound + n))).count();
    let rate = wrong as f64 / PROBED as f64;
    record(name, bound, filter.size_in_bytes() as u64, insert, lookup, rate)
}
