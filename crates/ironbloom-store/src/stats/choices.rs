//! What another rate or kind would have cost for the same lookups.

use std::time::Duration;

use super::{Stats, nanos};
use crate::kind::GuardKind;

/// The rates of the table.
const RATES: [f64; 7] = [0.1, 0.03, 0.01, 0.005, 0.001, 0.0001, 0.00001];

/// One alternative filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its kind.
    pub kind: GuardKind,
    /// Its rate.
    pub rate: f64,
    /// Bits for each key, with as many keys as the guard holds.
    pub bits_per_key: f64,
    /// Bytes for as many keys.
    pub filter_bytes: u64,
    /// Wasted store queries per thousand lookups.
    pub wasted_per_thousand: f64,
    /// Delta = P2·(C2 − C1): the extra time per lookup compared with an exact set.
    pub delta: Duration,
}

impl Stats {
    /// The alternative filters, for the lookups counted and the live keys. Only kinds whose size is planned; a scalable
    /// filter is between a blocked one and half as much again.
    pub fn choices(&self) -> Vec<Choice> {
        let keys = self.keys.saturating_sub(self.dead).max(1);
        let [skipped, false_positives, _] = self.shares();
        let absent = skipped + false_positives;
        let choice = |kind: GuardKind, rate: f64| {
            let bits = bits(kind, keys, rate)?;
            let wasted = absent * rate;
            Some(Choice {
                kind,
                rate,
                bits_per_key: bits as f64 / keys as f64,
                filter_bytes: bits.div_ceil(8),
                wasted_per_thousand: 1000.0 * wasted,
                delta: nanos(wasted * self.difference()),
            })
        };
        let planned = GuardKind::ALL
            .into_iter()
            .filter(|kind| !kind.forgets() && !kind.plan().abilities.grow);
        planned.flat_map(|kind| RATES.map(|rate| choice(kind, rate))).flatten().collect()
    }
}

/// Bits of a filter, or `None` if the kind cannot have this rate.
fn bits(kind: GuardKind, keys: u64, rate: f64) -> Option<u64> {
    kind.plan().shape(keys, rate).ok().map(|shape| shape.bits)
}
