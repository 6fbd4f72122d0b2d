//! BF.SCANDUMP, BF.LOADCHUNK, CF.SCANDUMP and CF.LOADCHUNK, of RedisBloom's layouts and of native filters.

use std::ffi::CStr;

use crate::engine::blocked::Waiting;
use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::engine::value::Value;
use crate::error::{ChunkError, CreateError, DecodeError};
use crate::native::bloom::NativeBloom;
use crate::native::cuckoo::NativeCuckoo;
use crate::native::whole::Whole;
use crate::native::wire::{self, Arrival, NotTaken};
use crate::native::{Imaged, Native};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::dump::{self, CUCKOO_HEADER};
use crate::stats;

use super::filter::{loading, says};
use super::scan::{Family, Scan};
use super::{Refusal, check_arity, expect_filter, memory_limit, settle, text};

/// Filters up to this size are read at once, which takes about two milliseconds.
const SMALL_BYTES: u64 = 4 << 20;

/// `BF.SCANDUMP key iterator`
pub(crate) fn scan_bloom(call: &Call<'_>) {
    stats::timed(|| settle(call, try_scan_bloom(call)));
}

fn try_scan_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let key = call.open(1, Access::Read);
    let filter = to_dump::<Chain, NativeBloom>(&key)?;
    let iterator = call.integer(2).ok_or(text::BF_SCAN_ITERATOR)?;
    match (filter, iterator) {
        (ByLayout::RedisBloom(chain), 0) => reply_pair(call, 1, Some(&dump::chain_header(chain))),
        (ByLayout::RedisBloom(chain), _) => {
            let (next, piece) = dump::chain_chunk(chain, iterator).unwrap_or((0, &[]));
            reply_pair(call, next, Some(piece));
        }
        (ByLayout::Native(filter), _) => scan_native(call, filter, iterator, Family::Bloom),
    }
    Ok(())
}

/// `CF.SCANDUMP key iterator`. A filter without keys has no dump, and the end is nothing instead of no bytes; both only in
/// RedisBloom's layout.
pub(crate) fn scan_cuckoo(call: &Call<'_>) {
    stats::timed(|| settle(call, try_scan_cuckoo(call)));
}

fn try_scan_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let iterator = call.integer(2).filter(|&iterator| iterator >= 0).ok_or(text::CF_POSITION)?;
    let key = call.open(1, Access::Read);
    let filter = match to_dump::<CuckooFilter, NativeCuckoo>(&key)? {
        ByLayout::RedisBloom(filter) => filter,
        ByLayout::Native(filter) => {
            scan_native(call, filter, iterator, Family::Cuckoo);
            return Ok(());
        }
    };
    if filter.is_blank() {
        reply_pair(call, 0, None);
    } else if iterator == 0 {
        reply_pair(call, 1, Some(&dump::cuckoo_header(filter)));
    } else {
        match dump::cuckoo_chunk(filter, iterator) {
            Some((next, piece)) => reply_pair(call, next, Some(piece)),
            None => reply_pair(call, 0, None),
        }
    }
    Ok(())
}

/// The filter of a key with what is known of its image.
pub(super) fn to_dump<'key, A: Value, T: Imaged>(
    key: &'key Key<'_>,
) -> Result<ByLayout<&'key A, &'key Whole<T>>, Refusal>
where
    Native<T>: Value,
{
    match expect_filter(key.get_either::<A, Native<T>>())? {
        ByLayout::RedisBloom(filter) => Ok(ByLayout::RedisBloom(filter)),
        ByLayout::Native(Native::Whole(filter)) => Ok(ByLayout::Native(filter)),
        ByLayout::Native(Native::Arriving(arrival)) => Err(loading(arrival)),
    }
}

/// Replies at once, or when the checksums of a large filter are known.
fn scan_native<T: Imaged>(call: &Call<'_>, filter: &Whole<T>, iterator: i64, family: Family) {
    let is_long = filter.image_bytes() > SMALL_BYTES && wire::needs_reading(filter, iterator);
    if is_long && let Some(waiting) = Waiting::begin(call) {
        return Scan::start(call, family, iterator, waiting);
    }
    let (next, bytes) = native_pair(filter, iterator);
    reply_pair(call, next, Some(&bytes));
}

/// The reply for an iterator of a native filter.
pub(super) fn native_pair<T: Imaged>(filter: &Whole<T>, iterator: i64) -> (i64, Vec<u8>) {
    if iterator == 0 {
        return (1, wire::header(filter));
    }
    wire::piece(filter, iterator).unwrap_or_default()
}

pub(super) fn reply_pair(call: &Call<'_>, next: i64, bytes: Option<&[u8]>) {
    call.reply_array(2);
    call.reply_integer(next);
    match bytes {
        Some(bytes) => call.reply_bytes(bytes),
        None => call.reply_null(),
    }
}

/// `BF.LOADCHUNK key iterator data`
pub(crate) fn load_bloom(call: &Call<'_>) {
    stats::timed(|| settle(call, try_load_bloom(call)));
}

