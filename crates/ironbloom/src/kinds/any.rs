//! A filter of any kind, as read from a file.
//!
//! Files hold a closed set of kinds, so this is an enum, written by the list of kinds; every operation is forwarded to
//! the filter inside. An operation that a kind does not support is an error that names the kind and the operation,
//! never a silent success.

use std::convert::Infallible;
use std::fmt;

use super::bitmap::OutOfBounds;
use super::describe::Fact;
use super::filter::{Filter, Insert, check_lengths};
use super::member::{Listed, Member};
use super::multi::MultiFilter;
use super::plan::Abilities;
use super::{Kind, RemovalCheck, with_kinds};
use crate::error::{DecodeError, Full, MergeError, Mismatch, ParamError};
use crate::format::native::{Image, Parts, Persist};
use crate::hash::{GROUP, HashFn, Key, KeyType, KeyTypes};
pub use crate::hash::{KeyError, KeyHash};

macro_rules! any_filter {
    ($($variant:ident($filter:ident) = $number:literal, $name:literal, $plans:path;)*) => {
        /// A filter whose kind is known only at run time.
        ///
        /// Keys are inserted and looked up as in any other filter. If you have many keys, or hash on other threads,
        /// turn them into hashes with [`AnyFilter::key_hash`] and call the methods that take hashes.
        ///
        /// Convert a filter of a known kind with `into()`, and back with `try_into()`:
        ///
        /// ```
        /// use ironbloom::{AnyFilter, Bloom, Cuckoo};
        /// let any: AnyFilter = Bloom::with_rate(1000, 0.01)?.into();
        /// assert!(Cuckoo::try_from(any.clone()).is_err());
        /// let bloom: Bloom = any.try_into().unwrap();
        /// # Ok::<(), ironbloom::ParamError>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each variant is the kind it is named after")]
        #[allow(clippy::large_enum_variant, reason = "a program holds a few filters, not arrays of them")]
        pub enum AnyFilter {
            $($variant($crate::kinds::$filter),)*
        }

        impl AnyFilter {
            fn member(&self) -> &dyn Member {
                match self {
                    $(Self::$variant(filter) => filter,)*
                }
            }

            fn member_mut(&mut self) -> &mut dyn Member {
                match self {
                    $(Self::$variant(filter) => filter,)*
                }
            }

            fn decoded(parts: Parts) -> Result<Self, DecodeError> {
                Ok(match parts.header.kind {
                    $(Kind::$variant => Self::$variant(Persist::decode(parts)?),)*
                })
            }
        }

        $(
            impl Listed for $crate::kinds::$filter {
                fn kind(&self) -> Kind {
                    Kind::$variant
                }

                fn of(any: &AnyFilter) -> Option<&Self> {
                    match any {
                        AnyFilter::$variant(filter) => Some(filter),
                        _ => None,
                    }
                }
            }

            impl From<$crate::kinds::$filter> for AnyFilter {
                fn from(filter: $crate::kinds::$filter) -> Self {
                    Self::$variant(filter)
                }
            }

            /// Returns the filter if it is of another kind.
            impl TryFrom<AnyFilter> for $crate::kinds::$filter {
                type Error = AnyFilter;

                fn try_from(any: AnyFilter) -> Result<Self, AnyFilter> {
                    match any {
                        AnyFilter::$variant(filter) => Ok(filter),
                        other => Err(other),
                    }
                }
            }
        )*
    };
}
with_kinds!(any_filter);

/// An operation that not every kind of filter supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Inserting keys after it was built.
    Insert,
    /// Removing keys.
    Remove,
    /// Inserting or looking up single keys, instead of rows.
    SingleKeys,
    /// Inserting or looking up hashes, instead of keys.
    Hashes,
    /// Clearing.
    Clear,
    /// Merging.
    Merge,
    /// Intersecting.
    Intersect,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Insert => "take keys after it was built",
            Self::Remove => "remove keys",
            Self::SingleKeys => "take single keys",
            Self::Hashes => "take hashes instead of keys",
            Self::Clear => "be cleared",
            Self::Merge => "be merged",
            Self::Intersect => "be intersected",
        })
    }
}

