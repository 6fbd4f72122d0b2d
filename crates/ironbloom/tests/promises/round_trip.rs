//! Promise: a filter can be written to a file after any of its operations, in any order, and the file is accepted and
//! gives the same answers.
//!
//! Two filters of one shape go through random steps. After each step both are encoded and decoded, and the decoded ones
//! continue: a file must not affect a filter later either.

use std::time::Duration;

use crate::common;
use ironbloom::hash::mix64;
use ironbloom::multi::{Attributes, Joint, ParallelBloom};
use ironbloom::*;
use proptest::prelude::*;

const HASH: HashFn = HashFn::Xxh3 { seed: 0 };

/// Keys are numbers below this; a bitmap takes them unchanged.
const KEYS: u64 = 4096;

/// One step in the life of a filter.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Inserts this many keys from here on.
    Insert(u64, u64),
    /// Inserts one key repeatedly: stuck counters, full buckets.
    Repeat(u64, u64),
    /// Removes this many keys from here on, whether they were inserted or not.
    Remove(u64, u64),
    /// Adds all keys of the other filter.
    Unite,
    /// Keeps only the keys of both.
    Intersect,
    /// Moves keys of some buckets to the other filter, if the kind supports it.
    Move(u64, u64),
    /// Advances the clock by this many milliseconds, if the filter has one.
    Pass(u64),
    Clear,
    /// Exchanges the two.
    Swap,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..KEYS, 1..400u64).prop_map(|(first, count)| Step::Insert(first, count)),
        2 => (0..KEYS, 1..40u64).prop_map(|(key, times)| Step::Repeat(key, times)),
        2 => (0..KEYS, 1..300u64).prop_map(|(first, count)| Step::Remove(first, count)),
        4 => Just(Step::Unite),
        1 => Just(Step::Intersect),
        2 => (0..64u64, 1..64u64).prop_map(|(first, count)| Step::Move(first, count)),
        2 => (0..3000u64).prop_map(Step::Pass),
        1 => Just(Step::Clear),
        3 => Just(Step::Swap),
    ];
    prop::collection::vec(step, 1..16)
}

/// Rates of all magnitudes.
fn rates() -> impl Strategy<Value = f64> {
    (0.05..30.0f64).prop_map(|bits| (-bits).exp2())
}

/// Converts a key to the number that the filter takes.
fn hash(filter: &AnyFilter, key: u64) -> u64 {
    let key = key % KEYS;
    if matches!(filter, AnyFilter::Bitmap(_)) { key } else { mix64(key) }
}

/// Returns the row that stands for a key: few values of the first attribute, many of the second.
fn row(key: u64) -> [u64; 2] {
    let key = key % KEYS;
    [mix64(key % 7), mix64(key)]
}

fn insert(filter: &mut AnyFilter, key: u64) {
    // A full filter refuses; its keys must still be there, as the test checks.
    let _ = match filter.as_multi_mut() {
        Some(multi) => multi.insert_hashed(&row(key)).is_ok(),
        None => filter.insert_hashes(&[hash(filter, key)]).is_ok(),
    };
}

fn remove(filter: &mut AnyFilter, key: u64) {
    let _ = match filter.as_multi_mut() {
        Some(multi) => multi.remove_hashed(&row(key)).is_ok(),
        None => filter.remove_hash(hash(filter, key)).is_ok(),
    };
}

fn apply(one: &mut AnyFilter, two: &mut AnyFilter, step: Step, now: &mut Duration) {
    match step {
        Step::Insert(first, count) => (first..first + count).for_each(|key| insert(one, key)),
        Step::Repeat(key, times) => (0..times).for_each(|_| insert(one, key)),
        Step::Remove(first, count) => (first..first + count).for_each(|key| remove(one, key)),
        Step::Unite => {
            let _ = match (&mut *one, &*two) {
                (AnyFilter::Scalable(one), AnyFilter::Scalable(two)) => one.union_with(two).is_ok(),
                (one, two) => one.union_with(two).is_ok(),
            };
        }
        Step::Intersect => {
            let _ = one.intersect_with(two);
        }
        Step::Move(first, count) => {
            if let (AnyFilter::Cuckoo(one), AnyFilter::Cuckoo(two)) = (one, two) {
                one.move_into(two, first..first + count).unwrap();
            }
        }
        Step::Pass(milliseconds) => {
            *now += Duration::from_millis(milliseconds);
            if let AnyFilter::Windowed(one) = one {
                one.advance_to(*now);
            }
        }
        Step::Clear => {
            let _ = one.clear();
        }
        Step::Swap => std::mem::swap(one, two),
    }
}

/// Returns a filter's answers for all keys.
fn answers(filter: &AnyFilter) -> Vec<bool> {
    if let Some(multi) = filter.as_multi() {
        let ask = |key| multi.contains_hashed(&row(key).map(Some)).unwrap();
        return (0..KEYS).map(ask).collect();
    }
    let hashes: Vec<u64> = (0..KEYS).map(|key| hash(filter, key)).collect();
    let mut found = vec![false; hashes.len()];
    filter.contains_hashes(&hashes, &mut found);
    found
}

/// Encodes and decodes a filter.
fn through_bytes(filter: &AnyFilter) -> Result<AnyFilter, TestCaseError> {
    let bytes = filter.to_bytes();
    let read = AnyFilter::from_bytes(&bytes);
    let read = read.map_err(|error| TestCaseError::fail(format!("refused: {error}")))?;
    prop_assert_eq!(&read, filter);
    prop_assert!(answers(&read) == answers(filter), "other answers");
    prop_assert!(read.to_bytes() == bytes, "other bytes");
    Ok(read)
}

