//! One filter filled by several threads, in two ways: separate filters that are merged, or one that
//! they share.
//!
//! `cargo run --release --example shards -- 100000000` shows which is faster here.

use std::num::NonZeroUsize;
use std::time::Instant;

use ironbloom::hash::mix64;
use ironbloom::{AtomicBlockedBloom, BlockedBloom, ParamError};

fn main() -> Result<(), ParamError> {
    let keys: u64 = std::env::args().nth(1).map_or(1_000_000, |arg| arg.parse().expect("a number"));
    println!("{keys} keys, nanoseconds a key");
    for threads in [1, 2] {
        let (own, shared) = (united(keys, threads)?, shared(keys, threads as u64)?);
        println!(
            "{threads} threads: {own:.1} with filters of their own, {shared:.1} with one that they share"
        );
    }
    Ok(())
}

/// Shards may be anything that yields hashes: ranges of numbers here, usually files or partitions.
fn shards(keys: u64) -> impl Iterator<Item = impl Iterator<Item = u64>> {
    (0..64).map(move |shard| (shard * keys / 64..(shard + 1) * keys / 64).map(mix64))
}

fn united(keys: u64, threads: usize) -> Result<f64, ParamError> {
    let mut filter = BlockedBloom::with_rate(keys, 0.01)?;
    let start = Instant::now();
    filter.insert_shards(shards(keys), NonZeroUsize::new(threads).expect("at least one"))?;
    let time = start.elapsed();
    assert!((0..1000.min(keys)).all(|key| filter.contains_hash(mix64(key))));
    Ok(time.as_nanos() as f64 / keys as f64)
}

fn shared(keys: u64, threads: u64) -> Result<f64, ParamError> {
    let filter = AtomicBlockedBloom::with_rate(keys, 0.01)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let filter = &filter;
            scope.spawn(move || {
                let mine = thread * keys / threads..(thread + 1) * keys / threads;
                let hashes: Vec<u64> = mine.map(mix64).collect();
                filter.insert_hashes(&hashes);
            });
        }
    });
    let time = start.elapsed();
    assert!((0..1000.min(keys)).all(|key| filter.contains_hash(mix64(key))));
    Ok(time.as_nanos() as f64 / keys as f64)
}
