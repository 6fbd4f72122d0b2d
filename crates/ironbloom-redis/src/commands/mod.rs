//! The commands: arguments in, replies out, and what replicas are told.
//!
//! ```text
//! bloom    BF.RESERVE ADD MADD INSERT EXISTS MEXISTS    cuckoo    CF.RESERVE ADD ADDNX INSERT INSERTNX EXISTS …
//! dump     SCANDUMP and LOADCHUNK of both               report    CARD, INFO and DEBUG of both
//! merge    BF.MERGE                                     compact   CF.COMPACT
//! jobs     work that goes on between commands           text      what clients are told when something is wrong
//! filter   the filter of a key, of either layout        docs      the commands in words
//! scan     a SCANDUMP that takes long                   count     a BF.INFO … FULL that takes long
//! seed     the option SEED: a hash that others cannot compute
//! sketches the commands of sketches: a file for each family
//! ```
//!
//! Replicas and files are sent effects, not commands: a new filter is a RESERVE with all its parameters, so that a replica
//! with other settings gets the same filter; keys that changed nothing are not sent; and of a command that failed halfway,
//! only what it did, since it must not fail on a replica.

mod bloom;
pub(crate) mod compact;
mod count;
mod cuckoo;
mod docs;
mod dump;
mod filter;
mod jobs;
pub(crate) mod merge;
mod report;
mod scan;
mod seed;
pub(crate) mod sketches;
mod text;

use std::ffi::{CStr, CString};

use crate::engine::call::Call;
use crate::engine::describe::Docs;
use crate::engine::key::Found;
use crate::engine::register::{Command, RawHandler, handler};
use crate::limits::MemoryLimit;
use crate::{settings, stats};

/// Flags of commands that change a filter and may need memory for it.
const WRITE: &CStr = c"write deny-oom";
/// Flags of commands that only read.
const READ: &CStr = c"readonly fast";

/// ACL categories, as in RedisBloom 8; the family's own, `bloom` or `cuckoo`, is added to each. They differ from the flags:
/// only commands that take the same time for any filter are `fast` here.
const CHANGES: &CStr = c"write";
const MAKES: &CStr = c"write fast";
const LOOKS: &CStr = c"read";
const TELLS: &CStr = c"read fast";

