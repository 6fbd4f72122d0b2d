//! Flat, segmented and counting Bloom filters.
//!
//! A query for an absent key fails only if all k of its bits are set. The classic law treats the fraction of set bits
//! as a constant; in fact it is random, and the mean of a power exceeds the power of the mean. At ten bits per key the
//! difference is 24 % for 4 keys and 0.9 % for 100, so small filters sized by the classic law miss their rate.
//!
//! ```text
//! flat        [ . . x . . x . . . x . . ]      k probes anywhere in m bits
//! segmented   [ . x . . | . . . x | x . . . ]  one probe in each of k slices of m/k bits
//! ```

use super::mixture::poisson_mean;
use super::search::{greatest, least};
use super::{clamp_rate, hit_share};
use std::f64::consts::{E, LN_2};
use std::iter::once;

/// Maximum number of probes, enough for a rate of 2^-64, the floor of a 64-bit hash.
const MAX_PROBES: u32 = 64;

/// Up to this many keys the exact law is a recurrence of k * k n steps; above, a formula.
const RECURRENCE_KEYS: u64 = 64;

/// At this many throws per bit the filter is full: 64 e^-45 < 2^-53.
const FULL: f64 = 45.0;

/// Bits of a flat filter by the textbook formula.
///
/// ```text
/// m = -n ln p / ln^2 2        n keys, p rate        [Bloom70], [BM03]
/// ```
///
/// Assumes a fractional number of probes; [`bloom_shape`] does not. At n = 150 000, p = 1 %:
/// 1 437 758.76.
pub fn classic_bits(n: u64, p: f64) -> f64 {
    -(n as f64) * clamp_rate(p).ln() / (LN_2 * LN_2)
}

/// Number of probes with the lowest rate by the textbook formula, a fraction.
///
/// ```text
/// k = (m/n) ln 2        m bits, n keys        [BM03]
/// ```
///
/// No keys count as one. At m = 1 437 759, n = 150 000: 6.644.
pub fn classic_probes(m: u64, n: u64) -> f64 {
    m as f64 / n.max(1) as f64 * LN_2
}

/// Number of probes that the textbook pairs with a rate, a fraction.
///
/// ```text
/// k = -ln p / ln 2 = lg(1/p)        p rate        [BM03]
/// ```
///
/// Round it, never truncate: k = floor(lg(1/p)) with m = k n / ln 2 asks for 1 % and delivers
/// 2^-6 = 1.56 %. At p = 1 %: 6.644.
pub fn probes_for_rate(p: f64) -> f64 {
    -clamp_rate(p).log2()
}

/// Number of keys that m bits hold at a rate, by the textbook formula.
///
/// ```text
/// n = -m ln^2 2 / ln p        m bits, p rate        [BM03]
/// ```
///
/// At m = 1 437 759, p = 1 %: 150 000.03.
pub fn classic_capacity(m: u64, p: f64) -> f64 {
    -(m as f64) * LN_2 * LN_2 / clamp_rate(p).ln()
}

/// Rate of a flat filter by the asymptotic law.
///
/// ```text
/// p = (1 - e^(-k n / m))^k        m bits, k probes, n keys        [BM03, eq. 2]
/// ```
///
/// A lower bound of [`bloom_rate_exact`]. No bits or no probes: every query matches, p = 1. At m/n
/// = 10, k = 7: 0.00819; at m/n = 13, k = 8: 0.0020.
pub fn bloom_rate(m: u64, k: u32, n: u64) -> f64 {
    if m == 0 || k == 0 {
        return 1.0;
    }
    let k = f64::from(k);
    (-(-k * n as f64 / m as f64).exp_m1()).powf(k)
}

/// Bits per key for a whole number of probes: [`bloom_rate`] inverted.
///
/// ```text
/// c(k) = -k / ln(1 - p^(1/k))        k probes, p rate
/// ```
///
/// No probes count as one. At 1 %: 9.617, 9.593, 9.682 for k = 6, 7, 8, so dropping the
/// seventh probe costs 0.25 %. At 0.1 %: 14.425, 14.378, 14.419 for k = 9, 10, 11.
pub fn bits_per_key(k: u32, p: f64) -> f64 {
    let k = f64::from(k.max(1));
    -k / (-(clamp_rate(p).ln() / k).exp()).ln_1p()
}

