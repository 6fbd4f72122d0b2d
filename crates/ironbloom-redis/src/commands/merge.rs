//! BF.MERGE: the union of filters of equal geometry.
//!
//! Every source is checked before a bit is changed; then bits are set in the destination itself, and counted on the way: one
//! pass over each source, and no copy of a destination that is there.

use crate::engine::call::Call;
use crate::engine::key::{Access, Either, Found, Key};
use crate::native::bloom::NativeBloom;
use crate::native::{Imaged, Native};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::memory;
use crate::stats;

use super::filter::{Bloom, BloomMut, bloom, bloom_mut, says};
use super::{Refusal, check_arity, expect_filter, memory_limit, settle, text};

/// `BF.MERGE destination source [source ...]`: the destination answers for its keys and those of all sources. It is made
/// if it is missing. Filters of another geometry are refused, and nothing is changed.
pub(crate) fn merge(call: &Call<'_>) {
    stats::timed(|| settle(call, try_merge(call)));
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    // A destination that is also a source has its own keys already, and is open only once.
    let is_other = |&i: &usize| call.arg(i) != call.arg(1);
    let others = (2..call.count()).filter(is_other);
    let keys: Vec<Key<'_>> = others.map(|i| call.open(i, Access::Read)).collect();
    let sources = keys
        .iter()
        .map(|key| expect_filter(bloom(key)?))
        .collect::<Result<Vec<Bloom<'_>>, Refusal>>()?;
    let mut destination = call.open(1, Access::Write);
    let is_source = keys.len() + 2 < call.count();
    match (bloom_mut(&mut destination)?, &sources[..]) {
        (Found::Nothing, [first, rest @ ..]) if !is_source => {
            rest.iter().try_for_each(|source| check_one(first, source))?;
            match copy(call, first)? {
                Either::One(mut chain) => {
                    rest.iter().for_each(|source| add(&mut Either::One(&mut chain), source));
                    destination.set(chain);
                }
                Either::Other(mut filter) => {
                    rest.iter().for_each(|source| add(&mut Either::Other(&mut filter), source));
                    destination.set(Native::whole(filter));
                }
            }
        }
        (found, _) => {
            let mut filter = expect_filter(found)?;
            if is_source {
                check_one(&filter.as_ref(), &filter.as_ref())?;
            }
            sources.iter().try_for_each(|source| check_one(&filter.as_ref(), source))?;
            sources.iter().for_each(|source| add(&mut filter, source));
        }
    }
    call.replicate_verbatim();
    call.notify(c"bf.merge");
    call.reply_simple(c"OK");
    Ok(())
}

/// A copy of a filter, unless it would be too large.
fn copy(call: &Call<'_>, filter: &Bloom<'_>) -> Result<Either<Chain, NativeBloom>, Refusal> {
    let bytes = match filter {
        Either::One(chain) => chain.array_bytes(),
        Either::Other(filter) => filter.array_bytes(),
    };
    memory_limit(call).check(0, bytes).map_err(text::of_create)?;
    memory::ask(bytes).map_err(text::of_create)?;
    Ok(match filter {
        Either::One(chain) => Either::One((*chain).clone()),
        Either::Other(filter) => Either::Other((*filter).clone()),
    })
}

/// Refuses unless two filters can be merged.
fn check_one(one: &Bloom<'_>, other: &Bloom<'_>) -> Result<(), Refusal> {
    match (one, other) {
        (Either::One(one), Either::One(other)) => {
            one.check_union(other).map_err(|_| text::MERGE_DIFFERS.into())
        }
        (Either::Other(one), Either::Other(other)) => {
            one.check_union(other).map_err(|mismatch| match mismatch {
                Some(mismatch) => says(format!("ERR filters cannot be merged: {mismatch}")),
                None => text::MERGE_LAYOUTS.into(),
            })
        }
        _ => Err(text::MERGE_LAYOUTS.into()),
    }
}

/// Adds the keys of a filter that was checked.
fn add(to: &mut BloomMut<'_>, filter: &Bloom<'_>) {
    let is_added = match (to, filter) {
        (Either::One(union), Either::One(chain)) => union.union_with(chain).is_ok(),
        (Either::Other(union), Either::Other(filter)) => union.union_with(filter).is_ok(),
        _ => false,
    };
    debug_assert!(is_added, "filters that cannot be merged were refused before");
}
