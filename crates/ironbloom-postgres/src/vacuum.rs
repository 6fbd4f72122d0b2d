//! VACUUM: nothing to delete, since entries name pages; but a good time to seal and to merge.

use std::ptr;

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::maintain::Maintained;
use crate::storage::Index;

/// Calls with the index and its table.
///
/// # Safety
///
/// The index is open, and its table is locked.
unsafe fn with_heap<T>(index: pg_sys::Relation, call: impl FnOnce(Maintained) -> T) -> T {
    // SAFETY: the caller's promise; the table is closed when it has been used.
    unsafe {
        let heap = pg_sys::table_open((*(*index).rd_index).indrelid, pg_sys::NoLock as i32);
        let result = call(Maintained::new(heap, Index::new(index)));
        pg_sys::table_close(heap, pg_sys::NoLock as i32);
        result
    }
}

/// # Safety
///
/// As the server calls it.
unsafe fn statistics(
    index: pg_sys::Relation,
    rows: f64,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the caller's promise; the result is the server's to free.
    unsafe {
        let stats = if stats.is_null() {
            pg_sys::palloc0(size_of::<pg_sys::IndexBulkDeleteResult>()).cast()
        } else {
            stats
        };
        (*stats).num_pages = Index::new(index).pages();
        (*stats).num_index_tuples = rows;
        (*stats).estimated_count = true;
        stats
    }
}

/// Called with dead rows, which concern nobody here; and at the end of a concurrent build, to learn which rows the index has.
/// Then it gets them: the table is sealed now, and what comes from here on is noted.
///
/// A build that has failed leaves an index that is not valid, and that VACUUM calls this for, too. Only a build wants its progress
/// reported: VACUUM reports its own. If a build did not say so, it would insert the rows one by one.
#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn bulk_delete(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
    callback: pg_sys::IndexBulkDeleteCallback,
    state: *mut std::ffi::c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server's own arguments; its callback gets rows that exist.
    unsafe {
        let index = (*info).index;
        if (*info).report_progress
            && !(*(*index).rd_index).indisvalid
            && let Some(callback) = callback
        {
            let mut report = |block: u32, offset: u16| {
                let mut row = pg_sys::ItemPointerData {
                    ip_blkid: pg_sys::BlockIdData {
                        bi_hi: (block >> 16) as u16,
                        bi_lo: block as u16,
                    },
                    ip_posid: offset,
                };
                let row = &raw mut row;
                pg_sys::ffi::pg_guard_ffi_boundary(|| callback(row, state));
            };
            with_heap(index, |maintained| maintained.seal_all(&mut report));
        }
        statistics(index, (*info).num_heap_tuples, stats)
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn vacuum_cleanup(
    info: *mut pg_sys::IndexVacuumInfo,
    stats: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: the server's own arguments.
    unsafe {
        if (*info).analyze_only {
            return if stats.is_null() { ptr::null_mut() } else { stats };
        }
        with_heap((*info).index, Maintained::tidy_if_possible);
        statistics((*info).index, (*info).num_heap_tuples, stats)
    }
}
