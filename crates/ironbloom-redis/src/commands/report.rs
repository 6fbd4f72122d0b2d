//! BF.CARD, BF.INFO, BF.DEBUG, CF.INFO and CF.DEBUG.

use std::ffi::CStr;

use crate::engine::call::Call;
use crate::engine::key::{Access, Found};
use crate::redisbloom::chain::{Chain, Scaling};
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::debug;

use super::{Refusal, check_arity, expect_filter, settle, text};

/// `BF.CARD key`
pub(crate) fn bloom_card(call: &Call<'_>) {
    settle(call, try_card(call));
}

fn try_card(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    match key.get::<Chain>() {
        Found::Nothing => call.reply_integer(0),
        found => call.reply_integer(expect_filter(found)?.len() as i64),
    }
    Ok(())
}

/// A field of BF.INFO: the word that asks for it, its name, and its value.
struct Field {
    word: &'static str,
    name: &'static CStr,
    /// Nothing for the expansion of a filter that does not grow.
    value: Option<u64>,
}

fn fields(chain: &Chain) -> [Field; 5] {
    let expansion = match chain.scaling() {
        Scaling::Growing(growth) => Some(u64::from(growth)),
        Scaling::Fixed(_) => None,
    };
    let field = |word, name, value| Field { word, name, value };
    [
        field("CAPACITY", c"Capacity", Some(chain.capacity())),
        field("SIZE", c"Size", Some(chain.size_in_bytes())),
        field("FILTERS", c"Number of filters", Some(chain.links().len() as u64)),
        field("ITEMS", c"Number of items inserted", Some(chain.len())),
        field("EXPANSION", c"Expansion rate", expansion),
    ]
}

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | FULL]`
pub(crate) fn bloom_info(call: &Call<'_>) {
    settle(call, try_bloom_info(call));
}

fn try_bloom_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity((2..=3).contains(&call.count()))?;
    let key = call.open(1, Access::Read);
    let chain = expect_filter(key.get::<Chain>())?;
    let fields = fields(chain);
    if call.count() == 2 {
        call.reply_map(fields.len());
        fields.iter().for_each(|field| reply_field(call, field));
        return Ok(());
    }
    let asked = call.arg(2);
    if asked.eq_ignore_ascii_case(b"FULL") {
        reply_full(call, chain, &fields);
        return Ok(());
    }
    let field = fields.iter().find(|field| asked.eq_ignore_ascii_case(field.word.as_bytes()));
    let field = field.ok_or(text::BF_INFO)?;
    // One field is a map of one pair, but in the older protocol the value alone.
    if call.is_resp3() {
        call.reply_map(1);
        reply_field(call, field);
    } else {
        call.reply_array(1);
        reply_value(call, field.value);
    }
    Ok(())
}

fn reply_field(call: &Call<'_>, field: &Field) {
    call.reply_simple(field.name);
    reply_value(call, field.value);
}

fn reply_value(call: &Call<'_>, value: Option<u64>) {
    match value {
        Some(value) => call.reply_integer(value as i64),
        None => call.reply_null(),
    }
}

/// All fields and three that RedisBloom has not. Counts the bits: takes as long as reading the filter.
fn reply_full(call: &Call<'_>, chain: &Chain, fields: &[Field]) {
    call.reply_map(fields.len() + 3);
    fields.iter().for_each(|field| reply_field(call, field));
    call.reply_simple(c"Layout");
    call.reply_simple(c"redisbloom");
    call.reply_simple(c"Fill");
    call.reply_double(chain.fill());
    call.reply_simple(c"Estimated error rate");
    call.reply_double(chain.estimate_rate());
}

/// `BF.DEBUG key`
pub(crate) fn bloom_debug(call: &Call<'_>) {
    settle(call, try_bloom_debug(call));
}

fn try_bloom_debug(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let lines = debug::chain_lines(expect_filter(key.get())?);
    call.reply_array(lines.len());
    lines.iter().for_each(|line| call.reply_bytes(line.as_bytes()));
    Ok(())
}

/// `CF.INFO key`
pub(crate) fn cuckoo_info(call: &Call<'_>) {
    settle(call, try_cuckoo_info(call));
}

fn try_cuckoo_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let filter: &CuckooFilter = expect_filter(key.get())?;
    let shape = filter.shape();
    let fields = [
        (c"Size", filter.size_in_bytes()),
        (c"Number of buckets", shape.buckets()),
        (c"Number of filters", filter.sub_filters() as u64),
        (c"Number of items inserted", filter.len()),
        (c"Number of items deleted", filter.removed()),
        (c"Bucket size", u64::from(shape.bucket_size())),
        (c"Expansion rate", u64::from(shape.expansion())),
        (c"Max iterations", u64::from(shape.max_iterations())),
    ];
    call.reply_map(fields.len());
    for (name, value) in fields {
        call.reply_simple(name);
        call.reply_integer(value as i64);
    }
    Ok(())
}

/// `CF.DEBUG key`
pub(crate) fn cuckoo_debug(call: &Call<'_>) {
    settle(call, try_cuckoo_debug(call));
}

fn try_cuckoo_debug(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    call.reply_bytes(debug::cuckoo_line(expect_filter(key.get())?).as_bytes());
    Ok(())
}
