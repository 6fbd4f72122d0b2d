//! Columns that are not uniform: their size, and the time of a lookup.

use ironbloom_rivals::{Columns, Random};

use crate::{Failure, run_index};

const ROWS: usize = 10_000_000;

pub(crate) fn run() -> Result<(), Failure> {
    println!("{ROWS} rows, default setting");
    let mut random = Random::new(99);
    let zipf = Zipf::new(1_000_000, 1.1);
    report("uniform, 1 M values", |_| random.below(1_000_000) as u32)?;
    report("Zipf(1.1), 1 M values", |_| zipf.sample(&mut random))?;
    report("3 values", |_| random.below(3) as u32)?;
    report("1000 values", |_| random.below(1000) as u32)?;
    report("200 k values", |_| random.below(200_000) as u32)?;
    report("unique", |row| row as u32)?;
    report("sorted, 1000 rows each", |row| (row / 1000) as u32)
}

fn report(name: &str, mut value: impl FnMut(usize) -> u32) -> Result<(), Failure> {
    let table = Columns::new(vec![(0..ROWS).map(&mut value).collect()]);
    let (index, time) = crate::timed(|| table.index(Default::default()));
    let index = index?;
    let mut picks = Random::new(5);
    let queries: Vec<_> = (0..2000)
        .map(|_| vec![(0, table.columns()[0][picks.below(ROWS as u64) as usize])])
        .collect();
    let distinct: Vec<_> = {
        let mut values: Vec<u32> = queries.iter().map(|query| query[0].1).collect();
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|value| vec![(0, value)]).collect()
    };
    let bits = index.info().columns[0].bits_per_cell;
    let tally = run_index(&table, &index, &distinct)?;
    println!(
        "{name:<24} {bits:>6.2} bits a cell, built in {time:.2?}, lookup {:.2} µs without verifying, {:.1} blocks",
        tally.lookup,
        tally.blocks as f64 / distinct.len() as f64,
    );
    Ok(())
}

/// Values 0..n with frequencies proportional to 1, 1/2^s, 1/3^s, …, drawn from cumulative sums.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(values: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        Self(
            (1..=values)
                .map(|rank| {
                    sum += (rank as f64).powf(-exponent);
                    sum
                })
                .collect(),
        )
    }

    fn sample(&self, random: &mut Random) -> u32 {
        let total = self.0[self.0.len() - 1];
        let point = random.number() as f64 / 2f64.powi(64) * total;
        self.0.partition_point(|&sum| sum < point).min(self.0.len() - 1) as u32
    }
}