/// An operation that a filter refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// The kind does not support this operation.
    Unsupported {
        /// The kind.
        kind: Kind,
        /// The operation.
        operation: Operation,
    },
    /// The filter is full.
    Full(Full),
    /// The two filters are not compatible.
    Mismatch(Mismatch),
    /// An integer outside a bitmap.
    OutOfBounds(OutOfBounds),
    /// A growing filter could not allocate the memory to grow.
    Params(ParamError),
    /// The filter does not hold keys of this type.
    Key(KeyError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { kind, operation } => {
                write!(f, "a {kind} filter cannot {operation}")
            }
            Self::Full(error) => error.fmt(f),
            Self::Mismatch(error) => error.fmt(f),
            Self::OutOfBounds(error) => error.fmt(f),
            Self::Params(error) => error.fmt(f),
            Self::Key(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Infallible> for Refused {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<Full> for Refused {
    fn from(error: Full) -> Self {
        Self::Full(error)
    }
}

impl From<Mismatch> for Refused {
    fn from(error: Mismatch) -> Self {
        Self::Mismatch(error)
    }
}

impl From<OutOfBounds> for Refused {
    fn from(error: OutOfBounds) -> Self {
        Self::OutOfBounds(error)
    }
}

impl From<ParamError> for Refused {
    fn from(error: ParamError) -> Self {
        Self::Params(error)
    }
}

impl From<KeyError> for Refused {
    fn from(error: KeyError) -> Self {
        Self::Key(error)
    }
}

impl From<MergeError> for Refused {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Mismatch(error) => Self::Mismatch(error),
            MergeError::Full(error) => Self::Full(error),
        }
    }
}

impl AnyFilter {
    /// The kind.
    pub fn kind(&self) -> Kind {
        self.member().kind()
    }

    /// The abilities of filters of this kind.
    pub fn abilities(&self) -> Abilities {
        self.member().abilities()
    }

    /// Facts that only this kind has: its shape and its state.
    pub fn describe(&self) -> Vec<Fact> {
        self.member().describe()
    }

    /// How keys become the numbers that the other methods take.
    pub fn key_hash(&self) -> KeyHash {
        self.member().key_hash()
    }

    /// Returns the filter as one of rows of several attributes, if it is one.
    pub fn as_multi(&self) -> Option<&dyn MultiFilter> {
        self.member().as_multi()
    }

    /// Like [`as_multi`](Self::as_multi), for changing it.
    pub fn as_multi_mut(&mut self) -> Option<&mut dyn MultiFilter> {
        self.member_mut().as_multi_mut()
    }

    /// Inserts a key, again if it is already present and the kind counts. Returns true if it was new; false if it might
    /// have been present before. On error nothing has changed.
    ///
    /// ```
    /// use ironbloom::{AnyFilter, Bitmap, Bloom};
    /// let bloom = AnyFilter::Bloom(Bloom::with_rate(1000, 0.01)?);
    /// let bitmap = AnyFilter::Bitmap(Bitmap::new(1000)?);
    /// for mut filter in [bloom, bitmap] {
    ///     filter.insert(7)?;                          // an integer is hashed, or stands for itself in a bitmap
    ///     assert!(filter.contains(7)? && !filter.contains(8)?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Refused> {
        match self {
            Self::Foreign(filter) => return Ok(filter.insert(key)?),
            Self::RedisBloom(filter) => return filter.insert(key),
            _ => {}
        }
        let held = self.held();
        let hash = self.hash_new(&key)?;
        self.member_mut().insert_hash(hash).inspect_err(|_| self.set_held(held))
    }

    /// Inserts a key of this type by its [uniform](crate::hash#uniform-hashes) hash (in a bitmap: an integer), like
    /// [`insert`](Self::insert).
    pub fn insert_hash_of(&mut self, key_type: KeyType, hash: u64) -> Result<bool, Refused> {
        let held = self.held();
        self.note_keys(key_type.into());
        self.member_mut().insert_hash(hash).inspect_err(|_| self.set_held(held))
    }

    /// Inserts keys of these types by their [uniform](crate::hash#uniform-hashes) hashes (in a bitmap: integers). Keys
    /// before a refused one stay inserted; if there are none, nothing has changed.
    ///
    /// ```
    /// use ironbloom::{AnyFilter, Filter, Bloom, KeyType};
    /// let mut filter = AnyFilter::from(Bloom::with_rate(1000, 0.01)?);
    /// let hash_fn = filter.hash_fn();
    /// filter.insert_hashes_of(KeyType::Integer.into(), &[1, 2, 3].map(|id| hash_fn.hash(id)))?;
    /// assert!(filter.contains(2)? && filter.contains("2").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_hashes_of(&mut self, types: KeyTypes, hashes: &[u64]) -> Result<(), Refused> {
        let (held, len) = (self.held(), self.len());
        self.note_keys(types);
        self.insert_hashes(hashes).inspect_err(|_| {
            if self.len() == len {
                self.set_held(held);
            }
        })
    }

    /// The types that are noted, also where the hash function says what keys are.
    fn held(&mut self) -> Option<KeyTypes> {
        self.member_mut().held_mut().copied()
    }

    /// Takes back what was noted for a key that was then refused.
    fn set_held(&mut self, held: Option<KeyTypes>) {
        if let Some(held) = held {
            self.set_key_types(held);
        }
    }

    /// Hashes a key that is about to be inserted, and notes its type, which need not be one that the filter holds.
    fn hash_new(&mut self, key: &impl Key) -> Result<u64, KeyError> {
        let found = key.encoded().key_type();
        let hash = match self.key_hash() {
            KeyHash::Held(hash_fn, held) => {
                held.accepts_new(found)?;
                KeyHash::Hash(hash_fn).of(key)?
            }
            key_hash => key_hash.of(key)?,
        };
        self.note_keys(found.into());
        Ok(hash)
    }

    /// The types of the keys, as far as known. For rows, see
    /// [`Attributes::key_types`](crate::multi::Attributes::key_types).
    pub fn key_types(&self) -> KeyTypes {
        self.member().key_types()
    }

    /// Notes the types of keys whose hashes are inserted next, for callers that hash keys themselves: see [`KeyTypes`].
    ///
    /// ```
    /// use ironbloom::{AnyFilter, Filter, Bloom, KeyType};
    /// let mut filter = AnyFilter::from(Bloom::with_rate(1000, 0.01)?);
    /// filter.note_keys(KeyType::Integer.into());
    /// filter.insert_hashes(&[1, 2, 3].map(|id| filter.hash_fn().hash(id)))?;
    /// assert!(filter.contains(2)? && filter.contains("2").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn note_keys(&mut self, types: KeyTypes) {
        let len = self.len();
        if let Some(held) = self.member_mut().held_mut()
            && held.lacks(types)
        {
            held.note(types, len);
        }
    }

    /// Sets the types of all keys, for a filter that was made from their hashes.
    pub fn set_key_types(&mut self, types: KeyTypes) {
        if let Some(held) = self.member_mut().held_mut() {
            *held = types;
        }
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch. Keys before a refused one stay
    /// inserted.
    pub fn insert_keys<K: Key>(&mut self, keys: &[K]) -> Result<(), Refused> {
        if let KeyHash::Foreign(_) = self.key_hash() {
            return keys.iter().try_for_each(|key| self.insert(key).map(drop));
        }
        let (held, len) = (self.held(), self.len());
        let mut hashes = Vec::with_capacity(keys.len().min(GROUP));
        let inserted = keys.chunks(GROUP).try_for_each(|group| {
            hashes.clear();
            let mut hashed = Ok(());
            for key in group {
                match self.hash_new(key) {
                    Ok(hash) => hashes.push(hash),
                    Err(error) => {
                        hashed = Err(error.into());
                        break;
                    }
                }
            }
            self.insert_hashes(&hashes).and(hashed)
        });
        inserted.inspect_err(|_| {
            if self.len() == len {
                self.set_held(held);
            }
        })
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    pub fn contains(&self, key: impl Key) -> Result<bool, KeyError> {
        match self {
            Self::Foreign(filter) => return filter.contains(key),
            Self::RedisBloom(filter) => return filter.contains(key),
            _ => {}
        }
        Ok(self.contains_hash(self.key_hash().of(key)?))
    }

    /// Sets `found[i]` to whether `keys[i]` might be present. Fails at the first key that the filter does not take,
    /// with its position and the reason.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn try_contains_keys<K: Key>(
        &self,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), (usize, KeyError)> {
        match self {
            Self::Foreign(filter) => return filter.contains_keys(keys, found),
            Self::RedisBloom(filter) => return filter.contains_keys(keys, found),
            _ => check_lengths(keys.len(), found.len()),
        }
        let key_hash = self.key_hash();
        let mut hashes = Vec::with_capacity(keys.len().min(GROUP));
        for (number, (keys, found)) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)).enumerate() {
            hashes.clear();
            for (i, key) in keys.iter().enumerate() {
                hashes.push(key_hash.of(key).map_err(|error| (number * GROUP + i, error))?);
            }
            self.contains_hashes(&hashes, found);
        }
        Ok(())
    }

    /// Removes a key that was inserted, once. Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes others disappear** if it looks present (this cannot happen in a
    /// bitmap): see [`remove_hash`](Self::remove_hash).
    pub fn remove(&mut self, key: impl Key) -> Result<bool, Refused> {
        let hash = self.key_hash().of(key)?;
        self.remove_hash(hash)
    }

    /// Inserts many keys by their [uniform](crate::hash#uniform-hashes) hashes (in a bitmap: integers). Keys before a
    /// refused one stay inserted.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        self.member_mut().insert_hashes(hashes)
    }

    /// Inserts many keys by their [uniform](crate::hash#uniform-hashes) hashes, which the caller knows to be distinct
    /// and not yet in the filter: kinds that cannot tell also count each as a key. Keys before a refused one stay
    /// inserted.
    pub fn insert_distinct_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        self.member_mut().insert_distinct_hashes(hashes)
    }

    /// Removes a key that was inserted, once, by its [uniform](crate::hash#uniform-hashes) hash (in a bitmap: an
    /// integer). Returns false, changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes others disappear** if it looks present, which happens at the
    /// filter's rate: the trace of another key is removed, and that key is then reported absent. No filter can detect
    /// this; [`check_removal`](Self::check_removal) estimates how much of a list that would affect, before you remove
    /// it.
    pub fn remove_hash(&mut self, hash: u64) -> Result<bool, Refused> {
        self.member_mut().remove_hash(hash)
    }

    /// Removes all keys. A fuse filter is static and cannot be cleared.
    pub fn clear(&mut self) -> Result<(), Refused> {
        self.member_mut().clear()
    }

    /// Checks whether a list of keys to remove, given by their [uniform](crate::hash#uniform-hashes) hashes, is
    /// plausible: see [`removal`](crate::removal). Changes nothing. Fails for kinds that cannot remove a key by its
    /// hash.
    pub fn check_removal(&self, hashes: &[u64]) -> Result<RemovalCheck, Refused> {
        if self.as_multi().is_some() {
            return Err(self.member().cannot(Operation::SingleKeys));
        }
        if !self.abilities().remove {
            return Err(self.member().cannot(Operation::Remove));
        }
        Ok(RemovalCheck::of(self, self.len(), self.estimate_rate(), hashes))
    }

    /// Sets `found[i]` to whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` (in a bitmap: an integer)
    /// might be in the filter. `false` is certain. A filter of rows cannot tell from one hash, so it answers "maybe" to
    /// all: use [`AnyFilter::as_multi`]. So does a foreign filter: use [`AnyFilter::contains`].
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        check_lengths(hashes.len(), found.len());
        self.member().contains_hashes(hashes, found);
    }

    /// Adds every key of another filter of the same kind, shape and hash.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Refused> {
        Mismatch::unless_equal("kind", self.kind(), other.kind())?;
        self.member_mut().union_with(other)
    }

    /// Keeps the keys of both filters, which must be of the same kind, shape and hash.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Refused> {
        Mismatch::unless_equal("kind", self.kind(), other.kind())?;
        self.member_mut().intersect_with(other)
    }

    /// Number of keys counted.
    pub fn len(&self) -> u64 {
        self.member().len()
    }

    /// True if no key was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        self.member().capacity()
    }

    /// Number of distinct keys, estimated from the bits. For a parallel filter, which knows values but not rows, the
    /// number counted.
    pub fn estimate_len(&self) -> f64 {
        self.member().estimate_len()
    }

    /// The current rate, estimated from the bits.
    pub fn estimate_rate(&self) -> f64 {
        self.member().estimate_rate()
    }

    /// True if the requested rate is no longer met because there are more keys than planned.
    pub fn is_over_capacity(&self) -> bool {
        self.member().is_over_capacity()
    }
}

