//! CREATE INDEX and REINDEX.
//!
//! A build is a sealing of the whole table. Built concurrently, the index starts empty, with all of the table as its tail:
//! the sealing is left to the check at the end (`vacuum.rs`), which the server makes anyway.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use crate::folding;
use crate::maintain::Maintained;
use crate::meta::Meta;
use crate::options;
use crate::shape;
use crate::storage::Index;

/// Ends the statement if the table is not of the server's own kind: pages are read directly.
fn require_heap(heap: pg_sys::Relation) {
    // SAFETY: an open relation has a row of pg_class.
    let kind = unsafe { (*(*heap).rd_rel).relam };
    if u32::from(kind) != pg_sys::HEAP_TABLE_AM_OID.into() {
        pg_sys::ereport!(
            ERROR,
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "ironbloom indexes need a table of the access method heap"
        );
    }
}

fn empty(index: Index) -> Meta {
    folding::require_sound(index);
    Meta::new(
        (0..index.columns())
            .map(|column| (options::selectivity(index, column), shape::now(index, column))),
    )
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn build(
    heap: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    require_heap(heap);
    // SAFETY: the server has opened both, and the result is its own to free.
    unsafe {
        let index = Index::new(index);
        index.create(&empty(index));
        let maintained = Maintained::new(heap, index);
        let result: *mut pg_sys::IndexBuildResult =
            pg_sys::palloc0(size_of::<pg_sys::IndexBuildResult>()).cast();
        if (*info).ii_Concurrent {
            // What the server knows already.
            (*result).heap_tuples = f64::from((*(*heap).rd_rel).reltuples);
            (*result).index_tuples = (*result).heap_tuples.max(0.0);
            return result;
        }
        let seen = maintained.seal_all(&mut |_, _| {});
        (*result).heap_tuples = seen.live as f64;
        (*result).index_tuples = seen.rows as f64;
        result
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn build_empty(index: pg_sys::Relation) {
    // SAFETY: the server has opened it.
    let index = unsafe { Index::new(index) };
    index.create_initial(&empty(index));
}
