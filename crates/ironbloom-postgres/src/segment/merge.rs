//! Entries of several segments in the order of one.
//!
//! Buckets are the same in all segments of an index, so nothing is hashed again. Heap pages of several segments may overlap:
//! rows that came later to sealed pages are in segments of their own.

use super::TakeEntries;
use super::find::Pages;
use super::write::SegmentWriter;
use crate::meta::{Meta, Segment};
use crate::progress::Progress;
use crate::storage::{Index, Moved};

/// Entries sorted at once.
const AT_ONCE: u64 = 1 << 16;

/// Reads a column of a segment in order.
struct Stream<'a> {
    index: Index,
    segment: &'a Segment,
    column: usize,
    /// Pages to come.
    pages: std::vec::IntoIter<u32>,
    numbers: Vec<u64>,
    at: usize,
}

impl<'a> Stream<'a> {
    fn new(index: Index, segment: &'a Segment, pages: &Pages, column: usize) -> Self {
        let pages = pages.of_column(column).into_iter();
        Self { index, segment, column, pages, numbers: Vec::new(), at: 0 }
    }

    /// Calls with all entries below a bucket that have not been read.
    fn each_below(&mut self, bucket: u64, mut call: impl FnMut(u32, u32)) -> Result<(), Moved> {
        let span = u64::from(self.segment.span);
        let end = bucket * span;
        loop {
            let rest = &self.numbers[self.at..];
            let below = rest.partition_point(|&number| number < end);
            let (mut current, mut start) = (0, 0);
            for (i, &number) in rest[..below].iter().enumerate() {
                // Numbers of a bucket follow each other: few divisions.
                if i == 0 || number >= start + span {
                    current = number / span;
                    start = current * span;
                }
                call(current as u32, self.segment.first + (number - start) as u32);
            }
            self.at += below;
            if self.at < self.numbers.len() {
                return Ok(());
            }
            let Some(page) = self.pages.next() else { return Ok(()) };
            crate::check_interrupts();
            self.segment.numbers(self.index, page, self.column, &mut self.numbers)?;
            self.at = 0;
        }
    }
}

/// A column of several segments, read in order.
pub(crate) struct Merged<'a> {
    streams: Vec<Stream<'a>>,
    /// Numbers are over the heap pages from `first` on.
    first: u32,
    span: u32,
}

impl<'a> Merged<'a> {
    /// All heap pages must be within this extent.
    pub(crate) fn new(
        index: Index,
        segments: &'a [(Segment, Pages)],
        column: usize,
        (first, span): (u32, u32),
    ) -> Self {
        let stream =
            |(segment, pages): &'a (Segment, Pages)| Stream::new(index, segment, pages, column);
        Self { streams: segments.iter().map(stream).collect(), first, span }
    }

    /// Appends all numbers below a bucket that have not been read: sorted, each once.
    pub(crate) fn read_below(&mut self, bucket: u64, numbers: &mut Vec<u64>) -> Result<(), Moved> {
        let before = numbers.len();
        for stream in &mut self.streams {
            stream.each_below(bucket, |bucket, block| {
                numbers
                    .push(u64::from(bucket) * u64::from(self.span) + u64::from(block - self.first));
            })?;
        }
        // A few ascending runs one after the other: the stable sort merges them.
        numbers[before..].sort();
        let mut last = None;
        let mut i = 0;
        numbers.retain(|&number| {
            i += 1;
            i <= before || last.replace(number) != Some(number)
        });
        Ok(())
    }
}

/// The heap pages that segments can name: the first, and how many.
pub(crate) fn extent(segments: &[(Segment, Pages)]) -> (u32, u32) {
    let first = segments.iter().map(|(segment, _)| segment.first).min().unwrap_or(0);
    let end = segments.iter().map(|(segment, _)| segment.first + segment.span).max().unwrap_or(0);
    (first, end - first)
}

/// Writes a segment with the entries of all these.
pub(crate) fn merge(
    index: Index,
    meta: &Meta,
    segments: &[(Segment, Pages)],
    owner: u32,
    progress: &Progress,
) -> Result<Option<Segment>, Moved> {
    let (first, span) = extent(segments);
    // A column has about its share of all entries.
    let all = segments.iter().map(|(segment, _)| segment.cells).sum::<u64>();
    let cells = all / meta.columns.len() as u64;
    progress.entries(all);
    let mut done = 0;
    let mut numbers = Vec::new();
    let mut in_use = meta.owners();
    in_use.push(owner);
    let mut writer = SegmentWriter::new(index, in_use, owner, first, span);
    for (column, buckets) in meta.columns.iter().map(|column| column.buckets).enumerate() {
        let mut merged = Merged::new(index, segments, column, (first, span));
        // Buckets and that of null.
        let (mut bucket, all) = (0, u64::from(buckets) + 1);
        let step = (all * AT_ONCE / cells.max(1)).clamp(1, all);
        while bucket < all {
            bucket = (bucket + step).min(all);
            numbers.clear();
            merged.read_below(bucket, &mut numbers)?;
            writer.extend(numbers.iter().copied());
            done += numbers.len() as u64;
            progress.entries_done(done);
        }
        writer.end_column();
    }
    Ok(writer.finish())
}
