//! The cells of a column during construction, stored so that sorting them is one linear pass.
//!
//! ```text
//! rows come in order                       fingerprint  ppppppppp fffffffffff…        9 bits p: the partition
//!   │ a group of rows (whole blocks)                    23 bits f: the rest
//!   ▼
//! group 0:  p = 0 | p = 1 | … | p = 511            a cell: f and the block within the group, in 32 bits
//! group 1:  p = 0 | p = 1 | … | p = 511
//! …
//! ```
//!
//! The bucket of a cell is the high bits of its fingerprint, so partition p of all groups together holds 1/512 of the
//! buckets, with their rows in order. A partition fits the second-level cache, where a counting sort by the other bits
//! of the bucket places its cells. Both steps are stable, so within a bucket the blocks come out ascending.
//!
//! A cell takes 32 bits and keeps the whole fingerprint, which heavy values need.

use std::ops::Range;

use crate::cell_memory::{CellMemory, CellPieces};
use crate::encode::NULL;
use crate::params::Params;

/// Bits of the fingerprint that choose the partition.
const PARTITION_BITS: u32 = 9;
const PARTITIONS: usize = 1 << PARTITION_BITS;
/// Bits left of a cell's 32 for the block within its group.
const BLOCK_BITS: u32 = PARTITION_BITS;
/// Rows of a group, if its blocks can be numbered: its cells and their copy, 256 KiB each, fit the second-level cache.
const GROUP_ROWS: usize = 1 << 16;

/// The cells of one column.
pub struct Cells {
    block_bits: u32,
    /// Blocks in a group.
    group_blocks: usize,
    /// Fingerprints of rows that do not yet fill a group.
    pending: Vec<u32>,
    /// Groups, each ordered by partition.
    cells: CellMemory,
    /// Start of partition p of group g in it, at index g·513 + p. The entry after the last partition is its end.
    starts: Vec<u32>,
    /// Blocks with nulls, ascending.
    null_blocks: Vec<u32>,
    nulls: u64,
}

impl Cells {
    /// Creates cells for blocks of this many rows.
    pub fn new(params: Params) -> Self {
        Self::with_memory(params, CellPieces::default())
    }

    /// Like [`new`](Self::new), with the [memory](SealedCells::into_memory) of an earlier column.
    pub fn with_memory(params: Params, memory: CellPieces) -> Self {
        let block_bits = params.block_rows().trailing_zeros();
        let group_blocks = (GROUP_ROWS >> block_bits).clamp(1, 1 << BLOCK_BITS);
        Self {
            block_bits,
            group_blocks,
            pending: Vec::new(),
            cells: CellMemory::with_spare(memory),
            starts: Vec::new(),
            null_blocks: Vec::new(),
            nulls: 0,
        }
    }

    /// Adds the next rows: `write` appends their fingerprints to its vector ([`NULL`] for nulls).
    pub fn push_with<T>(&mut self, write: impl FnOnce(&mut Vec<u32>) -> T) -> T {
        let written = write(&mut self.pending);
        let group_rows = self.group_blocks << self.block_bits;
        let whole = self.pending.len() / group_rows * group_rows;
        if whole > 0 {
            let pending = std::mem::take(&mut self.pending);
            pending[..whole].chunks(group_rows).for_each(|group| self.add_group(group));
            self.pending = pending;
            self.pending.drain(..whole);
        }
        written
    }

    /// Adds the fingerprints of the next rows.
    pub fn push(&mut self, mut prints: &[u32]) {
        let group_rows = self.group_blocks << self.block_bits;
        if !self.pending.is_empty() {
            let some = prints.len().min(group_rows - self.pending.len());
            self.push_with(|pending| pending.extend_from_slice(&prints[..some]));
            prints = &prints[some..];
        }
        // Whole groups need not be copied. Nothing is pending before the last of them.
        let groups = prints.chunks_exact(group_rows);
        let rest = groups.remainder();
        groups.for_each(|group| self.add_group(group));
        self.pending.extend_from_slice(rest);
    }

    /// Memory held, in bytes.
    pub fn held_bytes(&self) -> u64 {
        let vectors = [&self.pending, &self.starts, &self.null_blocks];
        let vectors = vectors.map(|vector| size_of::<u32>() * vector.capacity());
        self.cells.bytes() + vectors.iter().sum::<usize>() as u64
    }