impl Filter for AnyFilter {
    fn contains_hash(&self, hash: u64) -> bool {
        self.member().contains_hash(hash)
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_hashes(hashes, found);
    }

    /// Like any filter; a bitmap holds integers, and text that is not an integer is not in it.
    fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        check_lengths(keys.len(), found.len());
        if let Self::Bitmap(bitmap) = self {
            for (key, found) in keys.iter().zip(found) {
                *found = KeyHash::Integer.of(key).is_ok_and(|index| bitmap.contains(index));
            }
            return;
        }
        if let KeyHash::Foreign(_) = self.key_hash() {
            if let Err((place, error)) = self.try_contains_keys(keys, found) {
                panic!("key {place}: {error}");
            }
            return;
        }
        let hash_fn = self.hash_fn();
        let mut hashes = [0; GROUP];
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.contains_hashes(hash_fn.hash_group(keys, &mut hashes), found);
        }
    }

    /// The filter's hash function; external for a bitmap, which holds numbers rather than hashes.
    fn hash_fn(&self) -> HashFn {
        self.key_hash().hash_fn().unwrap_or(HashFn::External { id: 0 })
    }

    fn size_in_bytes(&self) -> usize {
        self.member().size_in_bytes()
    }

    fn len(&self) -> u64 {
        self.len()
    }

    fn capacity(&self) -> u64 {
        self.capacity()
    }

    fn is_over_capacity(&self) -> bool {
        self.is_over_capacity()
    }
}

