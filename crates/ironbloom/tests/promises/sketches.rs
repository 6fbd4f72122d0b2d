//! Sketches keep their bounds, whatever is added, merged, saved and loaded.

use std::collections::HashMap;

use ironbloom::sketches::{
    CountMin, CountMinPlan, MergeError, PlanError, Sketch, SketchFileError, TDigest, TopK, TopKPlan,
};
use ironbloom_testing::{Random, TemporaryFile};
use proptest::prelude::*;

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    Add(u8, u16),
    AddMany(Vec<(u8, u16)>),
    Merge(Vec<(u8, u16)>),
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    let pairs = || prop::collection::vec(any::<(u8, u16)>(), 0..40);
    prop_oneof![
        any::<(u8, u16)>().prop_map(|(key, count)| Step::Add(key, count)),
        pairs().prop_map(Step::AddMany),
        pairs().prop_map(Step::Merge),
        Just(Step::Reload),
    ]
}

fn add_all(sketch: &mut CountMin, pairs: &[(u8, u16)]) {
    let keys: Vec<[u8; 1]> = pairs.iter().map(|pair| [pair.0]).collect();
    let counts: Vec<u64> = pairs.iter().map(|pair| u64::from(pair.1)).collect();
    sketch.add_each(&keys, &counts, &mut vec![0; keys.len()]);
}

