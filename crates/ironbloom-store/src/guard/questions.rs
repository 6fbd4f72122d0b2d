//! The lookups of one call, sorted by the filter's answer.

use std::time::Instant;

use crate::front::{Answer, Front};
use crate::stats::{Counters, Outcome};

/// The lookups of one call, sorted by the filter's answer.
pub(crate) struct Questions<'k> {
    /// Those that must go to the store.
    pub(crate) asked: Vec<&'k [u8]>,
    found: Vec<bool>,
    answer: Answer,
    filter_nanos: u64,
}

impl<'k> Questions<'k> {
    pub(crate) fn sort_out<K: AsRef<[u8]>>(
        front: &Front,
        counters: &Counters,
        keys: &'k [K],
    ) -> Self {
        let start = Instant::now();
        let hashes: Vec<u64> = keys.iter().map(|key| front.hash(key.as_ref())).collect();
        let mut found = vec![false; keys.len()];
        let answer = front.ask_many(&hashes, &mut found);
        let asked = keys.iter().zip(&found).filter(|(_, found)| **found);
        let asked: Vec<&[u8]> = asked.map(|(key, _)| key.as_ref()).collect();
        let skipped = (keys.len() - asked.len()) as u64;
        let filter_nanos = nanos_since(start) / keys.len().max(1) as u64;
        counters.add(Outcome::Skipped, skipped, skipped * filter_nanos);
        Self { asked, found, answer, filter_nanos }
    }

    /// The values in the order of the keys. `values` are those of the keys asked for, `nanos` the time of all.
    pub(crate) fn answered(
        self,
        counters: &Counters,
        values: Vec<Option<Vec<u8>>>,
        nanos: u64,
    ) -> Vec<Option<Vec<u8>>> {
        let nanos = nanos / self.asked.len().max(1) as u64 + self.filter_nanos;
        for hit in [true, false] {
            let count = values.iter().filter(|value| value.is_some() == hit).count() as u64;
            counters.add(outcome(self.answer, hit), count, count * nanos);
        }
        let mut values = values.into_iter();
        let value = |found| if found { values.next().flatten() } else { None };
        self.found.into_iter().map(value).collect()
    }
}

/// The outcome of a lookup that went to the store.
pub(crate) fn outcome(answer: Answer, found: bool) -> Outcome {
    match (answer, found) {
        (Answer::Unknown, _) => Outcome::Unguarded,
        (_, true) => Outcome::Hit,
        (_, false) => Outcome::FalsePositive,
    }
}

pub(crate) fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
