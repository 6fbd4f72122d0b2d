//! From a number of keys and a rate to a filter: the cost of each kind, and how it is created.
//!
//! ```
//! use ironbloom::plan;
//!
//! for plan in plan::all() {
//!     let Ok(shape) = plan.shape(1_000_000, 0.01) else { continue };     // this kind cannot do that
//!     println!("{:14} {:5.1} bits per key", plan.name, shape.bits as f64 / 1e6);
//! }
//!
//! let mut seen = plan::named("cuckoo").unwrap().create(1000, 0.01, 0)?;  // capacity, rate, seed
//! seen.insert("alice")?;
//! assert!(seen.contains("alice")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A kind has a plan for each of its variants. Given memory instead of a rate or a number of keys, [`Plan::rate_within`]
//! and [`Plan::keys_within`] find the missing one.

use super::any::{AnyFilter, Refused};
use super::{Kind, PLANS};
use crate::error::ParamError;
use crate::hash::HashFn;

/// Abilities of a kind of filter besides answering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Keys can be inserted after the filter was created.
    pub insert: bool,
    /// Keys can be removed.
    pub remove: bool,
    /// It takes any number of keys, at its rate.
    pub grow: bool,
    /// Two filters of equal shape can be merged.
    pub merge: bool,
    /// Two filters of equal shape can be intersected.
    pub intersect: bool,
    /// Old keys expire.
    pub forget: bool,
    /// Every insert takes room or counts, even of a key that is already present, so a filter for a set of keys is built
    /// from distinct ones.
    pub counts_copies: bool,
    /// The number of keys is exact, however many there are.
    pub exact_len: bool,
}

impl Abilities {
    /// A filter that is built from all its keys and only answers.
    pub(super) const NONE: Self = Self {
        insert: false,
        remove: false,
        grow: false,
        merge: false,
        intersect: false,
        forget: false,
        counts_copies: false,
        exact_len: false,
    };

    /// A filter that takes keys.
    pub(super) const INSERT: Self = Self { insert: true, ..Self::NONE };
}

/// The size and cost of a filter before it is created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Bits of storage.
    pub bits: u64,
    /// Places read for a key that is present.
    pub probes: u32,
    /// Maximum number of cache lines for those.
    pub lines: u32,
    /// The rate at capacity.
    pub rate: f64,
}

impl Shape {
    /// Bytes of storage.
    pub fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }
}

/// A way to create a filter from a number of keys and a rate.
#[derive(Debug)]
pub struct Plan {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its advantage, in a few words.
    pub summary: &'static str,
    /// The kind of filter it creates.
    pub kind: Kind,
    /// The abilities of that kind.
    pub abilities: Abilities,
    pub(super) hash_fn: fn(u64) -> HashFn,
    pub(super) shape: fn(u64, f64) -> Result<Shape, ParamError>,
    pub(super) make: Make,
}

/// How a filter receives its keys.
#[derive(Debug)]
pub(super) enum Make {
    /// Created empty, for a number of keys at a rate, then filled.
    Empty(fn(u64, f64, HashFn) -> Result<AnyFilter, ParamError>),
    /// Built from all of them, at a rate.
    FromAll(fn(&[u64], f64, HashFn) -> Result<AnyFilter, ParamError>),
}

/// All plans, in the order of tables.
pub fn all() -> impl Iterator<Item = &'static Plan> {
    PLANS.iter().flat_map(|plans| plans.iter())
}

/// Returns the plan with this name.
pub fn named(name: &str) -> Option<&'static Plan> {
    all().find(|plan| plan.name == name)
}

impl Plan {
    /// The cost of a filter of `capacity` keys at `rate`.
    pub fn shape(&self, capacity: u64, rate: f64) -> Result<Shape, ParamError> {
        (self.shape)(capacity, rate)
    }

    /// The hash function of a new filter: some formats prescribe one.
    pub fn hash_fn(&self, seed: u64) -> HashFn {
        (self.hash_fn)(seed)
    }

    /// Creates an empty filter for `capacity` keys at `rate`. A kind that takes no keys later stays empty: use
    /// [`build`](Self::build).
    pub fn create(&self, capacity: u64, rate: f64, seed: u64) -> Result<AnyFilter, ParamError> {
        self.create_with(capacity, rate, self.hash_fn(seed))
    }

