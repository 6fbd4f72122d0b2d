//! A filter of any kind, as read from a file.
//!
//! Files hold a closed set of kinds, so this is an enum, and every operation is a `match`. An operation that a kind
//! does not support is an error that names the kind and the operation, never a silent success.

use std::fmt;

use crate::bitmap::{Bitmap, OutOfBounds};
use crate::blocked::{BlockedBloom, SplitBlock};
use crate::bloom::Bloom;
use crate::counting::CountingBloom;
use crate::cuckoo::Cuckoo;
use crate::dleft::DLeft;
use crate::error::{DecodeError, Full, MergeError, Mismatch, ParamError};
use crate::filter::{Filter, check_lengths};
use crate::format::Kind;
use crate::format::native::{Image, Parts, Persist};
use crate::fuse::BinaryFuse;
use crate::hash::{GROUP, HashFn};
use crate::key::Key;
pub use crate::key_hash::{KeyError, KeyHash};
use crate::multi::{Joint, MultiFilter, ParallelBloom};
use crate::removal::RemovalCheck;
use crate::scalable::Scalable;
use crate::windowed::Windowed;

/// A filter whose kind is known only at run time.
///
/// Keys are inserted and looked up as in any other filter. If you have many keys, or hash on other threads, turn them
/// into hashes with [`AnyFilter::key_hash`] and call the methods that take hashes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the kind it is named after")]
#[expect(clippy::large_enum_variant, reason = "a program holds a few filters, not arrays of them")]
pub enum AnyFilter {
    Bitmap(Bitmap),
    Bloom(Bloom),
    Blocked(BlockedBloom),
    SplitBlock(SplitBlock),
    Counting(CountingBloom),
    DLeft(DLeft),
    Cuckoo(Cuckoo),
    Fuse(BinaryFuse),
    Scalable(Scalable),
    Windowed(Windowed),
    Parallel(ParallelBloom),
    Joint(Joint),
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
        operation: &'static str,
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

/// What a filter of rows cannot do with a single hash.
const BY_KEY: &str = "take single keys";

impl AnyFilter {
    /// The kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bitmap(_) => Kind::Bitmap,
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::Blocked,
            Self::SplitBlock(_) => Kind::SplitBlock,
            Self::Counting(_) => Kind::Counting,
            Self::DLeft(_) => Kind::DLeft,
            Self::Cuckoo(_) => Kind::Cuckoo,
            Self::Fuse(_) => Kind::Fuse,
            Self::Scalable(_) => Kind::Scalable,
            Self::Windowed(_) => Kind::Windowed,
            Self::Parallel(_) => Kind::Parallel,
            Self::Joint(_) => Kind::Joint,
        }
    }

    /// How keys become the numbers that the other methods take.
    pub fn key_hash(&self) -> KeyHash {
        KeyHash::Hash(match self {
            Self::Bitmap(_) => return KeyHash::Integer,
            Self::Parallel(f) => return KeyHash::Row(f.attributes().hash_fn()),
            Self::Joint(f) => return KeyHash::Row(f.attributes().hash_fn()),
            Self::Bloom(f) => f.hash_fn(),
            Self::Blocked(f) => f.hash_fn(),
            Self::SplitBlock(f) => f.hash_fn(),
            Self::Counting(f) => f.hash_fn(),
            Self::DLeft(f) => f.hash_fn(),
            Self::Cuckoo(f) => f.hash_fn(),
            Self::Fuse(f) => f.hash_fn(),
            Self::Scalable(f) => f.hash_fn(),
            Self::Windowed(f) => f.hash_fn(),
        })
    }

    /// The filter as one of rows of several attributes, if it is one.
    pub fn as_multi(&self) -> Option<&dyn MultiFilter> {
        match self {
            Self::Parallel(f) => Some(f),
            Self::Joint(f) => Some(f),
            _ => None,
        }
    }

    /// The filter as one of rows of several attributes, if it is one, for changing it.
    pub fn as_multi_mut(&mut self) -> Option<&mut dyn MultiFilter> {
        match self {
            Self::Parallel(f) => Some(f),
            Self::Joint(f) => Some(f),
            _ => None,
        }
    }

    fn unsupported(&self, operation: &'static str) -> Refused {
        Refused::Unsupported { kind: self.kind(), operation }
    }

    /// Inserts a key, again if it is already there and the kind counts. On error nothing has changed.
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
    pub fn insert(&mut self, key: impl Key) -> Result<(), Refused> {
        let hash = self.key_hash().of(key)?;
        self.insert_hashes(&[hash])
    }

    /// Inserts many keys: hashes them in groups and inserts each group as a batch. Keys before a refused one stay
    /// inserted.
    pub fn insert_keys<K: Key>(&mut self, keys: &[K]) -> Result<(), Refused> {
        let key_hash = self.key_hash();
        let mut hashes = Vec::with_capacity(keys.len().min(GROUP));
        for group in keys.chunks(GROUP) {
            hashes.clear();
            for key in group {
                hashes.push(key_hash.of(key)?);
            }
            self.insert_hashes(&hashes)?;
        }
        Ok(())
    }

    /// Whether the key might be in the filter. `false` is certain.
    pub fn contains(&self, key: impl Key) -> Result<bool, KeyError> {
        Ok(self.contains_hash(self.key_hash().of(key)?))
    }

    /// Removes a key that was inserted, once. Returns false, changing nothing, if it is certainly not there.
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
        match self {
            Self::Bitmap(f) => f.insert_all(hashes)?,
            Self::Bloom(f) => f.insert_hashes(hashes),
            Self::Blocked(f) => f.insert_hashes(hashes),
            Self::SplitBlock(f) => f.insert_hashes(hashes),
            Self::Counting(f) => f.insert_hashes(hashes),
            Self::DLeft(f) => f.insert_hashes(hashes)?,
            Self::Cuckoo(f) => f.insert_hashes(hashes)?,
            Self::Fuse(_) => return Err(self.unsupported("take keys after it was built")),
            Self::Scalable(f) => f.insert_hashes(hashes)?,
            Self::Windowed(f) => f.insert_hashes(hashes),
            Self::Parallel(_) | Self::Joint(_) => return Err(self.unsupported(BY_KEY)),
        }
        Ok(())
    }

    /// Inserts many keys by their [uniform](crate::hash#uniform-hashes) hashes, which the caller knows to be distinct
    /// and not yet in the filter: kinds that cannot tell also count each as a key. Keys before a refused one stay
    /// inserted.
    pub fn insert_distinct_hashes(&mut self, hashes: &[u64]) -> Result<(), Refused> {
        match self {
            Self::Bloom(f) => f.insert_distinct_hashes(hashes),
            Self::Blocked(f) => f.insert_distinct_hashes(hashes),
            Self::SplitBlock(f) => f.insert_distinct_hashes(hashes),
            _ => return self.insert_hashes(hashes),
        }
        Ok(())
    }

    /// Removes a key that was inserted, once, by its [uniform](crate::hash#uniform-hashes) hash (in a bitmap: an
    /// integer). Returns false, changing nothing, if it is certainly not there.
    ///
    /// **Removing a key that was never inserted makes others disappear** if it looks present, which happens at the
    /// filter's rate: the trace of another key is removed, and that key is then reported absent. No filter can detect
    /// this; [`check_removal`](Self::check_removal) tells how much of a list that would affect before you remove it.
    pub fn remove_hash(&mut self, hash: u64) -> Result<bool, Refused> {
        Ok(match self {
            Self::Bitmap(f) => f.remove(hash)?,
            Self::Counting(f) => f.remove_hash(hash),
            Self::DLeft(f) => f.remove_hash(hash),
            Self::Cuckoo(f) => f.remove_hash(hash),
            Self::Parallel(_) | Self::Joint(_) => return Err(self.unsupported(BY_KEY)),
            _ => return Err(self.unsupported("remove keys")),
        })
    }

    /// Removes all keys. A fuse filter is static and cannot.
    pub fn clear(&mut self) -> Result<(), Refused> {
        match self {
            Self::Bitmap(f) => f.clear(),
            Self::Bloom(f) => f.clear(),
            Self::Blocked(f) => f.clear(),
            Self::SplitBlock(f) => f.clear(),
            Self::Counting(f) => f.clear(),
            Self::DLeft(f) => f.clear(),
            Self::Cuckoo(f) => f.clear(),
            Self::Fuse(_) => return Err(self.unsupported("be cleared")),
            Self::Scalable(f) => f.clear(),
            Self::Windowed(f) => f.clear(),
            Self::Parallel(f) => f.clear(),
            Self::Joint(f) => f.clear(),
        }
        Ok(())
    }

    /// Whether a list of keys to remove, given by their [uniform](crate::hash#uniform-hashes) hashes, is plausible: see
    /// [`removal`](crate::removal). Changes nothing. Fails for kinds that cannot remove a key by its hash.
    pub fn check_removal(&self, hashes: &[u64]) -> Result<RemovalCheck, Refused> {
        match self {
            Self::Bitmap(_) | Self::Counting(_) | Self::DLeft(_) | Self::Cuckoo(_) => {
                Ok(RemovalCheck::of(self, self.len(), self.estimate_rate(), hashes))
            }
            Self::Parallel(_) | Self::Joint(_) => Err(self.unsupported(BY_KEY)),
            _ => Err(self.unsupported("remove keys")),
        }
    }

    /// `found[i]` tells whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` (in a bitmap: an integer)
    /// might be in the filter. `false` is certain. A filter of rows cannot tell from one hash, so it says "maybe" to
    /// all: use [`AnyFilter::as_multi`].
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        match self {
            Self::Bitmap(f) => f.contains_all(hashes, found),
            Self::Bloom(f) => f.contains_hashes(hashes, found),
            Self::Blocked(f) => f.contains_hashes(hashes, found),
            Self::SplitBlock(f) => f.contains_hashes(hashes, found),
            Self::Counting(f) => f.contains_hashes(hashes, found),
            Self::DLeft(f) => f.contains_hashes(hashes, found),
            Self::Cuckoo(f) => f.contains_hashes(hashes, found),
            Self::Fuse(f) => f.contains_hashes(hashes, found),
            Self::Scalable(f) => f.contains_hashes(hashes, found),
            Self::Windowed(f) => f.contains_hashes(hashes, found),
            Self::Parallel(_) | Self::Joint(_) => {
                check_lengths(hashes.len(), found.len());
                found.fill(true);
            }
        }
    }

    /// Adds every key of another filter of the same kind, shape and hash.
    pub fn union_with(&mut self, other: &Self) -> Result<(), Refused> {
        Mismatch::unless_equal("kind", self.kind(), other.kind())?;
        match (&mut *self, other) {
            (Self::Bitmap(a), Self::Bitmap(b)) => a.union_with(b)?,
            (Self::Bloom(a), Self::Bloom(b)) => a.union_with(b)?,
            (Self::Blocked(a), Self::Blocked(b)) => a.union_with(b)?,
            (Self::SplitBlock(a), Self::SplitBlock(b)) => a.union_with(b)?,
            (Self::Counting(a), Self::Counting(b)) => a.union_with(b)?,
            (Self::DLeft(a), Self::DLeft(b)) => a.union_with(b)?,
            (Self::Cuckoo(a), Self::Cuckoo(b)) => a.union_with(b)?,
            (Self::Scalable(a), Self::Scalable(b)) => a.union_with(b)?,
            _ => return Err(self.unsupported("be merged")),
        }
        Ok(())
    }

    /// Keeps what is in both filters, which must be of the same kind, shape and hash.
    pub fn intersect_with(&mut self, other: &Self) -> Result<(), Refused> {
        Mismatch::unless_equal("kind", self.kind(), other.kind())?;
        match (&mut *self, other) {
            (Self::Bitmap(a), Self::Bitmap(b)) => a.intersect_with(b)?,
            (Self::Bloom(a), Self::Bloom(b)) => a.intersect_with(b)?,
            (Self::Blocked(a), Self::Blocked(b)) => a.intersect_with(b)?,
            (Self::SplitBlock(a), Self::SplitBlock(b)) => a.intersect_with(b)?,
            _ => return Err(self.unsupported("be intersected")),
        }
        Ok(())
    }

    /// Number of keys counted.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bitmap(f) => f.len(),
            Self::Bloom(f) => f.len(),
            Self::Blocked(f) => f.len(),
            Self::SplitBlock(f) => f.len(),
            Self::Counting(f) => f.len(),
            Self::DLeft(f) => f.len(),
            Self::Cuckoo(f) => f.len(),
            Self::Fuse(f) => f.len(),
            Self::Scalable(f) => f.len(),
            Self::Windowed(f) => f.len(),
            Self::Parallel(f) => f.len(),
            Self::Joint(f) => f.len(),
        }
    }

    /// True if no key was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The capacity: the number of keys planned for.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Bitmap(f) => f.bound(),
            Self::Bloom(f) => f.params().capacity(),
            Self::Blocked(f) => f.params().capacity(),
            Self::SplitBlock(f) => f.params().capacity(),
            Self::Counting(f) => f.params().capacity(),
            Self::DLeft(f) => f.params().capacity(),
            Self::Cuckoo(f) => f.params().capacity(),
            Self::Fuse(f) => f.len(),
            Self::Scalable(f) => f.capacity(),
            Self::Windowed(f) => f.params().capacity(),
            Self::Parallel(f) => f.params().capacity(),
            Self::Joint(f) => f.params().capacity(),
        }
    }

    /// Number of distinct keys, estimated from the bits. For a parallel filter, which knows values but not rows, the
    /// number counted.
    pub fn estimate_len(&self) -> f64 {
        match self {
            Self::Bitmap(f) => f.len() as f64,
            Self::Bloom(f) => f.estimate_len(),
            Self::Blocked(f) => f.estimate_len(),
            Self::SplitBlock(f) => f.estimate_len(),
            Self::Counting(f) => f.estimate_len(),
            Self::DLeft(f) => f.estimate_len(),
            Self::Cuckoo(f) => f.estimate_len(),
            Self::Fuse(f) => f.estimate_len(),
            Self::Scalable(f) => f.estimate_len(),
            Self::Windowed(f) => f.estimate_len(),
            Self::Parallel(f) => f.len() as f64,
            Self::Joint(f) => f.estimate_len(),
        }
    }

    /// The current rate, estimated from the bits.
    pub fn estimate_rate(&self) -> f64 {
        match self {
            Self::Bitmap(_) => 0.0,
            Self::Bloom(f) => f.estimate_rate(),
            Self::Blocked(f) => f.estimate_rate(),
            Self::SplitBlock(f) => f.estimate_rate(),
            Self::Counting(f) => f.estimate_rate(),
            Self::DLeft(f) => f.estimate_rate(),
            Self::Cuckoo(f) => f.estimate_rate(),
            Self::Fuse(f) => f.estimate_rate(),
            Self::Scalable(f) => f.estimate_rate(),
            Self::Windowed(f) => f.estimate_rate(),
            Self::Parallel(f) => f.estimate_rate(),
            Self::Joint(f) => f.estimate_rate(),
        }
    }

    /// True if the requested rate is no longer met because there are more keys than planned.
    pub fn is_over_capacity(&self) -> bool {
        match self {
            Self::Bitmap(_) | Self::Fuse(_) => false,
            Self::Scalable(f) => f.is_over_capacity(),
            Self::Bloom(f) => f.is_over_capacity(),
            Self::Blocked(f) => f.is_over_capacity(),
            Self::SplitBlock(f) => f.is_over_capacity(),
            Self::Counting(f) => f.is_over_capacity(),
            Self::DLeft(f) => f.is_over_capacity(),
            Self::Cuckoo(f) => f.is_over_capacity(),
            Self::Windowed(f) => f.is_over_capacity(),
            Self::Parallel(f) => f.is_over_capacity(),
            Self::Joint(f) => f.is_over_capacity(),
        }
    }
}

