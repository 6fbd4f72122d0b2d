//! Cells of heap pages, sorted by column, bucket and page.
//!
//! Pages come in ascending order, and only hashes are kept of them, page by page and within a page column by column: touching memory
//! for the first time is a good part of a build (`memory.rs`). A column's cells are split into 1024 partitions by their hashes,
//! which keeps that order, and each partition is sorted by bucket when it is written: both parts fit the cache. What exceeds the
//! memory goes to a temporary file, already split.

use std::ptr;

use pgrx_pg_sys as pg_sys;

use crate::heap::Rows;
use crate::memory::Many;
use crate::meta::{BUCKET_STEP, ColumnMeta, NULL};
use crate::segment::TakeEntries;

const PARTITIONS: usize = BUCKET_STEP as usize;
/// Fewer cells are sorted at once.
const FEW: usize = 1 << 14;
/// One page in this number is looked at to see how many different values a page has.
const SAMPLE: u32 = 16;

#[derive(Clone, Default)]
struct Column {
    /// Pages with nulls, one bit each.
    nulls: Vec<u64>,
    /// Different values, summed over pages that were looked at.
    distinct: u64,
}

/// All columns of some pages.
pub(crate) struct Cells {
    first: u32,
    /// How many pages there are to come, as far as it is known.
    pages_to_come: usize,
    columns: Vec<Column>,
    /// Page by page, and of a page column by column, each with as many hashes as the page has rows.
    hashes: Many<u32>,
    /// These pages, and where the hashes of each end.
    pages: Vec<(u32, usize)>,
    /// As many cells may be in memory.
    budget: usize,
    spilled: Option<Spilled>,
    has_rows: bool,
    /// Whether different values are to be counted, and on how many pages they were.
    samples: bool,
    sampled: u64,
    sample: Vec<u32>,
    scratch: Many<u64>,
}

impl Cells {
    /// For this number of pages from `first` on, within the memory for maintenance. Different values are counted if the caller
    /// asks for it.
    pub(crate) fn new(columns: usize, first: u32, pages: u32, samples: bool) -> Self {
        // SAFETY: a setting, in KiB.
        let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
        // Sorting needs room for one column more, of twice the size.
        let budget = (memory / 4 * columns / (columns + 2)).max(1 << 16);
        Self {
            first,
            pages_to_come: pages as usize,
            columns: vec![Column::default(); columns],
            hashes: Many::new(),
            pages: Vec::new(),
            budget,
            spilled: None,
            has_rows: false,
            samples,
            sampled: 0,
            sample: Vec::new(),
            scratch: Many::new(),
        }
    }

    pub(crate) fn push_page(&mut self, block: u32, rows: &Rows) {
        if rows.len() == 0 {
            return;
        }
        if self.hashes.is_empty() {
            // Pages of a table mostly have about as many rows as the first. Room that stays empty costs nothing.
            let page = rows.len() * self.columns.len();
            self.hashes.reserve((page * self.pages_to_come / 8 * 9).min(self.budget + 2 * page));
        }
        self.has_rows = true;
        let sampled = self.samples && (block.is_multiple_of(SAMPLE) || self.sampled == 0);
        self.sampled += u64::from(sampled);
        let from_first = (block - self.first) as usize;
        for (number, column) in self.columns.iter_mut().enumerate() {
            let hashes = rows.column(number);
            self.hashes.extend_from_slice(hashes);
            if hashes.contains(&NULL) {
                column.note_null(from_first);
            }
            if sampled {
                self.sample.clear();
                self.sample.extend(hashes.iter().filter(|&&hash| hash != NULL));
                self.sample.sort_unstable();
                self.sample.dedup();
                column.distinct += self.sample.len() as u64;
            }
        }
        self.end_page(block);
        if self.hashes.len() > self.budget {
            self.spill();
        }
    }

