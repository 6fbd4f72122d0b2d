//! From one hash to k positions: the probe sequences of a Bloom filter.
//!
//! Ironbloom uses [`Scheme::Remix`]. The others are from the literature and from existing code. They are kept to
//! demonstrate the difference, recorded in the file, and never chosen silently. Rates relative to theory (20 bits/key,
//! k = 14, n = 1,000; `tests/measured_rate.rs` pins them):
//!
//! | scheme | positions | rate / theory |
//! |---|---|---|
//! | `Remix` | x ← x·C mod 2^64, high bits | 1.0 |
//! | `Independent` | k seeded hashes of the key's hash | 1.0 |
//! | `Enhanced` | x ← x + y, y ← y + i, mod m | 1.0 |
//! | `Double` | h1 + i·h2 mod m \[KM08\] | **1.9** |
//! | `LevelDb` | 32-bit h + i·rotr(h, 17) mod m | **1.3**, and worse as n grows |

use std::ops::Range;

use crate::hash::{fastrange, mix64, remix};

/// How the k positions of a key follow from its hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// One multiplication per probe, position from the high bits. The default.
    #[default]
    Remix,
    /// k seeded hashes: the textbook assumption, and the slowest.
    Independent,
    /// Enhanced double hashing \[DM04\]: the increment itself grows.
    Enhanced,
    /// Plain double hashing \[KM08\]. Misses the rate in small precise filters: an increment of zero, or one
    /// that shares a factor with m, visits few positions.
    Double,
    /// LevelDB's double hashing over 32 bits. Misses the rate everywhere and cannot address more than 2^32 bits.
    LevelDb,
}

impl Scheme {
    /// All schemes, in the order of their numbers in files.
    pub const ALL: [Self; 5] =
        [Self::Remix, Self::Independent, Self::Enhanced, Self::Double, Self::LevelDb];

    /// Its name on the command line and in reports.
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

    /// Folds the positions of these probes of a hash, each in `0..range`: `visit(so_far, i, position)` for probe i.
    ///
    /// The accumulated state is passed from call to call by value: a variable that `visit` changed by reference would
    /// also be visible to `fold_others`, and so would live in memory instead of a register.
    #[inline(always)]
    pub(crate) fn fold<T>(
        self,
        hash: u64,
        probes: Range<u32>,
        range: u64,
        first: T,
        mut visit: impl FnMut(T, u32, u64) -> T,
    ) -> T {
        if self != Self::Remix {
            return self.fold_others(hash, probes, range, first, visit);
        }
        let mut x = (0..probes.start).fold(hash, |x, _| remix(x));
        probes.fold(first, |so_far, i| {
            let position = fastrange(x, range);
            x = remix(x);
            visit(so_far, i, position)
        })
    }

    /// [`fold`](Self::fold) for the schemes kept for comparison.
    #[cold]
    fn fold_others<T>(
        self,
        hash: u64,
        probes: Range<u32>,
        range: u64,
        first: T,
        mut visit: impl FnMut(T, u32, u64) -> T,
    ) -> T {
        let (mut x, mut y) = match self {
            Self::Remix | Self::Independent => (hash, 0),
            Self::Enhanced | Self::Double => (hash % range, mix64(hash) % range),
            Self::LevelDb => (u64::from(hash as u32), u64::from((hash as u32).rotate_right(17))),
        };
        let mut next = |i: u32| match self {
            Self::Remix => {
                let position = fastrange(x, range);
                x = remix(x);
                position
            }
            Self::Independent => {
                let bytes = x.to_le_bytes();
                fastrange(xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, u64::from(i) + 1), range)
            }
            Self::Enhanced => {
                let position = x;
                x = add_modulo(x, y, range);
                y = add_modulo(y, u64::from(i + 1) % range, range);
                position
            }
            Self::Double => {
                let position = x;
                x = add_modulo(x, y, range);
                position
            }
            Self::LevelDb => {
                let position = x % range;
                x = u64::from((x as u32).wrapping_add(y as u32));
                position
            }
        };
        (0..probes.start).for_each(|i| {
            next(i);
        });
        probes.fold(first, |so_far, i| visit(so_far, i, next(i)))
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
        scheme.fold(hash, 0..probes, range, (), |(), i, position| {
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
            scheme.fold(mix64(1), 3..7, 1000, (), |(), i, position| part.push((i, position)));
            assert_eq!(part, (3..7).map(|i| (i, all[i as usize])).collect::<Vec<_>>());
        }
    }

    /// Positions are part of the file format: these numbers must never change.
    #[test]
    fn positions_are_pinned() {
        let hash = 0x0123_4567_89ab_cdef;
        let of = |scheme| positions(scheme, hash, 4, 1_000_003);
        assert_eq!(of(Scheme::Remix)[0], 4_444);
        assert_eq!(of(Scheme::LevelDb)[0], 0x89ab_cdef % 1_000_003);
        assert_eq!(of(Scheme::Double)[0], hash % 1_000_003);
    }
}