proptest! {
    #[test]
    fn counts_are_never_below_the_truth(
        width in 1u64..60,
        depth in 1u64..20,
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let mut sketch = CountMin::new(width, depth).unwrap();
        let mut truth: HashMap<u8, u64> = HashMap::new();
        for step in &steps {
            let added = match step {
                Step::Add(key, count) => {
                    sketch.add([*key], u64::from(*count));
                    &[(*key, *count)][..]
                }
                Step::AddMany(pairs) => {
                    add_all(&mut sketch, pairs);
                    pairs
                }
                Step::Merge(pairs) => {
                    let mut other = CountMin::new(width, depth).unwrap();
                    add_all(&mut other, pairs);
                    sketch.merge(&other).unwrap();
                    pairs
                }
                Step::Reload => {
                    sketch = CountMin::from_bytes(&sketch.to_bytes()).unwrap();
                    &[]
                }
            };
            for (key, count) in added {
                *truth.entry(*key).or_default() += u64::from(*count);
            }
        }
        prop_assert_eq!(sketch.total(), truth.values().sum::<u64>());
        for (key, count) in truth {
            prop_assert!(u64::from(sketch.count([key])) >= count);
        }
    }

    /// One key after the other, in batches, and in two sketches that are merged: the same bytes.
    #[test]
    fn batches_and_merges_equal_adding_one_key_after_the_other(
        depth in 1u64..20,
        pairs in prop::collection::vec(any::<(u8, u16)>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut alone = CountMin::new(50, depth).unwrap();
        let mut found = Vec::new();
        for (key, count) in &pairs {
            found.push(alone.add([*key], u64::from(*count)));
        }
        let mut batched = CountMin::new(50, depth).unwrap();
        let keys: Vec<[u8; 1]> = pairs.iter().map(|pair| [pair.0]).collect();
        let counts: Vec<u64> = pairs.iter().map(|pair| u64::from(pair.1)).collect();
        let mut each = vec![0; keys.len()];
        batched.add_each(&keys, &counts, &mut each);
        prop_assert_eq!(&found, &each);
        prop_assert!(alone == batched);
        alone.count_each(&keys, &mut each);
        prop_assert!(keys.iter().zip(&each).all(|(key, &count)| alone.count(key) == count));
        let (left, right) = pairs.split_at(cut.index(pairs.len() + 1));
        let mut merged = CountMin::new(50, depth).unwrap();
        add_all(&mut merged, left);
        let mut other = CountMin::new(50, depth).unwrap();
        add_all(&mut other, right);
        merged.merge(&other).unwrap();
        prop_assert!(merged == alone);
    }
}

/// The bound of the plan holds for all but the share of keys that the plan allows. Counts of a power law, 20,000 keys.
#[test]
fn counts_exceed_the_truth_by_the_planned_share_at_most() {
    for (error, probability) in [(0.01, 0.1), (0.001, 0.01), (0.0005, 0.3)] {
        let mut sketch = CountMin::with_error(error, probability).unwrap();
        let keys: Vec<String> = (0..20_000).map(|i| format!("key{i}")).collect();
        let count = |i: usize| 100_000 / (i as u64 + 1) + 1;
        for (i, key) in keys.iter().enumerate() {
            sketch.add(key, count(i));
        }
        let bound = (error * sketch.total() as f64) as u64;
        let is_over = |(i, key): (usize, &String)| u64::from(sketch.count(key)) > count(i) + bound;
        let over = keys.iter().enumerate().filter(|&entry| is_over(entry)).count();
        let allowed = (probability * keys.len() as f64) as usize;
        assert!(over <= allowed, "{over} of {allowed} keys above the bound of {bound}");
    }
}

#[test]
fn plans_are_redisblooms() {
    for (error, probability, width, depth) in [
        (0.001, 0.01, 2000, 7),
        (0.1, 0.5, 20, 1),
        (0.999, 0.25, 3, 2),
        (0.3, 1e-45, 7, 149),
        (0.002, 0.125, 1000, 3),
        (0.01, 0.9, 200, 1),
    ] {
        let plan = CountMinPlan::for_error(error, probability);
        assert_eq!(plan, Ok(CountMinPlan { width, depth }), "{error} {probability}");
    }
    for (error, probability) in
        [(0.01, 1e-50), (0.01, 0.999_999_999_99), (1e-300, 0.01), (1e-18, 0.01), (0.0, 0.1)]
    {
        assert!(CountMinPlan::for_error(error, probability).is_err(), "{error} {probability}");
    }
    assert!(matches!(CountMin::new(1 << 40, 1000), Err(PlanError::Memory { .. })));
    assert!(matches!(CountMin::new(0, 5), Err(PlanError::Param { .. })));
    assert!(matches!(CountMin::new(u64::MAX, u64::MAX), Err(PlanError::Param { .. })));
}

#[test]
fn full_cells_stay_full_and_merges_refuse_what_they_cannot_hold() {
    let mut sketch = CountMin::new(10, 2).unwrap();
    assert_eq!(sketch.add("a", u64::from(u32::MAX) - 1), u32::MAX - 1);
    assert_eq!(sketch.add("a", 1), u32::MAX);
    assert_eq!(sketch.add("a", u64::MAX), u32::MAX);
    let mut small = CountMin::new(10, 2).unwrap();
    small.add("a", 5);
    let before = small.clone();
    let mut large = CountMin::new(10, 2).unwrap();
    large.add("a", u64::from(u32::MAX) - 1);
    assert_eq!(small.merge(&large), Err(MergeError::Overflow));
    assert_eq!(small.merge(&CountMin::new(11, 2).unwrap()), Err(MergeError::Differs));
    assert!(small == before);
    let sum = CountMin::sum(&[(&large, 1), (&small, -3)]).unwrap();
    assert_eq!(sum.count("a"), u32::MAX - 16);
    assert_eq!(CountMin::sum(&[(&small, i64::MAX)]), Err(MergeError::Overflow));
    assert_eq!(CountMin::sum(&[(&small, -1)]), Err(MergeError::Overflow));
}

#[test]
fn files_come_back_and_damage_is_noticed() {
    let mut sketch = CountMin::new(40, 3).unwrap();
    for i in 0..100u32 {
        sketch.add(i.to_le_bytes(), u64::from(i));
    }
    let file = TemporaryFile::new("ibs");
    sketch.save(file.path()).unwrap();
    assert!(CountMin::load(file.path()).unwrap() == sketch);
    let bytes = sketch.to_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(CountMin::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(CountMin::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(CountMin::from_bytes(&longer), Err(SketchFileError::Length)));
}

/// The right checksums around anything.
#[test]
fn forged_files_are_refused_or_harmless() {
    let mut random = Random(5);
    let mut sketch = CountMin::new(40, 3).unwrap();
    sketch.add("a", 7);
    let bytes = sketch.to_bytes();
    for _ in 0..2000 {
        let mut forged = bytes.clone();
        let at = 32 + random.index(40);
        forged[at] ^= 1 << random.index(8);
        let header = xxhash_rust::xxh3::xxh3_64(&forged[..24]);
        let end = forged.len() - 8;
        let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&forged[32..end], header);
        forged[end..].copy_from_slice(&sum.to_le_bytes());
        if let Ok(mut sketch) = CountMin::from_bytes(&forged) {
            sketch.add("a", 1);
            assert!(CountMin::from_bytes(&sketch.to_bytes()).unwrap() == sketch);
        }
    }
}

/// Numbers of a power law: key i about 100,000 / (i + 1) times, in a random order.
fn power_law(keys: u64, random: &mut Random) -> (Vec<String>, HashMap<String, u64>) {
    let mut stream = Vec::new();
    let mut truth = HashMap::new();
    for i in 0..keys {
        let count = 20_000 / (i + 1);
        truth.insert(format!("key{i}"), count);
        (0..count).for_each(|_| stream.push(format!("key{i}")));
    }
    for i in (1..stream.len()).rev() {
        stream.swap(i, random.index(i + 1));
    }
    (stream, truth)
}

/// With the buckets of the plan, keys well above the share of a bucket are found, and no count exceeds the truth.
#[test]
fn a_top_k_finds_every_key_above_its_bound_and_counts_none_too_high() {
    for seed in 0..5 {
        let (stream, truth) = power_law(5000, &mut Random(seed));
        let mut top = TopK::new(TopKPlan::for_keys(20)).unwrap();
        stream.iter().for_each(|key| {
            top.add(key, 1);
        });
        // Twice the count that the last of the top 20 has.
        let bound = 2 * truth["key19"];
        for (key, &count) in truth.iter().filter(|(_, count)| **count >= bound) {
            assert!(top.contains(key), "seed {seed}: {key} of {count}");
            let counted = u64::from(top.count(key));
            assert!(counted <= count && counted * 10 >= count * 8, "{key}: {counted} of {count}");
        }
        for listed in top.list() {
            let key = String::from_utf8(listed.key.to_vec()).unwrap();
            assert!(u64::from(listed.count) <= truth[&key], "seed {seed}: {key}");
        }
    }
}

#[test]
fn merged_top_ks_find_what_is_frequent_in_both() {
    let (stream, truth) = power_law(2000, &mut Random(9));
    let plan = TopKPlan::for_keys(30);
    let (mut one, mut two) = (TopK::new(plan).unwrap(), TopK::new(plan).unwrap());
    for (i, key) in stream.iter().enumerate() {
        let half = if i % 2 == 0 { &mut one } else { &mut two };
        half.add(key, 1);
    }
    one.merge(&two);
    for (key, &count) in truth.iter().filter(|(_, count)| **count >= 2 * truth["key29"]) {
        let counted = u64::from(one.count(key));
        assert!(one.contains(key) && counted <= count && counted * 10 >= count * 7, "{key}");
    }
}

proptest! {
    /// Batches, one key after the other, and a sketch that was saved in between: the same bytes, decays included.
    #[test]
    fn a_top_k_is_the_same_in_batches_and_after_a_reload(
        depth in 1u32..12,
        pairs in prop::collection::vec((0u8..60, 0u32..40), 0..120),
        cut in any::<prop::sample::Index>(),
    ) {
        let plan = TopKPlan { k: 5, width: 7, depth, decay: 0.8 };
        let mut alone = TopK::new(plan).unwrap();
        let mut expelled = Vec::new();
        for (key, count) in &pairs {
            expelled.push(alone.add([*key], *count));
        }
        let (left, right) = pairs.split_at(cut.index(pairs.len() + 1));
        let mut batched = TopK::new(plan).unwrap();
        let mut each = Vec::new();
        for half in [left, right] {
            let keys: Vec<[u8; 1]> = half.iter().map(|pair| [pair.0]).collect();
            let counts: Vec<u32> = half.iter().map(|pair| pair.1).collect();
            batched.add_each(&keys, &counts, |key| each.push(key));
            batched = TopK::from_bytes(&batched.to_bytes()).unwrap();
        }
        prop_assert_eq!(&expelled, &each);
        prop_assert!(alone == batched);
    }

    /// Whatever numbers come, in whatever halves: what was saved is the digest once its nodes are merged.
    #[test]
    fn a_t_digest_survives_its_file(
        compression in 1u64..40,
        numbers in prop::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 0..400),
    ) {
        let mut digest = TDigest::new(compression).unwrap();
        digest.add_each(&numbers).unwrap();
        let mut loaded = TDigest::from_bytes(&digest.to_bytes()).unwrap();
        digest.compress();
        prop_assert!(loaded == digest);
        let least = numbers.iter().copied().fold(f64::NAN, f64::min);
        let greatest = numbers.iter().copied().fold(f64::NAN, f64::max);
        prop_assert!(loaded.min() == least || numbers.is_empty());
        for share in [0.0, 0.01, 0.5, 0.99, 1.0] {
            let quantile = loaded.quantile(share);
            prop_assert!((least..=greatest).contains(&quantile) || numbers.is_empty());
        }
    }
}

