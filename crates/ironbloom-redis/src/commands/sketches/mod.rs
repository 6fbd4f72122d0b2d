//! The commands of RedisBloom's other types, their flags and their categories.
//!
//! ```text
//! cms      CMS.INITBYDIM INITBYPROB INCRBY QUERY MERGE INFO
//! topk     TOPK.RESERVE ADD INCRBY QUERY COUNT LIST INFO
//! tdigest  TDIGEST.CREATE RESET ADD MERGE MIN MAX QUANTILE CDF RANK REVRANK BYRANK BYREVRANK TRIMMED_MEAN INFO
//! docs     the commands in words
//! ```
//!
//! They are sent to replicas as they came: what they do depends on nothing but the sketch and their arguments, not even where
//! RedisBloom's is random.

mod cms;
mod docs;
mod tdigest;
mod topk;

use std::ffi::CStr;

use super::{CHANGES, LOOKS, MAKES, Refusal, TELLS, WRITE, check_arity, settle, text};
use crate::engine::call::Call;
use crate::engine::describe::Docs;
use crate::engine::key::Found;
use crate::engine::register::{Command, RawHandler, handler};

/// RedisBloom's flag of commands that only read: without `fast`, even where their category is.
const READ: &CStr = c"readonly";

/// The categories of the families.
pub(crate) static FAMILIES: &[&CStr] = &[c"cms", c"topk", c"tdigest"];

/// All commands of sketches.
pub(crate) static COMMANDS: &[Command] = &[
    cms(c"cms.initbydim", WRITE, MAKES, handler(cms::init_by_dim), docs::CMS_INITBYDIM),
    cms(c"cms.initbyprob", WRITE, MAKES, handler(cms::init_by_prob), docs::CMS_INITBYPROB),
    cms(c"cms.incrby", WRITE, CHANGES, handler(cms::incr_by), docs::CMS_INCRBY),
    cms(c"cms.query", READ, LOOKS, handler(cms::query), docs::CMS_QUERY),
    cms(c"cms.merge", WRITE, CHANGES, handler(cms::merge), docs::CMS_MERGE),
    cms(c"cms.info", READ, TELLS, handler(cms::info), docs::CMS_INFO),
    topk(c"topk.reserve", WRITE, MAKES, handler(topk::reserve), docs::TOPK_RESERVE),
    topk(c"topk.add", WRITE, CHANGES, handler(topk::add), docs::TOPK_ADD),
    topk(c"topk.incrby", WRITE, CHANGES, handler(topk::incr_by), docs::TOPK_INCRBY),
    topk(c"topk.query", READ, LOOKS, handler(topk::query), docs::TOPK_QUERY),
    topk(c"topk.count", READ, LOOKS, handler(topk::count), docs::TOPK_COUNT),
    topk(c"topk.list", READ, LOOKS, handler(topk::list), docs::TOPK_LIST),
    topk(c"topk.info", READ, TELLS, handler(topk::info), docs::TOPK_INFO),
    tdigest(c"tdigest.create", WRITE, MAKES, handler(tdigest::create), docs::TDIGEST_CREATE),
    tdigest(c"tdigest.reset", WRITE, MAKES, handler(tdigest::reset), docs::TDIGEST_RESET),
    tdigest(c"tdigest.add", WRITE, CHANGES, handler(tdigest::add), docs::TDIGEST_ADD),
    tdigest(c"tdigest.merge", WRITE, CHANGES, handler(tdigest::merge), docs::TDIGEST_MERGE),
    tdigest(c"tdigest.min", READ, TELLS, handler(tdigest::min), docs::TDIGEST_MIN),
    tdigest(c"tdigest.max", READ, TELLS, handler(tdigest::max), docs::TDIGEST_MAX),
    tdigest(c"tdigest.quantile", READ, TELLS, handler(tdigest::quantile), docs::TDIGEST_QUANTILE),
    tdigest(c"tdigest.cdf", READ, TELLS, handler(tdigest::cdf), docs::TDIGEST_CDF),
    tdigest(c"tdigest.rank", READ, TELLS, handler(tdigest::rank), docs::TDIGEST_RANK),
    tdigest(c"tdigest.revrank", READ, TELLS, handler(tdigest::rev_rank), docs::TDIGEST_REVRANK),
    tdigest(c"tdigest.byrank", READ, TELLS, handler(tdigest::by_rank), docs::TDIGEST_BYRANK),
    tdigest(
        c"tdigest.byrevrank",
        READ,
        TELLS,
        handler(tdigest::by_rev_rank),
        docs::TDIGEST_BYREVRANK,
    ),
    tdigest(
        c"tdigest.trimmed_mean",
        READ,
        LOOKS,
        handler(tdigest::trimmed_mean),
        docs::TDIGEST_TRIMMED_MEAN,
    ),
    tdigest(c"tdigest.info", READ, TELLS, handler(tdigest::info), docs::TDIGEST_INFO),
];

const fn cms(
    name: &'static CStr,
    flags: &'static CStr,
    categories: &'static CStr,
    handler: RawHandler,
    docs: Docs,
) -> Command {
    Command { name, flags, family: c"cms", categories, handler, last_key: 1, docs }
}

const fn topk(
    name: &'static CStr,
    flags: &'static CStr,
    categories: &'static CStr,
    handler: RawHandler,
    docs: Docs,
) -> Command {
    Command { name, flags, family: c"topk", categories, handler, last_key: 1, docs }
}

const fn tdigest(
    name: &'static CStr,
    flags: &'static CStr,
    categories: &'static CStr,
    handler: RawHandler,
    docs: Docs,
) -> Command {
    Command { name, flags, family: c"tdigest", categories, handler, last_key: 1, docs }
}

/// The sketch that was found, or why there is none, in the words of its family.
fn expect<T>(found: Found<T>, missing: &'static CStr) -> Result<T, Refusal> {
    match found {
        Found::Filter(sketch) => Ok(sketch),
        Found::Missing => Err(missing.into()),
        Found::WrongType => Err(text::WRONG_TYPE.into()),
    }
}

/// Replies with numbers by name.
fn reply_numbers(call: &Call<'_>, fields: &[(&CStr, i64)]) {
    call.reply_map(fields.len());
    for (name, number) in fields {
        call.reply_simple(name);
        call.reply_integer(*number);
    }
}
