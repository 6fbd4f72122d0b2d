//! Filters that keep a fingerprint of each key: d-left, cuckoo, binary fuse.
//!
//! An absent key is mistaken for present when its fingerprint equals one it is compared with. Each comparison errs with
//! probability 2^-f, so the rate is the number of comparisons times 2^-f, and each fingerprint bit halves it:
//!
//! ```text
//! d-left         n/B keys share a bucket row     24 * 2^-r at 24 keys per row
//! cuckoo         2 b slots, a share of them full  8 load * 2^-f for b = 4
//! binary fuse    one comparison                   2^-f
//! ```

use super::{clamp_rate, hit_share};

/// Maximum width of a fingerprint: keys are represented by 64-bit hashes.
const WIDEST: u32 = 64;

/// A cuckoo table is planned for this load with four slots per bucket.
const CUCKOO_LOAD: f64 = 0.95;

/// A table with at most this expected number of unplaceable groups of keys is considered buildable.
const UNPLACEABLE: f64 = 0.01;

/// The cap of the paper's reference code: longer segments scatter the cells of a key.
const LONGEST_SEGMENT: u64 = 1 << 18;

/// Shorter segments peel badly.
const SHORTEST_SEGMENT: u64 = 4;

/// Rate of a d-left filter.
///
/// ```text
/// p = 1 - (1 - 1/(B 2^r))^n        B buckets per subtable, r remainder bits, n keys   [BMPSV06]
/// ```
///
/// Equal (bucket, remainder) in any subtable means equal fingerprint, because subtables permute one
/// fingerprint; so the number of subtables does not appear. No buckets: p = 1. At n/B = 24, r = 14:
/// 0.146 %.
pub fn dleft_rate(buckets: u64, remainder_bits: u32, n: u64) -> f64 {
    if buckets == 0 {
        return 1.0;
    }
    let fingerprints = buckets as f64 * f64::from(remainder_bits).exp2();
    hit_share(fingerprints, n as f64)
}

/// The smallest number of remainder bits that meets a rate, at most 64.
///
/// ```text
/// min r  such that  dleft_rate(B, r, n) <= p        r = ceil(lg(n / (B p))) but for rounding
/// ```
///
/// At n/B = 24: 12 for 1 %, 15 for 0.1 %.
pub fn dleft_remainder_bits(buckets: u64, n: u64, p: f64) -> u32 {
    let p = clamp_rate(p);
    (0..WIDEST).find(|r| dleft_rate(buckets, *r, n) <= p).unwrap_or(WIDEST)
}

/// Rate of a cuckoo filter.
///
/// ```text
/// p = 1 - (1 - 1/(2^f - 1))^(2 b a)        [FAKM14]
/// f fingerprint bits, b slots per bucket, a load
/// ```
///
/// The paper has 2^f; a fingerprint of 0 marks an empty slot here, so 2^f - 1 are left.
/// Fingerprints of no bits: p = 1. At b = 4, a = 0.95: 2.94 % for f = 8, 0.740 % for 10, 0.185 %
/// for 12.
pub fn cuckoo_rate(fingerprint_bits: u32, slots_per_bucket: u32, load: f64) -> f64 {
    if fingerprint_bits == 0 {
        return 1.0;
    }
    let fingerprints = f64::from(fingerprint_bits).exp2() - 1.0;
    hit_share(fingerprints, 2.0 * f64::from(slots_per_bucket) * load)
}

/// The smallest number of fingerprint bits that meets a rate, 1 to 64.
///
/// ```text
/// min f  such that  cuckoo_rate(f, b, a) <= p        f = ceil(lg(2 b a / p)) but for rounding
/// ```
///
/// At b = 4, a = 0.95: 10 for 1 %, 13 for 0.1 %.
pub fn cuckoo_fingerprint_bits(p: f64, slots_per_bucket: u32, load: f64) -> u32 {
    let p = clamp_rate(p);
    (1..WIDEST).find(|f| cuckoo_rate(*f, slots_per_bucket, load) <= p).unwrap_or(WIDEST)
}

