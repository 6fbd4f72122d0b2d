//! Where sealing has come to: read for every row that is inserted, so at the price of a pin.
//!
//! ```text
//! insert   row on its heap page, under the page's lock   ─►  reads the marks: are rows of that page to be noted?
//! sealing  raises the marks, under the meta page's lock  ─►  reads the heap page, under its lock
//! ```
//!
//! If the sealing has read the heap page before the row came, it had raised the marks before that, and whoever locks the heap page
//! later sees them. If an insert still reads the old marks, the sealing will see its row. So marks need no lock: only
//! whole states of the meta page are believed, which is one whose first bytes, checksum included, are those of a page that was
//! compared with its checksum before.

use std::cell::Cell;

use pgrx_pg_sys as pg_sys;

use crate::meta::{META_BLOCK, Marks};
use crate::page;
use crate::storage::Index;

/// Indexes remembered at the same time: a table may have several.
const PLACES: usize = 8;

/// What a meta page said whose checksum was compared, how the page began then, and in which buffer it was.
#[derive(Clone, Copy)]
struct Known {
    marks: Marks,
    start: [u8; page::START],
    buffer: pg_sys::Buffer,
}

thread_local! {
    /// By the index's number. It need not be the same index: the page says so whatever index it is of, and the server knows
    /// which page a buffer holds.
    static KNOWN: [Cell<Option<Known>>; PLACES] = const { [const { Cell::new(None) }; PLACES] };
}

/// Without the guard of every single call.
mod raw {
    use super::pg_sys;
    unsafe extern "C-unwind" {
        pub(super) fn ReleaseBuffer(buffer: pg_sys::Buffer);
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        pub(super) fn ReadRecentBuffer(
            relation: pg_sys::RelFileNode,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
            buffer: pg_sys::Buffer,
        ) -> bool;
        #[cfg(any(feature = "pg16", feature = "pg17", feature = "pg18"))]
        pub(super) fn ReadRecentBuffer(
            relation: pg_sys::RelFileLocator,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
            buffer: pg_sys::Buffer,
        ) -> bool;
    }
}

impl Index {
    /// Where sealing has come to, for a row that is on its heap page already.
    pub(crate) fn marks(self) -> Marks {
        // SAFETY: the relation is open.
        let place = unsafe { u32::from((*self.relation()).rd_id) } as usize % PLACES;
        KNOWN.with(|known| {
            let known = &known[place];
            if let Some(before) = known.get()
                && self.still_begins(&before)
            {
                return before.marks;
            }
            let (marks, start, buffer) = self.read_marks();
            known.set(Some(Known { marks, start, buffer }));
            marks
        })
    }

    /// Whether the meta page begins as it did, read without its lock.
    #[inline]
    fn still_begins(self, known: &Known) -> bool {
        let Some(buffer) = self.pin_meta(known.buffer) else { return false };
        // SAFETY: the buffer is pinned while its page is read. Others may write to it at the same time: see above.
        unsafe {
            let page: *const u8 = pg_sys::BufferGetPage(buffer).cast();
            let same = page::begins_with(page, &known.start);
            raw::ReleaseBuffer(buffer);
            same
        }
    }

    /// Pins the meta page if it still is in this buffer. Nothing here is to be dropped: an error of the server, which can only be
    /// that there is no memory, jumps over it without a guard, which would take as long as all the rest.
    #[cfg(not(feature = "pg13"))]
    #[inline]
    fn pin_meta(self, buffer: pg_sys::Buffer) -> Option<pg_sys::Buffer> {
        const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
        // SAFETY: the relation is open; the server looks which page the buffer holds.
        unsafe {
            #[cfg(any(feature = "pg14", feature = "pg15"))]
            let file = (*self.relation()).rd_node;
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
            let file = (*self.relation()).rd_locator;
            raw::ReadRecentBuffer(file, FORK, META_BLOCK, buffer).then_some(buffer)
        }
    }

    /// Pins the meta page, wherever it is.
    #[cfg(feature = "pg13")]
    fn pin_meta(self, _buffer: pg_sys::Buffer) -> Option<pg_sys::Buffer> {
        // SAFETY: the relation is open.
        let read = || unsafe { pg_sys::ReadBuffer(self.relation(), META_BLOCK) };
        Some(self.or_damaged(META_BLOCK, read))
    }
}
