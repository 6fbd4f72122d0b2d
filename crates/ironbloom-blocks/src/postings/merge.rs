//! Postings of consecutive segments become those of one, bucket by bucket, without reading the table.
//!
//! List g of the whole is list g of the first, then list g of the second with its blocks renumbered to follow, and so
//! on: linear, without sorting. A value may have a private list in one part and share a bucket in another. Then its
//! list in the whole is its private lists and those buckets, which may name blocks of their other values (never fewer
//! blocks than it has); if together they are few, its blocks go into the bucket instead.

use super::build::Lists;
use super::elias_fano::SequenceWriter;
use super::{List, Postings};
use crate::block_set::each_bit;
use crate::params::Params;

/// Postings to be merged, and where they go.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// The postings of a segment.
    pub postings: &'a Postings,
    /// The number that their first block gets.
    pub first_block: u32,
}

impl List<'_> {
    /// Appends the blocks, moved by `first_block`.
    fn append_to(self, first_block: u32, out: &mut Vec<u32>) {
        match self {
            List::Empty => {}
            List::Sequence(list) => out.extend(list.map(|block| first_block + block)),
            List::Bitmap(words) => each_bit(words, |block| out.push(first_block + block)),
            List::Blocks(blocks) => out.extend(blocks.into_iter().map(|block| first_block + block)),
        }
    }
}

/// See [`Postings::merge`].
pub(super) fn merge(parts: &[Placed<'_>], blocks: u32, params: Params) -> Postings {
    let (cells, null_cells) = parts
        .iter()
        .map(|part| part.postings.cells())
        .fold((0, 0), |(cells, nulls), (more_cells, more_nulls)| {
            (cells + more_cells, nulls + more_nulls)
        });
    let exact = parts.iter().all(|part| part.postings.is_exact());
    let heavy = if exact { 0 } else { params.heavy(cells) };
    let entries: u64 = parts.iter().map(|part| part.postings.head.entries).sum();
    let mut writer = SequenceWriter::default();
    let mut lists = Lists::new(blocks, params.bucket_bits(), entries, &mut writer);
    let mut demoted = Vec::new();
    for key in all_private_keys(parts) {
        let list = whole_list(parts, key);
        if list.len() as u64 > heavy {
            lists.add_private(key, list.into_iter());
        } else {
            let bucket = u64::from(key >> (32 - params.bucket_bits()));
            demoted.extend(own_list(parts, key).into_iter().map(|block| (bucket, block)));
        }
    }
    add_buckets(parts, demoted, &mut lists);
    let mut nulls = Vec::new();
    for part in parts {
        part.postings.nulls().append_to(part.first_block, &mut nulls);
    }
    lists.write_all(&nulls, cells, null_cells)
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
        part.postings.list(print).append_to(part.first_block, &mut list);
    }
    list
}

/// Only the blocks of its private lists: the others are in its bucket already.
fn own_list(parts: &[Placed<'_>], print: u32) -> Vec<u32> {
    let mut list = Vec::new();
    for part in parts {
        if let Some(own) = part.postings.private_list(print) {
            own.append_to(part.first_block, &mut list);
        }
    }
    list
}

/// One part's entries in its buckets, bucket by bucket.
struct Walk<'a> {
    entries: std::iter::Peekable<super::Cursor<'a>>,
    blocks: u64,
    first_block: u32,
}

impl<'a> Walk<'a> {
    fn new(part: &Placed<'a>) -> Self {
        let head = &part.postings.head;
        let blocks = u64::from(head.blocks);
        let entries = part.postings.sequence().range(0..head.buckets() * blocks).peekable();
        Self { entries, blocks, first_block: part.first_block }
    }

    /// The next bucket that has entries.
    fn bucket(&mut self) -> Option<u64> {
        self.entries.peek().map(|&number| number / self.blocks)
    }

    fn take(&mut self, bucket: u64, out: &mut Vec<u32>) {
        let (start, end) = (bucket * self.blocks, (bucket + 1) * self.blocks);
        while let Some(number) = self.entries.next_if(|&number| number < end) {
            out.push(self.first_block + (number - start) as u32);
        }
    }
}

/// Adds every bucket: what the parts have there, and what lost its private list.
fn add_buckets(parts: &[Placed<'_>], mut demoted: Vec<(u64, u32)>, lists: &mut Lists<'_>) {
    demoted.sort_unstable();
    let mut demoted = demoted.into_iter().peekable();
    let mut walks: Vec<Walk<'_>> = parts.iter().map(Walk::new).collect();
    let mut list = Vec::new();
    loop {
        let next = walks.iter_mut().filter_map(Walk::bucket).min();
        let next = next.into_iter().chain(demoted.peek().map(|&(bucket, _)| bucket)).min();
        let Some(bucket) = next else { return };
        list.clear();
        for walk in &mut walks {
            walk.take(bucket, &mut list);
        }
        let before = list.len();
        while let Some((_, block)) = demoted.next_if(|&(to, _)| to == bucket) {
            list.push(block);
        }
        if list.len() > before {
            list.sort_unstable();
        }
        lists.add(bucket, list.iter().copied());
    }
}
