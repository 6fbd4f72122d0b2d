//! The d-left filter among the kinds: its abilities and its plan.

use super::{DLeft, DLeftParams, SUBTABLES};
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

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "d-left",
    summary: "d-left counting filter: removes",
    kind: Kind::DLeft,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, rate| {
        let params = DLeftParams::for_rate(capacity, rate)?;
        let (bits, rate, lines) = (params.bits(), params.rate_at(capacity), SUBTABLES as u32);
        Ok(Shape { bits, probes: lines, lines, rate })
    },
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(DLeft::new(DLeftParams::for_rate(capacity, rate)?, hash_fn)?.into())
    }),
}];

filter_by_methods!(() DLeft, |dleft| dleft.params().capacity());
notes_keys!(() DLeft);
insert_or!(Full, DLeft);
remove_by_method!(DLeft);

impl Member for DLeft {
    answers_by_hash!();
    inserts_by_hash!();
    removes_by_hash!();
    merges!();

    fn describe(&self) -> Vec<Fact> {
        let params = self.params();
        vec![
            ("buckets", (SUBTABLES * params.buckets()).into()),
            ("remainder bits", params.remainder_bits().into()),
            ("saturated cells", self.saturated().into()),
            ("stashed keys", self.stashed().into()),
            ("rate at capacity", FactValue::Rate(params.rate_at(params.capacity()))),
        ]
    }
}
