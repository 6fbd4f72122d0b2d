//! Blocked Bloom filters: all bits of a key in one cache line.
//!
//! A block is a small Bloom filter, and keys choose blocks at random. Some blocks get more than their share of keys,
//! and because the rate grows steeply with load they cost more than the light ones save. So the rate is a mean over the
//! load j of a block, never the rate at the mean load:
//!
//! ```text
//! p = sum_j P(j keys in a block) g(j)
//!
//! flat block    [ . . x . . . x . x . . . ]          g(j) = E[(X_j/B)^k]
//! split block   [ . x . . | . . x . | x . . . ]      g(j) = (1 - (1 - 1/w)^j)^s
//! ```

use super::bloom::{bits_per_key, bloom_rate_exact};
use super::mixture::{binomial_mean, poisson_mean};
use super::search::{greatest, least};
use super::{clamp_rate, hit_share};

/// Rate of a split-block filter: blocks of s words, one bit of each word per key.
///
/// ```text
/// p = sum_j C(n,j) b^-j (1 - 1/b)^(n-j) (1 - (1 - 1/w)^j)^s        [PSS09]
/// b blocks, s words per block, w bits per word, n keys
/// ```
///
/// Exact for any number of blocks, so no switch to the Poisson limit is needed. No blocks or no words: p = 1. At ten
/// bits per key: 1.265 % for 8 words of 32 bits, 1.049 % for 8 of 64.
pub fn split_block_rate(blocks: u64, words: u32, word_bits: u32, n: u64) -> f64 {
    if blocks == 0 || words == 0 {
        return 1.0;
    }
    let word_bits = f64::from(word_bits.max(1));
    let block_rate = |j: u64| hit_share(word_bits, j as f64).powf(f64::from(words));
    if blocks == 1 {
        return block_rate(n);
    }
    let load = n as f64 / blocks as f64;
    if load > 200.0 * word_bits.max(8.0) + f64::from(words) {
        return 1.0;
    }
    binomial_mean(n, blocks, block_rate).min(1.0)
}

/// The smallest number of blocks that meets a rate.
///
/// ```text
/// min b  such that  split_block_rate(b, s, w, n) <= p
/// ```
///
/// At n = 10^7 with 8 words of 64 bits: 10.10 bits per key for 1 %, 15.72 for 0.1 %; of 32 bits: 10.53 and 16.89.
pub fn split_blocks(n: u64, p: f64, words: u32, word_bits: u32) -> u64 {
    let p = clamp_rate(p);
    let block_bits = f64::from(words.max(1)) * f64::from(word_bits.max(1));
    let guess = n as f64 * bits_per_key(words, p) / block_bits;
    least(guess as u64, |blocks| split_block_rate(blocks, words, word_bits, n) <= p)
}

/// The largest number of keys that blocks hold at a rate.
///
/// ```text
/// max n  such that  split_block_rate(b, s, w, n) <= p
/// ```
///
/// Inverse of [`split_blocks`]. A megabyte as 16 384 blocks of 8 words of 64 bits holds 830 613
/// keys at 1 %.
pub fn split_block_capacity(blocks: u64, p: f64, words: u32, word_bits: u32) -> u64 {
    let p = clamp_rate(p);
    let block_bits = f64::from(words.max(1)) * f64::from(word_bits.max(1));
    let guess = blocks as f64 * block_bits / bits_per_key(words, p);
    greatest(guess as u64, |n| split_block_rate(blocks, words, word_bits, n) <= p)
}

/// Rate of a filter of flat blocks at c bits per key, in the limit of many blocks.
///
/// ```text
/// p = sum_j e^-x x^j / j!  E[(X_j/B)^k],   x = B/c        [PSS09]
/// c bits per key, B bits per block, k probes, X_j bits set by j keys
/// ```
///
/// Uses the exact law inside a block. Less than a hundredth of a bit per key: p = 1. At c = 10: 0.966 % for 512 bits
/// and 6 probes, 1.784 % for a 64-bit register and 5 probes.
pub fn flat_block_rate(c: f64, block_bits: u32, k: u32) -> f64 {
    if block_bits == 0 || k == 0 || c.is_nan() || c < 0.01 {
        return 1.0;
    }
    let load = f64::from(block_bits) / c;
    poisson_mean(load, |j| bloom_rate_exact(u64::from(block_bits), k, j)).min(1.0)
}

/// Bits per key by the classic law for eight probes: misleading for split blocks.
///
/// ```text
/// c = -8 / ln(1 - p^(1/8))
/// ```
///
/// Correct for a segmented filter, but it ignores the uneven load of blocks. For 1 % it says 9.68 where 8 words of 32
/// bits need 10.53 and deliver 1.46 % at 9.68. Use [`split_blocks`].
pub fn classic_split_bits_per_key(p: f64) -> f64 {
    bits_per_key(8, p)
}

