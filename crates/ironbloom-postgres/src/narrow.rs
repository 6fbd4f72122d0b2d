//! From pages to rows: the pages that the index names are read here, and only rows with the wanted hashes are handed on.
//!
//! Handed whole pages, the server would recheck each of their rows, which takes ten times as long as looking at one
//! value in its place. Only values of columns with a fixed place are looked at (`layout.rs`), by hash functions of the server
//! itself: they are called while the page is locked. A row that is in doubt is handed on. The server rechecks what is left.
//! Integers, the common case, have a loop of their own before that (`sift.rs`).

use pgrx_pg_sys as pg_sys;

use crate::hashing::Hasher;
use crate::heap::{MOST_ROWS, row_count, tuple_at};
use crate::layout::{Found, Layout};
use crate::meta::NULL;
use crate::sift::{self, Sift};
use crate::storage::Index;

/// Without the guard of every single call: some pages are one guarded call.
mod raw {
    use super::pg_sys;
    unsafe extern "C-unwind" {
        pub(super) fn tbm_add_page(bitmap: *mut pg_sys::TIDBitmap, block: pg_sys::BlockNumber);
        pub(super) fn tbm_add_tuples(
            bitmap: *mut pg_sys::TIDBitmap,
            rows: pg_sys::ItemPointer,
            count: std::ffi::c_int,
            recheck: bool,
        );
        pub(super) fn PrefetchBuffer(
            relation: pg_sys::Relation,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
        ) -> pg_sys::PrefetchBufferResult;
        pub(super) fn ReadBuffer(
            relation: pg_sys::Relation,
            block: pg_sys::BlockNumber,
        ) -> pg_sys::Buffer;
        pub(super) fn heap_get_root_tuples(page: pg_sys::Page, roots: *mut pg_sys::OffsetNumber);
        pub(super) fn LockBuffer(buffer: pg_sys::Buffer, mode: std::ffi::c_int);
        pub(super) fn UnlockReleaseBuffer(buffer: pg_sys::Buffer);
    }
}

/// Pages looked at between two interrupts.
const AT_ONCE: usize = 64;
/// If more rows than one in this number are handed on, whole pages are as good.
pub(crate) const WORTH: u64 = 8;
/// Pages asked for ahead, at most.
const MOST_AHEAD: usize = 64;

/// Bits for each wanted hash, and at least: so few other hashes share a bit with one, and all bits are in the first cache.
const BITS_PER_HASH: usize = 64;
const LEAST_BITS: usize = 1 << 10;
const MOST_BITS: usize = 1 << 24;

/// The hashes that a column may have.
pub(crate) struct Wanted {
    /// Column of the table, from 1.
    number: i16,
    hasher: Hasher,
    hashes: Vec<u32>,
    /// One bit for hashes with the same upper bits as one of these: nearly all others are recognised by that.
    bits: Vec<u64>,
    shift: u32,
}

impl Wanted {
    fn new(number: i16, hasher: Hasher, hashes: Vec<u32>) -> Self {
        let size = (BITS_PER_HASH * hashes.len()).next_power_of_two().clamp(LEAST_BITS, MOST_BITS);
        let shift = 32 - size.ilog2();
        let mut bits = vec![0; size / 64];
        for hash in &hashes {
            let bit = (hash >> shift) as usize;
            bits[bit / 64] |= 1 << (bit % 64);
        }
        Self { number, hasher, hashes, bits, shift }
    }

    /// Whether a hash may be one of these. Nothing here panics.
    #[inline]
    pub(crate) fn may_have(&self, hash: u32) -> bool {
        let bit = (hash >> self.shift) as usize;
        // SAFETY: as many bits as the upper bits of a hash can be.
        let word = unsafe { *self.bits.as_ptr().add(bit / 64) };
        word >> (bit % 64) & 1 == 1
    }

    /// Nothing here panics.
    #[inline]
    fn has(&self, hash: u32) -> bool {
        self.may_have(hash) && self.hashes.binary_search(&hash).is_ok()
    }
}

/// The rows of a table that may satisfy some conditions.
pub(crate) struct Narrow {
    heap: pg_sys::Relation,
    layout: Layout,
    wanted: Vec<Wanted>,
    /// For one of the wanted columns, by its place: rows that it rules out are not looked at otherwise.
    sift: Option<(usize, Sift)>,
    /// Rows looked at, and those handed on.
    looked_at: u64,
    kept: u64,
}