impl Filter for AnyFilter {
    fn contains_hash(&self, hash: u64) -> bool {
        let mut found = [false];
        self.contains_hashes(&[hash], &mut found);
        found[0]
    }

    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_hashes(hashes, found);
    }

    /// As for any filter; a bitmap holds integers, and text that is not an integer is not in it.
    fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool]) {
        check_lengths(keys.len(), found.len());
        if let Self::Bitmap(bitmap) = self {
            for (key, found) in keys.iter().zip(found) {
                *found = KeyHash::Integer.of(key).is_ok_and(|index| bitmap.contains(index));
            }
            return;
        }
        let hash_fn = self.hash_fn();
        let mut hashes = [0; GROUP];
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.contains_hashes(hash_fn.hash_group(keys, &mut hashes), found);
        }
    }

    /// The filter's hash function; a bitmap holds numbers rather than hashes, so for it this is external.
    fn hash_fn(&self) -> HashFn {
        match self.key_hash() {
            KeyHash::Hash(hash_fn) | KeyHash::Row(hash_fn) => hash_fn,
            KeyHash::Integer => HashFn::External { id: 0 },
        }
    }

    fn size_in_bytes(&self) -> usize {
        match self {
            Self::Bitmap(f) => f.size_in_bytes(),
            Self::Bloom(f) => f.size_in_bytes(),
            Self::Blocked(f) => f.size_in_bytes(),
            Self::SplitBlock(f) => f.size_in_bytes(),
            Self::Counting(f) => f.size_in_bytes(),
            Self::DLeft(f) => f.size_in_bytes(),
            Self::Cuckoo(f) => f.size_in_bytes(),
            Self::Fuse(f) => f.size_in_bytes(),
            Self::Scalable(f) => f.size_in_bytes(),
            Self::Windowed(f) => f.size_in_bytes(),
            Self::Parallel(f) => f.size_in_bytes(),
            Self::Joint(f) => f.size_in_bytes(),
        }
    }
}

