//! Filters for streams: scalable ones that grow, windowed ones that forget.
//!
//! A scalable filter adds a larger, stricter stage whenever the last one is full; the rates of the stages form a
//! geometric series whose sum is the requested rate. A windowed filter turns a ring of slices, so that old keys fade as
//! their slices are cleared:
//!
//! ```text
//! age       0   1   2   3   4   5        k = 3, l = 3
//! slice   [ g ][2g ][3g ][3g ][3g ][3g ] keys seen by each at the end of a generation
//!           ^   ^   ^                    an insert sets one bit in each of the k youngest
//!               x   x   x                a query needs k neighbours with their bit set
//! ```
//!
//! After every generation of g keys the oldest slice is cleared and becomes the youngest. A key set
//! in ages 0..k reaches ages l..k+l after l generations and is still found; so the last l g keys
//! are always remembered.

use super::bloom::classic_bits;
use super::search::least;
use super::{clamp_rate, hit_share};

/// Maximum number of slices, k + l, of a window: a query touches up to all of them.
pub(crate) const MAX_SLICES: u32 = 48;

/// Cap on the numbers of stages, probes and ages.
const MAX_TERMS: u32 = 1024;

/// A product of fills below this may have lost digits, or be zero, and is not divided further.
const LEAST_PRODUCT: f64 = 1e-200;

/// Rate of one stage of a scalable filter.
///
/// ```text
/// p_i = P (1 - r) r^i        P rate of the whole, r tightening, i stage from 0        [ABPH07]
/// ```
///
/// The sum over all stages is P, however many there are. At P = 1 %, r = 0.5: 0.5 % for stage 0, 0.25 % for stage 1.
pub fn scalable_stage_rate(p: f64, tightening: f64, stage: u32) -> f64 {
    clamp_rate(p) * (1.0 - clamp_rate(tightening)) * clamp_rate(tightening).powf(f64::from(stage))
}

/// Bits per key of a scalable filter whose stages are all full.
///
/// ```text
/// sum_i s^i c(p_i) / sum_i s^i,   c(p) = lg(1/p) / ln 2     s growth, i stage from 0     [ABPH07]
/// ```
///
/// Stages are taken as 1 to 1024 and growth as at least 1. At P = 1 %, s = 2 for 1, 4, 8, 12 stages: 11.0, 14.3, 19.7,
/// 25.5 with r = 0.5; 13.5, 14.3, 15.6, 16.9 with r = 0.85; so a tight series is cheap at first and expensive later.
pub fn scalable_bits_per_key(p: f64, growth: u64, tightening: f64, stages: u32) -> f64 {
    let growth = growth.max(1) as f64;
    let (mut keys, mut bits) = (0.0, 0.0);
    let mut share = 1.0;
    for stage in (0..stages.clamp(1, MAX_TERMS)).rev() {
        keys += share;
        bits += share * classic_bits(1, scalable_stage_rate(p, tightening, stage));
        share /= growth;
    }
    bits / keys
}

/// Probability that k neighbours in a row of independent bits are all set.
///
/// ```text
/// a_s = f_s f_(s+1) ... f_(s+k-1)                  the k bits from s on are set
/// R_s = R_(s-1) + a_s (1 - f_(s-1)) (1 - R_(s-1-k)),   R_0 = a_0,   R_(negative) = 0
/// p   = R_(n-k)                                    [SBA20]
/// ```
///
/// n bits, f_i the chance that bit i is set. R_s is the probability that a run of k set bits starts at s or before: the
/// first run starts at s if its bits are set, the bit before is not, and no run ended before that. The recurrence adds
/// only positive terms, so small rates keep their digits. k = 0: p = 1; k larger than the number of bits: p = 0.
///
/// Two heads in a row in three throws of a coin: 3/8.
pub fn run_rate(k: u32, fills: &[f64]) -> f64 {
    let k = k as usize;
    if k == 0 {
        return 1.0;
    }
    if fills.len() < k {
        return 0.0;
    }
    let mut run: f64 = fills[..k].iter().product();
    let mut found = Vec::with_capacity(fills.len() - k + 1);
    found.push(run);
    for start in 1..=fills.len() - k {
        let before = fills[start - 1];
        run = if run > LEAST_PRODUCT {
            run * fills[start + k - 1] / before
        } else {
            fills[start..start + k].iter().product()
        };
        let earlier = if start > k { found[start - 1 - k] } else { 0.0 };
        found.push(found[start - 1] + run * (1.0 - before) * (1.0 - earlier));
    }
    found[fills.len() - k].min(1.0)
}

