//! Asks an index the same conditions repeatedly, with index and tables already open, and times them.
//!
//! Prints the number of rows found and the median time per question in microseconds, over all rounds. `index.py`
//! compares it with DuckDB.

use std::hint::black_box;
use std::io::BufRead as _;
use std::path::Path;
use std::time::Instant;

use ironbloom_index::{Indexed, parse};

use crate::Failure;

pub(crate) fn run(index: &Path, rounds: u32) -> Result<(), Failure> {
    let indexed = Indexed::open(index)?;
    indexed.index().load()?;
    let schema = &indexed.schema()?;
    let mut predicates = Vec::new();
    for line in std::io::stdin().lock().lines() {
        predicates.push(parse(&line?, schema)?);
    }
    let mut times = Vec::new();
    let mut rows = 0;
    for round in 0..rounds {
        for predicate in &predicates {
            let start = Instant::now();
            for found in indexed.find(black_box(predicate), &[])? {
                rows += if round == 0 { found?.1.rows.len() } else { 0 };
            }
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    println!("{rows} {:.1}", times.get(times.len() / 2).copied().unwrap_or(0.0));
    Ok(())
}
