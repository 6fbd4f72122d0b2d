//! A windowed filter remembers its window without exception, forgets what is older, and keeps its rate.

use std::collections::VecDeque;
use std::time::Duration;

use crate::mapped;
use ironbloom::hash::mix64;
use ironbloom::{Persist, Windowed, WindowedParams};
use ironbloom_testing::TemporaryFile;
use proptest::prelude::*;

/// Hashes of a seeded sequence of distinct keys.
fn hashes(seed: u64, len: u64) -> Vec<u64> {
    (0..len).map(|i| mix64(seed << 40 | i)).collect()
}

fn share_found(filter: &Windowed, hashes: &[u64]) -> f64 {
    let mut found = vec![false; hashes.len()];
    filter.contains_hashes(hashes, &mut found);
    found.iter().filter(|&&found| found).count() as f64 / hashes.len() as f64
}

/// Numbers of inserts remembered for certain, and after which nothing is left of a key.
fn horizon(params: WindowedParams) -> (u64, u64) {
    let (probes, ages) = (u64::from(params.probes()), u64::from(params.ages()));
    (ages * params.generation(), (ages + probes) * params.generation())
}

/// In steady state, just before a generation ends: the worst moment. The rate of one filling of a small filter
/// varies far more than its queries do, so small windows are refilled and queried many times.
#[test]
fn the_rate_is_kept_in_steady_state() {
    for (window, fillings) in [(10, 20_000), (1000, 400), (100_000, 4)] {
        for rate in [0.1, 0.01, 0.001] {
            let mut filter = Windowed::for_keys(window, rate).unwrap();
            let (_, gone) = horizon(filter.params());
            let rest = filter.params().generation() - 1;
            let mut keys = (0..).map(|i| mix64(1 << 40 | i));
            let mut insert = |filter: &mut Windowed, len: u64| {
                filter.insert_hashes(&keys.by_ref().take(len as usize).collect::<Vec<_>>());
            };
            insert(&mut filter, gone + rest);
            let asked = 1_000_000 / fillings;
            let (mut sum, mut squares, mut estimates) = (0.0, 0.0, 0.0);
            for filling in 0..fillings {
                let share = share_found(&filter, &hashes(1000 + filling, asked));
                sum += share;
                squares += share * share;
                estimates += filter.estimate_rate();
                insert(&mut filter, gone);
            }
            let fillings = fillings as f64;
            let mean = sum / fillings;
            // Binomial variance of the queries, and the observed variance of the fillings.
            let binomial = rate * (1.0 - rate) / (fillings * asked as f64);
            let seen = (squares / fillings - mean * mean) / fillings;
            let sigma = binomial.max(seen).sqrt();
            let label =
                format!("{window} {rate}: {mean:.6}, estimated {:.6}", estimates / fillings);
            assert!(mean <= rate + 4.5 * sigma, "{label}");
            assert!((mean - estimates / fillings).abs() <= 4.5 * sigma, "{label}");
            // A generation ends with its last key, so a small one is never quite as full as planned.
            assert!(window == 10 || mean > 0.9 * rate - 4.5 * sigma, "{label}");
            assert!(filter.params().rate() <= rate, "{label}");
        }
    }
}

/// All keys of the window are found, those whose bits are gone only at the rate; in between they fade.
#[test]
fn keys_fade_after_the_window_and_are_gone_after_all_slices() {
    let mut filter = Windowed::for_keys(100_000, 0.01).unwrap();
    let (certain, gone) = horizon(filter.params());
    let keys = hashes(1, 3 * gone);
    filter.insert_hashes(&keys);
    let newest_first: Vec<u64> = keys.into_iter().rev().collect();
    let [window, fading, old] =
        [0..certain, certain + filter.params().generation()..gone, gone..2 * gone]
            .map(|range| &newest_first[range.start as usize..range.end as usize]);
    assert_eq!(share_found(&filter, window), 1.0);
    let share = share_found(&filter, old);
    let sigma = (0.01 * 0.99 / old.len() as f64).sqrt();
    assert!(share <= 0.01 + 4.5 * sigma, "{share}");
    let share = share_found(&filter, fading);
    assert!((0.02..0.5).contains(&share), "{share}");
    let estimate = filter.estimate_len() / filter.len() as f64;
    assert!((estimate - 1.0).abs() < 0.01, "{estimate}");
}