/// Rate of a flat filter, with the variance of its fill.
///
/// ```text
/// p = E[(X/m)^k]        X bits set after k n throws into m        [CRJ10]
/// ```
///
/// Up to 64 keys this is computed exactly, by recurrence. Above that, from mean q and variance V of X/m:
///
/// ```text
/// p = q^k exp(k (k-1) V / (2 q^2))
/// q = 1 - q0,  q0 = (1 - 1/m)^(kn),  q1 = (1 - 2/m)^(kn)
/// V = (q0 - q1)/m + q1 - q0^2
/// ```
///
/// whose relative error is about k / (50 n^2) at half fill: 3e-5 at n = 65, k = 7. We have no proof
/// of that bound, only comparison with the recurrence. No bits or no probes: p = 1.
///
/// At m = 100, k = 7, n = 10: 0.00894, where the classic law says 0.00819.
pub fn bloom_rate_exact(m: u64, k: u32, n: u64) -> f64 {
    if m == 0 || k == 0 {
        return 1.0;
    }
    if n == 0 {
        return 0.0;
    }
    let throws = f64::from(k) * n as f64;
    if throws / m as f64 > FULL {
        1.0
    } else if n <= RECURRENCE_KEYS && k <= MAX_PROBES {
        rate_by_recurrence(m as f64, k as usize, u64::from(k) * n)
    } else {
        rate_by_moments(m as f64, f64::from(k), throws)
    }
}

/// E[(X/m)^k] from the point of view of the query, in steps that only add positive numbers.
///
/// ```text
/// h_t(r) = (r/m) h_(t-1)(r-1) + (1 - r/m) h_(t-1)(r)     r given bits are all set after t throws
/// d_i(j) = (j/m) d_(i-1)(j) + (1 - (j-1)/m) d_(i-1)(j-1) i query probes fall on j distinct bits
/// p      = sum_j d_k(j) h_kn(j)
/// ```
///
/// The occupancy law of X itself would take m k n steps; this takes k k n and does not depend on m.
fn rate_by_recurrence(m: f64, k: usize, throws: u64) -> f64 {
    const STATES: usize = MAX_PROBES as usize + 1;
    let most = k.min(m as usize);
    let share: [f64; STATES] = std::array::from_fn(|r| r as f64 / m);

    let mut all_set = [0.0; STATES];
    all_set[0] = 1.0;
    for _ in 0..throws {
        for r in (1..=most).rev() {
            all_set[r] += share[r] * (all_set[r - 1] - all_set[r]);
        }
    }

    let mut distinct = [0.0; STATES];
    distinct[0] = 1.0;
    for _ in 0..k {
        for j in (1..=most).rev() {
            distinct[j] = share[j] * distinct[j] + (1.0 - share[j - 1]) * distinct[j - 1];
        }
        distinct[0] = 0.0;
    }

    let rate: f64 = all_set.iter().zip(&distinct).map(|(set, met)| set * met).sum();
    rate.min(1.0)
}

/// The second-order form of [`bloom_rate_exact`].
///
/// At large m, q1 - q0^2 cancels all its digits; it is written q0^2 ((1 - 1/(m-1)^2)^(kn) - 1).
fn rate_by_moments(m: f64, k: f64, throws: f64) -> f64 {
    let q = hit_share(m, throws);
    let q0 = 1.0 - q;
    let q1 = if m > 2.0 { (throws * (-2.0 / m).ln_1p()).exp() } else { 0.0 };
    let pair = if m > 2.0 { throws * (-1.0 / ((m - 1.0) * (m - 1.0))).ln_1p() } else { f64::MIN };
    let variance = ((q0 - q1) / m + q0 * q0 * pair.exp_m1()).max(0.0);
    let excess = k * (k - 1.0) * variance / (2.0 * q * q);
    (k * q.ln() + excess).exp().min(1.0)
}

/// Rate of a segmented filter, exactly: slices are independent.
///
/// ```text
/// p = (1 - (1 - k/m)^n)^k        m bits in k slices, n keys        [BM03]
/// ```
///
/// Never below the flat rate; the difference vanishes as n grows. No bits or no probes: p = 1. At
/// m = 100, k = 7, n = 10: 0.00974 (flat: 0.00894).
pub fn segmented_rate(m: u64, k: u32, n: u64) -> f64 {
    if m == 0 || k == 0 {
        return 1.0;
    }
    let k = f64::from(k);
    hit_share(m as f64 / k, n as f64).powf(k)
}