/// How far a quantile is from its share, in ranks.
fn rank_error(sorted: &[f64], share: f64, quantile: f64) -> f64 {
    let below = sorted.partition_point(|&number| number < quantile) as f64;
    let up_to = sorted.partition_point(|&number| number <= quantile) as f64;
    let (rank, len) = (share * sorted.len() as f64, sorted.len() as f64);
    (below - rank).max(rank - up_to).max(0.0) / len
}

/// A node at share q has 2π·q(1-q)·ln(n)/compression of the numbers at most, and an answer is off by one node at most. The ends are
/// exact.
#[test]
fn quantiles_of_a_t_digest_are_within_a_node_and_so_are_those_of_merged_ones() {
    let mut random = Random(11);
    for shape in 0..3 {
        let numbers: Vec<f64> = (0..50_000)
            .map(|_| {
                let unit = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
                match shape {
                    0 => unit,
                    1 => -unit.max(1e-300).ln(),
                    _ => (unit * 20.0).floor(),
                }
            })
            .collect();
        let mut sorted = numbers.clone();
        sorted.sort_by(f64::total_cmp);
        let compression = 100;
        let mut whole = TDigest::new(compression).unwrap();
        whole.add_each(&numbers).unwrap();
        let mut merged = TDigest::new(compression).unwrap();
        for part in numbers.chunks(7000) {
            let mut digest = TDigest::new(compression).unwrap();
            digest.add_each(part).unwrap();
            merged.merge(&mut digest).unwrap();
        }
        assert_eq!((whole.weight(), merged.weight()), (50_000, 50_000));
        for digest in [&mut whole, &mut merged] {
            assert_eq!((digest.quantile(0.0), digest.quantile(1.0)), (sorted[0], sorted[49_999]));
            for share in [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999] {
                let error = rank_error(&sorted, share, digest.quantile(share));
                let n = sorted.len() as f64;
                let node = 2.0 * std::f64::consts::PI * share * (1.0 - share) * n.ln() / 100.0;
                let bound = node + 1.0 / n;
                assert!(error <= bound, "shape {shape}, {share}: {error} above {bound}");
            }
        }
    }
}

