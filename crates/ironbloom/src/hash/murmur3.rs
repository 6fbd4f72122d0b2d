//! MurmurHash3 (Appleby, public domain), in the two forms that other programs' filters use.
//!
//! Our own code instead of a crate: the usual one reads its input through `io::Read`, a few bytes at a time, and Spark's
//! variant is not standard.

use std::array;

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// MurmurHash3 for 64-bit machines, 128 bits, seed 0: returns the low and the high half.
#[inline]
pub(crate) fn x64_128(bytes: &[u8]) -> [u64; 2] {
    let mut state = [0; 2];
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        state = mix_block(state, block);
    }
    finish(state, rest, bytes.len() as u64)
}

/// Like [`x64_128`], for bytes followed by one more, as if they were one array.
#[inline]
pub(crate) fn x64_128_and(bytes: &[u8], last: u8) -> [u64; 2] {
    let mut state = [0; 2];
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        state = mix_block(state, block);
    }
    let mut tail = [0; 16];
    tail[..rest.len()].copy_from_slice(rest);
    tail[rest.len()] = last;
    let len = bytes.len() as u64 + 1;
    if rest.len() == 15 {
        return finish(mix_block(state, &tail), &[], len);
    }
    finish(state, &tail[..=rest.len()], len)
}

#[inline]
fn mix_block([mut h1, mut h2]: [u64; 2], block: &[u8; 16]) -> [u64; 2] {
    let (k1, k2) = halves(block);
    h1 ^= scramble_1(k1);
    h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
    h2 ^= scramble_2(k2);
    h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    [h1, h2]
}

/// Mixes the remaining bytes, fewer than 16, and finishes.
#[inline]
fn finish([mut h1, mut h2]: [u64; 2], rest: &[u8], len: u64) -> [u64; 2] {
    let mut block = [0; 16];
    block[..rest.len()].copy_from_slice(rest);
    let (k1, k2) = halves(&block);
    // Zeros scramble to zero, so missing bytes change nothing.
    h2 ^= scramble_2(k2) ^ len;
    h1 ^= scramble_1(k1) ^ len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = avalanche(h1);
    h2 = avalanche(h2);
    h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(array::from_fn(|i| block[at + i]));
    (word(0), word(8))
}

#[inline]
fn scramble_1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn scramble_2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn avalanche(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

/// Computes 32-bit MurmurHash3 as Spark does: each byte after the last whole word is sign-extended and mixed like a
/// word. The standard function mixes these bytes together, once, and differently.
#[inline]
pub(crate) fn spark_32(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for word in words {
        hash = mix_32(hash, u32::from_le_bytes(*word));
    }
    for &byte in rest {
        hash = mix_32(hash, byte.cast_signed() as i32 as u32);
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[inline]
fn mix_32(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the reference implementation (smhasher), computed with the Python package `mmh3` 5.2:
    /// `mmh3.hash64(b"…", 0, signed=False)`.
    #[test]
    fn the_wide_form_is_that_of_the_reference_implementation() {
        assert_eq!(x64_128(b""), [0, 0]);
        assert_eq!(x64_128(b"hello"), [0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19]);
        assert_eq!(x64_128(b"hello, world"), [0x342f_ac62_3a5e_bc8e, 0x4cdc_bc07_9642_414d]);
        assert_eq!(
            x64_128(b"The quick brown fox jumps over the lazy dog."),
            [0xcd99_481f_9ee9_02c9, 0x695d_a1a3_8987_b6e7]
        );
    }

    #[test]
    fn a_byte_more_is_hashed_as_if_it_stood_behind_the_others() {
        let bytes: Vec<u8> = (0..70u8).map(|i| i.wrapping_mul(37)).collect();
        for len in 0..bytes.len() - 1 {
            let whole = [&bytes[..len], &[1]].concat();
            assert_eq!(x64_128_and(&bytes[..len], 1), x64_128(&whole), "{len} bytes");
        }
    }

    /// For whole words it is the standard function (vectors of smhasher); the golden files cover Spark's treatment of
    /// other bytes.
    #[test]
    fn the_narrow_form_of_whole_words_is_the_standard_one() {
        assert_eq!(spark_32(b"", 0), 0);
        assert_eq!(spark_32(b"", 1), 0x514e_28b7);
        assert_eq!(spark_32(&[0xff; 4], 0), 0x7629_3b50);
        assert_eq!(spark_32(&[0x21, 0x43, 0x65, 0x87], 0x5082_edee), 0x2362_f9de);
    }
}
