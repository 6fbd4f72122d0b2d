//! The measurement: builds, fills and lookups of all contenders in turns, so that noise affects all alike.
//!
//! ```text
//! builds     several times: each static kind from the same hashes
//! fills      several times: for each chunk of keys, each contender inserts it     (single and batch: two filters)
//! lookups    rounds: for each share of present keys, each contender answers the same queries
//! ```
//!
//! The contender that goes first changes from turn to turn. A turn is long, and an untimed warm-up before it restores
//! what the others evicted from the cache.

use std::time::Instant;

use crate::contender::{Contender, Make, Side, Spec, hash_text};
use crate::keys::{KeyType, Keys, Queries, Share, chunks, queries};
use crate::table::{Op, Row, Table};

/// Keys inserted in a turn.
const CHUNK: u64 = 1_000_000;
/// Filters beyond this size are never in cache when their turn comes, and a warm-up could not change that.
const OUT_OF_CACHE: u64 = 50_000_000;
/// Warm-up rounds ask for separate keys.
const WARM_UP_ROUND: u64 = 1 << 16;

/// The amount of work to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) n: u64,
    pub(crate) key_type: KeyType,
    /// Rounds of lookups.
    pub(crate) rounds: u64,
    /// Lookups per turn.
    pub(crate) queries: usize,
    /// Minimum number of keys inserted over all fills of a contender; a large filter is filled once.
    pub(crate) fill_work: u64,
}

impl Effort {
    /// Number of fills of a contender, each with a fresh filter.
    pub(crate) fn fills(&self) -> u64 {
        (self.fill_work / self.n).clamp(1, 15)
    }

    /// Number of builds. A build is a single turn, so several are needed to tell noise from time.
    fn builds(&self) -> u64 {
        self.fills().max(3)
    }

    /// Lookups before a turn: enough to touch nearly every cache line of a filter that fits the cache.
    pub(crate) fn warm_up(&self) -> Keys {
        let least = (self.queries / 16).max(1);
        let count = match self.n {
            OUT_OF_CACHE.. => least,
            n => (n as usize / 16).clamp(least, self.queries),
        };
        queries(self.key_type, self.n, Share::Half, WARM_UP_ROUND, count).keys
    }
}

/// A contender and its results so far.
struct Entry {
    spec: Spec,
    filter: Option<Box<dyn Contender>>,
    row: Row,
}

/// Measures all contenders at one size.
pub(crate) fn measure(effort: &Effort, specs: &[Spec], progress: &mut dyn FnMut(String)) -> Table {
    let mut entries: Vec<Entry> = specs
        .iter()
        .map(|&spec| Entry { spec, filter: None, row: Row::new(spec.name, spec.side) })
        .collect();
    build(effort, &mut entries, progress);
    fill(effort, &mut entries, progress);
    lay_out_lines(effort, &mut entries);
    for entry in &mut entries {
        let bytes = entry.filter.as_ref().map_or(0, |filter| filter.size_in_bytes());
        entry.row.bits_per_key = bytes as f64 * 8.0 / effort.n as f64;
    }
    look_up(effort, &mut entries, progress);
    let rows = entries.into_iter().map(|entry| entry.row).collect();
    Table { n: effort.n, key_type: effort.key_type, rows }
}

/// Visits every element of a list, starting at a different one each turn.
pub(crate) fn in_turn<T>(list: &mut [T], turn: u64, mut each: impl FnMut(&mut T)) {
    let start = (turn % list.len().max(1) as u64) as usize;
    let (head, tail) = list.split_at_mut(start);
    tail.iter_mut().chain(head).for_each(&mut each);
}

/// Runs `work`; returns its result and the nanoseconds it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_nanos() as f64)
}

fn build(effort: &Effort, entries: &mut [Entry], progress: &mut dyn FnMut(String)) {
    if !entries.iter().any(|entry| matches!(entry.spec.make, Make::Built { .. })) {
        return;
    }
    for turn in 0..effort.builds() {
        progress(format!("build {} of {}", turn + 1, effort.builds()));
        in_turn(entries, turn, |entry| {
            if let Make::Built { hash, build } = entry.spec.make {
                let hashes = all_hashes(effort, hash);
                entry.filter = None; // free the previous filter's memory first
                let (filter, nanoseconds) = timed(|| build(&hashes));
                entry.filter = Some(filter);
                entry.row.record(Op::Build, nanoseconds / effort.n as f64);
            }
        });
    }
}