fn try_load_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    let iterator = call.integer(2).ok_or(text::BF_LOAD_ITERATOR)?;
    let (mut key, data) = (call.open(1, Access::Write), call.arg(3));
    if iterator == 1 && wire::is_header(data) {
        begin::<Chain, NativeBloom>(call, &mut key)?;
        accept(call, c"bf.loadchunk");
        return Ok(());
    }
    match key.get_either_mut::<Chain, Native<NativeBloom>>() {
        Found::Missing if iterator == 1 => {
            let chain =
                dump::chain_from_header(data, memory_limit(call)).map_err(|error| match error {
                    DecodeError::TooLarge(CreateError::OverLimit { .. }) => text::OVER_LIMIT,
                    DecodeError::TooLarge(CreateError::Memory { .. }) => text::NO_MEMORY_TO_CREATE,
                    _ => text::BF_BAD_DATA,
                })?;
            key.set(chain);
        }
        Found::Filter(ByLayout::Native(_)) => go_on::<NativeBloom>(call, &mut key, iterator)?,
        Found::Filter(ByLayout::RedisBloom(chain)) => {
            dump::load_chain_chunk(chain, iterator, data).map_err(|error| match error {
                ChunkError::NoSuchPlace => text::BF_NO_LINK,
                ChunkError::TooLong => text::BF_TOO_BIG,
            })?;
            // A merge that is going on must not take it for the filter that it was.
            key.renew_id::<Chain>();
        }
        found => {
            expect_filter(found)?;
        }
    }
    accept(call, c"bf.loadchunk");
    Ok(())
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load_cuckoo(call: &Call<'_>) {
    stats::timed(|| settle(call, try_load_cuckoo(call)));
}

fn try_load_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    let iterator = call.integer(2).filter(|&iterator| iterator > 0).ok_or(text::CF_POSITION)?;
    let (mut key, data) = (call.open(1, Access::Write), call.arg(3));
    if iterator == 1 && wire::is_header(data) {
        begin::<CuckooFilter, NativeCuckoo>(call, &mut key)?;
        accept(call, c"cf.loadchunk");
        return Ok(());
    }
    match key.get_either_mut::<CuckooFilter, Native<NativeCuckoo>>() {
        Found::Filter(_) if iterator == 1 => return Err(text::EXISTS.into()),
        Found::Missing if iterator == 1 => {
            if data.len() != CUCKOO_HEADER {
                return Err(text::CF_HEADER.into());
            }
            let filter =
                dump::cuckoo_from_header(data, memory_limit(call)).map_err(
                    |error| match error {
                        DecodeError::TooLarge(CreateError::OverLimit { .. }) => text::OVER_LIMIT,
                        _ => text::CF_NOT_CREATED,
                    },
                )?;
            key.set(filter);
        }
        Found::Filter(ByLayout::Native(_)) => go_on::<NativeCuckoo>(call, &mut key, iterator)?,
        Found::Filter(ByLayout::RedisBloom(filter)) => {
            if data.is_empty() || dump::load_cuckoo_chunk(filter, iterator, data).is_err() {
                return Err(text::CF_NOT_LOADED.into());
            }
            // A compaction that is going on would move what the chunks after this one overwrite.
            key.renew_id::<CuckooFilter>();
        }
        found => {
            expect_filter(found)?;
        }
    }
    accept(call, c"cf.loadchunk");
    Ok(())
}

/// Begins to load a native filter. The key is missing, or holds an unfinished load, which is replaced.
fn begin<A: Value, T: Imaged>(call: &Call<'_>, key: &mut Key<'_>) -> Result<(), Refusal>
where
    Native<T>: Value,
{
    match key.get_either::<A, Native<T>>() {
        Found::Missing | Found::Filter(ByLayout::Native(Native::Arriving(_))) => {}
        Found::Filter(_) => return Err(text::EXISTS.into()),
        Found::WrongType => return Err(text::WRONG_TYPE.into()),
    }
    let arrival = Arrival::begin::<T>(call.arg(3), memory_limit(call))
        .map_err(|error| says(format!("ERR {error}")))?
        .map_err(text::of_create)?;
    key.set(Native::<T>::Arriving(arrival));
    Ok(())
}

/// Takes the next piece of a native filter. The last one completes it; if that fails, the key is deleted, here and on
/// replicas.
fn go_on<T: Imaged>(call: &Call<'_>, key: &mut Key<'_>, iterator: i64) -> Result<(), Refusal>
where
    Native<T>: Value,
{
    let arrival = match expect_filter(key.get_mut::<Native<T>>())? {
        Native::Arriving(arrival) => arrival,
        Native::Whole(_) => return Err(text::LOADED.into()),
    };
    let is_last = arrival.take(iterator, call.arg(3)).map_err(|error| match error {
        NotTaken::Empty => text::BF_BAD_DATA.into(),
        NotTaken::Memory => text::NO_MEMORY.into(),
        NotTaken::Length => says("ERR the chunk reaches beyond the end of the filter".to_owned()),
        NotTaken::Order { expected } => {
            says(format!("ERR the chunk is not the next one: its iterator should be {expected}"))
        }
    })?;
    if !is_last {
        return Ok(());
    }
    match arrival.finish::<T>() {
        Ok(filter) => {
            key.set(Native::whole(filter));
            Ok(())
        }
        Err(error) => {
            key.delete();
            call.replicate_words::<&str>(c"DEL", &[]);
            Err(says(format!("ERR the filter was not loaded: {error}")))
        }
    }
}

fn accept(call: &Call<'_>, event: &CStr) {
    call.replicate_verbatim();
    call.notify(event);
    call.reply_simple(c"OK");
}