impl Insert for AnyFilter {
    type Error = Refused;

    fn insert_hash(&mut self, hash: u64) -> Result<bool, Refused> {
        self.member_mut().insert_hash(hash)
    }

    fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        self.insert_hashes(hashes)
    }

    fn note_keys(&mut self, types: KeyTypes) {
        self.note_keys(types);
    }
}

impl Persist for AnyFilter {
    fn encode(&self) -> Image<'_> {
        self.member().image()
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        Self::decoded(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomicBlockedBloom, AtomicBloom, Bloom, Cuckoo};

    #[test]
    fn filters_can_be_sent_to_and_shared_with_other_threads() {
        fn check<T: Send + Sync + Clone + PartialEq + fmt::Debug>() {}
        macro_rules! check_all {
            ($($variant:ident($filter:ident) = $number:literal, $name:literal, $plans:path;)*) => {
                $(check::<$crate::kinds::$filter>();)*
            };
        }
        with_kinds!(check_all);
        check::<AnyFilter>();
        check::<AtomicBloom>();
        check::<AtomicBlockedBloom>();
    }

    #[test]
    fn a_filter_of_another_kind_comes_back_unharmed() {
        let mut bloom = Bloom::with_rate(100, 0.01).unwrap();
        bloom.insert("alice");
        let any = AnyFilter::from(bloom.clone());
        let any = Cuckoo::try_from(any).unwrap_err();
        assert_eq!(Bloom::try_from(any), Ok(bloom));
    }
}
