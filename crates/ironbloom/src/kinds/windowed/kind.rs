//! The window among the kinds: its abilities and its plan.

use super::{Windowed, WindowedParams};
use crate::kinds::Kind;
use crate::kinds::any::Refused;
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::filter::{filter_by_methods, insert_always, notes_keys};
use crate::kinds::member::{Member, answers_by_hash, inserts_by_hash};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities { forget: true, ..Abilities::INSERT };

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "windowed",
    summary: "Forgets all but the last keys",
    kind: Kind::Windowed,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, rate| {
        let params = WindowedParams::for_keys(capacity, rate)?;
        let probes = params.probes();
        Ok(Shape { bits: params.bits(), probes, lines: probes, rate: params.rate() })
    },
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(Windowed::new(WindowedParams::for_keys(capacity, rate)?, hash_fn)?.into())
    }),
}];

filter_by_methods!(() Windowed, |windowed| windowed.params().capacity());
notes_keys!(() Windowed);
insert_always!(() Windowed);

impl Member for Windowed {
    answers_by_hash!();
    inserts_by_hash!();

    fn describe(&self) -> Vec<Fact> {
        let params = self.params();
        vec![
            ("probes", params.probes().into()),
            ("slices", (params.probes() + params.ages()).into()),
            ("generation", params.generation().into()),
            ("rate at worst", FactValue::Rate(params.rate())),
        ]
    }
}
