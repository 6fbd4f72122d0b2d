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

use super::{CHANGES, Family, LOOKS, MAKES, Refusal, TELLS, WRITE, check_arity, settle, text};
use crate::engine::call::Call;
use crate::engine::key::Found;
use crate::engine::register::{Command, handler};

/// RedisBloom's flag of commands that only read: without `fast`, even where their category is.
const READ: &CStr = c"readonly";

/// The categories of the families.
pub(crate) static FAMILIES: &[&CStr] = &[CMS.0, TOPK.0, TDIGEST.0];

const CMS: Family = Family(c"cms");
const TOPK: Family = Family(c"topk");
const TDIGEST: Family = Family(c"tdigest");

/// All commands of sketches.
pub(crate) static COMMANDS: &[Command] = &[
    CMS.command(c"cms.initbydim", WRITE, MAKES, handler(cms::init_by_dim), docs::CMS_INITBYDIM),
    CMS.command(c"cms.initbyprob", WRITE, MAKES, handler(cms::init_by_prob), docs::CMS_INITBYPROB),
    CMS.command(c"cms.incrby", WRITE, CHANGES, handler(cms::incr_by), docs::CMS_INCRBY),
    CMS.command(c"cms.query", READ, LOOKS, handler(cms::query), docs::CMS_QUERY),
    CMS.command(c"cms.merge", WRITE, CHANGES, handler(cms::merge), docs::CMS_MERGE),
    CMS.command(c"cms.info", READ, TELLS, handler(cms::info), docs::CMS_INFO),
    TOPK.command(c"topk.reserve", WRITE, MAKES, handler(topk::reserve), docs::TOPK_RESERVE),
    TOPK.command(c"topk.add", WRITE, CHANGES, handler(topk::add), docs::TOPK_ADD),
    TOPK.command(c"topk.incrby", WRITE, CHANGES, handler(topk::incr_by), docs::TOPK_INCRBY),
    TOPK.command(c"topk.query", READ, LOOKS, handler(topk::query), docs::TOPK_QUERY),
    TOPK.command(c"topk.count", READ, LOOKS, handler(topk::count), docs::TOPK_COUNT),
    TOPK.command(c"topk.list", READ, LOOKS, handler(topk::list), docs::TOPK_LIST),
    TOPK.command(c"topk.info", READ, TELLS, handler(topk::info), docs::TOPK_INFO),
    TDIGEST.command(
        c"tdigest.create",
        WRITE,
        MAKES,
        handler(tdigest::create),
        docs::TDIGEST_CREATE,
    ),
    TDIGEST.command(c"tdigest.reset", WRITE, MAKES, handler(tdigest::reset), docs::TDIGEST_RESET),
    TDIGEST.command(c"tdigest.add", WRITE, CHANGES, handler(tdigest::add), docs::TDIGEST_ADD),
    TDIGEST.command(c"tdigest.merge", WRITE, CHANGES, handler(tdigest::merge), docs::TDIGEST_MERGE),
    TDIGEST.command(c"tdigest.min", READ, TELLS, handler(tdigest::min), docs::TDIGEST_MIN),
    TDIGEST.command(c"tdigest.max", READ, TELLS, handler(tdigest::max), docs::TDIGEST_MAX),
    TDIGEST.command(
        c"tdigest.quantile",
        READ,
        TELLS,
        handler(tdigest::quantile),
        docs::TDIGEST_QUANTILE,
    ),
    TDIGEST.command(c"tdigest.cdf", READ, TELLS, handler(tdigest::cdf), docs::TDIGEST_CDF),
    TDIGEST.command(c"tdigest.rank", READ, TELLS, handler(tdigest::rank), docs::TDIGEST_RANK),
    TDIGEST.command(
        c"tdigest.revrank",
        READ,
        TELLS,
        handler(tdigest::rev_rank),
        docs::TDIGEST_REVRANK,
    ),
    TDIGEST.command(
        c"tdigest.byrank",
        READ,
        TELLS,
        handler(tdigest::by_rank),
        docs::TDIGEST_BYRANK,
    ),
    TDIGEST.command(
        c"tdigest.byrevrank",
        READ,
        TELLS,
        handler(tdigest::by_rev_rank),
        docs::TDIGEST_BYREVRANK,
    ),
    TDIGEST.command(
        c"tdigest.trimmed_mean",
        READ,
        LOOKS,
        handler(tdigest::trimmed_mean),
        docs::TDIGEST_TRIMMED_MEAN,
    ),
    TDIGEST.command(c"tdigest.info", READ, TELLS, handler(tdigest::info), docs::TDIGEST_INFO),
];

/// Most rows of a sketch that a client can make: each item takes time in proportion to them. Errors halve with each row, so that 150
/// are enough for any probability that CMS.INITBYPROB takes.
const MAX_DEPTH: u64 = 255;

/// Whether a sketch may have this many rows. Those that a primary or a file has may have any number.
fn allows_depth(call: &Call<'_>, depth: u64) -> bool {
    depth <= MAX_DEPTH || call.must_obey()
}

/// Tells replicas what was done, as it came, and the client that it was.
fn reply_done(call: &Call<'_>) {
    call.replicate_verbatim();
    call.reply_simple(c"OK");
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
