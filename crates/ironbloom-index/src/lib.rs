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

mod build;
mod builder;
mod calendar;
mod catalog;
mod change;
mod checksum_tree;
mod compact;
mod constant;
mod error;
mod evaluate;
mod file;
mod file_bytes;
mod find;
mod fingerprints;
mod float;
mod flusher;
mod followed;
mod hive;
mod images;
mod index;
mod indexed;
mod indexed_error;
mod info;
#[cfg(test)]
mod layers;
mod layout;
mod location;
mod lock;
#[cfg(feature = "object_store")]
mod object;
mod open_tables;
mod parse;
mod part;
mod paths;
mod pattern;
mod predicate;
mod prune;
mod query;
mod refresh;
mod reshape;
mod resources;
mod schema;
mod search;
mod secrets;
mod section;
mod segment;
mod segment_bounds;
mod segment_rows;
mod similar;
mod source;
mod table;
mod united;
mod workspace;
mod zone;

pub use arrow;
pub use build::BuildProgress;
pub use builder::IndexBuilder;
pub use calendar::show_date;
pub use catalog::{CatalogError, TableFormat, TableVersion, table_format};
pub use change::change_index;
pub use error::{Error, FilePart};
pub use evaluate::{EvaluateError, evaluate};
pub use find::{Find, Match, Report};
pub use hive::{HiveFolders, HiveOptions};
pub use index::{Block, Candidates, Index};
pub use indexed::{
    Indexed, ReadOptions, TableCheck, append_tables, index_more_tables, index_more_tables_with,
    index_tables, index_tables_with, remembered_options, source_name, temporary_folder,
};
pub use indexed_error::IndexedError;
pub use info::{ColumnInfo, Info};
pub use ironbloom_blocks::encode::hash_value;
pub use ironbloom_blocks::{ParamError, Params, Value, ValueKind};
pub use location::Location;
pub use lock::IndexLock;
#[cfg(feature = "object_store")]
pub use object::{list_objects, object_requests};
pub use parse::{Comparison, Condition, ConditionError, Literal, name_in, parse};
pub use paths::{PathError, tables_at};
pub use pattern::Pattern;
pub use predicate::Predicate;
pub use refresh::{Refresh, Refreshed, index_followed_table, refresh_index};
pub use resources::Resources;
pub use schema::{Column, columns_named, columns_of, kind_of};
pub use search::{Explanation, Search};
pub use secrets::without_secrets;
pub use source::{Source, SourceMeta};
pub use table::{
    Compared, CsvOptions, Identity, OwnFilters, Reads, Scan, Table, TableError, converted,
    csv_options_in, csv_type,
};
pub use zone::show_moment;
