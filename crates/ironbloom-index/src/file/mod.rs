//! The `.ibx` file, version 3. This page is its specification.
//!
//! ```text
//!    0  8   magic 89 49 42 58 0d 0a 1a 0a        (a transfer in text mode breaks it, as PNG's)
//!    8  4   version, 3
//!   12  4   zero
//!   16  8   length of the file
//!   24  8   where the directory starts           a multiple of 64; it ends 64 bytes before the file
//!   32  8   XXH3-64 of the directory
//!   40 16   zero
//!   56  8   XXH3-64 of bytes 0..56
//!   64  …   sections, each from a multiple of 64 on: columns of segments (postings), bounds of segments, blobs and deleted rows
//!           of sources
//!    …  …   directory
//!    … 64   the first 64 bytes once more
//! ```
//!
//! The directory, without any padding (a name is its length in 4 bytes and its UTF-8; an extent is where a section
//! starts, its bytes and its XXH3-64, 8 bytes each):
//!
//! ```text
//! rows per block 4 · selectivity 4 · layout
//! columns 4      each: name · kind 1                                                          (numbers of `ValueKind`)
//! sources 4      each: name · bytes 8 · fingerprint 8 · rows 8 · extent of the blob · version (as a name: an ETag, or nothing)
//!                · view · deleted 1 [· extent of deleted rows]
//! segments 4     each: ranges of rows 4 · (source 4 · first row 8 · rows 8) per range · for every column: form 1 · extent
//!                · bounds 1: 0 unknown, 1 known, and then: extent · for every column: code 1 · low · width
//! ```
//!
//! The form of a column says what its checksum is: 0, the XXH3-64 of its bytes; 1, the root of a tree of checksums of
//! pieces of 4 KiB (`checksum_tree.rs`), whose other levels follow the bytes that the extent names. Files of version 1 have
//! no forms in their directory; their columns are of form 0, and remain so when they are copied. Files of versions 1 and 2
//! have no versions of sources, have the source of a segment before its ranges instead of in each, and end with the directory.
//!
//! Each range of rows starts a new block. The source is its number, or 2^32 - 1 if it was removed from the index: such blocks
//! count, and are named by nobody.
//!
//! The header is repeated at the end so that one request for the last bytes of an object gets it with the directory. For the
//! same reason the blobs come last, and the segments of a column are written one after the other: a question needs some
//! columns of all segments, and what is near comes by one request.
//!
//! Layout and view, which are written like names, are the bytes that `layout.rs` keeps for all sources and for each: what these
//! are files of, and which columns are constant. If deleted is 1, an extent says where the list of deleted rows is (in the portable
//! form of a Roaring bitmap of 64-bit numbers). Files of versions 1 and 2 have none of these.
//!
//! The bounds of a segment are one section, verified by a tree: the words of all columns (`bounds/packed.rs` of
//! ironbloom-blocks), one after the other. The directory has the frame of each column, so that a value outside it costs
//! nothing: a code of 128 says that all values are null, and nothing follows; any other is that of the head, and is followed by
//! the first image, its highest bit flipped, and by the last one less the first. These two are numbers of up to 16 bytes: how
//! many bytes 1 · bytes, without zeros at the end. Files of versions 1 and 2 have no bounds; they remain unknown when segments
//! are copied or merged.
//!
//! All numbers are little-endian. To change an index, a new file is written and renamed over the old one, so that a
//! process with the old one open keeps it, and a crash on the way leaves the old one.

mod adopt;
mod directory;
mod read;
mod write;

pub(crate) use read::{check_replaceable, header, open};
pub(crate) use write::save;

const MAGIC: [u8; 8] = [0x89, b'I', b'B', b'X', b'\r', b'\n', 0x1a, b'\n'];
const VERSION: u32 = 3;
/// The first version with bounds.
const BOUNDS_VERSION: u32 = 3;
/// The oldest version that is read.
const FIRST_VERSION: u32 = 1;
/// The first that has a layout, versions, views and deleted rows of sources, and its header at the end as well.
const WITH_TRAILER: u32 = 3;
const VERSION_AT: usize = MAGIC.len();
const ZERO_AT: usize = VERSION_AT + 4;
const LENGTH_AT: usize = ZERO_AT + 4;
const DIRECTORY_AT: usize = LENGTH_AT + 8;
const CHECKSUM_AT: usize = DIRECTORY_AT + 8;
const SPARE_AT: usize = CHECKSUM_AT + 8;
const SEAL_AT: usize = SPARE_AT + 16;
pub(crate) const HEADER_BYTES: usize = SEAL_AT + 8;
/// Every section starts at a multiple of this.
pub(crate) const LINE_BYTES: usize = 64;

/// Instead of the number of a source that was removed.
const GONE: u32 = u32::MAX;
/// The code of a column of nulls, which has no frame.
const NO_VALUES: u8 = 128;
/// The bit in which images and the numbers of the directory differ: small integers are short.
const IMAGE_SIGN: u128 = 1 << 127;

const _: () = assert!(HEADER_BYTES == LINE_BYTES);