/// A family of commands, by its ACL category.
struct Family(&'static CStr);

const BLOOM: Family = Family(c"bloom");
const CUCKOO: Family = Family(c"cuckoo");

impl Family {
    /// A command whose only key is its first argument.
    const fn command(
        self,
        name: &'static CStr,
        flags: &'static CStr,
        categories: &'static CStr,
        handler: RawHandler,
        docs: Docs,
    ) -> Command {
        Command { name, flags, family: self.0, categories, handler, last_key: 1, docs }
    }
}

/// All commands.
pub(crate) static COMMANDS: &[Command] = &[
    BLOOM.command(c"bf.reserve", WRITE, MAKES, handler(bloom::reserve), docs::BF_RESERVE),
    BLOOM.command(c"bf.add", WRITE, CHANGES, handler(bloom::add), docs::BF_ADD),
    BLOOM.command(c"bf.madd", WRITE, CHANGES, handler(bloom::madd), docs::BF_MADD),
    BLOOM.command(c"bf.insert", WRITE, CHANGES, handler(bloom::insert), docs::BF_INSERT),
    BLOOM.command(c"bf.exists", READ, LOOKS, handler(bloom::exists), docs::BF_EXISTS),
    BLOOM.command(c"bf.mexists", READ, LOOKS, handler(bloom::mexists), docs::BF_MEXISTS),
    BLOOM.command(c"bf.find", READ, LOOKS, handler(bloom::find), docs::BF_FIND),
    BLOOM.command(c"bf.card", READ, TELLS, handler(report::bloom_card), docs::BF_CARD),
    BLOOM.command(c"bf.info", READ, TELLS, handler(report::bloom_info), docs::BF_INFO),
    BLOOM.command(c"bf.debug", READ, LOOKS, handler(report::bloom_debug), docs::BF_DEBUG),
    BLOOM.command(c"bf.scandump", READ, LOOKS, handler(dump::scan_bloom), docs::BF_SCANDUMP),
    BLOOM.command(c"bf.loadchunk", WRITE, CHANGES, handler(dump::load_bloom), docs::BF_LOADCHUNK),
    Command {
        last_key: -1,
        ..BLOOM.command(c"bf.merge", WRITE, CHANGES, handler(merge::merge), docs::BF_MERGE)
    },
    Command {
        last_key: 2,
        ..BLOOM.command(
            c"bf.mergeslice",
            WRITE,
            CHANGES,
            handler(merge::merge_slice),
            docs::BF_MERGESLICE,
        )
    },
    CUCKOO.command(c"cf.reserve", WRITE, MAKES, handler(cuckoo::reserve), docs::CF_RESERVE),
    CUCKOO.command(c"cf.add", WRITE, CHANGES, handler(cuckoo::add), docs::CF_ADD),
    CUCKOO.command(c"cf.addnx", WRITE, CHANGES, handler(cuckoo::addnx), docs::CF_ADDNX),
    CUCKOO.command(c"cf.insert", WRITE, CHANGES, handler(cuckoo::insert), docs::CF_INSERT),
    CUCKOO.command(c"cf.insertnx", WRITE, CHANGES, handler(cuckoo::insertnx), docs::CF_INSERTNX),
    CUCKOO.command(c"cf.exists", READ, LOOKS, handler(cuckoo::exists), docs::CF_EXISTS),
    CUCKOO.command(c"cf.mexists", READ, LOOKS, handler(cuckoo::mexists), docs::CF_MEXISTS),
    CUCKOO.command(c"cf.count", READ, LOOKS, handler(cuckoo::count), docs::CF_COUNT),
    CUCKOO.command(c"cf.del", c"write fast", CHANGES, handler(cuckoo::del), docs::CF_DEL),
    // RedisBloom calls it `readonly`, so that its replicas may be told to compact alone and then differ.
    CUCKOO.command(c"cf.compact", c"write", CHANGES, handler(compact::compact), docs::CF_COMPACT),
    CUCKOO.command(c"cf.info", READ, TELLS, handler(report::cuckoo_info), docs::CF_INFO),
    CUCKOO.command(c"cf.debug", READ, LOOKS, handler(report::cuckoo_debug), docs::CF_DEBUG),
    CUCKOO.command(c"cf.scandump", READ, LOOKS, handler(dump::scan_cuckoo), docs::CF_SCANDUMP),
    CUCKOO.command(c"cf.loadchunk", WRITE, CHANGES, handler(dump::load_cuckoo), docs::CF_LOADCHUNK),
];

/// Why a command is refused.
pub(crate) enum Refusal {
    /// Wrong number of arguments.
    Arity,
    /// With this error message.
    Because(&'static CStr),
    /// With an error message that is not a constant.
    Says(CString),
}

impl From<&'static CStr> for Refusal {
    fn from(text: &'static CStr) -> Self {
        Self::Because(text)
    }
}

/// Replies with the error if a command was refused.
fn settle(call: &Call<'_>, outcome: Result<(), Refusal>) {
    match outcome {
        Ok(()) => {}
        Err(Refusal::Arity) => call.reply_wrong_arity(),
        Err(Refusal::Because(text)) => call.reply_error(text),
        Err(Refusal::Says(text)) => call.reply_error(&text),
    }
}

/// Refuses unless the number of arguments is right.
fn check_arity(is_right: bool) -> Result<(), Refusal> {
    if is_right { Ok(()) } else { Err(Refusal::Arity) }
}

/// The filter that was found, or why there is none.
fn expect_filter<T>(found: Found<T>) -> Result<T, Refusal> {
    match found {
        Found::Filter(filter) => Ok(filter),
        Found::Missing => Err(text::NOT_FOUND.into()),
        Found::WrongType => Err(text::WRONG_TYPE.into()),
    }
}

/// The filter that was found. A key that is missing or not a filter has no items: RedisBloom's lookups report no error.
fn if_filter<T>(found: Found<T>) -> Option<T> {
    if let Found::Filter(filter) = found { Some(filter) } else { None }
}

/// Replies with the answers of a query, and counts them.
fn reply_found(call: &Call<'_>, found: &[bool]) {
    stats::answered(found);
    call.reply_array(found.len());
    found.iter().for_each(|&is_found| call.reply_bool(is_found));
}

/// Refuses unless there is nothing yet.
fn expect_nothing<T>(found: Found<T>) -> Result<(), Refusal> {
    match found {
        Found::Missing => Ok(()),
        Found::Filter(_) => Err(text::EXISTS.into()),
        Found::WrongType => Err(text::WRONG_TYPE.into()),
    }
}

/// The memory limit of a filter: the setting, or none for commands from a primary or a file.
fn memory_limit(call: &Call<'_>) -> MemoryLimit {
    if call.must_obey() { MemoryLimit::NONE } else { settings::memory_limit() }
}

/// The position of an option, from argument `first` on. Case does not matter.
fn find_option(call: &Call<'_>, first: usize, name: &[u8]) -> Option<usize> {
    (first..call.count()).find(|&i| call.arg(i).eq_ignore_ascii_case(name))
}

/// A number if it lies in its range.
fn in_range(number: i64, least: i64, greatest: i64) -> Option<i64> {
    (least..=greatest).contains(&number).then_some(number)
}
