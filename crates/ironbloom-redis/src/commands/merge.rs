//! BF.MERGE: the union of filters of equal geometry.

use crate::engine::call::Call;
use crate::engine::key::{Access, Found, Key};
use crate::redisbloom::chain::Chain;

use super::{Refusal, check_arity, expect_filter, memory_limit, settle, text};

/// `BF.MERGE destination source [source ...]`: the destination answers for its keys and those of all sources. It is made
/// if it is missing. Filters of another geometry are refused, and nothing is changed.
pub(crate) fn merge(call: &Call<'_>) {
    settle(call, try_merge(call));
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let sources: Vec<Key<'_>> = (2..call.count()).map(|i| call.open(i, Access::Read)).collect();
    let mut destination = call.open(1, Access::Write);
    let first = expect_filter(sources[0].get::<Chain>())?;
    // The union is made beside the destination, which may be one of the sources.
    let mut union = match destination.get::<Chain>() {
        Found::Nothing => {
            memory_limit(call).check(0, first.array_bytes()).map_err(text::of_create)?;
            first.try_clone()
        }
        found => expect_filter(found)?.try_clone(),
    }
    .map_err(text::of_create)?;
    for source in &sources {
        union.union_with(expect_filter(source.get())?).map_err(|_| text::MERGE_DIFFERS)?;
    }
    // A source that is the destination is freed by what follows, and must not be open then.
    drop(sources);
    destination.set(union);
    call.replicate_verbatim();
    call.notify(c"bf.merge");
    call.reply_simple(c"OK");
    Ok(())
}
