//! The cells of a column while it is built, kept so that sorting them is one linear pass.
//!
//! ```text
//! rows come in order                       fingerprint  ppppppppp fffffffffff…        9 bits p: the part
//!   │ a group of rows (whole blocks)                    23 bits f: the rest
//!   ▼
//! group 0:  part 0 | part 1 | … | part 511         a cell: f and the block within the group, in 32 bits
//! group 1:  part 0 | part 1 | … | part 511
//! …
//! ```
//!
//! The bucket of a cell is the high bits of its fingerprint, so part p of all groups together holds 1/512 of the buckets,
//! with their rows in order. A part fits the second-level cache, where a counting sort by the other bits of the bucket puts
//! its cells in place. Both steps are stable, so within a bucket the blocks come out ascending.
//!
//! A cell takes 32 bits and nothing of its fingerprint is lost, which heavy values need.

use crate::encode::NULL;

/// Bits of the fingerprint that choose the part.
const PART_BITS: u32 = 9;
const PARTS: usize = 1 << PART_BITS;
/// What is left of the 32 bits of a cell for the block within its group.
const BLOCK_BITS: u32 = PART_BITS;
/// Rows of a group, if its blocks can be numbered: its cells and their copy, 256 KiB each, fit the second-level cache.
const GROUP_ROWS: usize = 1 << 16;

/// The cells of one column.
pub(crate) struct Cells {
    block_bits: u32,
    /// Blocks in a group.
    group_blocks: usize,
    /// Fingerprints of rows that do not fill a group yet.
    pending: Vec<u32>,
    /// Groups behind each other, each ordered by part.
    cells: Vec<u32>,
    /// Where part p of group g starts: place g·512 + p. The end of the last part is the start of the next group.
    starts: Vec<u32>,
    /// Blocks with nulls, ascending.
    null_blocks: Vec<u32>,
    nulls: u64,
}

impl Cells {
    /// For blocks of 2^`block_bits` rows.
    pub(crate) fn new(block_bits: u32) -> Self {
        let group_blocks = (GROUP_ROWS >> block_bits).clamp(1, 1 << BLOCK_BITS);
        Self {
            block_bits,
            group_blocks,
            pending: Vec::new(),
            cells: Vec::new(),
            starts: Vec::new(),
            null_blocks: Vec::new(),
            nulls: 0,
        }
    }

    /// Appends the fingerprints of rows, which `write` appends to the vector it gets.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u32>) -> bool) -> bool {
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

    fn add_group(&mut self, rows: &[u32]) {
        let first_block = self.groups() * self.group_blocks;
        let mut next = [0u32; PARTS];
        for &print in rows {
            next[(print >> (32 - PART_BITS)) as usize] += 1;
        }
        let nulls = self.note_nulls(rows, first_block as u32);
        // Null has the fingerprint 0, and so is counted with part 0.
        next[0] -= nulls as u32;
        let start = self.cells.len();
        let mut at = 0;
        for count in &mut next {
            self.starts.push((start + at as usize) as u32);
            at += std::mem::replace(count, at);
        }
        self.cells.resize(start + at as usize, 0);
        let cells = &mut self.cells[start..];
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
        self.starts.len() / PARTS
    }

    /// Puts away the rows that do not fill a group: no more can come.
    pub(crate) fn seal(mut self) -> Sealed {
        let rest = std::mem::take(&mut self.pending);
        if !rest.is_empty() {
            self.add_group(&rest);
        }
        Sealed(self)
    }
}

#[inline]
fn scatter(
    prints: impl Iterator<Item = u32>,
    block: u32,
    next: &mut [u32; PARTS],
    cells: &mut [u32],
) {
    for print in prints {
        let place = &mut next[(print >> (32 - PART_BITS)) as usize];
        cells[*place as usize] = print << PART_BITS | block;
        *place += 1;
    }
}

/// The cells of all rows of a segment.
pub(crate) struct Sealed(Cells);

/// A cell on its way: its fingerprint without the bits of the part in the high half, its block in the low half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry(u64);

