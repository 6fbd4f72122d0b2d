//! BF.MERGE: the union of filters of equal geometry.

use crate::engine::call::Call;
use crate::engine::key::{Access, Either, Found, Key};
use crate::native::bloom::NativeBloom;
use crate::native::{Imaged, Native};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::memory;

use super::filter::{Bloom, bloom, says};
use super::{Refusal, check_arity, expect_filter, memory_limit, settle, text};

/// `BF.MERGE destination source [source ...]`: the destination answers for its keys and those of all sources. It is made
/// if it is missing. Filters of another geometry are refused, and nothing is changed.
pub(crate) fn merge(call: &Call<'_>) {
    settle(call, try_merge(call));
}

/// A union that is being made.
enum Union {
    RedisBloom(Chain),
    Native(NativeBloom),
}

impl Union {
    /// A copy, unless the memory for it is not to be had.
    fn of(filter: Bloom<'_>) -> Result<Self, Refusal> {
        Ok(match filter {
            Either::One(chain) => Self::RedisBloom(chain.try_clone().map_err(text::of_create)?),
            Either::Other(filter) => {
                memory::ask(filter.array_bytes()).map_err(text::of_create)?;
                Self::Native(filter.clone())
            }
        })
    }

    fn add(&mut self, filter: Bloom<'_>) -> Result<(), Refusal> {
        match (self, filter) {
            (Self::RedisBloom(union), Either::One(chain)) => {
                union.union_with(chain).map_err(|_| text::MERGE_DIFFERS.into())
            }
            (Self::Native(union), Either::Other(filter)) => {
                union.union_with(filter).map_err(|mismatch| match mismatch {
                    Some(mismatch) => says(format!("ERR filters cannot be merged: {mismatch}")),
                    None => text::MERGE_LAYOUTS.into(),
                })
            }
            _ => Err(text::MERGE_LAYOUTS.into()),
        }
    }
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let sources: Vec<Key<'_>> = (2..call.count()).map(|i| call.open(i, Access::Read)).collect();
    let mut destination = call.open(1, Access::Write);
    let first = expect_filter(bloom(&sources[0])?)?;
    // The union is made beside the destination, which may be one of the sources.
    let mut union = match bloom(&destination)? {
        Found::Nothing => {
            let bytes = match &first {
                Either::One(chain) => chain.array_bytes(),
                Either::Other(filter) => filter.array_bytes(),
            };
            memory_limit(call).check(0, bytes).map_err(text::of_create)?;
            Union::of(first)?
        }
        found => Union::of(expect_filter(found)?)?,
    };
    for source in &sources {
        union.add(expect_filter(bloom(source)?)?)?;
    }
    // A source that is the destination is freed by what follows, and must not be open then.
    drop(sources);
    match union {
        Union::RedisBloom(chain) => {
            destination.set(chain);
        }
        Union::Native(filter) => {
            destination.set(Native::Whole(filter));
        }
    }
    call.replicate_verbatim();
    call.notify(c"bf.merge");
    call.reply_simple(c"OK");
    Ok(())
}
