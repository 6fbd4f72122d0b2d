//! From one hash to k positions: the probe sequences of a Bloom filter.
//!
//! [`Scheme::Remix`] is what Ironbloom uses. The others are those of the literature and of the seeds, kept
//! because the difference must be demonstrable, recorded in the file, and never chosen silently. Rates
//! relative to theory (20 bits/key, k = 14, n = 1,000; `tests/measured_rate.rs` pins them):
//!
//! | scheme | positions | rate / theory |
//! |---|---|---|
//! | `Remix` | x ← x·C mod 2^64, high bits | 1.0 |
//! | `Independent` | k seeded hashes of the key's hash | 1.0 |
//! | `Enhanced` | x ← x + y, y ← y + i, mod m | 1.0 |
//! | `Double` | h1 + i·h2 mod m \[KM08\] | **1.9** |
//! | `LevelDb` | 32-bit h + i·rotr(h, 17) mod m (seed 003) | **1.3**, and worse as n grows |

use std::ops::Range;

use crate::hash::{fastrange, mix64, remix};

/// How the k positions of a key follow from its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// One multiplication per probe, position from the high bits. The default.
    #[default]
    Remix,
    /// k seeded hashes: the textbook's assumption, and the slowest.
    Independent,
    /// Enhanced double hashing \[DM04\]: the increment itself grows.
    Enhanced,
    /// Plain double hashing \[KM08\]. Misses the rate in small precise filters: an increment of zero, or one
    /// that shares a factor with m, visits few positions.
    Double,
    /// LevelDB's double hashing over 32 bits, seed 003's "optimisation". Misses the rate everywhere and cannot
    /// address more than 2^32 bits.
    LevelDb,
}

impl Scheme {
    /// All schemes, in the order of their numbers in files.
    pub const ALL: [Self; 5] =
        [Self::Remix, Self::Independent, Self::Enhanced, Self::Double, Self::LevelDb];

    /// The word used for it on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Remix => "remix",
            Self::Independent => "independent",
            Self::Enhanced => "enhanced",
            Self::Double => "double",
            Self::LevelDb => "leveldb",
        }
    }

    /// The largest range the scheme can address.
    pub(crate) fn max_range(self) -> u64 {
        if self == Self::LevelDb { 1 << 32 } else { u64::MAX }
    }

    /// Calls `visit(i, position)` for each probe i of `probes`, position in `0..range`.
    #[inline(always)]
    pub(crate) fn positions(
        self,
        hash: u64,
        probes: Range<u32>,
        range: u64,
        mut visit: impl FnMut(u32, u64),
    ) {
        if self == Self::Remix {
            let mut x = (0..probes.start).fold(hash, |x, _| remix(x));
            for i in probes {
                visit(i, fastrange(x, range));
                x = remix(x);
            }
        } else {
            self.others(hash, probes.end, range, |i, position| {
                if i >= probes.start {
                    visit(i, position);
                }
            });
        }
    }

    /// Probes 0 to `end` of the schemes that are there for comparison.
    #[cold]
    fn others(self, hash: u64, end: u32, range: u64, mut visit: impl FnMut(u32, u64)) {
        match self {
            Self::Remix => unreachable!("not one of the others"),
            Self::Independent => {
                for i in 0..end {
                    let bytes = hash.to_le_bytes();
                    let seeded = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, u64::from(i) + 1);
                    visit(i, fastrange(seeded, range));
                }
            }
            Self::Enhanced => {
                let (mut x, mut y) = (hash % range, mix64(hash) % range);
                for i in 0..end {
                    visit(i, x);
                    x = add_modulo(x, y, range);
                    y = add_modulo(y, u64::from(i + 1) % range, range);
                }
            }
            Self::Double => {
                let (mut x, y) = (hash % range, mix64(hash) % range);
                for i in 0..end {
                    visit(i, x);
                    x = add_modulo(x, y, range);
                }
            }
            Self::LevelDb => {
                let mut x = hash as u32;
                let delta = x.rotate_right(17);
                for i in 0..end {
                    visit(i, u64::from(x) % range);
                    x = x.wrapping_add(delta);
                }
            }
        }
    }
}

#[inline]
fn add_modulo(a: u64, b: u64, range: u64) -> u64 {
    ((u128::from(a) + u128::from(b)) % u128::from(range)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(scheme: Scheme, hash: u64, probes: u32, range: u64) -> Vec<u64> {
        let mut all = Vec::new();
        scheme.positions(hash, 0..probes, range, |i, position| {
            assert_eq!(i as usize, all.len());
            all.push(position);
        });
        all
    }

    #[test]
    fn every_scheme_stays_in_range_and_repeats_itself() {
        for scheme in Scheme::ALL {
            for range in [1, 2, 63, 1_000_003, 1 << 32] {
                for key in 0..200 {
                    let first = positions(scheme, mix64(key), 14, range);
                    assert_eq!(first.len(), 14);
                    assert!(first.iter().all(|&p| p < range), "{scheme:?} {range} {first:?}");
                    assert_eq!(first, positions(scheme, mix64(key), 14, range));
                }
            }
        }
    }

    #[test]
    fn a_part_of_the_probes_is_a_part_of_the_positions() {
        for scheme in Scheme::ALL {
            let all = positions(scheme, mix64(1), 10, 1000);
            let mut part = Vec::new();
            scheme.positions(mix64(1), 3..7, 1000, |i, position| part.push((i, position)));
            assert_eq!(part, (3..7).map(|i| (i, all[i as usize])).collect::<Vec<_>>());
        }
    }

    /// Positions are part of the file format: these numbers may never change.
    #[test]
    fn positions_are_pinned() {
        let hash = 0x0123_4567_89ab_cdef;
        let of = |scheme| positions(scheme, hash, 4, 1_000_003);
        assert_eq!(of(Scheme::Remix)[0], 4_444);
        assert_eq!(of(Scheme::LevelDb)[0], 0x89ab_cdef % 1_000_003);
        assert_eq!(of(Scheme::Double)[0], hash % 1_000_003);
    }
}