#[test]
fn a_t_digest_refuses_what_it_cannot_hold() {
    let mut digest = TDigest::new(100).unwrap();
    digest.add_each(&[1.0, 2.0]).unwrap();
    let before = digest.clone();
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(digest.add_each(&[3.0, wrong]).is_err() && digest == before);
    }
    assert_eq!(digest.add(3.0, i64::MAX - 1), Err(MergeError::Overflow));
    assert!(digest == before);
    assert!(matches!(TDigest::new(0), Err(PlanError::Param { .. })));
    assert!(matches!(TDigest::new(1 << 40), Err(PlanError::Memory { .. })));
}

/// A file of one kind is not taken for another.
#[test]
fn files_say_what_they_hold() {
    let top = TopK::new(TopKPlan::small(3)).unwrap().to_bytes();
    let digest = TDigest::new(100).unwrap().to_bytes();
    assert!(matches!(TDigest::from_bytes(&top), Err(SketchFileError::Kind { found: 2, .. })));
    assert!(matches!(TopK::from_bytes(&digest), Err(SketchFileError::Kind { found: 3, .. })));
    assert!(matches!(CountMin::from_bytes(b"nothing"), Err(SketchFileError::NotASketch)));
    for bytes in [top, digest] {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(TopK::from_bytes(&damaged).is_err() && TDigest::from_bytes(&damaged).is_err());
        }
    }
}
