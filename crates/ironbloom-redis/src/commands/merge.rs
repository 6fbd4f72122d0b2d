//! BF.MERGE: the union of filters of equal geometry.
//!
//! ```text
//! small    at once; replicas and files get the command, and do the same
//! large    the client waits, and others are served between slices of about a millisecond;
//!          replicas and files get `BF.MERGESLICE destination source stage word ones words` for each slice
//! ```
//!
//! Every source is checked before a bit is changed. Then bits are set in the destination itself, and counted on the way: one
//! pass over each source. A destination that is missing is made, empty, with the shape of the first source.
//!
//! **What others see meanwhile.** Bits are set and none is cleared. A destination answers for its own keys throughout, and
//! for those of the sources when the client has its reply. A key that is added to a source meanwhile may be merged or not;
//! one that is added to the destination is there. Filters may grow: a stage that a source did not have at the start is not part
//! of the merge.
//!
//! **What may happen to the keys.** A merge knows names, and the ids of the filters that it found there at the start. If one
//! is deleted, renamed, expired, flushed or replaced, or if LOADCHUNK overwrites it, the merge ends with an error: the
//! destination may then have some of the keys of the sources, and has all of its own. It is not deleted, even if the merge made
//! it, because an item may have been added meanwhile, or reported as there.
//!
//! **Replicas and files** get each slice at its place among the other commands, and so have the same bytes after it. A full
//! synchronisation, a fork for a file or a rewrite between two slices is no exception: what is copied has the slices before
//! it, and the others follow. A replica is not held up longer than its primary was. When a replica takes over in the
//! middle, or a server restarts, nobody was told that the merge is done, and it has to be called again.
//!
//! **Where a client cannot wait** (a transaction, a script, a call of another module, and BF.MERGE itself from a primary or
//! a file), any merge is made at once.

use std::ffi::c_int;
use std::time::Instant;

use ironbloom::UnionProgress;

use crate::engine::blocked::Waiting;
use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::engine::timer::Moment;
use crate::limits;
use crate::native::Native;
use crate::native::bloom::NativeBloom;
use crate::redisbloom::chain::Chain;
use crate::stats;

use super::filter::{Bloom, BloomAt, BloomMut, bloom, bloom_id, bloom_mut, says};
use super::jobs::{self, Job};
use super::{Refusal, check_arity, expect_filter, memory_limit, settle, text};

/// Sources up to this total size are merged at once, which takes about a millisecond, or a few if the system has yet to find
/// memory for the destination.
const SMALL_BYTES: u64 = 4 << 20;

/// Words between two looks at the clock.
const WORDS: usize = 8 << 10;

/// `BF.MERGE destination source [source ...]`: the destination answers for its keys and those of all sources. It is made
/// if it is missing. Filters of another geometry are refused, and nothing is changed.
pub(crate) fn merge(call: &Call<'_>) {
    stats::timed(|| settle(call, try_merge(call)));
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    // A destination that is also a source has its own keys already, and is open only once.
    let is_other = |&i: &usize| call.arg(i) != call.arg(1);
    let others: Vec<usize> = (2..call.count()).filter(is_other).collect();
    let keys: Vec<Key<'_>> = others.iter().map(|&i| call.open(i, Access::Read)).collect();
    let sources = keys
        .iter()
        .map(|key| expect_filter(bloom(key)?))
        .collect::<Result<Vec<Bloom<'_>>, Refusal>>()?;
    let mut destination = call.open(1, Access::Write);
    let is_source = others.len() + 2 < call.count();
    prepare(call, &mut destination, &sources, is_source)?;
    let is_large = sources.iter().map(Bloom::bytes).sum::<u64>() > SMALL_BYTES;
    if is_large && let Some(waiting) = Waiting::begin(call) {
        let sources = others.iter().zip(&keys).zip(&sources);
        let sources = sources.map(|((&i, key), filter)| Source {
            filter: BloomAt::of(call.arg(i), key),
            stages: filter.stages(),
        });
        let job = Merge {
            database: call.database(),
            destination: BloomAt::of(call.arg(1), &destination),
            sources: sources.rev().collect(),
            progress: UnionProgress::default(),
            waiting: Some(waiting),
        };
        drop((keys, destination));
        job.start(call);
        return Ok(());
    }
    let mut union = expect_filter(bloom_mut(&mut destination)?)?;
    for source in &sources {
        let mut progress = UnionProgress::default();
        while progress.stage < source.stages() {
            union.union_step(source, &mut progress, usize::MAX)?;
        }
    }
    call.replicate_verbatim();
    call.notify(c"bf.merge");
    call.reply_simple(c"OK");
    Ok(())
}