    /// A row of any page: such cells must fit into memory.
    pub(crate) fn push_row(&mut self, block: u32, hashes: &[u32]) {
        self.has_rows = true;
        let from_first = (block - self.first) as usize;
        self.hashes.extend_from_slice(hashes);
        for (column, _) in self.columns.iter_mut().zip(hashes).filter(|(_, hash)| **hash == NULL) {
            column.note_null(from_first);
        }
        self.end_page(block);
    }

    /// What was added since the last page is of this one.
    fn end_page(&mut self, block: u32) {
        self.pages.push((block, self.hashes.len()));
    }

    /// Whether there was no row.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_rows
    }

    /// Different values of a column on a page, on average.
    pub(crate) fn distinct(&self, column: usize) -> f64 {
        self.columns[column].distinct as f64 / self.sampled.max(1) as f64
    }

    fn spill(&mut self) {
        let mut spilled = self.spilled.take().unwrap_or_else(Spilled::new);
        for column in 0..self.columns.len() {
            let starts = self.partition(column);
            spilled.write(&self.scratch, starts);
        }
        self.spilled = Some(spilled);
        self.hashes.clear();
        self.pages.clear();
    }

    /// Calls with the hash and the page of each cell of a column.
    #[inline]
    fn each(&self, column: usize, mut call: impl FnMut(u32, u32)) {
        let mut start = 0;
        for &(block, end) in &self.pages {
            let rows = (end - start) / self.columns.len();
            for &hash in &self.hashes[start + column * rows..][..rows] {
                if hash != NULL {
                    call(hash, block);
                }
            }
            start = end;
        }
    }

    /// Splits the cells of a column, as hash and page, by their hashes without changing their order otherwise; returns where
    /// partitions start in the scratch memory.
    fn partition(&mut self, column: usize) -> Vec<usize> {
        let mut starts = vec![0; PARTITIONS + 1];
        self.each(column, |hash, _| starts[partition_of(hash) + 1] += 1);
        for part in 0..PARTITIONS {
            starts[part + 1] += starts[part];
        }
        crate::check_interrupts();
        let mut next = starts.clone();
        let mut out = std::mem::replace(&mut self.scratch, Many::new());
        out.zeros(starts[PARTITIONS]);
        self.each(column, |hash, block| {
            let place = &mut next[partition_of(hash)];
            out[*place] = u64::from(hash) << 32 | u64::from(block);
            *place += 1;
        });
        self.scratch = out;
        starts
    }

    /// Writes everything, column by column.
    pub(crate) fn write(mut self, metas: &[ColumnMeta], writer: &mut impl TakeEntries) {
        let mut sorter = Sorter::default();
        for (number, &meta) in metas.iter().enumerate() {
            if self.spilled.is_none() && self.hashes.len() < FEW * metas.len() {
                let mut numbers = Vec::with_capacity(self.hashes.len() / metas.len());
                self.each(number, |hash, block| {
                    numbers.push(writer.number(meta.bucket(hash), block));
                });
                numbers.sort_unstable();
                writer.extend(numbers);
            } else {
                let starts = self.partition(number);
                for part in 0..PARTITIONS {
                    sorter.cells.clear();
                    if let Some(spilled) = &mut self.spilled {
                        spilled.read(number, metas.len(), part, &mut sorter.cells);
                    }
                    sorter.cells.extend_from_slice(&self.scratch[starts[part]..starts[part + 1]]);
                    sorter.sort(meta, part as u32, writer);
                    writer.extend(sorter.numbers.iter().copied());
                }
            }
            self.write_nulls(number, meta, writer);
            writer.end_column();
        }
    }

    fn write_nulls(&self, column: usize, meta: ColumnMeta, writer: &mut impl TakeEntries) {
        for (i, &word) in self.columns[column].nulls.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let block = self.first + 64 * i as u32 + rest.trailing_zeros();
                let number = writer.number(meta.bucket(NULL), block);
                writer.extend([number]);
                rest &= rest - 1;
            }
        }
    }
}

