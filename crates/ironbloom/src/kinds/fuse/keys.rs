//! The keys of a filter under construction: its hashes mixed with the seed, in parts.
//!
//! ```text
//! hashes    7a··  01··  f3··  7b··  02··  …
//! keys     |01··  02··|  …  |7a··  7b··|  …  |f3··|        part = the highest bits, in any order inside
//! ```
//!
//! The cells of a part are in the same few segments, which then stay in the cache. A full sort would take four times as
//! long, and its only use is to find duplicates, which become adjacent. A duplicate key also shows up by never being
//! peeled, so all parts are sorted only if one key in thousands is a duplicate, as judged by the first part, or if
//! peeling has failed once.

use super::mix;
use crate::error::ParamError;
use crate::kernel::Words;

/// At most 2^10 parts are written to at a time: their ends stay in the cache, and 10^8 keys have 860 segments.
const MAX_PART_BITS: u32 = 10;

/// Smaller parts would gain nothing: their cells fit the cache.
const PART_KEYS: usize = 4096;

pub(super) struct Keys {
    words: Words,
    len: usize,
    /// End of each part.
    ends: Vec<usize>,
    /// Logarithm of the number of parts.
    part_bits: u32,
    /// True if every key occurs only once.
    distinct: bool,
}

impl Keys {
    /// Allocates room for this many hashes.
    pub(super) fn new(hashes: usize) -> Result<Self, ParamError> {
        let words = Words::zeroed((hashes as u64).saturating_mul(64))?;
        let part_bits = (hashes / PART_KEYS).checked_ilog2().unwrap_or(0).min(MAX_PART_BITS);
        Ok(Self { words, len: 0, ends: Vec::new(), part_bits, distinct: false })
    }

    /// Loads the hashes with a different seed.
    pub(super) fn fill(&mut self, hashes: &[u64], seed: u64) {
        let part = |key: u64| ((key >> 1) >> (63 - self.part_bits)) as usize;
        self.ends.clear();
        self.ends.resize(1 << self.part_bits, 0);
        for hash in hashes {
            self.ends[part(mix(*hash, seed))] += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            start += std::mem::replace(end, start);
        }
        // The ends are starts at this point; each becomes an end as its part fills.
        let keys = self.words.to_mut();
        for hash in hashes {
            let key = mix(*hash, seed);
            let end = &mut self.ends[part(key)];
            keys[*end] = key;
            *end += 1;
        }
        self.len = hashes.len();
        self.distinct |= self.repeat_in_the_first_part();
        if self.distinct {
            self.sort();
            self.dedup();
        }
    }

    /// The first part is a random sample of all keys, since they are mixed.
    fn repeat_in_the_first_part(&mut self) -> bool {
        let part = &mut self.words.to_mut()[..self.ends[0]];
        part.sort_unstable();
        part.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Counts duplicate hashes once from now on. Returns true if that changes the keys of this seed.
    pub(super) fn make_distinct(&mut self, hashes: &[u64], seed: u64) -> bool {
        if self.distinct {
            return false;
        }
        self.distinct = true;
        self.fill(hashes, seed);
        self.len < hashes.len()
    }

    fn sort(&mut self) {
        let keys = self.words.to_mut();
        let mut start = 0;
        for &end in &self.ends {
            keys[start..end].sort_unstable();
            start = end;
        }
    }

    /// Drops duplicates from sorted keys. The ends of the parts are invalid afterwards.
    fn dedup(&mut self) {
        let keys = self.words.to_mut();
        let mut kept = 0;
        for i in 0..self.len {
            if i == 0 || keys[i] != keys[kept - 1] {
                keys[kept] = keys[i];
                kept += 1;
            }
        }
        self.len = kept;
    }

    pub(super) fn as_slice(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// Returns the keys for peeling, which reorders them.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words.to_mut()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    const SEED: u64 = 5;

    fn filled(hashes: &[u64], distinct: bool) -> Keys {
        let mut keys = Keys::new(hashes.len()).unwrap();
        keys.distinct = distinct;
        keys.fill(hashes, SEED);
        keys
    }

    /// Random, sorted, all equal, all in the last parts, and with repetitions.
    fn inputs() -> Vec<Vec<u64>> {
        let mut inputs = Vec::new();
        for len in [0, 1, 2, 100, 8191, 8192, 20_000, 100_000] {
            let random: Vec<u64> = (0..len).map(mix64).collect();
            let mut sorted = random.clone();
            sorted.sort_by_key(|hash| mix(*hash, SEED));
            let one_end: Vec<u64> = sorted.iter().skip(len as usize / 2).copied().collect();
            let repeated = random.iter().chain(&random[..len as usize / 3]).copied().collect();
            inputs.extend([random, sorted, vec![7; len as usize], one_end, repeated]);
        }
        inputs
    }

    #[test]
    fn distinct_keys_are_those_of_a_plain_sort() {
        for hashes in inputs() {
            let mut expected: Vec<u64> = hashes.iter().map(|hash| mix(*hash, SEED)).collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(filled(&hashes, true).as_slice(), expected);
        }
    }

    #[test]
    fn parts_have_all_keys_and_are_in_order() {
        for hashes in inputs() {
            let keys = filled(&hashes, false);
            let part = |key: &u64| (key >> 1) >> (63 - keys.part_bits);
            assert!(keys.as_slice().is_sorted_by_key(part));
            if !keys.distinct {
                let mut all = keys.as_slice().to_vec();
                let mut expected: Vec<u64> = hashes.iter().map(|hash| mix(*hash, SEED)).collect();
                all.sort_unstable();
                expected.sort_unstable();
                assert_eq!(all, expected);
            }
        }
    }

    #[test]
    fn many_repeated_keys_are_seen_at_once_and_a_single_one_when_asked() {
        let mut hashes: Vec<u64> = (0..100_000).map(mix64).collect();
        assert!(!filled(&hashes, false).distinct);
        hashes.push(hashes[hashes.len() - 1]);
        let mut keys = filled(&hashes, false);
        assert!(!keys.distinct && keys.len == 100_001);
        assert!(keys.make_distinct(&hashes, SEED));
        assert!(!keys.make_distinct(&hashes, SEED));
        assert_eq!(keys.len, 100_000);
        hashes.extend_from_within(..1000);
        assert_eq!(filled(&hashes, false).len, 100_000);
    }
}
