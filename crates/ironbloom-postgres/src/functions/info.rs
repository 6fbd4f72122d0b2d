//! `ironbloom_info`, `ironbloom_columns`, `ironbloom_segments`: what an index consists of; `ironbloom_seal`: seals it.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use super::arguments::{For, argument, fail, return_rows, text, with_index};
use crate::maintain::Maintained;
use crate::meta::{ColumnMeta, Meta};
use crate::page::{Kind, PAGE};
use crate::segment::posting;
use crate::storage::{Index, Moved};
use crate::{pending, shape, sql_function};

/// The index that a call is about.
///
/// # Safety
///
/// The first argument of the call is a regclass, and not null: the function is strict.
pub(super) unsafe fn index_of(call: pg_sys::FunctionCallInfo) -> pg_sys::Oid {
    // SAFETY: the caller's promise.
    let oid = unsafe { argument(call, 0) }.map_or(0, |datum| datum.value() as u32);
    pg_sys::Oid::from(oid)
}

pub(super) fn number(value: u64) -> Option<pg_sys::Datum> {
    Some(pg_sys::Datum::from(value as i64))
}

/// Reads with the same meta page from beginning to end: merges may come in between, and then it starts again.
fn consistently<T>(index: Index, read: impl Fn(&Meta) -> Result<T, Moved>) -> (Meta, T) {
    loop {
        let meta = index.meta();
        match read(&meta) {
            Ok(value) => return (meta, value),
            Err(Moved) if index.meta().owners() != meta.owners() => crate::check_interrupts(),
            Err(Moved) => index.damaged(0, "pages of its segments belong to others"),
        }
    }
}

fn pending_rows(index: Index, meta: &Meta) -> Result<u64, Moved> {
    let mut rows = 0;
    for list in pending::lists(meta) {
        pending::each_row(index, list, meta.columns.len(), |_, _| rows += 1)?;
    }
    Ok(rows)
}

/// The rows of a table as the server estimates them; `None` before the first build, VACUUM or ANALYZE.
fn rows_of(heap: pg_sys::Relation) -> Option<pg_sys::Datum> {
    // SAFETY: an open relation has a row of pg_class.
    let rows = unsafe { (*(*heap).rd_rel).reltuples };
    (rows >= 0.0).then(|| pg_sys::Datum::from(rows as i64))
}

/// What an index consists of, in numbers.
pub(super) struct State {
    pub(super) heap_pages: u32,
    pub(super) tail: u32,
    pub(super) pending_rows: u64,
    pub(super) pending_pages: u32,
    pub(super) segments: u32,
    pub(super) cells: u64,
    pub(super) pages: u32,
    pub(super) free: u32,
    /// Entries of a heap page, beside those that buckets were planned for.
    pub(super) drift: f64,
    /// The first column with a row type that has changed, from 0.
    pub(super) changed: Option<usize>,
}

pub(super) fn state(heap: pg_sys::Relation, index: Index) -> State {
    // SAFETY: both are open.
    let heap_pages = unsafe { Maintained::new(heap, index) }.heap_pages();
    let (meta, pending_rows) = consistently(index, |meta| pending_rows(index, meta));
    let pending_pages = meta.pending.pages + meta.flushing.pages;
    let in_segments: u32 = meta.segments.iter().map(|segment| segment.pages).sum();
    let pages = index.pages();
    State {
        heap_pages,
        tail: heap_pages.saturating_sub(meta.sealed),
        pending_rows,
        pending_pages,
        segments: meta.segments.len() as u32,
        cells: meta.cells(),
        pages,
        free: pages.saturating_sub(1 + pending_pages + in_segments),
        drift: drift(&meta),
        changed: shape::changed_columns(index, &meta).first().copied(),
    }
}

fn drift(meta: &Meta) -> f64 {
    let planned = |column: &ColumnMeta| {
        f64::from(column.buckets) / f64::from(1u32 << column.selectivity.min(31))
    };
    let planned: f64 = meta.columns.iter().map(planned).sum();
    if planned == 0.0 || meta.sealed == 0 {
        return 1.0;
    }
    meta.cells() as f64 / f64::from(meta.sealed) / planned
}

