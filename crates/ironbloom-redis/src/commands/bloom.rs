//! BF.RESERVE, BF.ADD, BF.MADD, BF.INSERT; BF.EXISTS, BF.MEXISTS and BF.FIND.

use ironbloom::HashFn;

use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::native::Native;
use crate::native::bloom::NativeBloom;
use crate::redisbloom::chain::{Chain, Scaling};
use crate::redisbloom::dump;
use crate::settings::{self, MAX_CAPACITY, MAX_EXPANSION, MAX_RATE};
use crate::stats;

use super::filter::{Bloom, BloomMut, bloom, bloom_or_make};
use super::{
    Refusal, check_arity, expect_filter, expect_nothing, find_option, if_filter, in_range,
    memory_limit, reply_found, seed, settle, text,
};

/// The layout of a new filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// RedisBloom's.
    RedisBloom,
    /// One cache line a key and stage.
    Blocked,
    /// The last n keys.
    Window(u64),
}

/// The parameters of a new filter.
#[derive(Clone, Copy)]
struct Plan {
    capacity: u64,
    rate: f64,
    scaling: Scaling,
    layout: Layout,
    /// Of a native filter.
    hash_fn: HashFn,
}

impl Plan {
    /// The parameters of a filter that is created implicitly.
    fn by_default() -> Self {
        Self {
            capacity: settings::BF_CAPACITY.get() as u64,
            rate: settings::BF_RATE.get(),
            scaling: scaling(settings::BF_EXPANSION.get()),
            layout: Layout::RedisBloom,
            hash_fn: HashFn::default(),
        }
    }

    fn make<'key>(
        &self,
        call: &Call<'_>,
        key: &'key mut Key<'_>,
    ) -> Result<BloomMut<'key>, Refusal> {
        let limit = memory_limit(call);
        let native = match (self.layout, self.scaling) {
            (Layout::RedisBloom, _) => {
                let chain = Chain::new(self.capacity, self.rate, self.scaling, limit)
                    .map_err(text::of_create)?;
                return Ok(ByLayout::RedisBloom(key.set(chain)));
            }
            (Layout::Blocked, Scaling::Fixed(_)) => {
                NativeBloom::blocked(self.capacity, self.rate, self.hash_fn, limit)
            }
            (Layout::Blocked, Scaling::Growing(growth)) => {
                let growth = u64::from(growth);
                NativeBloom::growing(self.capacity, self.rate, growth, self.hash_fn, limit)
            }
            (Layout::Window(window), _) => {
                NativeBloom::window(window, self.rate, self.hash_fn, limit)
            }
        };
        let native = native.map_err(text::of_plan)?;
        match key.set(Native::whole(native)) {
            Native::Whole(filter) => Ok(ByLayout::Native(&mut **filter)),
            Native::Arriving(_) => unreachable!("it was just made whole"),
        }
    }

    /// Sends replicas and files a command that makes the same filter with any settings.
    fn replicate(&self, call: &Call<'_>) {
        // What a filter that does not grow remembers as its growth is a setting, or beyond what BF.RESERVE can say.
        if let (Layout::RedisBloom, Scaling::Fixed(1..)) = (self.layout, self.scaling)
            && let Ok(header) = dump::new_chain_header(self.capacity, self.rate, self.scaling)
        {
            return call.replicate_words::<&[u8]>(c"BF.LOADCHUNK", &[b"1", &header]);
        }
        call.replicate_words(c"BF.RESERVE", &self.words());
    }

    /// The words of a BF.RESERVE that makes the same filter with any settings.
    fn words(&self) -> Vec<String> {
        let mut words = vec![format!("{:e}", self.rate), self.capacity.to_string()];
        words.extend(seed::words(self.hash_fn));
        let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
        if let Layout::Window(window) = self.layout {
            add(&["WINDOW", &window.to_string()]);
            return words;
        }
        match self.scaling {
            Scaling::Growing(growth) => add(&["EXPANSION", &growth.to_string()]),
            Scaling::Fixed(0) => add(&["EXPANSION", "0"]),
            Scaling::Fixed(_) => add(&["NONSCALING"]),
        }
        if self.layout == Layout::Blocked {
            add(&["LAYOUT", "BLOCKED"]);
        }
        words
    }

    /// Refuses options that contradict each other.
    fn checked(self) -> Result<Self, Refusal> {
        match (self.layout, self.scaling) {
            (Layout::RedisBloom, _) if self.hash_fn != HashFn::default() => {
                Err(text::SEED_NATIVE.into())
            }
            (Layout::Blocked, Scaling::Growing(growth)) if !(2..=16).contains(&growth) => {
                Err(text::BLOCKED_EXPANSION.into())
            }
            _ => Ok(self),
        }
    }
}

