//! The fuse filter among the kinds: static, from all its keys, in two plans.

use super::{Arity, BinaryFuse, FuseParams};
use crate::error::ParamError;
use crate::hash::HashFn;
use crate::kinds::Kind;
use crate::kinds::any::AnyFilter;
use crate::kinds::describe::Fact;
use crate::kinds::filter::filter_by_methods;
use crate::kinds::member::{Member, answers_by_hash};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities = Abilities { counts_copies: true, exact_len: true, ..Abilities::NONE };

pub(in crate::kinds) const PLANS: &[Plan] = &[
    Plan {
        name: "fuse",
        summary: "Binary fuse filter: the smallest, from keys that are all known",
        kind: Kind::Fuse,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| shape(capacity, rate, Arity::Three),
        make: Make::FromAll(|hashes, rate, hash_fn| make(hashes, rate, Arity::Three, hash_fn)),
    },
    Plan {
        name: "fuse4",
        summary: "Binary fuse filter, 4-wise: smaller still, slower to build",
        kind: Kind::Fuse,
        abilities: ABILITIES,
        hash_fn: xxh3,
        shape: |capacity, rate| shape(capacity, rate, Arity::Four),
        make: Make::FromAll(|hashes, rate, hash_fn| make(hashes, rate, Arity::Four, hash_fn)),
    },
];

fn shape(capacity: u64, rate: f64, arity: Arity) -> Result<Shape, ParamError> {
    let params = FuseParams::for_rate(rate)?.with_arity(arity);
    let cells = arity.cells();
    Ok(Shape { bits: params.bits(capacity), probes: cells, lines: cells, rate: params.rate() })
}

fn make(hashes: &[u64], rate: f64, arity: Arity, hash_fn: HashFn) -> Result<AnyFilter, ParamError> {
    let params = FuseParams::for_rate(rate)?.with_arity(arity);
    Ok(BinaryFuse::from_hashes(hashes, params, hash_fn)?.into())
}

impl BinaryFuse {
    /// The types of the keys, as far as known.
    pub fn key_types(&self) -> crate::KeyTypes {
        self.hash_fn.declared().unwrap_or(self.held)
    }
}

filter_by_methods!(() BinaryFuse, |fuse| fuse.len());

impl Member for BinaryFuse {
    answers_by_hash!();

    fn describe(&self) -> Vec<Fact> {
        vec![
            ("fingerprint bits", self.width().into()),
            ("cells a key", self.arity().cells().into()),
        ]
    }
}
