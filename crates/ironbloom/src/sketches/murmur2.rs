//! MurmurHash2 of 32 bits, for several seeds at once.
//!
//! The function is Austin Appleby's, in the public domain. The scrambling of a key's words does not depend on the seed, so that
//! the rows of a sketch, each with its number as the seed, share it; what is left for a row is a product and an exclusive or
//! per word, which compilers turn into vector instructions.

const MULTIPLIER: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// Number of seeds that are hashed at once.
pub(super) const LANES: usize = 8;

/// The hash of a key.
pub(super) fn murmur2(key: &[u8], seed: u32) -> u32 {
    hash::<1>(key, seed)[0]
}

/// The hashes of a key by the seeds from `first` on.
#[inline]
pub(super) fn murmur2_lanes(key: &[u8], first: u32) -> [u32; LANES] {
    hash(key, first)
}

#[inline]
fn hash<const N: usize>(key: &[u8], first: u32) -> [u32; N] {
    // The length counts modulo 2^32, as in the original.
    let mut hashes: [u32; N] =
        std::array::from_fn(|i| first.wrapping_add(i as u32) ^ key.len() as u32);
    let (words, rest) = key.as_chunks::<4>();
    for word in words {
        let word = scramble(u32::from_le_bytes(*word));
        hashes.iter_mut().for_each(|hash| *hash = hash.wrapping_mul(MULTIPLIER) ^ word);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, &byte| (word << 8) | u32::from(byte));
        hashes.iter_mut().for_each(|hash| *hash = (*hash ^ word).wrapping_mul(MULTIPLIER));
    }
    hashes.map(finish)
}

fn scramble(word: u32) -> u32 {
    let word = word.wrapping_mul(MULTIPLIER);
    (word ^ (word >> SHIFT)).wrapping_mul(MULTIPLIER)
}

fn finish(hash: u32) -> u32 {
    let hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by RedisBloom.
    #[test]
    fn hashes_are_redisblooms() {
        for (key, seed, expected) in [
            ("", 0, 0),
            ("", 1919, 0x4a85_66e0),
            ("a", 0, 0x9268_5f5e),
            ("foo", 0, 0x8fea_6375),
            ("foo", 1, 0x0bcc_2e5a),
            ("user:1:0", 0, 0x2ac1_3c84),
            ("user:1:0", 1919, 0xed7a_99bd),
        ] {
            assert_eq!(murmur2(key.as_bytes(), seed), expected, "{key:?} with seed {seed}");
        }
    }

    #[test]
    fn lanes_are_hashes_by_consecutive_seeds() {
        let key: Vec<u8> = (0..40u8).map(|i| i.wrapping_mul(151) ^ 0x5a).collect();
        for len in 0..key.len() {
            for first in [0, 8, u32::MAX - 3] {
                for (i, hash) in murmur2_lanes(&key[..len], first).into_iter().enumerate() {
                    assert_eq!(hash, murmur2(&key[..len], first.wrapping_add(i as u32)));
                }
            }
        }
    }
}