/// EXPANSION 0 is a filter that does not grow.
fn scaling(expansion: i64) -> Scaling {
    match expansion {
        0 => Scaling::Fixed(0),
        growth => Scaling::Growing(growth as u32),
    }
}

/// The same filter if it does not grow. It remembers the growth that it would have had, since dumps carry it.
fn fixed(scaling: Scaling) -> Scaling {
    match scaling {
        Scaling::Growing(growth) | Scaling::Fixed(growth) => Scaling::Fixed(growth),
    }
}

/// Arguments of a BF.RESERVE that has no more than RedisBloom's options; and with ours.
const MAX_ARGUMENTS: usize = 7;
const MAX_ARGUMENTS_NATIVE: usize = 13;

/// `BF.RESERVE key error_rate capacity [EXPANSION n] [NONSCALING] [LAYOUT REDISBLOOM | BLOCKED] [WINDOW n] [SEED RANDOM | key]`
pub(crate) fn reserve(call: &Call<'_>) {
    stats::timed(|| settle(call, try_reserve(call)));
}

fn try_reserve(call: &Call<'_>) -> Result<(), Refusal> {
    let names: [&[u8]; 3] = [b"LAYOUT", b"WINDOW", b"SEED"];
    let is_native = names.iter().any(|name| find_option(call, 4, name).is_some());
    let most = if is_native { MAX_ARGUMENTS_NATIVE } else { MAX_ARGUMENTS };
    check_arity((4..=most).contains(&call.count()))?;
    let plan = reserve_plan(call)?;
    let mut key = call.open(1, Access::Write);
    expect_nothing(bloom(&key)?)?;
    plan.make(call, &mut key)?;
    call.reply_simple(c"OK");
    plan.replicate(call);
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
    let expansion = find_option(call, 4, b"EXPANSION");
    let by_default = scaling(settings::BF_EXPANSION.get());
    let scaling = match expansion {
        None if is_fixed => fixed(by_default),
        None => by_default,
        Some(at) if at + 1 == call.count() => return Err(text::BF_NO_EXPANSION.into()),
        // Its checks are in this order.
        Some(at) => match call.integer(at + 1).ok_or(text::BF_EXPANSION)? {
            0 => Scaling::Fixed(0),
            _ if is_fixed || matches!(by_default, Scaling::Fixed(_)) && !call.must_obey() => {
                return Err(text::BF_FIXED.into());
            }
            growth => scaling(in_range(growth, 1, MAX_EXPANSION).ok_or(text::BF_EXPANSION_RANGE)?),
        },
    };
    let asked = find_option(call, 4, b"LAYOUT");
    let layout = match (asked, find_option(call, 4, b"WINDOW")) {
        (None, None) => Layout::RedisBloom,
        (Some(at), None) => layout_at(call, at + 1)?,
        (None, Some(at)) if !is_fixed && expansion.is_none() => window_at(call, at + 1)?,
        (_, Some(_)) => return Err(text::WINDOW_ALONE.into()),
    };
    let hash_fn = match find_option(call, 4, b"SEED") {
        Some(at) => seed::at(call, at + 1)?,
        None => HashFn::default(),
    };
    Plan { capacity: capacity as u64, rate: rate.min(MAX_RATE), scaling, layout, hash_fn }.checked()
}