impl Narrow {
    /// # Safety
    ///
    /// The table is open, and stays open.
    pub(crate) unsafe fn new(heap: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        let layout = unsafe { Layout::new(heap) };
        Self { heap, layout, wanted: Vec::new(), sift: None, looked_at: 0, kept: 0 }
    }

    /// Adds a condition, if values of that column can be looked at: it must have one of these hashes, which ascend.
    pub(crate) fn add(&mut self, index: Index, column: usize, hashes: &[u32]) {
        if let Some((number, hasher)) = place(&self.layout, index, column) {
            if self.sift.is_none() {
                let sift = Sift::new(&hasher, &self.layout, number);
                self.sift = sift.map(|sift| (self.wanted.len(), sift));
            }
            self.wanted.push(Wanted::new(number, hasher, hashes.to_vec()));
        }
    }

    /// Adds to the bitmap what these pages, which ascend, have. Returns how many rows, or pages where they were not looked at.
    ///
    /// # Safety
    ///
    /// The table has these pages, and the bitmap is one of the server's.
    pub(crate) unsafe fn add_pages(
        mut self,
        blocks: &[u32],
        bitmap: *mut pg_sys::TIDBitmap,
    ) -> i64 {
        let mut pages = 0;
        // SAFETY: a setting.
        let ahead = unsafe { pg_sys::effective_io_concurrency }.clamp(0, MOST_AHEAD as i32);
        let mut done = 0;
        while done < blocks.len() {
            crate::check_interrupts();
            let end = (done + AT_ONCE).min(blocks.len());
            let narrow = !self.wanted.is_empty()
                && (self.looked_at < 1024 || self.kept * WORTH < self.looked_at);
            pages += if narrow { 0 } else { end - done };
            let this: *mut Self = &raw mut self;
            // SAFETY: the caller's promise. Nothing is dropped in there.
            unsafe {
                pg_sys::ffi::pg_guard_ffi_boundary(|| {
                    let mut pinned = 0;
                    for i in done..end {
                        let block = *blocks.as_ptr().add(i);
                        if !narrow {
                            raw::tbm_add_page(bitmap, block);
                            continue;
                        }
                        (*this).ask_ahead(blocks, i, ahead as usize);
                        let heap = (*this).heap;
                        let buffer =
                            if pinned != 0 { pinned } else { raw::ReadBuffer(heap, block) };
                        // The next page comes to the caches while this one is looked at.
                        pinned = 0;
                        if i + 1 < end {
                            pinned = raw::ReadBuffer(heap, *blocks.as_ptr().add(i + 1));
                            sift::fetch(pg_sys::BufferGetPage(pinned).cast());
                        }
                        (*this).add_page(buffer, block, bitmap);
                    }
                });
            }
            done = end;
        }
        self.kept as i64 + pages as i64
    }

    /// Lets the system read the pages that come soon.
    ///
    /// # Safety
    ///
    /// As above.
    unsafe fn ask_ahead(&self, blocks: &[u32], i: usize, ahead: usize) {
        // Those before the first have not been asked for.
        let from = if i == 0 { 1 } else { i + ahead };
        let until = if i + ahead < blocks.len() { i + ahead + 1 } else { blocks.len() };
        if ahead > 0 {
            for next in from..until {
                // SAFETY: the caller's promise.
                unsafe {
                    let block = *blocks.as_ptr().add(next);
                    raw::PrefetchBuffer(self.heap, pg_sys::ForkNumber::MAIN_FORKNUM, block);
                }
            }
        }
    }

