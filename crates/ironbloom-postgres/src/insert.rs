//! A new row: nearly nothing to do.
//!
//! On a page of the tail nothing is written. If the tail has become long, the insert seals it; what is left of a load is
//! sealed when its transaction commits, so that queries right after it find a short tail. An index whose sealing runs code of
//! users is sealed by inserts and VACUUM only.

use std::cell::RefCell;

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::attempt::{self, attempt};
use crate::functions::name_of;
use crate::hashing::Hasher;
use crate::maintain::{LONG_PENDING, LONG_TAIL, Maintained, SHORT_TAIL};
use crate::meta::NULL;
use crate::pending::{self, Noted};
use crate::shape;
use crate::storage::Index;

thread_local! {
    /// Indexes whose tail may be worth sealing at the end of this transaction. Which pages that are is seen then: the table
    /// may have been truncated or rewritten.
    static TAILS: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
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
    if !matches!(event, Event::XACT_EVENT_PRE_COMMIT | Event::XACT_EVENT_PRE_PREPARE) {
        return;
    }
    for oid in tails {
        // SAFETY: the transaction still runs. Whatever happens in there, it commits.
        if let Err(error) = attempt(|| unsafe { seal_tail(oid) }) {
            attempt::warn(&name_of(oid), &error);
        }
    }
}

/// Waits for nothing: whoever has locked the table or the index against writers leaves nothing to be sealed, or will do so.
///
/// Runs no code of users: the server has closed the transaction's cursors, and foreign servers have committed theirs. What such
/// code opened now would outlive the transaction.
///
/// # Safety
///
/// Inside a transaction, and in a subtransaction of it: locks are left to its end.
unsafe fn seal_tail(oid: pg_sys::Oid) {
    const LOCK: i32 = pg_sys::RowExclusiveLock as i32;
    const UNLOCKED: i32 = pg_sys::NoLock as i32;
    // SAFETY: relations are closed when they have been used. An index that was dropped meanwhile is left alone.
    unsafe {
        let heap_oid = pg_sys::IndexGetRelation(oid, true);
        let is_locked = |oid| pg_sys::ConditionalLockRelationOid(oid, LOCK);
        if heap_oid == pg_sys::InvalidOid || !is_locked(heap_oid) || !is_locked(oid) {
            return;
        }
        let heap = pg_sys::try_relation_open(heap_oid, UNLOCKED);
        if heap.is_null() {
            return;
        }
        let index = pg_sys::try_relation_open(oid, UNLOCKED);
        if !index.is_null() && !shape::runs_code_of_users(Index::new(index)) {
            // Values that are stored out of line are read under a snapshot.
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            Maintained::new(heap, Index::new(index)).at_commit();
            pg_sys::PopActiveSnapshot();
        }
        if !index.is_null() {
            pg_sys::relation_close(index, UNLOCKED);
        }
        pg_sys::relation_close(heap, UNLOCKED);
    }
}

/// Tells the server that serializable transactions which have read the index have not read this row. It has been told before
/// the row was noted; but a scan that begins in between finds nothing, in the index or on the page.
///
/// # Safety
///
/// The index is open.
unsafe fn check_readers(index: pg_sys::Relation) {
    unsafe extern "C-unwind" {
        fn CheckForSerializableConflictIn(
            relation: pg_sys::Relation,
            row: pg_sys::ItemPointer,
            block: pg_sys::BlockNumber,
        );
    }
    const ALL: u32 = u32::MAX;
    // SAFETY: the caller's promise; without a row and a block it is about the whole index, as scans lock it.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            CheckForSerializableConflictIn(index, std::ptr::null_mut(), ALL);
        });
    }
}

fn remember(oid: pg_sys::Oid) {
    TAILS.with_borrow_mut(|tails| {
        if !tails.contains(&oid) {
            tails.push(oid);
        }
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
            let mut hashers = [const { None }; pg_sys::INDEX_MAX_KEYS as usize];
            for (column, hasher) in hashers[..columns].iter_mut().enumerate() {
                *hasher = (!*nulls.add(column)).then(|| Hasher::to_note(index, column));
            }
            let to = hashes.as_mut_ptr();
            // One guard for all of them: nothing in there is dropped or panics.
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                for column in 0..columns {
                    if let Some(hasher) = &*hashers.as_ptr().add(column) {
                        *to.add(column) = hasher.hash(*values.add(column));
                    }
                }
            });
            let noted = pending::note(index, block, &hashes[..columns]);
            check_readers(relation);
            noted
        };
        let maintained = Maintained::new(heap, index);
        match noted {
            Noted::Tail { sealed } if block - sealed >= LONG_TAIL => maintained.after_insert(block),
            Noted::Tail { sealed } if block - sealed >= SHORT_TAIL => remember((*relation).rd_id),
            Noted::Pending { pages } if pages >= LONG_PENDING => maintained.after_insert(block),
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
