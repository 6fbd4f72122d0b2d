//! Which blocks of rows may hold a value? The index below the tables: no Arrow, no files, only numbers in memory.
//!
//! ```text
//! value ──► hash ──► fingerprint of 32 bits                                    encode.rs
//! rows, in blocks ──► Cells ──► Postings: fingerprint ──► list of blocks       cells.rs, postings/
//!                 ──► Slices, for rows that still come one by one              slices.rs
//! Lookup (and, or, in, null) over the columns of a segment ──► BlockSet        lookup.rs, block_set.rs
//! ```
//!
//! Whoever has rows in a fixed order can use it. `ironbloom-index` does so for Parquet and CSV, and stores the words of
//! [`Postings`] in files.
//!
//! ```
//! use ironbloom_blocks::encode::{fingerprint, hash_value};
//! use ironbloom_blocks::{BlockSet, Cells, Params, Postings, SequenceWriter, Value};
//!
//! let print = |number: i128| fingerprint(hash_value(&Value::Int(number)).expect("not null"));
//! let params = Params::new(512, 10)?;                          // rows per block, selectivity
//! let mut cells = Cells::new(params);
//! cells.push_with(|prints| prints.extend((0..10_000).map(print)));
//! let postings = Postings::build(&cells.seal(), 20, params, &mut SequenceWriter::default());
//!
//! let BlockSet::Some(blocks) = BlockSet::from_list(postings.list(print(7_000))) else { panic!() };
//! assert!(blocks.contains(&(7_000 / 512)));
//! # Ok::<(), ironbloom_blocks::ParamError>(())
//! ```

#![forbid(unsafe_code)]

mod block_set;
mod cell_memory;
mod cells;
pub mod encode;
mod lookup;
mod params;
mod postings;
mod row_ranges;
mod slices;
mod value;

pub use block_set::BlockSet;
pub use cells::{Cells, SealedCells};
pub use lookup::{Lookup, ReadLists};
pub use params::{ParamError, Params};
pub use postings::{List, Outline, Placed, Postings, ReadWords, SequenceList, SequenceWriter};
pub use row_ranges::{MAX_ROWS, RowRange, RowRanges};
pub use slices::Slices;
pub use value::{Value, ValueKind};

use ironbloom::memory::WordArray;

/// This many words, all zero. Ends the program if allocation fails, like a vector.
fn zeros(len: usize) -> WordArray {
    WordArray::zeroed(len).unwrap_or_else(|_| {
        let layout = std::alloc::Layout::array::<u64>(len).expect("as much as there are cells");
        std::alloc::handle_alloc_error(layout)
    })
}