/// Rate of an age-partitioned filter at its worst moment, the end of a generation.
///
/// ```text
/// f_i = 1 - (1 - 1/w)^(g (min(i, k-1) + 1))        share set in the slice of age i
/// p   = run_rate(k, f_0 ... f_(k+l-1))             [SBA20]
/// ```
///
/// k probes, l ages remembered, g keys per generation, w bits per slice. No probes or no bits: p = 1. Probes and ages
/// are taken as at most 1024.
///
/// At k = 3, l = 3, g = 100, w = 1000: 4.27 %.
pub fn windowed_rate(k: u32, l: u32, generation: u64, slice_bits: u64) -> f64 {
    if k == 0 || slice_bits == 0 {
        return 1.0;
    }
    if generation == 0 {
        return 0.0;
    }
    let (k, l) = (k.min(MAX_TERMS), l.min(MAX_TERMS));
    let (keys, bits) = (generation as f64, slice_bits as f64);
    let mut fills: Vec<f64> = (1..=k).map(|age| hit_share(bits, f64::from(age) * keys)).collect();
    fills.resize((k + l) as usize, fills[k as usize - 1]);
    run_rate(k, &fills)
}

/// Shape of an age-partitioned filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowShape {
    /// Slices set by an insert and neighbours needed by a query, k.
    pub probes: u32,
    /// Generations remembered in full, l. The filter has `probes + ages` slices.
    pub ages: u32,
    /// Keys in a generation, g.
    pub generation: u64,
    /// Bits in a slice, w.
    pub slice_bits: u64,
}

/// The smallest age-partitioned filter that remembers a window of keys at a rate.
///
/// ```text
/// min (k + l) w  such that  l g >= window,  windowed_rate(k, l, g, w) <= p,  k + l <= 48
/// ```
///
/// Ties go to fewer probes, then to fewer ages. Saturates when the bits would not fit 64 bits. At a window of 10^6 keys
/// and 1 %: 10 probes, 38 ages, 19.73 bits per key.
pub fn window_shape(window: u64, p: f64) -> WindowShape {
    let p = clamp_rate(p);
    let mut best = WindowShape { probes: 1, ages: 1, generation: window, slice_bits: u64::MAX / 2 };
    let mut least_bits = u64::MAX;
    for k in 1..MAX_SLICES {
        for l in 1..=MAX_SLICES - k {
            let slices = u64::from(k + l);
            let generation = window.div_ceil(u64::from(l)).max(1);
            let keeps = |bits: u64| windowed_rate(k, l, generation, bits) <= p;
            let limit = (least_bits - 1) / slices;
            if limit == 0 || !keeps(limit) {
                continue;
            }
            let slice_bits = least(slice_guess(k, generation, p), keeps).min(limit);
            best = WindowShape { probes: k, ages: l, generation, slice_bits };
            least_bits = slices * slice_bits;
        }
    }
    best
}

/// Bits of a slice if every slice were as full as the oldest and only one run were tried.
fn slice_guess(k: u32, generation: u64, p: f64) -> u64 {
    let k = f64::from(k);
    (-k * generation as f64 / (-p.powf(1.0 / k)).ln_1p()) as u64
}

#[cfg(test)]
mod tests {
    use super::super::tests::close;
    use super::*;

    #[test]
    fn stage_rates_sum_to_the_whole() {
        close(scalable_stage_rate(0.01, 0.5, 0), 0.005, 1e-12);
        close(scalable_stage_rate(0.01, 0.5, 1), 0.0025, 1e-12);
        let sum: f64 = (0..2000).map(|i| scalable_stage_rate(0.01, 0.85, i)).sum();
        close(sum, 0.01, 1e-9);
    }

    #[test]
    fn bits_per_key_of_full_stages_match_the_table() {
        for (r, row) in [
            (0.5, [11.0, 14.3, 19.7, 25.5]),
            (0.85, [13.5, 14.3, 15.6, 16.9]),
            (0.9, [14.4, 14.9, 15.7, 16.6]),
        ] {
            for (stages, c) in [1, 4, 8, 12].into_iter().zip(row) {
                let found = scalable_bits_per_key(0.01, 2, r, stages);
                assert!((found - c).abs() <= 0.0501, "{r} {stages}: {found}");
            }
        }
    }

    /// P(k neighbours set) by the length of the run that ends at each slice.
    fn rate_by_run_length(k: usize, l: usize, generation: u64, slice_bits: u64) -> f64 {
        let mut run = vec![0.0; k + 1];
        run[0] = 1.0;
        for age in 0..k + l {
            let keys = (age.min(k - 1) + 1) as i32 * generation as i32;
            let set = 1.0 - (1.0 - 1.0 / slice_bits as f64).powi(keys);
            let mut next = vec![0.0; k + 1];
            next[k] = run[k];
            for length in 0..k {
                next[0] += run[length] * (1.0 - set);
                next[length + 1] += run[length] * set;
            }
            run = next;
        }
        run[k]
    }