fn law(filter: AnyFilter, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut one, mut two, mut now) = (through_bytes(&filter)?, filter, Duration::ZERO);
    for &step in steps {
        apply(&mut one, &mut two, step, &mut now);
        one = through_bytes(&one)?;
        // Only these change the other filter.
        if matches!(step, Step::Move(..) | Step::Swap) {
            two = through_bytes(&two)?;
        }
    }
    Ok(())
}

/// Checks all shapes of a kind: many are refused for their numbers, which is another promise.
fn checked(filter: Result<AnyFilter, ParamError>, steps: &[Step]) -> Result<(), TestCaseError> {
    filter.map_or(Ok(()), |filter| law(filter, steps))
}

fn two_attributes() -> Attributes {
    Attributes::new(["few", "many"], HASH).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn bloom_filters(capacity in 1..600u64, rate in rates(), flat: bool, steps in steps()) {
        let params = if flat {
            BloomParams::for_rate(capacity, rate)
        } else {
            BloomParams::segmented_for_rate(capacity, rate)
        };
        let filter = params.and_then(|params| Bloom::new(params, HASH));
        checked(filter.map(AnyFilter::Bloom), &steps)?;
    }

    #[test]
    fn filters_of_blocks(capacity in 1..600u64, rate in rates(), split: bool, steps in steps()) {
        let filter = if split {
            SplitBlock::with_rate(capacity, rate).map(AnyFilter::SplitBlock)
        } else {
            BlockedBloom::with_rate(capacity, rate).map(AnyFilter::Blocked)
        };
        checked(filter, &steps)?;
    }

    #[test]
    fn filters_that_count(capacity in 1..600u64, rate in rates(), dleft: bool, steps in steps()) {
        let filter = if dleft {
            DLeft::with_rate(capacity, rate).map(AnyFilter::DLeft)
        } else {
            CountingBloom::with_rate(capacity, rate).map(AnyFilter::Counting)
        };
        checked(filter, &steps)?;
    }

    #[test]
    fn cuckoo_filters(capacity in 1..600u64, rate in rates(), packed: bool, steps in steps()) {
        let params = if packed {
            CuckooParams::packed_for_rate(capacity, rate)
        } else {
            CuckooParams::for_rate(capacity, rate)
        };
        checked(params.and_then(|params| Cuckoo::new(params, HASH)).map(AnyFilter::Cuckoo), &steps)?;
    }

    #[test]
    fn filters_that_grow(
        capacity in 1..200u64,
        rate in rates(),
        growth in 2..17u64,
        tightening in 0.01..0.99f64,
        blocked: bool,
        steps in steps(),
    ) {
        let stages = if blocked { StageKind::Blocked } else { StageKind::Bloom };
        let params = ScalableParams::new(capacity, rate)
            .and_then(|params| params.with_growth(growth))
            .and_then(|params| params.with_tightening(tightening))
            .map(|params| params.with_stages_of(stages));
        checked(params.and_then(|params| Scalable::new(params, HASH)).map(AnyFilter::Scalable), &steps)?;
    }

    #[test]
    fn filters_that_forget(
        window in 1..600u64,
        rate in rates(),
        milliseconds in prop::option::of(1..5000u64),
        steps in steps(),
    ) {
        let params = match milliseconds {
            Some(span) => WindowedParams::for_time(Duration::from_millis(span), window, rate),
            None => WindowedParams::for_keys(window, rate),
        };
        checked(params.and_then(|params| Windowed::new(params, HASH)).map(AnyFilter::Windowed), &steps)?;
    }

    #[test]
    fn filters_of_rows(capacity in 1..600u64, rate in rates(), kind in 0..3u8, steps in steps()) {
        let joint = CuckooParams::for_rate(capacity, rate);
        let filter = match kind {
            0 => BloomParams::for_rate(capacity, rate)
                .and_then(|params| ParallelBloom::new(params, two_attributes()))
                .map(AnyFilter::Parallel),
            1 => joint.and_then(|params| Joint::new(params, two_attributes())).map(AnyFilter::Joint),
            _ => joint
                .and_then(|params| Joint::new_partial(params, two_attributes()))
                .map(AnyFilter::Joint),
        };
        checked(filter, &steps)?;
    }

    #[test]
    fn sets_of_integers(bound in 1..2 * KEYS, steps in steps()) {
        checked(Bitmap::new(bound).map(AnyFilter::Bitmap), &steps)?;
    }
}

/// The estimate after a union may exceed a stage's plan: the file of such a filter was refused.
#[test]
fn a_union_of_growing_filters_can_be_saved() {
    for stages in [StageKind::Bloom, StageKind::Blocked] {
        let params = ScalableParams::new(100, 0.01).unwrap().with_stages_of(stages);
        let mut one = Scalable::new(params, HASH).unwrap();
        let mut two = one.clone();
        one.insert_hashes(&common::hashes(1, 300)).unwrap();
        two.insert_hashes(&common::hashes(2, 300)).unwrap();
        one.union_with(&two).unwrap();
        assert!(one.stages().any(|stage| stage.len > stage.capacity), "{stages:?}");
        assert_eq!(Scalable::from_bytes(&one.to_bytes()).as_ref(), Ok(&one));
    }
}
