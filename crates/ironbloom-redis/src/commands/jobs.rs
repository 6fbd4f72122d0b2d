//! Work on large filters that goes on between commands, a slice at a time.
//!
//! ```text
//! every 2 ms: the first job works for about `step-usec`, then goes to the end of the list
//! ```
//!
//! Between two slices anything may happen to the keys of a job: it knows their names, never an address. What a slice changes
//! is replicated like the effect of a command, at its place among the others, so replicas and files have the same
//! bytes after it. A replica does what its primary sends; its own jobs end.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::engine::call::Call;
use crate::engine::timer::{self, Moment};
use crate::{settings, stats};

use super::compact::Compaction;
use super::count::Count;
use super::merge::Merge;
use super::scan::Scan;

/// One of them.
pub(super) enum Job {
    Compaction(Compaction),
    Merge(Merge),
    Scan(Scan),
    Count(Count),
}

impl Job {
    /// Works until it is time to stop. True if something is left to do.
    fn turn(&mut self, moment: &Moment, end: Instant) -> bool {
        match self {
            Self::Compaction(compaction) => compaction.turn(moment, end),
            Self::Merge(merge) => merge.turn(moment, end),
            Self::Scan(scan) => scan.turn(moment, end),
            Self::Count(count) => count.turn(moment, end),
        }
    }

    /// Whether it only reads, so that there is nothing to replicate.
    fn only_reads(&self) -> bool {
        matches!(self, Self::Scan(_) | Self::Count(_))
    }
}

static JOBS: Mutex<Vec<Job>> = Mutex::new(Vec::new());

/// How many of these jobs there are.
pub(super) fn count(is_one: impl Fn(&Job) -> bool) -> u64 {
    JOBS.lock().map_or(0, |jobs| jobs.iter().filter(|job| is_one(job)).count() as u64)
}

/// Adds a job, unless `take_in` finds one that does it already.
pub(super) fn add(call: &Call<'_>, job: Job, take_in: impl FnMut(&mut Job) -> bool) {
    let Ok(mut jobs) = JOBS.lock() else { return };
    if !jobs.iter_mut().any(take_in) {
        jobs.push(job);
    }
    drop(jobs);
    timer::start(call, turn);
}

/// When a slice that begins now should end.
pub(super) fn end_of_slice() -> Instant {
    Instant::now() + Duration::from_micros(settings::STEP_USEC.get() as u64)
}

/// A turn of the timer: a slice of the first job that may work now, which then goes to the end. True if jobs are left.
fn turn(moment: &Moment) -> bool {
    // Taken out of the list while it runs: what a slice does may ask for the list.
    let Some(mut job) = take_first(moment.must_wait()) else { return count(|_| true) > 0 };
    let is_left = stats::timed(|| job.turn(moment, end_of_slice()));
    let Ok(mut jobs) = JOBS.lock() else { return false };
    if is_left {
        jobs.push(job);
    }
    !jobs.is_empty()
}

fn take_first(must_only_read: bool) -> Option<Job> {
    let mut jobs = JOBS.lock().ok()?;
    let first = jobs.iter().position(|job| job.only_reads() || !must_only_read)?;
    Some(jobs.remove(first))
}