impl Column {
    fn note_null(&mut self, from_first: usize) {
        let word = from_first / 64;
        if word >= self.nulls.len() {
            self.nulls.resize(word + 1, 0);
        }
        self.nulls[word] |= 1 << (from_first % 64);
    }
}

#[inline]
fn hash(cell: u64) -> u32 {
    (cell >> 32) as u32
}

#[inline]
fn partition_of(hash: u32) -> usize {
    (hash >> (32 - PARTITIONS.ilog2())) as usize
}

/// Sorts the cells of a partition by bucket.
#[derive(Default)]
struct Sorter {
    cells: Vec<u64>,
    next: Vec<u32>,
    numbers: Vec<u64>,
}

impl Sorter {
    fn sort(&mut self, meta: ColumnMeta, part: u32, writer: &impl TakeEntries) {
        let buckets = (meta.buckets / BUCKET_STEP) as usize;
        let base = part * buckets as u32;
        self.numbers.clear();
        if self.cells.len() < buckets / 8 {
            // Counting would take longer.
            self.numbers.extend(
                self.cells.iter().map(|&cell| writer.number(meta.bucket(hash(cell)), cell as u32)),
            );
            self.numbers.sort_unstable();
            return;
        }
        self.next.clear();
        self.next.resize(buckets + 1, 0);
        for &cell in &self.cells {
            self.next[(meta.bucket(hash(cell)) - base) as usize + 1] += 1;
        }
        for bucket in 0..buckets {
            self.next[bucket + 1] += self.next[bucket];
        }
        self.numbers.resize(self.cells.len(), 0);
        for &cell in &self.cells {
            let bucket = meta.bucket(hash(cell));
            let place = &mut self.next[(bucket - base) as usize];
            self.numbers[*place as usize] = writer.number(bucket, cell as u32);
            *place += 1;
        }
    }
}

/// Cells in a temporary file of the server, which removes it after an error, too.
struct Spilled {
    file: *mut pg_sys::BufFile,
    len: u64,
    /// For each time and column: where its cells are in the file, and where its partitions start there.
    parts: Vec<(u64, Vec<usize>)>,
}

impl Spilled {
    fn new() -> Self {
        // SAFETY: a temporary file of this transaction.
        let file = unsafe { pg_sys::BufFileCreateTemp(false) };
        Self { file, len: 0, parts: Vec::new() }
    }

    fn write(&mut self, cells: &[u64], starts: Vec<usize>) {
        self.parts.push((self.len, starts));
        for some in cells.chunks(1 << 16) {
            crate::check_interrupts();
            // SAFETY: the file is open, and the bytes are there.
            unsafe {
                pg_sys::BufFileWrite(self.file, some.as_ptr().cast_mut().cast(), size_of_val(some))
            };
        }
        self.len += size_of_val(cells) as u64;
    }

    /// Appends what was written of a partition of a column.
    fn read(&mut self, column: usize, columns: usize, part: usize, cells: &mut Vec<u64>) {
        crate::check_interrupts();
        for (at, starts) in self.parts.iter().skip(column).step_by(columns) {
            let (start, end) = (starts[part], starts[part + 1]);
            if start == end {
                continue;
            }
            let before = cells.len();
            cells.resize(before + end - start, 0);
            let bytes = 8 * (end - start);
            // SAFETY: the file is open; the vector has room for as many bytes.
            let read = unsafe {
                let sought = pg_sys::BufFileSeek(self.file, 0, (at + 8 * start as u64) as i64, 0);
                let to: *mut std::ffi::c_void = cells[before..].as_mut_ptr().cast();
                if sought == 0 { pg_sys::BufFileRead(self.file, to, bytes) } else { 0 }
            };
            assert_eq!(read, bytes, "temporary file is shorter than what was written to it");
        }
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let file = std::mem::replace(&mut self.file, ptr::null_mut());
            // SAFETY: the file is open, and nobody else has it.
            unsafe { pg_sys::BufFileClose(file) };
        }
    }
}
