//! The Bloom filter among the kinds: its abilities and its two plans.

use super::{Bloom, BloomLayout, BloomParams};
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::filter::{filter_by_methods, insert_always, notes_keys};
use crate::kinds::member::{Listed, Member, answers_by_hash, inserts_by_hash, intersects, merges};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities { merge: true, intersect: true, ..Abilities::INSERT };

pub(in crate::kinds) const PLANS: &[Plan] = &[
    Plan {
        name: "bloom",
        summary: "Classic Bloom filter: any rate, merges",
        kind: Kind::Bloom,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| Ok(shape(BloomParams::for_rate(capacity, rate)?)),
        make: Make::Empty(|capacity, rate, hash_fn| {
            Ok(Bloom::new(BloomParams::for_rate(capacity, rate)?, hash_fn)?.into())
        }),
    },
    Plan {
        name: "segmented",
        summary: "Bloom filter in k slices",
        kind: Kind::Bloom,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| Ok(shape(BloomParams::segmented_for_rate(capacity, rate)?)),
        make: Make::Empty(|capacity, rate, hash_fn| {
            Ok(Bloom::new(BloomParams::segmented_for_rate(capacity, rate)?, hash_fn)?.into())
        }),
    },
];

/// The shape of a filter with these parameters: one cache line per probe.
pub(in crate::kinds) fn shape(params: BloomParams) -> Shape {
    let probes = params.probes();
    Shape { bits: params.bits(), probes, lines: probes, rate: params.rate_at(params.capacity()) }
}

filter_by_methods!(() Bloom, |bloom| bloom.params().capacity());
notes_keys!(() Bloom);
insert_always!(() Bloom);

impl Member for Bloom {
    answers_by_hash!();
    inserts_by_hash!();
    merges!();
    intersects!();

    fn describe(&self) -> Vec<Fact> {
        describe(&self.params())
    }

    fn insert_distinct_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        Self::insert_distinct_hashes(self, hashes);
        Ok(())
    }
}

/// The facts of a shape.
pub(in crate::kinds) fn describe(params: &BloomParams) -> Vec<Fact> {
    let layout = if params.layout() == BloomLayout::Flat { "flat" } else { "segmented" };
    vec![
        ("bits", params.bits().into()),
        ("probes", params.probes().into()),
        ("form", layout.into()),
        ("scheme", params.scheme().name().into()),
        ("rate at capacity", FactValue::Rate(params.rate_at(params.capacity()))),
    ]
}
