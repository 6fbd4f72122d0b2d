//! The probes of a plain Bloom filter: each anywhere in the bits, each derived from the last by one multiplication.
//!
//! ```text
//! x0 = hash        position i = floor(xi · m / 2^64)        x(i+1) = xi · C mod 2^64
//! ```
//!
//! `probe` defines this (`Scheme::Remix`) among other sequences; here it is the only one, so there is no choice to make
//! between probes, and positions are inside the array by construction, so it is checked once rather than for every
//! probe.
//!
//! In the cache a lookup makes all probes at once: a branch between two of them is often mispredicted if present and
//! absent keys are mixed, which costs as much as all the probes. Beyond the cache it takes two steps, since fetching
//! unneeded cache lines also costs time; seven in eight absent keys need no more than three.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::hash::{fastrange, remix};

/// Probes in the first step of a lookup: one absent key in eight survives them.
pub(crate) const FIRST_PROBES: u32 = 3;

/// Filters up to this size, 16 MiB, make all probes at once. Nanoseconds per lookup at 1 % for keys of which all, half
/// or none are present (AMD EPYC Zen 3, 32 MiB of cache, 2026-11-16):
///
/// ```text
///               10^6 keys, 1 MiB       10^7, 11 MiB           10^8, 114 MiB
/// at once       14.9   14.8   15.0     21.1   21.5   19.9     86.7   81.5   75.4
/// in two steps  15.8   20.9   11.4     22.6   28.2   17.0     79.6   90.9   58.2
/// fastbloom     15.8   20.5   21.7     38.2   34.1   30.1     104    93     72
/// ```
const AT_ONCE_BITS: u64 = 16 << 23;

/// The shape of a plain filter.
#[derive(Clone, Copy)]
pub(crate) struct Flat {
    /// Number of bits, m.
    pub(crate) bits: u64,
    /// Number of probes, at least [`FIRST_PROBES`].
    pub(crate) probes: u32,
}

/// Words to read: owned by one thread, or written to by other threads.
pub(crate) trait Load {
    /// Reads the current word.
    fn load(&self) -> u64;
}

impl Load for u64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        *self
    }
}

impl Load for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }
}

impl Flat {
    /// Returns true if all bits of the hash are set.
    ///
    /// # Panics
    ///
    /// If there are fewer than `bits` bits.
    #[inline(always)]
    pub(crate) fn contains<W: Load>(self, words: &[W], hash: u64) -> bool {
        self.check(words.len());
        if self.bits <= AT_ONCE_BITS {
            return self.contains_at_once(words, hash);
        }
        let first = self.probe(words, 0..FIRST_PROBES, (hash, 1));
        first.1 == 1 && self.probe(words, FIRST_PROBES..self.probes, first).1 == 1
    }

    /// [`contains`](Self::contains) without a branch, for `words` that have been [checked](Self::check).
    #[inline(always)]
    fn contains_at_once<W: Load>(self, words: &[W], hash: u64) -> bool {
        self.probe(words, 0..self.probes, (hash, 1)).1 == 1
    }

    /// Makes these probes in `words` that have been [checked](Self::check). Takes and returns x and whether all bits so
    /// far were ones.
    #[inline(always)]
    fn probe<W: Load>(self, words: &[W], probes: Range<u32>, before: (u64, u64)) -> (u64, u64) {
        probes.fold(before, |(x, all), _| {
            let (word, bit) = self.address(x);
            // SAFETY: there are `bits` bits, and `address` stays below them.
            let word = unsafe { words.get_unchecked(word) }.load();
            (remix(x), all & word >> bit)
        })
    }

    /// Sets all bits of the hash. Returns true if some were not set.
    ///
    /// # Panics
    ///
    /// If there are fewer than `bits` bits.
    #[inline(always)]
    pub(crate) fn insert(self, words: &mut [u64], hash: u64) -> bool {
        self.check(words.len());
        let (mut x, mut all) = (hash, 1);
        for _ in 0..self.probes {
            let (word, bit) = self.address(x);
            // SAFETY: there are `bits` bits, and `address` stays below them.
            let word = unsafe { words.get_unchecked_mut(word) };
            all &= *word >> bit;
            *word |= 1 << bit;
            x = remix(x);
        }
        all & 1 == 0
    }

