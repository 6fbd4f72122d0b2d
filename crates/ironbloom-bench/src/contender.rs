//! The contenders: filters behind one interface whose loops are inside.
//!
//! A call through [`Contender`] costs a virtual call per chunk of keys; the loop over the keys is compiled separately
//! for each filter, with everything inlined that its crate allows.
//!
//! Hashing is inside the loop and the same for all filters that take a ready hash: `mix64` for integers, XXH3 for
//! strings. Filters that take only keys use their default hash.

use std::marker::PhantomData;

use ironbloom::HashFn;
use ironbloom::hash::mix64;

use crate::keys::{KeyType, Keys};

/// The false-positive rate requested of every filter.
pub(crate) const RATE: f64 = 0.01;

/// Keys hashed at a time before a batch: 8 KiB of hashes stay in the first-level cache.
const GROUP: usize = 1024;

/// A filter under measurement.
pub(crate) trait Contender {
    /// Inserts all keys one by one; returns how many were refused.
    fn insert(&mut self, keys: &Keys) -> u64;

    /// Looks up the keys one by one; returns how many are found.
    fn count(&self, keys: &Keys) -> u64;

    /// Like [`insert`](Self::insert), in batches if the filter has them.
    fn insert_batch(&mut self, keys: &Keys) -> u64 {
        self.insert(keys)
    }

    /// Like [`count`](Self::count), in batches if the filter has them.
    fn count_batch(&self, keys: &Keys) -> u64 {
        self.count(keys)
    }

    /// Memory in bytes.
    fn size_in_bytes(&self) -> usize;
}

/// The side a contender belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peer,
    /// Not a filter: the memory itself.
    Yardstick,
}

/// Makes an empty filter for this many keys of this type.
pub(crate) type MakeEmpty = fn(u64, KeyType) -> Box<dyn Contender>;

/// How a filter receives its keys.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// Made empty, then filled.
    Empty(MakeEmpty),
    /// Built from all keys at once: `hash` turns an integer key into the input of `build`.
    Built { hash: fn(u64) -> u64, build: fn(&[u64]) -> Box<dyn Contender> },
    /// Only read.
    Lines(fn(u64) -> Box<dyn Contender>),
}

/// An entry in the list of contenders.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    /// True if it has operations on many keys at once.
    pub(crate) batches: bool,
    pub(crate) make: Make,
}

/// A filter that takes ready hashes.
pub(crate) trait ByHash {
    /// Returns true if the key with this hash might be present.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Memory in bytes.
    fn size_in_bytes(&self) -> usize;

    /// Inserts a hash; false if it was refused. Static filters refuse every hash.
    fn insert_hash(&mut self, _hash: u64) -> bool {
        false
    }

    /// Inserts many hashes; false if any was refused.
    fn insert_hashes(&mut self, hashes: &[u64]) -> bool {
        hashes.iter().all(|&hash| self.insert_hash(hash))
    }

    /// Sets `found[i]` to whether `hashes[i]` might be present.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        for (found, &hash) in found.iter_mut().zip(hashes) {
            *found = self.contains_hash(hash);
        }
    }

    /// Hashes an integer.
    #[inline]
    fn of_number(number: u64) -> u64 {
        mix64(number)
    }
}

/// Hashes a string, for all filters that take hashes.
#[inline]
pub(crate) fn hash_text(text: &[u8]) -> u64 {
    HashFn::default().hash(text)
}

/// A filter that takes ready hashes, as a contender.
pub(crate) struct Hashed<F>(pub(crate) F);

impl<F: ByHash> Contender for Hashed<F> {
    fn insert(&mut self, keys: &Keys) -> u64 {
        let mut insert = |hash| u64::from(!self.0.insert_hash(hash));
        match keys {
            Keys::Numbers(numbers) => numbers.iter().map(|&n| insert(F::of_number(n))).sum(),
            Keys::Texts(texts) => texts.iter().map(|text| insert(hash_text(text))).sum(),
        }
    }

    fn count(&self, keys: &Keys) -> u64 {
        let find = |hash| u64::from(self.0.contains_hash(hash));
        match keys {
            Keys::Numbers(numbers) => numbers.iter().map(|&n| find(F::of_number(n))).sum(),
            Keys::Texts(texts) => texts.iter().map(|text| find(hash_text(text))).sum(),
        }
    }

