//! TOPK.RESERVE, TOPK.ADD, TOPK.INCRBY, TOPK.QUERY, TOPK.COUNT, TOPK.LIST and TOPK.INFO.

use std::ffi::CStr;

use ironbloom::sketches::{PlanError, TopK, TopKPlan};

use super::{Refusal, allows_depth, check_arity, expect, reply_done, settle, text};
use crate::commands::{in_range, memory_limit};
use crate::engine::call::Call;
use crate::engine::key::{Access, Found};
use crate::stats;

const EXISTS: &CStr = c"TopK: key already exists";
const MISSING: &CStr = c"TopK: key does not exist";
const K: &CStr = c"TopK: invalid k";
const WIDTH: &CStr = c"TopK: invalid width";
const DEPTH: &CStr = c"TopK: invalid depth";
const TOO_DEEP: &CStr = c"TopK: invalid depth: it must be at most 255";
const DECAY: &CStr = c"TopK: invalid decay value. must be '<= 1' & '> 0'";
const NO_MEMORY: &CStr = c"ERR Insufficient memory to create topk data structure";
const INCREMENT: &CStr = c"TopK: increment must be an integer greater or equal to 0                            and smaller or equal to 100,000";
const WITHCOUNT: &CStr = c"WITHCOUNT keyword expected";

const MAX_INCREMENT: i64 = 100_000;

/// `TOPK.RESERVE key k [width depth decay]`
pub(super) fn reserve(call: &Call<'_>) {
    stats::timed(|| settle(call, try_reserve(call)));
}

fn try_reserve(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3 || call.count() == 6)?;
    let mut key = call.open(1, Access::Write);
    if !matches!(key.get::<TopK>(), Found::Missing) {
        return Err(EXISTS.into());
    }
    let number = |i, refusal| {
        let number = call.integer(i).and_then(|number| in_range(number, 1, u32::MAX.into()));
        number.map(|number| number as u32).ok_or(Refusal::Because(refusal))
    };
    let mut plan = TopKPlan::small(number(2, K)?);
    if call.count() == 6 {
        (plan.width, plan.depth) = (number(3, WIDTH)?, number(4, DEPTH)?);
        let decay = call.double(5).filter(|&decay| decay > 0.0 && decay <= 1.0);
        plan.decay = decay.ok_or(DECAY)?;
    }
    let sketch = TopK::planned(plan, memory_limit(call)).map_err(|error| match error {
        PlanError::OverLimit { .. } => text::SKETCH_OVER_LIMIT,
        _ => NO_MEMORY,
    })?;
    if !allows_depth(call, plan.depth.into()) {
        return Err(TOO_DEEP.into());
    }
    key.set(sketch);
    reply_done(call);
    Ok(())
}

/// `TOPK.ADD key item [item ...]`
pub(super) fn add(call: &Call<'_>) {
    settle(call, try_add(call));
}

fn try_add(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let mut key = call.open(1, Access::Write);
    let sketch = expect(key.get_mut::<TopK>(), MISSING)?;
    let items: Vec<&[u8]> = (2..call.count()).map(|i| call.arg(i)).collect();
    check_room(call, sketch, &items)?;
    call.replicate_verbatim();
    call.reply_array(items.len());
    stats::ADDED.add(items.len() as u64);
    let ones = vec![1; items.len()];
    sketch.add_each(&items, &ones, |expelled| reply_expelled(call, expelled.as_deref()));
    Ok(())
}

/// `TOPK.INCRBY key item increment [item increment ...]`
pub(super) fn incr_by(call: &Call<'_>) {
    settle(call, try_incr_by(call));
}

