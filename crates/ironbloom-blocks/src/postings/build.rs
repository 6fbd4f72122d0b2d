//! Builds postings from sorted cells.

use super::elias_fano::{PartMemory, SequenceWriter, Shape};
use super::private_lists::{PrivateList, PrivateLists};
use super::{Head, Nulls, Postings, put_key};
use crate::cells::{Buckets, CELL_PARTS, Entry, Partition, SealedCells, first_bucket};
use crate::params::heavy;
use crate::zeros;

/// An encoded part of a column that is being sealed: the lists of some buckets.
pub struct EncodedPart(Lists);

impl EncodedPart {
    /// Encodes part `part` (of [`CELL_PARTS`]) of a column of `blocks` blocks. Parts are independent, so threads can
    /// share the work. The memory may come from a part of another column.
    pub fn new(
        cells: &SealedCells,
        part: usize,
        blocks: u32,
        bucket_bits: u32,
        memory: PartMemory,
    ) -> Self {
        let heavy = heavy(cells.len(), bucket_bits);
        let guess = Shape::new(cells.len(), u64::from(blocks) << bucket_bits);
        let first = first_bucket(part, bucket_bits) * u64::from(blocks);
        let writer = SequenceWriter::new(guess, first, cells.part_len(part), memory);
        let mut lists = Lists::new(blocks, writer);
        cells.each_bucket(part, bucket_bits, heavy, |partition, buckets| match buckets {
            Buckets::Many(entries) => {
                let blocks = u64::from(blocks);
                let number = move |&entry: &Entry| {
                    partition.bucket(entry) * blocks + u64::from(entry.block())
                };
                lists.writer.extend(distinct(entries.iter().map(number)));
            }
            Buckets::Crowded(entries) => split_bucket(partition, entries, heavy, &mut lists),
        });
        Self(lists)
    }

    /// Memory in use, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.0.writer.held_bytes() + self.0.private.held_bytes()
    }
}

/// The rest of a column, besides its parts.
pub struct Remainder {
    null_blocks: Vec<u32>,
    cells: u64,
    nulls: u64,
}

impl Remainder {
    /// Takes what joining needs from these cells, which can be dropped when all parts are encoded.
    pub fn new(cells: &SealedCells) -> Self {
        let null_blocks = cells.null_blocks().to_vec();
        Self { null_blocks, cells: cells.len(), nulls: cells.nulls() }
    }
}

/// Joins all parts of a column and returns their memory.
pub(super) fn join(
    parts: Vec<EncodedPart>,
    rest: &Remainder,
    bucket_bits: u32,
) -> (Postings, Vec<PartMemory>) {
    let parts: Vec<Lists> = parts.into_iter().map(|EncodedPart(lists)| lists).collect();
    write_all(parts, bucket_bits, &rest.null_blocks, rest.cells, rest.nulls)
}

/// Seals a column of `blocks` blocks.
pub(super) fn build(cells: &SealedCells, blocks: u32, bucket_bits: u32) -> Postings {
    let part = |part| EncodedPart::new(cells, part, blocks, bucket_bits, PartMemory::default());
    join((0..CELL_PARTS).map(part).collect(), &Remainder::new(cells), bucket_bits).0
}

/// Splits a bucket with many cells: values with more than `heavy` cells get private lists.
fn split_bucket(partition: Partition, entries: &[Entry], heavy: u64, lists: &mut Lists) {
    let keys = heavy_keys(partition, entries, heavy);
    let others = entries.iter().filter(|&&entry| !keys.contains(&partition.print(entry)));
    lists.add(partition.bucket(entries[0]), others.map(|entry| entry.block()));
    for &key in &keys {
        let own = entries.iter().filter(|&&entry| partition.print(entry) == key);
        lists.add_private(key, own.map(|entry| entry.block()));
    }
}

/// Returns the fingerprints with more than `heavy` cells, ascending.
fn heavy_keys(partition: Partition, entries: &[Entry], heavy: u64) -> Vec<u32> {
    let mut prints: Vec<u32> = entries.iter().map(|&entry| partition.print(entry)).collect();
    prints.sort_unstable();
    let runs = prints.chunk_by(|a, b| a == b);
    runs.filter(|run| run.len() as u64 > heavy).map(|run| run[0]).collect()
}

/// Drops consecutive duplicates.
#[inline]
fn distinct<T: Copy + PartialEq>(numbers: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut last = None;
    numbers.filter(move |&number| last.replace(number) != Some(number))
}

/// Lists of blocks to be written, of all buckets or of consecutive ones.
pub(super) struct Lists {
    blocks: u32,
    /// Entries of the buckets.
    writer: SequenceWriter,
    private: PrivateLists,
}

impl Lists {
    pub(super) fn new(blocks: u32, writer: SequenceWriter) -> Self {
        Self { blocks, writer, private: PrivateLists::default() }
    }

