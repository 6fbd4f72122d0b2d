//! One logical filter in several parts, each possibly on its own machine: finds the part that has a key.
//!
//! ```text
//! key ──hash──► h ──┬─ mix64, high bits ──► shard s of n        where to ask
//!                   └─ all bits ──────────► positions inside    what to ask
//! ```
//!
//! The shard must not be taken from h directly: filters take a block or a bucket from its high bits, so the keys of one
//! shard would lie in one n-th of its blocks, and the other bits are used as well. A remix of all bits spreads the keys
//! of a shard evenly over their filter, so a shard needs no more bits than any filter of its keys.
//!
//! The rule is a contract: parts are filled by one program and queried by another, perhaps in another language
//! (docs/redis.md). It does not change.

use crate::hash::{fastrange, mix64};

/// Returns the shard, out of `shards`, of a key with this hash: `fastrange(mix64(hash), shards)`.
///
/// ```
/// use ironbloom::{BlockedBloom, HashFn, route::shard_of};
///
/// let hash_fn = HashFn::default();
/// let mut shards = vec![BlockedBloom::with_rate(1000, 0.01)?; 4];
/// for key in ["alice", "bob", "carol"] {
///     let hash = hash_fn.hash(key);
///     shards[shard_of(hash, 4) as usize].insert_hash(hash);
/// }
/// let hash = hash_fn.hash("alice");
/// assert!(shards[shard_of(hash, 4) as usize].contains_hash(hash));
/// # Ok::<(), ironbloom::ParamError>(())
/// ```
///
/// # Panics
///
/// If there are no shards.
#[inline]
pub fn shard_of(hash: u64, shards: u32) -> u32 {
    assert!(shards > 0, "a filter has at least one shard");
    fastrange(mix64(hash), u64::from(shards)) as u32
}

/// Number of keys that each of `shards` shards must have room for, if `capacity` keys are distributed at random.
///
/// The mean plus six standard deviations of the binomial distribution: fewer than one filter in 10^8 has a shard above
/// it, for up to ten shards. For 10 M keys in 8 shards it is half a percent above the mean.
///
/// # Panics
///
/// If there are no shards.
pub fn shard_capacity(capacity: u64, shards: u32) -> u64 {
    assert!(shards > 0, "a filter has at least one shard");
    let share = 1.0 / f64::from(shards);
    let (mean, variance) = (capacity as f64 * share, capacity as f64 * share * (1.0 - share));
    ((mean + 6.0 * variance.sqrt()).ceil() as u64).clamp(1, capacity.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashFn;
    use crate::kinds::blocked::{BlockedBloom, BlockedBloomParams};

    fn hash(i: u64) -> u64 {
        HashFn::default().hash(i.to_le_bytes())
    }

    /// Pinned forever: a change here sends keys to servers that do not have them.
    #[test]
    fn the_shard_of_a_key_never_changes() {
        let shards = |n: u32| {
            ["alice", "bob", "carol", ""].map(|key| shard_of(HashFn::default().hash(key), n))
        };
        assert_eq!(shards(1), [0; 4]);
        // Computed in Python, with its `xxhash` and the formula of docs/redis.md.
        assert_eq!((shards(8), shards(1000)), ([4, 5, 2, 2], [539, 663, 371, 350]));
        assert_eq!((shard_of(0, 8), shard_of(u64::MAX, 8)), (7, 7));
    }

    #[test]
    fn keys_spread_evenly_over_any_number_of_shards() {
        for shards in [2, 3, 7, 16] {
            let mut counts = vec![0u32; shards as usize];
            (0..120_000).for_each(|i| counts[shard_of(hash(i), shards) as usize] += 1);
            let mean = 120_000.0 / f64::from(shards);
            // Six sigma of a binomial count, which is below the root of its mean.
            let even =
                counts.iter().all(|&count| (f64::from(count) - mean).abs() < 6.0 * mean.sqrt());
            assert!(even, "{shards}: {counts:?}");
        }
    }

    #[test]
    fn the_keys_of_a_shard_lie_evenly_in_its_filter() {
        const CELLS: u64 = 16;
        for shards in [2, 4, 8, 16] {
            let mine: Vec<u64> =
                (0..400_000).map(hash).filter(|&h| shard_of(h, shards) == 1).collect();
            // The bits that select blocks, buckets and positions: high and low bits, and those of a remix.
            let cells: [fn(u64) -> u64; 3] = [
                |h| fastrange(h, CELLS),
                |h| h & (CELLS - 1),
                |h| fastrange(crate::hash::remix(h), CELLS),
            ];
            for (which, cell) in cells.into_iter().enumerate() {
                let mut counts = [0u32; CELLS as usize];
                mine.iter().for_each(|&h| counts[cell(h) as usize] += 1);
                let mean = mine.len() as f64 / CELLS as f64;
                let even = counts.iter().all(|&c| (f64::from(c) - mean).abs() < 6.0 * mean.sqrt());
                assert!(even, "{shards} shards, cell {which}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_filter_in_shards_keeps_the_rate_of_one() {
        let (keys, shards, rate) = (80_000u64, 8, 0.01);
        let params = BlockedBloomParams::for_rate(shard_capacity(keys, shards), rate).unwrap();
        let empty = BlockedBloom::new(params, HashFn::default()).unwrap();
        let mut parts = vec![empty; shards as usize];
        for i in 0..keys {
            parts[shard_of(hash(i), shards) as usize].insert_hash(hash(i));
        }
        let found = |i: u64| parts[shard_of(hash(i), shards) as usize].contains_hash(hash(i));
        assert!((0..keys).all(found));
        assert!(parts.iter().all(|part| !part.is_over_capacity()));
        let probes = 200_000;
        let wrong = (keys..keys + probes).filter(|&i| found(i)).count() as f64;
        // At most 2000 expected, plus six sigma; at least two thirds of that: the spare room for six sigma of keys is
        // small.
        assert!((1333.0..2000.0 + 6.0 * 2000f64.sqrt()).contains(&wrong), "{wrong}");
    }

    #[test]
    fn shards_have_room_for_chance_and_no_more_than_all_keys() {
        assert_eq!(shard_capacity(10_000_000, 1), 10_000_000);
        assert_eq!(shard_capacity(10_000_000, 8), 1_256_275);
        assert_eq!((shard_capacity(0, 4), shard_capacity(1, 4), shard_capacity(3, 4)), (1, 1, 3));
    }
}