/// Refuses unless all filters can be merged. Makes the destination if it is missing and not one of the sources.
fn prepare(
    call: &Call<'_>,
    destination: &mut Key<'_>,
    sources: &[Bloom<'_>],
    is_source: bool,
) -> Result<(), Refusal> {
    match (bloom(destination)?, sources) {
        (Found::Missing, [first, rest @ ..]) if !is_source => {
            rest.iter().try_for_each(|source| first.check_union(source))?;
            empty_like(call, first)?.set(destination);
            Ok(())
        }
        (found, _) => {
            let filter = expect_filter(found)?;
            if is_source {
                filter.check_union(&filter)?;
            }
            sources.iter().try_for_each(|source| filter.check_union(source))
        }
    }
}

/// A Bloom filter that no key has yet.
type BloomOfNoKey = ByLayout<Chain, NativeBloom>;

/// An empty filter of the same shape, unless it would be too large.
fn empty_like(call: &Call<'_>, filter: &Bloom<'_>) -> Result<BloomOfNoKey, Refusal> {
    let bytes = filter.bytes();
    memory_limit(call).check(0, bytes).map_err(text::of_create)?;
    limits::ask(bytes).map_err(text::of_create)?;
    Ok(match filter {
        ByLayout::RedisBloom(chain) => {
            ByLayout::RedisBloom(chain.empty_like().map_err(text::of_create)?)
        }
        ByLayout::Native(filter) => ByLayout::Native(filter.empty_like().map_err(text::of_plan)?),
    })
}

impl BloomOfNoKey {
    fn as_mut(&mut self) -> BloomMut<'_> {
        match self {
            Self::RedisBloom(chain) => ByLayout::RedisBloom(chain),
            Self::Native(filter) => ByLayout::Native(filter),
        }
    }

    fn set(self, key: &mut Key<'_>) {
        match self {
            Self::RedisBloom(chain) => {
                key.set(chain);
            }
            Self::Native(filter) => {
                key.set(Native::whole(filter));
            }
        }
    }
}

impl Bloom<'_> {
    fn stages(&self) -> usize {
        match self {
            ByLayout::RedisBloom(chain) => chain.links().len(),
            ByLayout::Native(filter) => filter.stages() as usize,
        }
    }

    /// Refuses unless the two can be merged.
    fn check_union(&self, other: &Self) -> Result<(), Refusal> {
        match (self, other) {
            (ByLayout::RedisBloom(one), ByLayout::RedisBloom(other)) => {
                one.check_union(other).map_err(|_| text::MERGE_DIFFERS.into())
            }
            (ByLayout::Native(one), ByLayout::Native(other)) => {
                one.check_union(other).map_err(|mismatch| match mismatch {
                    Some(mismatch) => says(format!("ERR filters cannot be merged: {mismatch}")),
                    None => text::MERGE_LAYOUTS.into(),
                })
            }
            _ => Err(text::MERGE_LAYOUTS.into()),
        }
    }
}

impl BloomMut<'_> {
    /// Adds the next words of a stage, or refuses and changes nothing.
    fn union_step(
        &mut self,
        other: &Bloom<'_>,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), Refusal> {
        let is_added = match (self, other) {
            (ByLayout::RedisBloom(union), ByLayout::RedisBloom(chain)) => {
                union.union_step(chain, progress, most_words).is_ok()
            }
            (ByLayout::Native(union), ByLayout::Native(filter)) => {
                union.union_step(filter, progress, most_words).is_ok()
            }
            _ => false,
        };
        if is_added { Ok(()) } else { Err(text::MERGE_DIFFERS.into()) }
    }
}

/// `BF.MERGESLICE destination source stage word ones words`: what a slice of a merge did. Primaries send it, and files have it.
/// From anybody else it does no harm: it sets bits of one filter in another of the same shape.
pub(crate) fn merge_slice(call: &Call<'_>) {
    stats::timed(|| settle(call, try_merge_slice(call)));
}

