//! CF.COMPACT, and the compaction that follows when many items were removed.
//!
//! ```text
//! little work     compacted at once; replicas and files get the command, and do the same
//! much of it      a slice of buckets at a time, between commands: about a millisecond, then at least as long for others
//!                 replicas and files get `CF.COMPACT key part first end` for each slice, and have the same bytes after it
//! ```
//!
//! Between two slices anything may happen to the filter: each fingerprint is at its old place or at its new one. A job
//! knows the name of its key, the id of the filter that it found there, and how far it is: if the key is gone, or has another
//! filter, it ends. A replica does what its primary sends and has no jobs; when it takes over, the rest stays as it is until somebody
//! compacts again.

use std::ffi::c_int;
use std::time::Instant;

use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout, Found, Key};
use crate::engine::timer::Moment;
use crate::stats;

use super::filter::{CuckooMut, cuckoo_id, cuckoo_mut};
use super::jobs::{self, Job};
use super::{Refusal, check_arity, settle, text};

/// Filters up to this size are compacted at once, which takes a few milliseconds.
const SMALL_BYTES: u64 = 1 << 20;

/// Unless they have so many sub-filters that their fingerprints may be offered more often than this.
const SMALL_OFFERS: u64 = 4 << 20;

/// Buckets between two looks at the clock at most, and about how often their fingerprints may be offered to a sub-filter.
const BUCKETS: u64 = 2048;
const OFFERS: u64 = 32 << 10;

/// A filter that is being compacted.
pub(super) struct Compaction {
    database: c_int,
    key: Vec<u8>,
    /// The id of the filter.
    id: Option<u64>,
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
    } else if call.must_obey() || filter.is_small() {
        filter.compact_all();
        call.replicate_verbatim();
        call.notify(c"cf.compact");
    } else {
        between_commands(call, &key);
    }
    call.reply_simple(c"OK");
    Ok(())
}

/// Compacts when a tenth of the items were removed, as RedisBloom does. True if that is to be done [`between_commands`], because
/// the filter is large.
pub(super) fn after_removal(call: &Call<'_>, mut filter: CuckooMut<'_>) -> bool {
    let is_due = match &mut filter {
        ByLayout::RedisBloom(filter) => filter.is_due(),
        ByLayout::Native(filter) => filter.is_due(),
    };
    if !is_due {
        return false;
    }
    // A replica decides the same by itself for small filters, and is sent slices of large ones.
    let is_small = filter.is_small();
    match &mut filter {
        ByLayout::RedisBloom(filter) if is_small => filter.compact_until_stuck(),
        ByLayout::RedisBloom(filter) => filter.forget_removed(),
        ByLayout::Native(_) if is_small => filter.compact_all(),
        ByLayout::Native(_) => {}
    }
    !is_small && !call.must_obey()
}

impl CuckooMut<'_> {
    /// Whether compacting it at once holds the server for a few milliseconds at most.
    fn is_small(&self) -> bool {
        match self {
            ByLayout::RedisBloom(filter) => {
                filter.slot_bytes() <= SMALL_BYTES && filter.most_offers() <= SMALL_OFFERS
            }
            // It has few parts.
            ByLayout::Native(filter) => {
                crate::native::Imaged::array_bytes(&**filter) <= SMALL_BYTES
            }
        }
    }

    /// Buckets of a part that take little time together.
    fn buckets_at_once(&self, part: usize) -> u64 {
        match self {
            ByLayout::RedisBloom(filter) => {
                let offers = u64::from(filter.shape().bucket_size()) * part as u64;
                (OFFERS / offers.max(1)).clamp(1, BUCKETS)
            }
            ByLayout::Native(_) => BUCKETS,
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

/// Compacts the filter of this key, the first of the call, between commands.
pub(super) fn between_commands(call: &Call<'_>, key: &Key<'_>) {
    let id = cuckoo_id(key);
    let (database, key) = (call.database(), call.arg(1).to_vec());
    let new = Compaction { database, key: key.clone(), id, part: usize::MAX, bucket: 0 };
    jobs::add(call, Job::Compaction(new), |job| match job {
        // It starts again: what was done need not be done again, and takes no time.
        Job::Compaction(same) if same.database == database && same.key == key => {
            (same.id, same.part, same.bucket) = (id, usize::MAX, 0);
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
    if cuckoo_id(&key) != job.id {
        return false;
    }
    let Ok(Found::Filter(mut filter)) = cuckoo_mut(&mut key) else { return false };
    let is_left = loop {
        if job.part >= filter.parts() {
            (job.part, job.bucket) = (filter.parts() - 1, 0);
        }
        if job.part == 0 {
            break false;
        }
        let (part, first, buckets) = (job.part, job.bucket, filter.buckets(job.part));
        let at_once = filter.buckets_at_once(part);
        let mut end = first;
        while end < buckets && (end == first || Instant::now() < end_of_turn) {
            let next = (end + at_once).min(buckets);
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
