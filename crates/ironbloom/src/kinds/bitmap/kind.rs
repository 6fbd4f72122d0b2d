//! The bitmap among the kinds: a set of integers, not of hashes.

use super::Bitmap;
use crate::format::native::{Image, Persist};
use crate::hash::KeyHash;
use crate::kinds::Kind;
use crate::kinds::any::{AnyFilter, Refused};
use crate::kinds::member::{Listed, Member, intersects, merges};
use crate::kinds::plan::{Abilities, Make, Plan, Shape, xxh3};

const ABILITIES: Abilities =
    Abilities { remove: true, merge: true, intersect: true, exact_len: true, ..Abilities::INSERT };

pub(in crate::kinds) const PLANS: &[Plan] = &[Plan {
    name: "bitmap",
    summary: "Exact set of integers below the capacity",
    kind: Kind::Bitmap,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, _| Ok(Shape { bits: capacity, probes: 1, lines: 1, rate: 0.0 }),
    make: Make::Empty(|capacity, _, _| Ok(Bitmap::new(capacity)?.into())),
}];

impl Member for Bitmap {
    merges!();
    intersects!();

    fn abilities(&self) -> Abilities {
        ABILITIES
    }

    fn key_hash(&self) -> KeyHash {
        KeyHash::Integer
    }

    fn contains_hash(&self, integer: u64) -> bool {
        self.contains(integer)
    }

    fn contains_hashes(&self, integers: &[u64], found: &mut [bool]) {
        self.contains_all(integers, found);
    }

    fn len(&self) -> u64 {
        self.len()
    }

    fn capacity(&self) -> u64 {
        self.bound()
    }

    fn estimate_len(&self) -> f64 {
        self.len() as f64
    }

    fn estimate_rate(&self) -> f64 {
        0.0
    }

    fn is_over_capacity(&self) -> bool {
        false
    }

    fn size_in_bytes(&self) -> usize {
        self.size_in_bytes()
    }

    fn image(&self) -> Image<'_> {
        self.encode()
    }

    fn insert_hash(&mut self, integer: u64) -> Result<bool, Refused> {
        Ok(self.insert(integer)?)
    }

    fn insert_hashes(&mut self, integers: &[u64]) -> Result<(), Refused> {
        Ok(self.insert_all(integers)?)
    }

    fn remove_hash(&mut self, integer: u64) -> Result<bool, Refused> {
        Ok(self.remove(integer)?)
    }

    fn clear(&mut self) -> Result<(), Refused> {
        Self::clear(self);
        Ok(())
    }
}
