//! Every state that operations can reach is one that files bring back.

use super::*;
use crate::hash::SplitMix64;

/// What always holds, and what a file keeps. The digest that came back.
fn assert_kept(digest: &TDigest) -> TDigest {
    assert!(digest.nodes.len() as u64 <= digest.capacity(), "more nodes than there is room for");
    let mut merged = digest.clone();
    merged.compress();
    assert!(merged.nodes.is_sorted_by(|one, two| one.mean <= two.mean), "{:?}", merged.nodes);
    if let [first, ..] = merged.nodes[..] {
        let last = merged.nodes[merged.nodes.len() - 1];
        assert!(merged.min <= first.mean && last.mean <= merged.max);
    }
    assert_eq!(merged.nodes.iter().map(|node| node.weight).sum::<i64>(), digest.weight());
    let bytes = digest.to_bytes();
    let back = TDigest::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}: {digest:?}"));
    if digest.weight() < i64::MAX / 2 {
        assert_eq!(back.to_bytes(), bytes);
    }
    back
}

fn doubled(digest: &mut TDigest) -> TDigest {
    let mut twice = TDigest::new(digest.compression()).unwrap();
    twice.merge(&mut digest.clone()).unwrap();
    twice.merge(digest).unwrap();
    twice
}

/// Numbers of a few orders of magnitude, now and then the largest ones.
fn number(random: &mut SplitMix64) -> f64 {
    let number = random.next_u64();
    let part = ((number >> 8) % 2001) as f64 - 1000.0;
    match number % 8 {
        0 => part / 1000.0 * f64::MAX,
        1 => part * 1e-300,
        2 => part / 3.0 * 1e10,
        3 => (part / 100.0).round(),
        _ => part / 7.0,
    }
}

#[test]
fn every_reachable_state_survives_itself() {
    for round in 0..300 {
        let mut random = SplitMix64(round);
        let compression = [1, 1, 2, 3, 10, 100][random.next_u64() as usize % 6];
        let mut digest = TDigest::new(compression).unwrap();
        for _ in 0..60 {
            let _ = match random.next_u64() % 8 {
                0 => {
                    let weight = (1 << (random.next_u64() % 63)) + (random.next_u64() % 3) as i64;
                    digest.add(number(&mut random), weight)
                }
                1 | 2 if digest.weight() < i64::MAX / 2 => {
                    digest = doubled(&mut digest);
                    Ok(())
                }
                3 => {
                    digest.compress();
                    Ok(())
                }
                4 => {
                    let mut other = TDigest::new(1 + random.next_u64() % 5).unwrap();
                    for _ in 0..random.next_u64() % 100 {
                        other.add(number(&mut random), 1).unwrap();
                    }
                    digest.merge(&mut other)
                }
                5 if random.next_u64().is_multiple_of(4) => {
                    digest = assert_kept(&digest);
                    Ok(())
                }
                _ => {
                    let count = random.next_u64() % (8 * compression + 20);
                    let numbers: Vec<f64> = (0..count).map(|_| number(&mut random)).collect();
                    digest.add_each(&numbers)
                }
            };
            assert_kept(&digest);
        }
    }
}

/// To the right of a weight of 2^62, no other node is a share of the whole that a double can tell from none.
#[test]
fn numbers_beside_a_weight_that_dwarfs_them_are_kept() {
    for compression in 1..=5 {
        let mut digest = TDigest::new(compression).unwrap();
        digest.add(0.0, 1).unwrap();
        for _ in 0..62 {
            digest = doubled(&mut digest);
        }
        for number in 1..=100 {
            digest.add(f64::from(number), 1).unwrap();
            assert_kept(&digest);
        }
        digest.compress();
        let back = assert_kept(&digest);
        assert_eq!((back.min(), back.max()), (0.0, 100.0));
        assert!(digest.merged_nodes() as u64 <= digest.capacity());
        assert_eq!(digest.weight(), (1 << 62) + 100);
    }
}

