//! What is measured: filters behind one interface whose loops are inside.
//!
//! A call through [`Contender`] costs a virtual call per chunk of keys; the loop over the keys is compiled for each
//! filter on its own, with everything inlined that the filter's crate lets be inlined.
//!
//! Hashing is inside the loop and the same for all that take a ready hash: `mix64` for integers, XXH3 for strings. Those
//! that take only keys hash them as they do by default.

use std::marker::PhantomData;

use ironbloom::HashFn;
use ironbloom::hash::mix64;

use crate::keys::{KeyType, Keys};

/// The rate that all are asked for.
pub(crate) const RATE: f64 = 0.01;

/// Keys hashed at a time before a batch: 8 KiB of hashes stay in the first-level cache.
const GROUP: usize = 1024;

/// A filter that is measured.
pub(crate) trait Contender {
    /// Inserts all keys, one after the other. Tells how many were refused.
    fn insert(&mut self, keys: &Keys) -> u64;

    /// How many of the keys are found, asked one after the other?
    fn count(&self, keys: &Keys) -> u64;

    /// As [`insert`](Self::insert), in batches if the filter has them.
    fn insert_batch(&mut self, keys: &Keys) -> u64 {
        self.insert(keys)
    }

    /// As [`count`](Self::count), in batches if the filter has them.
    fn count_batch(&self, keys: &Keys) -> u64 {
        self.count(keys)
    }

    /// Bytes of memory.
    fn size_in_bytes(&self) -> usize;
}

/// Whose filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Peer,
    /// Not a filter: the memory itself.
    Yardstick,
}

/// Makes an empty filter for this many keys of this type.
pub(crate) type MakeEmpty = fn(u64, KeyType) -> Box<dyn Contender>;

/// How a filter comes to its keys.
#[derive(Clone, Copy)]
pub(crate) enum Make {
    /// Made empty, then filled.
    Empty(MakeEmpty),
    /// Built from all keys at once: `hash` turns an integer key into what `build` takes.
    Built { hash: fn(u64) -> u64, build: fn(&[u64]) -> Box<dyn Contender> },
    /// Only read.
    Lines(fn(u64) -> Box<dyn Contender>),
}

/// An entry in the list of contenders.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    /// Has operations on many keys at once.
    pub(crate) batches: bool,
    pub(crate) make: Make,
}

/// A filter that takes ready hashes.
pub(crate) trait ByHash {
    /// Might the key with this hash be here?
    fn contains_hash(&self, hash: u64) -> bool;

    /// Bytes of memory.
    fn size_in_bytes(&self) -> usize;

    /// Inserts a hash; false if it was refused. Static filters refuse all.
    fn insert_hash(&mut self, _hash: u64) -> bool {
        false
    }

    /// Inserts many hashes; false if one was refused.
    fn insert_hashes(&mut self, hashes: &[u64]) -> bool {
        hashes.iter().all(|&hash| self.insert_hash(hash))
    }

    /// `found[i]` tells whether `hashes[i]` might be here.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        for (found, &hash) in found.iter_mut().zip(hashes) {
            *found = self.contains_hash(hash);
        }
    }

    /// The hash of an integer.
    #[inline]
    fn of_number(number: u64) -> u64 {
        mix64(number)
    }
}

/// The hash of a string, for all that take hashes.
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

/// A filter that takes only keys, and hashes them as it likes.
pub(crate) trait ByKey<K: ?Sized> {
    /// Inserts a key; false if it was refused.
    fn insert_key(&mut self, key: &K) -> bool;

    /// Might the key be here?
    fn contains_key(&self, key: &K) -> bool;

    /// Bytes of memory.
    fn size_in_bytes(&self) -> usize;
}

/// A filter that takes only keys, as a contender for one type of keys.
pub(crate) struct Keyed<F, K: ?Sized>(F, PhantomData<K>);

impl<F, K: ?Sized> Keyed<F, K> {
    /// This filter for keys of type `K`.
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

/// Boxes a key filter for the type of keys.
pub(crate) fn keyed<F>(filter: F, key_type: KeyType) -> Box<dyn Contender>
where
    F: ByKey<u64> + ByKey<[u8]> + 'static,
{
    match key_type {
        KeyType::U64 => Box::new(Keyed::<F, u64>::new(filter)),
        KeyType::Strings => Box::new(Keyed::<F, [u8]>::new(filter)),
    }
}
