//! Filters shared between threads: one thread against two, each with half of the keys.
//!
//! Both halves are generated before the clock starts; one thread takes them one after the other. Starting a thread is
//! timed too, as it would be for a user; it takes a few microseconds of a turn of many milliseconds.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;

use ironbloom::hash::mix64;
use ironbloom::{AtomicBlockedBloom, AtomicBloom};

use crate::contender::{ByHash, Contender, Hashed, RATE};
use crate::keys::{KeyType, Keys, Share, chunks, queries};
use crate::measure::{Effort, in_turn, timed};
use crate::peers::fastbloom_atomic;
use crate::stats;

/// Keys inserted per turn, by both threads together.
const CHUNK: u64 = 2_000_000;

/// Two handles to one filter.
type Handles = [Box<dyn Contender + Send>; 2];

/// A filter that threads can share.
#[derive(Clone, Copy)]
struct Shared {
    name: &'static str,
    batches: bool,
    make: fn(u64) -> Handles,
}

const SHARED: [Shared; 4] = [
    Shared {
        name: "AtomicBlockedBloom",
        batches: true,
        make: |n| handles(AtomicBlockedBloom::with_rate(n, RATE).expect("a filter that we plan")),
    },
    Shared {
        name: "AtomicBloom",
        batches: true,
        make: |n| handles(AtomicBloom::with_rate(n, RATE).expect("a filter that we plan")),
    },
    Shared { name: "fastbloom atomic", batches: false, make: |n| handles(fastbloom_atomic(n)) },
    Shared { name: "no filter, hashing only", batches: false, make: |_| handles(NoFilter) },
];

/// A yardstick: arithmetic without memory. If two threads are not twice as fast at that, the machine does not have two
/// cores to spare: they share one, or other programs use them.
struct NoFilter;

impl ByHash for Arc<NoFilter> {
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        black_box((0..4).fold(hash, |hash, _| mix64(hash)));
        true
    }

    fn size_in_bytes(&self) -> usize {
        0
    }

    #[inline]
    fn insert_hash(&mut self, hash: u64) -> bool {
        self.contains_hash(hash)
    }
}

fn handles<F: Send + Sync + 'static>(filter: F) -> Handles
where
    Arc<F>: ByHash,
{
    let filter = Arc::new(filter);
    [Box::new(Hashed(filter.clone())), Box::new(Hashed(filter))]
}

/// The work of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Insert,
    BatchInsert,
    Lookup,
    BatchLookup,
}

impl Work {
    /// Name in the tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::BatchInsert => "batch insert",
            Self::Lookup => "lookup",
            Self::BatchLookup => "batch lookup",
        }
    }

    /// The lookups that follow these inserts.
    fn lookup(self) -> Self {
        match self {
            Self::Insert | Self::Lookup => Self::Lookup,
            Self::BatchInsert | Self::BatchLookup => Self::BatchLookup,
        }
    }

    /// Does the work on some keys; returns how many were absent or refused.
    fn run(self, filter: &mut dyn Contender, keys: &Keys) -> u64 {
        match self {
            Self::Insert => filter.insert(keys),
            Self::BatchInsert => filter.insert_batch(keys),
            Self::Lookup => keys.len() as u64 - filter.count(keys),
            Self::BatchLookup => keys.len() as u64 - filter.count_batch(keys),
        }
    }
}

/// Nanoseconds per key of one filter at one kind of work: samples with one thread, and with two.
#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    pub(crate) n: u64,
    pub(crate) key_type: KeyType,
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) one: Vec<f64>,
    pub(crate) two: Vec<f64>,
    /// Keys that were inserted and not found.
    pub(crate) missing: u64,
}

impl Scaling {
    /// Speed of two threads relative to one.
    pub(crate) fn speedup(&self) -> Option<f64> {
        stats::speedup(&self.two, &self.one)
    }
}

