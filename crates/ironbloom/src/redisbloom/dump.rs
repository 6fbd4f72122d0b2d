//! SCANDUMP and LOADCHUNK: a filter as a header and pieces of its arrays.
//!
//! ```text
//! iterator 0              the header                      next iterator: 1
//! iterator 1 + offset     a piece of the concatenated      next iterator: 1 + offset + its length
//!                         arrays
//! at the end              nothing                         next iterator: 0
//!
//! LOADCHUNK takes the pairs (next iterator, bytes) unchanged: 1 is the header, any other says where its piece *ends*.
//!
//! Bloom header, little endian, nothing between the fields         cuckoo header
//!   0  u64 keys in all                                              0  u64 keys
//!   8  u32 number of links                                          8  u64 buckets of the first sub-filter
//!  12  u32 options                                                 16  u64 keys removed
//!  16  u32 growth                                                  24  u64 number of sub-filters
//!  20  of each link, 53 bytes:                                     32  u16 slots per bucket
//!      u64 bytes   u64 bits   u64 keys   f64 rate                  34  u16 maximum moves of an insert
//!      f64 bits per key   u32 probes   u64 capacity   u8 0         36  u16 expansion
//! ```
//!
//! A piece never crosses sub-filters and has at most 1 MiB, where RedisBloom has 16: the server is blocked while it is
//! copied. Pieces of any length are accepted. A header may say anything: each array is checked against the memory limit
//! before it is allocated, and a Bloom header against its own length before it is read.

use super::chain::{Chain, MAX_LINKS, Scaling};
use super::cuckoo::{CuckooFilter, CuckooShape, MAX_SUB_FILTERS};
use super::error::{ChunkError, CreateError, DecodeError};
use super::limits::MemoryLimit;
use super::link::{Link, LinkShape};

/// Maximum size of a piece in bytes.
pub const MAX_CHUNK: usize = 1 << 20;

const CHAIN_HEADER: usize = 20;
const LINK_HEADER: usize = 53;

/// Bytes of a cuckoo filter's header.
pub const CUCKOO_HEADER: usize = 38;

/// The header of a Bloom filter.
pub fn chain_header(chain: &Chain) -> Vec<u8> {
    let links: Vec<_> = chain.links().iter().map(|link| (link.shape(), link.len())).collect();
    encode_chain(chain.scaling(), &links)
}

/// The header of a new Bloom filter, without creating the filter: that of [`Chain::new`].
pub fn new_chain_header(
    capacity: u64,
    rate: f64,
    scaling: Scaling,
) -> Result<Vec<u8>, CreateError> {
    Ok(encode_chain(scaling, &[(Chain::first_shape(capacity, rate, scaling)?, 0)]))
}

fn encode_chain(scaling: Scaling, links: &[(LinkShape, u64)]) -> Vec<u8> {
    let (options, growth) = scaling.encode();
    let mut header = Vec::with_capacity(CHAIN_HEADER + LINK_HEADER * links.len());
    header.extend(links.iter().map(|(_, len)| len).sum::<u64>().to_le_bytes());
    header.extend((links.len() as u32).to_le_bytes());
    header.extend(options.to_le_bytes());
    header.extend(growth.to_le_bytes());
    for (shape, len) in links {
        header.extend(shape.bytes().to_le_bytes());
        header.extend(shape.bits.to_le_bytes());
        header.extend(len.to_le_bytes());
        header.extend(shape.rate.to_le_bytes());
        header.extend(shape.bits_per_key.to_le_bytes());
        header.extend(shape.probes.to_le_bytes());
        header.extend(shape.capacity.to_le_bytes());
        header.push(0);
    }
    header
}

