//! `extend` and `collect`, as for the sets of the standard library.

use super::blocked::Blocked;
use super::bloom::Bloom;
use super::counting::CountingBloom;
use super::filter::Insert;
use super::scalable::Scalable;
use super::windowed::Windowed;
use crate::hash::{GROUP, Key, KeyTypes};

/// Initial capacity and rate of a collected [`Scalable`].
const COLLECTED: (u64, f64) = (1024, 0.01);

/// Inserts all keys, hashed one by one and inserted in groups, so that memory accesses overlap.
fn extend<F: Insert>(
    filter: &mut F,
    keys: impl IntoIterator<Item = impl Key>,
) -> Result<(), F::Error> {
    let hash_fn = filter.hash_fn();
    let mut keys = keys.into_iter();
    let mut hashes = Vec::with_capacity(GROUP);
    loop {
        hashes.clear();
        let mut types = KeyTypes::NONE;
        hashes.extend(keys.by_ref().take(GROUP).map(|key| {
            types = types.union(key.encoded().key_type().into());
            hash_fn.hash(key)
        }));
        if hashes.is_empty() {
            return Ok(());
        }
        filter.note_keys(types);
        filter.insert_hashes(&hashes)?;
    }
}

macro_rules! extend_always {
    ($(($($generics:tt)*) $filter:ty;)*) => {$(
        /// Inserts all keys of an iterator.
        ///
        /// # Panics
        ///
        /// If the filter does not take keys of this type: see [`HashFn::hash`](crate::HashFn::hash).
        impl<K: Key, $($generics)*> Extend<K> for $filter {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                let Ok(()) = extend(self, keys);
            }
        }
    )*};
}

extend_always! {
    () Bloom;
    (const WORDS: usize) Blocked<WORDS>;
    () CountingBloom;
    () Windowed;
}

/// Inserts all keys of an iterator.
///
/// # Panics
///
/// If memory to grow cannot be allocated, as `Vec` does, or if the filter does not take keys of this type: see
/// [`HashFn::hash`](crate::HashFn::hash). [`Scalable::insert`] returns an error instead.
impl<K: Key> Extend<K> for Scalable {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        extend(self, keys).unwrap_or_else(|error| panic!("a filter that grows: {error}"));
    }
}

/// Collects keys into a filter that grows with them, at a rate of 1 %. For another rate, create the filter and `extend`
/// it.
///
/// ```
/// use ironbloom::Scalable;
/// let seen: Scalable = ["alice", "bob"].into_iter().collect();
/// assert!(seen.contains("alice") && !seen.contains("carol"));
/// ```
impl<K: Key> FromIterator<K> for Scalable {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let keys = keys.into_iter();
        let (expected, _) = keys.size_hint();
        let (least, rate) = COLLECTED;
        let mut filter = Self::with_rate(least.max(expected as u64), rate)
            .unwrap_or_else(|error| panic!("a filter that grows: {error}"));
        filter.extend(keys);
        filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockedBloom, SplitBlock};

    #[test]
    fn every_key_of_an_iterator_is_inserted_whatever_their_number() {
        for len in [0, 1, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + 7] {
            let keys = || (0..len as u64).map(|key| key * 7);
            let mut bloom = Bloom::with_rate(5000, 0.01).unwrap();
            let mut blocked = BlockedBloom::with_rate(5000, 0.01).unwrap();
            let mut split = SplitBlock::with_rate(5000, 0.01).unwrap();
            let mut counting = CountingBloom::with_rate(5000, 0.01).unwrap();
            let mut windowed = Windowed::for_keys(5000, 0.01).unwrap();
            bloom.extend(keys());
            blocked.extend(keys());
            split.extend(keys());
            counting.extend(keys());
            windowed.extend(keys());
            let scalable: Scalable = keys().collect();
            for key in keys() {
                assert!(bloom.contains(key) && blocked.contains(key) && split.contains(key));
                assert!(counting.contains(key) && windowed.contains(key) && scalable.contains(key));
            }
            assert_eq!(bloom.is_empty(), len == 0);
        }
    }
}