/// Bits and probes of a Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomShape {
    /// All bits of the filter, m.
    pub bits: u64,
    /// Probes per key, k, from 1 to 64.
    pub probes: u32,
}

/// The smallest flat filter that meets a rate.
///
/// ```text
/// min m  such that  bloom_rate_exact(m, k, n) <= p  for a k in 1..=64; ties to the fewer probes
/// ```
///
/// Ends at `u64::MAX` bits if no filter suffices. At n = 150 000, p = 1 %: 1 438 946 bits, 7 probes
/// (9.593 per key; the classic 1 437 759 would give 1.004 %). At n = 10: 98 bits, 6 probes.
pub fn bloom_shape(n: u64, p: f64) -> BloomShape {
    least_shape(n, p, |_| 1, |m, k| bloom_rate_exact(m, k, n))
}

/// The smallest segmented filter that meets a rate; its bits are a multiple of its probes.
///
/// ```text
/// min m = k s  such that  segmented_rate(m, k, n) <= p  for a k in 1..=64; ties to fewer probes
/// ```
///
/// Ends at `u64::MAX` bits if no filter suffices. At n = 10, p = 1 %: 102 bits, 6 probes.
pub fn segmented_shape(n: u64, p: f64) -> BloomShape {
    least_shape(n, p, u64::from, |m, k| segmented_rate(m, k, n))
}

/// Tries every k, a likely one first: a k is searched only if it beats the best shape so far, and
/// evaluated only if the classic law, a lower bound of every `rate`, leaves it a chance.
fn least_shape(
    n: u64,
    p: f64,
    unit: impl Fn(u32) -> u64,
    rate: impl Fn(u64, u32) -> f64,
) -> BloomShape {
    let p = clamp_rate(p);
    let likely = probes_for_rate(p).round().clamp(1.0, f64::from(MAX_PROBES)) as u32;
    let mut best = BloomShape { bits: u64::MAX, probes: likely };
    for k in once(likely).chain(1..=MAX_PROBES) {
        let unit = unit(k);
        let keeps = |units: u64| rate(units.saturating_mul(unit), k) <= p;
        let to_beat = if k < best.probes { best.bits } else { best.bits - 1 };
        let limit = to_beat / unit;
        let floor = n as f64 * bits_per_key(k, p) / unit as f64;
        if limit == 0 || floor > limit as f64 + 1.0 || !keeps(limit) {
            continue;
        }
        best = BloomShape { bits: least(floor as u64, keeps).min(limit) * unit, probes: k };
    }
    best
}

/// The largest number of keys a flat filter of m bits holds at a rate, with the best number of probes for it.
///
/// ```text
/// max n  such that  bloom_rate_exact(m, k, n) <= p  for a k in 1..=64
/// ```
///
/// Inverse of [`bloom_shape`]. At m = 1 438 946, p = 1 %: 150 000.
pub fn bloom_capacity(m: u64, p: f64) -> u64 {
    let p = clamp_rate(p);
    let likely = probes_for_rate(p).round().clamp(1.0, f64::from(MAX_PROBES)) as u32;
    let mut best = 0u64;
    for k in once(likely).chain(1..=MAX_PROBES) {
        let keeps = |n: u64| bloom_rate_exact(m, k, n) <= p;
        let ceiling = m as f64 / bits_per_key(k, p);
        let next = best.saturating_add(1);
        if ceiling + 1.0 > best as f64 && keeps(next) {
            best = greatest(ceiling as u64, keeps).max(next);
        }
    }
    best
}

/// The number of probes, 1 to 64, with the lowest rate.
///
/// ```text
/// argmin_k bloom_rate_exact(m, k, n)        m bits, n keys; ties to the fewer probes
/// ```
///
/// Walks downhill from [`classic_probes`]. At m = 50, n = 5: 6, where (m/n) ln 2 = 6.93 suggests
/// 7.
pub fn best_probes(m: u64, n: u64) -> u32 {
    let rate = |k| bloom_rate_exact(m, k, n);
    let mut k = classic_probes(m, n).round().clamp(1.0, f64::from(MAX_PROBES)) as u32;
    while k < MAX_PROBES && rate(k + 1) < rate(k) {
        k += 1;
    }
    while k > 1 && rate(k - 1) <= rate(k) {
        k -= 1;
    }
    k
}

