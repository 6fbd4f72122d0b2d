//! Blocked filters among the kinds: their abilities and plans.

use super::{Blocked, BlockedBloom, BlockedParams, SplitBlock};
use crate::error::ParamError;
use crate::hash::HashFn;
use crate::kernel::LANES;
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::filter::{filter_by_methods, insert_always, notes_keys};
use crate::kinds::member::{Listed, Member, answers_by_hash, inserts_by_hash, intersects, merges};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities { merge: true, intersect: true, ..Abilities::INSERT };

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "blocked",
    summary: "One cache line per key: the fastest",
    kind: Kind::Blocked,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: shape::<8>,
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(BlockedBloom::new(BlockedParams::for_rate(capacity, rate)?, hash_fn)?.into())
    }),
}];

pub(in crate::kinds) const SPLIT_PLANS: &[Plan] = &[Plan {
    name: "split-block",
    summary: "Parquet's split block filter",
    kind: Kind::SplitBlock,
    abilities: ABILITIES,
    hash_fn: |seed| HashFn::Xxh64 { seed }, // prescribed by Parquet
    shape: shape::<4>,
    make: Make::Empty(|capacity, rate, hash_fn| {
        Ok(SplitBlock::new(BlockedParams::for_rate(capacity, rate)?, hash_fn)?.into())
    }),
}];

fn shape<const WORDS: usize>(capacity: u64, rate: f64) -> Result<Shape, ParamError> {
    let params = BlockedParams::<WORDS>::for_rate(capacity, rate)?;
    Ok(Shape {
        bits: params.bits(),
        probes: LANES as u32,
        lines: 1,
        rate: params.rate_at(capacity),
    })
}

filter_by_methods!((<const WORDS: usize>) Blocked<WORDS>, |blocked| blocked.params().capacity());
notes_keys!((<const WORDS: usize>) Blocked<WORDS>);
insert_always!((<const WORDS: usize>) Blocked<WORDS>);

macro_rules! member {
    ($filter:ty) => {
        impl Member for $filter {
            answers_by_hash!();
            inserts_by_hash!();
            merges!();
            intersects!();

            fn describe(&self) -> Vec<Fact> {
                let params = self.params();
                vec![
                    ("blocks", params.blocks().into()),
                    ("rate at capacity", FactValue::Rate(params.rate_at(params.capacity()))),
                ]
            }

            fn insert_distinct_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
                Self::insert_distinct_hashes(self, hashes);
                Ok(())
            }
        }
    };
}
member!(BlockedBloom);
member!(SplitBlock);
