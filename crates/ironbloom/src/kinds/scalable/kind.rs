//! The scalable filter among the kinds: its abilities and its plan.

use super::{Scalable, ScalableParams, StageKind};
use crate::error::ParamError;
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::bloom::{self, BloomParams};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::filter::{filter_by_methods, insert_or, notes_keys};
use crate::kinds::member::{Listed, Member, answers_by_hash, inserts_by_hash, merges};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities { merge: true, grow: true, ..Abilities::INSERT };

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "scalable",
    summary: "Grows without end, rate held",
    kind: Kind::Scalable,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, rate| {
        // The cost of its first stage; the rate is that of all stages together.
        let first = ScalableParams::new(capacity, rate)?.stage_rate(0);
        let stage = bloom::shape(BloomParams::segmented_for_rate(capacity, first)?);
        Ok(Shape { rate, ..stage })
    },
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(Scalable::new(ScalableParams::new(capacity, rate)?, hash_fn)?.into())
    }),
}];

filter_by_methods!(() Scalable, |scalable| scalable.capacity());
notes_keys!(() Scalable);
insert_or!(ParamError, Scalable);

impl Member for Scalable {
    answers_by_hash!();
    inserts_by_hash!();
    merges!();

    fn describe(&self) -> Vec<Fact> {
        let params = self.params();
        let stages_of = if params.stages_of() == StageKind::Blocked { "blocked" } else { "bloom" };
        vec![
            ("stages", (self.stages().len() as u64).into()),
            ("stages of", stages_of.into()),
            ("growth", params.growth().into()),
            ("tightening", FactValue::Ratio(params.tightening())),
            ("rate held", FactValue::Rate(params.rate())),
        ]
    }
}
