//! The measurements: a table for each size and key type, with a row per contender.

use std::collections::BTreeMap;

use crate::contender::{RATE, Side};
use crate::keys::{KeyType, Share};
use crate::stats;

/// A timed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Op {
    Build,
    Insert,
    Lookup(Share),
    BatchInsert,
    BatchLookup(Share),
}

impl Op {
    /// Name in the CSV file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Insert => "insert",
            Self::Lookup(Share::All) => "hit",
            Self::Lookup(Share::Half) => "half",
            Self::Lookup(Share::None) => "miss",
            Self::BatchInsert => "batch insert",
            Self::BatchLookup(Share::All) => "batch hit",
            Self::BatchLookup(Share::Half) => "batch half",
            Self::BatchLookup(Share::None) => "batch miss",
        }
    }

    /// The same work key by key: peers have no batches, so a batch is compared with this.
    pub(crate) fn one_by_one(self) -> Self {
        match self {
            Self::BatchInsert => Self::Insert,
            Self::BatchLookup(share) => Self::Lookup(share),
            other => other,
        }
    }
}

/// Results of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    pub(crate) bits_per_key: f64,
    /// Absent keys asked for, and found.
    pub(crate) absent: u64,
    pub(crate) found: u64,
    /// Present keys that were not found.
    pub(crate) missing: u64,
    /// Keys that the filter refused.
    pub(crate) refused: u64,
    /// Batches whose answer differed from single lookups.
    pub(crate) disagreements: u64,
    /// Nanoseconds per key: a sample for each fill, build or round.
    pub(crate) samples: BTreeMap<Op, Vec<f64>>,
}

impl Row {
    /// Creates a row without measurements.
    pub(crate) fn new(name: &'static str, side: Side) -> Self {
        Self {
            name,
            side,
            bits_per_key: 0.0,
            absent: 0,
            found: 0,
            missing: 0,
            refused: 0,
            disagreements: 0,
            samples: BTreeMap::new(),
        }
    }

    /// Adds a sample.
    pub(crate) fn record(&mut self, op: Op, nanoseconds: f64) {
        self.samples.entry(op).or_default().push(nanoseconds);
    }

    /// All samples of an operation, in order of the rounds.
    pub(crate) fn samples(&self, op: Op) -> &[f64] {
        self.samples.get(&op).map_or(&[], Vec::as_slice)
    }

    /// Median nanoseconds per key.
    pub(crate) fn median(&self, op: Op) -> Option<f64> {
        stats::median(self.samples(op))
    }

    /// The share of absent keys that were found.
    pub(crate) fn rate(&self) -> f64 {
        self.found as f64 / self.absent as f64
    }

    /// Bits beyond the minimum that any filter needs for the measured rate: log2(1 / rate).
    pub(crate) fn excess_bits(&self) -> f64 {
        self.bits_per_key - (1.0 / self.rate()).log2()
    }

    /// Returns true if it delivers the requested rate, as far as `n` keys and the absent keys asked for can tell.
    pub(crate) fn keeps_rate(&self, n: u64) -> bool {
        self.rate() <= RATE + 6.0 * sigma(n, self.absent)
    }

    /// Returns true if present keys were not found, keys were refused, or two answers to one question differed: its
    /// times then prove nothing.
    pub(crate) fn is_wrong(&self) -> bool {
        self.missing + self.refused + self.disagreements > 0
    }
}

/// Standard deviation of a rate measured with this many absent keys on a filter of `n` keys.
///
/// ```text
/// sigma^2 = p / absent  +  p^2 · 50 / n
/// ```
///
/// The second term is the variation between filters: a blocked filter, which varies most, is n/50 blocks of keys, and
/// the standard deviation of a block's rate is about the rate itself.
fn sigma(n: u64, absent: u64) -> f64 {
    (RATE / absent as f64 + RATE * RATE * 50.0 / n as f64).sqrt()
}

/// All rows of one size and key type.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) n: u64,
    pub(crate) key_type: KeyType,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// Returns the row with this name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Returns the rows of one side.
    pub(crate) fn side(&self, side: Side) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.side == side)
    }

    /// Returns the fastest peer at an operation. Peers that answer wrongly do not count; those that miss the rate do.
    pub(crate) fn best_peer(&self, op: Op) -> Option<&Row> {
        fastest(self.side(Side::Peer).filter(|row| !row.is_wrong()), op)
    }

    /// Returns the yardstick with the best prefetch distance.
    pub(crate) fn yardstick(&self, op: Op) -> Option<&Row> {
        fastest(self.side(Side::Yardstick), op)
    }

    /// Speed of this row relative to the best peer.
    pub(crate) fn ratio_to_best_peer(&self, row: &Row, op: Op) -> Option<f64> {
        let theirs = op.one_by_one();
        stats::speedup(row.samples(op), self.best_peer(theirs)?.samples(theirs))
    }
}

fn fastest<'a>(rows: impl Iterator<Item = &'a Row>, op: Op) -> Option<&'a Row> {
    rows.filter_map(|row| Some((row.median(op)?, row)))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, side: Side, nanoseconds: f64) -> Row {
        let mut row = Row::new(name, side);
        row.record(Op::Insert, nanoseconds);
        row
    }

    #[test]
    fn a_peer_that_answers_wrongly_is_not_the_best() {
        let mut liar = row("liar", Side::Peer, 1.0);
        liar.missing = 1;
        let rows = vec![row("ours", Side::Ours, 2.0), liar, row("honest", Side::Peer, 6.0)];
        let table = Table { n: 10, key_type: KeyType::U64, rows };
        assert_eq!(table.best_peer(Op::Insert).map(|row| row.name), Some("honest"));
        assert_eq!(table.ratio_to_best_peer(&table.rows[0], Op::Insert), Some(3.0));
    }

    #[test]
    fn the_rate_is_kept_within_six_sigma_and_not_beyond() {
        let mut row = row("ours", Side::Ours, 1.0);
        (row.absent, row.found) = (10_000_000, 101_000);
        assert!(row.keeps_rate(10_000_000));
        row.found = 103_500;
        assert!(!row.keeps_rate(10_000_000));
    }
}