fn layout_at(call: &Call<'_>, i: usize) -> Result<Layout, Refusal> {
    match (i < call.count()).then(|| call.arg(i).to_ascii_uppercase()).as_deref() {
        Some(b"REDISBLOOM") => Ok(Layout::RedisBloom),
        Some(b"BLOCKED") => Ok(Layout::Blocked),
        _ => Err(text::LAYOUT.into()),
    }
}

fn window_at(call: &Call<'_>, i: usize) -> Result<Layout, Refusal> {
    let window = (i < call.count()).then(|| call.integer(i)).flatten();
    let window = window.and_then(|window| in_range(window, 1, MAX_CAPACITY)).ok_or(text::WINDOW)?;
    Ok(Layout::Window(window as u64))
}

/// `BF.ADD key item`
pub(crate) fn add(call: &Call<'_>) {
    settle(call, check_arity(call.count() == 3).and_then(|()| add_one(call)));
}

/// One key: the most frequent command, without an array for its replies or a list of what was new.
fn add_one(call: &Call<'_>) -> Result<(), Refusal> {
    let mut key = call.open(1, Access::Write);
    let (mut filter, made) = open_or_make(call, &mut key, Plan::by_default, true)?;
    let outcome = filter.insert(call, call.arg(2));
    let is_changed = outcome == Ok(true) || (outcome.is_ok() && filter.counts_repeats());
    stats::ADDED.add(u64::from(is_changed));
    match &made {
        None if is_changed => call.replicate_verbatim(),
        None => {}
        Some(plan) => {
            plan.replicate(call);
            if is_changed {
                call.replicate_args(c"BF.ADD", 2, 1);
            }
        }
    }
    notify(call, made.is_some(), is_changed);
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
        check_arity(call.count() >= 3).and_then(|()| add_many(call, 2, Plan::by_default, true)),
    );
}

/// `BF.INSERT key [CAPACITY c] [ERROR e] [EXPANSION x] [NOCREATE] [NONSCALING] [LAYOUT REDISBLOOM | BLOCKED] [WINDOW n]
/// [SEED RANDOM | key] ITEMS item [item ...]`
pub(crate) fn insert(call: &Call<'_>) {
    settle(call, try_insert(call));
}

