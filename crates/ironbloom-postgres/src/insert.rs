//! A new row: nearly nothing to do.
//!
//! On a page of the tail nothing is written. If the tail has become long, the insert seals it; what is left of a load is
//! sealed when its transaction commits, so that queries right after it find a short tail.

use std::cell::RefCell;

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::hashing::Hasher;
use crate::maintain::{LONG_PENDING, LONG_TAIL, Maintained, SHORT_TAIL};
use crate::meta::NULL;
use crate::pending::{self, Noted};
use crate::storage::Index;

thread_local! {
    /// Indexes whose tail should be sealed at the end of this transaction, and the heap page up to which.
    static TAILS: RefCell<Vec<(pg_sys::Oid, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Has the server call us at the end of transactions.
pub(crate) fn register() {
    // SAFETY: the function stays loaded as long as the process lives.
    unsafe { pg_sys::RegisterXactCallback(Some(at_end), std::ptr::null_mut()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn at_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent as Event;
    let tails = TAILS.with_borrow_mut(std::mem::take);
    if tails.is_empty()
        || (event != Event::XACT_EVENT_PRE_COMMIT && event != Event::XACT_EVENT_PRE_PREPARE)
    {
        return;
    }
    for (oid, block) in tails {
        // SAFETY: the transaction still runs, and has locked what it has inserted into.
        unsafe { seal_tail(oid, block) };
    }
}

/// # Safety
///
/// Inside a transaction.
unsafe fn seal_tail(oid: pg_sys::Oid, block: u32) {
    const LOCK: i32 = pg_sys::RowExclusiveLock as i32;
    // SAFETY: relations are closed when they have been used. An index that was dropped meanwhile is left alone.
    unsafe {
        let heap_oid = pg_sys::IndexGetRelation(oid, true);
        if heap_oid == pg_sys::InvalidOid {
            return;
        }
        let heap = pg_sys::try_relation_open(heap_oid, LOCK);
        if heap.is_null() {
            return;
        }
        let index = pg_sys::try_relation_open(oid, LOCK);
        if !index.is_null() {
            // Expressions may look at tables.
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            Maintained::new(heap, Index::new(index)).after_insert(block, SHORT_TAIL);
            pg_sys::PopActiveSnapshot();
            pg_sys::relation_close(index, LOCK);
        }
        pg_sys::relation_close(heap, LOCK);
    }
}

fn remember(oid: pg_sys::Oid, block: u32) {
    TAILS.with_borrow_mut(|tails| match tails.iter_mut().find(|(known, _)| *known == oid) {
        Some((_, last)) => *last = (*last).max(block),
        None => tails.push((oid, block)),
    });
}

/// # Safety
///
/// As the server calls it.
unsafe fn insert(
    relation: pg_sys::Relation,
    values: *const pg_sys::Datum,
    nulls: *const bool,
    row: pg_sys::ItemPointer,
    heap: pg_sys::Relation,
) {
    // SAFETY: the server has opened both; values and nulls are those of all columns.
    unsafe {
        let index = Index::new(relation);
        let id = (*row).ip_blkid;
        let block = u32::from(id.bi_hi) << 16 | u32::from(id.bi_lo);
        let marks = index.marks();
        let noted = if block >= marks.noted {
            Noted::Tail { sealed: marks.sealed }
        } else {
            let mut hashes = [NULL; pg_sys::INDEX_MAX_KEYS as usize];
            let columns = index.columns();
            for (column, hash) in hashes[..columns].iter_mut().enumerate() {
                if !*nulls.add(column) {
                    *hash = Hasher::of_column(index, column).hash_guarded(*values.add(column));
                }
            }
            pending::note(index, block, &hashes[..columns])
        };
        let maintained = Maintained::new(heap, index);
        match noted {
            Noted::Tail { sealed } if block - sealed >= LONG_TAIL => {
                maintained.after_insert(block, LONG_TAIL)
            }
            Noted::Tail { sealed } if block - sealed >= SHORT_TAIL => {
                remember((*relation).rd_id, block)
            }
            Noted::Pending { pages } if pages >= LONG_PENDING => {
                maintained.after_insert(block, LONG_TAIL)
            }
            Noted::Tail { .. } | Noted::Pending { .. } => {}
        }
    }
}

#[cfg(not(feature = "pg13"))]
#[pg_guard]
#[expect(clippy::too_many_arguments, reason = "as the server calls it")]
pub(crate) unsafe extern "C-unwind" fn am_insert(
    index: pg_sys::Relation,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    row: pg_sys::ItemPointer,
    heap: pg_sys::Relation,
    _unique: pg_sys::IndexUniqueCheck::Type,
    _unchanged: bool,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    // SAFETY: the server's own arguments.
    unsafe { insert(index, values, nulls, row, heap) };
    false
}

#[cfg(feature = "pg13")]
#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn am_insert(
    index: pg_sys::Relation,
    values: *mut pg_sys::Datum,
    nulls: *mut bool,
    row: pg_sys::ItemPointer,
    heap: pg_sys::Relation,
    _unique: pg_sys::IndexUniqueCheck::Type,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    // SAFETY: the server's own arguments.
    unsafe { insert(index, values, nulls, row, heap) };
    false
}
