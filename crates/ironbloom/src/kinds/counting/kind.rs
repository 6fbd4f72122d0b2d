//! The counting filter among the kinds: its abilities and its plan.

use super::{COUNTER_BITS, CountingBloom};
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::bloom::{self, BloomParams};
use crate::kinds::describe::Fact;
use crate::kinds::filter::{filter_by_methods, insert_always, notes_keys, remove_by_method};
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

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "counting",
    summary: "4-bit counters: removes and merges, four times the size",
    kind: Kind::Counting,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, rate| {
        let bloom = bloom::shape(BloomParams::for_rate(capacity, rate)?);
        Ok(Shape { bits: bloom.bits * COUNTER_BITS, ..bloom })
    },
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(CountingBloom::new(BloomParams::for_rate(capacity, rate)?, hash_fn)?.into())
    }),
}];

filter_by_methods!(() CountingBloom, |counting| counting.params().capacity());
notes_keys!(() CountingBloom);
insert_always!(() CountingBloom);
remove_by_method!(CountingBloom);

impl Member for CountingBloom {
    answers_by_hash!();
    inserts_by_hash!();
    removes_by_hash!();
    merges!();

    fn describe(&self) -> Vec<Fact> {
        let mut facts = bloom::describe(&self.params());
        facts[0].0 = "counters";
        facts.push(("saturated counters", self.saturated().into()));
        facts
    }
}