#[test]
fn the_sum_of_rounded_weights_may_be_beyond_the_largest() {
    let mut digest = TDigest::new(1).unwrap();
    digest.add(1.0, i64::MAX - 5).unwrap();
    digest.add_each(&[2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let back = assert_kept(&digest);
    assert_eq!((back.weight(), back.max(), back.merged_nodes()), (i64::MAX, 6.0, 6));
}

#[test]
fn counters_at_their_end_stay_there() {
    let mut digest = TDigest::new(1).unwrap();
    digest.compressions = i64::MAX;
    digest.add(1.0, 1).unwrap();
    digest.compress();
    assert_eq!(assert_kept(&digest).compressions(), i64::MAX);
}

/// Fields that no digest has are refused; what rounding in RedisBloom moves is not.
#[test]
fn means_are_in_order_between_minimum_and_maximum() {
    let with = |min: f64, max: f64, means: [f64; 3]| {
        let mut digest = TDigest::new(1).unwrap();
        digest.add_each(&[0.0; 3]).unwrap();
        digest.compress();
        (digest.min, digest.max) = (min, max);
        for (node, mean) in digest.nodes.iter_mut().zip(means) {
            node.mean = mean;
        }
        TDigest::from_bytes(&digest.to_bytes())
    };
    assert!(with(1.0, 3.0, [1.0, 2.0, 3.0]).is_ok());
    for (min, max, means) in [
        (1.0, 3.0, [3.0, 1.0, 2.0]),
        (1.0, 3.0, [1.0, 3.0, 2.0]),
        (50.0, -50.0, [0.0; 3]),
        (50.0, -50.0, [50.0, 0.0, -50.0]),
        (1.5, 3.0, [1.0, 2.0, 3.0]),
        (1.0, 2.5, [1.0, 2.0, 3.0]),
        (f64::NEG_INFINITY, 3.0, [1.0, 2.0, 3.0]),
        (1.0, f64::NAN, [1.0, 2.0, 3.0]),
        (1.0, 3.0, [1.0, f64::NAN, 3.0]),
    ] {
        assert!(with(min, max, means).is_err(), "{min} {max} {means:?}");
    }
    let above = 1.0 + 4.0 * f64::EPSILON;
    let back = with(1.0, 3.0, [above, 1.0, 3.0]).unwrap();
    assert_eq!(back.nodes[1].mean, above);
}

/// The largest numbers have distances and sums that are none.
#[test]
fn answers_about_the_largest_numbers_are_numbers() {
    let numbers = [-f64::MAX, -1e308, -1.0, 0.0, 1.0, 1e308, f64::MAX];
    for copies in [1, 3, 40] {
        let mut digest = TDigest::new(1).unwrap();
        for _ in 0..copies {
            digest.add_each(&numbers).unwrap();
        }
        let mut before = (0.0, f64::NEG_INFINITY);
        for number in numbers {
            let cdf = digest.cdf(number);
            assert!(cdf >= before.0 && cdf <= 1.0, "cdf of {number:e}: {cdf} after {before:?}");
            let rank = digest.rank(number).unwrap();
            assert!((0..=digest.weight()).contains(&rank), "rank of {number:e}: {rank}");
            let rank = digest.reverse_rank(number).unwrap();
            assert!((0..=digest.weight()).contains(&rank), "reverse rank of {number:e}: {rank}");
            before.0 = cdf;
        }
        for i in 0..=20 {
            let quantile = digest.quantile(f64::from(i) / 20.0);
            assert!(quantile.is_finite() && quantile >= before.1, "{i}/20: {quantile:e}");
            before.1 = quantile;
        }
        let mean = digest.trimmed_mean(0.0, 1.0);
        assert!(mean.abs() <= 1e300, "{mean:e}");
    }
    let mut digest = TDigest::new(100).unwrap();
    digest.add_each(&[f64::MAX; 10]).unwrap();
    assert_eq!(digest.trimmed_mean(0.0, 1.0), f64::MAX);
}
