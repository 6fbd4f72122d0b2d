//! The preview of XXH3 on which RocksDB depends: xxHash 0.7.2, seed 0, 64 bits.
//!
//! The released function differs in almost every path: in how short keys are mixed, in the last steps, and in which lane
//! of a stripe is added to which sum. No crate has this version, so it is written here from the description of its steps;
//! `tests/foreign/rocksdb.answers` pins every path to RocksDB's answers.

use std::array;

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;

/// The default secret of XXH3, the same in all versions.
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// Bytes per stripe, and how far the secret moves from one to the next.
const STRIPE: usize = 64;
const SECRET_STEP: usize = 8;

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array::from_fn(|i| bytes[at + i]))
}

#[inline]
fn half(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(array::from_fn(|i| bytes[at + i])))
}

/// Xors both halves of a 128-bit product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 37)).wrapping_mul(PRIME64_3);
    hash ^ (hash >> 32)
}

/// Hashes a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    match key.len() {
        0 => fold(word(&SECRET, 0), PRIME64_2), // RocksDB's own: the preview has 0 here
        1..=3 => tiny(key),
        4..=8 => small(key),
        9..=16 => medium(key),
        17..=128 => large(key),
        129..=240 => larger(key),
        _ => long(key),
    }
}

fn tiny(key: &[u8]) -> u64 {
    let len = key.len();
    let [first, middle, last] = [key[0], key[len >> 1], key[len - 1]].map(u64::from);
    let combined = first | middle << 8 | last << 16 | (len as u64) << 24;
    avalanche((combined ^ half(&SECRET, 0)).wrapping_mul(PRIME64_1))
}

fn small(key: &[u8]) -> u64 {
    let len = key.len();
    let keyed = (half(key, 0) | half(key, len - 4) << 32) ^ word(&SECRET, 0);
    let mixed = (len as u64).wrapping_add((keyed ^ (keyed >> 51)).wrapping_mul(PRIME32_1));
    avalanche((mixed ^ (mixed >> 47)).wrapping_mul(PRIME64_2))
}

fn medium(key: &[u8]) -> u64 {
    let len = key.len();
    let low = word(key, 0) ^ word(&SECRET, 0);
    let high = word(key, len - 8) ^ word(&SECRET, 8);
    avalanche((len as u64).wrapping_add(low).wrapping_add(high).wrapping_add(fold(low, high)))
}

/// Mixes 16 bytes of a key with 16 bytes of the secret.
#[inline]
fn mix(key: &[u8], at: usize, secret: usize) -> u64 {
    fold(word(key, at) ^ word(&SECRET, secret), word(key, at + 8) ^ word(&SECRET, secret + 8))
}

fn large(key: &[u8]) -> u64 {
    let len = key.len();
    let mut sum = (len as u64).wrapping_mul(PRIME64_1);
    // Pairs from both ends, as many as the key has.
    for pair in (0..(len - 1) / 32 + 1).rev() {
        sum = sum.wrapping_add(mix(key, 16 * pair, 32 * pair));
        sum = sum.wrapping_add(mix(key, len - 16 * (pair + 1), 32 * pair + 16));
    }
    avalanche(sum)
}

fn larger(key: &[u8]) -> u64 {
    let len = key.len();
    let mut sum = (len as u64).wrapping_mul(PRIME64_1);
    for i in 0..8 {
        sum = sum.wrapping_add(mix(key, 16 * i, 16 * i));
    }
    sum = avalanche(sum);
    for i in 8..len / 16 {
        sum = sum.wrapping_add(mix(key, 16 * i, 16 * (i - 8) + 3));
    }
    avalanche(sum.wrapping_add(mix(key, len - 16, 136 - 17)))
}

fn long(key: &[u8]) -> u64 {
    let len = key.len();
    let mut sums =
        [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
    let per_block = (SECRET.len() - STRIPE) / SECRET_STEP;
    let blocks = len / (STRIPE * per_block);
    for stripe in 0..len / STRIPE {
        accumulate(&mut sums, key, STRIPE * stripe, SECRET_STEP * (stripe % per_block));
        if (stripe + 1) % per_block == 0 && stripe / per_block < blocks {
            scramble(&mut sums);
        }
    }
    if !len.is_multiple_of(STRIPE) {
        accumulate(&mut sums, key, len - STRIPE, SECRET.len() - STRIPE - 7);
    }
    let merged = (0..4).map(|i| {
        fold(sums[2 * i] ^ word(&SECRET, 11 + 16 * i), sums[2 * i + 1] ^ word(&SECRET, 19 + 16 * i))
    });
    avalanche(merged.fold((len as u64).wrapping_mul(PRIME64_1), u64::wrapping_add))
}

fn accumulate(sums: &mut [u64; 8], key: &[u8], at: usize, secret: usize) {
    for (i, sum) in sums.iter_mut().enumerate() {
        let data = word(key, at + 8 * i);
        let keyed = data ^ word(&SECRET, secret + 8 * i);
        let product = (keyed & 0xffff_ffff).wrapping_mul(keyed >> 32);
        *sum = sum.wrapping_add(data).wrapping_add(product);
    }
}

fn scramble(sums: &mut [u64; 8]) {
    let secret = SECRET.len() - STRIPE;
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = (*sum ^ (*sum >> 47) ^ word(&SECRET, secret + 8 * i)).wrapping_mul(PRIME32_1);
    }
}
