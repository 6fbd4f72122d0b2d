//! Filters of several attributes: how often a verification value collides.
//!
//! A parallel Bloom filter forgets which values occurred in the same row. A verification value v, a sum over the p q
//! hash values of the row, is stored to check that. Hash values are uniform in 0..m, so their sum is close to normal,
//! and a wrong row passes if its v is that of one of the n rows:
//!
//! ```text
//! f = E[1 - exp(-n phi_s(v))],  v ~ N(0, s)        n / (2 s sqrt(pi)) while that is small
//!
//! s = m sqrt(p q / 12)                              plain sum
//! s = 2^q m sqrt(p (1 - 4^-q)) / 6                  sum of H_j / 2^j, counted in units of 2^-q
//! s = m sqrt(p (1 - 4^-q)) / 6                      the same, rounded to whole numbers
//! ```
//!
//! m grows with n, so the rate does not depend on n: a larger filter is no better at this. The
//! derivation is ours; `tests/multi.rs` measures it.

use std::f64::consts::TAU;

/// Beyond this many standard deviations nothing is left to sum.
const FAR: f64 = 8.0;

/// Intervals of Simpson's rule.
const STEPS: u32 = 1000;

/// Simpson's rule.
fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / f64::from(STEPS);
    let weight = |i: u32| match i {
        0 | STEPS => 1.0,
        _ => f64::from(2 + 2 * (i % 2)),
    };
    (0..=STEPS).map(|i| weight(i) * f(from + step * f64::from(i))).sum::<f64>() * step / 3.0
}

/// The density of the standard normal distribution.
fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / TAU.sqrt()
}

/// Rate of a verification value with this standard deviation among n rows.
fn collision_rate(n: u64, deviation: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let rows = n as f64 / deviation;
    integral(-FAR, FAR, |z| density(z) * -(-rows * density(z)).exp_m1()).clamp(0.0, 1.0)
}

/// Standard deviation of sum H_j / 2^j over p attributes of q hash values below m.
fn weighted_deviation(m: u64, attributes: u32, probes: u32) -> f64 {
    let quarters = 1.0 - 0.25f64.powi(probes.min(64) as i32);
    m as f64 * (f64::from(attributes) * quarters).sqrt() / 6.0
}

/// Rate at which a plain sum mistakes an unknown row of known values for a known row.
///
/// ```text
/// s = m sqrt(p q / 12)        m counters per hash function, q functions, p attributes
/// ```
///
/// At m = n / ln 2, q = 7: 16.3 % for two attributes, 10.7 % for five.
pub fn sum_rate(n: u64, m: u64, attributes: u32, probes: u32) -> f64 {
    let terms = f64::from(attributes) * f64::from(probes);
    collision_rate(n, m as f64 * (terms / 12.0).sqrt())
}

/// Rate at which a weighted sum, kept to its last bit, mistakes an unknown row of known values for a known row.
///
/// ```text
/// s = 2^q m sqrt(p (1 - 4^-q)) / 6        in units of 2^-q
/// ```
///
/// At m = n / ln 2, q = 7: 0.646 % for two attributes, 0.409 % for five.
pub fn weighted_sum_rate(n: u64, m: u64, attributes: u32, probes: u32) -> f64 {
    collision_rate(n, weighted_deviation(m, attributes, probes) * f64::from(probes).exp2())
}

/// Like [`weighted_sum_rate`], if only the integer part of the sum is kept.
///
/// ```text
/// s = m sqrt(p (1 - 4^-q)) / 6
/// ```
///
/// At m = n / ln 2, q = 7: 53.8 % for two attributes, 39.5 % for five.
pub fn truncated_sum_rate(n: u64, m: u64, attributes: u32, probes: u32) -> f64 {
    collision_rate(n, weighted_deviation(m, attributes, probes))
}

/// The claimed upper bound on the rate of a weighted sum. It is not an upper bound: see [`truncated_sum_rate`].
///
/// ```text
/// 2 Phi(n / 2s') - 1,   s' = p (m - 1)(2^q - 1) / (2 sqrt(3) 2^q)
/// ```
///
/// s' is the range of v divided by sqrt(12), as if all hash values rose and fell together. At
/// m = n / ln 2, q = 7: 45.5 % for two attributes, 19.1 % for five.
pub fn claimed_sum_bound(n: u64, m: u64, attributes: u32, probes: u32) -> f64 {
    let whole = 1.0 - (-f64::from(probes)).exp2();
    let deviation = f64::from(attributes) * m.saturating_sub(1) as f64 * whole / 12f64.sqrt();
    let reach = (n as f64 / (2.0 * deviation)).min(FAR);
    (2.0 * integral(0.0, reach, density)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::close;
    use super::*;
    use std::f64::consts::PI;

    const N: u64 = 100_000;
    /// n / ln 2, where half of the counters are in use.
    const M: u64 = 144_270;
    const LARGE: u64 = 958_500;

    /// Worked examples, to the digits given.
    #[test]
    fn rates_of_the_sums_are_the_worked_numbers() {
        let table = [
            (2, 0.163, 0.00646, 0.538, 0.455, 0.0268, 0.073),
            (3, 0.136, 0.00528, 0.472, 0.313, 0.0220, 0.048),
            (4, 0.119, 0.00457, 0.428, 0.238, 0.0191, 0.036),
            (5, 0.107, 0.00409, 0.395, 0.191, 0.0171, 0.029),
        ];
        for (p, sum, weighted, truncated, bound, large_sum, large_bound) in table {
            close(sum_rate(N, M, p, 7), sum, 0.005);
            close(weighted_sum_rate(N, M, p, 7), weighted, 0.002);
            close(truncated_sum_rate(N, M, p, 7), truncated, 0.002);
            close(claimed_sum_bound(N, M, p, 7), bound, 0.003);
            close(sum_rate(N, LARGE, p, 7), large_sum, 0.003);
            close(claimed_sum_bound(N, LARGE, p, 7), large_bound, 0.02);
            assert!(truncated_sum_rate(N, M, p, 7) > claimed_sum_bound(N, M, p, 7));
        }
    }

    #[test]
    fn small_rates_follow_the_first_term() {
        let deviation = weighted_deviation(LARGE, 2, 7) * 128.0;
        let first = N as f64 / (2.0 * deviation * PI.sqrt());
        close(weighted_sum_rate(N, LARGE, 2, 7), first, 0.001);
    }

    #[test]
    fn the_rate_does_not_depend_on_the_number_of_rows() {
        close(sum_rate(1000 * N, 1000 * M, 3, 7), sum_rate(N, M, 3, 7), 1e-9);
    }

    #[test]
    fn nonsense_gives_a_rate_all_the_same() {
        for (n, m, p, q) in [(0, 0, 0, 0), (1, 0, 1, 1), (u64::MAX, 1, 1, 64), (5, u64::MAX, 9, 1)]
        {
            for rate in [sum_rate, weighted_sum_rate, truncated_sum_rate, claimed_sum_bound] {
                let rate = rate(n, m, p, q);
                assert!((0.0..=1.0).contains(&rate), "{n} {m} {p} {q}: {rate}");
            }
        }
    }
}
