//! CF.RESERVE, CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX; CF.EXISTS, CF.MEXISTS, CF.COUNT and CF.DEL.

use ironbloom::HashFn;

use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::error::InsertError;
use crate::native::Native;
use crate::native::cuckoo::NativeCuckoo;
use crate::redisbloom::batch::BATCH;
use crate::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use crate::redisbloom::murmur::cuckoo_hash;
use crate::settings::{self, MAX_CAPACITY, Number};
use crate::stats;

use super::filter::{CuckooMut, cuckoo, cuckoo_mut, cuckoo_or_make};
use super::{
    Refusal, check_arity, compact, expect_nothing, find_option, if_filter, in_range, memory_limit,
    reply_found, seed, settle, text,
};

/// Prefetch distance in items.
const AHEAD: usize = 8;

/// Whether a key that is already there is inserted again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Stored,
    Skipped,
}

/// The parameters of a new filter.
#[derive(Clone, Copy)]
struct Plan {
    capacity: i64,
    bucket_size: i64,
    max_iterations: i64,
    expansion: i64,
    /// If given, the filter is a native one.
    rate: Option<f64>,
    /// Of a native filter.
    hash_fn: HashFn,
}

impl Plan {
    fn by_default() -> Self {
        Self {
            capacity: settings::CF_CAPACITY.get(),
            bucket_size: settings::CF_BUCKET_SIZE.get(),
            max_iterations: settings::CF_MAX_ITERATIONS.get(),
            expansion: settings::CF_EXPANSION.get(),
            rate: None,
            hash_fn: HashFn::default(),
        }
    }

    fn make<'key>(
        &self,
        call: &Call<'_>,
        key: &'key mut Key<'_>,
    ) -> Result<CuckooMut<'key>, Refusal> {
        let limit = memory_limit(call);
        if let Some(rate) = self.rate {
            let (capacity, is_growing) = (self.capacity as u64, self.expansion > 0);
            let filter = NativeCuckoo::new(capacity, rate, is_growing, self.hash_fn, limit)
                .map_err(text::of_plan)?;
            return match key.set(Native::whole(filter)) {
                Native::Whole(filter) => Ok(ByLayout::Native(&mut **filter)),
                Native::Arriving(_) => unreachable!("it was just made whole"),
            };
        }
        let shape = CuckooShape::new(
            self.capacity as u64,
            self.bucket_size as u16,
            self.max_iterations as u16,
            self.expansion as u16,
        );
        let filter = shape.and_then(|shape| CuckooFilter::new(shape, limit));
        Ok(ByLayout::RedisBloom(key.set(filter.map_err(text::of_create)?)))
    }

    /// The words of a CF.RESERVE that makes the same filter with any settings.
    fn words(&self) -> Vec<String> {
        if let Some(rate) = self.rate {
            let words = [self.capacity.to_string(), "ERROR".to_owned(), format!("{rate:e}")];
            let expansion = ["EXPANSION".to_owned(), self.expansion.to_string()];
            return words.into_iter().chain(expansion).chain(seed::words(self.hash_fn)).collect();
        }
        let named = [
            ("BUCKETSIZE", self.bucket_size),
            ("MAXITERATIONS", self.max_iterations),
            ("EXPANSION", self.expansion),
        ];
        let options =
            named.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]);
        std::iter::once(self.capacity.to_string()).chain(options).collect()
    }
}

/// `CF.RESERVE key capacity [BUCKETSIZE b] [MAXITERATIONS i] [EXPANSION e] [ERROR rate] [SEED RANDOM | key]`
pub(crate) fn reserve(call: &Call<'_>) {
    stats::timed(|| settle(call, try_reserve(call)));
}

