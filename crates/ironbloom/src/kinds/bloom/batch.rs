//! Batch lookups: see [`steps`](crate::kinds::steps).

use crate::kinds::bloom::BloomParams;
use crate::kinds::steps::contains_in_steps;

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
        contains_in_steps(
            hashes,
            found,
            self.probes,
            |hash, probes| self.positions(hash, probes, &touch),
            |hash, probes, ()| self.are_set(hash, probes, &bit),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::hash::mix64;
    use crate::{Bloom, BloomParams, HashFn, Scheme};

    /// Half full, so that some hashes drop out at each step; small only to save time.
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
