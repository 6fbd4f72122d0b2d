//! Rivals of the index: a signature file like PostgreSQL's `bloom`, and sorted columns in place of B-trees, all on the
//! same columns in memory.
//!
//! A separate crate because the program's demo and the benchmarks both need it, and the demo must not build the peers
//! that the benchmarks measure. Not meant for production use.

#![forbid(unsafe_code)]

mod columns;
mod signatures;
mod sorted;

pub use columns::{Columns, Random};
pub use signatures::Signatures;
pub use sorted::SortedColumns;

use ironbloom_index::{Predicate, Value};

/// The values required of some columns.
pub type Query = Vec<(usize, u32)>;

/// Makes `count` queries, each on `columns` different columns: the values of an existing row, or any values below
/// `values`.
pub fn queries(table: &Columns, columns: usize, count: usize, values: Option<u64>) -> Vec<Query> {
    let all = table.columns().len();
    let mut random = Random::new(columns as u64 * 2 + u64::from(values.is_none()));
    let mut query = |_| {
        let row = random.below(table.rows() as u64) as usize;
        let first = random.below(all as u64) as usize;
        let column = |i| (first + i * 3) % all;
        let mut value = |column: usize| match values {
            None => table.columns()[column][row],
            Some(values) => random.below(values) as u32,
        };
        (0..columns).map(|i| (column(i), value(column(i)))).collect()
    };
    (0..count).map(&mut query).collect()
}

/// Turns a query into a condition for an index of these columns.
pub fn predicate(table: &Columns, query: &Query) -> Predicate {
    let eq = |&(column, value): &(usize, u32)| {
        Predicate::Eq(table.names()[column].clone(), Value::Int(value.into()))
    };
    match &query[..] {
        [one] => eq(one),
        several => Predicate::And(several.iter().map(eq).collect()),
    }
}
