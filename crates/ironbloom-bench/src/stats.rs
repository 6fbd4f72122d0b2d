//! Medians and quartiles. Noise on a shared machine is one-sided and large; means would measure the neighbours.

/// Returns the value below which this share of the samples lies, interpolated linearly between two samples. `None`
/// without samples.
pub(crate) fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// The median.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// Speed of `ours` relative to `theirs`: the median over the rounds, in each of which both ran within moments of each
/// other.
pub(crate) fn speedup(ours: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| theirs / ours).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_samples() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&samples), Some(3.0));
        assert_eq!(quantile(&samples, 0.25), Some(2.0));
        assert_eq!(quantile(&samples, 1.0), Some(5.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_slow_round_that_hits_both_does_not_change_the_ratio() {
        assert_eq!(speedup(&[10.0, 90.0, 11.0], &[20.0, 180.0, 22.0]), Some(2.0));
        assert_eq!(speedup(&[10.0], &[]), None);
    }
}