/// Number of keys in a filter, estimated from its set bits.
///
/// ```text
/// n = -(m/k) ln(1 - X/m)        m bits, k probes, X bits set        [SB07]
/// ```
///
/// Infinite when every bit is set, or, without probes, when any bit is. At m = 1000, k = 7, X = 503: 99.88.
pub fn estimate_len(m: u64, k: u32, ones: u64) -> f64 {
    if ones >= m {
        return f64::INFINITY;
    }
    if ones == 0 {
        return 0.0;
    }
    -(m as f64 / f64::from(k)) * (-(ones as f64) / m as f64).ln_1p()
}

/// Probability that a given counter of a counting filter reaches a limit.
///
/// ```text
/// P(Poisson(k n / m) >= limit)        m counters, k probes, n distinct keys        [FCAB00]
/// ```
///
/// Values below about 1e-100 are returned as 0. At k n / m = ln 2: 7.07e-17 for 16 (four-bit counters suffice), 7.2e-7
/// for 8 (three bits do not), 5.6e-3 for 4. Repeated keys are a different matter: the sixteenth copy fills a four-bit
/// counter by itself.
pub fn counter_overflow(m: u64, k: u32, n: u64, limit: u32) -> f64 {
    if limit == 0 {
        return 1.0;
    }
    let mean = f64::from(k) * n as f64 / m.max(1) as f64;
    let reach = 40.0 * mean.sqrt();
    if mean - reach > f64::from(limit) {
        return 1.0;
    }
    poisson_mean(mean, |j| if j >= u64::from(limit) { 1.0 } else { 0.0 }).min(1.0)
}

