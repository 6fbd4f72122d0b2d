//! The number of bits that n keys set: mean and variance, and the maximum that chance can explain.
//!
//! The bits of a filter depend on *which* keys were inserted, not on their order, their multiplicity or the way they
//! were inserted (batch, threads, union). So they show whether there are more keys than planned, while a count of
//! inserts that looked new does not.

/// Mean and variance of the number of bits set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Occupancy {
    mean: f64,
    variance: f64,
}

/// The tolerance for chance: 5 standard deviations are exceeded once in 3.5 million.
const SIGMAS: f64 = 5.0;

/// Bits of a flat filter.
///
/// ```text
/// mean = m (1 - q0)          q0 = (1 - 1/m)^(kn),  q1 = (1 - 2/m)^(kn)
/// V    = m (q0 - q1) + m^2 (q1 - q0^2)             m bits, k probes, n keys
/// ```
///
/// At m = 1 437 759, k = 7, n = 150 000: 745 100 ± 340.
pub(crate) fn bloom_occupancy(m: u64, k: u32, n: u64) -> Occupancy {
    throws(m as f64, f64::from(k) * n as f64)
}

/// Bits of a segmented filter: k slices of m/k bits, each with one throw per key, independent of each other.
///
/// At m = 700, k = 7, n = 100: 443.8 ± 8.26.
pub(crate) fn segmented_occupancy(m: u64, k: u32, n: u64) -> Occupancy {
    let k = f64::from(k.max(1));
    let Occupancy { mean, variance } = throws(m as f64 / k, n as f64);
    Occupancy { mean: k * mean, variance: k * variance }
}

/// Bits of a filter of blocks: a key picks one of `blocks` and a bit in each of its `lanes` of `lane_bits`.
///
/// Each lane over all blocks is n throws into B·L bits, variance V1. But lanes share the loads of their blocks, which
/// correlates them by C:
///
/// ```text
/// V = lanes V1 + lanes (lanes - 1) C
/// C = B e^(-2λ/L) (L^2 (e^(λ/L^2) - 1) - λ)        λ = n/B, L bits a lane
/// ```
///
/// (C: the variance of Σ L (1 - 1/L)^X over the loads X of the blocks, Poisson and conditioned on their sum n.) At 1000
/// blocks of 8 lanes of 64 bits and n = 50 000: 277 591 ± 216.
pub(crate) fn split_block_occupancy(blocks: u64, lanes: u32, lane_bits: u32, n: u64) -> Occupancy {
    let (b, lanes, l) = (blocks as f64, f64::from(lanes), f64::from(lane_bits));
    let one = throws(b * l, n as f64);
    let load = n as f64 / b;
    let shared = b * (-2.0 * load / l).exp() * (l * l * (load / (l * l)).exp_m1() - load);
    let variance = lanes * one.variance + lanes * (lanes - 1.0) * shared.max(0.0);
    Occupancy { mean: lanes * one.mean, variance }
}

/// Number of bins hit by `throws` throws.
fn throws(bins: f64, throws: f64) -> Occupancy {
    if bins <= 1.0 {
        return Occupancy { mean: bins.min(throws), variance: 0.0 };
    }
    let missed = throws * (-1.0 / bins).ln_1p();
    let q0 = missed.exp();
    let q1 = if bins > 2.0 { (throws * (-2.0 / bins).ln_1p()).exp() } else { 0.0 };
    // q1 - q0² cancels all its digits in large filters; this is equivalent.
    let pair =
        if bins > 2.0 { throws * (-1.0 / ((bins - 1.0) * (bins - 1.0))).ln_1p() } else { f64::MIN };
    let variance = bins * (q0 - q1) + bins * bins * q0 * q0 * pair.exp_m1();
    Occupancy { mean: -bins * missed.exp_m1(), variance: variance.max(0.0) }
}

impl Occupancy {
    /// More set bits than this indicate more keys. If nearly all `bits` are set, half of the remaining ones are enough:
    /// at rates above 90 % five deviations would exceed all bits.
    pub(crate) fn most(self, bits: u64) -> u64 {
        let bound = self.mean + SIGMAS * self.variance.sqrt();
        bits.min(bound.min((self.mean + bits as f64) / 2.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use crate::sizing::tests::close;

    #[test]
    fn the_worked_numbers_are_right() {
        let flat = bloom_occupancy(1_437_759, 7, 150_000);
        close(flat.mean, 745_100.0, 1e-5);
        close(flat.variance.sqrt(), 340.0, 0.01);
        let segmented = segmented_occupancy(700, 7, 100);
        close(segmented.mean, 443.8, 1e-3);
        close(segmented.variance.sqrt(), 8.26, 0.001);
        let blocked = split_block_occupancy(1000, 8, 64, 50_000);
        close(blocked.mean, 277_591.0, 1e-3);
        close(blocked.variance.sqrt(), 216.0, 0.01);
    }

    /// Mean and deviation of 4000 random trials must lie within 4.5 sigma, √(V / 4000) and V √(2 / 4000).
    fn compare(name: &str, law: Occupancy, mut ones: impl FnMut(u64) -> f64) {
        const ROUNDS: f64 = 4000.0;
        let found: Vec<f64> = (0..ROUNDS as u64).map(&mut ones).collect();
        let mean = found.iter().sum::<f64>() / ROUNDS;
        let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / ROUNDS;
        let off = (mean - law.mean).abs() / (law.variance / ROUNDS).sqrt();
        assert!(off < 4.5, "{name}: mean {mean}, not {}", law.mean);
        let off = (variance / law.variance - 1.0).abs() / (2.0 / ROUNDS).sqrt();
        assert!(off < 4.5, "{name}: variance {variance}, not {}", law.variance);
    }

    #[test]
    fn mean_and_variance_are_those_of_throwing() {
        let at = |round: u64, i: u64, n: u64| mix64(round << 32 | i) % n;
        compare("flat", bloom_occupancy(100, 7, 10), |round| {
            let mut set = [0u64; 2];
            (0..70)
                .map(|i| at(round, i, 100))
                .for_each(|bit| set[bit as usize / 64] |= 1 << (bit % 64));
            set.iter().map(|word| f64::from(word.count_ones())).sum()
        });
        compare("blocks", split_block_occupancy(4, 8, 32, 100), |round| {
            let mut set = [[0u32; 8]; 4];
            for key in 0..100 {
                let block = at(round, 9 * key, 4) as usize;
                (0..8).for_each(|lane| {
                    set[block][lane] |= 1 << at(round, 9 * key + 1 + lane as u64, 32);
                });
            }
            set.iter().flatten().map(|lane| f64::from(lane.count_ones())).sum()
        });
    }

    #[test]
    fn a_filter_of_one_block_or_one_bit_has_no_luck() {
        assert!(split_block_occupancy(1, 8, 64, 10).variance < 8.0);
        assert_eq!(segmented_occupancy(7, 7, 10).variance, 0.0);
        assert_eq!(bloom_occupancy(1, 1, 5).most(1), 1);
        for n in [0, 1, u64::MAX] {
            assert!(bloom_occupancy(u64::MAX >> 4, 64, n).most(u64::MAX >> 4) <= u64::MAX >> 4);
        }
    }
}
