//! The operations of a filter whose kind is known only at run time.
//!
//! [`AnyFilter`](super::AnyFilter) forwards every operation to one of these: a virtual call for each batch of keys. A
//! kind implements its abilities; other operations are refused by name.

use super::Kind;
use super::any::{AnyFilter, Operation, Refused};
use super::describe::Fact;
use super::multi::MultiFilter;
use super::plan::Abilities;
use crate::error::Mismatch;
use crate::format::native::Image;
use crate::hash::{KeyHash, KeyTypes};

/// A filter's place in the list of kinds, written by the list itself.
pub(crate) trait Listed {
    fn kind(&self) -> Kind;

    /// Returns the filter, if it is of this kind.
    fn of(any: &AnyFilter) -> Option<&Self>
    where
        Self: Sized;

    /// Returns the other filter as one of the same kind, or how the two differ.
    fn same_kind<'a>(&self, other: &'a AnyFilter) -> Result<&'a Self, Mismatch>
    where
        Self: Sized,
    {
        Mismatch::unless_equal("kind", self.kind(), other.kind())?;
        Ok(Self::of(other).expect("the kinds are equal"))
    }
}

/// A filter of some kind. Numbers come from [`key_hash`](Self::key_hash).
pub(crate) trait Member: Listed {
    /// The refusal of an operation that this kind never supports.
    fn cannot(&self, operation: Operation) -> Refused {
        Refused::Unsupported { kind: self.kind(), operation }
    }

    fn abilities(&self) -> Abilities;
    fn key_hash(&self) -> KeyHash;

    /// The types of the keys, as far as known.
    fn key_types(&self) -> KeyTypes {
        KeyTypes::NONE
    }

    /// The types that were noted, for kinds that note them.
    fn held_mut(&mut self) -> Option<&mut KeyTypes> {
        None
    }

    fn contains_hash(&self, hash: u64) -> bool;
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]);
    fn len(&self) -> u64;
    fn capacity(&self) -> u64;
    fn estimate_len(&self) -> f64;
    fn estimate_rate(&self) -> f64;
    fn is_over_capacity(&self) -> bool;
    fn size_in_bytes(&self) -> usize;
    fn image(&self) -> Image<'_>;

    /// Facts that only this kind has.
    fn describe(&self) -> Vec<Fact> {
        Vec::new()
    }

    /// Inserts a hash. Returns true if it was new.
    fn insert_hash(&mut self, _hash: u64) -> Result<bool, Refused> {
        Err(self.cannot(Operation::Insert))
    }

    fn insert_hashes(&mut self, _hashes: &[u64]) -> Result<(), Refused> {
        Err(self.cannot(Operation::Insert))
    }

    /// For kinds that cannot tell distinct keys from repeated ones: the caller knows.
    fn insert_distinct_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        self.insert_hashes(hashes)
    }

    fn remove_hash(&mut self, _hash: u64) -> Result<bool, Refused> {
        Err(self.cannot(Operation::Remove))
    }

    fn union_with(&mut self, _other: &AnyFilter) -> Result<(), Refused> {
        Err(self.cannot(Operation::Merge))
    }

    fn intersect_with(&mut self, _other: &AnyFilter) -> Result<(), Refused> {
        Err(self.cannot(Operation::Intersect))
    }

    fn clear(&mut self) -> Result<(), Refused> {
        Err(self.cannot(Operation::Clear))
    }

    /// Returns the filter as one of rows, if it is one.
    fn as_multi(&self) -> Option<&dyn MultiFilter> {
        None
    }

    fn as_multi_mut(&mut self) -> Option<&mut dyn MultiFilter> {
        None
    }
}

