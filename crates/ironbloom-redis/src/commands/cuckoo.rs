//! CF.RESERVE, CF.ADD, CF.ADDNX, CF.INSERT, CF.INSERTNX; CF.EXISTS, CF.MEXISTS, CF.COUNT; CF.DEL and CF.COMPACT.

use crate::engine::call::Call;
use crate::engine::key::{Access, Found, Key};
use crate::redisbloom::cuckoo::{CuckooFilter, CuckooShape};
use crate::redisbloom::error::InsertError;
use crate::redisbloom::memory::MemoryLimit;
use crate::redisbloom::murmur::cuckoo_hash;
use crate::settings::{self, MAX_CAPACITY, Number};

use super::{
    Refusal, check_arity, expect_filter, expect_nothing, find_option, in_range, memory_limit,
    settle, text,
};

/// Whether a key that is there is inserted once more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Stored,
    Skipped,
}

/// What a filter is made from.
#[derive(Clone, Copy)]
struct Plan {
    capacity: i64,
    bucket_size: i64,
    max_iterations: i64,
    expansion: i64,
}

impl Plan {
    fn by_default() -> Self {
        Self {
            capacity: settings::CF_CAPACITY.get(),
            bucket_size: settings::CF_BUCKET_SIZE.get(),
            max_iterations: settings::CF_MAX_ITERATIONS.get(),
            expansion: settings::CF_EXPANSION.get(),
        }
    }

    fn make<'key>(
        &self,
        call: &Call<'_>,
        key: &'key mut Key<'_>,
    ) -> Result<&'key mut CuckooFilter, Refusal> {
        let shape = CuckooShape::new(
            self.capacity as u64,
            self.bucket_size as u16,
            self.max_iterations as u16,
            self.expansion as u16,
        );
        let filter = shape.and_then(|shape| CuckooFilter::new(shape, memory_limit(call)));
        Ok(key.set(filter.map_err(text::of_create)?))
    }

    /// The words of a CF.RESERVE that makes the same filter with any settings.
    fn words(&self) -> Vec<String> {
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

/// `CF.RESERVE key capacity [BUCKETSIZE b] [MAXITERATIONS i] [EXPANSION e]`
pub(crate) fn reserve(call: &Call<'_>) {
    settle(call, try_reserve(call));
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
    let mut key = call.open(1, Access::Write);
    expect_nothing(key.get::<CuckooFilter>())?;
    let plan = Plan { capacity, bucket_size, max_iterations, expansion };
    plan.make(call, &mut key)?;
    call.reply_simple(c"OK");
    call.replicate_words(c"CF.RESERVE", &plan.words());
    call.notify(c"cf.reserve");
    Ok(())
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
    let (filter, made) = open_or_make(call, &mut key, Some(Plan::by_default()))?;
    let outcome = store(filter, call.arg(2), repeats, memory_limit(call));
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
    filter: &mut CuckooFilter,
    item: &[u8],
    repeats: Repeats,
    limit: MemoryLimit,
) -> Result<bool, InsertError> {
    match repeats {
        Repeats::Stored => filter.insert(cuckoo_hash(item), limit).map(|()| true),
        Repeats::Skipped => filter.insert_new(cuckoo_hash(item), limit),
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
    let (filter, made) = open_or_make(call, &mut key, plan)?;
    let limit = memory_limit(call);
    let mut new = Vec::with_capacity(call.count() - first);
    call.reply_array(call.count() - first);
    for i in first..call.count() {
        let outcome = store(filter, call.arg(i), repeats, limit);
        if outcome == Ok(true) {
            new.push(i);
        }
        reply_insert(call, outcome, repeats);
    }
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

/// 1, 0 or -1 for a key without room; in the third protocol truth values, but not for CF.INSERTNX.
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

/// The filter of a key, made by the plan if there is none; then the plan comes back.
fn open_or_make<'key>(
    call: &Call<'_>,
    key: &'key mut Key<'_>,
    plan: Option<Plan>,
) -> Result<(&'key mut CuckooFilter, Option<Plan>), Refusal> {
    if let (Found::Nothing, Some(plan)) = (key.get::<CuckooFilter>(), plan) {
        return Ok((plan.make(call, key)?, Some(plan)));
    }
    let filter: &mut CuckooFilter = expect_filter(key.get_mut())?;
    let is_at_end = filter.sub_filters() as i64 >= settings::CF_MAX_EXPANSIONS.get();
    if is_at_end && !call.must_obey() {
        return Err(text::CF_MAX_EXPANSIONS.into());
    }
    Ok((filter, None))
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
    settle(
        call,
        check_arity(call.count() == 3).map(|()| {
            let key = call.open(1, Access::Read);
            reply_contains(call, filter_of(&key), 2);
        }),
    );
}

/// `CF.MEXISTS key item [item ...]`
pub(crate) fn mexists(call: &Call<'_>) {
    settle(
        call,
        check_arity(call.count() >= 3).map(|()| {
            let key = call.open(1, Access::Read);
            let filter = filter_of(&key);
            call.reply_array(call.count() - 2);
            (2..call.count()).for_each(|i| reply_contains(call, filter, i));
        }),
    );
}

/// `CF.COUNT key item`
pub(crate) fn count(call: &Call<'_>) {
    settle(
        call,
        check_arity(call.count() == 3).map(|()| {
            let key = call.open(1, Access::Read);
            let count = filter_of(&key).map_or(0, |filter| filter.count(cuckoo_hash(call.arg(2))));
            call.reply_integer(count as i64);
        }),
    );
}

/// A key that is missing, or no filter, has no items: RedisBloom gives no error here.
fn filter_of<'key>(key: &'key Key<'_>) -> Option<&'key CuckooFilter> {
    if let Found::Filter(filter) = key.get() { Some(filter) } else { None }
}

fn reply_contains(call: &Call<'_>, filter: Option<&CuckooFilter>, i: usize) {
    call.reply_bool(filter.is_some_and(|filter| filter.contains(cuckoo_hash(call.arg(i)))));
}

/// `CF.DEL key item`
pub(crate) fn del(call: &Call<'_>) {
    settle(call, try_del(call));
}

fn try_del(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let mut key = call.open(1, Access::Write);
    let Found::Filter(filter) = key.get_mut::<CuckooFilter>() else {
        return Err(text::CF_DEL_NOT_FOUND.into());
    };
    let is_found = filter.remove(cuckoo_hash(call.arg(2)));
    if is_found {
        call.replicate_verbatim();
        call.notify(c"cf.del");
    }
    call.reply_bool(is_found);
    Ok(())
}

/// `CF.COMPACT key`
pub(crate) fn compact(call: &Call<'_>) {
    settle(call, try_compact(call));
}

fn try_compact(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let mut key = call.open(1, Access::Write);
    let Found::Filter(filter) = key.get_mut::<CuckooFilter>() else {
        return Err(text::CF_COMPACT_NOT_FOUND.into());
    };
    filter.compact();
    call.replicate_verbatim();
    call.notify(c"cf.compact");
    call.reply_simple(c"OK");
    Ok(())
}
