//! Arguments and results of functions in SQL, and the index that one is about.

use std::ffi::{CStr, CString};

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use crate::scan;
use crate::storage::Index;

/// Argument number `i` of a call; `None` if it is null.
///
/// # Safety
///
/// The function has that argument.
pub(super) unsafe fn argument(call: pg_sys::FunctionCallInfo, i: usize) -> Option<pg_sys::Datum> {
    // SAFETY: the caller's promise.
    let argument = unsafe { (*call).args.as_ptr().add(i).read() };
    (!argument.isnull).then_some(argument.value)
}

/// The bytes of a text or bytea.
///
/// # Safety
///
/// The datum is one, and the bytes are used no longer than the current memory context lives.
pub(super) unsafe fn bytes<'a>(datum: pg_sys::Datum) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let (start, len) = varlena(pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr()).cast());
        std::slice::from_raw_parts(start, len)
    }
}

/// Where the bytes of a value of varying length are, and their number.
///
/// # Safety
///
/// The value is neither compressed nor stored elsewhere. Nothing here panics.
pub(crate) unsafe fn varlena(value: *const u8) -> (*const u8, usize) {
    // SAFETY: the caller's promise. A value with a header of one byte says so in its lowest bit.
    unsafe {
        if *value & 1 == 1 {
            (value.add(1), usize::from(*value >> 1).wrapping_sub(1))
        } else {
            (value.add(4), ((value.cast::<u32>().read_unaligned() >> 2) as usize).wrapping_sub(4))
        }
    }
}

/// Bytes as a bytea.
pub(super) fn bytea(bytes: &[u8]) -> pg_sys::Datum {
    // SAFETY: memory of the server, with room for the header and the bytes. The header is the length in the upper 30 bits.
    unsafe {
        let value: *mut u8 = pg_sys::palloc(bytes.len() + 4).cast();
        value.cast::<u32>().write_unaligned(((bytes.len() + 4) as u32) << 2);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.add(4), bytes.len());
        pg_sys::Datum::from(value)
    }
}

/// A text.
pub(super) fn text(text: &str) -> pg_sys::Datum {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the text ends with a zero.
    pg_sys::Datum::from(unsafe { pg_sys::cstring_to_text(text.as_ptr()) })
}

pub(super) fn fail(code: PgSqlErrorCode, message: String) -> ! {
    pg_sys::ereport!(ERROR, code, message);
}

/// Who may call a function about an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// Those who may read the table, and those who watch over all of them.
    Readers,
    /// Those who may VACUUM the table.
    Maintainers,
    /// Those who were granted the function.
    Granted,
}

/// The server's role pg_stat_scan_tables, for monitoring.
const WATCHERS: u32 = 3377;

impl For {
    /// Ends the statement if this user may not. Asked before anything is locked.
    fn require(self, table: pg_sys::Oid) {
        // SAFETY: looks into the catalogue.
        let allowed = unsafe {
            let user = pg_sys::GetUserId();
            let may = |mode: u32| {
                pg_sys::pg_class_aclcheck(table, user, mode as pg_sys::AclMode)
                    == pg_sys::AclResult::ACLCHECK_OK
            };
            match self {
                Self::Granted => true,
                Self::Readers => {
                    may(pg_sys::ACL_SELECT) || pg_sys::has_privs_of_role(user, WATCHERS.into())
                }
                #[cfg(any(feature = "pg17", feature = "pg18"))]
                Self::Maintainers => may(pg_sys::ACL_MAINTAIN),
                #[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
                Self::Maintainers => pg_sys::pg_class_ownercheck(table, user),
                #[cfg(feature = "pg16")]
                Self::Maintainers => {
                    pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, user)
                }
            }
        };
        if !allowed {
            fail(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {}", name_of(table)),
            );
        }
    }

    /// The same for the table of an index; nothing if there is none.
    pub(super) fn require_for(self, index: pg_sys::Oid) {
        // SAFETY: looks into the catalogue.
        let table = unsafe { pg_sys::IndexGetRelation(index, true) };
        if table != pg_sys::InvalidOid {
            self.require(table);
        }
    }
}

fn not_ours(name: &str) -> ! {
    fail(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, format!("\"{name}\" is not an ironbloom index"))
}

/// The name of a relation, for a message; its number if it is gone.
pub(crate) fn name_of(oid: pg_sys::Oid) -> String {
    // SAFETY: looks into the catalogue; the name is copied at once.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        match name.is_null() {
            true => oid.to_string(),
            false => CStr::from_ptr(name).to_string_lossy().into_owned(),
        }
    }
}

