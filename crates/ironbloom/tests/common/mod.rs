//! Every kind of filter once, so that each promise is tested on all of them.
#![allow(dead_code, reason = "each test file uses its own part")]

use ironbloom::any::AnyFilter;
use ironbloom::hash::mix64;
use ironbloom::*;

/// A representative of a kind: how to make it from hashes, for a capacity and a rate.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) build: fn(&[u64], u64, f64) -> AnyFilter,
}

const HASH: HashFn = HashFn::Xxh3 { seed: 0 };

fn filled(mut filter: AnyFilter, hashes: &[u64]) -> AnyFilter {
    filter.insert_hashes(hashes).expect("a filter takes the keys it was planned for");
    filter
}

fn fuse(hashes: &[u64], rate: f64, arity: Arity) -> AnyFilter {
    let params = FuseParams::for_rate(rate).unwrap().with_arity(arity);
    AnyFilter::Fuse(BinaryFuse::from_hashes(hashes, params, HASH).unwrap())
}

fn scalable(capacity: u64, rate: f64, of: StageKind) -> AnyFilter {
    // Four or five stages by the time the capacity is reached.
    let params = ScalableParams::new((capacity / 16).max(1), rate).unwrap().with_stages_of(of);
    AnyFilter::Scalable(Scalable::new(params, HASH).unwrap())
}

/// All kinds but the bitmap, whose keys are integers.
pub(crate) const FILTERS: [Config; 13] = [
    Config {
        name: "bloom",
        build: |hashes, n, p| {
            filled(
                AnyFilter::Bloom(Bloom::new(BloomParams::for_rate(n, p).unwrap(), HASH).unwrap()),
                hashes,
            )
        },
    },
    Config {
        name: "segmented",
        build: |hashes, n, p| {
            let params = BloomParams::segmented_for_rate(n, p).unwrap();
            filled(AnyFilter::Bloom(Bloom::new(params, HASH).unwrap()), hashes)
        },
    },
    Config {
        name: "blocked",
        build: |hashes, n, p| {
            filled(AnyFilter::Blocked(BlockedBloom::with_rate(n, p).unwrap()), hashes)
        },
    },
    Config {
        name: "split-block",
        build: |hashes, n, p| {
            filled(AnyFilter::SplitBlock(SplitBlock::with_rate(n, p).unwrap()), hashes)
        },
    },
    Config {
        name: "counting",
        build: |hashes, n, p| {
            filled(AnyFilter::Counting(CountingBloom::with_rate(n, p).unwrap()), hashes)
        },
    },
    Config {
        name: "d-left",
        build: |hashes, n, p| filled(AnyFilter::DLeft(DLeft::with_rate(n, p).unwrap()), hashes),
    },
    Config {
        name: "cuckoo",
        build: |hashes, n, p| filled(AnyFilter::Cuckoo(Cuckoo::with_rate(n, p).unwrap()), hashes),
    },
    Config {
        name: "cuckoo-packed",
        build: |hashes, n, p| {
            let params = CuckooParams::packed_for_rate(n, p).unwrap();
            filled(AnyFilter::Cuckoo(Cuckoo::new(params, HASH).unwrap()), hashes)
        },
    },
    Config { name: "fuse", build: |hashes, _, p| fuse(hashes, p, Arity::Three) },
    Config { name: "fuse4", build: |hashes, _, p| fuse(hashes, p, Arity::Four) },
    Config {
        name: "scalable",
        build: |hashes, n, p| filled(scalable(n, p, StageKind::Bloom), hashes),
    },
    Config {
        name: "scalable-blocked",
        build: |hashes, n, p| filled(scalable(n, p, StageKind::Blocked), hashes),
    },
    Config {
        name: "windowed",
        build: |hashes, n, p| {
            let params = WindowedParams::for_keys(n, p).unwrap();
            filled(AnyFilter::Windowed(Windowed::new(params, HASH).unwrap()), hashes)
        },
    },
];

/// Distinct well-mixed hashes; streams never share one (mix64 is a bijection).
pub(crate) fn hashes(stream: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| mix64(stream << 36 | i)).collect()
}

/// How many of `hashes` a filter says it may have.
pub(crate) fn found(filter: &AnyFilter, hashes: &[u64]) -> u64 {
    let mut found = vec![false; hashes.len()];
    filter.contains_hashes(hashes, &mut found);
    found.iter().filter(|&&found| found).count() as u64
}

/// The upper end of a binomial confidence interval around `rate`, 4.5 sigma wide: one in 300,000 by chance.
pub(crate) fn upper_bound(rate: f64, trials: u64) -> f64 {
    rate + 4.5 * (rate * (1.0 - rate) / trials as f64).sqrt()
}

/// The lower end of the same interval.
pub(crate) fn lower_bound(rate: f64, trials: u64) -> f64 {
    rate - 4.5 * (rate * (1.0 - rate) / trials as f64).sqrt()
}
