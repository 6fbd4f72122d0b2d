//! The `.ibx` file, version 2. This page is its specification.
//!
//! ```text
//!    0  8   magic 89 49 42 58 0d 0a 1a 0a        (a transfer in text mode breaks it, as PNG's)
//!    8  4   version, 2
//!   12  4   zero
//!   16  8   length of the file
//!   24  8   where the directory starts           a multiple of 64; it ends with the file
//!   32  8   XXH3-64 of the directory
//!   40 16   zero
//!   56  8   XXH3-64 of bytes 0..56
//!   64  …   sections, each from a multiple of 64 on: columns of segments (postings), blobs of sources
//!    …  …   directory
//! ```
//!
//! The directory, without any padding (a name is its length in 4 bytes and its UTF-8; an extent is where a section
//! starts, its bytes and its XXH3-64, 8 bytes each):
//!
//! ```text
//! rows per block 4 · selectivity 4
//! columns 4      each: name · kind 1                                                          (numbers of `ValueKind`)
//! sources 4      each: name · bytes 8 · fingerprint 8 · rows 8 · extent of the blob
//! segments 4     each: source 4 · ranges of rows 4 · (first row 8 · rows 8) per range · for every column: form 1 · extent
//! ```
//!
//! The form of a column says what its checksum is: 0, the XXH3-64 of its bytes; 1, the root of a tree of checksums of
//! pieces of 4 KiB (`checksum_tree.rs`), whose other levels follow the bytes that the extent names. Files of version 1 have
//! no forms in their directory; their columns are of form 0, and remain so when they are copied.
//!
//! All numbers are little-endian. To change an index, a new file is written and renamed over the old one, so that a
//! process with the old one open keeps it, and a crash on the way leaves the old one.

mod directory;
mod read;
mod write;

pub(crate) use read::{check_replaceable, header, open};
pub(crate) use write::save;

const MAGIC: [u8; 8] = [0x89, b'I', b'B', b'X', b'\r', b'\n', 0x1a, b'\n'];
const VERSION: u32 = 2;
/// The oldest version that is read.
const FIRST_VERSION: u32 = 1;
const VERSION_AT: usize = MAGIC.len();
const ZERO_AT: usize = VERSION_AT + 4;
const LENGTH_AT: usize = ZERO_AT + 4;
const DIRECTORY_AT: usize = LENGTH_AT + 8;
const CHECKSUM_AT: usize = DIRECTORY_AT + 8;
const SPARE_AT: usize = CHECKSUM_AT + 8;
const SEAL_AT: usize = SPARE_AT + 16;
const HEADER_BYTES: usize = SEAL_AT + 8;
/// Every section starts at a multiple of this.
const LINE_BYTES: usize = 64;

const _: () = assert!(HEADER_BYTES == LINE_BYTES);
