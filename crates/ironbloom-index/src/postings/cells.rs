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

/// Some of the cells, in order.
pub(crate) enum Numbers<'a> {
    /// Of several buckets.
    Ready(&'a [u64]),
    /// Of one that is too full.
    Full(Bucket<'a>),
}

/// A cell of a full bucket on its way: the cell in the high half, its block in the low half.
#[derive(Clone, Copy)]
pub(crate) struct Entry(u64);

impl Entry {
    fn new(cell: u32, first_block: u32) -> Self {
        Self(u64::from(cell) << 32 | u64::from(block_of(cell, first_block)))
    }

    pub(crate) fn block(self) -> u32 {
        self.0 as u32
    }

    fn cell(self) -> u32 {
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
        self.part << (32 - PART_BITS) | entry.cell() >> PART_BITS
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

    /// Hands out every cell as a number, bucket · `blocks` + block, ascending, perhaps repeated; but a bucket with more
    /// than `heavy` cells with all that is known of them.
    pub(crate) fn numbers(
        &self,
        bucket_bits: u32,
        blocks: u32,
        heavy: u64,
        mut out: impl FnMut(Numbers<'_>),
    ) {
        let fine_bits = bucket_bits - PART_BITS;
        let mut sorter = Sorter { fine_bits, ..Sorter::default() };
        for part in 0..PARTS {
            let first = (part as u64) << fine_bits;
            let slices = self.part(part);
            let counted = sorter.count(slices.clone());
            if counted.most <= heavy {
                let number = |cell: u32, first_block: u32| {
                    let bucket = first + u64::from(fine_bucket(cell, fine_bits));
                    bucket * u64::from(blocks) + u64::from(block_of(cell, first_block))
                };
                out(Numbers::Ready(sorter.scatter(slices, counted.cells, number)));
                continue;
            }
            sorter.sort(slices, &counted);
            let bucket_of = |entry: Entry| first + u64::from(fine_bucket(entry.cell(), fine_bits));
            for entries in sorter.sorted.chunk_by(|&a, &b| bucket_of(a) == bucket_of(b)) {
                let number = bucket_of(entries[0]);
                if entries.len() as u64 > heavy {
                    out(Numbers::Full(Bucket { number, part: part as u32, entries }));
                    continue;
                }
                sorter.numbers.clear();
                let first = number * u64::from(blocks);
                sorter.numbers.extend(entries.iter().map(|entry| first + u64::from(entry.block())));
                out(Numbers::Ready(&sorter.numbers));
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
fn fine_bucket(cell: u32, fine_bits: u32) -> u32 {
    (u64::from(cell) >> (32 - fine_bits)) as u32
}

/// The block of a cell, in a group that starts with this one.
#[inline]
fn block_of(cell: u32, first_block: u32) -> u32 {
    first_block + (cell & ((1 << BLOCK_BITS) - 1))
}

/// Room for sorting a part, used again for the next.
#[derive(Default)]
struct Sorter {
    fine_bits: u32,
    /// Counts, then starts, then ends of the buckets.
    next: Vec<u32>,
    sorted: Vec<Entry>,
    numbers: Vec<u64>,
}

/// What a part holds.
struct Counted {
    cells: usize,
    /// Cells of the fullest bucket; unknown, and as many as can be, if counting would take longer than sorting.
    most: u64,
}

impl Sorter {
    /// Counts the cells of each bucket, and finds where they will start.
    fn count<'a>(&mut self, slices: impl Iterator<Item = (u32, &'a [u32])> + Clone) -> Counted {
        let cells = slices.clone().map(|(_, cells)| cells.len()).sum();
        if cells < (1 << self.fine_bits) / 8 {
            return Counted { cells, most: u64::MAX };
        }
        self.next.clear();
        self.next.resize(1 << self.fine_bits, 0);
        for (_, cells) in slices {
            for &cell in cells {
                self.next[fine_bucket(cell, self.fine_bits) as usize] += 1;
            }
        }
        let (mut at, mut most) = (0, 0);
        for count in &mut self.next {
            most = most.max(*count);
            at += std::mem::replace(count, at);
        }
        Counted { cells, most: most.into() }
    }

    /// The numbers of all cells in the order of their buckets. They stay in the second-level cache until they are used.
    fn scatter<'a>(
        &mut self,
        slices: impl Iterator<Item = (u32, &'a [u32])>,
        cells: usize,
        number: impl Fn(u32, u32) -> u64,
    ) -> &[u64] {
        if self.numbers.len() < cells {
            self.numbers.resize(cells, 0);
        }
        let numbers = &mut self.numbers[..cells];
        for (first_block, cells) in slices {
            for &cell in cells {
                let place = &mut self.next[fine_bucket(cell, self.fine_bits) as usize];
                numbers[*place as usize] = number(cell, first_block);
                *place += 1;
            }
        }
        numbers
    }

    /// Sorts the cells by bucket, with all that is known of them.
    fn sort<'a>(&mut self, slices: impl Iterator<Item = (u32, &'a [u32])>, counted: &Counted) {
        self.sorted.clear();
        if counted.most == u64::MAX {
            for (first_block, cells) in slices {
                self.sorted.extend(cells.iter().map(|&cell| Entry::new(cell, first_block)));
            }
            self.sorted.sort_by_key(|entry| fine_bucket(entry.cell(), self.fine_bits));
            return;
        }
        self.sorted.resize(counted.cells, Entry(0));
        for (first_block, cells) in slices {
            for &cell in cells {
                let place = &mut self.next[fine_bucket(cell, self.fine_bits) as usize];
                self.sorted[*place as usize] = Entry::new(cell, first_block);
                *place += 1;
            }
        }
    }
}
