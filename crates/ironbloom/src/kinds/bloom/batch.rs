//! Batch lookups in filters that read many cache lines per key: in two steps.
//!
//! ```text
//! all hashes  ── the first three probes ──►  survivors  ── the other probes ──►  found
//! ```
//!
//! Each step prefetches only its own lines, and only the keys that survive the first take the second. One absent key in
//! eight does, so absent keys cost three or four lines instead of all.

use std::ops::Range;

use crate::kernel::for_each_ahead;
use crate::kinds::bloom::BloomParams;

/// Number of hashes per step: few enough to keep on the stack and in cache, many enough that the pause between steps
/// does not matter.
const BATCH: usize = 512;

/// Keys that may still be there: their hashes, and their places in the batch.
struct Survivors {
    hashes: [u64; BATCH],
    places: [u16; BATCH],
    len: usize,
}

impl BloomParams {
    /// [`contains`](Self::contains) for many hashes; `touch` prefetches the line of a position, which is pointless for
    /// a filter in the cache.
    #[inline(always)]
    pub(crate) fn contains_all(
        &self,
        hashes: &[u64],
        found: &mut [bool],
        touch: impl Fn(u64),
        bit: impl Fn(u64) -> u64,
    ) {
        for (hashes, found) in hashes.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let len = hashes.len().min(found.len());
            let mut survivors = Survivors::all(&hashes[..len]);
            for probes in self.steps() {
                self.step(&mut survivors, probes, &touch, &bit);
            }
            found[..len].fill(false);
            for &place in &survivors.places[..survivors.len] {
                found[usize::from(place)] = true;
            }
        }
    }

    /// Keeps those for which all these probes find a one.
    #[inline(always)]
    fn step(
        &self,
        survivors: &mut Survivors,
        probes: Range<u32>,
        touch: impl Fn(u64),
        bit: impl Fn(u64) -> u64,
    ) {
        let asked = survivors.hashes;
        let len = std::mem::take(&mut survivors.len);
        for_each_ahead(
            survivors,
            &asked[..len],
            |_, hash| self.positions(hash, probes.clone(), &touch),
            |survivors, i, hash, ()| {
                survivors.keep_if(self.are_set(hash, probes.clone(), &bit), hash, i);
            },
        );
    }
}

impl Survivors {
    fn all(hashes: &[u64]) -> Self {
        let mut all =
            Self { hashes: [0; BATCH], places: std::array::from_fn(|i| i as u16), len: 0 };
        all.hashes[..hashes.len()].copy_from_slice(hashes);
        all.len = hashes.len();
        all
    }

    /// Keeps the i-th of the previous survivors if it passed. It is always written, and counted only if kept: no branch
    /// to mispredict. It never overwrites one that is still to come.
    #[inline(always)]
    fn keep_if(&mut self, passed: bool, hash: u64, i: usize) {
        self.hashes[self.len] = hash;
        self.places[self.len] = self.places[i];
        self.len += usize::from(passed);
    }
}

#[cfg(test)]
mod tests {
    use crate::hash::mix64;
    use crate::{Bloom, BloomParams, HashFn, Scheme};

    /// Half full, so that some hashes drop out at each step, and small only to save time.
    #[test]
    fn steps_find_what_single_lookups_find() {
        let bits = 1 << 16;
        for probes in [1, 2, 3, 4, 5, 7, 20, 64] {
            for scheme in [Scheme::Remix, Scheme::Enhanced] {
                let params = BloomParams::for_bits(bits, probes).unwrap();
                let params = params.with_scheme(scheme).unwrap();
                let mut filter = Bloom::new(params, HashFn::External { id: 0 }).unwrap();
                let keys = params.capacity();
                (0..keys).for_each(|key| {
                    filter.insert_hash(mix64(key));
                });
                let asked: Vec<u64> = (0..2000).map(|i| mix64(i * keys / 1000)).collect();
                for len in [0, 1, 31, 511, 512, 513, 2000] {
                    let mut found = vec![len % 2 == 0; len];
                    let bit = |at: u64| filter.words()[(at / 64) as usize] >> (at % 64);
                    params.contains_all(&asked[..len], &mut found, |_| {}, bit);
                    let single = asked[..len].iter().map(|&hash| filter.contains_hash(hash));
                    assert!(single.eq(found.iter().copied()), "{probes} probes, {len} hashes");
                }
            }
        }
    }
}