    /// Adds the blocks of a bucket, ascending, possibly repeated. Buckets must come in order.
    pub(super) fn add(&mut self, bucket: u64, blocks: impl Iterator<Item = u32>) {
        let first = bucket * u64::from(self.blocks);
        self.writer.extend(distinct(blocks).map(|block| first + u64::from(block)));
    }

    /// Adds the blocks of one fingerprint, ascending, possibly repeated. Keys must ascend.
    pub(super) fn add_private(&mut self, key: u32, blocks: impl Iterator<Item = u32>) {
        self.private.add(key, distinct(blocks));
    }

    fn private_lists(&self) -> impl Iterator<Item = PrivateList<'_>> {
        self.private.iter()
    }
}

/// Writes the lists of all buckets, in order, and returns their memory. `null_blocks` are ascending and distinct.
pub(super) fn write_all(
    parts: Vec<Lists>,
    bucket_bits: u32,
    null_blocks: &[u32],
    cells: u64,
    null_cells: u64,
) -> (Postings, Vec<PartMemory>) {
    let density = Density::new(&parts, bucket_bits, null_blocks);
    let entries: u64 = parts.iter().map(|part| part.writer.len()).sum();
    let mut head = Head {
        blocks: parts[0].blocks,
        bucket_bits: (entries > 0).then_some(bucket_bits),
        entries,
        private: 0,
        dense: 0,
        nulls: density.nulls(null_blocks),
        cells,
        null_cells,
    };
    for list in parts.iter().flat_map(Lists::private_lists) {
        if density.is_dense(list.len) {
            head.dense += 1;
        } else {
            head.private += 1;
            head.entries += u64::from(list.len);
        }
    }
    if head.nulls == Nulls::List {
        head.entries += null_blocks.len() as u64;
    }
    let mut words = zeros(head.words());
    let memory = write(parts, head, &density, null_blocks, &mut words);
    (Postings::new(head, words), memory)
}

fn write(
    parts: Vec<Lists>,
    head: Head,
    density: &Density,
    null_blocks: &[u32],
    words: &mut [u64],
) -> Vec<PartMemory> {
    head.write(words);
    // The lists of the buckets are followed by those of single values, then the nulls.
    let shape = head.shape();
    let first = head.buckets() * u64::from(head.blocks);
    let mut last = SequenceWriter::new(shape, first, 0, PartMemory::default());
    let mut number = head.buckets();
    let mut add = |list: &mut dyn Iterator<Item = u32>| {
        let first = number * u64::from(head.blocks);
        last.extend(list.map(|block| first + u64::from(block)));
        number += 1;
    };
    let (mut sparse, mut dense) = (0, 0);
    for list in parts.iter().flat_map(Lists::private_lists) {
        if density.is_dense(list.len) {
            put_key(&mut words[head.dense_words()], dense, list.key);
            set_bits(&mut words[head.bitmap(dense)], list.blocks());
            dense += 1;
        } else {
            put_key(&mut words[head.private_words()], sparse, list.key);
            add(&mut list.blocks());
            sparse += 1;
        }
    }
    let mut nulls = null_blocks.iter().copied();
    match head.nulls {
        Nulls::None => {}
        Nulls::Bitmap => set_bits(&mut words[head.bitmap(dense)], nulls),
        Nulls::List => add(&mut nulls),
    }
    let writers = parts.into_iter().map(|part| part.writer).chain([last]).collect();
    SequenceWriter::write(writers, shape, &mut words[head.sequence()])
}

fn set_bits(bitmap: &mut [u64], blocks: impl Iterator<Item = u32>) {
    for block in blocks {
        bitmap[(block / 64) as usize] |= 1 << (block % 64);
    }
}

/// Decides which lists are better stored as bitmaps.
struct Density {
    blocks: u64,
    /// Bits per entry in the sequence, if everything were stored there.
    entry_bits: u64,
}

impl Density {
    fn new(parts: &[Lists], bucket_bits: u32, null_blocks: &[u32]) -> Self {
        let sum = |count: fn(&Lists) -> u64| parts.iter().map(count).sum::<u64>();
        let in_buckets: u64 = parts.iter().map(|part| part.writer.len()).sum();
        let buckets = if in_buckets == 0 { 0 } else { 1u64 << bucket_bits };
        let entries = in_buckets + sum(|part| part.private.entries) + null_blocks.len() as u64;
        let all = buckets
            + sum(|part| part.private.lists.len() as u64)
            + u64::from(!null_blocks.is_empty());
        let blocks = u64::from(parts[0].blocks);
        let shape = Shape::new(entries, all * blocks);
        Self { blocks, entry_bits: u64::from(shape.low_bits()) + 2 }
    }

    /// Returns true for a list with this many blocks if a bitmap is better.
    fn is_dense(&self, len: u32) -> bool {
        u64::from(len) * self.entry_bits > self.blocks
    }

    fn nulls(&self, null_blocks: &[u32]) -> Nulls {
        match null_blocks {
            [] => Nulls::None,
            list if self.is_dense(list.len() as u32) => Nulls::Bitmap,
            _ => Nulls::List,
        }
    }
}
