//! A page of which only the wanted values have been decompressed.
//!
//! ```text
//!  page, decompressed   levels │ value │ value │ … │ value │ …        values of a fixed width, none missing:
//!                                             ▲ wanted                the place of a value follows from its number
//!  pieces               └── 0 ──┘└── 1 ──┘└── 2 ──┘└── 3 ──┘          0 for the levels and 2 are decompressed
//! ```
//!
//! What comes out is a page like any other, as long as the whole one; what was not decompressed is zero. The decoder
//! skips fixed-width values without reading them, so the caller sees only the rows it wanted.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;

use super::notes;
use super::page_header::{self, PageHeader};
use super::page_map::{DataPage, fixed_width};
use super::snappy::{self, PIECE_BYTES};
use crate::file_bytes::FileBytes;

/// The rows that are wanted of a page.
pub(super) struct Request<'a> {
    pub(super) file: &'a FileBytes,
    pub(super) chunk: &'a ColumnChunkMetaData,
    pub(super) page: &'a DataPage,
    /// Counted from the first row of the page.
    pub(super) wanted: &'a [Range<usize>],
}

/// A page that is correct where it was wanted.
pub(super) struct PartialPage {
    pub(super) page: Page,
    /// Bytes of the file that it took.
    pub(super) bytes_read: usize,
}

/// Why the page could not be built.
pub(super) enum Fault {
    /// The bytes at this place in the file are not what was indexed.
    Changed(u64),
    Io(io::Error),
}

/// A page being assembled.
struct Output {
    header: PageHeader,
    /// The first piece, which begins with the header, as it is in the file.
    first: Vec<u8>,
    bytes: Vec<u8>,
    /// The pieces that are in there.
    done: Vec<bool>,
}

impl Request<'_> {
    /// The page, or `None` if it is better to read it as a whole.
    pub(super) fn load(&self) -> Result<Option<PartialPage>, Fault> {
        let pieces = self.page.pieces.len();
        let first = self.verified(0)?;
        let Some(header) = page_header::parse(&first).filter(|header| header.is_plain_v1) else {
            return Ok(None);
        };
        if self.wanted.is_empty() || header.plain_bytes.div_ceil(PIECE_BYTES) != pieces {
            return Ok(None);
        }
        // Zeroed memory of this size comes untouched from the system: what is not written to costs nothing.
        let bytes = vec![0; header.plain_bytes];
        let mut output = Output { header, first, bytes, done: vec![false; pieces] };
        let Some(values_start) = self.values_start(&mut output)? else { return Ok(None) };
        let Some(needed) = self.needed(&header, values_start) else { return Ok(None) };
        // From half of the pieces on, it is better to decompress all of them for the cache.
        if needed.len() * 2 > pieces {
            return Ok(None);
        }
        for piece in needed {
            if !self.decompress(piece, &mut output)? {
                return Ok(None);
            }
        }
        output.done[0] = true; // its header at least has been read
        let read = (0..pieces).filter(|&piece| output.done[piece]);
        let bytes_read = read.map(|piece| self.page.piece_range(piece).len()).sum();
        let page = Page::DataPage {
            buf: Bytes::from(output.bytes),
            num_values: header.values.unwrap_or(0) as u32,
            encoding: Encoding::PLAIN,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        Ok(Some(PartialPage { page, bytes_read }))
    }

    /// The bytes of a piece, if they are those that were indexed.
    fn verified(&self, piece: usize) -> Result<Vec<u8>, Fault> {
        let range = self.page.piece_range(piece);
        let start = self.page.spot.offset + range.start as u64;
        let end = self.page.spot.offset + range.end as u64;
        let bytes = self.file.read(start..end).map_err(Fault::Io)?;
        let check = self.page.pieces[piece].check;
        if notes::checksum(&bytes) == check { Ok(bytes) } else { Err(Fault::Changed(start)) }
    }

    /// Decompresses a piece into its place, once. False if it cannot be.
    fn decompress(&self, piece: usize, output: &mut Output) -> Result<bool, Fault> {
        if output.done[piece] {
            return Ok(true);
        }
        let start = piece * PIECE_BYTES;
        let end = output.bytes.len().min(start + PIECE_BYTES);
        let target = &mut output.bytes[start..end];
        let made = if piece == 0 {
            snappy::decompress_piece(&output.first[output.header.header_bytes..], true, target)
        } else {
            snappy::decompress_piece(&self.verified(piece)?, false, target)
        };
        output.done[piece] = made.is_some();
        Ok(made.is_some())
    }

    /// Where the values start: after the levels, which say that none is missing. `None` if some are.
    fn values_start(&self, output: &mut Output) -> Result<Option<usize>, Fault> {
        let level = self.chunk.column_descr().max_def_level();
        if level == 0 {
            return Ok(Some(0));
        }
        if !self.decompress(0, output)? {
            return Ok(None);
        }
        let made = &output.bytes[..output.bytes.len().min(PIECE_BYTES)];
        Ok(all_defined(made, level, output.header.values.unwrap_or(0)))
    }

    /// The pieces that hold the wanted values; `None` if the length of the page does not match its values.
    fn needed(&self, header: &PageHeader, values_start: usize) -> Option<Vec<usize>> {
        let width = fixed_width(self.chunk)?;
        let values = usize::try_from(header.values?).ok()?;
        let end = values.checked_mul(width)?.checked_add(values_start)?;
        let last = self.wanted.last().map_or(0, |range| range.end);
        if end != header.plain_bytes || last > values {
            return None;
        }
        let mut needed = Vec::new();
        for range in self.wanted.iter().filter(|range| !range.is_empty()) {
            let first = (values_start + range.start * width) / PIECE_BYTES;
            let last = (values_start + range.end * width - 1) / PIECE_BYTES;
            let next = needed.last().map_or(first, |&piece| first.max(piece + 1));
            needed.extend(next..=last);
        }
        Some(needed)
    }
}

/// The end of the levels, if all of them are `level`.
///
/// Four bytes of length, then runs: a varint with the length of the run doubled, and the level that is repeated. (An odd varint
/// begins levels packed bit by bit, which writers use where some are missing.)
fn all_defined(bytes: &[u8], level: i16, values: u64) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let mut runs = rest.get(..length)?;
    let mut left = values;
    while left > 0 {
        let mut run = 0u64;
        let mut shift = 0;
        loop {
            let (&byte, after) = runs.split_first()?;
            runs = after;
            run |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let (&repeated, after) = runs.split_first()?;
        runs = after;
        if run & 1 == 1 || run == 0 || i16::from(repeated) != level {
            return None;
        }
        left = left.saturating_sub(run >> 1);
    }
    Some(4 + length)
}