/// Creates an empty Bloom filter for the pieces that follow this header.
pub fn chain_from_header(header: &[u8], limit: MemoryLimit) -> Result<Chain, DecodeError> {
    let mut fields = Fields(header);
    let len = fields.u64()?;
    let count = u64::from(fields.u32()?);
    let scaling = Scaling::decode(u64::from(fields.u32()?), u64::from(fields.u32()?))?;
    let is_long_enough = fields.0.len() as u64 == count * LINK_HEADER as u64;
    if !is_long_enough {
        return Err(DecodeError::Length);
    }
    DecodeError::unless(count <= MAX_LINKS, "number of sub-filters")?;
    let shapes: Vec<_> = (0..count).map(|_| fields.link()).collect::<Result<_, _>>()?;
    let mut links = Vec::with_capacity(shapes.len());
    let mut bytes = 0;
    for (shape, len) in shapes {
        let mut link = Link::new(shape, bytes, limit)?;
        link.set_len(len)?;
        links.push(link);
        bytes += shape.bytes();
    }
    let chain = Chain::from_links(scaling, links)?;
    // As in RedisBloom: a header is an external request, and may be refused.
    DecodeError::unless(chain.len() == len, "number of keys")?;
    Ok(chain)
}

/// The header of a cuckoo filter.
pub fn cuckoo_header(filter: &CuckooFilter) -> Vec<u8> {
    let shape = filter.shape();
    let mut header = Vec::with_capacity(CUCKOO_HEADER);
    header.extend(filter.len().to_le_bytes());
    header.extend(shape.buckets().to_le_bytes());
    header.extend(filter.removed().to_le_bytes());
    header.extend((filter.sub_filters() as u64).to_le_bytes());
    header.extend(shape.bucket_size().to_le_bytes());
    header.extend(shape.max_iterations().to_le_bytes());
    header.extend(shape.expansion().to_le_bytes());
    header
}

/// Creates an empty cuckoo filter for the pieces that follow this header.
pub fn cuckoo_from_header(header: &[u8], limit: MemoryLimit) -> Result<CuckooFilter, DecodeError> {
    let mut fields = Fields(header);
    let (len, buckets, removed, count) =
        (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
    let (bucket_size, max_iterations, expansion) = (fields.u16()?, fields.u16()?, fields.u16()?);
    fields.end()?;
    let shape = CuckooShape::from_numbers(
        buckets,
        u64::from(bucket_size),
        u64::from(max_iterations),
        u64::from(expansion),
    )?;
    DecodeError::unless((1..=MAX_SUB_FILTERS).contains(&count), "number of sub-filters")?;
    let filter = CuckooFilter::with_sub_filters(shape, count, limit)?;
    CuckooFilter::from_parts(shape, filter.sub_filters, len, removed)
}

/// Returns the piece of a Bloom filter at this iterator, and the next iterator. `None` at the end and outside.
pub fn chain_chunk(chain: &Chain, iterator: i64) -> Option<(i64, &[u8])> {
    chunk(chain.links().iter().map(Link::array), iterator)
}

/// Returns the piece of a cuckoo filter at this iterator, and the next iterator. `None` at the end and outside.
pub fn cuckoo_chunk(filter: &CuckooFilter, iterator: i64) -> Option<(i64, &[u8])> {
    chunk(filter.tables(), iterator)
}

/// All pieces of a Bloom filter, with the next iterators, without a search for each.
pub fn chain_chunks(chain: &Chain) -> impl Iterator<Item = (i64, &[u8])> {
    chunks(chain.links().iter().map(Link::array))
}

/// All pieces of a cuckoo filter, with the next iterators, without a search for each.
pub fn cuckoo_chunks(filter: &CuckooFilter) -> impl Iterator<Item = (i64, &[u8])> {
    chunks(filter.tables())
}

fn chunks<'a>(arrays: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = (i64, &'a [u8])> {
    arrays.flat_map(|array| array.chunks(MAX_CHUNK)).scan(1, |iterator, piece| {
        *iterator += piece.len() as i64;
        Some((*iterator, piece))
    })
}

fn chunk<'a>(arrays: impl Iterator<Item = &'a [u8]>, iterator: i64) -> Option<(i64, &'a [u8])> {
    let mut offset = u64::try_from(iterator.checked_sub(1)?).ok()?;
    for array in arrays {
        let len = array.len() as u64;
        if offset < len {
            let rest = &array[offset as usize..];
            let piece = &rest[..rest.len().min(MAX_CHUNK)];
            return Some((iterator.checked_add(piece.len() as i64)?, piece));
        }
        offset -= len;
    }
    None
}

/// Writes a piece of a Bloom filter to its place.
pub fn load_chain_chunk(chain: &mut Chain, iterator: i64, piece: &[u8]) -> Result<(), ChunkError> {
    let (i, start) = locate(chain.links().iter().map(Link::array), iterator, piece)?;
    chain.links_mut()[i].overwrite(start, piece);
    Ok(())
}

