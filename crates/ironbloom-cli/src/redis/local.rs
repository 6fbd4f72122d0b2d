//! Filters built here from keys, to be loaded: one, or one for each shard.

use anyhow::Result;
use clap::{Args, ValueEnum};
use ironbloom::HashFn;
use ironbloom::any::{AnyFilter, KeyHash};
use ironbloom::route::{shard_capacity, shard_of};

use crate::build::{distinct_hashes, refuse_beyond_memory};
use crate::input::{self, InputArgs};
use crate::kinds::KindArg;
use crate::{file, number};

/// A filter that is built before it is loaded.
#[derive(Args)]
pub(super) struct LocalArgs {
    /// The inputs are keys, one per line, not a filter: build it here, then load it
    #[arg(long)]
    pub(super) lines: bool,

    /// With --lines: kind of filter [default: blocked]
    #[arg(long, requires = "lines", value_enum)]
    kind: Option<LocalKind>,

    /// With --lines: keys to plan for, all shards together, e.g. 10M. Without it, the hashes of all keys are kept
    /// in memory, and the filter is sized for them
    #[arg(long, requires = "lines", value_name = "N", value_parser = number::parse_count)]
    capacity: Option<u64>,

    /// With --lines: false-positive rate [default: 1%]
    #[arg(long, requires = "lines", value_name = "P", value_parser = number::parse_rate)]
    rate: Option<f64>,
}

/// The kinds that a server holds and that keys can be put into as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LocalKind {
    /// One cache line per key: BF.* commands
    Blocked,
    /// Classic Bloom filter, for rates below 10^-5: BF.* commands
    Bloom,
    /// Keys can be removed: CF.* commands
    Cuckoo,
}

impl LocalArgs {
    fn kind(&self) -> KindArg {
        match self.kind {
            Some(LocalKind::Cuckoo) => KindArg::named("cuckoo"),
            Some(LocalKind::Bloom) => KindArg::named("bloom"),
            Some(LocalKind::Blocked) | None => KindArg::named("blocked"),
        }
    }

    /// The filters of all shards, in order.
    pub(super) fn build(&self, input: &InputArgs, shards: u32) -> Result<Vec<AnyFilter>> {
        match (self.capacity, self.kind()) {
            (Some(capacity), kind) if !kind.abilities.counts_copies => {
                self.stream(input, shards, capacity)
            }
            (capacity, _) => self.collect(input, shards, capacity),
        }
    }

    /// Keys go into filters of known size as they come.
    fn stream(&self, input: &InputArgs, shards: u32, capacity: u64) -> Result<Vec<AnyFilter>> {
        let mut filters = self.empty(&vec![shard_capacity(capacity, shards); shards as usize])?;
        input::for_each_block(
            input,
            threads(),
            move |keys| Ok(routed(file::hashes(keys, key_hash())?, shards)),
            |_, parts| {
                let mut filters = filters.iter_mut().zip(&parts);
                Ok(filters.try_for_each(|(filter, part)| filter.insert_hashes(part))?)
            },
        )?;
        Ok(filters)
    }

    /// The filters are made when all keys are known: sized to them, or because they must see each key once.
    fn collect(
        &self,
        input: &InputArgs,
        shards: u32,
        capacity: Option<u64>,
    ) -> Result<Vec<AnyFilter>> {
        let parts = routed(distinct_hashes(input, threads(), key_hash())?.0, shards);
        let planned = capacity.map(|capacity| shard_capacity(capacity, shards));
        let capacities: Vec<u64> =
            parts.iter().map(|part| planned.unwrap_or(part.len() as u64).max(1)).collect();
        let mut filters = self.empty(&capacities)?;
        for (filter, part) in filters.iter_mut().zip(&parts) {
            filter.insert_distinct_hashes(part)?;
        }
        Ok(filters)
    }

    fn empty(&self, capacities: &[u64]) -> Result<Vec<AnyFilter>> {
        let (kind, rate) = (self.kind(), self.rate.unwrap_or(0.01));
        let mut bits = 0u64;
        for &capacity in capacities {
            bits = bits.saturating_add(kind.shape(capacity, rate)?.bits);
        }
        refuse_beyond_memory(bits)?;
        let filters = capacities.iter().map(|&capacity| kind.create(capacity, rate, SEED));
        Ok(filters.collect::<Result<_, _>>()?)
    }
}

/// The seed of the hash that routes, and of the filters: a key is hashed once.
const SEED: u64 = 0;

/// The hash that decides the shard of a key.
pub(super) fn key_hash() -> KeyHash {
    KeyHash::Hash(HashFn::Xxh3 { seed: SEED })
}

/// The hashes of each shard, in the order in which they came.
fn routed(hashes: Vec<u64>, shards: u32) -> Vec<Vec<u64>> {
    if shards == 1 {
        return vec![hashes];
    }
    let mut parts = vec![Vec::with_capacity(hashes.len() / shards as usize + 64); shards as usize];
    for hash in hashes {
        parts[shard_of(hash, shards) as usize].push(hash);
    }
    parts
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