#[test]
fn every_insert_refreshes_its_key() {
    let mut filter = Windowed::for_keys(1000, 1e-6).unwrap();
    assert!(filter.insert("kept"));
    for key in 0..50_000u32 {
        if key % 900 == 0 {
            assert!(!filter.insert("kept"), "{key}");
        }
        filter.insert(key.to_le_bytes());
    }
    assert!(filter.contains("kept"));
    assert!(!filter.contains(10_000u32.to_le_bytes()));
    assert!(!filter.is_over_capacity());
}

#[test]
fn a_hash_twice_in_a_batch_is_new_only_the_first_time() {
    let mut filter = Windowed::for_keys(1000, 1e-6).unwrap();
    let twice: Vec<u64> = hashes(2, 300).into_iter().flat_map(|hash| [hash, hash]).collect();
    let mut new = vec![false; 600];
    filter.insert_each(&twice, &mut new);
    assert!(new.chunks(2).all(|pair| pair == [true, false]));
    filter.insert_each(&twice, &mut new);
    assert_eq!(new, [false; 600]);
    assert_eq!(
        filter.len(),
        1200.min(horizon(filter.params()).0 + 1200 % filter.params().generation())
    );
    filter.clear();
    assert!(filter.is_empty() && share_found(&filter, &twice) == 0.0);
}

#[test]
fn a_key_is_remembered_for_its_span_and_forgotten_after_a_tick_more() {
    let span = Duration::from_secs(600);
    let mut filter = Windowed::for_time(span, 1000, 1e-4).unwrap();
    let (tick, slices) =
        (filter.params().tick().unwrap(), filter.params().probes() + filter.params().ages());
    assert!(tick * filter.params().ages() >= span);
    let origin = Duration::from_secs(1_700_000_000);
    for offset in [Duration::ZERO, tick / 3, tick - Duration::from_nanos(1)] {
        filter.clear();
        filter.advance_to(origin);
        filter.advance_to(origin + offset);
        assert!(filter.insert("key"));
        filter.advance_to(origin - span); // backwards: ignored
        for second in 0..=600 {
            filter.advance_to(origin + offset + Duration::from_secs(second));
            assert!(filter.contains("key"), "forgotten after {second} s");
        }
        filter.advance_to(origin + offset + tick * (filter.params().ages() + 1));
        assert!(!filter.contains("key") && filter.is_empty());
        filter = Windowed::for_time(span, 1000, 1e-4).unwrap();
    }
    filter.advance_to(origin);
    filter.insert("key");
    filter.advance_to(origin + tick * slices * 1000);
    assert_eq!((filter.contains("key"), filter.estimate_len()), (false, 0.0));
    filter.advance_to(Duration::MAX);
    filter.advance_to(Duration::MAX);
}

/// A busier span than planned raises the rate, but no key is forgotten.
#[test]
fn too_many_keys_in_a_span_are_all_remembered() {
    let mut filter = Windowed::for_time(Duration::from_secs(100), 1000, 0.01).unwrap();
    filter.advance_to(Duration::ZERO);
    assert!(!filter.is_over_capacity());
    filter.insert_hashes(&hashes(3, filter.params().generation()));
    assert!(!filter.is_over_capacity());
    let keys = hashes(4, 3000);
    filter.insert_hashes(&keys);
    assert!(filter.is_over_capacity());
    filter.advance_to(Duration::from_secs(100));
    assert_eq!(share_found(&filter, &keys), 1.0);
    assert!(filter.is_over_capacity() && filter.estimate_rate() > 0.01);
    filter.advance_to(Duration::from_secs(1000));
    assert!(!filter.is_over_capacity() && share_found(&filter, &keys) == 0.0);
}

