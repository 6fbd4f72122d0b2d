//! The library's own batches, for comparison with those of the Python package in `make bench-python`: `batch KEYS
//! OTHERS`.
//!
//! The arguments are files of little-endian 64-bit integers. Each line on standard input, `add` (all of KEYS to a new
//! filter) or `contains` (all of OTHERS), runs once and prints the seconds.

use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::time::Instant;

use ironbloom::{BlockedBloom, Filter as _};

const RATE: f64 = 0.01;

fn filled(keys: &[u64]) -> BlockedBloom {
    let mut filter = BlockedBloom::with_rate(keys.len() as u64, RATE).expect("a valid shape");
    filter.insert_keys(keys);
    filter
}

fn main() -> std::io::Result<()> {
    // `cargo bench` adds a flag.
    let files: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let [keys, others] = files.as_slice() else {
        println!("skipped: name two files of integers, or run `make bench-python`");
        return Ok(());
    };
    let read = |path: &String| -> std::io::Result<Vec<u64>> {
        let bytes = std::fs::read(path)?;
        Ok(bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect())
    };
    let (keys, others) = (read(keys)?, read(others)?);
    let filter = filled(&keys);
    for line in std::io::stdin().lock().lines() {
        let is_add = line? == "add";
        let start = Instant::now();
        if is_add {
            black_box(filled(&keys));
        } else {
            let mut found = vec![false; others.len()];
            filter.contains_keys(&others, &mut found);
            black_box(found);
        }
        println!("{}", start.elapsed().as_secs_f64());
        std::io::stdout().flush()?;
    }
    Ok(())
}