/// The smallest number of fingerprint bits with which a cuckoo table of n keys can be filled.
///
/// ```text
/// C(n, 2b+1) (2 / (2^f m))^(2b) < 0.01        m = n / (0.95 b) buckets        [FAKM14]
/// ```
///
/// The left side is the expected number of groups of 2b + 1 keys that share both buckets, which no amount of moving can
/// place. The paper asks for "much less than 1"; 0.01 is our choice. Slots per bucket are taken as 1 to 64. At b = 4: 4
/// for 10^6 keys, 5 for 10^8, 6 for 10^9 and 10^10.
pub fn cuckoo_minimum_fingerprint(n: u64, slots_per_bucket: u32) -> u32 {
    let b = f64::from(slots_per_bucket.clamp(1, 64));
    let group = 2 * u64::from(slots_per_bucket.clamp(1, 64)) + 1;
    if n < group {
        return 1;
    }
    let n = n as f64;
    let ln_groups: f64 = (0..group).map(|i| ((n - i as f64) / (i + 1) as f64).ln()).sum();
    let buckets = n / (CUCKOO_LOAD * b);
    let unplaceable = |f: u32| {
        let share_both = 2.0 / (f64::from(f).exp2() * buckets);
        (ln_groups + 2.0 * b * share_both.ln()).exp()
    };
    (1..WIDEST).find(|f| unplaceable(*f) < UNPLACEABLE).unwrap_or(WIDEST)
}

/// Cells in a segment of a binary fuse filter, a power of two.
///
/// ```text
/// 3-wise: 2^floor(ln n / ln 3.33 + 2.25)        n keys        [GL22]
/// 4-wise: 2^floor(ln n / ln 2.91 - 0.5)
/// ```
///
/// Kept between 4 and 2^18 so that the cells of a key stay close together. An arity up to 3 is taken as 3, any other
/// as 4. At n = 10^6: 8192 for 3-wise, 4096 for 4-wise.
pub fn fuse_segment_length(arity: u32, n: u64) -> u64 {
    let ln = (n.max(1) as f64).ln();
    let exponent = if arity <= 3 { ln / 3.33f64.ln() + 2.25 } else { ln / 2.91f64.ln() - 0.5 };
    let length = exponent.floor().clamp(0.0, 63.0).exp2() as u64;
    length.clamp(SHORTEST_SEGMENT, LONGEST_SEGMENT)
}

/// Cells per key in a binary fuse filter.
///
/// ```text
/// 3-wise: max(1.125, 0.875 + 0.25 ln 10^6 / ln n)        n keys        [GL22]
/// 4-wise: max(1.075, 0.77 + 0.305 ln(6 * 10^5) / ln n)
/// ```
///
/// Fewer than two keys are taken as two, so the factor is finite. An arity up to 3 is taken as 3,
/// any other as 4. From n = 10^6: 1.125; at n = 10^4 3-wise: 1.25.
pub fn fuse_size_factor(arity: u32, n: u64) -> f64 {
    let ln = (n.max(2) as f64).ln();
    if arity <= 3 {
        (0.875 + 0.25 * 1e6f64.ln() / ln).max(1.125)
    } else {
        (0.77 + 0.305 * 6e5f64.ln() / ln).max(1.075)
    }
}

/// The smallest number of fingerprint bits whose chance matches meet a rate, 1 to 64.
///
/// ```text
/// min f  such that  2^-f <= p
/// ```
///
/// Exact at powers of two, where ceil(lg(1/p)) may round up. At 1/256: 8; at 1 %: 7; at 0.1 %: 10.
pub fn fingerprint_width(p: f64) -> u32 {
    let p = clamp_rate(p);
    (1..WIDEST).find(|f| (-f64::from(*f)).exp2() <= p).unwrap_or(WIDEST)
}

#[cfg(test)]
mod tests {
    use super::super::tests::close;
    use super::*;

    #[test]
    fn the_dleft_paper_point() {
        close(dleft_rate(10_000, 14, 240_000), 0.00146, 5e-3);
        close(dleft_rate(10_000, 12, 240_000), 0.0059, 0.01);
        close(dleft_rate(10_000, 15, 240_000), 0.00073, 5e-3);
        close(dleft_rate(10_000, 14, 280_000), 0.00171, 2e-3);
    }

