//! What the index is compared with.

use ironbloom::hash::mix64;

use crate::Query;
use crate::table::Table;

/// PostgreSQL's `bloom` index: for each row a signature of 80 bits, 2 of them set for each column, and 6 bytes that say where
/// the row is. A query reads them all. Its generator of bits is Park and Miller's, as there; the hash of a value is ours.
pub(crate) struct Signatures(Vec<[u64; 2]>);

const SIGNATURE_BITS: u32 = 80;
const BITS_A_COLUMN: u32 = 2;

struct ParkMiller(u32);

impl ParkMiller {
    fn seeded(seed: u32) -> Self {
        Self(seed % 0x7fff_fffe + 1)
    }

    fn next(&mut self) -> u32 {
        self.0 = (u64::from(self.0) * 16_807 % 0x7fff_ffff) as u32;
        self.0 - 1
    }
}

/// Sets the bits of a value; the row's place takes the high 48 bits of the second word.
fn sign(signature: &mut [u64; 2], column: usize, value: u32) {
    let hash = (mix64(value.into()) >> 32) as u32;
    let mut random = ParkMiller::seeded(hash ^ ParkMiller::seeded(column as u32).next());
    for _ in 0..BITS_A_COLUMN {
        let bit = random.next() % SIGNATURE_BITS;
        signature[(bit / 64) as usize] |= 1 << (bit % 64);
    }
}

impl Signatures {
    pub(crate) fn build(table: &Table) -> Self {
        let mut rows: Vec<[u64; 2]> = (0..table.rows() as u64).map(|row| [0, row << 16]).collect();
        for (column, values) in table.columns.iter().enumerate() {
            rows.iter_mut().zip(values.iter()).for_each(|(row, &value)| sign(row, column, value));
        }
        Self(rows)
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        size_of_val(&self.0[..]) as u64
    }

    /// Rows found by all queries, and rows that only looked so.
    pub(crate) fn run(&self, table: &Table, queries: &[Query]) -> (u64, u64) {
        let (mut found, mut wrong) = (0, 0);
        for query in queries {
            let mut wanted = [0; 2];
            query.iter().for_each(|&(column, value)| sign(&mut wanted, column, value));
            for row in &self.0 {
                if row[0] & wanted[0] == wanted[0] && row[1] & wanted[1] == wanted[1] {
                    if table.is_match(query, (row[1] >> 16) as usize) {
                        found += 1
                    } else {
                        wrong += 1
                    }
                }
            }
        }
        (found, wrong)
    }
}

/// For each column, (value, row) sorted.
pub(crate) struct SortedColumns(Vec<Vec<u64>>);

impl SortedColumns {
    pub(crate) fn build(table: &Table) -> Self {
        let sorted = |values: &arrow::buffer::ScalarBuffer<u32>| {
            let mut pairs: Vec<u64> = values
                .iter()
                .zip(0u64..)
                .map(|(&value, row)| u64::from(value) << 32 | row)
                .collect();
            pairs.sort_unstable();
            pairs
        };
        Self(table.columns.iter().map(sorted).collect())
    }

    pub(crate) fn size_in_bytes(&self) -> u64 {
        self.0.iter().map(|column| size_of_val(&column[..]) as u64).sum()
    }

    fn rows(&self, column: usize, value: u32) -> &[u64] {
        let pairs = &self.0[column];
        let low = u64::from(value) << 32;
        let start = pairs.partition_point(|&pair| pair < low);
        let len = pairs[start..].iter().take_while(|&&pair| pair >> 32 == u64::from(value)).count();
        &pairs[start..start + len]
    }

    /// How many rows match: the rows of each value ascend, so they are merged.
    pub(crate) fn find(&self, query: &Query) -> u64 {
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
