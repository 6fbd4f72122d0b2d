//! The common traits of filters, for generic code: [`Filter`] answers, [`Insert`] takes keys, [`Remove`] removes them.

use crate::hash::{GROUP, HashFn, Key, KeyTypes};

/// A filter that can be queried.
///
/// For callers that are generic over kinds, and for lookups of many keys:
///
/// ```
/// use ironbloom::{BlockedBloom, Filter};
/// let mut seen = BlockedBloom::with_rate(1000, 0.01)?;
/// seen.insert_keys(&["alice", "bob"]);
///
/// let mut found = [false; 3];
/// seen.contains_keys(&["alice", "bob", "carol"], &mut found);     // one byte per key
/// assert_eq!(found, [true, true, false]);
///
/// let mut mask = [0];
/// seen.contains_keys_mask(&["alice", "bob", "carol"], &mut mask); // one bit per key
/// assert_eq!(mask, [0b011]);
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
///
/// Everything else is an inherent method of each kind, faster where a kind can do better; a filter read from a file of
/// unknown kind is an [`AnyFilter`](crate::AnyFilter).
pub trait Filter {
    /// Returns true if the key with this [uniform](crate::hash#uniform-hashes) hash might be in the filter. `false` is
    /// certain.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Sets `found[i]` to whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` might be present. In
    /// filters larger than the cache this is many times faster than one by one, because memory accesses overlap.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]);

    /// The hash function.
    fn hash_fn(&self) -> HashFn;

    /// Size in bytes: in memory, or in the file if it is mapped.
    fn size_in_bytes(&self) -> usize;

    /// Number of keys counted. Each kind's method of this name defines what counts.
    fn len(&self) -> u64;

    /// The capacity: the number of keys planned for.
    fn capacity(&self) -> u64;

    /// True if the requested rate is no longer met because there are more keys than planned.
    fn is_over_capacity(&self) -> bool;

    /// True if no key was counted.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the key might be in the filter. `false` is certain.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    fn contains(&self, key: impl Key) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(self.hash_fn().hash(key))
    }

    /// Sets bit i % 64 of `mask[i / 64]` to whether the [uniform](crate::hash#uniform-hashes) hash `hashes[i]` might be
    /// present. Unused bits of the last word become zero.
    ///
    /// # Panics
    ///
    /// Unless the mask has exactly `hashes.len().div_ceil(64)` words.
    fn contains_hashes_mask(&self, hashes: &[u64], mask: &mut [u64]) {
        check_mask(hashes.len(), mask.len());
        let mut found = [false; GROUP];
        for (hashes, mask) in hashes.chunks(GROUP).zip(mask.chunks_mut(GROUP / 64)) {
            let found = &mut found[..hashes.len()];
            self.contains_hashes(hashes, found);
            pack(found, mask);
        }
    }

    /// Sets `found[i]` to whether `keys[i]` might be present: hashes the keys in groups and looks up each group as a
    /// batch.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length, or if the filter does not take keys of this type: see [`HashFn::hash`].
    fn contains_keys<K: Key>(&self, keys: &[K], found: &mut [bool])
    where
        Self: Sized,
    {
        check_lengths(keys.len(), found.len());
        let hash_fn = self.hash_fn();
        let mut hashes = [0; GROUP];
        for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            self.contains_hashes(hash_fn.hash_group(keys, &mut hashes), found);
        }
    }

    /// Sets bit i % 64 of `mask[i / 64]` to whether `keys[i]` might be present, like
    /// [`contains_hashes_mask`](Self::contains_hashes_mask).
    ///
    /// # Panics
    ///
    /// Unless the mask has exactly `keys.len().div_ceil(64)` words, or if the filter does not take keys of this type: see
    /// [`HashFn::hash`].
    fn contains_keys_mask<K: Key>(&self, keys: &[K], mask: &mut [u64])
    where
        Self: Sized,
    {
        check_mask(keys.len(), mask.len());
        let hash_fn = self.hash_fn();
        let mut hashes = [0; GROUP];
        for (keys, mask) in keys.chunks(GROUP).zip(mask.chunks_mut(GROUP / 64)) {
            self.contains_hashes_mask(hash_fn.hash_group(keys, &mut hashes), mask);
        }
    }
}

