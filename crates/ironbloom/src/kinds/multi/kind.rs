//! Filters of rows among the kinds: they are queried by the hashes of all values of a row, not by
//! one hash.

use super::{Attributes, Joint, MultiFilter, ParallelBloom};
use crate::format::native::{Image, Persist};
use crate::hash::KeyHash;
use crate::kinds::any::{Operation, Refused};
use crate::kinds::bloom;
use crate::kinds::cuckoo::{self, CuckooParams};
use crate::kinds::describe::{Fact, FactValue};
use crate::kinds::member::Member;
use crate::kinds::plan::{Abilities, Make, Plan, xxh3};
use crate::kinds::{Kind, check_lengths};

const ABILITIES: Abilities =
    Abilities { remove: true, counts_copies: true, exact_len: true, ..Abilities::INSERT };

pub(in crate::kinds) const JOINT_PLANS: &[Plan] = &[Plan {
    name: "joint",
    summary: "Rows of several columns (--csv a,b): are these values there together? Removes",
    kind: Kind::Joint,
    abilities: ABILITIES,
    hash_fn: xxh3,
    shape: |capacity, rate| Ok(cuckoo::shape(CuckooParams::for_rate(capacity, rate)?)),
    // Attributes are not part of a plan, but at least one is required: returns an error that says
    // so.
    make: Make::Empty(|capacity, rate, hash_fn| {
        let attributes = Attributes::new([""; 0], hash_fn)?;
        Ok(Joint::new(CuckooParams::for_rate(capacity, rate)?, attributes)?.into())
    }),
}];

/// None: kept for comparison with [`Joint`], and not recommended.
pub(in crate::kinds) const PARALLEL_PLANS: &[Plan] = &[];

/// Implements a member of rows; the closure estimates their number.
macro_rules! member_of_rows {
    ($filter:ty, |$this:ident| $estimate_len:expr) => {
        impl Member for $filter {
            fn abilities(&self) -> Abilities {
                ABILITIES
            }

            fn key_hash(&self) -> KeyHash {
                KeyHash::Row(self.attributes().hash_fn())
            }

            /// One hash says nothing about a row: maybe.
            fn contains_hash(&self, _hash: u64) -> bool {
                true
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                check_lengths(hashes.len(), found.len());
                found.fill(true);
            }

            fn len(&self) -> u64 {
                MultiFilter::len(self)
            }

            fn capacity(&self) -> u64 {
                self.params().capacity()
            }

            fn estimate_len(&self) -> f64 {
                let $this = self;
                $estimate_len
            }

            fn estimate_rate(&self) -> f64 {
                Self::estimate_rate(self)
            }

            fn is_over_capacity(&self) -> bool {
                Self::is_over_capacity(self)
            }

            fn size_in_bytes(&self) -> usize {
                MultiFilter::size_in_bytes(self)
            }

            fn image(&self) -> Image<'_> {
                self.encode()
            }

            fn insert_hash(&mut self, _hash: u64) -> Result<bool, Refused> {
                Err(self.cannot(Operation::SingleKeys))
            }

            fn insert_hashes(&mut self, _hashes: &[u64]) -> Result<(), Refused> {
                Err(self.cannot(Operation::SingleKeys))
            }

            fn remove_hash(&mut self, _hash: u64) -> Result<bool, Refused> {
                Err(self.cannot(Operation::SingleKeys))
            }

            fn clear(&mut self) -> Result<(), Refused> {
                Self::clear(self);
                Ok(())
            }

            fn describe(&self) -> Vec<Fact> {
                let mut facts =
                    vec![("attributes", self.attributes().names().join(", ").as_str().into())];
                facts.extend(self.describe_rows());
                facts
            }

            fn as_multi(&self) -> Option<&dyn MultiFilter> {
                Some(self)
            }

            fn as_multi_mut(&mut self) -> Option<&mut dyn MultiFilter> {
                Some(self)
            }
        }
    };
}
member_of_rows!(Joint, |joint| joint.estimate_len());
// It counts values but not rows.
member_of_rows!(ParallelBloom, |parallel| MultiFilter::len(parallel) as f64);

impl Joint {
    fn describe_rows(&self) -> Vec<Fact> {
        let mut facts = vec![("partial queries", self.is_partial().into())];
        if self.is_partial() {
            let values = (0..self.attributes().len()).map(|i| self.distinct_values(i));
            facts.push(("distinct values", by_attribute(self.attributes(), values)));
        }
        facts.push(("rows with copies", self.copied().into()));
        facts.extend(cuckoo::describe(&self.params()));
        facts
    }
}

impl ParallelBloom {
    fn describe_rows(&self) -> Vec<Fact> {
        let mut facts = bloom::describe(&self.params());
        facts[0].0 = "counters an attribute";
        facts.push(("counters above 15", self.surpluses().into()));
        // If all counters are in use, nothing can be estimated.
        let values = self.estimate_values();
        let values = values.map(|values| values.is_finite().then_some(values.round() as u64));
        facts.push(("estimated values", by_attribute(self.attributes(), values)));
        facts
    }
}

/// A number for each attribute.
fn by_attribute(attributes: &Attributes, counts: impl Iterator<Item = Option<u64>>) -> FactValue {
    FactValue::Counts(attributes.names().iter().cloned().zip(counts).collect())
}
