//! CF.COMPACT, and the compaction that follows when many items were removed.
//!
//! ```text
//! small filter    compacted at once; replicas and files get the command, and do the same
//! large filter    a slice of buckets at a time, between commands: about a millisecond, then at least as long for others
//!                 replicas and files get `CF.COMPACT key part first end` for each slice, and have the same bytes after it
//! ```
//!
//! Between two slices anything may happen to the filter: each fingerprint is at its old place or at its new one. A job
//! knows the name of its key and how far it is, nothing else: if the key is gone, renamed or something else, it
//! ends. A replica does what its primary sends and has no jobs; when it takes over, the rest stays as it is until somebody
//! compacts again.

use std::ffi::c_int;
use std::time::Instant;

use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found};
use crate::engine::timer::Moment;
use crate::stats;

use super::filter::{CuckooMut, cuckoo_mut};
use super::jobs::{self, Job};
use super::{Refusal, check_arity, settle, text};

/// Filters up to this size are compacted at once, which takes a few milliseconds.
const SMALL_BYTES: u64 = 1 << 20;

/// Buckets between two looks at the clock.
const BUCKETS: u64 = 2048;

/// A filter that is being compacted.
pub(super) struct Compaction {
    database: c_int,
    key: Vec<u8>,
    /// The sub-filter that is being emptied, the newest first; it is the newest there is if this is more.
    part: usize,
    /// Its next bucket.
    bucket: u64,
}

/// Number of filters that are being compacted.
pub(crate) fn jobs() -> u64 {
    jobs::count(|job| matches!(job, Job::Compaction(_)))
}

/// `CF.COMPACT key`; and, from a primary or a file, `CF.COMPACT key part first end`.
pub(crate) fn compact(call: &Call<'_>) {
    stats::timed(|| settle(call, try_compact(call)));
}

fn try_compact(call: &Call<'_>) -> Result<(), Refusal> {
    let is_slice = call.count() == 5 && call.must_obey();
    check_arity(call.count() == 2 || is_slice)?;
    let mut key = call.open(1, Access::Write);
    let Found::Filter(mut filter) = cuckoo_mut(&mut key)? else {
        return Err(text::CF_COMPACT_NOT_FOUND.into());
    };
    if is_slice {
        let number = |i| call.integer(i).and_then(|number| u64::try_from(number).ok());
        let (Some(part), Some(first), Some(end)) = (number(2), number(3), number(4)) else {
            return Err(text::CF_POSITION.into());
        };
        filter.compact_part(part as usize, first, end);
        call.replicate_verbatim();
    } else if filter.bytes() <= SMALL_BYTES || call.must_obey() {
        filter.compact_all();
        call.replicate_verbatim();
        call.notify(c"cf.compact");
    } else {
        add_job(call);
    }
    call.reply_simple(c"OK");
    Ok(())
}

/// Compacts when a tenth of the items were removed, as RedisBloom does; a large filter between commands.
pub(super) fn after_removal(call: &Call<'_>, mut filter: CuckooMut<'_>) {
    let is_small = filter.bytes() <= SMALL_BYTES;
    let is_due = match &mut filter {
        ByLayout::RedisBloom(filter) if filter.is_due() => {
            if is_small {
                filter.compact_until_stuck();
            }
            filter.forget_removed();
            true
        }
        ByLayout::RedisBloom(_) => false,
        ByLayout::Native(filter) => filter.is_due(),
    };
    // A replica decides the same by itself for small filters, and is sent slices of large ones.
    match &filter {
        ByLayout::Native(_) if is_due && is_small => filter.compact_all(),
        _ if is_due && !is_small && !call.must_obey() => add_job(call),
        _ => {}
    }
}

impl CuckooMut<'_> {
    fn bytes(&self) -> u64 {
        match self {
            ByLayout::RedisBloom(filter) => filter.slot_bytes(),
            ByLayout::Native(filter) => crate::native::Imaged::array_bytes(&**filter),
        }
    }

    fn parts(&self) -> usize {
        match self {
            ByLayout::RedisBloom(filter) => filter.sub_filters(),
            ByLayout::Native(filter) => filter.parts(),
        }
    }

    fn buckets(&self, part: usize) -> u64 {
        match self {
            ByLayout::RedisBloom(filter) => filter.buckets_in(part),
            ByLayout::Native(filter) => filter.params().buckets(),
        }
    }

    fn compact_part(&mut self, part: usize, first: u64, end: u64) {
        match self {
            ByLayout::RedisBloom(filter) => {
                filter.compact_part(part, first..end);
            }
            ByLayout::Native(filter) => filter.compact_part(part, first..end),
        }
    }

    fn compact_all(&mut self) {
        // The oldest has nowhere to go to; but that the filter was compacted is noted there, too.
        for part in (0..self.parts()).rev() {
            self.compact_part(part, 0, u64::MAX);
        }
    }
}

fn add_job(call: &Call<'_>) {
    let (database, key) = (call.database(), call.arg(1).to_vec());
    let new = Compaction { database, key: key.clone(), part: usize::MAX, bucket: 0 };
    jobs::add(call, Job::Compaction(new), |job| match job {
        // It starts again: what was done need not be done again, and takes no time.
        Job::Compaction(same) if same.database == database && same.key == key => {
            (same.part, same.bucket) = (usize::MAX, 0);
            true
        }
        _ => false,
    });
}

impl Compaction {
    pub(super) fn turn(&mut self, moment: &Moment, end: Instant) -> bool {
        let (database, key) = (self.database, self.key.clone());
        moment.with_keys(database, &[&key], |call| slice(call, self, end))
    }
}

/// Compacts until the turn is over. True if something is left to do.
fn slice(call: &Call<'_>, job: &mut Compaction, end_of_turn: Instant) -> bool {
    if call.is_replica() {
        return false;
    }
    let mut key = call.open(1, Access::Write);
    let Ok(Found::Filter(mut filter)) = cuckoo_mut(&mut key) else { return false };
    let is_left = loop {
        if job.part >= filter.parts() {
            (job.part, job.bucket) = (filter.parts() - 1, 0);
        }
        if job.part == 0 {
            break false;
        }
        let (part, first, buckets) = (job.part, job.bucket, filter.buckets(job.part));
        let mut end = first;
        while end < buckets && (end == first || Instant::now() < end_of_turn) {
            let next = (end + BUCKETS).min(buckets);
            // The last slice drops the sub-filter if it is empty, and must be the last for replicas, too.
            filter.compact_part(part, end, next);
            end = next;
        }
        let words = [part as u64, first, end].map(|number| number.to_string());
        call.replicate_words(c"CF.COMPACT", &words);
        (job.part, job.bucket) = if end == buckets { (part - 1, 0) } else { (part, end) };
        if Instant::now() >= end_of_turn {
            break true;
        }
    };
    if !is_left {
        call.notify(c"cf.compact");
    }
    is_left
}
