//! BF.RESERVE, BF.ADD, BF.MADD, BF.INSERT; BF.EXISTS, BF.MEXISTS and BF.FIND.

use crate::engine::call::Call;
use crate::engine::key::{Access, Found, Key};
use crate::redisbloom::chain::{Chain, Scaling};
use crate::redisbloom::murmur::BloomHash;
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION, MAX_RATE};

use super::{
    Refusal, check_arity, expect_filter, expect_nothing, find_option, in_range, memory_limit,
    settle, text,
};

/// What a filter is made from.
struct Plan {
    capacity: u64,
    rate: f64,
    scaling: Scaling,
}

impl Plan {
    /// What a filter is made from that nobody asked for.
    fn by_default() -> Self {
        Self {
            capacity: settings::BF_CAPACITY.get() as u64,
            rate: settings::BF_RATE.get(),
            scaling: scaling(settings::BF_EXPANSION.get()),
        }
    }

    fn make<'key>(
        &self,
        call: &Call<'_>,
        key: &'key mut Key<'_>,
    ) -> Result<&'key mut Chain, Refusal> {
        let chain = Chain::new(self.capacity, self.rate, self.scaling, memory_limit(call))
            .map_err(text::of_create)?;
        Ok(key.set(chain))
    }

    /// The words of a BF.RESERVE that makes the same filter with any settings.
    fn words(&self) -> Vec<String> {
        let mut words = vec![format!("{:e}", self.rate), self.capacity.to_string()];
        match self.scaling {
            Scaling::Growing(growth) => words.extend(["EXPANSION".to_owned(), growth.to_string()]),
            // The growth of a filter that does not grow is 2 unless it was told not to grow by EXPANSION 0.
            Scaling::Fixed(0) => words.extend(["EXPANSION".to_owned(), "0".to_owned()]),
            Scaling::Fixed(_) => words.push("NONSCALING".to_owned()),
        }
        words
    }
}

/// EXPANSION 0 is a filter that does not grow.
fn scaling(expansion: i64) -> Scaling {
    match expansion {
        0 => Scaling::Fixed(0),
        growth => Scaling::Growing(growth as u32),
    }
}

/// What a filter with NONSCALING remembers as its growth.
const FIXED: Scaling = Scaling::Fixed(2);

/// `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING]`
pub(crate) fn reserve(call: &Call<'_>) {
    settle(call, try_reserve(call));
}

fn try_reserve(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity((4..=7).contains(&call.count()))?;
    let plan = reserve_plan(call)?;
    let mut key = call.open(1, Access::Write);
    expect_nothing(key.get::<Chain>())?;
    plan.make(call, &mut key)?;
    call.reply_simple(c"OK");
    call.replicate_words(c"BF.RESERVE", &plan.words());
    call.notify(c"bf.reserve");
    Ok(())
}

fn reserve_plan(call: &Call<'_>) -> Result<Plan, Refusal> {
    let rate = call.double(2).ok_or(text::BF_RATE)?;
    if !settings::is_rate(rate) {
        return Err(text::BF_RATE_RANGE.into());
    }
    let capacity = call.integer(3).ok_or(text::BF_CAPACITY)?;
    let capacity = in_range(capacity, 1, MAX_CAPACITY).ok_or(text::BF_CAPACITY_RANGE)?;
    let is_fixed = find_option(call, 4, b"NONSCALING").is_some();
    let scaling = match find_option(call, 4, b"EXPANSION") {
        None if is_fixed => FIXED,
        None => scaling(settings::BF_EXPANSION.get()),
        Some(at) if at + 1 == call.count() => return Err(text::BF_NO_EXPANSION.into()),
        Some(_) if is_fixed => return Err(text::BF_FIXED.into()),
        Some(at) => {
            let expansion = call.integer(at + 1).ok_or(text::BF_EXPANSION)?;
            scaling(in_range(expansion, 0, MAX_EXPANSION).ok_or(text::BF_EXPANSION_RANGE)?)
        }
    };
    Ok(Plan { capacity: capacity as u64, rate: rate.min(MAX_RATE), scaling })
}

/// `BF.ADD key item`
pub(crate) fn add(call: &Call<'_>) {
    settle(call, check_arity(call.count() == 3).and_then(|()| add_one(call)));
}

/// One key: the most frequent command, without an array for its replies or a list of what was new.
fn add_one(call: &Call<'_>) -> Result<(), Refusal> {
    let mut key = call.open(1, Access::Write);
    let (chain, made) = open_or_make(call, &mut key, Some(Plan::by_default()))?;
    let outcome = chain.insert(BloomHash::of(call.arg(2)), memory_limit(call));
    match (&made, outcome) {
        (None, Ok(true)) => call.replicate_verbatim(),
        (Some(plan), _) => {
            call.replicate_words(c"BF.RESERVE", &plan.words());
            if outcome == Ok(true) {
                call.replicate_args(c"BF.ADD", 2, 1);
            }
        }
        _ => {}
    }
    notify(call, made.is_some(), outcome == Ok(true));
    match outcome {
        Ok(is_new) => call.reply_bool(is_new),
        Err(error) => call.reply_error(text::of_bloom_insert(error)),
    }
    Ok(())
}

/// `BF.MADD key item [item ...]`
pub(crate) fn madd(call: &Call<'_>) {
    settle(
        call,
        check_arity(call.count() >= 3).and_then(|()| add_many(call, 2, Some(Plan::by_default()))),
    );
}

/// `BF.INSERT key [CAPACITY c] [ERROR e] [EXPANSION x] [NOCREATE] [NONSCALING] ITEMS item [item ...]`
pub(crate) fn insert(call: &Call<'_>) {
    settle(call, try_insert(call));
}