    fn add_group(&mut self, rows: &[u32]) {
        let first_block = self.groups() * self.group_blocks;
        let mut next = [0u32; PARTITIONS];
        for &print in rows {
            next[(print >> (32 - PARTITION_BITS)) as usize] += 1;
        }
        let nulls = self.note_nulls(rows, first_block as u32);
        // The fingerprint of null is 0, so nulls were counted in partition 0.
        next[0] -= nulls as u32;
        let mut at = 0;
        for count in &mut next {
            self.starts.push(at);
            at += std::mem::replace(count, at);
        }
        self.starts.push(at);
        let cells = self.cells.add(at as usize);
        for (block, rows) in rows.chunks(1 << self.block_bits).enumerate() {
            if nulls == 0 {
                scatter(rows.iter().copied(), block as u32, &mut next, cells);
            } else {
                let values = rows.iter().copied().filter(|&print| print != NULL);
                scatter(values, block as u32, &mut next, cells);
            }
        }
    }

    fn note_nulls(&mut self, rows: &[u32], first_block: u32) -> usize {
        let before = self.nulls;
        for (block, rows) in (first_block..).zip(rows.chunks(1 << self.block_bits)) {
            let nulls = rows.iter().filter(|&&print| print == NULL).count();
            if nulls > 0 {
                self.null_blocks.push(block);
            }
            self.nulls += nulls as u64;
        }
        (self.nulls - before) as usize
    }

    fn groups(&self) -> usize {
        self.starts.len() / (PARTITIONS + 1)
    }

    /// Stores the rows of the last, incomplete group; no more can follow.
    pub fn seal(mut self) -> SealedCells {
        let rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.add_group(&rest);
        }
        SealedCells(self)
    }
}

#[inline]
fn scatter(
    prints: impl Iterator<Item = u32>,
    block: u32,
    next: &mut [u32; PARTITIONS],
    cells: &mut [u32],
) {
    for print in prints {
        let place = &mut next[(print >> (32 - PARTITION_BITS)) as usize];
        cells[*place as usize] = print << PARTITION_BITS | block;
        *place += 1;
    }
}

/// The cells of all rows of a segment.
pub struct SealedCells(Cells);

/// A cell being sorted: the cell itself in the high half, its block in the low half.
#[derive(Clone, Copy)]
pub(crate) struct Entry(u64);

impl Entry {
    #[inline]
    fn new(cell: u32, first_block: u32) -> Self {
        Self(u64::from(cell) << 32 | u64::from(block_of(cell, first_block)))
    }

