//! Merges postings of consecutive segments into one, bucket by bucket, without reading the table.
//!
//! List g of the result is list g of the first, then list g of the second with its blocks renumbered to follow, and so
//! on: linear, without sorting. Blocks can be left out. A value may have a private list in one part and share a bucket
//! in another. Its list in the result is then the union of its private lists and those buckets, which may name blocks
//! of other values (never fewer blocks than it has); if the union is short, its blocks go into the bucket instead. If a
//! part has fewer buckets than the others, so does the result, and several lists of the others become one.

use std::ops::Range;

use super::build::{Lists, write_all};
use super::elias_fano::{PartMemory, SequenceWriter, Shape};
use super::{List, Postings};
use crate::block_set::each_bit;
use crate::params::{Params, heavy};

/// Consecutive blocks and the new number of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Their numbers in the segment.
    pub blocks: Range<u32>,
    /// Number of the first in the result.
    pub to: u32,
}

/// Postings to be merged, and the destinations of their blocks.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// The postings of a segment.
    pub postings: &'a Postings,
    /// Moves, ascending both before and after. Blocks in none of them are left out.
    pub moves: &'a [Move],
}

impl Placed<'_> {
    /// Returns the number of a block in the result; `None` if it is left out.
    #[inline]
    fn place(&self, block: u32) -> Option<u32> {
        let found = match self.moves {
            [only] => only,
            moves => {
                &moves[moves.partition_point(|found| found.blocks.start <= block).checked_sub(1)?]
            }
        };
        found.blocks.contains(&block).then(|| found.to + (block - found.blocks.start))
    }

    /// Appends the blocks of a list with their numbers in the result.
    fn append(&self, list: List<'_>, out: &mut Vec<u32>) {
        let push = |block| out.extend(self.place(block));
        match list {
            List::Empty => {}
            List::Sequence(list) => list.for_each(push),
            List::Bitmap(words) => each_bit(words, push),
            List::Blocks(blocks) => blocks.into_iter().for_each(push),
        }
    }

    /// Estimates how many of `cells` cells, spread over all blocks, are in blocks that are kept.
    fn kept(&self, cells: u64) -> u64 {
        let all = u64::from(self.postings.head.blocks).max(1);
        let kept: u64 = self.moves.iter().map(|kept| kept.blocks.len() as u64).sum();
        (u128::from(cells) * u128::from(kept) / u128::from(all)) as u64
    }
}

