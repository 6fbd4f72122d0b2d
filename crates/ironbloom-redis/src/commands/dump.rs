//! BF.SCANDUMP, BF.LOADCHUNK, CF.SCANDUMP and CF.LOADCHUNK.

use crate::engine::call::Call;
use crate::engine::key::{Access, Found};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;
use crate::redisbloom::dump::{self, CUCKOO_HEADER};
use crate::redisbloom::error::{ChunkError, CreateError, DecodeError};

use super::{Refusal, check_arity, expect_filter, expect_nothing, memory_limit, settle, text};

/// `BF.SCANDUMP key iterator`
pub(crate) fn scan_bloom(call: &Call<'_>) {
    settle(call, try_scan_bloom(call));
}

fn try_scan_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let key = call.open(1, Access::Read);
    let chain: &Chain = expect_filter(key.get())?;
    match call.integer(2).ok_or(text::BF_SCAN_ITERATOR)? {
        0 => reply_pair(call, 1, Some(&dump::chain_header(chain))),
        iterator => {
            let (next, piece) = dump::chain_chunk(chain, iterator).unwrap_or((0, &[]));
            reply_pair(call, next, Some(piece));
        }
    }
    Ok(())
}

/// `CF.SCANDUMP key iterator`. A filter without keys has no dump, and the end is nothing instead of no bytes.
pub(crate) fn scan_cuckoo(call: &Call<'_>) {
    settle(call, try_scan_cuckoo(call));
}

fn try_scan_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 3)?;
    let iterator = call.integer(2).filter(|&iterator| iterator >= 0).ok_or(text::CF_POSITION)?;
    let key = call.open(1, Access::Read);
    let filter: &CuckooFilter = expect_filter(key.get())?;
    if filter.is_empty() {
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

fn reply_pair(call: &Call<'_>, next: i64, bytes: Option<&[u8]>) {
    call.reply_array(2);
    call.reply_integer(next);
    match bytes {
        Some(bytes) => call.reply_bytes(bytes),
        None => call.reply_null(),
    }
}

/// `BF.LOADCHUNK key iterator data`
pub(crate) fn load_bloom(call: &Call<'_>) {
    settle(call, try_load_bloom(call));
}

fn try_load_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    let iterator = call.integer(2).ok_or(text::BF_LOAD_ITERATOR)?;
    let mut key = call.open(1, Access::Write);
    if let (Found::Nothing, 1) = (key.get::<Chain>(), iterator) {
        let chain =
            dump::chain_from_header(call.arg(3), memory_limit(call)).map_err(
                |error| match error {
                    DecodeError::TooLarge(CreateError::OverLimit { .. }) => text::OVER_LIMIT,
                    DecodeError::TooLarge(CreateError::Memory { .. }) => text::NO_MEMORY_TO_CREATE,
                    _ => text::BF_BAD_DATA,
                },
            )?;
        key.set(chain);
    } else {
        let chain = expect_filter(key.get_mut::<Chain>())?;
        dump::load_chain_chunk(chain, iterator, call.arg(3)).map_err(|error| match error {
            ChunkError::NoSuchPlace => text::BF_NO_LINK,
            ChunkError::TooLong => text::BF_TOO_BIG,
        })?;
    }
    accept(call, c"bf.loadchunk");
    Ok(())
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load_cuckoo(call: &Call<'_>) {
    settle(call, try_load_cuckoo(call));
}

fn try_load_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    let iterator = call.integer(2).filter(|&iterator| iterator > 0).ok_or(text::CF_POSITION)?;
    let mut key = call.open(1, Access::Write);
    let data = call.arg(3);
    if iterator == 1 {
        expect_nothing(key.get::<CuckooFilter>())?;
        if data.len() != CUCKOO_HEADER {
            return Err(text::CF_HEADER.into());
        }
        let filter =
            dump::cuckoo_from_header(data, memory_limit(call)).map_err(|error| match error {
                DecodeError::TooLarge(CreateError::OverLimit { .. }) => text::OVER_LIMIT,
                _ => text::CF_NOT_CREATED,
            })?;
        key.set(filter);
    } else {
        let filter = expect_filter(key.get_mut::<CuckooFilter>())?;
        if data.is_empty() || dump::load_cuckoo_chunk(filter, iterator, data).is_err() {
            return Err(text::CF_NOT_LOADED.into());
        }
    }
    accept(call, c"cf.loadchunk");
    Ok(())
}

fn accept(call: &Call<'_>, event: &std::ffi::CStr) {
    call.replicate_verbatim();
    call.notify(event);
    call.reply_simple(c"OK");
}