fn try_insert(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4)?;
    let mut plan = Plan::by_default();
    let (mut may_create, mut is_fixed, mut is_window, mut is_other) = (true, false, false, false);
    let mut at = 2;
    // RedisBloom looks at the first letters only, and so do clients that shorten.
    let letter = |i: usize, n: usize| call.arg(i).get(n).map_or(0, u8::to_ascii_lowercase);
    let first = loop {
        check_arity(at < call.count())?;
        let name = at;
        at += 1;
        // Ours are whole words: RedisBloom knows nothing that begins with these letters.
        if call.arg(name).eq_ignore_ascii_case(b"LAYOUT") {
            plan.layout = layout_at(call, at)?;
            is_other = true;
            at += 1;
            continue;
        }
        if call.arg(name).eq_ignore_ascii_case(b"SEED") {
            plan.hash_fn = seed::at(call, at)?;
            at += 1;
            continue;
        }
        if call.arg(name).eq_ignore_ascii_case(b"WINDOW") {
            plan.layout = window_at(call, at)?;
            is_window = true;
            at += 1;
            continue;
        }
        match letter(name, 0) {
            b'i' => break at,
            b'n' if letter(name, 2) == b'c' => may_create = false,
            b'n' => is_fixed = true,
            b'e' | b'c' => {
                check_arity(at < call.count())?;
                match (letter(name, 0), letter(name, 1)) {
                    (b'c', _) => plan.capacity = insert_capacity(call, at)?,
                    (_, b'r') => plan.rate = insert_rate(call, at)?,
                    _ => {
                        plan.scaling = insert_scaling(call, at)?;
                        is_other = true;
                    }
                }
                at += 1;
            }
            _ => return Err(text::INSERT_UNKNOWN.into()),
        }
    };
    check_arity(first < call.count())?;
    if is_fixed {
        plan.scaling = fixed(plan.scaling);
    }
    if is_window && (is_fixed || is_other) {
        return Err(text::WINDOW_ALONE.into());
    }
    let plan = plan.checked()?;
    add_many(call, first, || plan, may_create)
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
fn add_many(
    call: &Call<'_>,
    first: usize,
    plan: impl FnOnce() -> Plan,
    may_create: bool,
) -> Result<(), Refusal> {
    let mut key = call.open(1, Access::Write);
    let (mut filter, made) = open_or_make(call, &mut key, plan, may_create)?;
    let count = call.count() - first;
    let mut new = vec![false; count];
    let outcome = filter.insert_args(call, first, &mut new);
    let taken = outcome.map_or_else(|(taken, _)| taken, |()| count);
    call.reply_array(taken + usize::from(outcome.is_err()));
    new[..taken].iter().for_each(|&is_new| call.reply_bool(is_new));
    if let Err((_, error)) = outcome {
        call.reply_error(text::of_bloom_insert(error));
    }
    // What changed the filter: all of them if repeats do.
    if filter.counts_repeats() {
        new[..taken].fill(true);
    }
    let changed = new[..taken].iter().filter(|&&is_new| is_new).count();
    stats::ADDED.add(changed as u64);
    if let Some(plan) = &made {
        plan.replicate(call);
    }
    match &made {
        _ if changed == 0 => {}
        None if changed == count => call.replicate_verbatim(),
        _ => {
            let places: Vec<usize> = (0..taken).filter(|&i| new[i]).map(|i| first + i).collect();
            call.replicate_chosen(c"BF.MADD", &places);
        }
    }
    notify(call, made.is_some(), changed > 0);
    Ok(())
}

/// The filter of a key, created from the plan if the key is missing and `may_create`; the plan is then returned as well.
fn open_or_make<'key>(
    call: &Call<'_>,
    key: &'key mut Key<'_>,
    plan: impl FnOnce() -> Plan,
    may_create: bool,
) -> Result<(BloomMut<'key>, Option<Plan>), Refusal> {
    let make = |key| {
        if !may_create {
            return Err(text::NOT_FOUND.into());
        }
        let plan = plan();
        plan.make(call, key).map(|filter| (filter, Some(plan)))
    };
    bloom_or_make(key, make, |filter| (filter, None))
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
    settle(call, try_exists(call));
}

fn try_exists(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let key = call.open(1, Access::Read);
    let filter = if_filter(bloom(&key)?);
    let is_found = filter.is_some_and(|filter| filter.contains(call.arg(2)));
    stats::answered(&[is_found]);
    call.reply_bool(is_found);
    Ok(())
}

/// `BF.MEXISTS key item [item ...]`
pub(crate) fn mexists(call: &Call<'_>) {
    settle(call, try_mexists(call));
}

fn try_mexists(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    reply_contains(call, if_filter(bloom(&key)?));
    Ok(())
}

/// Replies for all arguments after the key.
fn reply_contains(call: &Call<'_>, filter: Option<Bloom<'_>>) {
    // One item needs no batch.
    if call.count() == 3 {
        return reply_found(call, &[filter.is_some_and(|filter| filter.contains(call.arg(2)))]);
    }
    let mut found = vec![false; call.count() - 2];
    if let Some(filter) = filter {
        filter.contains_args(call, 2, &mut found);
    }
    reply_found(call, &found);
}

/// `BF.FIND key item [item ...]`: like BF.MEXISTS, but nothing for a missing key, and an error for another type.
pub(crate) fn find(call: &Call<'_>) {
    settle(call, try_find(call));
}

fn try_find(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    match bloom(&key)? {
        Found::Missing => call.reply_null(),
        found => reply_contains(call, Some(expect_filter(found)?)),
    }
    Ok(())
}