/// Calls with an index of ours and its table, both open under this lock.
pub(super) fn with_index<T>(
    oid: pg_sys::Oid,
    who: For,
    lock: u32,
    call: impl FnOnce(pg_sys::Relation, Index) -> T,
) -> T {
    // SAFETY: relations are closed when they have been used; the table is locked before its index, as everywhere.
    unsafe {
        let heap_oid = pg_sys::IndexGetRelation(oid, true);
        if heap_oid == pg_sys::InvalidOid {
            // Not even locked: a table that may not be this user's.
            not_ours(&name_of(oid));
        }
        who.require(heap_oid);
        let heap = pg_sys::table_open(heap_oid, lock as i32);
        let relation = pg_sys::relation_open(oid, lock as i32);
        let name = pg_sys::name_data_to_str(&(*(*relation).rd_rel).relname).to_owned();
        let kind = (*(*relation).rd_rel).relkind as u8;
        if kind == pg_sys::RELKIND_PARTITIONED_INDEX {
            fail(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{name}\" is a partitioned index: please name that of a partition"),
            );
        }
        let routine = (*relation).rd_indam.as_ref();
        let is_ours = routine.is_some_and(|routine| {
            routine
                .amgetbitmap
                .is_some_and(|function| function as usize == scan::get_bitmap as *const () as usize)
        });
        // Between the two, another index may have got the number.
        if !is_ours || (*(*relation).rd_index).indrelid != heap_oid {
            not_ours(&name);
        }
        let result = call(heap, Index::new(relation));
        pg_sys::relation_close(relation, lock as i32);
        pg_sys::table_close(heap, lock as i32);
        result
    }
}

/// The same, unless another session has locked one of them against readers: `None` then, without waiting.
pub(super) fn with_index_if_free<T>(
    oid: pg_sys::Oid,
    who: For,
    lock: u32,
    call: impl FnOnce(pg_sys::Relation, Index) -> T,
) -> Option<T> {
    // SAFETY: looks into the catalogue, and locks what is unlocked below; after an error the server does so.
    unsafe {
        let heap = pg_sys::IndexGetRelation(oid, true);
        if heap != pg_sys::InvalidOid {
            who.require(heap);
            if !pg_sys::ConditionalLockRelationOid(heap, lock as i32) {
                return None;
            }
            if !pg_sys::ConditionalLockRelationOid(oid, lock as i32) {
                pg_sys::UnlockRelationOid(heap, lock as i32);
                return None;
            }
        }
        let result = with_index(oid, who, lock, call);
        pg_sys::UnlockRelationOid(oid, lock as i32);
        pg_sys::UnlockRelationOid(heap, lock as i32);
        Some(result)
    }
}

/// Returns rows from a function that is declared to return a set.
///
/// # Safety
///
/// The call is of such a function, whose columns are these.
pub(super) unsafe fn return_rows(
    call: pg_sys::FunctionCallInfo,
    rows: Vec<Vec<Option<pg_sys::Datum>>>,
) -> pg_sys::Datum {
    // SAFETY: the caller's promise. Rows are kept in the context of the query.
    unsafe {
        let info = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        let materialize = pg_sys::SetFunctionReturnMode::SFRM_Materialize as i32;
        if info.is_null()
            || (*info).type_ != pg_sys::NodeTag::T_ReturnSetInfo
            || (*info).allowedModes & materialize == 0
        {
            fail(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "a set of rows cannot be returned here".into(),
            );
        }
        let mut descriptor = std::ptr::null_mut();
        pg_sys::get_call_result_type(call, std::ptr::null_mut(), &mut descriptor);
        let before = pg_sys::MemoryContextSwitchTo((*(*info).econtext).ecxt_per_query_memory);
        let descriptor = pg_sys::CreateTupleDescCopy(descriptor);
        let store = pg_sys::tuplestore_begin_heap(true, false, pg_sys::work_mem);
        pg_sys::MemoryContextSwitchTo(before);
        for row in rows {
            let mut values: Vec<pg_sys::Datum> =
                row.iter().map(|value| value.unwrap_or(pg_sys::Datum::null())).collect();
            let mut nulls: Vec<bool> = row.iter().map(Option::is_none).collect();
            pg_sys::tuplestore_putvalues(
                store,
                descriptor,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
        }
        (*info).returnMode = materialize as _;
        (*info).setResult = store;
        (*info).setDesc = descriptor;
        (*call).isnull = true;
    }
    pg_sys::Datum::null()
}
