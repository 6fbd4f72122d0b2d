//! TDIGEST.CREATE, RESET, ADD, MERGE; MIN, MAX, QUANTILE, CDF, RANK, REVRANK, BYRANK, BYREVRANK, TRIMMED_MEAN and INFO.
//!
//! An answer merges the nodes of a digest, and what is added later finds other nodes than without it. So a question that
//! changed something is sent to replicas and to the append-only file like a write. On a replica, and while replicas must not be
//! sent anything, a copy is asked instead.

use std::ffi::CStr;

use ironbloom::sketches::{DEFAULT_COMPRESSION, PlanError, TDigest};

use super::{Refusal, check_arity, expect, reply_done, reply_numbers, settle, text};
use crate::commands::{find_option, memory_limit};
use crate::engine::call::Call;
use crate::engine::key::{Access, Found, Key};
use crate::stats;

const EXISTS: &CStr = c"ERR T-Digest: key already exists";
const MISSING: &CStr = c"ERR T-Digest: key does not exist";
const KEYWORD: &CStr = c"ERR T-Digest: wrong keyword";
const COMPRESSION: &CStr = c"ERR T-Digest: error parsing compression parameter";
const COMPRESSION_RANGE: &CStr =
    c"ERR T-Digest: compression parameter needs to be a positive integer";
const NO_MEMORY: &CStr = c"ERR T-Digest: allocation failed";
const NO_MEMORY_TO_MERGE: &CStr = c"ERR T-Digest: allocation of destination digest failed";
const VALUE: &CStr = c"ERR T-Digest: error parsing val parameter";
const VALUE_RANGE: &CStr = c"ERR T-Digest: val parameter needs to be a finite number";
const OVERFLOW: &CStr = c"ERR T-Digest: overflow detected";
const QUANTILE: &CStr = c"ERR T-Digest: error parsing quantile";
const QUANTILE_RANGE: &CStr = c"ERR T-Digest: quantile should be in [0,1]";
const CDF: &CStr = c"ERR T-Digest: error parsing cdf";
const RANKED: &CStr = c"ERR T-Digest: error parsing value";
const RANK: &CStr = c"ERR T-Digest: error parsing rank";
const RANK_RANGE: &CStr = c"ERR T-Digest: rank needs to be non negative";
const LOW: &CStr = c"ERR T-Digest: error parsing low_cut_percentile";
const HIGH: &CStr = c"ERR T-Digest: error parsing high_cut_percentile";
const CUT_RANGE: &CStr =
    c"ERR T-Digest: low_cut_percentile and high_cut_percentile should be in [0,1]";
const CUT_ORDER: &CStr =
    c"ERR T-Digest: low_cut_percentile should be lower than high_cut_percentile";
const NUMKEYS: &CStr = c"ERR T-Digest: error parsing numkeys";
const NUMKEYS_RANGE: &CStr = c"ERR T-Digest: numkeys needs to be a positive integer";

/// The rank of a number in a digest without numbers.
const NO_RANK: i64 = -2;

fn compression_of(call: &Call<'_>, i: usize) -> Result<u64, Refusal> {
    let compression = call.integer(i).ok_or(COMPRESSION)?;
    if compression <= 0 { Err(COMPRESSION_RANGE.into()) } else { Ok(compression as u64) }
}

fn make(call: &Call<'_>, compression: u64, no_memory: &'static CStr) -> Result<TDigest, Refusal> {
    let digest = TDigest::limited(compression, memory_limit(call));
    Ok(digest.map_err(|error| match error {
        PlanError::OverLimit { .. } => text::SKETCH_OVER_LIMIT,
        _ => no_memory,
    })?)
}

/// `TDIGEST.CREATE key [COMPRESSION compression]`
pub(super) fn create(call: &Call<'_>) {
    settle(call, try_create(call));
}

fn try_create(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2 || call.count() == 4)?;
    let mut key = call.open(1, Access::Write);
    match key.get::<TDigest>() {
        Found::Missing => {}
        Found::WrongType => return Err(text::WRONG_TYPE.into()),
        Found::Filter(_) => return Err(EXISTS.into()),
    }
    let compression = if call.count() == 2 {
        DEFAULT_COMPRESSION
    } else {
        find_option(call, 2, b"COMPRESSION").ok_or(KEYWORD)?;
        compression_of(call, 3)?
    };
    key.set(make(call, compression, NO_MEMORY)?);
    reply_done(call);
    Ok(())
}

/// `TDIGEST.RESET key`
pub(super) fn reset(call: &Call<'_>) {
    settle(call, try_reset(call));
}

fn try_reset(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let mut key = call.open(1, Access::Write);
    expect(key.get_mut::<TDigest>(), MISSING)?.reset();
    reply_done(call);
    Ok(())
}

/// `TDIGEST.ADD key value [value ...]`
pub(super) fn add(call: &Call<'_>) {
    settle(call, try_add(call));
}

