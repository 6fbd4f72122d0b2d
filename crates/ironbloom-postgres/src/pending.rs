//! Rows that have come to sealed pages: a short list that scans read, until it becomes a segment.
//!
//! ```text
//! page     u32 next page or 0, u32 rows; then for each row: u32 heap page, u32 hash of each column
//! ```

use crate::meta::{Meta, PendingList};
use crate::page::{Kind, Label, ROOM};
use crate::storage::{Appended, Index, Moved};

const HEAD: usize = 8;
/// Pages are filled no further: to log a change, the server compares all of a page with what it was, byte by byte.
const FULL: usize = ROOM / 4;

fn row_bytes(columns: usize) -> usize {
    4 * (1 + columns)
}

fn head(content: &[u8]) -> [u32; 2] {
    content.get(..HEAD).map_or([0; 2], bytemuck::pod_read_unaligned)
}

fn set_head(content: &mut [u8], head: [u32; 2]) {
    content[..HEAD].copy_from_slice(bytemuck::bytes_of(&head));
}

/// What came of a new row.
pub(crate) enum Noted {
    /// Its page is in the tail, of which this number of pages are sealed.
    Tail { sealed: u32 },
    /// It is in the pending list, which has this number of pages.
    Pending { pages: u32 },
}

/// Notes a row of a page, if the page is sealed.
pub(crate) fn note(index: Index, block: u32, hashes: &[u32]) -> Noted {
    let bytes = row_bytes(hashes.len());
    loop {
        let appended = index.append_pending(
            block,
            |content| append(content, block, hashes),
            |content| HEAD + (head(content)[1] as usize + 1) * bytes <= FULL.max(HEAD + bytes),
        );
        match appended {
            Appended::Done(list) => return Noted::Pending { pages: list.pages },
            Appended::NotNeeded(marks) => return Noted::Tail { sealed: marks.sealed },
            Appended::Full(list) => add_page(index, list),
        }
    }
}

fn append(content: &mut [u8], block: u32, hashes: &[u32]) -> usize {
    let [next, rows] = head(content);
    let at = HEAD + rows as usize * row_bytes(hashes.len());
    let end = at + row_bytes(hashes.len());
    content[at..at + 4].copy_from_slice(bytemuck::bytes_of(&block));
    content[at + 4..end].copy_from_slice(bytemuck::cast_slice(hashes));
    set_head(content, [next, rows + 1]);
    end
}

/// Adds a page to the list, or begins one, unless someone else has meanwhile.
fn add_page(index: Index, list: PendingList) {
    // The new page is at the end of the index: a freed one might be taken by who maintains the index. And it is written while
    // the meta page is locked: so whoever counts pages and then looks there knows whose it is.
    index.change_meta(|meta| {
        if meta.pending != list {
            return None;
        }
        let owner = if list.owner == 0 { meta.take_owner() } else { list.owner };
        let block = index.append_page(Label { kind: Kind::Pending, column: 0, owner }, |content| {
            set_head(content, [0, 0]);
            HEAD
        });
        if list.owner == 0 {
            meta.pending = PendingList { owner, first: block, last: block, pages: 1 };
        } else {
            index.change_pending(list.last, |content| {
                let [_, rows] = head(content);
                set_head(content, [block, rows]);
                HEAD + rows as usize * row_bytes(meta.columns.len())
            });
            meta.pending = PendingList { last: block, pages: list.pages + 1, ..list };
        }
        Some(())
    });
}

/// Calls with each row of a list: heap page and hashes. Returns the list's pages.
pub(crate) fn each_row(
    index: Index,
    list: PendingList,
    columns: usize,
    mut call: impl FnMut(u32, &[u32]),
) -> Result<Vec<u32>, Moved> {
    let mut pages = Vec::new();
    let mut next = if list.owner == 0 { 0 } else { list.first };
    while next != 0 {
        crate::check_interrupts();
        pages.push(next);
        let read = index.read(next, Kind::Pending, list.owner, |_, content| {
            let [next, rows] = head(content);
            let rows_end = HEAD + rows as usize * row_bytes(columns);
            let cells: &[u32] = bytemuck::try_cast_slice(content.get(HEAD..rows_end)?).ok()?;
            for row in cells.chunks_exact(1 + columns) {
                call(row[0], &row[1..]);
            }
            Some(next)
        })?;
        match read {
            Some(after) if !pages.contains(&after) => next = after,
            _ => index.damaged(next, "it is no page of a pending list"),
        }
    }
    Ok(pages)
}

/// Both lists of an index: the one that grows, and the one that is becoming a segment.
pub(crate) fn lists(meta: &Meta) -> [PendingList; 2] {
    [meta.pending, meta.flushing]
}
