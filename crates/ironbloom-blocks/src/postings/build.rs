//! Builds postings from sorted cells.

use super::elias_fano::{SequenceWriter, Shape};
use super::{Head, Nulls, Postings, put_key};
use crate::cells::{Buckets, Entry, Partition, SealedCells};
use crate::params::Params;
use crate::zeros;

/// Seals a column of `blocks` blocks. The writer's memory is used, and can be reused.
pub(super) fn build(
    cells: &SealedCells,
    blocks: u32,
    params: Params,
    writer: &mut SequenceWriter,
) -> Postings {
    let heavy = params.heavy(cells.len());
    let mut lists = Lists::new(blocks, params.bucket_bits(), cells.len(), writer);
    cells.each_bucket(params.bucket_bits(), heavy, |partition, buckets| match buckets {
        Buckets::Many(entries) => {
            let blocks = u64::from(blocks);
            let number =
                move |&entry: &Entry| partition.bucket(entry) * blocks + u64::from(entry.block());
            lists.writer.extend(distinct(entries.iter().map(number)));
        }
        Buckets::Crowded(entries) => split_bucket(partition, entries, heavy, &mut lists),
    });
    lists.write_all(cells.null_blocks(), cells.len(), cells.nulls())
}

/// A bucket with many cells: values that have more than `heavy` of them get private lists.
fn split_bucket(partition: Partition, entries: &[Entry], heavy: u64, lists: &mut Lists<'_>) {
    let keys = heavy_keys(partition, entries, heavy);
    let others = entries.iter().filter(|&&entry| !keys.contains(&partition.print(entry)));
    lists.add(partition.bucket(entries[0]), others.map(|entry| entry.block()));
    for &key in &keys {
        let own = entries.iter().filter(|&&entry| partition.print(entry) == key);
        lists.add_private(key, own.map(|entry| entry.block()));
    }
}

/// The fingerprints of more than `heavy` cells, ascending.
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

/// Lists of blocks to be written.
pub(super) struct Lists<'a> {
    blocks: u32,
    bucket_bits: u32,
    /// Entries of the buckets; at last, of all lists.
    writer: &'a mut SequenceWriter,
    /// Keys of private lists, ascending, and where each list ends.
    keys: Vec<(u32, usize)>,
    private: Vec<u32>,
}

impl<'a> Lists<'a> {
    /// For at most `entries` blocks in all lists.
    pub(super) fn new(
        blocks: u32,
        bucket_bits: u32,
        entries: u64,
        writer: &'a mut SequenceWriter,
    ) -> Self {
        writer.restart(Shape::new(entries, u64::from(blocks) << bucket_bits));
        Self { blocks, bucket_bits, writer, keys: Vec::new(), private: Vec::new() }
    }

    /// Adds the blocks of a bucket, ascending, perhaps repeated. Buckets must come in order.
    pub(super) fn add(&mut self, bucket: u64, blocks: impl Iterator<Item = u32>) {
        let first = bucket * u64::from(self.blocks);
        self.writer.extend(distinct(blocks).map(|block| first + u64::from(block)));
    }

    /// Adds the blocks of one fingerprint, ascending, perhaps repeated. Keys must ascend.
    pub(super) fn add_private(&mut self, key: u32, blocks: impl Iterator<Item = u32>) {
        self.private.extend(distinct(blocks));
        self.keys.push((key, self.private.len()));
    }

    fn private_lists(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let starts = std::iter::once(0).chain(self.keys.iter().map(|&(_, end)| end));
        self.keys.iter().zip(starts).map(|(&(key, end), start)| (key, &self.private[start..end]))
    }

    /// `null_blocks` ascend, each once.
    pub(super) fn write_all(
        &mut self,
        null_blocks: &[u32],
        cells: u64,
        null_cells: u64,
    ) -> Postings {
        let density = Density::new(self, null_blocks);
        let mut head = Head {
            blocks: self.blocks,
            bucket_bits: (self.writer.len() > 0).then_some(self.bucket_bits),
            entries: self.writer.len(),
            private: 0,
            dense: 0,
            nulls: density.nulls(null_blocks),
            cells,
            null_cells,
        };
        for (_, list) in self.private_lists() {
            if density.is_dense(list) {
                head.dense += 1;
            } else {
                head.private += 1;
                head.entries += list.len() as u64;
            }
        }
        if head.nulls == Nulls::List {
            head.entries += null_blocks.len() as u64;
        }
        let mut words = zeros(head.words());
        self.write(head, &density, null_blocks, &mut words);
        Postings::new(head, words)
    }

    fn write(&mut self, head: Head, density: &Density, null_blocks: &[u32], words: &mut [u64]) {
        head.write(words);
        let (mut sparse, mut dense) = (0, 0);
        for (key, list) in self.private_lists() {
            if density.is_dense(list) {
                put_key(&mut words[head.dense_words()], dense, key);
                set_bits(&mut words[head.bitmap(dense)], list);
                dense += 1;
            } else {
                put_key(&mut words[head.private_words()], sparse, key);
                sparse += 1;
            }
        }
        if head.nulls == Nulls::Bitmap {
            set_bits(&mut words[head.bitmap(dense)], null_blocks);
        }
        let starts = std::iter::once(0).chain(self.keys.iter().map(|&(_, end)| end));
        let lists =
            self.keys.iter().zip(starts).map(|(&(_, end), start)| &self.private[start..end]);
        let lists = lists.filter(|list| !density.is_dense(list));
        let nulls = (head.nulls == Nulls::List).then_some(null_blocks);
        for (list, number) in lists.chain(nulls).zip(head.buckets()..) {
            let first = number * u64::from(head.blocks);
            self.writer.extend(list.iter().map(|&block| first + u64::from(block)));
        }
        self.writer.write(head.shape(), &mut words[head.sequence()]);
    }
}

fn set_bits(bitmap: &mut [u64], blocks: &[u32]) {
    for &block in blocks {
        bitmap[(block / 64) as usize] |= 1 << (block % 64);
    }
}

/// Which lists are better stored as bitmaps.
struct Density {
    blocks: u64,
    /// Bits per entry in the sequence, if everything were stored there.
    entry_bits: u64,
}

impl Density {
    fn new(lists: &Lists<'_>, null_blocks: &[u32]) -> Self {
        let buckets = if lists.writer.len() == 0 { 0 } else { 1u64 << lists.bucket_bits };
        let entries = lists.writer.len() + (lists.private.len() + null_blocks.len()) as u64;
        let all = buckets + lists.keys.len() as u64 + u64::from(!null_blocks.is_empty());
        let shape = Shape::new(entries, all * u64::from(lists.blocks));
        Self { blocks: lists.blocks.into(), entry_bits: u64::from(shape.low_bits()) + 2 }
    }

    fn is_dense(&self, list: &[u32]) -> bool {
        list.len() as u64 * self.entry_bits > self.blocks
    }

    fn nulls(&self, null_blocks: &[u32]) -> Nulls {
        match null_blocks {
            [] => Nulls::None,
            list if self.is_dense(list) => Nulls::Bitmap,
            _ => Nulls::List,
        }
    }
}
