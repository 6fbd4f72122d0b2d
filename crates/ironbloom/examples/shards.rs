//! Build in parallel, then merge: threads (or machines) fill filters of one shape, and the union is the whole.
//!
//! `cargo run -p ironbloom --example shards`

use ironbloom::{BlockedBloom, BlockedBloomParams, HashFn};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const SHARDS: u64 = 4;
    const KEYS: u64 = 100_000;
    let params = BlockedBloomParams::for_rate(SHARDS * KEYS, 0.01)?;

    let shards = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..SHARDS)
            .map(|shard| {
                scope.spawn(move || {
                    let mut filter = BlockedBloom::new(params, HashFn::default())?;
                    for key in shard * KEYS..(shard + 1) * KEYS {
                        filter.insert(key.to_le_bytes());
                    }
                    Ok::<_, ironbloom::ParamError>(filter)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no shard panics"))
            .collect::<Result<Vec<_>, _>>()
    })?;

    let mut whole = BlockedBloom::new(params, HashFn::default())?;
    for shard in &shards {
        whole.union_with(shard)?;
    }
    assert!((0..SHARDS * KEYS).all(|key| whole.contains(key.to_le_bytes())));
    println!(
        "{} shards of {KEYS} keys, about {:.0} keys in the union, rate {:.2} %",
        SHARDS,
        whole.estimate_len(),
        100.0 * whole.estimate_rate()
    );

    // A filter of another shape does not fit, and says why.
    let other = BlockedBloom::with_rate(10, 0.01)?;
    println!("refused: {}", whole.union_with(&other).expect_err("shapes differ"));
    Ok(())
}
