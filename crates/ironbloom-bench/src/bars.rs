//! The bars: targets set beforehand, checked against the measurements.
//!
//! A bar on lookups is met only if it is met for hits, for misses and for the mixture of both. The factors are for
//! integers; for strings, where hashing takes part of the time, only the order must hold.

use crate::contender::{RATE, Side};
use crate::keys::{KeyType, Share};
use crate::stats;
use crate::table::{Op, Table};
use crate::threads::Scaling;

const MILLION: u64 = 1_000_000;
/// Sizes from here on count as "100 M keys": well out of cache.
const LARGE: u64 = 100_000_000;
const SHARES: [Share; 3] = [Share::All, Share::Half, Share::None];

/// A bar and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) n: u64,
    pub(crate) key_type: KeyType,
    pub(crate) case: String,
    pub(crate) wanted: String,
    pub(crate) measured: String,
    pub(crate) met: bool,
}

/// The sizes to which a bar applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Both,
    Large,
}

#[derive(Clone, Copy)]
enum Task {
    Build,
    Insert,
    BatchInsert,
    Lookup,
    BatchLookup,
}

impl Task {
    fn ops(self) -> Vec<Op> {
        match self {
            Self::Build => vec![Op::Build],
            Self::Insert => vec![Op::Insert],
            Self::BatchInsert => vec![Op::BatchInsert],
            Self::Lookup => SHARES.map(Op::Lookup).to_vec(),
            Self::BatchLookup => SHARES.map(Op::BatchLookup).to_vec(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Insert => "insert",
            Self::BatchInsert => "batch insert",
            Self::Lookup => "lookup",
            Self::BatchLookup => "batch lookup",
        }
    }
}

/// Requires our filter to be this many times as fast at a task as another one key by key.
struct Race(At, &'static str, Task, &'static str, f64);

const RACES: [Race; 23] = [
    Race(At::Both, "BlockedBloom", Task::Lookup, "fastbloom", 4.0),
    Race(At::Both, "BlockedBloom", Task::Lookup, "sbbf-rs 10 bits", 1.0),
    Race(At::Both, "BlockedBloom", Task::Lookup, "sbbf-rs 1 %", 1.0),
    Race(At::Large, "BlockedBloom", Task::BatchLookup, "fastbloom", 7.0),
    Race(At::Large, "BlockedBloom", Task::BatchLookup, "sbbf-rs 10 bits", 2.5),
    Race(At::Large, "BlockedBloom", Task::BatchLookup, "sbbf-rs 1 %", 2.5),
    Race(At::Large, "BlockedBloom", Task::BatchInsert, "fastbloom", 6.0),
    Race(At::Both, "Bloom", Task::Lookup, "fastbloom", 1.0),
    Race(At::Both, "Bloom", Task::BatchLookup, "fastbloom", 2.0),
    Race(At::Both, "Cuckoo", Task::Insert, "cuckoofilter", 3.0),
    Race(At::Both, "Cuckoo", Task::Lookup, "cuckoofilter", 3.0),
    Race(At::Both, "Cuckoo", Task::Insert, "qfilter", 2.0),
    Race(At::Both, "Cuckoo", Task::Lookup, "qfilter", 2.0),
    Race(At::Both, "BinaryFuse 3", Task::Build, "xorf BinaryFuse8", 1.0),
    Race(At::Both, "BinaryFuse 3", Task::Lookup, "xorf BinaryFuse8", 1.0),
    Race(At::Large, "BinaryFuse 3", Task::BatchLookup, "xorf BinaryFuse8", 2.0),
    Race(At::Both, "BinaryFuse 3, 8 bits", Task::Build, "xorf BinaryFuse8", 1.0),
    Race(At::Both, "BinaryFuse 3, 8 bits", Task::Lookup, "xorf BinaryFuse8", 1.0),
    Race(At::Large, "BinaryFuse 3, 8 bits", Task::BatchLookup, "xorf BinaryFuse8", 2.0),
    Race(At::Both, "AtomicBlockedBloom", Task::Lookup, "BlockedBloom", 1.0 / 1.05),
    Race(At::Both, "AtomicBloom", Task::Lookup, "Bloom", 1.0 / 1.05),
    Race(At::Both, "AtomicBlockedBloom", Task::Insert, "fastbloom atomic", 1.0),
    Race(At::Both, "AtomicBloom", Task::Insert, "fastbloom atomic", 1.0),
];

/// Checks all bars that these measurements cover. Sizes other than a million and 100 million keys have none.
pub(crate) fn check(tables: &[Table], scalings: &[Scaling]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for table in tables.iter().filter(|table| has_bars(table.n)) {
        bars.extend(delivers(table));
        for race in &RACES {
            if race.0 == At::Both || table.n >= LARGE {
                bars.extend(run(race, table));
            }
        }
        if table.n >= LARGE && table.key_type == KeyType::U64 {
            bars.extend(near_memory(table));
        }
    }
    bars.extend(scalings.iter().filter(|scaling| has_bars(scaling.n)).filter_map(scales));
    bars
}

fn has_bars(n: u64) -> bool {
    n == MILLION || n >= LARGE
}

/// The fast filter must be small, and stay within its rate.
fn delivers(table: &Table) -> Option<Bar> {
    let row = table.row("BlockedBloom")?;
    Some(Bar {
        n: table.n,
        key_type: table.key_type,
        case: "BlockedBloom, space and rate".to_owned(),
        wanted: format!("at most 10.2 bits/key, {} % delivered", RATE * 100.0),
        measured: format!("{:.2} bits/key, {:.3} %", row.bits_per_key, row.rate() * 100.0),
        met: row.bits_per_key <= 10.2 && row.keeps_rate(table.n) && !row.is_wrong(),
    })
}

fn run(race: &Race, table: &Table) -> Option<Bar> {
    let &Race(_, ours, task, theirs, least) = race;
    let (our_row, their_row) = (table.row(ours)?, table.row(theirs)?);
    // A peer is compared key by key, since peers have no batches; our own filters by the same operation.
    let their_op = |op: Op| if their_row.side == Side::Peer { op.one_by_one() } else { op };
    let ratios: Option<Vec<f64>> = task
        .ops()
        .into_iter()
        .map(|op| stats::speedup(our_row.samples(op), their_row.samples(their_op(op))))
        .collect();
    let ratios = ratios?;
    let least = if table.key_type == KeyType::Strings { least.min(1.0) } else { least };
    Some(Bar {
        n: table.n,
        key_type: table.key_type,
        case: format!("{ours} {} against {theirs}", task.name()),
        wanted: format!("{least:.2}×"),
        measured: list(&ratios),
        met: ratios.iter().all(|&ratio| ratio >= least) && !our_row.is_wrong(),
    })
}

/// Batches must come close to the limit set by memory.
fn near_memory(table: &Table) -> Option<Bar> {
    let row = table.row("BlockedBloom")?;
    let mut times = Vec::new();
    for op in SHARES.map(Op::BatchLookup) {
        times.push(1.0 / stats::speedup(row.samples(op), table.yardstick(op)?.samples(op))?);
    }
    Some(Bar {
        n: table.n,
        key_type: table.key_type,
        case: "BlockedBloom batch lookup, its time over that of random line reads".to_owned(),
        wanted: "at most 1.20".to_owned(),
        measured: list(&times).replace('×', ""),
        met: times.iter().all(|&time| time <= 1.2),
    })
}

fn scales(scaling: &Scaling) -> Option<Bar> {
    let ours = scaling.name.starts_with("Atomic");
    let ratio = scaling.speedup().filter(|_| ours)?;
    Some(Bar {
        n: scaling.n,
        key_type: scaling.key_type,
        case: format!("{} {}, two threads against one", scaling.name, scaling.work.name()),
        wanted: "1.70×".to_owned(),
        measured: list(&[ratio]),
        met: ratio >= 1.7 && scaling.missing == 0,
    })
}

/// Formats ratios as `5.12×` or, for lookups, `hit 5.12×, half 4.80×, miss 4.11×`.
fn list(ratios: &[f64]) -> String {
    match ratios {
        [hit, half, miss] => format!("hit {hit:.2}×, half {half:.2}×, miss {miss:.2}×"),
        ratios => ratios.iter().map(|ratio| format!("{ratio:.2}×")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;
    use crate::threads::Work;

    fn table(ours: f64, miss: f64) -> Table {
        let mut rows =
            vec![Row::new("BlockedBloom", Side::Ours), Row::new("fastbloom", Side::Peer)];
        (rows[0].bits_per_key, rows[0].absent, rows[0].found) = (10.1, 1_000_000, 10_000);
        for share in SHARES {
            rows[0].record(Op::Lookup(share), if share == Share::None { miss } else { ours });
            rows[1].record(Op::Lookup(share), 40.0);
        }
        Table { n: MILLION, key_type: KeyType::U64, rows }
    }

    #[test]
    fn a_bar_on_lookups_needs_hits_and_misses() {
        let met = |table| check(&[table], &[]).iter().map(|bar| bar.met).collect::<Vec<_>>();
        assert_eq!(met(table(10.0, 10.0)), [true, true]);
        assert_eq!(met(table(10.0, 11.0)), [true, false]);
    }

    #[test]
    fn a_filter_that_loses_keys_meets_no_bar() {
        let mut table = table(1.0, 1.0);
        table.rows[0].missing = 1;
        assert!(check(&[table], &[]).iter().all(|bar| !bar.met));
    }

    #[test]
    fn threads_must_scale() {
        let mut scaling = Scaling {
            n: MILLION,
            key_type: KeyType::U64,
            name: "AtomicBloom",
            work: Work::Lookup,
            one: vec![17.0],
            two: vec![10.0],
            missing: 0,
        };
        assert!(check(&[], &[scaling.clone()])[0].met);
        scaling.two = vec![11.0];
        assert!(!check(&[], &[scaling])[0].met);
    }
}