impl Entry {
    pub(crate) fn block(self) -> u32 {
        self.0 as u32
    }

    /// The fingerprint, shifted left by the bits of the part.
    fn rest(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The cells of one bucket.
pub(crate) struct Bucket<'a> {
    pub(crate) number: u64,
    part: u32,
    /// Blocks ascend.
    pub(crate) entries: &'a [Entry],
}

impl Bucket<'_> {
    /// The whole fingerprint of an entry.
    pub(crate) fn print(&self, entry: Entry) -> u32 {
        self.part << (32 - PART_BITS) | entry.rest() >> PART_BITS
    }
}

impl Sealed {
    /// Cells that are not null.
    pub(crate) fn len(&self) -> u64 {
        self.0.cells.len() as u64
    }

    /// Cells that are.
    pub(crate) fn nulls(&self) -> u64 {
        self.0.nulls
    }

    /// Blocks with nulls, ascending.
    pub(crate) fn null_blocks(&self) -> &[u32] {
        &self.0.null_blocks
    }

    /// Calls with every bucket that has cells, in order, of 2^`bucket_bits` buckets (at least 512).
    pub(crate) fn each_bucket(&self, bucket_bits: u32, mut call: impl FnMut(&Bucket<'_>)) {
        let fine_bits = bucket_bits - PART_BITS;
        let mut sorter = Sorter::default();
        for part in 0..PARTS {
            sorter.sort(self.part(part), fine_bits);
            let first = (part as u64) << fine_bits;
            let number = |entry: Entry| first + u64::from(fine_bucket(entry.rest(), fine_bits));
            for entries in sorter.sorted.chunk_by(|&a, &b| number(a) == number(b)) {
                call(&Bucket { number: number(entries[0]), part: part as u32, entries });
            }
        }
    }

    /// The slices of a part, each with the first block of its group.
    fn part(&self, part: usize) -> impl Iterator<Item = (u32, &[u32])> + Clone {
        let Cells { cells, starts, group_blocks, .. } = &self.0;
        (0..self.0.groups()).map(move |group| {
            let at = group * PARTS + part;
            let end = starts.get(at + 1).map_or(cells.len(), |&end| end as usize);
            ((group * group_blocks) as u32, &cells[starts[at] as usize..end])
        })
    }
}

/// The bits of the bucket below those of the part.
#[inline]
fn fine_bucket(rest: u32, fine_bits: u32) -> u32 {
    (u64::from(rest) >> (32 - fine_bits)) as u32
}

/// Room for sorting a part, used again for the next.
#[derive(Default)]
struct Sorter {
    sorted: Vec<Entry>,
    next: Vec<u32>,
}

impl Sorter {
    fn sort<'a>(&mut self, slices: impl Iterator<Item = (u32, &'a [u32])> + Clone, fine_bits: u32) {
        let len: usize = slices.clone().map(|(_, cells)| cells.len()).sum();
        self.sorted.clear();
        if len < (1 << fine_bits) / 8 {
            let entries =
                slices.flat_map(|(first, cells)| cells.iter().map(move |&cell| entry(cell, first)));
            self.sorted.extend(entries);
            self.sorted.sort_by_key(|entry| fine_bucket(entry.rest(), fine_bits));
            return;
        }
        self.sorted.resize(len, Entry(0));
        self.next.clear();
        self.next.resize(1 << fine_bits, 0);
        for (_, cells) in slices.clone() {
            for &cell in cells {
                self.next[fine_bucket(cell, fine_bits) as usize] += 1;
            }
        }
        let mut at = 0;
        for count in &mut self.next {
            at += std::mem::replace(count, at);
        }
        for (first, cells) in slices {
            for &cell in cells {
                let place = &mut self.next[fine_bucket(cell, fine_bits) as usize];
                self.sorted[*place as usize] = entry(cell, first);
                *place += 1;
            }
        }
    }
}

#[inline]
fn entry(cell: u32, first_block: u32) -> Entry {
    let block = first_block + (cell & ((1 << BLOCK_BITS) - 1));
    Entry(u64::from(cell) << 32 | u64::from(block))
}
