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

mod blocks;
mod builder;
mod calendar;
mod encode;
mod error;
mod evaluate;
mod file;
mod file_bytes;
mod find;
mod float;
mod index;
mod indexed;
mod lock;
mod open_tables;
mod params;
mod parse;
mod postings;
mod predicate;
mod query;
mod schema;
mod segment;
mod slices;
mod source;
mod stored;
mod table;
mod value;
mod words;
mod zone;

pub use arrow;
pub use builder::IndexBuilder;
pub use encode::hash_value;
pub use error::{Error, Part};
pub use evaluate::{EvaluateError, evaluate};
pub use find::{Find, Match, Report};
pub use index::{Block, Candidates, ColumnInfo, Index, Info};
pub use indexed::{
    Explanation, Indexed, IndexedError, Search, TableCheck, append_tables, index_more_tables,
    index_more_tables_with, index_tables, index_tables_with, remembered_options, source_name,
};
pub use lock::IndexLock;
pub use params::Params;
pub use parse::{Comparison, Condition, ConditionError, Literal, parse};
pub use predicate::Predicate;
pub use schema::{Column, Kind, columns_named, columns_of};
pub use source::{Source, SourceMeta};
pub use table::{
    Compared, CsvOptions, Identity, Reads, Scan, Table, TableError, csv_options_in, csv_type,
};
pub use value::Value;
pub use zone::show_moment;
