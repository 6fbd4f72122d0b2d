//! All formulas: rates, sizes and capacities as pure functions of numbers.
//!
//! A filter trades bits for a rate. A *law* says which rate a shape delivers after n keys; *sizing* inverts it.
//! Textbooks invert the asymptotic law, drop the integers and the variance, and so promise slightly more than the
//! filter delivers. Here the order is fixed:
//!
//! 1. state the law as exactly as can be computed (`bloom_rate_exact`, `split_block_rate`, ...);
//! 2. find the smallest shape for which that law, not an approximation of it, meets the rate;
//! 3. keep the textbook formula as well (`classic_...`), as the first guess and to show how far off it is.
//!
//! | structure | law | inverse | bits per key at 1 % and 0.1 % |
//! |---|---|---|---|
//! | flat Bloom | [`bloom_rate_exact`] | [`bloom_shape`], [`bloom_capacity`] | 9.59, 14.38 |
//! | segmented Bloom | [`segmented_rate`] | [`segmented_shape`] | 9.59, 14.38 |
//! | split block 8 x 64 | [`split_block_rate`] | [`split_blocks`], [`split_block_capacity`] | 10.10, 15.72 |
//! | d-left | [`dleft_rate`] | [`dleft_remainder_bits`] | 18.7, 22.7 |
//! | cuckoo | [`cuckoo_rate`] | [`cuckoo_fingerprint_bits`] | 10.5, 13.7 |
//! | binary fuse, 3-wise | 2^-f | [`fingerprint_width`] | 7.9, 11.25 |
//! | scalable Bloom | [`scalable_stage_rate`] | [`scalable_bits_per_key`] | 13.5 and growing |
//! | windowed Bloom | [`windowed_rate`] | [`window_shape`] | 19.7, 27.2 |
//! | any | | [`lower_bound`] | 6.64, 9.97 |
//!
//! Symbols: n keys, m bits, k probes, p the rate, c = m/n bits per key, lg the binary logarithm. Names in brackets
//! refer to papers. Rates outside (0, 1) are taken as the nearest representable rate inside it; no function panics on
//! finite input. Rejecting invalid values is the job of the parameter types.

mod attributes;
mod blocked;
mod bloom;
mod fingerprint;
mod growing;
mod mixture;
mod occupancy;
mod search;
mod thresholds;

pub use attributes::{claimed_sum_bound, sum_rate, truncated_sum_rate, weighted_sum_rate};
pub use blocked::{
    classic_split_bits_per_key, flat_block_rate, split_block_capacity, split_block_rate,
    split_blocks,
};
pub use bloom::{
    BloomShape, best_probes, bits_per_key, bloom_capacity, bloom_rate, bloom_rate_exact,
    bloom_shape, classic_bits, classic_capacity, classic_probes, counter_overflow,
    counter_overflow_bound, estimate_len, probes_for_rate, segmented_rate, segmented_shape,
};
pub use fingerprint::{
    cuckoo_fingerprint_bits, cuckoo_minimum_fingerprint, cuckoo_rate, dleft_rate,
    dleft_remainder_bits, fingerprint_width, fuse_segment_length, fuse_size_factor,
};
pub(crate) use growing::MAX_SLICES;
pub use growing::{
    WindowShape, run_rate, scalable_bits_per_key, scalable_stage_rate, window_shape, windowed_rate,
};
pub(crate) use occupancy::{
    Occupancy, bloom_occupancy, segmented_occupancy, split_block_occupancy,
};
pub(crate) use thresholds::Thresholds;

/// The lower bound on bits per key for any filter.
///
/// ```text
/// lg(1/p)        p rate        [BM03]
/// ```
///
/// No structure in this crate reaches it; reports give their distance from it. At p = 1 %: 6.64.
pub fn lower_bound(p: f64) -> f64 {
    -clamp_rate(p).log2()
}

/// The rate below which no filter over 64-bit hashes can go.
///
/// ```text
/// n / 2^64        n keys
/// ```
///
/// Two keys with the same hash are one key to the filter, so an absent key is mistaken for one of n with this
/// probability however large the filter is. At n = 5 * 10^8: 2.7e-11, so a request for 1e-12 must be rejected.
pub fn hash_floor(n: u64) -> f64 {
    n as f64 / 2f64.powi(64)
}

/// The nearest rate that lies strictly between 0 and 1.
fn clamp_rate(p: f64) -> f64 {
    p.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON)
}

