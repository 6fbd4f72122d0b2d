//! Asks an index the conditions on standard input, one a line, again and again: how long does a question take when index
//! and table are open?
//!
//! ```text
//! cargo run --release -p ironbloom-index --example ask -- t.ibx 20 < conditions.txt
//! ```
//!
//! Prints the rows found in all and the median of the microseconds a question takes, over all rounds. `make bench-index`
//! compares it with DuckDB.

use std::hint::black_box;
use std::io::BufRead as _;
use std::time::Instant;

use ironbloom_index::{Indexed, parse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(rounds)) = (args.next(), args.next()) else {
        println!("usage: ask INDEX ROUNDS < CONDITIONS");
        return Ok(());
    };
    let indexed = Indexed::open(file)?;
    let schema = &indexed.schema()?;
    let mut predicates = Vec::new();
    for line in std::io::stdin().lock().lines() {
        predicates.push(parse(&line?, schema)?);
    }
    let mut times = Vec::new();
    let mut rows = 0;
    for round in 0..rounds.parse::<u32>()? {
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