fn try_insert(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4)?;
    let mut plan = Plan::by_default();
    let (mut may_create, mut is_fixed) = (true, false);
    let mut at = 2;
    // RedisBloom looks at the first letters only, and so do clients that shorten.
    let letter = |i: usize, n: usize| call.arg(i).get(n).map_or(0, u8::to_ascii_lowercase);
    let first = loop {
        check_arity(at < call.count())?;
        let name = at;
        at += 1;
        match letter(name, 0) {
            b'i' => break at,
            b'n' if letter(name, 2) == b'c' => may_create = false,
            b'n' => is_fixed = true,
            b'e' | b'c' => {
                check_arity(at < call.count())?;
                match (letter(name, 0), letter(name, 1)) {
                    (b'c', _) => plan.capacity = insert_capacity(call, at)?,
                    (_, b'r') => plan.rate = insert_rate(call, at)?,
                    _ => plan.scaling = insert_scaling(call, at)?,
                }
                at += 1;
            }
            _ => return Err(text::INSERT_UNKNOWN.into()),
        }
    };
    check_arity(first < call.count())?;
    if is_fixed {
        plan.scaling = FIXED;
    }
    add_many(call, first, may_create.then_some(plan))
}

fn insert_capacity(call: &Call<'_>, i: usize) -> Result<u64, Refusal> {
    let capacity = call.integer(i).and_then(|capacity| in_range(capacity, 1, MAX_CAPACITY));
    Ok(capacity.ok_or(text::INSERT_CAPACITY)? as u64)
}

fn insert_rate(call: &Call<'_>, i: usize) -> Result<f64, Refusal> {
    let rate = call.double(i).filter(|&rate| settings::is_rate(rate));
    Ok(rate.ok_or(text::INSERT_RATE)?.min(MAX_RATE))
}

fn insert_scaling(call: &Call<'_>, i: usize) -> Result<Scaling, Refusal> {
    let expansion = call.integer(i).and_then(|expansion| in_range(expansion, 0, MAX_EXPANSION));
    Ok(scaling(expansion.ok_or(text::INSERT_EXPANSION)?))
}

/// Inserts the arguments from `first` on. Stops at the first that is refused, which is the last reply.
fn add_many(call: &Call<'_>, first: usize, plan: Option<Plan>) -> Result<(), Refusal> {
    let mut key = call.open(1, Access::Write);
    let (chain, made) = open_or_make(call, &mut key, plan)?;
    let limit = memory_limit(call);
    let mut new = Vec::with_capacity(call.count() - first);
    let mut replies = 0;
    call.begin_array();
    for i in first..call.count() {
        replies += 1;
        match chain.insert(BloomHash::of(call.arg(i)), limit) {
            Ok(is_new) => {
                if is_new {
                    new.push(i);
                }
                call.reply_bool(is_new);
            }
            Err(error) => {
                call.reply_error(text::of_bloom_insert(error));
                break;
            }
        }
    }
    call.end_array(replies);
    if let Some(plan) = &made {
        call.replicate_words(c"BF.RESERVE", &plan.words());
    }
    match (&made, new.len()) {
        (_, 0) => {}
        (None, all) if all == call.count() - first => call.replicate_verbatim(),
        _ => call.replicate_chosen(c"BF.MADD", &new),
    }
    notify(call, made.is_some(), !new.is_empty());
    Ok(())
}

/// The filter of a key, made by the plan if there is none; then the plan comes back.
fn open_or_make<'key>(
    call: &Call<'_>,
    key: &'key mut Key<'_>,
    plan: Option<Plan>,
) -> Result<(&'key mut Chain, Option<Plan>), Refusal> {
    if let (Found::Nothing, Some(plan)) = (key.get::<Chain>(), &plan) {
        let chain = plan.make(call, key)?;
        return Ok((chain, Some(Plan { ..*plan })));
    }
    Ok((expect_filter(key.get_mut())?, None))
}

fn notify(call: &Call<'_>, is_made: bool, is_changed: bool) {
    if is_made {
        call.notify(c"bf.reserve");
    }
    if is_changed {
        call.notify(c"bf.add");
    }
}

/// `BF.EXISTS key item`
pub(crate) fn exists(call: &Call<'_>) {
    settle(
        call,
        check_arity(call.count() == 3).map(|()| {
            let key = call.open(1, Access::Read);
            let chain =
                if let Found::Filter(chain) = key.get::<Chain>() { Some(chain) } else { None };
            reply_contains(call, chain, 2);
        }),
    );
}

/// `BF.MEXISTS key item [item ...]`
pub(crate) fn mexists(call: &Call<'_>) {
    settle(
        call,
        check_arity(call.count() >= 3).map(|()| {
            let key = call.open(1, Access::Read);
            let chain =
                if let Found::Filter(chain) = key.get::<Chain>() { Some(chain) } else { None };
            call.reply_array(call.count() - 2);
            (2..call.count()).for_each(|i| reply_contains(call, chain, i));
        }),
    );
}

/// A key that is missing, or no filter, has no items: RedisBloom gives no error here.
fn reply_contains(call: &Call<'_>, chain: Option<&Chain>, i: usize) {
    call.reply_bool(chain.is_some_and(|chain| chain.contains(BloomHash::of(call.arg(i)))));
}

/// `BF.FIND key item [item ...]`: like BF.MEXISTS, but nothing for a missing key, and an error for another type.
pub(crate) fn find(call: &Call<'_>) {
    settle(call, try_find(call));
}

fn try_find(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    match key.get::<Chain>() {
        Found::Nothing => call.reply_null(),
        found => {
            let chain = expect_filter(found)?;
            call.reply_array(call.count() - 2);
            (2..call.count()).for_each(|i| reply_contains(call, Some(chain), i));
        }
    }
    Ok(())
}