fn try_reserve(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3 && call.count() % 2 == 1)?;
    let capacity = call.integer(2).ok_or(text::CF_CAPACITY)?;
    // The range of an option is that of the setting.
    let option = |name: &[u8], setting: &Number, no_number, range| match find_option(call, 3, name)
    {
        None => Ok(setting.get()),
        Some(at) => {
            check_arity(at + 1 < call.count())?;
            let value = call.integer(at + 1).ok_or(Refusal::Because(no_number))?;
            in_range(value, setting.least, setting.greatest).ok_or(Refusal::Because(range))
        }
    };
    let max_iterations = option(
        b"MAXITERATIONS",
        &settings::CF_MAX_ITERATIONS,
        text::CF_MAX_ITERATIONS,
        text::CF_MAX_ITERATIONS_RANGE,
    )?;
    let bucket_size = option(
        b"BUCKETSIZE",
        &settings::CF_BUCKET_SIZE,
        text::CF_BUCKET_SIZE,
        text::CF_BUCKET_SIZE_RANGE,
    )?;
    let expansion = option(
        b"EXPANSION",
        &settings::CF_EXPANSION,
        text::CF_EXPANSION,
        text::CF_EXPANSION_RANGE,
    )?;
    let capacity =
        in_range(capacity, 2 * bucket_size, MAX_CAPACITY).ok_or(text::CF_CAPACITY_RANGE)?;
    let rate = asked_rate(call, expansion)?;
    let hash_fn = match find_option(call, 3, b"SEED") {
        None => HashFn::default(),
        Some(_) if rate.is_none() => return Err(text::SEED_NATIVE.into()),
        Some(at) => seed::at(call, at + 1)?,
    };
    let plan = Plan { capacity, bucket_size, max_iterations, expansion, rate, hash_fn };
    let mut key = call.open(1, Access::Write);
    expect_nothing(cuckoo(&key)?)?;
    plan.make(call, &mut key)?;
    call.reply_simple(c"OK");
    call.replicate_words(c"CF.RESERVE", &plan.words());
    call.notify(c"cf.reserve");
    Ok(())
}

/// The rate of CF.RESERVE, if there is one. Refuses options that contradict it.
fn asked_rate(call: &Call<'_>, expansion: i64) -> Result<Option<f64>, Refusal> {
    let Some(at) = find_option(call, 3, b"ERROR") else { return Ok(None) };
    let rate = (at + 1 < call.count()).then(|| call.double(at + 1)).flatten();
    let rate = rate.filter(|&rate| settings::is_rate(rate)).ok_or(text::CF_RATE)?;
    let others: [&[u8]; 2] = [b"BUCKETSIZE", b"MAXITERATIONS"];
    if others.iter().any(|name| find_option(call, 3, name).is_some()) {
        return Err(text::CF_RATE_ALONE.into());
    }
    if !(0..=1).contains(&expansion) {
        return Err(text::CF_RATE_EXPANSION.into());
    }
    Ok(Some(rate))
}

/// `CF.ADD key item`
pub(crate) fn add(call: &Call<'_>) {
    settle(call, add_one(call, Repeats::Stored));
}

/// `CF.ADDNX key item`
pub(crate) fn addnx(call: &Call<'_>) {
    settle(call, add_one(call, Repeats::Skipped));
}

fn add_one(call: &Call<'_>, repeats: Repeats) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let mut key = call.open(1, Access::Write);
    let (mut filter, made) = open_or_make(call, &mut key, Some(Plan::by_default()))?;
    let hash = filter.hash(call.arg(2));
    let outcome = store(call, &mut filter, hash, repeats);
    stats::ADDED.add(u64::from(outcome == Ok(true)));
    if let Some(plan) = &made {
        call.replicate_words(c"CF.RESERVE", &plan.words());
    }
    match (&made, outcome) {
        (None, Ok(true)) => call.replicate_verbatim(),
        (Some(_), Ok(true)) => call.replicate_args(c"CF.ADD", 2, 1),
        _ => {}
    }
    notify(call, made.is_some(), outcome == Ok(true));
    match outcome {
        Ok(is_new) => call.reply_bool(is_new),
        Err(error) => call.reply_error(text::of_cuckoo_insert(error)),
    }
    Ok(())
}

