//! Segments: sorted entries of all columns, in pages that each can be read alone, under a directory.
//!
//! ```text
//! posting page     u64 first number, last number, how many; then the numbers as a run      number = bucket · span + heap page
//! directory page   u32 level, count; u64 key of each child; u32 page of each child          key = column · 2^32 + bucket
//! ```
//!
//! A child's key is that of its first entry. Heap pages are counted from the first that the segment can name.

pub(crate) mod find;
pub(crate) mod merge;
pub(crate) mod write;

use ironbloom_blocks::run::{Run, RunHead};

use crate::page::ROOM;

/// Words for the numbers of a posting page.
pub(crate) const RUN_WORDS: usize = ROOM / 8 - 3;
/// Children of a directory page.
pub(crate) const CHILDREN: usize = (ROOM - 8) / 12;

/// Takes the entries of one column after the other, in ascending order; equal ones may follow each other.
pub(crate) trait TakeEntries {
    /// The number of an entry.
    fn number(&self, bucket: u32, block: u32) -> u64;
    /// Appends entries of the current column.
    fn extend(&mut self, numbers: impl IntoIterator<Item = u64>);
    /// Ends the current column.
    fn end_column(&mut self);
}

/// What a directory refers to: entries from this column and bucket on.
pub(crate) fn key(column: usize, bucket: u32) -> u64 {
    (column as u64) << 32 | u64::from(bucket)
}

/// The numbers of a posting page. `None` if that is invalid.
pub(crate) fn posting(content: &[u8]) -> Option<(RunHead, Run<'_>)> {
    let words: &[u64] = bytemuck::try_cast_slice(content).ok()?;
    let (head, words) = words.split_at_checked(3)?;
    let head = RunHead { first: head[0], last: head[1], len: head[2] };
    Some((head, Run::new(head, words)?))
}

/// A directory page.
pub(crate) struct Directory<'a> {
    pub(crate) level: u32,
    pub(crate) keys: &'a [u64],
    pub(crate) children: &'a [u32],
}

impl<'a> Directory<'a> {
    /// `None` if it is invalid.
    pub(crate) fn read(content: &'a [u8]) -> Option<Self> {
        let (head, rest) = content.split_at_checked(8)?;
        let head: [u32; 2] = bytemuck::pod_read_unaligned(head);
        let count = head[1] as usize;
        if count == 0 || count > CHILDREN || rest.len() != 12 * count || head[0] == 0 {
            return None;
        }
        let (keys, children) = rest.split_at(8 * count);
        let keys: &[u64] = bytemuck::try_cast_slice(keys).ok()?;
        let children: &[u32] = bytemuck::try_cast_slice(children).ok()?;
        Some(Self { level: head[0], keys, children })
    }

    pub(crate) fn write(level: u32, children: &[(u64, u32)], content: &mut [u8]) -> usize {
        let count = children.len();
        content[..8].copy_from_slice(bytemuck::bytes_of(&[level, count as u32]));
        for (i, (key, block)) in children.iter().enumerate() {
            content[8 + 8 * i..16 + 8 * i].copy_from_slice(bytemuck::bytes_of(key));
            let at = 8 + 8 * count + 4 * i;
            content[at..at + 4].copy_from_slice(bytemuck::bytes_of(block));
        }
        8 + 12 * count
    }
}