    /// Sets all bits of the hash in words that other threads write to. Returns true if some were not set.
    ///
    /// Nothing after an atomic OR can start before it is done, so the cache lines would be fetched one after the other:
    /// reading all of them first fetches them together. It also shows which bits are new, and an OR whose result is
    /// unused is faster.
    ///
    /// # Panics
    ///
    /// If there are fewer than `bits` bits.
    #[inline(always)]
    pub(crate) fn insert_shared(self, words: &[AtomicU64], hash: u64) -> bool {
        self.check(words.len());
        if self.contains_at_once(words, hash) {
            return false;
        }
        (0..self.probes).fold(hash, |x, _| {
            let (word, bit) = self.address(x);
            // SAFETY: there are `bits` bits, and `address` stays below them.
            unsafe { words.get_unchecked(word) }.fetch_or(1 << bit, Ordering::Relaxed);
            remix(x)
        });
        true
    }

    /// The word of a probe and the bit in it, below `bits`.
    #[inline(always)]
    fn address(self, x: u64) -> (usize, u64) {
        let position = fastrange(x, self.bits);
        ((position / 64) as usize, position % 64)
    }

    /// Panics unless `words` has `bits` bits, and at least one. Does not depend on the hash: a loop checks once.
    #[inline(always)]
    fn check(self, words: usize) {
        assert!(self.bits.wrapping_sub(1) / 64 < words as u64, "bits out of range");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Scheme;
    use crate::hash::mix64;

    /// The positions that `probe` defines.
    fn positions(flat: Flat, hash: u64) -> Vec<usize> {
        let mut all = Vec::new();
        let visit = |(), _, position| all.push(position as usize);
        Scheme::Remix.fold(hash, 0..flat.probes, flat.bits, (), visit);
        all
    }

    /// Small filters and one beyond [`AT_ONCE_BITS`], against a set of positions.
    #[test]
    fn inserts_set_and_lookups_see_the_positions_that_probe_defines() {
        for (bits, probes, keys) in
            [(1, 3, 2), (64, 3, 5), (1000, 7, 100), (1000, 64, 10), (AT_ONCE_BITS + 7, 7, 200)]
        {
            let flat = Flat { bits, probes };
            let mut words = vec![0u64; bits.div_ceil(64) as usize];
            let shared: Vec<AtomicU64> = words.iter().map(|_| AtomicU64::new(0)).collect();
            let mut model = std::collections::HashSet::new();
            for hash in (0..keys).map(mix64) {
                let mut new = false;
                for position in positions(flat, hash) {
                    new |= model.insert(position);
                }
                assert_eq!(flat.insert(&mut words, hash), new);
                assert_eq!(flat.insert_shared(&shared, hash), new);
            }
            let ones: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
            assert_eq!(ones as usize, model.len(), "{bits} bits");
            for hash in (0..20_000).map(mix64) {
                let found = positions(flat, hash).iter().all(|position| model.contains(position));
                assert_eq!(flat.contains(&words, hash), found, "{bits} bits, {probes} probes");
                assert_eq!(flat.contains(&shared, hash), found, "{bits} bits, {probes} probes");
            }
        }
    }

    #[test]
    fn too_few_words_are_a_panic_and_not_a_read() {
        let refused = |bits, words: usize| {
            let look = || Flat { bits, probes: 3 }.contains(&vec![0u64; words], mix64(1));
            std::panic::catch_unwind(look).is_err()
        };
        assert!(refused(65, 1) && refused(129, 2) && refused(0, 1) && refused(u64::MAX, 3));
        assert!(!refused(64, 1) && !refused(128, 2) && !refused(1, 1));
    }
}
