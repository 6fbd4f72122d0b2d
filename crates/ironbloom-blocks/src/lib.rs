//! Finds the blocks of rows that may hold a value. The layer below the tables: no Arrow, no files, only numbers in
//! memory.
//!
//! ```text
//! value ──► hash ──► 32-bit fingerprint                                        encode.rs
//! rows, in blocks ──► Cells ──► Postings: fingerprint ──► list of blocks       cells.rs, postings/
//!                 ──► Slices, for rows that arrive one by one                  slices.rs
//!                 ──► Bounds: the smallest and the largest value of a block    bounds/
//! numbers, a page at a time ──► run: pages that can be read one by one        postings/run.rs
//! Lookup (and, or, in, between, null) over the columns of a segment ──► BlockSet   lookup.rs, block_set.rs
//! ```
//!
//! Usable for any rows in a fixed order. `ironbloom-index` uses it for Parquet and CSV, and stores the words of
//! [`Postings`] in files.
//!
//! ```
//! use ironbloom_blocks::encode::{fingerprint, hash_value};
//! use ironbloom_blocks::{BlockSet, Cells, Params, Postings, Value};
//!
//! let print = |number: i128| fingerprint(hash_value(&Value::Int(number)).expect("not null"));
//! let params = Params::new(512, 10)?;                          // rows per block, selectivity
//! let mut cells = Cells::new(params);
//! cells.push_with(|prints| prints.extend((0..10_000).map(print)));
//! let postings = Postings::build(&cells.seal(), 20, params.bucket_bits(10_000));
//!
//! let BlockSet::Some(blocks) = BlockSet::from_list(postings.list(print(7_000))) else { panic!() };
//! assert!(blocks.contains(&(7_000 / 512)));
//! # Ok::<(), ironbloom_blocks::ParamError>(())
//! ```

#![forbid(unsafe_code)]

mod block_set;
pub mod bounds;
mod cell_memory;
mod cells;
pub mod encode;
mod lookup;
mod params;
mod postings;
mod row_range;
mod slices;
mod value;

pub use block_set::BlockSet;
pub use cell_memory::CellPieces;
pub use cells::{CELL_PARTS, Cells, SealedCells};
pub use lookup::{Key, Lookup, ReadLists};
pub use params::{ParamError, Params};
pub use postings::{
    EncodedPart, List, Move, Outline, PartMemory, Placed, Postings, ReadWords, Remainder,
    SequenceList, run,
};
pub use row_range::{MAX_ROWS, RowRange};
pub use slices::Slices;
pub use value::{Value, ValueKind};

use ironbloom::memory::WordArray;

/// Allocates this many zero words. Aborts if allocation fails, like a vector.
fn zeros(len: usize) -> WordArray {
    WordArray::zeroed(len).unwrap_or_else(|_| {
        let layout = std::alloc::Layout::array::<u64>(len).expect("as much as there are cells");
        std::alloc::handle_alloc_error(layout)
    })
}
