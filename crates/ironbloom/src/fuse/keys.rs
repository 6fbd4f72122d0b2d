//! The keys of a filter to be built: its hashes mixed with the seed, in parts.
//!
//! ```text
//! hashes    7a··  01··  f3··  7b··  02··  …
//! keys     |01··  02··|  …  |7a··  7b··|  …  |f3··|        part = the highest bits, in any order inside
//! ```
//!
//! The cells of a part are in the same few segments, which then stay in the cache. Full order would take four times as
//! long and change nothing: what the cells know of their keys is a sum. Only if a hash may be there twice are the parts
//! sorted, and a repeated one stands beside itself.

use super::mix;
use crate::error::ParamError;
use crate::kernel::Words;

/// At most 2^10 parts are written to at a time: their ends stay in the cache, and 10^8 keys have 860 segments.
const MAX_PART_BITS: u32 = 10;

/// Parts of fewer keys would gain nothing: their cells fit the cache.
const PART_KEYS: usize = 4096;

pub(super) struct Keys {
    words: Words,
    len: usize,
    /// Where each part ends.
    ends: Vec<usize>,
    /// Logarithm of the number of parts.
    part_bits: u32,
    /// Is every key here once?
    distinct: bool,
}

impl Keys {
    /// Room for so many hashes.
    pub(super) fn new(hashes: usize) -> Result<Self, ParamError> {
        let words = Words::zeroed((hashes as u64).saturating_mul(64))?;
        let part_bits = (hashes / PART_KEYS).checked_ilog2().unwrap_or(0).min(MAX_PART_BITS);
        Ok(Self { words, len: 0, ends: Vec::new(), part_bits, distinct: false })
    }

    /// Takes up the hashes under another seed.
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
        // The ends are starts here, and each becomes an end as its part fills.
        let keys = self.words.to_mut();
        for hash in hashes {
            let key = mix(*hash, seed);
            let end = &mut self.ends[part(key)];
            keys[*end] = key;
            *end += 1;
        }
        self.len = hashes.len();
        if self.distinct {
            self.sort();
            self.dedup();
        }
    }

    /// From now on a hash given twice counts once. True if that changes the keys of this seed.
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

    /// Drops the repeated of sorted keys. The ends of the parts are void then.
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

    /// For peeling, which brings them into another order.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words.to_mut()[..self.len]
    }
}
