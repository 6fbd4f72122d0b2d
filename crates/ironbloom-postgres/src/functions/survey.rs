//! `ironbloom_status`, which the view `ironbloom_indexes` asks about every index, and `ironbloom_verify`, a check that goes on: in
//! both an error is something to report, since one damaged index must not hide the others. For the same reason, the first waits for no lock.

use std::cell::Cell;

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use super::arguments::{For, argument, return_rows, text, with_index_if_free};
use super::info::{State, index_of, number};
use super::{check, info};
use crate::attempt::{self, attempt};
use crate::maintain::{LONG_PENDING, Maintained, SHORT_TAIL};
use crate::sql_function;

/// More segments than VACUUM ever leaves.
const MANY_SEGMENTS: u32 = 32;
/// Free pages that are worth a rebuild, if they are half of the index.
const MANY_FREE: u32 = 1024;

/// What to do about an index; nothing in most cases.
fn advice(state: &State) -> Option<String> {
    let State { tail, pending_pages, segments, pages, free, drift, changed, .. } = *state;
    if let Some(column) = changed {
        return Some(format!(
            "REINDEX: a row type in column {} was changed after the index was built, so queries do without it for this column",
            column + 1
        ));
    }
    if tail > 2 * SHORT_TAIL {
        return Some(format!(
            "VACUUM: every query reads its tail of {tail} pages, unless a load is running"
        ));
    }
    if pending_pages >= 2 * LONG_PENDING {
        return Some(format!(
            "VACUUM: every query reads {pending_pages} pages of rows that came to old pages"
        ));
    }
    if segments > MANY_SEGMENTS {
        return Some(format!("VACUUM: it has {segments} segments, which are merged then"));
    }
    if drift > 2.0 {
        return Some(format!(
            "REINDEX: a page of the table has {drift:.1} times as many different values as when it was built, so queries read more pages than they should"
        ));
    }
    if free > MANY_FREE && free > pages / 2 {
        return Some(format!("REINDEX: {free} of its {pages} pages are free"));
    }
    None
}

fn is_valid(index: crate::storage::Index) -> bool {
    // SAFETY: an open index has a row of pg_index.
    unsafe { (*(*index.relation()).rd_index).indisvalid }
}

sql_function!(pg_finfo_ironbloom_status);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_status(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL.
    let oid = unsafe { index_of(call) };
    For::Readers.require_for(oid);
    let sizes = Cell::new(None);
    let read = attempt(|| {
        with_index_if_free(oid, For::Readers, pg_sys::AccessShareLock, |heap, index| {
            // SAFETY: both are open.
            let heap_pages = unsafe { Maintained::new(heap, index) }.heap_pages();
            sizes.set(Some((heap_pages, index.pages())));
            is_valid(index).then(|| info::state(heap, index))
        })
    });
    let (state, advice) = match read.map_err(attempt::unless_cancelled) {
        Ok(Some(Some(state))) => {
            let advice = advice(&state);
            (Some(state), advice)
        }
        Ok(Some(None)) => {
            let what = "it is not valid: if no concurrent build is running, REINDEX or drop it";
            (None, Some(what.to_owned()))
        }
        Ok(None) => (None, Some("it is locked by another session: ask again later".to_owned())),
        Err(error) => (None, Some(attempt::message(&error))),
    };
    let (state, sizes) = (state.as_ref(), sizes.get());
    let row = vec![
        sizes.and_then(|(heap, _)| number(heap.into())),
        sizes.and_then(|(_, index)| number(index.into())),
        state.and_then(|state| number(state.tail.into())),
        state.and_then(|state| number(state.pending_rows)),
        state.map(|state| pg_sys::Datum::from(state.segments as i32)),
        state.and_then(|state| number(state.free.into())),
        advice.map(|advice| text(&advice)),
    ];
    // SAFETY: declared so in SQL, with these columns.
    unsafe { return_rows(call, vec![row]) }
}

sql_function!(pg_finfo_ironbloom_verify);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_verify(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL: a regclass and a boolean, and strict.
    let (oid, deep) = unsafe {
        (index_of(call), argument(call, 1).is_some_and(|datum| datum.value() as u8 != 0))
    };
    let checked = attempt(|| check::check_index(oid, deep)).map_err(attempt::unless_cancelled);
    let row = match checked {
        Ok(cells) => vec![number(cells), None],
        Err(error) => vec![None, Some(text(&attempt::message(&error)))],
    };
    // SAFETY: declared so in SQL, with these columns.
    unsafe { return_rows(call, vec![row]) }
}
