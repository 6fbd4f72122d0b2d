//! A RedisBloom filter, as the chunks that `BF.SCANDUMP` or `CF.SCANDUMP` returned, in our file for such chunks
//! (`.ibd`, [`dump`](crate::format::dump)). `ironbloom redis dump` writes it, and `ironbloom redis load` takes it.
//!
//! [`redisbloom::dump`](crate::redisbloom::dump) describes the chunks' contents; the module uses the same code. Pieces
//! must come in order and be complete: a missing one would make keys "absent". Filters with 32-bit hashes, or with
//! power-of-two sizes, from before RedisBloom 2, are refused.

use super::{ForeignError, Format, Problem};
use crate::format::dump::{DumpError, DumpReader, DumpWriter, Family, MAGIC};
use crate::format::redis_chunks::{self, FIRST};
use crate::kinds::RedisBloom;

/// Offset of the first chunk of a dump: after the file's header and its own.
const FIRST_CHUNK: usize = 24 + 32;

/// Bytes per piece, as in the module.
const PIECE: usize = crate::redisbloom::dump::MAX_CHUNK;

fn invalid(offset: usize, what: &'static str, value: u64) -> ForeignError {
    let problem = Problem::Field { what, value };
    ForeignError { format: Format::RedisBloom, offset: offset as u64, problem }
}

/// Returns true for a dump of one filter in RedisBloom's layout.
pub(super) fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
        && bytes.get(12..16) == Some(&[0; 4])
        && bytes.get(FIRST_CHUNK..).is_some_and(|chunk| !chunk.starts_with(&redis_chunks::MAGIC))
}

pub(super) fn read(bytes: &[u8]) -> Result<RedisBloom, ForeignError> {
    let mut left = bytes;
    let broken = |left: &[u8], error: DumpError| {
        let offset = bytes.len() - left.len();
        match error {
            DumpError::CutShort => ForeignError {
                format: Format::RedisBloom,
                offset: bytes.len() as u64,
                problem: Problem::CutShort { missing: 1 },
            },
            DumpError::Checksum { chunk } => invalid(offset, "checksum of a chunk", chunk),
            _ => invalid(offset, "dump", 0),
        }
    };
    let mut dump = DumpReader::new(&mut left).map_err(|error| broken(&bytes[..0], error))?;
    if let Some(shards) = dump.shards() {
        return Err(invalid(12, "number of shards; a file for one filter has none", shards.into()));
    }
    let first = dump.next_chunk().map_err(|error| broken(bytes, error))?;
    let Some(first) = first.filter(|chunk| chunk.iterator == FIRST) else {
        return Err(invalid(24, "first chunk: the filter is empty, or its header is missing", 0));
    };
    // Arrays cannot be longer than the bytes that hold them.
    let is_cuckoo = first.family == Family::Cuckoo;
    let filter = RedisBloom::from_header(is_cuckoo, &first.bytes, bytes.len() as u64);
    let mut filter =
        filter.map_err(|_| invalid(FIRST_CHUNK, "header of a filter", first.bytes.len() as u64))?;
    let (mut offset, mut end) = (FIRST_CHUNK + first.bytes.len(), FIRST);
    while let Some(chunk) = dump.next_chunk().map_err(|error| {
        let problem = broken(bytes, error);
        ForeignError { offset: problem.offset.max(offset as u64), ..problem }
    })? {
        end += chunk.bytes.len() as i64;
        if chunk.iterator != end || chunk.family != first.family {
            return Err(invalid(offset, "order of chunks", chunk.iterator.cast_unsigned()));
        }
        let loaded = filter.load(chunk.iterator, &chunk.bytes);
        loaded.map_err(|_| invalid(offset, "chunk", chunk.iterator.cast_unsigned()))?;
        offset += 32 + chunk.bytes.len();
    }
    let missing = filter.size_in_bytes() as u64 - (end - FIRST).cast_unsigned();
    if missing > 0 {
        let problem = Problem::CutShort { missing };
        return Err(ForeignError { format: Format::RedisBloom, offset: offset as u64, problem });
    }
    dump.finish().map_err(|_| invalid(offset + 32, "bytes after the end", 0))?;
    Ok(filter)
}

pub(super) fn write(filter: &RedisBloom) -> Option<Vec<u8>> {
    let family =
        if matches!(filter, RedisBloom::Bloom(_)) { Family::Bloom } else { Family::Cuckoo };
    let mut out = Vec::new();
    let mut dump = DumpWriter::new(&mut out, None).ok()?;
    dump.chunk(family, FIRST, &filter.header()).ok()?;
    let mut end = FIRST;
    for array in filter.arrays() {
        for piece in array.chunks(PIECE) {
            end += piece.len() as i64;
            dump.chunk(family, end, piece).ok()?;
        }
    }
    dump.end_filter(family).ok()?;
    Some(out)
}
