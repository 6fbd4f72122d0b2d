//! MurmurHash64A, and the two ways RedisBloom calls it.
//!
//! ```text
//! Bloom:   first = H(key, seed C)      step = H(key, seed first)      probe i = (first + i·step) mod 2^64 mod bits
//! cuckoo:  H(key, seed 0)
//! ```
//!
//! The function is Austin Appleby's, in the public domain: the key in little-endian words of eight bytes, and up to
//! seven more bytes. C is its own multiplier, which RedisBloom uses as the seed.

/// Multiplier of 64-bit MurmurHash2 (Appleby), and RedisBloom's seed.
const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;

const SHIFT: u32 = 47;

/// Computes MurmurHash64A of a key.
#[inline]
pub fn murmur64a(key: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (key.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ scramble(u64::from_le_bytes(*word))).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        hash = (hash ^ last_word(key, rest)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}

/// Returns the bytes after the last whole word, as the low bytes of a word. Copying so few bytes would be a call: if
/// eight bytes precede the end, they are read at once.
#[inline]
fn last_word(key: &[u8], rest: &[u8]) -> u64 {
    match key.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
        None => rest.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
}

fn scramble(word: u64) -> u64 {
    let word = word.wrapping_mul(MULTIPLIER);
    (word ^ (word >> SHIFT)).wrapping_mul(MULTIPLIER)
}

/// A key as a Bloom filter sees it: an arithmetic progression of 64-bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BloomHash {
    first: u64,
    step: u64,
}

impl BloomHash {
    /// Hashes a key.
    pub fn of(key: &[u8]) -> Self {
        let first = murmur64a(key, MULTIPLIER);
        Self { first, step: murmur64a(key, first) }
    }

    /// Probe `i`, before it is reduced to the size of a filter.
    #[inline]
    pub fn probe(self, i: u32) -> u64 {
        self.first.wrapping_add(u64::from(i).wrapping_mul(self.step))
    }
}

/// Hashes a key for a cuckoo filter.
pub fn cuckoo_hash(key: &[u8]) -> u64 {
    murmur64a(key, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, byte by byte: every length takes a different path through the words and the rest.
    fn naive(key: &[u8], seed: u64) -> u64 {
        let mut hash = seed ^ MULTIPLIER.wrapping_mul(key.len() as u64);
        for piece in key.chunks(8) {
            let mut word = 0;
            for (i, &byte) in piece.iter().enumerate() {
                word |= u64::from(byte) << (8 * i);
            }
            if piece.len() == 8 {
                word = word.wrapping_mul(MULTIPLIER);
                word ^= word >> 47;
                word = word.wrapping_mul(MULTIPLIER);
            }
            hash ^= word;
            hash = hash.wrapping_mul(MULTIPLIER);
        }
        hash ^= hash >> 47;
        hash = hash.wrapping_mul(MULTIPLIER);
        hash ^ (hash >> 47)
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let key: Vec<u8> = (0..80u8).map(|i| i.wrapping_mul(151) ^ 0x5a).collect();
        for len in 0..key.len() {
            for seed in [0, 1, MULTIPLIER, u64::MAX] {
                assert_eq!(murmur64a(&key[..len], seed), naive(&key[..len], seed), "{len} bytes");
            }
        }
    }

    #[test]
    fn probes_wrap_at_64_bits() {
        let hash = BloomHash { first: u64::MAX, step: 3 };
        assert_eq!([hash.probe(0), hash.probe(1), hash.probe(2)], [u64::MAX, 2, 5]);
    }
}