sql_function!(pg_finfo_ironbloom_info);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_info(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL.
    let oid = unsafe { index_of(call) };
    let row = with_index(oid, For::Readers, pg_sys::AccessShareLock, |heap, index| {
        let state = state(heap, index);
        vec![
            Some(pg_sys::Datum::from(crate::meta::VERSION as i32)),
            rows_of(heap),
            number(state.heap_pages.into()),
            number((state.heap_pages - state.tail).into()),
            number(state.tail.into()),
            number(state.pending_rows),
            Some(pg_sys::Datum::from(state.segments as i32)),
            number(state.cells),
            number(state.pages.into()),
            number(state.free.into()),
        ]
    });
    // SAFETY: declared so in SQL, with these columns.
    unsafe { return_rows(call, vec![row]) }
}

sql_function!(pg_finfo_ironbloom_columns);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_columns(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL.
    let oid = unsafe { index_of(call) };
    let rows = with_index(oid, For::Readers, pg_sys::AccessShareLock, |_, index| {
        let (meta, sizes) = consistently(index, |meta| sizes(index, meta));
        let columns = meta.columns.iter().zip(sizes).enumerate();
        let row = |(i, (column, (cells, pages))): (usize, (&ColumnMeta, (u64, u64)))| {
            let bits = (pages * PAGE as u64 * 8) as f64 / cells as f64;
            vec![
                Some(pg_sys::Datum::from(i as i32 + 1)),
                Some(text(&column_name(index, i))),
                Some(pg_sys::Datum::from(column.selectivity as i32)),
                number(column.buckets.into()),
                number(cells),
                number(pages),
                (cells > 0).then(|| pg_sys::Datum::from(bits.to_bits() as usize)),
            ]
        };
        columns.map(row).collect()
    });
    // SAFETY: declared so in SQL, with these columns.
    unsafe { return_rows(call, rows) }
}

/// Cells and posting pages of each column.
fn sizes(index: Index, meta: &Meta) -> Result<Vec<(u64, u64)>, Moved> {
    let mut sizes = vec![(0, 0); meta.columns.len()];
    for segment in &meta.segments {
        for (key, block) in segment.pages(index)?.postings {
            crate::check_interrupts();
            let len = index.read(block, Kind::Posting, segment.owner, |_, content| {
                posting(content).map(|(head, _)| head.len)
            })?;
            let Some(len) = len else { index.damaged(block, "it is no page of postings") };
            if let Some((cells, pages)) = sizes.get_mut((key >> 32) as usize) {
                *cells += len;
                *pages += 1;
            }
        }
    }
    Ok(sizes)
}

fn column_name(index: Index, column: usize) -> String {
    // SAFETY: the index is open and has that column; the server frees the text.
    unsafe {
        let name = pg_sys::get_attname((*index.relation()).rd_id, column as i16 + 1, false);
        std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

sql_function!(pg_finfo_ironbloom_segments);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_segments(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL.
    let oid = unsafe { index_of(call) };
    let rows = with_index(oid, For::Readers, pg_sys::AccessShareLock, |_, index| {
        let row = |segment: &crate::meta::Segment| {
            vec![
                number(segment.owner.into()),
                number(segment.first.into()),
                number(segment.span.into()),
                number(segment.cells),
                number(segment.pages.into()),
            ]
        };
        index.meta().segments.iter().map(row).collect()
    });
    // SAFETY: declared so in SQL, with these columns.
    unsafe { return_rows(call, rows) }
}

sql_function!(pg_finfo_ironbloom_seal);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_seal(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL.
    let oid = unsafe { index_of(call) };
    // SAFETY: a flag in shared memory.
    if unsafe { pg_sys::RecoveryInProgress() } {
        fail(
            PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "an index cannot be sealed during recovery: its primary does it".into(),
        );
    }
    // As weak as that of an insert: whoever waited for a stronger one with a snapshot would block concurrent builds.
    with_index(oid, For::Maintainers, pg_sys::RowExclusiveLock, |heap, index| {
        // SAFETY: both are open.
        unsafe { Maintained::new(heap, index) }.tidy();
    });
    pg_sys::Datum::null()
}