    fn insert_batch(&mut self, keys: &Keys) -> u64 {
        let mut refused = 0;
        for_each_group::<F>(keys, |hashes| refused += u64::from(!self.0.insert_hashes(hashes)));
        refused
    }

    fn count_batch(&self, keys: &Keys) -> u64 {
        let mut found = [false; GROUP];
        let mut count = 0;
        for_each_group::<F>(keys, |hashes| {
            let found = &mut found[..hashes.len()];
            self.0.contains_hashes(hashes, found);
            count += found.iter().map(|&found| u64::from(found)).sum::<u64>();
        });
        count
    }

    fn size_in_bytes(&self) -> usize {
        self.0.size_in_bytes()
    }
}

/// Hashes the keys in groups, as a caller of a batch would.
#[inline]
fn for_each_group<F: ByHash>(keys: &Keys, mut batch: impl FnMut(&[u64])) {
    let mut hashes = [0; GROUP];
    match keys {
        Keys::Numbers(numbers) => {
            for group in numbers.chunks(GROUP) {
                for (hash, &number) in hashes.iter_mut().zip(group) {
                    *hash = F::of_number(number);
                }
                batch(&hashes[..group.len()]);
            }
        }
        Keys::Texts(texts) => {
            let mut len = 0;
            for text in texts.iter() {
                hashes[len] = hash_text(text);
                len += 1;
                if len == GROUP {
                    batch(&hashes);
                    len = 0;
                }
            }
            batch(&hashes[..len]);
        }
    }
}

/// A filter that takes only keys and hashes them itself.
pub(crate) trait ByKey<K: ?Sized> {
    /// Inserts a key; false if it was refused.
    fn insert_key(&mut self, key: &K) -> bool;

    /// Returns true if the key might be present.
    fn contains_key(&self, key: &K) -> bool;

    /// Memory in bytes.
    fn size_in_bytes(&self) -> usize;
}

/// A filter that takes only keys, as a contender for one key type.
pub(crate) struct Keyed<F, K: ?Sized>(F, PhantomData<K>);

impl<F, K: ?Sized> Keyed<F, K> {
    /// Wraps this filter for keys of type `K`.
    pub(crate) fn new(filter: F) -> Self {
        Self(filter, PhantomData)
    }
}

impl<F: ByKey<u64>> Contender for Keyed<F, u64> {
    fn insert(&mut self, keys: &Keys) -> u64 {
        let Keys::Numbers(numbers) = keys else { unreachable!("made for integers") };
        numbers.iter().map(|number| u64::from(!self.0.insert_key(number))).sum()
    }

    fn count(&self, keys: &Keys) -> u64 {
        let Keys::Numbers(numbers) = keys else { unreachable!("made for integers") };
        numbers.iter().map(|number| u64::from(self.0.contains_key(number))).sum()
    }

    fn size_in_bytes(&self) -> usize {
        self.0.size_in_bytes()
    }
}

impl<F: ByKey<[u8]>> Contender for Keyed<F, [u8]> {
    fn insert(&mut self, keys: &Keys) -> u64 {
        let Keys::Texts(texts) = keys else { unreachable!("made for strings") };
        texts.iter().map(|text| u64::from(!self.0.insert_key(text))).sum()
    }

    fn count(&self, keys: &Keys) -> u64 {
        let Keys::Texts(texts) = keys else { unreachable!("made for strings") };
        texts.iter().map(|text| u64::from(self.0.contains_key(text))).sum()
    }

    fn size_in_bytes(&self) -> usize {
        self.0.size_in_bytes()
    }
}

/// Boxes a key filter for this key type.
pub(crate) fn keyed<F>(filter: F, key_type: KeyType) -> Box<dyn Contender>
where
    F: ByKey<u64> + ByKey<[u8]> + 'static,
{
    match key_type {
        KeyType::U64 => Box::new(Keyed::<F, u64>::new(filter)),
        KeyType::Strings => Box::new(Keyed::<F, [u8]>::new(filter)),
    }
}
