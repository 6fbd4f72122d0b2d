//! A SCANDUMP that has to read all of a large native filter: its client waits, and others are served.
//!
//! The header has a checksum of the whole image, and so has its last part. They are made in slices and kept with the filter
//! until it changes; then there is a reply like any other. A command that may change the filter drops what is known, and the
//! reading starts again: the reply is that for the filter as it is when it is made. A filter that never rests is read at once
//! in the end.

use std::ffi::c_int;
use std::time::Instant;

use crate::engine::blocked::Waiting;
use crate::engine::call::Call;
use crate::engine::key::{Access, ByLayout};
use crate::engine::timer::Moment;
use crate::engine::value::Value;
use crate::native::bloom::NativeBloom;
use crate::native::cuckoo::NativeCuckoo;
use crate::native::{Imaged, Native};
use crate::redisbloom::chain::Chain;
use crate::redisbloom::cuckoo::CuckooFilter;

use super::dump::{native_pair, reply_pair, to_dump};
use super::jobs::{self, Job};
use super::{Refusal, settle, text};

/// Chunks of 64 KiB between two looks at the clock.
const CHUNKS: usize = 1;

/// How often the reading may start again.
const MAX_RESTARTS: u32 = 3;

/// Whose SCANDUMP it is.
#[derive(Clone, Copy)]
pub(super) enum Family {
    Bloom,
    Cuckoo,
}

/// A SCANDUMP whose client waits.
pub(super) struct Scan {
    database: c_int,
    key: Vec<u8>,
    family: Family,
    iterator: i64,
    /// Steps that were read when it last looked.
    steps: u64,
    restarts: u32,
    /// Until it is answered.
    waiting: Option<Waiting>,
}

type Pair = (i64, Vec<u8>);

impl Scan {
    pub(super) fn start(call: &Call<'_>, family: Family, iterator: i64, waiting: Waiting) {
        let (database, key) = (call.database(), call.arg(1).to_vec());
        let waiting = Some(waiting);
        let scan = Self { database, key, family, iterator, steps: 0, restarts: 0, waiting };
        jobs::add(call, Job::Scan(scan), |_| false);
    }

    /// Reads until the turn is over, and answers the client at the end. True if something is left to do.
    pub(super) fn turn(&mut self, moment: &Moment, end: Instant) -> bool {
        let (database, key) = (self.database, self.key.clone());
        let outcome = moment.with_keys(database, &[&key], |call| match self.family {
            Family::Bloom => self.read::<Chain, NativeBloom>(call, end),
            Family::Cuckoo => self.read::<CuckooFilter, NativeCuckoo>(call, end),
        });
        let outcome = match outcome {
            Ok(None) => return true,
            Ok(Some(pair)) => Ok(pair),
            Err(refusal) => Err(refusal),
        };
        if let Some(waiting) = self.waiting.take() {
            waiting.answer(|call| {
                let replied = outcome.map(|(next, bytes)| reply_pair(call, next, Some(&bytes)));
                settle(call, replied);
            });
        }
        false
    }

    /// The reply, if the checksums are known in time.
    fn read<A: Value, T: Imaged>(
        &mut self,
        call: &Call<'_>,
        end: Instant,
    ) -> Result<Option<Pair>, Refusal>
    where
        Native<T>: Value,
    {
        let key = call.open(1, Access::Read);
        let ByLayout::Native(filter) = to_dump::<A, T>(&key)? else {
            return Err(text::SCAN_REPLACED.into());
        };
        self.restarts += u32::from(filter.steps_read() < self.steps && !filter.has_sums());
        let must_end = self.restarts > MAX_RESTARTS;
        while !filter.read_on(CHUNKS) {
            if Instant::now() >= end && !must_end {
                self.steps = filter.steps_read();
                return Ok(None);
            }
        }
        Ok(Some(native_pair(filter, self.iterator)))
    }
}