/// A bad increment is an error in its place. RedisBloom answers no further pair then, which leaves clients waiting; here the
/// pairs after it are answered with the same error, and not added either.
fn try_incr_by(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4 && call.count().is_multiple_of(2))?;
    let mut key = call.open(1, Access::Write);
    let sketch = expect(key.get_mut::<TopK>(), MISSING)?;
    let increment = |i| call.integer(i).and_then(|number| in_range(number, 0, MAX_INCREMENT));
    let pairs = (call.count() - 2) / 2;
    let increments: Vec<u32> =
        (0..pairs).map_while(|pair| increment(2 * pair + 3)).map(|n| n as u32).collect();
    let items: Vec<&[u8]> = (0..increments.len()).map(|pair| call.arg(2 * pair + 2)).collect();
    check_room(call, sketch, &items)?;
    call.replicate_verbatim();
    call.reply_array(pairs);
    stats::ADDED.add(items.len() as u64);
    sketch.add_each(&items, &increments, |expelled| reply_expelled(call, expelled.as_deref()));
    (items.len()..pairs).for_each(|_| call.reply_error(INCREMENT));
    Ok(())
}

/// Refuses items that would bring the sketch beyond the memory limit of a key, if all that it does not hold yet found a place and
/// expelled none.
fn check_room(call: &Call<'_>, sketch: &TopK, items: &[&[u8]]) -> Result<(), Refusal> {
    let limit = memory_limit(call);
    let present = sketch.size_in_bytes() + sketch.key_bytes();
    let all = items.iter().map(|item| item.len() as u64).sum();
    if limit.check(present, all).is_err() {
        let new = items.iter().filter(|item| !sketch.contains(item));
        let more = new.map(|item| item.len() as u64).sum();
        limit.check(present, more).map_err(|_| text::SKETCH_OVER_LIMIT)?;
    }
    Ok(())
}

fn reply_expelled(call: &Call<'_>, expelled: Option<&[u8]>) {
    match expelled {
        Some(item) => call.reply_bytes(shown(item)),
        None => call.reply_null(),
    }
}

/// An item as RedisBloom shows it: up to the first zero.
fn shown(item: &[u8]) -> &[u8] {
    item.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// `TOPK.QUERY key item [item ...]`
pub(super) fn query(call: &Call<'_>) {
    settle(call, ask(call, |sketch, item| call.reply_bool(sketch.contains(item))));
}

/// `TOPK.COUNT key item [item ...]`
pub(super) fn count(call: &Call<'_>) {
    settle(call, ask(call, |sketch, item| call.reply_integer(i64::from(sketch.count(item)))));
}

fn ask(call: &Call<'_>, reply: impl Fn(&TopK, &[u8])) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    let sketch = expect(key.get::<TopK>(), MISSING)?;
    stats::QUERIES.add(call.count() as u64 - 2);
    call.reply_array(call.count() - 2);
    (2..call.count()).for_each(|i| reply(sketch, call.arg(i)));
    Ok(())
}

/// `TOPK.LIST key [WITHCOUNT]`
pub(super) fn list(call: &Call<'_>) {
    settle(call, try_list(call));
}

fn try_list(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity((2..=3).contains(&call.count()))?;
    let has_counts = call.count() == 3;
    // Any beginning of the word will do, even none of it.
    let is_word =
        |word: &[u8]| word.len() <= 9 && word.eq_ignore_ascii_case(&b"WITHCOUNT"[..word.len()]);
    if has_counts && !is_word(call.arg(2)) {
        return Err(WITHCOUNT.into());
    }
    let key = call.open(1, Access::Read);
    let list = expect(key.get::<TopK>(), MISSING)?.list();
    call.reply_array(list.len() * if has_counts { 2 } else { 1 });
    for listed in list {
        call.reply_bytes(shown(listed.key));
        if has_counts {
            call.reply_integer(i64::from(listed.count));
        }
    }
    Ok(())
}

/// `TOPK.INFO key`
pub(super) fn info(call: &Call<'_>) {
    settle(call, try_info(call));
}

fn try_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let TopKPlan { k, width, depth, decay } = expect(key.get::<TopK>(), MISSING)?.plan();
    call.reply_map(4);
    for (name, number) in [(c"k", k), (c"width", width), (c"depth", depth)] {
        call.reply_simple(name);
        call.reply_integer(i64::from(number));
    }
    call.reply_simple(c"decay");
    call.reply_servers_double(decay);
    Ok(())
}
