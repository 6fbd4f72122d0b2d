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
//! What the index says is "these blocks, and no others, may hold such a row". It is never wrong about the others. What is
//! found is then compared on the table itself, so answers are exact.

mod evaluate;
mod find;
mod parse;
mod predicate;
mod table;
mod value;

pub use evaluate::{EvaluateError, evaluate};
pub use find::{Find, Match, Report};
pub use parse::{Comparison, Condition, ConditionError, Literal, parse};
pub use predicate::Predicate;
pub use table::{Identity, Reads, Scan, Table, TableError};
pub use value::Value;