/// P(a bin is hit) after `throws` balls into `bins` bins: 1 - (1 - 1/bins)^throws.
///
/// Written with `ln_1p` and `exp_m1` to keep precision at 10^11 bins, where 1 - 1/bins itself has lost eleven of
/// sixteen.
fn hit_share(bins: f64, throws: f64) -> f64 {
    if throws <= 0.0 {
        return 0.0;
    }
    -(throws * (-1.0 / bins.max(1.0)).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that `found` is `expected` within a relative `tolerance`.
    #[track_caller]
    pub(super) fn close(found: f64, expected: f64, tolerance: f64) {
        let off = (found / expected - 1.0).abs();
        assert!(off <= tolerance, "found {found}, expected {expected} within {tolerance}");
    }

    #[test]
    fn the_bound_is_the_binary_logarithm() {
        close(lower_bound(0.01), 6.644, 1e-4);
        close(lower_bound(0.001), 9.966, 1e-4);
    }

    #[test]
    fn half_a_billion_keys_cannot_go_below_three_in_a_hundred_billion() {
        close(hash_floor(500_000_000), 2.7e-11, 0.01);
    }

    #[test]
    fn a_hit_keeps_its_digits_in_a_huge_table() {
        assert_eq!(hit_share(1e11, 0.0), 0.0);
        close(hit_share(1e11, 1.0), 1e-11, 1e-15);
        close(hit_share(1e11, 1e11), 1.0 - (-1f64).exp(), 1e-10);
        assert_eq!(hit_share(1.0, 1.0), 1.0);
    }

    #[test]
    fn rates_outside_the_open_interval_give_finite_answers() {
        for p in [-1.0, 0.0, 1.0, 2.0, f64::MAX] {
            assert!(lower_bound(p).is_finite());
            assert!(classic_bits(1000, p).is_finite());
            assert!(classic_capacity(1000, p).is_finite());
            assert!(bloom_shape(1000, p).bits >= 1);
            assert!(bloom_capacity(1000, p) < u64::MAX);
            assert!(segmented_shape(1000, p).bits >= 1);
            assert!(split_blocks(1000, p, 8, 64) >= 1);
            assert!(window_shape(1000, p).slice_bits >= 1);
            assert!((1..=64).contains(&fingerprint_width(p)));
            assert!((1..=64).contains(&cuckoo_fingerprint_bits(p, 4, 0.95)));
            assert!(dleft_remainder_bits(100, 2400, p) <= 64);
            assert!(scalable_bits_per_key(p, 2, 0.85, 4).is_finite());
        }
    }

    #[test]
    fn extreme_counts_end_without_panic() {
        for n in [0, 1, u64::MAX] {
            for m in [0, 1, 2, u64::MAX] {
                for k in [0, 1, 64, u32::MAX] {
                    for rate in [bloom_rate(m, k, n), bloom_rate_exact(m, k, n)] {
                        assert!((0.0..=1.0).contains(&rate), "{m} {k} {n}: {rate}");
                    }
                    assert!((0.0..=1.0).contains(&segmented_rate(m, k, n)), "{m} {k} {n}");
                    assert!((0.0..=1.0).contains(&windowed_rate(k, k, n, m)), "{m} {k} {n}");
                    assert!((0.0..=1.0).contains(&counter_overflow(m, k, n, k)), "{m} {k} {n}");
                    assert!((0.0..=1.0).contains(&dleft_rate(m, k, n)), "{m} {k} {n}");
                    assert!((0.0..=1.0).contains(&split_block_rate(m, k, k, n)), "{m} {k} {n}");
                    assert!(!estimate_len(m, k, n).is_nan());
                }
                assert!((1..=64).contains(&best_probes(m, n)), "{m} {n}");
                assert!(!classic_probes(m, n).is_nan());
            }
            assert!(bloom_shape(n, 0.01).bits >= 1);
            assert!(segmented_shape(n, 0.01).bits >= 1);
            assert!(window_shape(n, 0.01).slice_bits >= 1);
            assert!(split_blocks(n, 0.01, 8, 64) >= 1);
            assert!(split_block_capacity(n, 0.01, 8, 64) < u64::MAX);
            assert!(bloom_capacity(n, 0.01) < u64::MAX);
            assert!(cuckoo_minimum_fingerprint(n, u32::MAX) >= 1);
            assert!(fuse_size_factor(3, n).is_finite());
            assert!(fuse_segment_length(4, n) >= 4);
        }
    }
}
