//! What clients are told when something is wrong: RedisBloom 8's words, which clients and their tests compare.
//!
//! The few that are our own are last.

use std::ffi::CStr;

use crate::error::{CreateError, InsertError};
use crate::native::bloom::PlanError;

use super::Refusal;
use super::filter::says;

pub(crate) const WRONG_TYPE: &CStr =
    c"WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const NOT_FOUND: &CStr = c"ERR not found";
pub(crate) const EXISTS: &CStr = c"ERR item exists";

pub(crate) const NO_MEMORY_TO_CREATE: &CStr = c"ERR Insufficient memory to create filter";
pub(crate) const NO_MEMORY: &CStr = c"ERR Insufficient memory";
pub(crate) const NOT_CREATED: &CStr = c"ERR could not create filter";

pub(crate) const BF_RATE: &CStr = c"ERR bad error rate";
pub(crate) const BF_RATE_RANGE: &CStr = c"ERR error rate must be in the range (0.000000, 1.000000)";
pub(crate) const BF_CAPACITY: &CStr = c"ERR bad capacity";
pub(crate) const BF_CAPACITY_RANGE: &CStr = c"ERR capacity must be in the range [1, 1073741824]";
pub(crate) const BF_NO_EXPANSION: &CStr = c"ERR no expansion";
pub(crate) const BF_EXPANSION: &CStr = c"ERR bad expansion";
pub(crate) const BF_EXPANSION_RANGE: &CStr = c"ERR expansion must be in the range [0, 32768]";
pub(crate) const BF_FIXED: &CStr = c"Nonscaling filters cannot expand";
pub(crate) const BF_FULL: &CStr = c"ERR non scaling filter is full";
pub(crate) const BF_NOT_INSERTED: &CStr = c"ERR problem inserting into filter";

pub(crate) const INSERT_RATE: &CStr = c"Bad error rate";
pub(crate) const INSERT_CAPACITY: &CStr = c"Bad capacity";
pub(crate) const INSERT_EXPANSION: &CStr = c"Bad expansion";
pub(crate) const INSERT_UNKNOWN: &CStr = c"Unknown argument received";

pub(crate) const BF_INFO: &CStr = c"Invalid information value";
pub(crate) const BF_SCAN_ITERATOR: &CStr = c"Second argument must be numeric";
pub(crate) const BF_LOAD_ITERATOR: &CStr = c"ERR Second argument must be numeric";
pub(crate) const BF_BAD_DATA: &CStr = c"ERR received bad data";
pub(crate) const BF_NO_LINK: &CStr = c"ERR invalid offset - no link found";
pub(crate) const BF_TOO_BIG: &CStr = c"ERR invalid chunk - Too big for current filter";

pub(crate) const CF_CAPACITY: &CStr = c"Bad capacity";
pub(crate) const CF_CAPACITY_RANGE: &CStr =
    c"Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
pub(crate) const CF_INSERT_CAPACITY_RANGE: &CStr =
    c"Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
pub(crate) const CF_BUCKET_SIZE: &CStr = c"Couldn't parse BUCKETSIZE";
pub(crate) const CF_BUCKET_SIZE_RANGE: &CStr = c"BUCKETSIZE: value must be in the range [1, 255]";
pub(crate) const CF_MAX_ITERATIONS: &CStr = c"Couldn't parse MAXITERATIONS";
pub(crate) const CF_MAX_ITERATIONS_RANGE: &CStr =
    c"MAXITERATIONS: value must be in the range [1, 65535]";
pub(crate) const CF_EXPANSION: &CStr = c"Couldn't parse EXPANSION";
pub(crate) const CF_EXPANSION_RANGE: &CStr = c"EXPANSION: value must be in the range [0, 32768]";
pub(crate) const CF_FULL: &CStr = c"Filter is full";
pub(crate) const CF_MAX_EXPANSIONS: &CStr = c"Maximum expansions reached";
pub(crate) const CF_DEL_NOT_FOUND: &CStr = c"Not found";
pub(crate) const CF_COMPACT_NOT_FOUND: &CStr = c"Cuckoo filter was not found";
pub(crate) const CF_POSITION: &CStr = c"Invalid position";
pub(crate) const CF_HEADER: &CStr = c"Invalid header";
pub(crate) const CF_NOT_CREATED: &CStr = c"Couldn't create filter!";
pub(crate) const CF_NOT_LOADED: &CStr = c"Couldn't load chunk!";