/// Implements questions about all keys with a filter's methods of the same names.
macro_rules! answers_about_all {
    () => {
        fn abilities(&self) -> $crate::kinds::plan::Abilities {
            ABILITIES
        }

        fn len(&self) -> u64 {
            Self::len(self)
        }

        fn estimate_len(&self) -> f64 {
            Self::estimate_len(self)
        }

        fn estimate_rate(&self) -> f64 {
            Self::estimate_rate(self)
        }

        fn is_over_capacity(&self) -> bool {
            Self::is_over_capacity(self)
        }

        fn size_in_bytes(&self) -> usize {
            Self::size_in_bytes(self)
        }

        fn image(&self) -> $crate::format::native::Image<'_> {
            $crate::format::native::Persist::encode(self)
        }
    };
}
pub(super) use answers_about_all;

/// Implements questions about hashes with a filter's methods of the same names.
macro_rules! answers_by_hash {
    () => {
        fn key_hash(&self) -> $crate::hash::KeyHash {
            $crate::hash::KeyHash::of_filter(self.hash_fn, self.held)
        }

        fn key_types(&self) -> $crate::KeyTypes {
            Self::key_types(self)
        }

        fn held_mut(&mut self) -> Option<&mut $crate::KeyTypes> {
            Some(&mut self.held)
        }

        fn contains_hash(&self, hash: u64) -> bool {
            Self::contains_hash(self, hash)
        }

        fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
            Self::contains_hashes(self, hashes, found);
        }

        fn capacity(&self) -> u64 {
            $crate::kinds::Filter::capacity(self)
        }

        $crate::kinds::member::answers_about_all!();
    };
}
pub(super) use answers_by_hash;

/// Like `answers_by_hash`, for filters that are queried by key, because their programs derive more than 64 bits from
/// one: our hash says nothing, so any key may be present, and none can be inserted.
macro_rules! answers_by_key {
    () => {
        fn key_hash(&self) -> $crate::hash::KeyHash {
            $crate::hash::KeyHash::Foreign(Self::hash_fn(self))
        }

        fn capacity(&self) -> u64 {
            Self::capacity(self)
        }

        fn contains_hash(&self, _hash: u64) -> bool {
            true
        }

        fn contains_hashes(&self, _hashes: &[u64], found: &mut [bool]) {
            found.fill(true);
        }

        fn insert_hash(&mut self, _hash: u64) -> Result<bool, Refused> {
            Err(self.cannot($crate::kinds::any::Operation::Hashes))
        }

        fn insert_hashes(&mut self, _hashes: &[u64]) -> Result<(), Refused> {
            Err(self.cannot($crate::kinds::any::Operation::Hashes))
        }

        $crate::kinds::member::answers_about_all!();
    };
}
pub(super) use answers_by_key;

/// Implements inserts with a kind's trait.
macro_rules! inserts_by_hash {
    () => {
        fn insert_hash(&mut self, hash: u64) -> Result<bool, Refused> {
            Ok($crate::kinds::Insert::insert_hash(self, hash)?)
        }

        fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
            Ok($crate::kinds::Insert::insert_hashes(self, hashes)?)
        }

        fn clear(&mut self) -> Result<(), Refused> {
            Self::clear(self);
            Ok(())
        }
    };
}
pub(super) use inserts_by_hash;

/// Implements removals, for kinds whose keys are removed by hash.
macro_rules! removes_by_hash {
    () => {
        fn remove_hash(&mut self, hash: u64) -> Result<bool, Refused> {
            Ok(Self::remove_hash(self, hash))
        }
    };
}
pub(super) use removes_by_hash;

/// Implements unions with filters of the same kind.
macro_rules! merges {
    () => {
        fn union_with(&mut self, other: &AnyFilter) -> Result<(), Refused> {
            Ok(Self::union_with(self, self.same_kind(other)?)?)
        }
    };
}
pub(super) use merges;

/// Implements intersections with filters of the same kind.
macro_rules! intersects {
    () => {
        fn intersect_with(&mut self, other: &AnyFilter) -> Result<(), Refused> {
            Ok(Self::intersect_with(self, self.same_kind(other)?)?)
        }
    };
}
pub(super) use intersects;