/// A filter that takes keys after it was created.
///
/// ```
/// use ironbloom::{BlockedBloom, Cuckoo, Insert};
///
/// fn fill<F: Insert>(filter: &mut F, keys: &[&str]) -> Result<(), F::Error> {
///     filter.insert_keys(keys)
/// }
/// fill(&mut BlockedBloom::with_rate(1000, 0.01)?, &["alice", "bob"])?;    // never full: its error cannot happen
/// fill(&mut Cuckoo::with_rate(1000, 0.01)?, &["alice", "bob"])?;          // may be full
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Insert: Filter {
    /// The reason why a key was not inserted: [`Infallible`](std::convert::Infallible) for kinds that take every key,
    /// [`Full`](crate::Full) for those that can be full, [`ParamError`](crate::ParamError) for those that may fail to
    /// allocate memory to grow.
    type Error: std::error::Error + Into<crate::any::Refused>;

    /// Inserts a key by its hash, which must be [uniform](crate::hash#uniform-hashes). On error nothing has changed.
    ///
    /// Returns true if it was new; false if it might have been present before.
    fn insert_hash(&mut self, hash: u64) -> Result<bool, Self::Error>;

    /// Inserts many [uniform](crate::hash#uniform-hashes) hashes. Those before a refused one stay inserted.
    fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Self::Error>;

    /// Notes the types of keys whose hashes are inserted next: see [`KeyTypes`].
    fn note_keys(&mut self, types: KeyTypes);

    /// Inserts many keys: hashes them in groups and inserts each group as a batch. Those before a refused one stay
    /// inserted.
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    fn insert_keys<K: Key>(&mut self, keys: &[K]) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        self.note_keys(KeyTypes::of_keys(keys));
        let hash_fn = self.hash_fn();
        let mut hashes = [0; GROUP];
        for keys in keys.chunks(GROUP) {
            self.insert_hashes(hash_fn.hash_group(keys, &mut hashes))?;
        }
        Ok(())
    }
}

/// A filter from which keys can be removed.
pub trait Remove: Insert {
    /// Removes a key that was inserted, once, by its [uniform](crate::hash#uniform-hashes) hash. Returns false,
    /// changing nothing, if it is certainly absent.
    ///
    /// **Removing a key that was never inserted makes others disappear** if it looks present: see
    /// [`removal`](crate::removal).
    fn remove_hash(&mut self, hash: u64) -> bool;

    /// Removes a key that was inserted, once: see [`remove_hash`](Self::remove_hash).
    ///
    /// # Panics
    ///
    /// If the filter does not take keys of this type: see [`HashFn::hash`].
    fn remove(&mut self, key: impl Key) -> bool
    where
        Self: Sized,
    {
        self.remove_hash(self.hash_fn().hash(key))
    }
}

/// Implements [`Filter`] with a kind's methods of the same names; `capacity` is given where those differ.
macro_rules! filter_by_methods {
    (($($generics:tt)*) $filter:ty, |$this:ident| $capacity:expr) => {
        impl $($generics)* $crate::kinds::Filter for $filter {
            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                Self::contains_hash(self, hash)
            }

            #[track_caller]
            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                Self::contains_hashes(self, hashes, found);
            }

            fn hash_fn(&self) -> $crate::HashFn {
                Self::hash_fn(self)
            }

            fn size_in_bytes(&self) -> usize {
                Self::size_in_bytes(self)
            }

            fn len(&self) -> u64 {
                Self::len(self)
            }

            fn capacity(&self) -> u64 {
                let $this = self;
                $capacity
            }

            fn is_over_capacity(&self) -> bool {
                Self::is_over_capacity(self)
            }
        }
    };
}
pub(crate) use filter_by_methods;

/// Implements the key types of a kind from its hash function and the types that it has noted.
macro_rules! notes_keys {
    (($($generics:tt)*) $filter:ty) => {
        impl $($generics)* $filter {
            /// The types of the keys, as far as known.
            pub fn key_types(&self) -> $crate::KeyTypes {
                self.hash_fn.declared().unwrap_or(self.held)
            }

            /// Notes the types of keys whose hashes are inserted next: see [`KeyTypes`](crate::KeyTypes).
            #[inline]
            pub fn note_keys(&mut self, types: $crate::KeyTypes) {
                if self.held.lacks(types) {
                    let len = self.len();
                    self.held.note(types, len);
                }
            }

            /// Hashes a key that is about to be inserted, and notes its type.
            #[inline]
            #[track_caller]
            pub(crate) fn hash_new(&mut self, key: &impl $crate::Key) -> u64 {
                let hash = self.held.hash(self.hash_fn, key);
                self.note_keys(key.encoded().key_type().into());
                hash
            }
        }
    };
}
pub(crate) use notes_keys;