fn try_add(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 3)?;
    let mut key = call.open(1, Access::Write);
    let digest = expect(key.get_mut::<TDigest>(), MISSING)?;
    let value = |i| match call.double(i) {
        None => Err(Refusal::Because(VALUE)),
        Some(value) if !value.is_finite() => Err(Refusal::Because(VALUE_RANGE)),
        Some(value) => Ok(value),
    };
    let values = (2..call.count()).map(value).collect::<Result<Vec<f64>, _>>()?;
    digest.add_each(&values).map_err(|_| OVERFLOW)?;
    stats::ADDED.add(values.len() as u64);
    reply_done(call);
    Ok(())
}

/// `TDIGEST.MERGE destination numkeys source [source ...] [COMPRESSION compression] [OVERRIDE]`
pub(super) fn merge(call: &Call<'_>) {
    stats::timed(|| settle(call, try_merge(call)));
}

/// What a merge asks for.
struct Merge {
    sources: usize,
    compression: Option<u64>,
    is_override: bool,
}

fn try_merge(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() >= 4)?;
    let mut destination = call.open(1, Access::Write);
    let (own, own_weight) = match destination.get::<TDigest>() {
        Found::WrongType => return Err(text::WRONG_TYPE.into()),
        Found::Missing => (None, 0),
        Found::Filter(digest) => (Some(digest.compression()), digest.weight()),
    };
    let asked = merge_of(call)?;
    let keeps = own.filter(|_| !asked.is_override);
    let mut sources: Vec<Key<'_>> = Vec::with_capacity(asked.sources);
    let mut greatest = 0;
    let mut weights = Some(if keeps.is_some() { own_weight } else { 0 });
    for i in 3..3 + asked.sources {
        let key = call.open(i, Access::Read);
        let source = expect(key.get::<TDigest>(), MISSING)?;
        greatest = greatest.max(source.compression());
        weights = weights.and_then(|sum: i64| sum.checked_add(source.weight()));
        sources.push(key);
    }
    let compression = asked.compression.or(keeps).unwrap_or(greatest);
    let mut merged = make(call, compression, NO_MEMORY_TO_MERGE)?;
    // Before a source merges its nodes: nothing may change if the command is refused, since replicas are not told.
    weights.ok_or(OVERFLOW)?;
    if keeps.is_some() {
        merged.merge(expect(destination.get_mut(), MISSING)?).map_err(|_| OVERFLOW)?;
    }
    for key in &mut sources {
        merged.merge(expect(key.get_settling(), MISSING)?).map_err(|_| OVERFLOW)?;
    }
    drop(sources);
    // A new value, so that the time to live of the old one goes with it, as in RedisBloom.
    destination.set(merged);
    reply_done(call);
    Ok(())
}

fn merge_of(call: &Call<'_>) -> Result<Merge, Refusal> {
    let sources = call.integer(2).ok_or(NUMKEYS)?;
    if sources <= 0 {
        return Err(NUMKEYS_RANGE.into());
    }
    let sources = usize::try_from(sources).ok().filter(|&count| count <= call.count() - 3);
    let sources = sources.ok_or(Refusal::Arity)?;
    let tail = 3 + sources;
    let is_override = find_option(call, tail, b"OVERRIDE").is_some();
    let compression = match find_option(call, tail, b"COMPRESSION") {
        None => None,
        Some(at) => {
            check_arity(at + 1 < call.count())?;
            Some(compression_of(call, at + 1)?)
        }
    };
    if tail < call.count() && !is_override && compression.is_none() {
        return Err(KEYWORD.into());
    }
    Ok(Merge { sources, compression, is_override })
}

/// Asks the digest of the key.
fn ask<R>(call: &Call<'_>, answer: impl FnOnce(&mut TDigest) -> R) -> Result<R, Refusal> {
    let mut key = call.open(1, Access::Read);
    let digest = expect(key.get_settling::<TDigest>(), MISSING)?;
    if digest.unmerged_nodes() == 0 {
        return Ok(answer(digest));
    }
    if !call.must_obey() && (call.is_replica() || call.must_avoid_replica_traffic()) {
        return Ok(answer(&mut digest.clone()));
    }
    let outcome = answer(digest);
    if digest.unmerged_nodes() == 0 {
        call.replicate_verbatim();
    }
    Ok(outcome)
}

/// Arguments from 2 on, each read by `read`. The key comes first: without it nothing is read.
fn arguments<T>(
    call: &Call<'_>,
    read: impl Fn(usize) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    check_arity(call.count() >= 3)?;
    let key = call.open(1, Access::Read);
    expect(key.get::<TDigest>(), MISSING)?;
    (2..call.count()).map(read).collect()
}

fn reply_doubles(call: &Call<'_>, numbers: &[f64]) {
    stats::QUERIES.add(numbers.len() as u64);
    call.reply_array(numbers.len());
    numbers.iter().for_each(|&number| call.reply_servers_double(number));
}

fn reply_integers(call: &Call<'_>, numbers: &[i64]) {
    stats::QUERIES.add(numbers.len() as u64);
    call.reply_array(numbers.len());
    numbers.iter().for_each(|&number| call.reply_integer(number));
}

