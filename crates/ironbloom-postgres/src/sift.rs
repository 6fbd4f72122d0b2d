//! A first look at the rows of a page, for a column of integers: nearly all rows that are not wanted are recognised without
//! anything that depends on the kind of column, and without a branch.
//!
//! A query by one column looks at a hundred rows for each that it finds, and a long list at some million. What remains goes
//! through `narrow.rs`, which decides.

use pgrx_pg_sys as pg_sys;

use crate::hashing::{Hasher, Integer};
use crate::layout::Layout;
use crate::narrow::Wanted;
use crate::page::PAGE;

/// Where a row has its column of integers, if it has no nulls.
pub(crate) struct Sift {
    width: Integer,
    /// Of the column, from 0: older rows may have fewer.
    place: u32,
    /// From where the values of the row begin.
    at: usize,
}

/// In a row's header: the number of columns, flags, and where its values begin.
const COLUMNS: usize = 18;
const FLAGS: usize = 20;
const VALUES: usize = 22;
/// The header without the bits of nulls.
const HEADER: usize = 24;

impl Sift {
    /// `None` if the column is none of integers.
    pub(crate) fn new(hasher: &Hasher, layout: &Layout, number: i16) -> Option<Self> {
        let width = hasher.integer()?;
        let (at, len) = layout.place(number)?;
        (len == width.bytes()).then_some(Self { width, place: number as u32 - 1, at })
    }

    /// Writes the numbers of the rows that may be wanted, and returns how many.
    ///
    /// # Safety
    ///
    /// A heap page with this number of rows, locked, and room for as many numbers. Nothing here may be dropped or panic.
    pub(crate) unsafe fn rows(
        &self,
        wanted: &Wanted,
        page: *const u8,
        rows: u16,
        out: *mut u16,
    ) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match self.width {
                Integer::Two => self.each::<2>(wanted, page, rows, out),
                Integer::Four => self.each::<4>(wanted, page, rows, out),
                Integer::Eight => self.each::<8>(wanted, page, rows, out),
            }
        }
    }

    /// # Safety
    ///
    /// As above, and integers have this number of bytes.
    #[inline]
    unsafe fn each<const BYTES: usize>(
        &self,
        wanted: &Wanted,
        page: *const u8,
        rows: u16,
        out: *mut u16,
    ) -> usize {
        let mut count = 0;
        for offset in 1..=rows {
            // SAFETY: the caller's promise; what is read is within the page, wherever damaged numbers point to.
            unsafe {
                let item = page.add(24 + 4 * (offset as usize - 1)).cast::<u32>().read();
                // As in `heap.rs`: where, what, how long. What is no row is left to others: its bytes may be anything.
                let (start, is_row) = ((item & 0x7fff) as usize, item >> 15 & 3 == 1);
                let header = page.add(start.min(PAGE - HEADER));
                let columns = u32::from(header.add(COLUMNS).cast::<u16>().read_unaligned());
                let flags = u32::from(header.add(FLAGS).cast::<u16>().read_unaligned());
                let plain = (flags & pg_sys::HEAP_HASNULL == 0)
                    & (columns & pg_sys::HEAP_NATTS_MASK > self.place);
                let at = start + usize::from(*header.add(VALUES)) + self.at;
                let value = page.add(at.min(PAGE - BYTES));
                let number = match BYTES {
                    2 => value.cast::<i16>().read_unaligned().into(),
                    4 => value.cast::<i32>().read_unaligned().into(),
                    _ => value.cast::<i64>().read_unaligned(),
                };
                let may_be_wanted = wanted.may_have(Hasher::hash_integer(number));
                *out.add(count) = offset;
                count += usize::from(is_row & (!plain | may_be_wanted));
            }
        }
        count
    }
}

/// Asks for a page that will be looked at soon: its rows are as far from the processor as memory is.
#[inline]
pub(crate) fn fetch(page: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..PAGE).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it reads nothing; every processor of this kind has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(page.add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = page;
}