    #[inline]
    pub(crate) fn block(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    fn cell(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The bits shared by all entries of a partition.
#[derive(Clone, Copy)]
pub(crate) struct Partition {
    number: u32,
    fine_bits: u32,
}

impl Partition {
    #[inline]
    pub(crate) fn bucket(self, entry: Entry) -> u64 {
        u64::from(self.number) << self.fine_bits
            | u64::from(fine_bucket(entry.cell(), self.fine_bits))
    }

    /// Returns the whole fingerprint of an entry.
    pub(crate) fn print(self, entry: Entry) -> u32 {
        self.number << (32 - PARTITION_BITS) | entry.cell() >> PARTITION_BITS
    }
}

/// Entries ordered by bucket, and within a bucket by block.
pub(crate) enum Buckets<'a> {
    /// Any number of whole buckets.
    Many(&'a [Entry]),
    /// One bucket with very many entries.
    Crowded(&'a [Entry]),
}

/// Number of parts, each some partitions, that different threads can encode.
pub const CELL_PARTS: usize = 16;

impl SealedCells {
    /// Returns the memory, for another column.
    pub fn into_memory(self) -> CellPieces {
        self.0.cells.into_pieces()
    }

    /// Memory held, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }

    /// Cells that are not null.
    pub(crate) fn len(&self) -> u64 {
        self.0.cells.len()
    }

    /// Cells that are null.
    pub(crate) fn nulls(&self) -> u64 {
        self.0.nulls
    }

    /// Blocks with nulls, ascending.
    pub(crate) fn null_blocks(&self) -> &[u32] {
        &self.0.null_blocks
    }

    /// Yields every cell of a part in order; buckets with more than `heavy` cells are yielded singly.
    pub(crate) fn each_bucket(
        &self,
        part: usize,
        bucket_bits: u32,
        heavy: u64,
        mut out: impl FnMut(Partition, Buckets<'_>),
    ) {
        let fine_bits = bucket_bits - PARTITION_BITS;
        let mut sorter = Sorter { fine_bits, ..Sorter::default() };
        for number in partitions(part) {
            let partition = Partition { number: number as u32, fine_bits };
            sorter.sort(self.partition(number));
            let mut done = 0;
            for crowded in sorter.crowded_buckets(heavy) {
                out(partition, Buckets::Many(&sorter.sorted[done..crowded.start]));
                done = crowded.end;
                out(partition, Buckets::Crowded(&sorter.sorted[crowded]));
            }
            out(partition, Buckets::Many(&sorter.sorted[done..]));
        }
    }

    /// Cells of a part that are not null.
    pub(crate) fn part_len(&self, part: usize) -> u64 {
        let range = partitions(part);
        let starts = self.0.starts.chunks_exact(PARTITIONS + 1);
        starts.map(|starts| u64::from(starts[range.end] - starts[range.start])).sum()
    }

    /// The slices of a partition, each with the first block of its group.
    fn partition(&self, partition: usize) -> impl Iterator<Item = (u32, &[u32])> + Clone {
        let Cells { cells, starts, group_blocks, .. } = &self.0;
        starts.chunks_exact(PARTITIONS + 1).zip(cells.groups()).enumerate().map(
            move |(group, (starts, cells))| {
                let (start, end) = (starts[partition] as usize, starts[partition + 1] as usize);
                ((group * group_blocks) as u32, &cells[start..end])
            },
        )
    }
}

/// The partitions of a part.
fn partitions(part: usize) -> Range<usize> {
    let in_part = PARTITIONS / CELL_PARTS;
    part * in_part..(part + 1) * in_part
}

/// The first bucket of a part.
pub(crate) fn first_bucket(part: usize, bucket_bits: u32) -> u64 {
    (partitions(part).start as u64) << (bucket_bits - PARTITION_BITS)
}

/// Returns the bits of the bucket below those of the partition.
#[inline]
fn fine_bucket(cell: u32, fine_bits: u32) -> u32 {
    (u64::from(cell) >> (32 - fine_bits)) as u32
}

/// Returns the block of a cell, in a group that starts with this block.
#[inline]
fn block_of(cell: u32, first_block: u32) -> u32 {
    first_block + (cell & ((1 << BLOCK_BITS) - 1))
}

/// Buffer for sorting a partition, reused for the next.
#[derive(Default)]
struct Sorter {
    fine_bits: u32,
    /// Counts, then starts, then ends of the buckets.
    next: Vec<u32>,
    /// The sorted cells, still in the second-level cache when they are used.
    sorted: Vec<Entry>,
}

impl Sorter {
    /// Sorts the cells of a partition by bucket.
    fn sort<'a>(&mut self, slices: impl Iterator<Item = (u32, &'a [u32])> + Clone) {
        let cells = slices.clone().map(|(_, cells)| cells.len()).sum();
        self.next.clear();
        if cells < (1 << self.fine_bits) / 8 {
            // Counting would take longer.
            self.sorted.clear();
            for (first_block, cells) in slices {
                self.sorted.extend(cells.iter().map(|&cell| Entry::new(cell, first_block)));
            }
            self.sorted.sort_by_key(|entry| fine_bucket(entry.cell(), self.fine_bits));
            return;
        }
        self.count(slices.clone());
        self.sorted.resize(cells, Entry(0));
        // Local variables: the compiler cannot know that writes do not alias these fields.
        let (fine_bits, next, sorted) = (self.fine_bits, &mut self.next[..], &mut self.sorted[..]);
        for (first_block, cells) in slices {
            for &cell in cells {
                let place = &mut next[fine_bucket(cell, fine_bits) as usize];
                sorted[*place as usize] = Entry::new(cell, first_block);
                *place += 1;
            }
        }
    }

    /// Counts the cells of each bucket and computes the starts.
    fn count<'a>(&mut self, slices: impl Iterator<Item = (u32, &'a [u32])>) {
        self.next.resize(1 << self.fine_bits, 0);
        let (fine_bits, next) = (self.fine_bits, &mut self.next[..]);
        for (_, cells) in slices {
            for &cell in cells {
                next[fine_bucket(cell, fine_bits) as usize] += 1;
            }
        }
        let mut at = 0;
        for count in &mut self.next {
            at += std::mem::replace(count, at);
        }
    }

    /// Finds the buckets with more than `heavy` cells.
    fn crowded_buckets(&self, heavy: u64) -> Vec<Range<usize>> {
        let is_crowded = |bucket: &Range<usize>| bucket.len() as u64 > heavy;
        let until = |start: &mut usize, end: usize| Some(std::mem::replace(start, end)..end);
        if !self.next.is_empty() {
            let ends = self.next.iter().map(|&end| end as usize);
            return ends.scan(0, until).filter(is_crowded).collect();
        }
        let bucket_of = |entry: &Entry| fine_bucket(entry.cell(), self.fine_bits);
        let buckets = self.sorted.chunk_by(|a, b| bucket_of(a) == bucket_of(b));
        let ends = buckets.scan(0, |end, bucket| {
            *end += bucket.len();
            Some(*end)
        });
        ends.scan(0, until).filter(is_crowded).collect()
    }
}