fn store(
    call: &Call<'_>,
    filter: &mut CuckooMut<'_>,
    hash: u64,
    repeats: Repeats,
) -> Result<bool, InsertError> {
    let limit = || memory_limit(call);
    match (filter, repeats) {
        (ByLayout::RedisBloom(filter), Repeats::Stored) => {
            filter.insert_asking(hash, limit).map(|()| true)
        }
        (ByLayout::RedisBloom(filter), Repeats::Skipped) => {
            if filter.contains(hash) {
                return Ok(false);
            }
            filter.insert_asking(hash, limit).map(|()| true)
        }
        (ByLayout::Native(filter), Repeats::Stored) => filter.insert(hash, limit).map(|()| true),
        (ByLayout::Native(filter), Repeats::Skipped) => filter.insert_new(hash, limit),
    }
}

/// `CF.INSERT key [CAPACITY c] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insert(call: &Call<'_>) {
    settle(call, try_insert(call, Repeats::Stored));
}

/// `CF.INSERTNX key [CAPACITY c] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insertnx(call: &Call<'_>) {
    settle(call, try_insert(call, Repeats::Skipped));
}

fn try_insert(call: &Call<'_>, repeats: Repeats) -> Result<(), Refusal> {
    check_arity(call.count() >= 4)?;
    let mut plan = Plan::by_default();
    let mut may_create = true;
    let mut at = 2;
    let first = loop {
        check_arity(at < call.count())?;
        let letter = call.arg(at).first().map_or(0, u8::to_ascii_lowercase);
        at += 1;
        match letter {
            b'i' => break at,
            b'n' => may_create = false,
            b'c' => {
                check_arity(at < call.count())?;
                let capacity = call.integer(at).ok_or(text::CF_CAPACITY)?;
                plan.capacity = in_range(capacity, 2 * plan.bucket_size, MAX_CAPACITY)
                    .ok_or(text::CF_INSERT_CAPACITY_RANGE)?;
                at += 1;
            }
            _ => return Err(text::INSERT_UNKNOWN.into()),
        }
    };
    check_arity(first < call.count())?;
    add_many(call, first, may_create.then_some(plan), repeats)
}

/// Inserts the arguments from `first` on. One that finds no room does not stop the others.
fn add_many(
    call: &Call<'_>,
    first: usize,
    plan: Option<Plan>,
    repeats: Repeats,
) -> Result<(), Refusal> {
    let mut key = call.open(1, Access::Write);
    let (mut filter, made) = open_or_make(call, &mut key, plan)?;
    let mut new = Vec::with_capacity(call.count() - first);
    call.reply_array(call.count() - first);
    let mut at = first;
    while at < call.count() {
        let end = call.count().min(at + BATCH);
        let hashes = filter.hashes(call, at, end - at);
        let hashes = &hashes[..end - at];
        filter.touch(&hashes[..hashes.len().min(AHEAD)]);
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(later) = hashes.get(i + AHEAD) {
                filter.touch(&[*later]);
            }
            let outcome = store(call, &mut filter, hash, repeats);
            if outcome == Ok(true) {
                new.push(at + i);
            }
            reply_insert(call, outcome, repeats);
        }
        at = end;
    }
    stats::ADDED.add(new.len() as u64);
    if let Some(plan) = &made {
        call.replicate_words(c"CF.RESERVE", &plan.words());
    }
    match (&made, new.len()) {
        (_, 0) => {}
        (None, all) if all == call.count() - first => call.replicate_verbatim(),
        // Each of them was inserted, so each is inserted on a replica, too, whether it was there or not.
        _ => call.replicate_chosen_after(c"CF.INSERT", "ITEMS", &new),
    }
    notify(call, made.is_some(), !new.is_empty());
    Ok(())
}

