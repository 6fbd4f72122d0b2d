//! The cost of a secret hash: nanoseconds per key for hashing and for lookups, interleaved, the
//! best of several rounds.
//!
//! `cargo run --release -p ironbloom --example keyed_speed`

use std::hint::black_box;
use std::time::Instant;

use ironbloom::{BlockedBloom, BlockedBloomParams, Filter as _, HashFn, Key};

const KEYS: usize = 100_000;
const ROUNDS: usize = 25;

fn best<K: Key>(keys: &[K], functions: &[HashFn], measured: impl Fn(HashFn, &[K])) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; functions.len()];
    for _ in 0..ROUNDS {
        for (best, &hash_fn) in best.iter_mut().zip(functions) {
            let start = Instant::now();
            measured(hash_fn, keys);
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64);
        }
    }
    best
}

fn compare<K: Key>(what: &str, keys: &[K]) {
    let functions = [HashFn::default(), HashFn::random()];
    let hashed = best(keys, &functions, |hash_fn, keys| {
        let mut hashes = [0; 1000];
        for keys in keys.chunks(hashes.len()) {
            hash_fn.hash_keys(keys, &mut hashes);
            black_box(&hashes);
        }
    });
    let params = BlockedBloomParams::for_rate(KEYS as u64, 0.01).expect("a possible shape");
    let looked_up = best(keys, &functions, |hash_fn, keys| {
        let filter = BlockedBloom::new(params, hash_fn).expect("enough memory");
        let mut found = [false; 1000];
        for keys in keys.chunks(found.len()) {
            filter.contains_keys(keys, &mut found);
            black_box(&found);
        }
    });
    println!(
        "{what:20} hash {:5.1} -> {:5.1} ns     lookup {:5.1} -> {:5.1} ns     (XXH3 -> SipHash-1-3)",
        hashed[0], hashed[1], looked_up[0], looked_up[1]
    );
}

fn main() {
    compare("integers", &(0..KEYS as u64).collect::<Vec<_>>());
    for length in [16, 50, 200] {
        let texts: Vec<String> = (0..KEYS).map(|i| format!("{i:0length$}")).collect();
        compare(&format!("texts of {length} bytes"), &texts);
    }
}