impl Persist for AnyFilter {
    fn encode(&self) -> Image<'_> {
        match self {
            Self::Bitmap(f) => f.encode(),
            Self::Bloom(f) => f.encode(),
            Self::Blocked(f) => f.encode(),
            Self::SplitBlock(f) => f.encode(),
            Self::Counting(f) => f.encode(),
            Self::DLeft(f) => f.encode(),
            Self::Cuckoo(f) => f.encode(),
            Self::Fuse(f) => f.encode(),
            Self::Scalable(f) => f.encode(),
            Self::Windowed(f) => f.encode(),
            Self::Parallel(f) => f.encode(),
            Self::Joint(f) => f.encode(),
        }
    }

    fn decode(parts: Parts) -> Result<Self, DecodeError> {
        Ok(match parts.header.kind {
            Kind::Bitmap => Self::Bitmap(Persist::decode(parts)?),
            Kind::Bloom => Self::Bloom(Persist::decode(parts)?),
            Kind::Blocked => Self::Blocked(Persist::decode(parts)?),
            Kind::SplitBlock => Self::SplitBlock(Persist::decode(parts)?),
            Kind::Counting => Self::Counting(Persist::decode(parts)?),
            Kind::DLeft => Self::DLeft(Persist::decode(parts)?),
            Kind::Cuckoo => Self::Cuckoo(Persist::decode(parts)?),
            Kind::Fuse => Self::Fuse(Persist::decode(parts)?),
            Kind::Scalable => Self::Scalable(Persist::decode(parts)?),
            Kind::Windowed => Self::Windowed(Persist::decode(parts)?),
            Kind::Parallel => Self::Parallel(Persist::decode(parts)?),
            Kind::Joint => Self::Joint(Persist::decode(parts)?),
        })
    }
}