    #[test]
    fn the_recurrence_is_the_law_of_runs() {
        for (k, l, generation, slice_bits) in
            [(3, 3, 100, 1000), (1, 5, 10, 100), (5, 1, 10, 100), (4, 20, 50, 300), (10, 7, 9, 64)]
        {
            let found = windowed_rate(k, l, generation, slice_bits);
            close(found, rate_by_run_length(k as usize, l as usize, generation, slice_bits), 1e-10);
        }
        close(windowed_rate(3, 3, 100, 1000), 0.0427, 2e-3);
    }

    #[test]
    fn runs_are_counted_in_any_row_of_bits() {
        close(run_rate(2, &[0.5; 3]), 3.0 / 8.0, 1e-15);
        assert_eq!(
            (run_rate(0, &[]), run_rate(3, &[1.0; 2]), run_rate(2, &[1.0; 5])),
            (1.0, 0.0, 1.0)
        );
        let fills = [0.0, 0.9, 0.3, 0.0, 0.7, 0.6, 1.0, 0.2];
        for k in 1..=fills.len() {
            let chance = |row: u32| -> f64 {
                let bit =
                    |(i, &fill): (usize, &f64)| if row >> i & 1 == 1 { fill } else { 1.0 - fill };
                fills.iter().enumerate().map(bit).product()
            };
            let has_run = |row: &u32| {
                (0..=fills.len() - k).any(|s| (row >> s) & ((1 << k) - 1) == (1 << k) - 1)
            };
            let naive: f64 = (0..1u32 << fills.len()).filter(has_run).map(chance).sum();
            assert!((run_rate(k as u32, &fills) - naive).abs() < 1e-14, "{k}: {naive}");
        }
    }

    #[test]
    fn a_row_of_tiny_fills_does_not_hide_a_later_run() {
        let mut fills = vec![1e-12; 40];
        fills.extend([0.5; 40]);
        close(run_rate(40, &fills), 0.5f64.powi(40), 1e-9);
    }

    #[test]
    fn one_probe_over_one_age_is_two_slices() {
        let set = 1.0 / 50.0;
        close(windowed_rate(1, 1, 1, 50), 1.0 - (1.0 - set) * (1.0 - set), 1e-12);
        assert_eq!(windowed_rate(2, 2, 0, 50), 0.0);
        assert_eq!(windowed_rate(2, 2, 5, 1), 1.0);
    }

    #[test]
    fn window_shapes_keep_their_promises() {
        for window in [1, 2, 3, 5, 7, 10, 1000, 12_345, 1_000_000_000] {
            for p in [0.1, 0.01, 1e-4] {
                let shape = window_shape(window, p);
                let WindowShape { probes, ages, generation, slice_bits } = shape;
                assert!(u64::from(ages) * generation >= window, "{shape:?}");
                assert!(probes + ages <= MAX_SLICES, "{shape:?}");
                assert!(windowed_rate(probes, ages, generation, slice_bits) <= p, "{shape:?}");
                assert!(windowed_rate(probes, ages, generation, slice_bits - 1) > p, "{shape:?}");
            }
        }
    }

    #[test]
    fn a_million_keys_at_one_percent_take_twenty_bits_a_key() {
        let shape = window_shape(1_000_000, 0.01);
        assert_eq!((shape.probes, shape.ages), (10, 38));
        close(48.0 * shape.slice_bits as f64 / 1e6, 19.73, 5e-4);
        let stricter = window_shape(1_000_000, 0.001);
        close(
            f64::from(stricter.probes + stricter.ages) * stricter.slice_bits as f64 / 1e6,
            27.2,
            2e-3,
        );
    }

    #[test]
    fn no_smaller_window_exists() {
        let total = |shape: WindowShape| u64::from(shape.probes + shape.ages) * shape.slice_bits;
        for window in [1, 2, 5, 10, 100] {
            for p in [0.1, 0.01] {
                let best = total(window_shape(window, p));
                for k in 1..MAX_SLICES {
                    for l in 1..=MAX_SLICES - k {
                        let (slices, g) = (u64::from(k + l), window.div_ceil(u64::from(l)));
                        let fewer = (best - 1) / slices;
                        assert!(windowed_rate(k, l, g, fewer) > p, "{window} {p}: {k} {l}");
                    }
                }
            }
        }
    }

    #[test]
    fn windows_grow_with_keys_and_shrink_with_rate() {
        let total = |window, p| {
            let shape = window_shape(window, p);
            u64::from(shape.probes + shape.ages) * shape.slice_bits
        };
        for window in (1..20).map(|i| i * i) {
            assert!(total(window, 0.01) <= total(window + 1, 0.01));
            assert!(total(window, 0.01) < total(window, 0.001));
        }
    }
}