fn try_merge_slice(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 7)?;
    let number = |i| call.integer(i).and_then(|number| u64::try_from(number).ok());
    let (Some(stage), Some(word), Some(ones), Some(words)) =
        (number(3), number(4), number(5), number(6))
    else {
        return Err(text::MERGE_SLICE.into());
    };
    if call.arg(1) == call.arg(2) {
        return Err(text::MERGE_SLICE.into());
    }
    let from = call.open(2, Access::Read);
    let source = expect_filter(bloom(&from)?)?;
    let mut to = call.open(1, Access::Write);
    let mut progress = UnionProgress { stage: stage as usize, word: word as usize, ones };
    if matches!(bloom(&to)?, Found::Missing) {
        // Set when nothing can be refused any more: replicas are told of no refusal, and would not have the key.
        let mut made = empty_like(call, &source)?;
        made.as_mut().union_step(&source, &mut progress, words as usize)?;
        made.set(&mut to);
    } else {
        let mut union = expect_filter(bloom_mut(&mut to)?)?;
        union.union_step(&source, &mut progress, words as usize)?;
    }
    call.replicate_verbatim();
    call.reply_simple(c"OK");
    Ok(())
}

struct Source {
    filter: BloomAt,
    /// Stages that it had when the merge began.
    stages: usize,
}

/// A merge that goes on between commands.
pub(super) struct Merge {
    database: c_int,
    destination: BloomAt,
    /// Those that are not merged yet, the next one last.
    sources: Vec<Source>,
    /// How far that one is merged.
    progress: UnionProgress,
    /// Until it is answered.
    waiting: Option<Waiting>,
}

/// Number of merges that are going on.
pub(crate) fn jobs() -> u64 {
    jobs::count(|job| matches!(job, Job::Merge(_)))
}

impl Merge {
    /// Makes the first slice at once, because it tells replicas of a destination that was made.
    fn start(mut self, call: &Call<'_>) {
        if self.turn(&Moment::of(call), jobs::end_of_slice()) {
            jobs::add(call, Job::Merge(self), |_| false);
        }
    }

    /// Merges until the turn is over, and answers the client at the end. True if something is left to do.
    pub(super) fn turn(&mut self, moment: &Moment, end: Instant) -> bool {
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(source) = self.sources.pop()
        {
            let destination = std::mem::take(&mut self.destination.key);
            let keys = [&destination[..], &source.filter.key];
            let progress = &mut self.progress;
            let id = self.destination.id;
            outcome = moment
                .with_keys(self.database, &keys, |call| slice(call, id, &source, progress, end));
            self.destination.key = destination;
            if self.progress.stage < source.stages {
                self.sources.push(source);
            } else {
                self.progress = UnionProgress::default();
            }
            if outcome.is_ok() && !self.sources.is_empty() && Instant::now() >= end {
                return true;
            }
        }
        if outcome.is_ok() {
            let keys = [&self.destination.key[..]];
            moment.with_keys(self.database, &keys, |call| call.notify(c"bf.merge"));
        }
        if let Some(waiting) = self.waiting.take() {
            waiting.answer(|call| settle(call, outcome.map(|()| call.reply_simple(c"OK"))));
        }
        false
    }
}

/// Merges words of one stage until the turn is over, and tells replicas.
fn slice(
    call: &Call<'_>,
    destination: Option<u64>,
    source: &Source,
    progress: &mut UnionProgress,
    end: Instant,
) -> Result<(), Refusal> {
    if call.is_replica() {
        return Err(text::MERGE_REPLICA.into());
    }
    let (from, mut to) = (call.open(2, Access::Read), call.open(1, Access::Write));
    if bloom_id(&from) != source.filter.id || bloom_id(&to) != destination {
        return Err(text::MERGE_ENDED.into());
    }
    let (Found::Filter(filter), Found::Filter(mut union)) = (bloom(&from)?, bloom_mut(&mut to)?)
    else {
        return Err(text::MERGE_ENDED.into());
    };
    let (start, mut words) = (*progress, 0);
    loop {
        union.union_step(&filter, progress, WORDS)?;
        words += WORDS;
        if progress.stage != start.stage || Instant::now() >= end {
            break;
        }
    }
    let numbers = [start.stage, start.word, start.ones as usize, words];
    let numbers = numbers.map(|number| number.to_string().into_bytes());
    let mut replicated = vec![source.filter.key.clone()];
    replicated.extend(numbers);
    call.replicate_words(c"BF.MERGESLICE", &replicated);
    Ok(())
}
