//! The k keys, the smallest count first: RedisBloom's heap, with its order among equal counts and the steps it leaves out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::FINGERPRINT_SEED;
use crate::sketches::murmur2::murmur2;

/// A key and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The key.
    pub key: &'a [u8],
    /// About how often it was added.
    pub count: u32,
}

/// A place of the heap as files have it.
pub(super) struct Entry<'a> {
    pub(super) fingerprint: u32,
    pub(super) count: u32,
    /// The bytes of the key; none if the place is free.
    pub(super) key: &'a [u8],
}

/// Heaps with more places than this have an index.
const SEARCHED: usize = 64;

/// Pages of places that no key has had are not touched.
#[derive(Clone, Debug)]
pub(super) struct Heap {
    /// Fingerprint and count of each place.
    heads: Vec<(u32, u32)>,
    /// Its key, `None` if the place is free.
    keys: Vec<Option<Box<[u8]>>>,
    /// Number of keys, and their bytes.
    len: usize,
    key_bytes: u64,
    index: Option<Index>,
}

/// Where each key is, by a hash that nobody can aim at. Two keys with one hash are told apart by searching all places from then on.
#[derive(Clone, Debug, Default)]
struct Index {
    places: HashMap<u64, usize>,
    hasher: RandomState,
}

impl Index {
    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }
}

impl Heap {
    pub(super) fn new(k: usize) -> Self {
        let (heads, keys) = (vec![(0, 0); k], vec![None; k]);
        let index = (k > SEARCHED).then(Index::default);
        Self { heads, keys, len: 0, key_bytes: 0, index }
    }

    /// Sets a place of a new heap from a file, where the empty key looks like a free place: its fingerprint and count tell.
    pub(super) fn load(&mut self, at: usize, fingerprint: u32, count: u32, key: Vec<u8>) {
        self.heads[at] = (fingerprint, count);
        if key.is_empty() && fingerprint == 0 && count == 0 {
            return;
        }
        // A key that is there twice, or under a fingerprint that is not its own, is found by searching.
        let is_own = murmur2(&key, FINGERPRINT_SEED) == fingerprint;
        self.put(at, key.into_boxed_slice(), is_own);
    }

    fn put(&mut self, at: usize, key: Box<[u8]>, is_own: bool) -> Option<Box<[u8]>> {
        if let Some(index) = &mut self.index {
            if let Some(before) = &self.keys[at] {
                index.places.remove(&index.hash(before));
            }
            if !is_own || index.places.insert(index.hash(&key), at).is_some() {
                self.index = None;
            }
        }
        self.key_bytes += key.len() as u64;
        let before = self.keys[at].replace(key);
        match &before {
            Some(before) => self.key_bytes -= before.len() as u64,
            None => self.len += 1,
        }
        before
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.heads.iter().zip(&self.keys).map(|(&(fingerprint, count), key)| Entry {
            fingerprint,
            count,
            key: key.as_deref().unwrap_or_default(),
        })
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the keys.
    pub(super) fn key_bytes(&self) -> u64 {
        self.key_bytes
    }

    /// The count at the top.
    #[inline]
    pub(super) fn smallest(&self) -> u32 {
        self.heads[0].1
    }

    pub(super) fn find(&self, fingerprint: u32, key: &[u8]) -> Option<usize> {
        let is_it =
            |at: usize| self.heads[at].0 == fingerprint && self.keys[at].as_deref() == Some(key);
        match &self.index {
            Some(index) => index.places.get(&index.hash(key)).copied().filter(|&at| is_it(at)),
            None => (0..self.heads.len()).rev().find(|&at| is_it(at)),
        }
    }

    /// Sets the count of a key, which takes the place of the smallest if it has none. The key that lost its place.
    pub(super) fn raise(&mut self, fingerprint: u32, key: &[u8], count: u32) -> Option<Box<[u8]>> {
        if let Some(at) = self.find(fingerprint, key) {
            self.heads[at].1 = count;
            self.sift_down(at);
            return None;
        }
        self.heads[0] = (fingerprint, count);
        let before = self.put(0, key.into(), true);
        self.sift_down(0);
        before
    }

    fn swap(&mut self, one: usize, two: usize) {
        self.heads.swap(one, two);
        self.keys.swap(one, two);
        if let Some(index) = &mut self.index {
            for at in [one, two] {
                if let Some(key) = &self.keys[at] {
                    index.places.insert(index.hash(key), at);
                }
            }
        }
    }

    /// The smaller child of a place, the left one of two equal ones.
    fn smaller_child(&self, at: usize) -> Option<usize> {
        let left = 2 * at + 1;
        let count = self.heads.get(left)?.1;
        let is_right = self.heads.get(left + 1).is_some_and(|right| count > right.1);
        Some(left + usize::from(is_right))
    }

    /// Moves an entry down: in the first step past an equal count, too.
    fn sift_down(&mut self, mut at: usize) {
        let count = self.heads[at].1;
        let Some(child) = self.smaller_child(at) else { return };
        if self.heads[child].1 > count {
            return;
        }
        self.swap(at, child);
        at = child;
        while let Some(child) = self.smaller_child(at)
            && self.heads[child].1 < count
        {
            self.swap(at, child);
            at = child;
        }
    }

    /// The keys by their counts; equal ones in their order in the heap.
    pub(super) fn list(&self) -> Vec<Listed<'_>> {
        let used = self.entries().filter(|entry| entry.count > 0);
        let mut list: Vec<Listed<'_>> =
            used.map(|entry| Listed { key: entry.key, count: entry.count }).collect();
        list.sort_by_key(|listed| Reverse(listed.count));
        list
    }
}

/// The index is no part of the value.
impl PartialEq for Heap {
    fn eq(&self, other: &Self) -> bool {
        self.heads == other.heads && self.keys == other.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::SplitMix64;

    fn key(i: u64) -> Vec<u8> {
        format!("key {i}").into_bytes()
    }

    /// Whatever comes and goes, also from files with keys that are there twice.
    #[test]
    fn a_heap_with_an_index_does_what_one_without_does() {
        for (round, k) in [65, 100, 300].into_iter().enumerate() {
            for forged in [0, 1, 2] {
                let mut random = SplitMix64(round as u64);
                let mut heap = Heap::new(k);
                for at in 0..forged * 3 {
                    let key = key(at as u64 % 2);
                    let own = murmur2(&key, FINGERPRINT_SEED);
                    heap.load(at, own + u32::from(forged == 2), 0, key);
                }
                assert_eq!(heap.index.is_some(), forged == 0);
                let mut searched = Heap { index: None, ..heap.clone() };
                for _ in 0..20_000 {
                    let key = key(random.next_u64() % (2 * k as u64));
                    let (print, count) =
                        (murmur2(&key, FINGERPRINT_SEED), (random.next_u64() % 50) as u32);
                    assert_eq!(heap.find(print, &key), searched.find(print, &key));
                    assert_eq!(heap.raise(print, &key, count), searched.raise(print, &key, count));
                }
                assert!(heap == searched);
                let (len, bytes) = heap
                    .keys
                    .iter()
                    .flatten()
                    .fold((0, 0), |(len, bytes), key| (len + 1, bytes + key.len() as u64));
                assert_eq!((heap.len(), heap.key_bytes()), (len, bytes));
            }
        }
    }
}