    /// Like [`create`](Self::create), with a different hash function: see [`HashFn::random`] and [`HashFn::secret`].
    ///
    /// ```
    /// use ironbloom::{HashFn, plan};
    /// let mut seen = plan::named("cuckoo").unwrap().create_with(1000, 0.01, HashFn::random())?;
    /// seen.insert("alice")?;
    /// assert!(seen.contains("alice")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_with(
        &self,
        capacity: u64,
        rate: f64,
        hash_fn: HashFn,
    ) -> Result<AnyFilter, ParamError> {
        match self.make {
            Make::Empty(make) => make(capacity, rate, hash_fn),
            Make::FromAll(make) => make(&[], rate, hash_fn),
        }
    }

    /// Builds a filter of these keys, given by distinct hashes, with room for `capacity`.
    pub fn build(
        &self,
        hashes: &[u64],
        capacity: u64,
        rate: f64,
        seed: u64,
    ) -> Result<AnyFilter, Refused> {
        self.build_with(hashes, capacity, rate, self.hash_fn(seed))
    }

    /// Like [`build`](Self::build), with any hash function.
    pub fn build_with(
        &self,
        hashes: &[u64],
        capacity: u64,
        rate: f64,
        hash_fn: HashFn,
    ) -> Result<AnyFilter, Refused> {
        if let Make::FromAll(make) = self.make {
            return Ok(make(hashes, rate, hash_fn)?);
        }
        let mut filter = self.create_with(capacity, rate, hash_fn)?;
        filter.insert_distinct_hashes(hashes)?;
        Ok(filter)
    }

    /// The shape, if it fits into `bytes` of memory.
    fn shape_within(&self, capacity: u64, rate: f64, bytes: u64) -> Option<Shape> {
        self.shape(capacity, rate).ok().filter(|shape| shape.bytes() <= bytes)
    }

    /// Finds the filter of `capacity` keys with the lowest rate that fits into `bytes` of memory. `None` if there is
    /// none.
    pub fn rate_within(&self, capacity: u64, bytes: u64) -> Option<Shape> {
        // Size falls with the rate, so bisect its logarithm.
        let at = |exponent: f64| self.shape_within(capacity, 10f64.powf(exponent), bytes);
        let (mut low, mut high) = (-18.0, -1e-4); // exponents of ten
        let mut best = at(high)?;
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            match at(middle) {
                Some(shape) => (best, high) = (shape, middle),
                None => low = middle,
            }
        }
        Some(best)
    }

    /// Finds the largest number of keys at `rate` for which a filter fits into `bytes` of memory, and that filter.
    /// `None` if not even one key fits.
    pub fn keys_within(&self, rate: f64, bytes: u64) -> Option<(u64, Shape)> {
        let at = |capacity: u64| self.shape_within(capacity, rate, bytes);
        let (mut least, mut most) = (1, bytes.saturating_mul(8).saturating_add(1).min(1 << 48));
        let mut best = (1, at(1)?);
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            match at(middle) {
                Some(shape) => (best, least) = ((middle, shape), middle),
                None => most = middle,
            }
        }
        Some(best)
    }
}

/// The library's own hash function.
pub(super) fn xxh3(seed: u64) -> HashFn {
    HashFn::Xxh3 { seed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    #[test]
    fn names_are_unique_and_every_plan_makes_its_kind() {
        let names: std::collections::HashSet<&str> = all().map(|plan| plan.name).collect();
        assert_eq!(names.len(), all().count());
        for plan in all().filter(|plan| plan.create(100, 0.01, 7).is_ok()) {
            let filter = plan.create(100, 0.01, 7).unwrap();
            assert_eq!((filter.kind(), filter.abilities()), (plan.kind, plan.abilities));
            assert_eq!(plan.kind.plan().map(|usual| usual.kind), Some(plan.kind));
        }
    }

    /// The declared abilities of a kind match its operations.
    #[test]
    fn abilities_are_what_operations_grant() {
        for plan in all() {
            // A bitmap takes integers below its capacity.
            let keys =
                [1, 2, 3].map(|key| if plan.kind == Kind::Bitmap { key } else { mix64(key) });
            let Ok(mut filter) = plan.build(&keys[..2], 100, 0.01, 7) else {
                continue; // rows
            };
            let refused =
                |result: Result<(), Refused>| matches!(result, Err(Refused::Unsupported { .. }));
            let can = plan.abilities;
            let other = filter.clone();
            assert_eq!(refused(filter.union_with(&other)), !can.merge, "{}", plan.name);
            assert_eq!(refused(filter.intersect_with(&other)), !can.intersect, "{}", plan.name);
            assert_eq!(
                refused(filter.remove_hash(keys[0]).map(drop)),
                !can.remove,
                "{}",
                plan.name
            );
            assert_eq!(refused(filter.insert_hashes(&keys[2..])), !can.insert, "{}", plan.name);
        }
    }

    #[test]
    fn an_insert_says_whether_the_key_was_new_whatever_the_kind() {
        for plan in all().filter(|plan| plan.abilities.insert && plan.kind != Kind::Joint) {
            let mut filter = plan.create(100, 0.001, 7).unwrap();
            let new: Vec<bool> = [5, 6, 5, 7].map(|key| filter.insert(key).unwrap()).into();
            assert_eq!(new, [true, true, false, true], "{}", plan.name);
        }
    }

    #[test]
    fn what_fits_into_memory_is_the_best_that_fits() {
        for plan in all().filter(|plan| plan.kind != Kind::Bitmap) {
            let Some(shape) = plan.rate_within(10_000, 20_000) else { continue };
            assert!(shape.bytes() <= 20_000, "{}", plan.name);
            let (keys, shape) = plan.keys_within(0.01, 20_000).unwrap();
            assert!(shape.bytes() <= 20_000, "{}", plan.name);
            assert!(plan.shape(keys + 1, 0.01).unwrap().bytes() > 20_000, "{}", plan.name);
        }
    }
}