/// A filter used by one or two threads.
struct Job {
    shared: Shared,
    work: Work,
    threads: usize,
    handles: Handles,
    nanoseconds: f64,
    samples: Vec<f64>,
    missing: u64,
}

impl Job {
    fn run(&mut self, halves: &[Keys; 2]) {
        let work = self.work;
        let [first, second] = &mut self.handles;
        let (missing, nanoseconds) = timed(|| match self.threads {
            1 => halves.iter().map(|keys| work.run(first.as_mut(), keys)).sum(),
            _ => thread::scope(|scope| {
                let other = scope.spawn(|| work.run(second.as_mut(), &halves[1]));
                work.run(first.as_mut(), &halves[0]) + other.join().expect("the thread works")
            }),
        });
        self.missing += missing;
        self.nanoseconds += nanoseconds;
    }

    fn end_sample(&mut self, keys: u64) {
        self.samples.push(self.nanoseconds / keys as f64);
        self.nanoseconds = 0.0;
    }
}

/// Measures all filters that threads can share, at one size: fills, then lookups of present keys in the filled filters.
pub(crate) fn measure(effort: &Effort, progress: &mut dyn FnMut(String)) -> Vec<Scaling> {
    let mut jobs = jobs(effort);
    let warm_up = effort.warm_up();
    for fill in 0..effort.fills() {
        progress(format!("threads, fill {} of {}", fill + 1, effort.fills()));
        if fill > 0 {
            jobs.iter_mut().for_each(|job| job.handles = (job.shared.make)(effort.n));
        }
        for (i, range) in chunks(effort.n, CHUNK).enumerate() {
            let middle = range.start.midpoint(range.end);
            let halves = [range.start..middle, middle..range.end];
            let halves = halves.map(|half| Keys::of(effort.key_type, half));
            in_turn(&mut jobs, fill + i as u64, |job| {
                if i > 0 {
                    job.handles[0].count(&warm_up);
                }
                job.run(&halves);
            });
        }
        jobs.iter_mut().for_each(|job| job.end_sample(effort.n));
    }
    let mut scalings = scalings(effort, &mut jobs);
    jobs.iter_mut().for_each(|job| job.work = job.work.lookup());
    for round in 0..effort.rounds {
        progress(format!("threads, round {} of {}", round + 1, effort.rounds));
        let halves = [2 * round, 2 * round + 1].map(|round| {
            queries(effort.key_type, effort.n, Share::All, round, effort.queries).keys
        });
        in_turn(&mut jobs, round, |job| {
            job.handles[0].count(&warm_up);
            job.run(&halves);
            job.end_sample(2 * effort.queries as u64);
        });
    }
    scalings.extend(self::scalings(effort, &mut jobs));
    scalings
}

/// One job for each filter, form and number of threads; the jobs for one and two threads are adjacent.
fn jobs(effort: &Effort) -> Vec<Job> {
    let mut jobs = Vec::new();
    for shared in SHARED {
        let works =
            if shared.batches { &[Work::Insert, Work::BatchInsert][..] } else { &[Work::Insert] };
        for &work in works {
            jobs.extend([1, 2].map(|threads| Job {
                shared,
                work,
                threads,
                handles: (shared.make)(effort.n),
                nanoseconds: 0.0,
                samples: Vec::new(),
                missing: 0,
            }));
        }
    }
    jobs
}

/// Moves the samples out of the jobs.
fn scalings(effort: &Effort, jobs: &mut [Job]) -> Vec<Scaling> {
    let take = |pair: &mut [Job]| Scaling {
        n: effort.n,
        key_type: effort.key_type,
        name: pair[0].shared.name,
        work: pair[0].work,
        missing: pair[0].missing + pair[1].missing,
        one: std::mem::take(&mut pair[0].samples),
        two: std::mem::take(&mut pair[1].samples),
    };
    jobs.chunks_exact_mut(2).map(take).collect()
}