/// Ours: RedisBloom has no such limit.
pub(crate) const OVER_LIMIT: &CStr =
    c"ERR the filter would exceed the memory limit of a key, see CONFIG GET *key-memory-limit";
/// The same for what is not a filter.
pub(crate) const SKETCH_OVER_LIMIT: &CStr =
    c"ERR the sketch would exceed the memory limit of a key, see CONFIG GET *key-memory-limit";
/// Ours: RedisBloom cannot merge.
pub(crate) const MERGE_DIFFERS: &CStr =
    c"ERR filters of different size, error rate or number of sub-filters cannot be merged";
pub(crate) const MERGE_SLICE: &CStr = c"ERR not a slice of a merge";
pub(crate) const MERGE_ENDED: &CStr =
    c"ERR the merge was not finished: a filter was removed, renamed or replaced. The \
    destination may have some of the keys";
pub(crate) const MERGE_REPLICA: &CStr =
    c"ERR the merge was not finished: the server is a replica now";

/// Ours: what only native filters have.
pub(crate) const SEED: &CStr = c"ERR SEED must be RANDOM or a key of 32 hexadecimal digits";
pub(crate) const SEED_NATIVE: &CStr =
    c"ERR SEED is for native filters: LAYOUT BLOCKED, WINDOW, or a cuckoo filter with ERROR";
pub(crate) const LAYOUT: &CStr = c"ERR LAYOUT must be REDISBLOOM or BLOCKED";
pub(crate) const WINDOW: &CStr = c"ERR WINDOW must be in the range [1, 1073741824]";
pub(crate) const WINDOW_ALONE: &CStr =
    c"ERR a filter with WINDOW does not grow: no EXPANSION, NONSCALING or LAYOUT with it";
pub(crate) const BLOCKED_EXPANSION: &CStr =
    c"ERR with LAYOUT BLOCKED, EXPANSION must be in the range [2, 16], or 0 for a filter that does not grow";
pub(crate) const CF_RATE: &CStr = c"ERR ERROR must be in the range (0, 1)";
pub(crate) const CF_RATE_ALONE: &CStr =
    c"ERR with ERROR, buckets have four slots and the search for room its own end: no BUCKETSIZE or MAXITERATIONS with it";
pub(crate) const CF_RATE_EXPANSION: &CStr =
    c"ERR with ERROR, EXPANSION must be 0 (does not grow) or 1 (grows by equal parts, 16 at most)";
pub(crate) const MERGE_LAYOUTS: &CStr =
    c"ERR filters of different layouts, and filters with WINDOW, cannot be merged";
pub(crate) const SCAN_REPLACED: &CStr = c"ERR the filter was replaced: start the dump again";
pub(crate) const COUNT_ENDED: &CStr =
    c"ERR the bits were not counted: the filter was removed, renamed or replaced";
pub(crate) const LOADED: &CStr = c"ERR the filter is loaded already";

/// Why a native filter was not made.
pub(crate) fn of_plan(error: PlanError) -> Refusal {
    match error {
        PlanError::Create(error) => of_create(error).into(),
        PlanError::Params(error) => says(format!("ERR {error}")),
    }
}

/// Why a filter was not made.
pub(crate) fn of_create(error: CreateError) -> &'static CStr {
    match error {
        CreateError::Shape => NOT_CREATED,
        CreateError::OverLimit { .. } => OVER_LIMIT,
        CreateError::Memory { .. } => NO_MEMORY_TO_CREATE,
    }
}

/// Why a key was not inserted into a Bloom filter.
pub(crate) fn of_bloom_insert(error: InsertError) -> &'static CStr {
    match error {
        InsertError::Full => BF_FULL,
        InsertError::Growth(CreateError::OverLimit { .. }) => OVER_LIMIT,
        InsertError::Growth(_) => BF_NOT_INSERTED,
    }
}

/// Why a key was not inserted into a cuckoo filter.
pub(crate) fn of_cuckoo_insert(error: InsertError) -> &'static CStr {
    match error {
        InsertError::Full => CF_FULL,
        InsertError::Growth(CreateError::OverLimit { .. }) => OVER_LIMIT,
        InsertError::Growth(_) => NO_MEMORY,
    }
}
