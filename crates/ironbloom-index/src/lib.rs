//! A block index over tables: which blocks of rows may hold these values?
//!
//! ```text
//!  table (Parquet, CSV)                      index (.ibx)
//!  rows 0 .. 511      block 0     a, b, c ──► column a: value ──► blocks
//!  rows 512 .. 1023   block 1             ──► column b: value ──► blocks
//!  …                                          …
//!
//!  find(a = 7 and c = "x"):   blocks of a = 7  ∩  blocks of c = "x"  ──►  only these are read and compared
//! ```
//!
//! The index says "these blocks, and no others, may hold such a row". It is never wrong about the others. Candidates
//! are then checked against the table itself, so answers are exact.

// Mapping a file needs it, and no file is mapped here: `file_bytes` says why.
#![forbid(unsafe_code)]

mod builder;
mod calendar;
mod checksum_tree;
mod error;
mod evaluate;
mod file;
mod file_bytes;
mod find;
mod fingerprints;
mod float;
mod index;
mod indexed;
#[cfg(test)]
mod layers;
mod lock;
mod open_tables;
mod parse;
mod predicate;
mod query;
mod schema;
mod section;
mod segment;
mod similar;
mod source;
mod table;
mod zone;

pub use arrow;
pub use builder::IndexBuilder;
pub use error::{Error, FilePart};
pub use evaluate::{EvaluateError, evaluate};
pub use find::{Find, Match, Report};
pub use index::{Block, Candidates, ColumnInfo, Index, Info};
pub use indexed::{
    Explanation, Indexed, IndexedError, Search, TableCheck, append_tables, index_more_tables,
    index_more_tables_with, index_tables, index_tables_with, remembered_options, source_name,
};
pub use ironbloom_blocks::encode::hash_value;
pub use ironbloom_blocks::{ParamError, Params, Value, ValueKind};
pub use lock::IndexLock;
pub use parse::{Comparison, Condition, ConditionError, Literal, parse};
pub use predicate::Predicate;
pub use schema::{Column, columns_named, columns_of, kind_of};
pub use source::{Source, SourceMeta};
pub use table::{
    Compared, CsvOptions, Identity, Reads, Scan, Table, TableError, csv_options_in, csv_type,
};
pub use zone::show_moment;
