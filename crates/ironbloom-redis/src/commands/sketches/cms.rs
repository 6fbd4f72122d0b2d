//! CMS.INITBYDIM, CMS.INITBYPROB, CMS.INCRBY, CMS.QUERY, CMS.MERGE and CMS.INFO.

use std::collections::BTreeMap;
use std::ffi::CStr;

use ironbloom::sketches::{CountMin, CountMinPlan, MergeError, PlanError};

use super::{Refusal, allows_depth, check_arity, expect, reply_done, reply_numbers, settle, text};
use crate::commands::{find_option, memory_limit};
use crate::engine::call::Call;
use crate::engine::key::{Access, Found, Key};
use crate::stats;

const EXISTS: &CStr = c"CMS: key already exists";
const MISSING: &CStr = c"CMS: key does not exist";
const WIDTH: &CStr = c"CMS: invalid width";
const DEPTH: &CStr = c"CMS: invalid depth";
const TOO_DEEP: &CStr = c"CMS: invalid depth: it must be at most 255";
const SIZE: &CStr = c"CMS: invalid init arguments";
const NO_MEMORY: &CStr = c"CMS: Insufficient memory to create the key";
const ERROR: &CStr = c"CMS: invalid overestimation value";
const PROBABILITY: &CStr = c"CMS: invalid prob value";
const NUMBER: &CStr = c"CMS: Cannot parse number";
const NEGATIVE: &CStr = c"CMS: Number cannot be negative";
const FULL: &CStr = c"CMS: INCRBY overflow";
const NUMKEYS: &CStr = c"CMS: invalid numkeys";
const NUMKEYS_RANGE: &CStr = c"CMS: Number of keys must be positive";
const KEYS: &CStr = c"CMS: wrong number of keys";
const KEYS_AND_WEIGHTS: &CStr = c"CMS: wrong number of keys/weights";
const WEIGHT: &CStr = c"CMS: invalid weight value";
const DIFFERS: &CStr = c"CMS: width/depth is not equal";
const OVERFLOW: &CStr = c"CMS: MERGE overflow";

/// `CMS.INITBYDIM key width depth`
pub(super) fn init_by_dim(call: &Call<'_>) {
    let plan = || {
        let at_least_one = |i, refusal| {
            let number = call.integer(i).filter(|&number| number >= 1);
            number.map(|number| number as u64).ok_or(Refusal::Because(refusal))
        };
        Ok(CountMinPlan { width: at_least_one(2, WIDTH)?, depth: at_least_one(3, DEPTH)? })
    };
    stats::timed(|| settle(call, try_init(call, plan)));
}

/// `CMS.INITBYPROB key error probability`
pub(super) fn init_by_prob(call: &Call<'_>) {
    let plan = || {
        let share = |i, refusal| {
            let share = call.double(i).filter(|&share| share > 0.0 && share < 1.0);
            share.ok_or(Refusal::Because(refusal))
        };
        let (error, probability) = (share(2, ERROR)?, share(3, PROBABILITY)?);
        CountMinPlan::for_error(error, probability).map_err(|_| SIZE.into())
    };
    stats::timed(|| settle(call, try_init(call, plan)));
}

fn try_init(
    call: &Call<'_>,
    plan: impl FnOnce() -> Result<CountMinPlan, Refusal>,
) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    let mut key = call.open(1, Access::Write);
    if !matches!(key.get::<CountMin>(), Found::Missing) {
        return Err(EXISTS.into());
    }
    let plan = plan()?;
    let sketch = CountMin::planned(plan, memory_limit(call)).map_err(|error| match error {
        PlanError::OverLimit { .. } => text::SKETCH_OVER_LIMIT,
        PlanError::Memory { .. } => NO_MEMORY,
        _ => SIZE,
    })?;
    if !allows_depth(call, plan.depth) {
        return Err(TOO_DEEP.into());
    }
    key.set(sketch);
    reply_done(call);
    Ok(())
}

/// `CMS.INCRBY key item increment [item increment ...]`
pub(super) fn incr_by(call: &Call<'_>) {
    settle(call, try_incr_by(call));
}

fn try_incr_by(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4 && call.count().is_multiple_of(2))?;
    let mut key = call.open(1, Access::Write);
    let sketch = expect(key.get_mut::<CountMin>(), MISSING)?;
    let increment = |i| match call.integer(i) {
        None => Err(Refusal::Because(NUMBER)),
        Some(..0) => Err(Refusal::Because(NEGATIVE)),
        Some(increment) => Ok(increment as u64),
    };
    let increments: Vec<u64> =
        (3..call.count()).step_by(2).map(increment).collect::<Result<_, _>>()?;
    let items: Vec<&[u8]> = (2..call.count()).step_by(2).map(|i| call.arg(i)).collect();
    let mut counts = vec![0; items.len()];
    sketch.add_each(&items, &increments, &mut counts);
    stats::ADDED.add(items.len() as u64);
    call.replicate_verbatim();
    call.reply_array(counts.len());
    for count in counts {
        match count {
            u32::MAX => call.reply_error(FULL),
            count => call.reply_integer(i64::from(count)),
        }
    }
    Ok(())
}