    /// # Safety
    ///
    /// As above, and the buffer with the page is pinned; it is released here. Nothing here may be dropped or panic: errors jump.
    unsafe fn add_page(
        &mut self,
        buffer: pg_sys::Buffer,
        block: u32,
        bitmap: *mut pg_sys::TIDBitmap,
    ) {
        let mut kept = [pg_sys::ItemPointerData::default(); MOST_ROWS];
        let kept = kept.as_mut_ptr();
        let mut offsets = [0; MOST_ROWS];
        let mut count = 0;
        // SAFETY: the buffer is pinned and locked while the page is looked at, and there is room for all its rows.
        unsafe {
            raw::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            let page: *mut u8 = pg_sys::BufferGetPage(buffer).cast();
            let rows = row_count(page);
            let mut within_page = false;
            for i in 0..self.sifted(page, rows, offsets.as_mut_ptr()) {
                let row = tuple_at(page, block, *offsets.as_ptr().add(i), self.heap);
                if row.t_data.is_null() || !self.is_wanted(&row) {
                    continue;
                }
                let infomask = u32::from((*row.t_data).t_infomask2);
                within_page |= infomask & pg_sys::HEAP_ONLY_TUPLE != 0;
                *kept.add(count) = row.t_self;
                count += 1;
            }
            let known = !within_page || to_roots(page, kept, count);
            raw::UnlockReleaseBuffer(buffer);
            if !known {
                raw::tbm_add_page(bitmap, block);
            } else if count > 0 {
                raw::tbm_add_tuples(bitmap, kept, count as i32, true);
            }
            self.looked_at += u64::from(rows);
            self.kept += count as u64;
        }
    }

    /// Writes the numbers of the rows that are worth a look, and returns how many.
    ///
    /// # Safety
    ///
    /// The page is locked and has this number of rows, and there is room for all of them. Nothing here may be dropped or panic.
    unsafe fn sifted(&self, page: *const u8, rows: u16, offsets: *mut u16) -> usize {
        // SAFETY: the caller's promise; the sift is for a column that is wanted.
        unsafe {
            if let Some((place, sift)) = &self.sift {
                return sift.rows(&*self.wanted.as_ptr().add(*place), page, rows, offsets);
            }
            for i in 0..rows {
                *offsets.add(i as usize) = i + 1;
            }
        }
        rows.into()
    }

    /// # Safety
    ///
    /// The row is one of the table. Nothing here may be dropped or panic: errors jump.
    #[inline]
    unsafe fn is_wanted(&self, row: &pg_sys::HeapTupleData) -> bool {
        // SAFETY: the caller's promise; the layout has these columns.
        unsafe {
            for i in 0..self.wanted.len() {
                let wanted = &*self.wanted.as_ptr().add(i);
                let hash = match self.layout.value(row, wanted.number) {
                    Found::Value(value) => wanted.hasher.hash(value),
                    Found::Null => NULL,
                    Found::Unknown => continue,
                };
                if !wanted.has(hash) {
                    return false;
                }
            }
        }
        true
    }
}

/// Readers know a chain of updates within a page by its first row: these become those. False if one is not known.
///
/// # Safety
///
/// The page is locked, and the rows are on it.
unsafe fn to_roots(page: *mut u8, rows: *mut pg_sys::ItemPointerData, count: usize) -> bool {
    let mut roots = [0; MOST_ROWS];
    // SAFETY: the caller's promise; there is room for all rows of a page.
    unsafe {
        raw::heap_get_root_tuples(page.cast(), roots.as_mut_ptr());
        for i in 0..count {
            let row = rows.add(i);
            let root = *roots.as_ptr().add((*row).ip_posid as usize - 1);
            if root == 0 {
                return false;
            }
            (*row).ip_posid = root;
        }
    }
    true
}

/// Where the table has a column of the index, and how it is hashed, if its values can be looked at.
fn place(layout: &Layout, index: Index, column: usize) -> Option<(i16, Hasher)> {
    // SAFETY: an open index has a row of pg_index with as many numbers as it has columns.
    let number = unsafe {
        let numbers = &(*(*index.relation()).rd_index).indkey.values;
        *numbers.as_ptr().add(column)
    };
    let hasher = Hasher::of_column(index, column);
    (layout.has(number) && hasher.is_built_in()).then_some((number, hasher))
}

/// Which columns of the index rows can be told apart by.
///
/// # Safety
///
/// Both are open.
pub(crate) unsafe fn columns(heap: pg_sys::Relation, index: Index) -> Vec<bool> {
    // SAFETY: the caller's promise.
    let layout = unsafe { Layout::new(heap) };
    (0..index.columns()).map(|column| place(&layout, index, column).is_some()).collect()
}
