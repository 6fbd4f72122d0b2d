//! Reads a segment: the heap pages of some buckets, or all there is.

use std::ops::Range;

use super::{Directory, key, posting};
use crate::meta::Segment;
use crate::page::Kind;
use crate::storage::{Index, Moved};

/// The segment was merged and its pages were freed meanwhile, or they are damaged in a way that looks like it.
impl Segment {
    /// Appends the heap pages of these buckets of a column, which ascend. Pages of different buckets are in no order.
    pub(crate) fn find(
        &self,
        index: Index,
        column: usize,
        buckets: &[u32],
        blocks: &mut Vec<u32>,
    ) -> Result<(), Moved> {
        self.descend(index, self.root, u32::MAX, column, buckets, blocks)
    }

    fn descend(
        &self,
        index: Index,
        block: u32,
        below: u32,
        column: usize,
        buckets: &[u32],
        blocks: &mut Vec<u32>,
    ) -> Result<(), Moved> {
        let read = index.read(block, Kind::Directory, self.owner, |_, content| {
            let directory = Directory::read(content).filter(|directory| directory.level < below)?;
            Some((directory.level, children_of(&directory, column, buckets)))
        })?;
        let Some((level, children)) = read else { index.damaged(block, "it is no directory") };
        for (child, some) in children {
            let buckets = &buckets[some];
            if level > 1 {
                self.descend(index, child, level, column, buckets, blocks)?;
            } else {
                self.read_posting(index, child, column, buckets, blocks)?;
            }
        }
        Ok(())
    }

    fn read_posting(
        &self,
        index: Index,
        block: u32,
        column: usize,
        buckets: &[u32],
        blocks: &mut Vec<u32>,
    ) -> Result<(), Moved> {
        let valid = index.read(block, Kind::Posting, self.owner, |label, content| {
            // The page before the first of a column is another column's.
            if usize::from(label.column) != column {
                return true;
            }
            let Some((_, run)) = posting(content) else { return false };
            for &bucket in buckets {
                let start = u64::from(bucket) * u64::from(self.span);
                let numbers = run.numbers(start..start + u64::from(self.span));
                blocks.extend(numbers.map(|number| self.first + (number - start) as u32));
            }
            true
        })?;
        if !valid {
            index.damaged(block, "it is no page of postings");
        }
        Ok(())
    }

    /// The pages of its postings by column and in order, and those of its directory.
    pub(crate) fn pages(&self, index: Index) -> Result<Pages, Moved> {
        let mut pages = Pages::default();
        self.collect(index, self.root, u32::MAX, &mut pages)?;
        Ok(pages)
    }

    fn collect(
        &self,
        index: Index,
        block: u32,
        below: u32,
        pages: &mut Pages,
    ) -> Result<(), Moved> {
        crate::check_interrupts();
        pages.directories.push(block);
        let read = index.read(block, Kind::Directory, self.owner, |_, content| {
            let directory = Directory::read(content).filter(|directory| directory.level < below)?;
            let children = directory.keys.iter().copied().zip(directory.children.iter().copied());
            Some((directory.level, children.collect::<Vec<_>>()))
        })?;
        let Some((level, children)) = read else { index.damaged(block, "it is no directory") };
        if level > 1 {
            for (_, child) in children {
                self.collect(index, child, level, pages)?;
            }
        } else {
            pages.postings.extend(children);
        }
        Ok(())
    }

    /// All numbers of a posting page of this column.
    pub(crate) fn numbers(
        &self,
        index: Index,
        block: u32,
        column: usize,
        numbers: &mut Vec<u64>,
    ) -> Result<(), Moved> {
        numbers.clear();
        let valid = index.read(block, Kind::Posting, self.owner, |label, content| {
            let run = posting(content).filter(|_| usize::from(label.column) == column);
            run.map(|(_, run)| numbers.extend(run.numbers(0..u64::MAX))).is_some()
        })?;
        if !valid {
            index.damaged(block, "it is no page of postings of that column");
        }
        Ok(())
    }
}

/// Which children may hold entries of these buckets, and which of the buckets.
fn children_of(
    directory: &Directory<'_>,
    column: usize,
    buckets: &[u32],
) -> Vec<(u32, Range<usize>)> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for (i, &bucket) in buckets.iter().enumerate() {
        let wanted = key(column, bucket);
        // A bucket can begin in the page before the first one that begins with it.
        let start = directory.keys.partition_point(|&key| key < wanted).saturating_sub(1);
        for child in start..directory.keys.len() {
            if directory.keys[child] > wanted {
                break;
            }
            match found.last_mut() {
                Some((last, some)) if *last == child => some.end = i + 1,
                _ => found.push((child, i..i + 1)),
            }
        }
    }
    found.into_iter().map(|(child, some)| (directory.children[child], some)).collect()
}

/// The pages of a segment.
#[derive(Default)]
pub(crate) struct Pages {
    /// Key and page.
    pub(crate) postings: Vec<(u64, u32)>,
    pub(crate) directories: Vec<u32>,
}

impl Pages {
    /// The posting pages of a column, in order.
    pub(crate) fn of_column(&self, column: usize) -> Vec<u32> {
        let of_column = self.postings.iter().filter(|(key, _)| key >> 32 == column as u64);
        of_column.map(|&(_, block)| block).collect()
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        self.postings
            .iter()
            .map(|&(_, block)| block)
            .chain(self.directories.iter().copied())
            .collect()
    }
}