#[cfg(test)]
mod tests {
    use super::super::bloom_rate;
    use super::super::tests::close;
    use super::*;

    /// Best k and its rate in percent.
    fn best(rate: impl Fn(u32) -> f64) -> (u32, f64) {
        let all = (1..=20).map(|k| (k, 100.0 * rate(k)));
        all.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    }

    #[test]
    fn rates_by_bits_per_key_match_the_table() {
        for (c, standard, flat512, split64, split32, register) in [
            (8, (6, 2.158), (5, 2.326), 2.93, 3.32, (4, 3.35)),
            (10, (7, 0.819), (6, 0.9665), 1.049, 1.265, (5, 1.784)),
            (12, (8, 0.314), (8, 0.4135), 0.422, 0.542, (5, 1.035)),
            (16, (11, 0.0459), (9, 0.0844), 0.0909, 0.1316, (6, 0.405)),
            (20, (14, 0.00671), (11, 0.0198), 0.0260, 0.0420, (7, 0.189)),
        ] {
            let check = |found: (u32, f64), expected: (u32, f64)| {
                assert_eq!(found.0, expected.0, "probes at {c} bits a key");
                close(found.1, expected.1, 2e-3);
            };
            check(best(|k| bloom_rate(c << 20, k, 1 << 20)), standard);
            check(best(|k| flat_block_rate(c as f64, 512, k)), flat512);
            check(best(|k| flat_block_rate(c as f64, 64, k)), register);
            let n = 1 << 24;
            close(100.0 * split_block_rate(c * n / 512, 8, 64, n), split64, 2e-3);
            close(100.0 * split_block_rate(c * n / 256, 8, 32, n), split32, 2e-3);
        }
    }

    #[test]
    fn bits_per_key_of_split_blocks_match_the_table() {
        let n = 10_000_000;
        for (word_bits, p, c) in
            [(64, 0.01, 10.10), (64, 0.001, 15.72), (32, 0.01, 10.53), (32, 0.001, 16.89)]
        {
            let bits = split_blocks(n, p, 8, word_bits) * 8 * u64::from(word_bits);
            assert!((bits as f64 / n as f64 - c).abs() < 0.006, "{word_bits} {p}");
        }
    }

    #[test]
    fn the_classic_formula_undershoots_split_blocks() {
        close(classic_split_bits_per_key(0.01), 9.68, 1e-3);
        let n = 10_000_000;
        let blocks = (n as f64 * classic_split_bits_per_key(0.01) / 256.0) as u64;
        close(split_block_rate(blocks, 8, 32, n), 0.0146, 5e-3);
    }

    #[test]
    fn few_blocks_average_over_every_split_of_the_keys() {
        let g = |j: i32| (1.0 - (1.0f64 - 1.0 / 32.0).powi(j)).powi(8);
        close(split_block_rate(1, 8, 32, 9), g(9), 1e-12);
        close(split_block_rate(2, 8, 32, 2), (g(0) + 2.0 * g(1) + g(2)) / 4.0, 1e-12);
        assert_eq!(split_block_rate(5, 8, 32, 0), 0.0);
    }

    #[test]
    fn capacity_inverts_blocks() {
        for n in [1, 2, 10, 100, 5_000, 1_000_000] {
            for p in [0.1, 0.01, 1e-4] {
                let blocks = split_blocks(n, p, 8, 64);
                assert!(split_block_rate(blocks, 8, 64, n) <= p);
                assert!(blocks == 1 || split_block_rate(blocks - 1, 8, 64, n) > p);
                assert!(split_block_capacity(blocks, p, 8, 64) >= n);
                assert!(split_block_capacity(blocks - 1, p, 8, 64) < n);
            }
        }
        assert_eq!(split_block_capacity(16_384, 0.01, 8, 64), 830_613);
    }

    #[test]
    fn blocks_grow_with_keys_and_shrink_with_rate() {
        for n in (1..100).map(|i| i * i * 37) {
            assert!(split_blocks(n, 0.01, 8, 64) <= split_blocks(n + 37, 0.01, 8, 64));
            assert!(split_blocks(n, 0.01, 8, 64) <= split_blocks(n, 0.005, 8, 64));
        }
    }

    #[test]
    fn an_absurdly_thin_block_is_full() {
        assert_eq!(flat_block_rate(0.0, 512, 6), 1.0);
        assert_eq!(split_block_rate(3, 8, 64, u64::MAX), 1.0);
    }
}
