//! Averages over a random number of keys.
//!
//! Keys choose their block at random, so the number j in one block is binomial (Poisson in the
//! limit) and the rate of the filter is the mean of the rate of a block, E[g(j)]. We start at the
//! most likely j with weight 1, walk outwards by the ratio of neighbouring weights, and divide by
//! the sum of the weights at the end: no factorials, no logarithms, no cancellation.

/// Weights below this share of the greatest one are dropped.
const NEGLIGIBLE: f64 = 1e-100;

/// E[g(j)] for j ~ Poisson(lambda).
///
/// ```text
/// w(j+1) / w(j) = lambda / (j+1)
/// ```
pub(super) fn poisson_mean(lambda: f64, g: impl Fn(u64) -> f64) -> f64 {
    mean_from(lambda as u64, |j| lambda / (j + 1) as f64, g)
}

/// E[g(j)] for j ~ Binomial(n, 1/blocks), `blocks >= 2`.
///
/// ```text
/// w(j+1) / w(j) = (n-j) / ((j+1) (blocks-1))
/// ```
pub(super) fn binomial_mean(n: u64, blocks: u64, g: impl Fn(u64) -> f64) -> f64 {
    let others = (blocks - 1) as f64;
    mean_from(n / blocks, |j| n.saturating_sub(j) as f64 / ((j + 1) as f64 * others), g)
}

/// Weighted mean of `g`, where `ratio(j)` is w(j+1)/w(j) and falls below 1 for good after `mode`.
fn mean_from(mode: u64, ratio: impl Fn(u64) -> f64, g: impl Fn(u64) -> f64) -> f64 {
    let (mut weights, mut sum) = (1.0, g(mode));
    let (mut weight, mut j) = (ratio(mode), mode + 1);
    while weight >= NEGLIGIBLE {
        weights += weight;
        sum += weight * g(j);
        weight *= ratio(j);
        j += 1;
    }
    weight = 1.0;
    for j in (0..mode).rev() {
        weight /= ratio(j);
        if weight < NEGLIGIBLE {
            break;
        }
        weights += weight;
        sum += weight * g(j);
    }
    sum / weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_moment_is_the_mean() {
        for lambda in [0.0, 0.1, 1.0, 25.6, 1000.5] {
            let mean = poisson_mean(lambda, |j| j as f64);
            assert!((mean - lambda).abs() <= 1e-12 * lambda, "{lambda}: {mean}");
        }
        let mean = binomial_mean(1_000, 7, |j| j as f64);
        assert!((mean - 1_000.0 / 7.0).abs() < 1e-10, "{mean}");
    }

    #[test]
    fn a_binomial_never_exceeds_its_trials() {
        assert_eq!(binomial_mean(3, 2, |j| if j > 3 { 1.0 } else { 0.0 }), 0.0);
        let all = binomial_mean(3, 2, |j| if j == 3 { 1.0 } else { 0.0 });
        assert!((all - 0.125).abs() < 1e-15, "{all}");
    }
}