    #[test]
    fn dleft_remainders_are_the_fewest() {
        assert_eq!(dleft_remainder_bits(10_000, 240_000, 0.01), 12);
        assert_eq!(dleft_remainder_bits(10_000, 240_000, 0.001), 15);
        assert_eq!(dleft_remainder_bits(10_000, 0, 0.001), 0);
        assert_eq!(dleft_remainder_bits(0, 1, 0.001), 64);
    }

    #[test]
    fn cuckoo_rates_match_measurements() {
        for (f, percent) in [(8, 2.95), (10, 0.735), (12, 0.184), (13, 0.091), (16, 0.012)] {
            close(100.0 * cuckoo_rate(f, 4, 0.95), percent, 0.04);
        }
        for (f, percent) in [(8, 2.94), (10, 0.7405), (12, 0.1854), (13, 0.0927)] {
            close(100.0 * cuckoo_rate(f, 4, 0.95), percent, 1e-3);
        }
        assert_eq!(cuckoo_rate(1, 4, 0.95), 1.0);
        assert_eq!(cuckoo_rate(8, 4, 0.0), 0.0);
    }

    #[test]
    fn cuckoo_fingerprints_are_the_fewest() {
        assert_eq!(cuckoo_fingerprint_bits(0.01, 4, 0.95), 10);
        assert_eq!(cuckoo_fingerprint_bits(0.001, 4, 0.95), 13);
        for p in [0.3, 0.03, 0.002, 1e-7] {
            let f = cuckoo_fingerprint_bits(p, 4, 0.95);
            assert!(cuckoo_rate(f, 4, 0.95) <= p && cuckoo_rate(f - 1, 4, 0.95) > p);
        }
    }

    #[test]
    fn large_cuckoo_tables_need_wider_fingerprints() {
        for (n, f) in
            [(8, 1), (1_000_000, 4), (100_000_000, 5), (1_000_000_000, 6), (10_000_000_000, 6)]
        {
            assert_eq!(cuckoo_minimum_fingerprint(n, 4), f, "{n}");
        }
    }

    #[test]
    fn fuse_segments_are_powers_of_two_within_bounds() {
        assert_eq!(fuse_segment_length(3, 1_000_000), 8192);
        assert_eq!(fuse_segment_length(4, 1_000_000), 4096);
        for arity in [3, 4] {
            assert_eq!(fuse_segment_length(arity, 0), 4);
            assert_eq!(fuse_segment_length(arity, 1), 4);
            assert_eq!(fuse_segment_length(arity, 10_000_000_000), 1 << 18);
            for n in (1..2_000).map(|i| i * i) {
                assert!(fuse_segment_length(arity, n).is_power_of_two());
            }
        }
    }

    #[test]
    fn fuse_factors_fall_to_their_floor() {
        close(fuse_size_factor(3, 1_000_000), 1.125, 1e-12);
        close(fuse_size_factor(3, 10_000), 1.25, 1e-12);
        close(fuse_size_factor(4, 10_000_000_000), 1.075, 1e-12);
        assert_eq!(fuse_size_factor(3, 0), fuse_size_factor(3, 2));
        for arity in [3, 4] {
            for n in 2..5_000 {
                assert!(fuse_size_factor(arity, n) >= fuse_size_factor(arity, n + 1));
            }
        }
    }

    #[test]
    fn widths_are_exact_at_powers_of_two() {
        for f in 1..=63 {
            let p = (-f64::from(f)).exp2();
            assert_eq!(fingerprint_width(p), f);
            assert_eq!(fingerprint_width(p * (1.0 - 1e-15)), f + 1);
        }
        assert_eq!(fingerprint_width(0.01), 7);
        assert_eq!(fingerprint_width(0.001), 10);
        assert_eq!(fingerprint_width(1.0), 1);
        assert_eq!(fingerprint_width(0.0), 64);
    }
}
