//! The fields of a filter in an RDB file, in order.
//!
//! ```text
//! MBbloom--   keys, links, options (from version 2), growth (from version 4); of each link: capacity, rate, probes,
//!             bits per key, bits, power of two (0), array, keys
//! MBbloomCF   sub-filters, buckets, keys; from version 4: removed, slots per bucket, maximum moves, expansion;
//!             of each sub-filter: its buckets (from version 4), slots
//! ```
//!
//! Version 4 is written. The server supplies the length of a string, so no number in the file decides how much memory
//! is allocated; still, every length must match the shape. RESTORE passes bytes from anywhere to the same code.
//!
//! A structurally impossible filter is refused. A wrong counter is not: it is only bookkeeping, and a server must not
//! stay down because of it. It is repaired, and the reader is told.

use super::chain::{Chain, MAX_LINKS, Scaling};
use super::cuckoo::{CuckooFilter, CuckooShape, MAX_SUB_FILTERS, SubFilter};
use super::error::DecodeError;
use super::fields::{FieldReader, FieldWriter};
use super::link::{Link, LinkShape};

/// The version that is written.
pub const VERSION: u32 = 4;

/// First versions that have these fields.
const OPTIONS_SINCE: u32 = 2;
const GROWTH_SINCE: u32 = 4;
const CUCKOO_SHAPE_SINCE: u32 = 4;

/// Values that version 3 of a cuckoo filter does not record, because they were fixed.
const OLD_BUCKET_SIZE: u64 = 2;
const OLD_MAX_ITERATIONS: u64 = 20;
const OLD_EXPANSION: u64 = 1;

/// Writes a Bloom filter.
pub fn save_chain(chain: &Chain, to: &mut impl FieldWriter) {
    let (options, growth) = chain.scaling().encode();
    to.unsigned(chain.len());
    to.unsigned(chain.links().len() as u64);
    to.unsigned(u64::from(options));
    to.unsigned(u64::from(growth));
    for link in chain.links() {
        let shape = link.shape();
        to.unsigned(shape.capacity);
        to.double(shape.rate);
        to.unsigned(u64::from(shape.probes));
        to.double(shape.bits_per_key);
        to.unsigned(shape.bits);
        to.unsigned(0);
        to.string(link.array());
        to.unsigned(link.len());
    }
}

/// Reads a Bloom filter.
pub fn load_chain(from: &mut impl FieldReader, version: u32) -> Result<Chain, DecodeError> {
    check_version(version)?;
    if version < OPTIONS_SINCE {
        return Err(DecodeError::Unsupported { what: "filters with hashes of 32 bits" });
    }
    let len = from.unsigned()?;
    let count = from.unsigned()?;
    let options = from.unsigned()?;
    let growth = if version < GROWTH_SINCE { 2 } else { from.unsigned()? };
    let scaling = Scaling::decode(options, growth)?;
    DecodeError::unless((1..=MAX_LINKS).contains(&count), "number of sub-filters")?;
    let links = (0..count).map(|_| load_link(from)).collect::<Result<_, _>>()?;
    let chain = Chain::from_links(scaling, links)?;
    if chain.len() != len {
        let counted = chain.len();
        from.note(&format!(
            "it says {len} keys, its sub-filters have {counted}: taken as {counted}"
        ));
    }
    Ok(chain)
}

fn load_link(from: &mut impl FieldReader) -> Result<Link, DecodeError> {
    let capacity = from.unsigned()?;
    let rate = from.double()?;
    let probes = u32::try_from(from.unsigned()?)
        .map_err(|_| DecodeError::Field { what: "number of probes" })?;
    let bits_per_key = from.double()?;
    let bits = from.unsigned()?;
    DecodeError::unless(from.unsigned()? == 0, "power of two")?;
    let shape = LinkShape { capacity, rate, bits_per_key, probes, bits }.checked()?;
    let array = from.string()?;
    let len = from.unsigned()?;
    if len > capacity {
        from.note(&format!("a sub-filter for {capacity} keys says it has {len}: taken as full"));
    }
    Link::from_parts(shape, array, len.min(capacity))
}

/// Writes a cuckoo filter.
pub fn save_cuckoo(filter: &CuckooFilter, to: &mut impl FieldWriter) {
    let shape = filter.shape();
    to.unsigned(filter.sub_filters() as u64);
    to.unsigned(shape.buckets());
    to.unsigned(filter.len());
    to.unsigned(filter.removed());
    to.unsigned(u64::from(shape.bucket_size()));
    to.unsigned(u64::from(shape.max_iterations()));
    to.unsigned(u64::from(shape.expansion()));
    for table in &filter.sub_filters {
        to.unsigned(table.buckets());
        to.string(table.slots());
    }
}

/// Reads a cuckoo filter.
pub fn load_cuckoo(from: &mut impl FieldReader, version: u32) -> Result<CuckooFilter, DecodeError> {
    check_version(version)?;
    let (count, buckets, len) = (from.unsigned()?, from.unsigned()?, from.unsigned()?);
    let is_told = version >= CUCKOO_SHAPE_SINCE;
    let mut or = |default| if is_told { from.unsigned() } else { Ok(default) };
    let removed = or(0)?;
    let (bucket_size, max_iterations, expansion) =
        (or(OLD_BUCKET_SIZE)?, or(OLD_MAX_ITERATIONS)?, or(OLD_EXPANSION)?);
    let shape = CuckooShape::from_numbers(buckets, bucket_size, max_iterations, expansion)?;
    DecodeError::unless((1..=MAX_SUB_FILTERS).contains(&count), "number of sub-filters")?;
    let mut tables = Vec::new();
    for i in 0..count as usize {
        let planned = shape.slots_of(i).ok_or(DecodeError::Field { what: "expansion" })?;
        if is_told {
            let buckets = Some(from.unsigned()?);
            DecodeError::unless(buckets == shape.buckets_of(i), "number of buckets")?;
        }
        let slots = from.string()?;
        DecodeError::unless(slots.len() as u64 == planned, "number of slots")?;
        tables.push(SubFilter::from_slots(shape.bucket_size(), slots));
    }
    let filter = CuckooFilter::from_parts(shape, tables, len, removed)?;
    if len > filter.slot_bytes() {
        // An incomplete LOADCHUNK can cause this, and replicas must have the same number: compaction depends on it.
        let slots = filter.slot_bytes();
        from.note(&format!("it says {len} keys in {slots} slots: taken as an estimate"));
    }
    Ok(filter)
}

fn check_version(version: u32) -> Result<(), DecodeError> {
    if version > VERSION {
        return Err(DecodeError::Unsupported { what: "files of a newer version" });
    }
    Ok(())
}