/// Hashes all present keys. A static filter is built from them; timing starts once they exist.
fn all_hashes(effort: &Effort, hash: fn(u64) -> u64) -> Vec<u64> {
    let mut hashes = Vec::with_capacity(effort.n as usize);
    for range in chunks(effort.n, CHUNK) {
        match Keys::of(effort.key_type, range) {
            Keys::Numbers(numbers) => hashes.extend(numbers.into_iter().map(hash)),
            Keys::Texts(texts) => hashes.extend(texts.iter().map(hash_text)),
        }
    }
    hashes
}

/// A filter that is being filled.
struct Filling {
    entry: usize,
    op: Op,
    filter: Box<dyn Contender>,
    nanoseconds: f64,
    refused: u64,
}

fn fill(effort: &Effort, entries: &mut [Entry], progress: &mut dyn FnMut(String)) {
    let warm_up = effort.warm_up();
    for fill in 0..effort.fills() {
        let mut fillings = empty_filters(effort, entries);
        for (i, range) in chunks(effort.n, CHUNK).enumerate() {
            progress(format!("fill {} of {}, {} keys in", fill + 1, effort.fills(), range.start));
            let keys = Keys::of(effort.key_type, range);
            in_turn(&mut fillings, fill + i as u64, |filling| {
                if i > 0 {
                    filling.filter.count(&warm_up);
                }
                let (refused, nanoseconds) = timed(|| match filling.op {
                    Op::BatchInsert => filling.filter.insert_batch(&keys),
                    _ => filling.filter.insert(&keys),
                });
                filling.nanoseconds += nanoseconds;
                filling.refused += refused;
            });
        }
        let check = queries(effort.key_type, effort.n, Share::All, WARM_UP_ROUND, effort.queries);
        for filling in fillings {
            keep(effort, &mut entries[filling.entry], filling, &check);
        }
    }
}

fn empty_filters(effort: &Effort, entries: &mut [Entry]) -> Vec<Filling> {
    let mut fillings = Vec::new();
    for (entry, Entry { spec, filter, .. }) in entries.iter_mut().enumerate() {
        let Make::Empty(make) = spec.make else { continue };
        *filter = None; // free the previous filter's memory first
        let ops = if spec.batches { &[Op::Insert, Op::BatchInsert][..] } else { &[Op::Insert] };
        fillings.extend(ops.iter().map(|&op| Filling {
            entry,
            op,
            filter: make(effort.n, effort.key_type),
            nanoseconds: 0.0,
            refused: 0,
        }));
    }
    fillings
}

/// Records the time of a fill, checks its keys, and keeps the filter filled key by key for the lookups.
fn keep(effort: &Effort, entry: &mut Entry, filling: Filling, check: &Queries) {
    entry.row.record(filling.op, filling.nanoseconds / effort.n as f64);
    entry.row.refused += filling.refused;
    entry.row.missing += check.present - filling.filter.count(&check.keys);
    if filling.op == Op::Insert {
        entry.filter = Some(filling.filter);
    }
}

fn lay_out_lines(effort: &Effort, entries: &mut [Entry]) {
    for entry in entries {
        if let Make::Lines(make) = entry.spec.make {
            entry.filter = Some(make(effort.n));
        }
    }
}

fn look_up(effort: &Effort, entries: &mut [Entry], progress: &mut dyn FnMut(String)) {
    let warm_up = effort.warm_up();
    for round in 0..effort.rounds {
        progress(format!("lookups, round {} of {}", round + 1, effort.rounds));
        for share in [Share::All, Share::Half, Share::None] {
            let queries = queries(effort.key_type, effort.n, share, round, effort.queries);
            in_turn(entries, round, |entry| answer(entry, &warm_up, &queries, share));
        }
    }
}

/// One turn: single lookups and batches, both checked.
fn answer(entry: &mut Entry, warm_up: &Keys, queries: &Queries, share: Share) {
    let Some(filter) = &entry.filter else { return };
    let row = &mut entry.row;
    let keys = queries.keys.len() as f64;
    filter.count(warm_up);
    let (found, nanoseconds) = timed(|| filter.count(&queries.keys));
    row.record(Op::Lookup(share), nanoseconds / keys);
    if entry.spec.side == Side::Yardstick {
        let (_, nanoseconds) = timed(|| filter.count_batch(&queries.keys));
        row.record(Op::BatchLookup(share), nanoseconds / keys);
        return;
    }
    if entry.spec.batches {
        let (found_by_batch, nanoseconds) = timed(|| filter.count_batch(&queries.keys));
        row.record(Op::BatchLookup(share), nanoseconds / keys);
        row.disagreements += u64::from(found_by_batch != found);
    }
    row.missing += queries.present.saturating_sub(found);
    if share == Share::None {
        row.absent += queries.keys.len() as u64;
        row.found += found;
    }
}
