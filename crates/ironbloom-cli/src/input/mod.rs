//! Keys from files and standard input.
//!
//! ```text
//! reader thread            worker threads             caller
//! bytes ─► blocks of    ─► split into keys, hash, ─► results in input order
//!          whole lines     (test or insert)
//! ```
//!
//! Blocks end at a line end, so workers need nothing from each other. Results are put back in order, because
//! `dedup` and `check` print in the order of the input. gzip and zstd are recognised by their first bytes.
//!
//! ```text
//! args.rs        what was asked for             pipeline.rs    the threads
//! read.rs        all inputs, in blocks          keys.rs        a block of keys
//! file.rs        a file or standard input       decompress.rs  gzip and zstd
//! lines.rs       blocks of whole lines          table.rs       CSV
//! ```
//!
//! Text is what people have: a carriage return before a newline belongs to the line end, and a byte-order mark to no
//! key. Both are removed, with a note, unless `--exact-bytes` or `-0` is given.

mod args;
mod decompress;
mod file;
mod keys;
mod lines;
mod pipeline;
mod read;
mod strict;
mod table;

pub(crate) use args::InputArgs;
pub(crate) use keys::{Keys, fields};
pub(crate) use pipeline::{BadKey, for_each_block};