/// Writes a piece of a cuckoo filter to its place.
pub fn load_cuckoo_chunk(
    filter: &mut CuckooFilter,
    iterator: i64,
    piece: &[u8],
) -> Result<(), ChunkError> {
    let (i, start) = locate(filter.tables(), iterator, piece)?;
    filter.sub_filters[i].overwrite(start, piece);
    Ok(())
}

/// Finds the array that a piece belongs to, and its offset there.
fn locate<'a>(
    arrays: impl Iterator<Item = &'a [u8]>,
    iterator: i64,
    piece: &[u8],
) -> Result<(usize, usize), ChunkError> {
    let end = iterator.checked_sub(1).and_then(|end| u64::try_from(end).ok());
    let start = end.and_then(|end| end.checked_sub(piece.len() as u64));
    let mut offset = start.ok_or(ChunkError::NoSuchPlace)?;
    for (i, array) in arrays.enumerate() {
        let len = array.len() as u64;
        if offset < len {
            let is_inside = piece.len() as u64 <= len - offset;
            return if is_inside { Ok((i, offset as usize)) } else { Err(ChunkError::TooLong) };
        }
        offset -= len;
    }
    Err(ChunkError::NoSuchPlace)
}

/// The rest of a header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64, DecodeError> {
        self.take().map(f64::from_le_bytes)
    }

    /// Reads the shape of a link and its number of keys.
    fn link(&mut self) -> Result<(LinkShape, u64), DecodeError> {
        let (bytes, bits, len) = (self.u64()?, self.u64()?, self.u64()?);
        let (rate, bits_per_key) = (self.f64()?, self.f64()?);
        let (probes, capacity) = (self.u32()?, self.u64()?);
        let [power] = self.take()?;
        DecodeError::unless(power == 0, "power of two")?;
        DecodeError::unless(bits / 8 == bytes, "number of bytes")?;
        let shape = LinkShape { capacity, rate, bits_per_key, probes, bits };
        Ok((shape.checked()?, len))
    }

    fn end(&self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Length) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stats::visits;
    use super::*;

    /// The maximum number of sub-filters that a header of 38 bytes can announce.
    #[test]
    fn a_header_of_many_sub_filters_takes_as_many_steps() {
        let most = MAX_SUB_FILTERS;
        let header = [
            &0u64.to_le_bytes()[..],
            &1u64.to_le_bytes(),
            &0u64.to_le_bytes(),
            &most.to_le_bytes(),
            &1u16.to_le_bytes(),
            &1u16.to_le_bytes(),
            &1u16.to_le_bytes(),
        ]
        .concat();
        let (steps, filter) = visits::of(|| cuckoo_from_header(&header, MemoryLimit::NONE));
        let filter = filter.unwrap();
        assert_eq!(filter.sub_filters() as u64, most);
        assert!(steps <= most, "{steps} steps to make {most} sub-filters");
        let (steps, pieces) = visits::of(|| cuckoo_chunks(&filter).count() as u64);
        assert_eq!(pieces, most);
        assert!(steps <= most, "{steps} steps for {most} pieces");
        let (steps, is_blank) = visits::of(|| filter.is_blank());
        assert!(is_blank && steps <= most, "{steps} steps to see that it is empty");
    }

    /// One walk over all pieces returns the same as a search for each.
    #[test]
    fn pieces_are_those_that_iterators_find() {
        let shape = CuckooShape::new(1 << 21, 2, 20, 2).unwrap();
        let mut filter = CuckooFilter::with_sub_filters(shape, 2, MemoryLimit::NONE).unwrap();
        load_cuckoo_chunk(&mut filter, 3_000_001, &[7; 10]).unwrap();
        let all: Vec<(i64, &[u8])> = cuckoo_chunks(&filter).collect();
        let mut iterator = 1;
        for &(next, piece) in &all {
            assert_eq!(cuckoo_chunk(&filter, iterator), Some((next, piece)));
            iterator = next;
        }
        assert_eq!(cuckoo_chunk(&filter, iterator), None);
        assert_eq!(all.len(), 2 + 4);
    }
}
