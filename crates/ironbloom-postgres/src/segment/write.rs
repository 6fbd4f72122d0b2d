//! Writes a segment: numbers in ascending order, column by column.

use ironbloom_blocks::run;

use super::{CHILDREN, Directory, RUN_WORDS, TakeEntries, key};
use crate::meta::Segment;
use crate::page::{Kind, Label};
use crate::storage::Index;

/// This number of numbers is collected before it is looked whether they fill a page.
const FIRST: usize = 1 << 14;

/// A segment to be. Nobody knows of its pages until it is in the meta page.
pub(crate) struct SegmentWriter {
    index: Index,
    /// Owners whose pages are in use, this segment's among them.
    in_use: Vec<u32>,
    owner: u32,
    first: u32,
    span: u32,
    column: usize,
    /// Numbers that have not been written.
    numbers: Vec<u64>,
    /// How many there must be before it is looked again.
    enough: usize,
    /// Key and page of each posting page.
    postings: Vec<(u64, u32)>,
    pages: u32,
    cells: u64,
}

impl SegmentWriter {
    /// For heap pages from `first` on.
    pub(crate) fn new(index: Index, in_use: Vec<u32>, owner: u32, first: u32, span: u32) -> Self {
        Self {
            index,
            in_use,
            owner,
            first,
            span,
            column: 0,
            numbers: Vec::new(),
            enough: FIRST,
            postings: Vec::new(),
            pages: 0,
            cells: 0,
        }
    }

    /// Writes all pages that are full, and at the end what is left.
    fn write_postings(&mut self, end: bool) {
        let mut numbers = std::mem::take(&mut self.numbers);
        let mut done = 0;
        while done < numbers.len() {
            crate::check_interrupts();
            let len = run::fit(&numbers[done..], RUN_WORDS);
            if done + len == numbers.len() && !end {
                break;
            }
            self.write_posting(&numbers[done..done + len]);
            done += len;
        }
        // Memory that was touched before is used again.
        numbers.drain(..done);
        self.enough = (2 * numbers.len()).max(FIRST);
        self.numbers = numbers;
    }

    fn write_posting(&mut self, numbers: &[u64]) {
        let bucket = (numbers[0] / u64::from(self.span)) as u32;
        let label = Label { kind: Kind::Posting, column: self.column as u16, owner: self.owner };
        let block = self.index.write_page(&self.in_use, label, |content| {
            let words: &mut [u64] = bytemuck::cast_slice_mut(content);
            let (head, words) = words.split_at_mut(3);
            let written = run::write(numbers, words);
            head.copy_from_slice(&[written.first, written.last, written.len]);
            8 * (3 + written.words())
        });
        self.postings.push((key(self.column, bucket), block));
        self.pages += 1;
        self.cells += numbers.len() as u64;
    }

    /// Writes the directory. `None` if there was no entry.
    pub(crate) fn finish(mut self) -> Option<Segment> {
        let mut children = std::mem::take(&mut self.postings);
        if children.is_empty() {
            return None;
        }
        let mut level = 1;
        loop {
            let label = Label { kind: Kind::Directory, column: 0, owner: self.owner };
            let pages = children.chunks(CHILDREN).map(|some| {
                let block = self.index.write_page(&self.in_use, label, |content| {
                    Directory::write(level, some, content)
                });
                (some[0].0, block)
            });
            children = pages.collect();
            self.pages += children.len() as u32;
            if let [(_, root)] = children[..] {
                let Self { owner, first, span, pages, cells, .. } = self;
                return Some(Segment { owner, root, first, span, pages, zero: 0, cells });
            }
            level += 1;
        }
    }
}

impl TakeEntries for SegmentWriter {
    #[inline]
    fn number(&self, bucket: u32, block: u32) -> u64 {
        u64::from(bucket) * u64::from(self.span) + u64::from(block - self.first)
    }

    fn extend(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let before = self.numbers.len();
        // No number is as large.
        let mut last = self.numbers.last().copied().unwrap_or(u64::MAX);
        self.numbers.extend(numbers);
        // Without a branch: which ones are equal is not to be predicted.
        let mut len = before;
        for at in before..self.numbers.len() {
            let number = self.numbers[at];
            self.numbers[len] = number;
            len += usize::from(number != last);
            last = number;
        }
        self.numbers.truncate(len);
        if self.numbers.len() >= self.enough {
            self.write_postings(false);
        }
    }

    fn end_column(&mut self) {
        self.write_postings(true);
        self.column += 1;
    }
}