/// Implements [`Insert`] for kinds that take every key, with their methods of the same names.
macro_rules! insert_always {
    (($($generics:tt)*) $filter:ty) => {
        impl $($generics)* $crate::kinds::Insert for $filter {
            type Error = std::convert::Infallible;

            #[inline]
            fn insert_hash(&mut self, hash: u64) -> Result<bool, Self::Error> {
                Ok(Self::insert_hash(self, hash))
            }

            fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Self::Error> {
                Self::insert_hashes(self, hashes);
                Ok(())
            }

            fn note_keys(&mut self, types: $crate::KeyTypes) {
                Self::note_keys(self, types);
            }
        }
    };
}
pub(crate) use insert_always;

/// Implements [`Insert`] for kinds that may refuse a key, with their methods of the same names.
macro_rules! insert_or {
    ($error:ty, $filter:ty) => {
        impl $crate::kinds::Insert for $filter {
            type Error = $error;

            #[inline]
            fn insert_hash(&mut self, hash: u64) -> Result<bool, Self::Error> {
                Self::insert_hash(self, hash)
            }

            fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Self::Error> {
                Self::insert_hashes(self, hashes)
            }

            fn note_keys(&mut self, types: $crate::KeyTypes) {
                Self::note_keys(self, types);
            }
        }
    };
}
pub(crate) use insert_or;

/// Implements [`Remove`] with a kind's method of the same name.
macro_rules! remove_by_method {
    ($filter:ty) => {
        impl $crate::kinds::Remove for $filter {
            #[inline]
            fn remove_hash(&mut self, hash: u64) -> bool {
                Self::remove_hash(self, hash)
            }
        }
    };
}
pub(crate) use remove_by_method;

/// Checks that every key of a batch has an answer, and every answer a key: anything else is a bug in the caller, who
/// would take the previous contents of the slice for answers. One comparison per batch.
#[inline(always)]
#[track_caller]
pub(crate) fn check_lengths(asked: usize, answers: usize) {
    if asked != answers {
        wrong_length(asked, "answers", answers, asked);
    }
}

/// Like [`check_lengths`], for answers of one bit: 64 per word.
#[inline(always)]
#[track_caller]
fn check_mask(asked: usize, words: usize) {
    let expected = asked.div_ceil(64);
    if words != expected {
        wrong_length(asked, "words of 64 answers", words, expected);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn wrong_length(asked: usize, what: &str, given: usize, expected: usize) -> ! {
    panic!("wrong number of {what} for a batch of {asked}: {given} instead of {expected}");
}

/// Packs each byte into a bit.
fn pack(found: &[bool], mask: &mut [u64]) {
    for (word, found) in mask.iter_mut().zip(found.chunks(64)) {
        *word = found.iter().rev().fold(0, |word, &found| word << 1 | u64::from(found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockedBloom;
    use crate::hash::mix64;

    #[test]
    fn a_mask_says_what_the_bytes_say_whatever_the_lengths() {
        let mut filter = BlockedBloom::with_rate(1000, 0.1).unwrap();
        let hashes: Vec<u64> = (0..3 * GROUP as u64).map(mix64).collect();
        filter.insert_hashes(&hashes[..GROUP]);
        for len in [0, 1, 63, 64, 65, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP] {
            let mut found = vec![false; len];
            filter.contains_hashes(&hashes[..len], &mut found);
            let mut mask = vec![u64::MAX; len.div_ceil(64)];
            filter.contains_hashes_mask(&hashes[..len], &mut mask);
            let bits = (0..64 * len.div_ceil(64)).map(|i| mask[i / 64] >> (i % 64) & 1 == 1);
            let expected = found.iter().copied().chain(std::iter::repeat(false));
            assert!(bits.zip(expected).all(|(bit, found)| bit == found), "{len} hashes");
        }
    }
}
