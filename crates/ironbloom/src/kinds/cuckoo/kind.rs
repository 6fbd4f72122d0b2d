//! The cuckoo filter among the kinds: its abilities and its two plans.

use super::{Cuckoo, CuckooLayout, CuckooParams};
use crate::error::Full;
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::filter::{filter_by_methods, insert_or, notes_keys, remove_by_method};
use crate::kinds::member::{
    Listed, Member, answers_by_hash, inserts_by_hash, merges, removes_by_hash,
};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities {
    remove: true,
    merge: true,
    counts_copies: true,
    exact_len: true,
    ..Abilities::INSERT
};

pub(in crate::kinds) const PLANS: &[Plan] = &[
    Plan {
        name: "cuckoo",
        summary: "Cuckoo filter: removes, two cache lines",
        kind: Kind::Cuckoo,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| Ok(shape(CuckooParams::for_rate(capacity, rate)?)),
        make: Make::Empty(|capacity, rate, hash_fn| {
            Ok(Cuckoo::new(CuckooParams::for_rate(capacity, rate)?, hash_fn)?.into())
        }),
    },
    Plan {
        name: "cuckoo-packed",
        summary: "Cuckoo filter, semi-sorted: one bit per key less, slower",
        kind: Kind::Cuckoo,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| Ok(shape(CuckooParams::packed_for_rate(capacity, rate)?)),
        make: Make::Empty(|capacity, rate, hash_fn| {
            Ok(Cuckoo::new(CuckooParams::packed_for_rate(capacity, rate)?, hash_fn)?.into())
        }),
    },
];

/// The shape of a filter with these parameters: two buckets, each in one cache line.
pub(in crate::kinds) fn shape(params: CuckooParams) -> Shape {
    Shape { bits: params.bits(), probes: 2, lines: 2, rate: params.rate_at(params.capacity()) }
}

filter_by_methods!(() Cuckoo, |cuckoo| cuckoo.params().capacity());
notes_keys!(() Cuckoo);
insert_or!(Full, Cuckoo);
remove_by_method!(Cuckoo);

impl Member for Cuckoo {
    answers_by_hash!();
    inserts_by_hash!();
    removes_by_hash!();
    merges!();

    fn describe(&self) -> Vec<Fact> {
        let mut facts = describe(&self.params());
        facts.insert(3, ("load", FactValue::Ratio(self.fill())));
        facts
    }
}

/// The facts of a shape.
pub(in crate::kinds) fn describe(params: &CuckooParams) -> Vec<Fact> {
    let layout = if params.layout() == CuckooLayout::Packed { "packed" } else { "plain" };
    vec![
        ("buckets", params.buckets().into()),
        ("fingerprint bits", params.fingerprint_bits().into()),
        ("layout", layout.into()),
        ("rate at capacity", FactValue::Rate(params.rate_at(params.capacity()))),
    ]
}