/// See [`Postings::merge`].
pub(super) fn merge(parts: &[Placed<'_>], blocks: u32, params: Params) -> Postings {
    let sum = |count: fn(&Postings) -> u64| {
        parts.iter().map(|part| part.kept(count(part.postings))).sum::<u64>()
    };
    let (cells, null_cells) = (sum(|part| part.cells().0), sum(|part| part.cells().1));
    let exact = parts.iter().all(|part| part.postings.is_exact());
    let bits = parts.iter().filter_map(|part| part.postings.head.bucket_bits).min();
    let bits = bits
        .unwrap_or_else(|| params.bucket_bits(u64::from(blocks) * u64::from(params.block_rows())));
    let heavy = if exact { 0 } else { heavy(cells, bits) };
    let entries: u64 = parts.iter().map(|part| part.postings.head.entries).sum();
    let guess = Shape::new(entries, u64::from(blocks) << bits);
    let mut lists =
        Lists::new(blocks, SequenceWriter::new(guess, 0, entries, PartMemory::default()));
    let mut demoted = Vec::new();
    for key in all_private_keys(parts) {
        let list = whole_list(parts, key);
        if list.is_empty() {
            continue;
        }
        if list.len() as u64 > heavy {
            lists.add_private(key, list.into_iter());
        } else {
            let bucket = u64::from(key >> (32 - bits));
            demoted.extend(own_list(parts, key).into_iter().map(|block| (bucket, block)));
        }
    }
    add_buckets(parts, bits, demoted, &mut lists);
    let mut nulls = Vec::new();
    for part in parts {
        part.append(part.postings.nulls(), &mut nulls);
    }
    write_all(vec![lists], bits, &nulls, cells, null_cells).0
}

fn all_private_keys(parts: &[Placed<'_>]) -> Vec<u32> {
    let mut keys: Vec<u32> = parts.iter().flat_map(|part| part.postings.private_keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Returns all blocks that may hold this fingerprint.
fn whole_list(parts: &[Placed<'_>], print: u32) -> Vec<u32> {
    let mut list = Vec::new();
    for part in parts {
        part.append(part.postings.list(print), &mut list);
    }
    list
}

/// Returns only the blocks of its private lists: the others are already in its bucket.
fn own_list(parts: &[Placed<'_>], print: u32) -> Vec<u32> {
    let mut list = Vec::new();
    for part in parts {
        if let Some(own) = part.postings.private_list(print) {
            part.append(own, &mut list);
        }
    }
    list
}

/// A walk through the bucket entries of one part.
struct Walk<'a> {
    part: Placed<'a>,
    entries: super::Cursor<'a>,
    /// The next entry.
    next: Option<u64>,
    blocks: u64,
    /// Number of its buckets that form one bucket of the result.
    in_one: u64,
}

impl<'a> Walk<'a> {
    fn new(part: &Placed<'a>, bits: u32) -> Self {
        let head = &part.postings.head;
        let blocks = u64::from(head.blocks);
        let mut entries = part.postings.sequence().range(0..head.buckets() * blocks);
        let in_one = head.bucket_bits.map_or(1, |own| 1 << (own - bits));
        let next = entries.next();
        Self { part: *part, entries, next, blocks, in_one }
    }

    /// Appends the entries before bucket `end` of the result: bucket, counted from `first`, and block.
    fn take(&mut self, first: u64, end: u64, out: &mut Vec<(u32, u32)>) {
        let end = (end * self.in_one).saturating_mul(self.blocks);
        let mut bucket = first * self.in_one;
        let mut start = bucket * self.blocks;
        while let Some(number) = self.next.filter(|&number| number < end) {
            // Usually the same bucket or the next: a division would take longer.
            if number - start >= self.blocks {
                bucket = number / self.blocks;
                start = bucket * self.blocks;
            }
            if let Some(block) = self.part.place((number - start) as u32) {
                out.push(((bucket / self.in_one - first) as u32, block));
            }
            self.next = self.entries.next();
        }
    }
}

/// Number of entries sorted at a time.
const CHUNK_ENTRIES: u64 = 1 << 18;

/// Adds every bucket: the entries of the parts, and values that lost their private lists.
///
/// Works on some buckets at a time: the entries of one part after the other are distributed to their buckets in that
/// order, so the work does not grow with the number of parts.
fn add_buckets(parts: &[Placed<'_>], bits: u32, demoted: Vec<(u64, u32)>, lists: &mut Lists) {
    let mut demoted = demoted;
    demoted.sort_unstable();
    let mut demoted = demoted.into_iter().peekable();
    let mut walks: Vec<Walk<'_>> = parts.iter().map(|part| Walk::new(part, bits)).collect();
    let is_in_order = walks.iter().all(|walk| walk.in_one == 1);
    let entries: u64 = parts.iter().map(|part| part.postings.head.entries).sum();
    let chunks = entries.div_ceil(CHUNK_ENTRIES).clamp(1, 1 << bits).next_power_of_two();
    let chunk = (1 << bits) / chunks;
    let (mut found, mut sorted, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..1 << bits).step_by(chunk as usize) {
        found.clear();
        for walk in &mut walks {
            walk.take(first, first + chunk, &mut found);
        }
        let before = found.len();
        while let Some((bucket, block)) = demoted.next_if(|&(to, _)| to < first + chunk) {
            found.push(((bucket - first) as u32, block));
        }
        let is_in_order = is_in_order && found.len() == before;
        distribute(&found, chunk as usize, &mut sorted, &mut ends);
        let mut start = 0;
        for (bucket, &end) in (first..).zip(&ends) {
            let list = &mut sorted[start..end as usize];
            if !is_in_order {
                list.sort_unstable();
            }
            if !list.is_empty() {
                lists.add(bucket, list.iter().copied());
            }
            start = end as usize;
        }
    }
}

/// Gathers the blocks of each bucket in the order in which they were found, and records where each bucket ends.
fn distribute(found: &[(u32, u32)], buckets: usize, sorted: &mut Vec<u32>, ends: &mut Vec<u32>) {
    ends.clear();
    ends.resize(buckets, 0);
    for &(bucket, _) in found {
        ends[bucket as usize] += 1;
    }
    let mut start = 0;
    for end in &mut *ends {
        start += std::mem::replace(end, start);
    }
    sorted.clear();
    sorted.resize(found.len(), 0);
    for &(bucket, block) in found {
        let end = &mut ends[bucket as usize];
        sorted[*end as usize] = block;
        *end += 1;
    }
}
