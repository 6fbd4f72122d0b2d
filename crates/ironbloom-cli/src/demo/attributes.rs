//! Rows of several attributes. Which structure distinguishes rows from mixtures of rows, and at what cost?

use std::collections::HashSet;

use anyhow::Result;
use ironbloom::multi::{
    Attributes, Check, Joint, MultiFilter, ParallelBloom, VerifiedBloom, Weights,
};
use ironbloom::{BloomParams, CuckooLayout, CuckooParams, HashFn, sizing};

use super::{Findings, numbers};
use crate::number;
use crate::report::{Cell, Record};

const ROWS: u64 = 100_000;
const ASKED: u64 = 200_000;
/// Hash functions per attribute, and counters of each: half of them in use.
const PROBES: u32 = 7;
const COUNTERS: u64 = 144_270;
const FINGERPRINT_BITS: u32 = 12;
/// Rows that are removed, to see whether they disappear.
const REMOVED: usize = 1000;

pub(super) fn run() -> Result<Findings> {
    let mut records = Vec::new();
    for attributes in 2..=5 {
        records.extend(compare(attributes)?);
    }
    Ok(Findings {
        title: "Rows of several attributes",
        about: format!(
            "{} rows of two to five attributes, values at random among 2,000 (two) or 1,000. Asked are {} rows of\n\
             known values that are not there. PBF is a filter for each attribute, with {PROBES} hash functions; HT and BF\n\
             check it by a sum of the row's hash values; joint keeps {FINGERPRINT_BITS} bits of each row in a cuckoo filter.",
            number::count(ROWS),
            number::count(ASKED)
        ),
        records,
        see: "A PBF says yes to every mixture of known values, and to every row that was removed while others have its\n\
              values. Plain sums repair that in five rows of six; weighted ones well, but not if they are kept as whole\n\
              numbers, as is natural in a program. None of them gets better as it grows. One fingerprint of the row takes\n\
              a ninth of their bits or less, errs as rarely as you pay for, and forgets what is removed."
            .to_owned(),
    })
}

/// Distinct rows, and others of the same values.
struct Data {
    rows: HashSet<Vec<u64>>,
    unknown: Vec<Vec<u64>>,
}

impl Data {
    fn new(attributes: u32) -> Self {
        let values = if attributes == 2 { 2000 } else { 1000 };
        let row = |number: u64| {
            let draw = |i| ironbloom::hash::mix64(number ^ i) % values;
            (0..u64::from(attributes)).map(draw).collect::<Vec<u64>>()
        };
        // A few repeat, so more are drawn than needed.
        let mut rows = HashSet::new();
        for row in numbers(9, 2 * ROWS).map(row) {
            if rows.len() as u64 == ROWS {
                break;
            }
            rows.insert(row);
        }
        let unknown = numbers(10, 2 * ASKED).map(row).filter(|row| !rows.contains(row));
        let unknown = unknown.take(ASKED as usize).collect();
        Self { rows, unknown }
    }
}

fn bytes(row: &[u64]) -> Vec<[u8; 8]> {
    row.iter().map(|value| value.to_le_bytes()).collect()
}

fn compare(attributes: u32) -> Result<Vec<Record>> {
    let data = Data::new(attributes);
    let names = || Attributes::new((1..=attributes).map(|i| format!("a{i}")), HashFn::default());
    let values = || {
        let params = BloomParams::for_bits(COUNTERS * u64::from(PROBES), PROBES)?;
        ParallelBloom::new(params.with_capacity(ROWS)?, names()?)
    };
    let rows = CuckooParams::with_fingerprint(ROWS, FINGERPRINT_BITS, CuckooLayout::Plain)?;
    let joint_rate = rows.rate_at(ROWS);
    let sum = |law: fn(u64, u64, u32, u32) -> f64| law(ROWS, COUNTERS, attributes, PROBES);
    let weighted = sum(sizing::weighted_sum_rate);
    let table = |weights| VerifiedBloom::new(values()?, weights, Check::Table);
    let bloom = VerifiedBloom::new(values()?, Weights::Halving, Check::Bloom { rate: joint_rate })?;
    let either = weighted + (1.0 - weighted) * joint_rate;
    Ok(vec![
        measure("PBF", &data, values()?, 1.0)?,
        measure("PBF-HT, plain sum", &data, table(Weights::Equal)?, sum(sizing::sum_rate))?,
        measure("PBF-HT, weighted sum", &data, table(Weights::Halving)?, weighted)?,
        measure(
            "PBF-HT, weighted, whole",
            &data,
            table(Weights::HalvingTruncated)?,
            sum(sizing::truncated_sum_rate),
        )?,
        measure("PBF-BF, weighted sum", &data, bloom, either)?,
        measure("joint", &data, Joint::new(rows, names()?)?, joint_rate)?,
    ])
}

fn measure<F: MultiFilter>(name: &str, data: &Data, mut filter: F, theory: f64) -> Result<Record> {
    for row in &data.rows {
        filter.insert(&bytes(row))?;
    }
    let bits = filter.size_in_bytes() as f64 * 8.0 / ROWS as f64;
    let has = |filter: &F, row: &[u64]| {
        let query: Vec<_> = bytes(row).into_iter().map(Some).collect();
        filter.contains(&query)
    };
    let mut wrong = 0u64;
    for row in &data.unknown {
        wrong += u64::from(has(&filter, row)?);
    }
    let (removed, kept): (Vec<_>, Vec<_>) =
        data.rows.iter().enumerate().partition(|&(i, _)| i < REMOVED);
    for (_, row) in &removed {
        anyhow::ensure!(filter.remove(&bytes(row))?, "{name}: a row cannot be removed");
    }
    for (_, row) in kept {
        anyhow::ensure!(has(&filter, row)?, "{name}: a row was lost");
    }
    let mut gone = 0;
    for (_, row) in removed {
        gone += usize::from(!has(&filter, row)?);
    }
    Ok(vec![
        ("attributes", Cell::count(filter.attributes().len() as u64)),
        ("structure", Cell::text(name)),
        ("bits/row", Cell::float(bits, 1)),
        ("theory", Cell::rate(theory)),
        ("false positives", Cell::rate(wrong as f64 / ASKED as f64)),
        ("removed rows gone", Cell::text(format!("{gone} of {REMOVED}"))),
    ])
}