/// `TDIGEST.MIN key`
pub(super) fn min(call: &Call<'_>) {
    settle(call, end(call, TDigest::min));
}

/// `TDIGEST.MAX key`
pub(super) fn max(call: &Call<'_>) {
    settle(call, end(call, TDigest::max));
}

fn end(call: &Call<'_>, of: impl Fn(&TDigest) -> f64) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    call.reply_servers_double(of(expect(key.get::<TDigest>(), MISSING)?));
    Ok(())
}

/// `TDIGEST.QUANTILE key quantile [quantile ...]`
pub(super) fn quantile(call: &Call<'_>) {
    let read = |i| {
        let share = call.double(i).ok_or(QUANTILE)?;
        if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(QUANTILE_RANGE.into()) }
    };
    settle(call, answer_doubles(call, read, |digest, share| digest.quantile(share)));
}

/// `TDIGEST.CDF key value [value ...]`
pub(super) fn cdf(call: &Call<'_>) {
    let read = |i| call.double(i).ok_or(Refusal::Because(CDF));
    settle(call, answer_doubles(call, read, |digest, value| digest.cdf(value)));
}

/// `TDIGEST.BYRANK key rank [rank ...]`
pub(super) fn by_rank(call: &Call<'_>) {
    settle(call, answer_doubles(call, |i| rank_at(call, i), |digest, rank| digest.by_rank(rank)));
}

/// `TDIGEST.BYREVRANK key reverse_rank [reverse_rank ...]`
pub(super) fn by_rev_rank(call: &Call<'_>) {
    let answer = |digest: &mut TDigest, rank| digest.by_reverse_rank(rank);
    settle(call, answer_doubles(call, |i| rank_at(call, i), answer));
}

fn rank_at(call: &Call<'_>, i: usize) -> Result<u64, Refusal> {
    let rank = call.integer(i).ok_or(RANK)?;
    u64::try_from(rank).map_err(|_| RANK_RANGE.into())
}

fn answer_doubles<T: Copy>(
    call: &Call<'_>,
    read: impl Fn(usize) -> Result<T, Refusal>,
    answer: impl Fn(&mut TDigest, T) -> f64,
) -> Result<(), Refusal> {
    let asked = arguments(call, read)?;
    let all = |digest: &mut TDigest| -> Vec<f64> {
        asked.iter().map(|&one| answer(digest, one)).collect()
    };
    reply_doubles(call, &ask(call, all)?);
    Ok(())
}

/// `TDIGEST.RANK key value [value ...]`
pub(super) fn rank(call: &Call<'_>) {
    settle(call, answer_ranks(call, TDigest::rank));
}

/// `TDIGEST.REVRANK key value [value ...]`
pub(super) fn rev_rank(call: &Call<'_>) {
    settle(call, answer_ranks(call, TDigest::reverse_rank));
}

fn answer_ranks(
    call: &Call<'_>,
    rank: impl Fn(&mut TDigest, f64) -> Option<i64>,
) -> Result<(), Refusal> {
    let asked = arguments(call, |i| call.double(i).ok_or(Refusal::Because(RANKED)))?;
    let all = |digest: &mut TDigest| -> Vec<i64> {
        asked.iter().map(|&value| rank(digest, value).unwrap_or(NO_RANK)).collect()
    };
    reply_integers(call, &ask(call, all)?);
    Ok(())
}

/// `TDIGEST.TRIMMED_MEAN key low_cut_quantile high_cut_quantile`
pub(super) fn trimmed_mean(call: &Call<'_>) {
    settle(call, try_trimmed_mean(call));
}

fn try_trimmed_mean(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 4)?;
    expect(call.open(1, Access::Read).get::<TDigest>(), MISSING)?;
    let low = call.double(2).ok_or(LOW)?;
    let high = call.double(3).ok_or(HIGH)?;
    let range = 0.0..=1.0;
    if !range.contains(&low) || !range.contains(&high) {
        return Err(CUT_RANGE.into());
    }
    if low >= high {
        return Err(CUT_ORDER.into());
    }
    call.reply_servers_double(ask(call, |digest| digest.trimmed_mean(low, high))?);
    Ok(())
}

/// `TDIGEST.INFO key`
pub(super) fn info(call: &Call<'_>) {
    settle(call, try_info(call));
}

fn try_info(call: &Call<'_>) -> Result<(), Refusal> {
    check_arity(call.count() == 2)?;
    let key = call.open(1, Access::Read);
    let digest = expect(key.get::<TDigest>(), MISSING)?;
    let fields = [
        (c"Compression", digest.compression() as i64),
        (c"Capacity", digest.capacity() as i64),
        (c"Merged nodes", digest.merged_nodes() as i64),
        (c"Unmerged nodes", digest.unmerged_nodes() as i64),
        (c"Merged weight", digest.merged_weight()),
        (c"Unmerged weight", digest.unmerged_weight()),
        (c"Observations", digest.weight()),
        (c"Total compressions", digest.compressions()),
        (c"Memory usage", digest.size_in_bytes() as i64),
    ];
    reply_numbers(call, &fields);
    Ok(())
}
