//! The k keys, the smallest count first: RedisBloom's heap, with its order among equal counts and the steps it leaves out.

use std::cmp::Reverse;

/// A key and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The key.
    pub key: &'a [u8],
    /// About how often it was added.
    pub count: u32,
}

/// A place of the heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) fingerprint: u32,
    pub(super) count: u32,
    /// None if the place is free.
    key: Option<Box<[u8]>>,
}

impl Entry {
    /// An entry from a file, where the empty key looks like a free place: its fingerprint and count tell.
    pub(super) fn loaded(fingerprint: u32, count: u32, key: Vec<u8>) -> Self {
        let is_free = key.is_empty() && fingerprint == 0 && count == 0;
        Self { fingerprint, count, key: (!is_free).then(|| key.into_boxed_slice()) }
    }

    /// The bytes of the key; none if the place is free.
    pub(super) fn bytes(&self) -> &[u8] {
        self.key.as_deref().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heap(Vec<Entry>);

impl Heap {
    pub(super) fn new(k: usize) -> Self {
        Self(vec![Entry::default(); k])
    }

    /// A heap with these entries, one at least.
    pub(super) fn from_entries(entries: Vec<Entry>) -> Self {
        Self(entries)
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.0
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter_map(|entry| entry.key.as_deref())
    }

    /// The count at the top.
    #[inline]
    pub(super) fn smallest(&self) -> u32 {
        self.0[0].count
    }

    pub(super) fn find(&self, fingerprint: u32, key: &[u8]) -> Option<usize> {
        let is_it =
            |entry: &Entry| entry.fingerprint == fingerprint && entry.key.as_deref() == Some(key);
        self.0.iter().rposition(is_it)
    }

    /// Sets the count of a key, which takes the place of the smallest if it has none. The key that lost its place.
    pub(super) fn raise(&mut self, fingerprint: u32, key: &[u8], count: u32) -> Option<Box<[u8]>> {
        if let Some(at) = self.find(fingerprint, key) {
            self.0[at].count = count;
            self.sift_down(at);
            return None;
        }
        let entry = Entry { fingerprint, count, key: Some(key.into()) };
        let before = std::mem::replace(&mut self.0[0], entry);
        self.sift_down(0);
        before.key
    }

    /// The smaller child of a place, the left one of two equal ones.
    fn smaller_child(&self, at: usize) -> Option<usize> {
        let left = 2 * at + 1;
        let count = self.0.get(left)?.count;
        let is_right = self.0.get(left + 1).is_some_and(|right| count > right.count);
        Some(left + usize::from(is_right))
    }

    /// Moves an entry down: in the first step past an equal count, too.
    fn sift_down(&mut self, mut at: usize) {
        let count = self.0[at].count;
        let Some(child) = self.smaller_child(at) else { return };
        if self.0[child].count > count {
            return;
        }
        self.0.swap(at, child);
        at = child;
        while let Some(child) = self.smaller_child(at)
            && self.0[child].count < count
        {
            self.0.swap(at, child);
            at = child;
        }
    }

    /// The keys by their counts; equal ones in their order in the heap.
    pub(super) fn list(&self) -> Vec<Listed<'_>> {
        let mut order: Vec<&Entry> = self.0.iter().filter(|entry| entry.count > 0).collect();
        order.sort_by_key(|entry| Reverse(entry.count));
        order.iter().map(|entry| Listed { key: entry.bytes(), count: entry.count }).collect()
    }
}