/// `CMS.QUERY key item [item ...]`
pub(super) fn query(call: &Call<'_>) {
    settle(call, try_query(call));
}

fn try_query(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    let sketch = expect(key.get::<CountMin>(), MISSING)?;
    let items: Vec<&[u8]> = (2..call.count()).map(|i| call.arg(i)).collect();
    let mut counts = vec![0; items.len()];
    sketch.count_each(&items, &mut counts);
    stats::QUERIES.add(items.len() as u64);
    call.reply_array(counts.len());
    counts.into_iter().for_each(|count| call.reply_integer(i64::from(count)));
    Ok(())
}

/// `CMS.INFO key`
pub(super) fn info(call: &Call<'_>) {
    settle(call, try_info(call));
}

fn try_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let sketch = expect(key.get::<CountMin>(), MISSING)?;
    let CountMinPlan { width, depth } = sketch.plan();
    let fields = [(c"width", width), (c"depth", depth), (c"count", sketch.total())];
    // A total of 2^63 and more is shown as a negative number, as by RedisBloom.
    reply_numbers(call, &fields.map(|(name, number)| (name, number as i64)));
    Ok(())
}

/// `CMS.MERGE destination numkeys source [source ...] [WEIGHTS weight [weight ...]]`
pub(super) fn merge(call: &Call<'_>) {
    stats::timed(|| settle(call, try_merge(call)));
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4)?;
    let mut destination = call.open(1, Access::Write);
    let plan = expect(destination.get::<CountMin>(), MISSING)?.plan();
    let (count, has_weights) = sources_of(call)?;
    let mut sources: Vec<(Key<'_>, i64)> = Vec::with_capacity(count);
    for i in 3..3 + count {
        let weight = match has_weights {
            true => call.integer(i + count + 1).ok_or(WEIGHT)?,
            false => 1,
        };
        let key = call.open(i, Access::Read);
        if expect(key.get::<CountMin>(), MISSING)?.plan() != plan {
            return Err(DIFFERS.into());
        }
        sources.push((key, weight));
    }
    let sketches = sources.iter().map(|(key, weight)| Ok((expect(key.get(), MISSING)?, *weight)));
    let sketches = each_once(sketches.collect::<Result<Vec<_>, Refusal>>()?);
    let sum = CountMin::sum(&sketches).map_err(|error| match error {
        MergeError::Memory { .. } => NO_MEMORY,
        MergeError::Differs => DIFFERS,
        _ => OVERFLOW,
    })?;
    *expect(destination.get_mut(), MISSING)? = sum;
    reply_done(call);
    Ok(())
}

/// A sketch that is named several times, once with the sum of its weights. With a weight below 0 some partial sum may be out of range
/// where the sum is not, which has to be refused: then they stay as they are.
fn each_once(sketches: Vec<(&CountMin, i64)>) -> Vec<(&CountMin, i64)> {
    if sketches.iter().any(|&(_, weight)| weight < 0) {
        return sketches;
    }
    let mut weights: BTreeMap<*const CountMin, (&CountMin, Option<i64>)> = BTreeMap::new();
    for &(sketch, weight) in &sketches {
        let sum = &mut weights.entry(sketch).or_insert((sketch, Some(0))).1;
        *sum = sum.and_then(|sum| sum.checked_add(weight));
    }
    let once = weights.into_values().map(|(sketch, weight)| Some((sketch, weight?)));
    once.collect::<Option<Vec<_>>>().unwrap_or(sketches)
}

/// The number of sources, and whether weights follow them. The word is looked for from the first source on, so that a source of
/// this name is mistaken for it: RedisBloom's way.
fn sources_of(call: &Call<'_>) -> Result<(usize, bool), Refusal> {
    let count = call.integer(2).ok_or(NUMKEYS)?;
    if count <= 0 {
        return Err(NUMKEYS_RANGE.into());
    }
    let given = call.count() - 3;
    let fits = |count: i64| usize::try_from(count).ok().filter(|&count| count <= given);
    match find_option(call, 3, b"WEIGHTS") {
        None => {
            let count = fits(count).filter(|&count| count == given).ok_or(KEYS)?;
            Ok((count, false))
        }
        Some(at) => {
            let count = fits(count).filter(|count| at == 3 + count && given == 2 * count + 1);
            Ok((count.ok_or(KEYS_AND_WEIGHTS)?, true))
        }
    }
}