#[test]
fn the_rate_is_kept_with_a_clock_too() {
    let mut filter = Windowed::for_time(Duration::from_secs(60), 60_000, 0.01).unwrap();
    let (tick, generation) = (filter.params().tick().unwrap(), filter.params().generation());
    for i in 0..100u32 {
        filter.advance_to(tick * i);
        filter.insert_hashes(&hashes(10 + u64::from(i), generation));
    }
    let share = share_found(&filter, &hashes(5, 1_000_000));
    let sigma = (0.01f64 * 0.99 / 1e6).sqrt();
    assert!(share <= 0.01 + 4.5 * sigma, "{share}");
    assert!(!filter.is_over_capacity());
}

#[test]
fn windows_that_cannot_be_kept_are_refused() {
    assert!(WindowedParams::for_keys(0, 0.01).is_err());
    assert!(WindowedParams::for_keys(u64::MAX, 0.01).is_err());
    for rate in [0.0, 1.0, f64::NAN, 1e-30] {
        assert!(WindowedParams::for_keys(1000, rate).is_err(), "{rate}");
    }
    for span in [Duration::ZERO, Duration::MAX] {
        assert!(WindowedParams::for_time(span, 1000, 0.01).is_err(), "{span:?}");
    }
    assert!(WindowedParams::for_time(Duration::from_nanos(1), 1000, 0.01).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, rng_seed: prop::test_runner::RngSeed::Fixed(9), failure_persistence: None, ..Default::default() })]

    /// Compares with the list of the last inserts, through files and maps; a copy that was never saved stays equal.
    #[test]
    fn everything_in_the_window_is_found(
        window in 1u64..300,
        exponent in 1i32..4,
        steps in prop::collection::vec((0u8..4, 1usize..200, 0u64..1000), 1..12),
    ) {
        let mut filter = Windowed::for_keys(window, 0.1f64.powi(exponent)).unwrap();
        let mut copy = filter.clone();
        let mut model = VecDeque::new();
        let path = TemporaryFile::new("ibf");
        for (step, len, from) in steps {
            for hash in (from..from + len as u64).map(mix64) {
                let new = filter.insert_hash(hash);
                prop_assert!(!(new && model.contains(&hash)), "told new, but was there");
                model.push_back(hash);
                if model.len() as u64 > window {
                    model.pop_front();
                }
                prop_assert!(filter.contains_hash(model[0]) && filter.contains_hash(hash));
            }
            copy.insert_hashes(&(from..from + len as u64).map(mix64).collect::<Vec<_>>());
            prop_assert_eq!(&filter, &copy);
            prop_assert!(model.iter().all(|&hash| filter.contains_hash(hash)));
            prop_assert!(filter.len() >= model.len() as u64);
            filter.save(&path).unwrap();
            match step {
                0 => {}
                1 => filter = Windowed::from_bytes(&filter.to_bytes()).unwrap(),
                2 => filter = mapped::map::<Windowed>(&path).unwrap(),
                _ => filter = Windowed::load(&path).unwrap(),
            }
        }
    }

    /// Compares with the list of inserts with their times; in a loaded filter, the clock resumes where it stopped.
    #[test]
    fn everything_in_the_span_is_found(
        span in 1u64..100_000,
        steps in prop::collection::vec((0u64..40_000, 0usize..30, any::<bool>()), 1..30),
    ) {
        let span = Duration::from_micros(span);
        let mut filter = Windowed::for_time(span, 100, 0.01).unwrap();
        let mut copy = filter.clone();
        let mut model: Vec<(Duration, u64)> = Vec::new();
        let (mut now, mut key) = (Duration::from_secs(1_000_000), 0);
        for (step, inserts, reload) in steps {
            now += Duration::from_micros(step);
            filter.advance_to(now);
            copy.advance_to(now);
            model.retain(|&(then, _)| now - then <= span);
            prop_assert!(model.iter().all(|&(_, hash)| filter.contains_hash(hash)));
            for _ in 0..inserts {
                key += 1;
                filter.insert_hash(mix64(key));
                copy.insert_hash(mix64(key));
                model.push((now, mix64(key)));
            }
            prop_assert!(filter.len() >= model.len() as u64);
            if reload {
                filter = Windowed::from_bytes(&filter.to_bytes()).unwrap();
            }
            prop_assert_eq!(&filter, &copy);
        }
    }
}
