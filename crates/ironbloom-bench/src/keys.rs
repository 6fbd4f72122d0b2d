//! The keys: key `i` is a function of `i`, so no set of keys is ever held in memory whole.
//!
//! ```text
//! index   0 .. n                present
//!         2^48 ..               absent: a new stretch for each round and each share of present keys
//! key     u64:                  mix64(index ^ salt)
//!         string:               one of four paths, then the same number in 13 letters and digits: 28 to 31 bytes
//! ```
//!
//! `mix64` is a bijection and the letters spell all 64 bits, so two indices never share a key. Lookups ask for indices
//! drawn at random: neither the caches nor the branch predictor can predict what comes next.

use std::fmt;
use std::ops::Range;

use ironbloom::hash::{fastrange, mix64};

/// Indices from here on are never inserted.
const ABSENT: u64 = 1 << 48;
/// Absent indices set aside for each round and share; also the maximum number of queries per turn.
const STRETCH: u64 = 1 << 26;
const SALT: u64 = 0x6972_6f6e_626c_6f6d;
const PATHS: [&[u8]; 4] =
    [b"example.org/kt/", b"example.org/kit/", b"example.org/item/", b"example.org/users/"];
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The type of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum KeyType {
    /// 64-bit integers.
    U64,
    /// Strings of about 30 bytes.
    Strings,
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U64 => "u64",
            Self::Strings => "strings",
        })
    }
}

/// The share of queried keys that is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    All,
    Half,
    None,
}

/// A chunk of keys, generated outside the timed region.
pub(crate) enum Keys {
    Numbers(Vec<u64>),
    Texts(Texts),
}

/// Strings in one array, end to end.
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// End offset of each string.
    ends: Vec<u32>,
}

impl Texts {
    /// The strings in order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.bytes[start..end as usize];
            start = end as usize;
            text
        })
    }
}

impl Keys {
    /// The keys with these indices.
    pub(crate) fn of(key_type: KeyType, indices: impl Iterator<Item = u64>) -> Self {
        match key_type {
            KeyType::U64 => Self::Numbers(indices.map(number).collect()),
            KeyType::Strings => {
                let (len, _) = indices.size_hint();
                let mut texts =
                    Texts { bytes: Vec::with_capacity(len * 31), ends: Vec::with_capacity(len) };
                for index in indices {
                    spell(index, &mut texts.bytes);
                    texts.ends.push(u32::try_from(texts.bytes.len()).expect("chunks are small"));
                }
                Self::Texts(texts)
            }
        }
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.ends.len(),
        }
    }
}

/// Keys to look up, and how many of them are present.
pub(crate) struct Queries {
    pub(crate) keys: Keys,
    pub(crate) present: u64,
}

/// Draws `count` keys in random order, this share of them from the `n` present ones. Every round asks for different
/// absent keys, so that all rounds together measure the rate.
pub(crate) fn queries(
    key_type: KeyType,
    n: u64,
    share: Share,
    round: u64,
    count: usize,
) -> Queries {
    assert!(count as u64 <= STRETCH, "more queries than absent keys set aside");
    let stream = 3 * round + share as u64;
    let first_draw = mix64(stream ^ SALT);
    let first_absent = ABSENT + stream * STRETCH;
    let mut present = 0;
    let indices: Vec<u64> = (0..count as u64)
        .map(|i| {
            let draw = mix64(first_draw.wrapping_add(i));
            let hit = match share {
                Share::All => true,
                Share::Half => draw & 1 == 0, // the index comes from the high bits
                Share::None => false,
            };
            present += u64::from(hit);
            if hit { fastrange(draw, n) } else { first_absent + i }
        })
        .collect();
    Queries { keys: Keys::of(key_type, indices.into_iter()), present }
}

/// Splits `0..n` into ranges of at most `size`.
pub(crate) fn chunks(n: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    (0..n.div_ceil(size)).map(move |i| i * size..((i + 1) * size).min(n))
}

fn number(index: u64) -> u64 {
    mix64(index ^ SALT)
}

fn spell(index: u64, bytes: &mut Vec<u8>) {
    let number = number(index);
    bytes.extend_from_slice(PATHS[(number & 3) as usize]);
    bytes.extend((0..13).map(|i| DIGITS[(number >> (5 * i) & 31) as usize]));
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn as_bytes(keys: &Keys) -> Vec<Vec<u8>> {
        match keys {
            Keys::Numbers(numbers) => numbers.iter().map(|n| n.to_le_bytes().to_vec()).collect(),
            Keys::Texts(texts) => texts.iter().map(<[u8]>::to_vec).collect(),
        }
    }

    #[test]
    fn present_and_absent_keys_are_distinct_and_the_same_each_time() {
        for key_type in [KeyType::U64, KeyType::Strings] {
            let present = as_bytes(&Keys::of(key_type, 0..10_000));
            let set: HashSet<_> = present.iter().collect();
            assert_eq!(set.len(), 10_000);
            assert_eq!(present, as_bytes(&Keys::of(key_type, 0..10_000)));
            let mut absent = HashSet::new();
            for round in 0..3 {
                let misses = queries(key_type, 10_000, Share::None, round, 5_000);
                assert_eq!(misses.present, 0);
                absent.extend(as_bytes(&misses.keys));
            }
            assert_eq!(absent.len(), 15_000);
            assert!(absent.iter().all(|key| !set.contains(key)));
        }
    }

    #[test]
    fn queries_hold_the_share_of_present_keys_they_claim() {
        for key_type in [KeyType::U64, KeyType::Strings] {
            let set: HashSet<_> = as_bytes(&Keys::of(key_type, 0..1_000)).into_iter().collect();
            for share in [Share::All, Share::Half, Share::None] {
                let queries = queries(key_type, 1_000, share, 7, 10_000);
                let found = as_bytes(&queries.keys).iter().filter(|key| set.contains(*key)).count();
                assert_eq!(found as u64, queries.present);
                // Six sigma of 10,000 fair coins is 300.
                assert!(share != Share::Half || (4_700..=5_300).contains(&found), "{found}");
            }
        }
    }

    #[test]
    fn strings_are_about_thirty_bytes_long() {
        let Keys::Texts(texts) = Keys::of(KeyType::Strings, 0..1_000) else {
            unreachable!("asked for strings")
        };
        assert!(texts.iter().all(|text| (28..=31).contains(&text.len())));
    }

    #[test]
    fn chunks_cover_everything_once() {
        assert_eq!(chunks(10, 4).collect::<Vec<_>>(), [0..4, 4..8, 8..10]);
        assert_eq!(chunks(8, 4).collect::<Vec<_>>(), [0..4, 4..8]);
    }
}
