//! Detects, in debug builds, raw integers inserted where hashes are expected.
//!
//! All kinds but the fuse filter take positions straight from the bits of a hash. Numbers such as 0, 1, 2 … have no
//! high bits, so all of them fall on the same block, which then answers "maybe" to everything: a filter that is
//! silently wrong for every key. The check costs a few instructions per insert and is therefore done only in debug
//! builds, where such mistakes are made.
//!
//! A hash looks raw if its upper or its lower half is zero, or if it is less than 2^20 from the one before.
//! [`MAX_RAW`] such hashes in a row, each different from the one before, cause a panic. One uniform hash in 2^31 looks
//! raw, so a panic by chance happens once in 2^248 inserts. Sorted hashes are closer to each other: of n, one in 2^44 /
//! n is that close, and n / 2^32 have a zero half; with 10^9 sorted hashes a panic by chance happens once in 10^9 runs.

use std::cell::Cell;

/// Maximum number of consecutive hashes that may look raw.
const MAX_RAW: u32 = 7;

/// Numbers closer than this to the previous one count as counters rather than hashes.
const NEAR: u64 = 1 << 20;

/// The last hash inserted by this thread, and how many in a row look raw.
#[derive(Clone, Copy)]
struct Seen {
    last: u64,
    raw: u32,
}

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen { last: !0, raw: 0 }) };
}

/// Panics, in debug builds, if these and the preceding numbers cannot be hashes. Call it with everything inserted by
/// hash; a repeated hash counts once.
#[inline(always)]
#[track_caller]
pub(crate) fn expect_uniform(hashes: &[u64]) {
    if cfg!(debug_assertions) {
        // A thread that is ending no longer has a record.
        let raw = SEEN.try_with(|seen| {
            let (after, raw) = hashes.iter().fold((seen.get(), None), |(seen, raw), &hash| {
                let after = seen.then(hash);
                (after, raw.or((after.raw > MAX_RAW).then_some(hash)))
            });
            seen.set(if raw.is_some() { Seen { raw: 0, ..after } } else { after });
            raw
        });
        if let Ok(Some(hash)) = raw {
            panic!(
                "{} hashes in a row, the last of them {hash:#x}, look like integers that were not hashed: \
                 insert integers as keys, by `insert` or `insert_keys`, or hash them first, by `hash::mix64`",
                MAX_RAW + 1
            );
        }
    }
}

impl Seen {
    #[inline]
    fn then(self, hash: u64) -> Self {
        let looks_raw = hash >> 32 == 0 || hash << 32 == 0 || hash.abs_diff(self.last) < NEAR;
        let raw = match hash == self.last {
            true => self.raw, // a repeated key says nothing
            false if looks_raw => self.raw + 1,
            false => 0,
        };
        Self { last: hash, raw }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    fn most_raw(hashes: impl IntoIterator<Item = u64>) -> u32 {
        let mut seen = Seen { last: mix64(0), raw: 0 };
        let raw = hashes.into_iter().map(|hash| {
            seen = seen.then(hash);
            seen.raw
        });
        raw.max().unwrap_or(0)
    }

    #[test]
    fn integers_are_noticed_after_a_handful() {
        let times: Vec<u64> = (0..8).map(|i| 1_700_000_000_000_000_000 + 1000 * i).collect();
        let ids: Vec<u64> = (0..8).map(|i| mix64(i) >> 33).collect();
        let halves: Vec<u64> = (0..8).map(|i| mix64(i) << 32).collect();
        assert!(most_raw(0..8) > MAX_RAW);
        assert!(most_raw(times.into_iter().chain([1_700_000_000_000_009_000])) > MAX_RAW);
        assert!(most_raw(ids) > MAX_RAW);
        assert!(most_raw(halves) > MAX_RAW);
    }

    /// One hash in 2^31 looks raw by chance: with probability 0.9995 a million have none, and never two.
    #[test]
    fn uniform_hashes_are_not_noticed_in_any_order_and_as_often_as_they_come() {
        let mut hashes: Vec<u64> = (0..1_000_000).map(mix64).collect();
        assert!(most_raw(hashes.iter().copied()) <= 1);
        hashes.sort_unstable();
        assert!(most_raw(hashes.iter().copied()) <= 2);
        assert!(most_raw(std::iter::repeat_n(3, 1000)) <= 1);
    }
}
