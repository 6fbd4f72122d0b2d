//! A page of the index: the server's header, ours, and what it holds. Every page can be judged by itself.
//!
//! ```text
//!   0  the server's header (24 bytes)
//!  24  checksum of all that follows and of the page's number      u64
//!  32  kind: 1 meta, 2 posting, 3 directory, 4 pending            u16
//!  34  column, of a posting page                                  u16
//!  36  owner: the segment or pending list it belongs to           u32
//!  40  bytes in use after this header                             u32
//!  44  zero                                                       u32
//!  48  what it holds
//! ```
//!
//! Numbers are in the machine's order, as everywhere in the server's files. Owners get new numbers each time: a page
//! that was freed and used again has another owner, so who still has an old address notices.

use bytemuck::{Pod, Zeroable};
use pgrx_pg_sys as pg_sys;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::meta::MARKS;

/// Bytes of a page.
pub(crate) const PAGE: usize = pg_sys::BLCKSZ as usize;
/// Where the server's header ends.
const OURS: usize = 24;
/// Where what the page holds begins.
const CONTENT: usize = OURS + size_of::<Head>();
/// Our header with its checksum, and as much as tells where sealing has come to.
pub(crate) const START: usize = size_of::<Head>() + MARKS;
/// Room for what a page holds.
pub(crate) const ROOM: usize = PAGE - CONTENT;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Meta = 1,
    Posting = 2,
    Directory = 3,
    Pending = 4,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    checksum: u64,
    kind: u16,
    column: u16,
    owner: u32,
    used: u32,
    zero: u32,
}

/// Who a page belongs to, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) kind: Kind,
    pub(crate) column: u16,
    pub(crate) owner: u32,
}

fn head(page: &[u8]) -> Head {
    bytemuck::pod_read_unaligned(&page[OURS..CONTENT])
}

fn checksum(page: &[u8], used: usize, block: u32) -> u64 {
    // A page that was written to the wrong place is as wrong as a damaged one.
    xxh3_64_with_seed(&page[OURS + 8..CONTENT + used], u64::from(block))
}

/// What a page holds, if its checksum is right; otherwise what is wrong.
pub(crate) fn open(page: &[u8], block: u32) -> Result<(Label, &[u8]), &'static str> {
    let head = head(page);
    let used = head.used as usize;
    if used > ROOM || head.zero != 0 {
        return Err("its header is invalid");
    }
    if head.checksum != checksum(page, used, block) {
        return Err("its checksum does not match");
    }
    let label = label(&head).ok_or("its kind is unknown")?;
    Ok((label, &page[CONTENT..CONTENT + used]))
}

fn label(head: &Head) -> Option<Label> {
    let kind = match head.kind {
        1 => Kind::Meta,
        2 => Kind::Posting,
        3 => Kind::Directory,
        4 => Kind::Pending,
        _ => return None,
    };
    Some(Label { kind, column: head.column, owner: head.owner })
}

/// How a page begins.
pub(crate) fn start(page: &[u8]) -> [u8; START] {
    let mut start = [0; START];
    start.copy_from_slice(&page[OURS..OURS + START]);
    start
}

/// Whether a page begins so. Others may be writing to it.
///
/// # Safety
///
/// There are the bytes of a page, aligned as pages are.
pub(crate) unsafe fn begins_with(page: *const u8, known: &[u8; START]) -> bool {
    const WORDS: usize = START / 8;
    const { assert!(START.is_multiple_of(8) && OURS.is_multiple_of(8)) };
    let known: [u64; WORDS] = bytemuck::pod_read_unaligned(known);
    // SAFETY: the caller's promise. Each word is read once, whoever writes it.
    let word = |i: usize| unsafe { page.add(OURS).cast::<u64>().add(i).read_volatile() };
    (0..WORDS).all(|i| word(i) == known[i])
}

/// Who owns a page that may be anything: new, freed, or from an interrupted change.
pub(crate) fn owner(page: &[u8]) -> Option<u32> {
    label(&head(page)).map(|label| label.owner)
}

/// Writes a page: its content comes from `fill`, which gets zeroed room and returns how many bytes it used.
pub(crate) fn write(
    page: &mut [u8],
    block: u32,
    label: Label,
    fill: impl FnOnce(&mut [u8]) -> usize,
) {
    page[OURS..].fill(0);
    let used = fill(&mut page[CONTENT..]);
    let Label { kind, column, owner } = label;
    let head = Head { checksum: 0, kind: kind as u16, column, owner, used: used as u32, zero: 0 };
    page[OURS..CONTENT].copy_from_slice(bytemuck::bytes_of(&head));
    seal(page, block, used);
}

/// Changes what a page holds, from its whole room to how many bytes are used then.
pub(crate) fn rewrite(page: &mut [u8], block: u32, change: impl FnOnce(&mut [u8]) -> usize) {
    let used = change(&mut page[CONTENT..]);
    seal(page, block, used);
}

fn seal(page: &mut [u8], block: u32, used: usize) {
    let mut head = head(page);
    head.used = used as u32;
    page[OURS..CONTENT].copy_from_slice(bytemuck::bytes_of(&head));
    head.checksum = checksum(page, used, block);
    page[OURS..CONTENT].copy_from_slice(bytemuck::bytes_of(&head));
    // What is between these two need not be in the log.
    let lower = (CONTENT + used) as u16;
    page[12..14].copy_from_slice(bytemuck::bytes_of(&lower));
}
