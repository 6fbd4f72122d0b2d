//! A table in memory: columns of numbers, seen as Arrow batches without a copy.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use ironbloom::hash::{SplitMix64, fastrange, mix64};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use ironbloom_index::{Block, Error, Index, IndexBuilder, Params, Resources, columns_of};

/// Pseudo-random numbers, the same in every run.
pub struct Random(SplitMix64);

impl Random {
    /// Starts a sequence that depends on the seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64(mix64(seed)))
    }

    /// Returns the next 64-bit number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns the next number, below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        fastrange(self.number(), n)
    }
}

/// Columns of numbers, called i1, i2, …
pub struct Columns {
    names: Vec<String>,
    columns: Vec<ScalarBuffer<u32>>,
}

impl Columns {
    /// Creates `columns` columns of uniformly distributed numbers below `values`.
    pub fn random(rows: usize, columns: usize, values: u64) -> Self {
        let column = |i| {
            let mut random = Random::new(i as u64);
            (0..rows).map(|_| random.below(values) as u32).collect()
        };
        Self::new((0..columns).map(column).collect())
    }

    /// Takes these columns, all of one length.
    pub fn new(columns: Vec<Vec<u32>>) -> Self {
        let names = (1..=columns.len()).map(|i| format!("i{i}")).collect();
        let columns = columns.into_iter().map(|column| Buffer::from_vec(column).into()).collect();
        Self { names, columns }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns[0].len()
    }

    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The columns.
    pub fn columns(&self) -> &[ScalarBuffer<u32>] {
        &self.columns
    }

    /// Column names and types.
    pub fn schema(&self) -> SchemaRef {
        let field = |name: &String| Field::new(name, DataType::UInt32, false);
        Arc::new(Schema::new(self.names.iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns the columns as a Parquet reader would.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> {
        const ROWS: usize = 8192;
        let schema = self.schema();
        (0..self.rows()).step_by(ROWS).map(move |start| {
            let rows = ROWS.min(self.rows() - start);
            let array = |column: &ScalarBuffer<u32>| {
                Arc::new(UInt32Array::new(column.slice(start, rows), None)) as ArrayRef
            };
            let arrays = self.columns.iter().map(array).collect();
            RecordBatch::try_new(schema.clone(), arrays).expect("columns of one length")
        })
    }

    /// Builds an index on all columns, with one thread, in memory.
    pub fn index(&self, params: Params) -> Result<Index, Error> {
        let resources = Resources::default().with_memory(1 << 40).with_threads(1);
        let mut builder = IndexBuilder::new(columns_of(&self.schema())?, params)?
            .with_resources(resources, std::env::temp_dir())
            .with_expected_rows(self.rows() as u64);
        for batch in self.batches() {
            builder.push(&batch)?;
        }
        builder.finish()
    }

    /// Writes a Parquet file with common defaults: pages of up to 20,000 rows and 1 MiB, Snappy, no dictionaries (which
    /// writers give up for random numbers).
    pub fn write_parquet(&self, path: &Path) -> Result<(), ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .build();
        let file = File::create(path)?;
        let mut writer = ArrowWriter::try_new(file, self.schema(), Some(properties))?;
        for batch in self.batches() {
            writer.write(&batch)?;
        }
        writer.close()?;
        Ok(())
    }

    /// Counts the rows that match, by a full scan.
    pub fn scan(&self, query: &[(usize, u32)]) -> u64 {
        self.count(query, 0..self.rows() as u64)
    }

    /// Counts the rows of these blocks that match. Reading some numbers of each block before comparing any lets the
    /// processor fetch all of them at once.
    pub fn verify(&self, query: &[(usize, u32)], blocks: &[Block]) -> u64 {
        // A number in every eighth cache line: the lines between are fetched with it.
        const STEP: usize = 128;
        let column = &self.columns[query[0].0];
        let touch = |block: &Block| {
            let rows = block.first_row as usize..block.range().end as usize;
            rows.step_by(STEP).fold(0, |sum, row| sum ^ column[row])
        };
        std::hint::black_box(blocks.iter().fold(0, |sum, block| sum ^ touch(block)));
        blocks.iter().map(|block| self.count(query, block.range())).sum()
    }

    /// Counts the rows of this range that match. The first column is compared row by row without a branch; the others
    /// only where it matches, which is rare.
    fn count(&self, query: &[(usize, u32)], rows: Range<u64>) -> u64 {
        const STEP: usize = 64;
        let rows = rows.start as usize..rows.end as usize;
        let (first, value) = query[0];
        let (whole, rest) = self.columns[first][rows.clone()].as_chunks::<STEP>();
        let mut count = 0;
        let mut look = |from: usize, to: usize| {
            count += (from..to).filter(|&row| self.is_match(query, row)).count();
        };
        for (i, chunk) in whole.iter().enumerate() {
            if chunk.iter().map(|&other| u32::from(other == value)).sum::<u32>() > 0 {
                look(rows.start + i * STEP, rows.start + (i + 1) * STEP);
            }
        }
        look(rows.end - rest.len(), rows.end);
        count as u64
    }

    /// Returns true if a row has all these values.
    pub fn is_match(&self, query: &[(usize, u32)], row: usize) -> bool {
        query.iter().all(|&(column, value)| self.columns[column][row] == value)
    }
}