/// 1, 0, or -1 if there is no room; in RESP3 a boolean, except for CF.INSERTNX.
fn reply_insert(call: &Call<'_>, outcome: Result<bool, InsertError>, repeats: Repeats) {
    let is_number = repeats == Repeats::Skipped || !call.is_resp3();
    match outcome {
        Ok(is_new) if is_number => call.reply_integer(i64::from(is_new)),
        Err(InsertError::Full) if is_number => call.reply_integer(-1),
        Ok(is_new) => call.reply_bool(is_new),
        Err(InsertError::Full) => call.reply_bool(false),
        Err(error) => call.reply_error(text::of_cuckoo_insert(error)),
    }
}

/// The filter of a key, created from the plan if the key is missing; the plan is then returned as well.
fn open_or_make<'key>(
    call: &Call<'_>,
    key: &'key mut Key<'_>,
    plan: Option<Plan>,
) -> Result<(CuckooMut<'key>, Option<Plan>), Refusal> {
    let make = |key| {
        let plan = plan.ok_or(text::NOT_FOUND)?;
        plan.make(call, key).map(|filter| (filter, Some(plan)))
    };
    cuckoo_or_make(key, make, |filter| {
        if let ByLayout::RedisBloom(filter) = &filter {
            let is_at_end = filter.sub_filters() as i64 >= settings::CF_MAX_EXPANSIONS.get();
            if is_at_end && !call.must_obey() {
                return Err(text::CF_MAX_EXPANSIONS.into());
            }
        }
        Ok((filter, None))
    })
}

fn notify(call: &Call<'_>, is_made: bool, is_changed: bool) {
    if is_made {
        call.notify(c"cf.reserve");
    }
    if is_changed {
        call.notify(c"cf.add");
    }
}

/// `CF.EXISTS key item`
pub(crate) fn exists(call: &Call<'_>) {
    settle(call, try_exists(call));
}

fn try_exists(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let key = call.open(1, Access::Read);
    let filter = if_filter(cuckoo(&key)?);
    let is_found = filter.is_some_and(|filter| filter.contains(call.arg(2)));
    stats::answered(&[is_found]);
    call.reply_bool(is_found);
    Ok(())
}

/// `CF.MEXISTS key item [item ...]`
pub(crate) fn mexists(call: &Call<'_>) {
    settle(call, try_mexists(call));
}

fn try_mexists(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    // One item needs no batch.
    if call.count() == 3 {
        let filter = if_filter(cuckoo(&key)?);
        reply_found(call, &[filter.is_some_and(|filter| filter.contains(call.arg(2)))]);
        return Ok(());
    }
    let mut found = vec![false; call.count() - 2];
    if let Some(filter) = if_filter(cuckoo(&key)?) {
        filter.contains_args(call, 2, &mut found);
    }
    reply_found(call, &found);
    Ok(())
}

/// `CF.COUNT key item`
pub(crate) fn count(call: &Call<'_>) {
    settle(call, try_count(call));
}

fn try_count(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let key = call.open(1, Access::Read);
    let count = if_filter(cuckoo(&key)?).map_or(0, |filter| filter.count(call.arg(2)));
    call.reply_integer(count as i64);
    Ok(())
}

/// `CF.DEL key item`
pub(crate) fn del(call: &Call<'_>) {
    settle(call, try_del(call));
}

fn try_del(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let mut key = call.open(1, Access::Write);
    let Found::Filter(mut filter) = cuckoo_mut(&mut key)? else {
        return Err(text::CF_DEL_NOT_FOUND.into());
    };
    let is_found = match &mut filter {
        ByLayout::RedisBloom(filter) => filter.take_out(cuckoo_hash(call.arg(2))),
        ByLayout::Native(filter) => filter.remove(filter.hash_fn().hash(call.arg(2))),
    };
    if is_found {
        stats::DELETED.add(1);
        call.replicate_verbatim();
        call.notify(c"cf.del");
        if compact::after_removal(call, filter) {
            compact::between_commands(call, &key);
        }
    }
    call.reply_bool(is_found);
    Ok(())
}
