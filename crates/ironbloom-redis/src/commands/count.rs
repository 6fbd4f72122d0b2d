//! BF.INFO … FULL of a large filter, which counts all bits: its client waits, and others are served.
//!
//! The filter may take keys and grow meanwhile. Each word counts as it was when it was passed, and the other fields are those
//! of the end, when all stages that there are then have been counted. If the filter is deleted, renamed, expired, flushed or
//! replaced, or if LOADCHUNK overwrites it, the reply is an error.

use std::ffi::c_int;
use std::time::Instant;

use ironbloom::FillProgress;

use crate::engine::blocked::Waiting;
use crate::engine::call::Call;
use crate::engine::key::{Access, Key};
use crate::engine::timer::Moment;

use super::filter::{BloomAt, bloom, bloom_id};
use super::jobs::{self, Job};
use super::report::Full;
use super::{Refusal, expect_filter, settle, text};

/// Words between two looks at the clock.
const WORDS: usize = 8 << 10;

/// A BF.INFO … FULL whose client waits.
pub(super) struct Count {
    database: c_int,
    filter: BloomAt,
    progress: FillProgress,
    /// Until it is answered.
    waiting: Option<Waiting>,
}

impl Count {
    pub(super) fn start(call: &Call<'_>, key: &Key<'_>, waiting: Waiting) {
        let (database, filter) = (call.database(), BloomAt::of(call.arg(1), key));
        let progress = FillProgress::default();
        let count = Self { database, filter, progress, waiting: Some(waiting) };
        jobs::add(call, Job::Count(count), |_| false);
    }

    /// Counts until the turn is over, and answers the client at the end. True if something is left to do.
    pub(super) fn turn(&mut self, moment: &Moment, end: Instant) -> bool {
        let Self { database, filter, progress, .. } = self;
        let counted =
            moment.with_keys(*database, &[&filter.key], |call| slice(call, filter, progress, end));
        let outcome = match counted {
            Ok(None) => return true,
            Ok(Some(full)) => Ok(full),
            Err(refusal) => Err(refusal),
        };
        if let Some(waiting) = self.waiting.take() {
            waiting.answer(|call| settle(call, outcome.map(|full| full.reply(call))));
        }
        false
    }
}

/// Counts words until the turn is over. The report, if all are counted in time.
fn slice(
    call: &Call<'_>,
    at: &BloomAt,
    progress: &mut FillProgress,
    end: Instant,
) -> Result<Option<Full>, Refusal> {
    let key = call.open(1, Access::Read);
    if bloom_id(&key) != at.id {
        return Err(text::COUNT_ENDED.into());
    }
    let filter = expect_filter(bloom(&key)?)?;
    loop {
        if let Some(fill) = filter.fill_step(progress, WORDS) {
            return Ok(Some(Full::of(&filter, fill)));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
    }
}
