//! Postings of consecutive segments become those of one, bucket by bucket, without reading the table.
//!
//! List g of the whole is list g of the first, then list g of the second with its blocks renumbered to follow, and so
//! on: linear, without sorting. Blocks can be left out on the way. A value may have a private list in one part and share a bucket in another. Then its
//! list in the whole is its private lists and those buckets, which may name blocks of their other values (never fewer
//! blocks than it has); if together they are few, its blocks go into the bucket instead. If a part has fewer buckets than
//! the others, then so has the whole, and several lists of the others become one.

use std::ops::Range;

use super::build::{Lists, write_all};
use super::elias_fano::{PartMemory, SequenceWriter, Shape};
use super::{List, Postings};
use crate::block_set::each_bit;
use crate::params::{Params, heavy};

/// Consecutive blocks, and the number that the first of them gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Their numbers in the segment.
    pub blocks: Range<u32>,
    /// The number of the first in the whole.
    pub to: u32,
}

/// Postings to be merged, and where their blocks go.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// The postings of a segment.
    pub postings: &'a Postings,
    /// Ascending, before and after. Blocks in none of them are left out.
    pub moves: &'a [Move],
}

impl Placed<'_> {
    /// The number of a block in the whole; `None` if it is left out.
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

    /// Appends the blocks of a list, as they are numbered in the whole.
    fn append(&self, list: List<'_>, out: &mut Vec<u32>) {
        let push = |block| out.extend(self.place(block));
        match list {
            List::Empty => {}
            List::Sequence(list) => list.for_each(push),
            List::Bitmap(words) => each_bit(words, push),
            List::Blocks(blocks) => blocks.into_iter().for_each(push),
        }
    }

    /// The share of the blocks that is kept, of a number of cells that are spread over all.
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

/// All blocks that may hold this fingerprint.
fn whole_list(parts: &[Placed<'_>], print: u32) -> Vec<u32> {
    let mut list = Vec::new();
    for part in parts {
        part.append(part.postings.list(print), &mut list);
    }
    list
}

/// Only the blocks of its private lists: the others are in its bucket already.
fn own_list(parts: &[Placed<'_>], print: u32) -> Vec<u32> {
    let mut list = Vec::new();
    for part in parts {
        if let Some(own) = part.postings.private_list(print) {
            part.append(own, &mut list);
        }
    }
    list
}

/// One part's entries in its buckets.
struct Walk<'a> {
    part: Placed<'a>,
    entries: super::Cursor<'a>,
    /// The next entry.
    next: Option<u64>,
    blocks: u64,
    /// Buckets here that are one in the whole.
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

    /// Appends the entries before a bucket of the whole: bucket, counted from `first`, and block.
    fn take(&mut self, first: u64, end: u64, out: &mut Vec<(u32, u32)>) {
        let end = (end * self.in_one).saturating_mul(self.blocks);
        let mut bucket = first * self.in_one;
        let mut start = bucket * self.blocks;
        while let Some(number) = self.next.filter(|&number| number < end) {
            // Usually the same bucket or the next: a division takes longer.
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

/// Entries that are sorted at a time.
const CHUNK_ENTRIES: u64 = 1 << 18;

/// Adds every bucket: what the parts have there, and what lost its private list.
///
/// Some buckets at a time: the entries of one part after the other, distributed to their buckets in that order. So the work does not grow
/// with the number of parts.
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

/// Brings the blocks of each bucket together, in the order in which they were found, and notes where those of each bucket end.
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
