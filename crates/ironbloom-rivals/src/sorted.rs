//! All (value, row) pairs of each column, sorted: equivalent to a B-tree that never changes.

use crate::{Columns, Query};

/// See the module documentation.
pub struct SortedColumns(Vec<Vec<u64>>);

impl SortedColumns {
    /// Sorts every column.
    pub fn build(table: &Columns) -> Self {
        let sorted = |values: &[u32]| {
            let pair = |(&value, row): (&u32, u64)| u64::from(value) << 32 | row;
            let mut pairs: Vec<u64> = values.iter().zip(0u64..).map(pair).collect();
            pairs.sort_unstable();
            pairs
        };
        Self(table.columns().iter().map(|values| sorted(values)).collect())
    }

    /// Size in bytes: eight per cell.
    pub fn size_in_bytes(&self) -> u64 {
        self.0.iter().map(|column| size_of_val(&column[..]) as u64).sum()
    }

    fn rows(&self, column: usize, value: u32) -> &[u64] {
        let pairs = &self.0[column];
        let low = u64::from(value) << 32;
        let start = pairs.partition_point(|&pair| pair < low);
        let len = pairs[start..].iter().take_while(|&&pair| pair >> 32 == u64::from(value)).count();
        &pairs[start..start + len]
    }

    /// Counts the rows that match: the rows of each value ascend, so they are merged.
    pub fn find(&self, query: &Query) -> u64 {
        let row = |&pair: &u64| pair as u32;
        let mut rows: Vec<u32> = self.rows(query[0].0, query[0].1).iter().map(row).collect();
        for &(column, value) in &query[1..] {
            let mut other = self.rows(column, value).iter().map(row).peekable();
            rows.retain(|&row| {
                while other.next_if(|&next| next < row).is_some() {}
                other.peek() == Some(&row)
            });
        }
        rows.len() as u64
    }
}
