//! Every kind of filter once, so that each promise is tested on all of them.

use std::sync::LazyLock;

use ironbloom::any::AnyFilter;
use ironbloom::hash::mix64;
use ironbloom::plan::{self, Plan};
use ironbloom::*;

/// Builds a filter from hashes, for a capacity and a rate.
type Build = dyn Fn(&[u64], u64, f64) -> AnyFilter + Send + Sync;

/// A representative of a kind, with a way to build it from hashes, for a capacity and a rate.
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) build: Box<Build>,
}

/// All plans of the library, so that a new kind is tested without a line here; except the bitmap, whose keys are
/// integers, and rows. Growing filters begin small, so that they have grown by the time the capacity is reached.
pub(crate) static FILTERS: LazyLock<Vec<Config>> = LazyLock::new(|| {
    let plans = plan::all().filter(|plan| !matches!(plan.kind, Kind::Bitmap | Kind::Joint));
    let mut configs: Vec<Config> = plans.map(planned).collect();
    configs.push(Config {
        name: "scalable-blocked",
        build: Box::new(|hashes, capacity, rate| {
            let params = ScalableParams::new(first_stage(capacity), rate).unwrap();
            let params = params.with_stages_of(StageKind::Blocked);
            filled(Scalable::new(params, HashFn::default()).unwrap().into(), hashes)
        }),
    });
    configs
});

fn planned(plan: &'static Plan) -> Config {
    let build = move |hashes: &[u64], capacity, rate| {
        if !plan.abilities.insert {
            return plan.build(hashes, capacity, rate, 0).unwrap();
        }
        let capacity = if plan.abilities.grow { first_stage(capacity) } else { capacity };
        // Not as distinct keys: the filter does its own counting.
        filled(plan.create(capacity, rate, 0).unwrap(), hashes)
    };
    Config { name: plan.name, build: Box::new(build) }
}

fn filled(mut filter: AnyFilter, hashes: &[u64]) -> AnyFilter {
    filter.insert_hashes(hashes).expect("a filter takes the keys it was planned for");
    filter
}

/// Four or five stages by the time the capacity is reached.
fn first_stage(capacity: u64) -> u64 {
    (capacity / 16).max(1)
}

/// Distinct well-mixed hashes; streams never share one (mix64 is a bijection).
pub(crate) fn hashes(stream: u64, count: u64) -> Vec<u64> {
    (0..count).map(|i| mix64(stream << 36 | i)).collect()
}

/// Counts the `hashes` that a filter may hold.
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