/// The textbook bound on [`counter_overflow`] at the optimum, k n / m <= ln 2.
///
/// ```text
/// P(counter >= limit) <= (e ln 2 / limit)^limit        [FCAB00]
/// ```
///
/// A limit of 0 gives 1. At 16: 1.37e-15, nineteen times the true value.
pub fn counter_overflow_bound(limit: u32) -> f64 {
    let limit = f64::from(limit);
    if limit == 0.0 { 1.0 } else { (E * LN_2 / limit).powf(limit) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::close;
    use super::*;

    #[test]
    fn the_textbook_sizes_seed_four() {
        assert!((classic_bits(150_000, 0.01) - 1_437_758.76).abs() < 0.005);
        close(classic_probes(1_437_759, 150_000), 6.644, 1e-4);
        close(probes_for_rate(0.01), 6.644, 1e-4);
        assert!((classic_capacity(1_437_759, 0.01) - 150_000.03).abs() < 0.01);
        close(bloom_rate_exact(1_437_759, 7, 150_000), 0.01004, 1e-3);
    }

    #[test]
    fn the_classic_law_at_ten_bits_a_key() {
        close(bloom_rate(10_000, 7, 1000), 0.00819, 1e-3);
    }

    #[test]
    fn the_articles_mistakes_are_mistakes() {
        let n = 1_000_000;
        close(bloom_rate(13 * n, 8, n), 0.0020, 0.02);
        let truncated = |p: f64| {
            let k = probes_for_rate(p).floor();
            bloom_rate((k * n as f64 / LN_2) as u64, k as u32, n)
        };
        close(truncated(0.01), 0.0156, 2e-3);
        close(truncated(0.1), 0.125, 1e-3);
    }

    #[test]
    fn bits_per_key_by_probes_match_the_table() {
        for (k, p, c) in [
            (6, 0.01, 9.617),
            (7, 0.01, 9.593),
            (8, 0.01, 9.682),
            (9, 0.001, 14.425),
            (10, 0.001, 14.378),
            (11, 0.001, 14.419),
        ] {
            assert!((bits_per_key(k, p) - c).abs() < 0.0005, "{k} {p}");
        }
    }

    #[test]
    fn small_filters_pay_for_variance() {
        for (n, flat, flat_ratio, segmented, segmented_ratio) in [
            (4, 0.01012, 1.24, 0.01284, 1.57),
            (10, 0.00894, 1.09, 0.00974, 1.19),
            (100, 0.00827, 1.009, 0.00833, 1.017),
        ] {
            let classic = bloom_rate(10 * n, 7, n);
            close(bloom_rate_exact(10 * n, 7, n), flat, 6e-4);
            close(bloom_rate_exact(10 * n, 7, n) / classic, flat_ratio, 4e-3);
            close(segmented_rate(10 * n, 7, n), segmented, 6e-4);
            close(segmented_rate(10 * n, 7, n) / classic, segmented_ratio, 4e-3);
        }
        let classic = bloom_rate(100_000, 7, 10_000);
        close(bloom_rate_exact(100_000, 7, 10_000) / classic, 1.0001, 5e-5);
        close(segmented_rate(100_000, 7, 10_000) / classic, 1.0002, 5e-5);
    }

    /// The occupancy law itself: the distribution of set bits, one throw at a time.
    fn rate_by_occupancy(m: usize, k: u32, n: u64) -> f64 {
        let mut set = vec![0.0; m + 1];
        set[0] = 1.0;
        for _ in 0..u64::from(k) * n {
            for x in (1..=m).rev() {
                set[x] =
                    set[x] * (x as f64 / m as f64) + set[x - 1] * ((m - x + 1) as f64 / m as f64);
            }
            set[0] = 0.0;
        }
        (0..=m).map(|x| set[x] * (x as f64 / m as f64).powi(k as i32)).sum()
    }

    #[test]
    fn the_recurrence_is_the_occupancy_law() {
        for (m, k, n) in
            [(1, 1, 1), (2, 5, 1), (7, 3, 2), (40, 7, 4), (100, 7, 10), (60, 64, 3), (150, 14, 8)]
        {
            close(bloom_rate_exact(m, k, n), rate_by_occupancy(m as usize, k, n), 1e-11);
        }
    }

    #[test]
    fn the_moments_meet_the_recurrence_at_the_seam() {
        for (c, k, tolerance) in [(10, 7, 4e-5), (20, 14, 8e-5), (72, 50, 4e-4), (5, 2, 2e-5)] {
            let (m, throws) = ((c * RECURRENCE_KEYS) as f64, k * RECURRENCE_KEYS);
            let exact = rate_by_recurrence(m, k as usize, throws);
            close(rate_by_moments(m, k as f64, throws as f64), exact, tolerance);
        }
    }

    #[test]
    fn exact_flat_lies_between_classic_and_segmented() {
        for n in [1, 2, 5, 20, 63, 64, 65, 1000, 1_000_000, 10_000_000_000] {
            for k in [1, 2, 7, 14, 30] {
                let m = n * 2 * u64::from(k);
                let (low, flat, high) =
                    (bloom_rate(m, k, n), bloom_rate_exact(m, k, n), segmented_rate(m, k, n));
                let slack = 1.0 + 1e-9;
                assert!(low <= flat * slack && flat <= high * slack, "{m} {k} {n}");
            }
        }
    }

    #[test]
    fn segmented_keeps_its_digits_at_a_hundred_billion_bits() {
        close(segmented_rate(100_000_000_000, 7, 10_000_000_000), 0.008193722, 1e-6);
        close(segmented_rate(100_000_000_000, 1, 1), 1e-11, 1e-12);
    }

    #[test]
    fn shapes_match_their_worked_numbers() {
        assert_eq!(bloom_shape(150_000, 0.01), BloomShape { bits: 1_438_946, probes: 7 });
        assert_eq!(bloom_shape(10, 0.01), BloomShape { bits: 98, probes: 6 });
        assert_eq!(segmented_shape(10, 0.01), BloomShape { bits: 102, probes: 6 });
        assert_eq!(bloom_capacity(1_438_946, 0.01), 150_000);
        assert_eq!(best_probes(50, 5), 6);
    }

    #[test]
    fn a_shape_is_the_least_of_all_probes_and_bits() {
        for n in 1..=10 {
            for p in [0.9, 0.5, 0.1, 0.03, 0.01, 0.001] {
                let mut bits = 1;
                let probes = loop {
                    let keeps = |k: &u32| bloom_rate_exact(bits, *k, n) <= p;
                    if let Some(k) = (1..=MAX_PROBES).find(keeps) {
                        break k;
                    }
                    bits += 1;
                };
                assert_eq!(bloom_shape(n, p), BloomShape { bits, probes }, "{n} {p}");
            }
        }
    }

    #[test]
    fn a_segmented_shape_is_the_least_of_all_multiples() {
        for n in 1..=10 {
            for p in [0.9, 0.5, 0.1, 0.03, 0.01, 0.001] {
                let mut bits = 1;
                let probes = loop {
                    let keeps =
                        |k: &u32| bits % u64::from(*k) == 0 && segmented_rate(bits, *k, n) <= p;
                    if let Some(k) = (1..=MAX_PROBES).find(keeps) {
                        break k;
                    }
                    bits += 1;
                };
                assert_eq!(segmented_shape(n, p), BloomShape { bits, probes }, "{n} {p}");
            }
        }
    }

    #[test]
    fn shapes_keep_the_rate_and_one_bit_less_does_not() {
        for n in [1, 7, 64, 65, 1000, 123_456, 10_000_000_000] {
            for p in [0.3, 0.01, 1e-6, 1e-15] {
                let flat = bloom_shape(n, p);
                assert!(bloom_rate_exact(flat.bits, flat.probes, n) <= p);
                assert!(bloom_rate_exact(flat.bits - 1, flat.probes, n) > p);
                let slices = segmented_shape(n, p);
                assert_eq!(slices.bits % u64::from(slices.probes), 0);
                assert!(segmented_rate(slices.bits, slices.probes, n) <= p);
                let fewer = slices.bits - u64::from(slices.probes);
                assert!(segmented_rate(fewer, slices.probes, n) > p);
            }
        }
    }

    #[test]
    fn shapes_grow_with_keys_and_shrink_with_rate() {
        let rates = [0.5, 0.2, 0.05, 0.01, 0.001, 1e-6];
        for n in 1..200 {
            for p in rates {
                assert!(bloom_shape(n, p).bits < bloom_shape(n + 1, p).bits, "{n} {p}");
                assert!(segmented_shape(n, p).bits <= segmented_shape(n + 1, p).bits, "{n} {p}");
            }
            for pair in rates.windows(2) {
                assert!(bloom_shape(n, pair[0]).bits < bloom_shape(n, pair[1]).bits);
                assert!(segmented_shape(n, pair[0]).bits < segmented_shape(n, pair[1]).bits);
            }
        }
    }

    #[test]
    fn capacity_inverts_shape() {
        for n in (1..100).chain([1000, 99_999, 1_000_000, 10_000_000_000]) {
            for p in [0.3, 0.01, 1e-4, 1e-9] {
                let bits = bloom_shape(n, p).bits;
                assert_eq!(bloom_capacity(bits, p), n, "{n} {p}");
                assert_eq!(bloom_capacity(bits - 1, p), n - 1, "{n} {p}");
            }
        }
        assert_eq!(bloom_capacity(0, 0.01), 0);
    }

    #[test]
    fn no_other_number_of_probes_beats_the_best() {
        for n in [0, 1, 2, 3, 5, 10, 50, 65, 500] {
            for m in [1, 2, 3, 5, 10, 20, 50, 100, 500, 5000] {
                let rate = |k| bloom_rate_exact(m, k, n);
                let best = best_probes(m, n);
                for k in 1..=MAX_PROBES {
                    assert!(rate(best) <= rate(k), "{m} {n}: {best} against {k}");
                    assert!(k >= best || rate(best) < rate(k), "{m} {n}: tie of {best} and {k}");
                }
            }
        }
    }

    #[test]
    fn len_is_estimated_from_set_bits() {
        close(estimate_len(1000, 7, 503), 99.88, 1e-4);
        assert_eq!(estimate_len(1000, 7, 0), 0.0);
        assert_eq!(estimate_len(1000, 7, 1000), f64::INFINITY);
        let (m, k, n) = (1 << 20, 7, 100_000);
        let ones = (m as f64 * hit_share(m as f64, f64::from(k) * n as f64)) as u64;
        close(estimate_len(m, k, ones), n as f64, 1e-4);
    }

    #[test]
    fn four_bit_counters_do_not_overflow_and_three_bit_ones_do() {
        let (m, k) = (1_000_000_000_000, 1);
        let n = (m as f64 * LN_2) as u64;
        close(counter_overflow(m, k, n, 16), 7.07e-17, 1e-3);
        close(counter_overflow(m, k, n, 8), 7.2e-7, 0.01);
        close(counter_overflow(m, k, n, 4), 5.6e-3, 0.01);
        assert_eq!(counter_overflow(m, k, n, 0), 1.0);
        close(counter_overflow_bound(16), 1.37e-15, 5e-3);
        assert!(counter_overflow_bound(16) > 19.0 * counter_overflow(m, k, n, 16));
    }
}
