//! Types whose equal values the server itself does not always hash equally.
//!
//! Under a collation that is nondeterministic, texts that differ in case or accents may be equal. The server's hash function of
//! `text` respects that. Those of `char(n)` and `name` do not: the one hashes the padding as well, the other all bytes. For
//! columns of these two, and for values that are compared with them, `hashing.rs` makes a text of the value first. Within
//! arrays, ranges and rows it is the server that calls those functions: there such an index is refused.
//!
//! A range may compare its bounds by another operator class than the default one of their type, by which the server hashes
//! them, and the elements of an array or a row may have no hash function at all: such an index is refused as well.

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::ErrorReport;

use crate::storage::Index;

/// Whether different texts can be equal under it.
pub(crate) fn is_nondeterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: looks into the catalogue.
    collation != pg_sys::InvalidOid && unsafe { !pg_sys::get_collation_isdeterministic(collation) }
}

fn is_padded_or_name(kind: pg_sys::Oid) -> bool {
    kind == pg_sys::BPCHAROID || kind == pg_sys::NAMEOID
}

/// Whether a type is or contains one that the server hashes wrongly under such a collation.
fn is_hashed_wrongly(kind: pg_sys::Oid, collation: pg_sys::Oid) -> bool {
    // SAFETY: looks into the catalogue; the description of a row type is a copy.
    unsafe {
        pg_sys::check_stack_depth();
        let kind = pg_sys::getBaseType(kind);
        if is_padded_or_name(kind) {
            return is_nondeterministic(collation);
        }
        let element = pg_sys::get_element_type(kind);
        if element != pg_sys::InvalidOid {
            return is_hashed_wrongly(element, collation);
        }
        match pg_sys::get_typtype(kind) as u8 {
            pg_sys::TYPTYPE_RANGE => is_hashed_wrongly(
                pg_sys::get_range_subtype(kind),
                pg_sys::get_range_collation(kind),
            ),
            #[cfg(not(feature = "pg13"))]
            pg_sys::TYPTYPE_MULTIRANGE => {
                is_hashed_wrongly(pg_sys::get_multirange_range(kind), collation)
            }
            pg_sys::TYPTYPE_COMPOSITE => {
                let row = pg_sys::lookup_rowtype_tupdesc_copy(kind, -1);
                (0..(*row).natts as usize).any(|i| {
                    let column = attribute(row, i);
                    !column.attisdropped && is_hashed_wrongly(column.atttypid, column.attcollation)
                })
            }
            _ => false,
        }
    }
}

/// A reason why the server cannot hash values of a type so that equal ones have equal hashes; `None` if it can.
fn unsound_container(kind: pg_sys::Oid) -> Option<&'static str> {
    // SAFETY: looks into the catalogue; entries of the type cache stay, and the description of a row type is a copy.
    unsafe {
        pg_sys::check_stack_depth();
        let kind = pg_sys::getBaseType(kind);
        let element = pg_sys::get_element_type(kind);
        let class = pg_sys::get_typtype(kind) as u8;
        let is_range = class == pg_sys::TYPTYPE_RANGE;
        let is_row = class == pg_sys::TYPTYPE_COMPOSITE;
        #[cfg(not(feature = "pg13"))]
        if class == pg_sys::TYPTYPE_MULTIRANGE {
            return unsound_container(pg_sys::get_multirange_range(kind));
        }
        if element == pg_sys::InvalidOid && !is_range && !is_row {
            return None;
        }
        if is_range {
            let range = pg_sys::lookup_type_cache(kind, pg_sys::TYPECACHE_RANGE_INFO as i32);
            let bound = pg_sys::get_range_subtype(kind);
            let usual = pg_sys::lookup_type_cache(bound, pg_sys::TYPECACHE_CMP_PROC as i32);
            if (*range).rng_cmp_proc_finfo.fn_oid != (*usual).cmp_proc {
                return Some(
                    "a range that compares its bounds by another operator class than that of their hashes",
                );
            }
        }
        let wanted = pg_sys::TYPECACHE_HASH_EXTENDED_PROC as i32;
        if (*pg_sys::lookup_type_cache(kind, wanted)).hash_extended_proc == pg_sys::InvalidOid {
            return Some("an array, range or row of values that have no hash function");
        }
        if is_range {
            return unsound_container(pg_sys::get_range_subtype(kind));
        }
        if element != pg_sys::InvalidOid {
            return unsound_container(element);
        }
        let row = pg_sys::lookup_rowtype_tupdesc_copy(kind, -1);
        (0..(*row).natts as usize)
            .map(|i| attribute(row, i))
            .filter(|column| !column.attisdropped)
            .find_map(|column| unsound_container(column.atttypid))
    }
}

/// # Safety
///
/// The descriptor has that attribute.
pub(crate) unsafe fn attribute<'a>(
    descriptor: pg_sys::TupleDesc,
    i: usize,
) -> &'a pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise.
    #[cfg(not(feature = "pg18"))]
    unsafe {
        &*(*descriptor).attrs.as_ptr().add(i)
    }
    // SAFETY: the same. Attributes follow their short forms, as the server's `TupleDescAttr` has it.
    #[cfg(feature = "pg18")]
    unsafe {
        let short = (*descriptor).compact_attrs.as_ptr();
        let full = short.add((*descriptor).natts as usize).cast::<pg_sys::FormData_pg_attribute>();
        &*full.add(i)
    }
}

/// The type of a column of an index.
pub(crate) fn column_type(index: Index, column: usize) -> pg_sys::Oid {
    // SAFETY: the index is open and has that column.
    unsafe { attribute((*index.relation()).rd_att, column).atttypid }
}

/// The type and the collation of a column of an index.
fn column(index: Index, column: usize) -> (pg_sys::Oid, pg_sys::Oid) {
    // SAFETY: the same.
    let collation = unsafe { *(*index.relation()).rd_indcollation.add(column) };
    (column_type(index, column), collation)
}

/// True if a column's hashes are others since they respect its collation, or if such a column is refused since then.
pub(crate) fn has_changed(index: Index) -> bool {
    (0..index.columns())
        .map(|i| column(index, i))
        .any(|(kind, by)| is_hashed_wrongly(kind, by) || unsound_container(kind).is_some())
}

/// Ends the statement if equal values of a column might have different hashes.
pub(crate) fn require_sound(index: Index) {
    for i in 0..index.columns() {
        let (kind, collation) = column(index, i);
        if let Some(reason) = unsound_container(kind) {
            let message = format!("column {} of index \"{}\" is {reason}", i + 1, index.name());
            ErrorReport::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message, "ironbloom")
                .set_detail("The server does not hash them so that equal values have equal hashes.")
                .set_hint("Index an expression that makes text of the value, or its parts.")
                .report(pg_sys::elog::PgLogLevel::ERROR);
        }
        // SAFETY: looks into the catalogue.
        let base = unsafe { pg_sys::getBaseType(kind) };
        if is_padded_or_name(base) || !is_hashed_wrongly(kind, collation) {
            continue;
        }
        let message = format!(
            "column {} of index \"{}\" has values of type char(n) or name inside of others, under a nondeterministic collation",
            i + 1,
            index.name()
        );
        ErrorReport::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message, "ironbloom")
            .set_detail("The server does not hash them so that equal values have equal hashes.")
            .set_hint("Use text or varchar instead, or a deterministic collation.")
            .report(pg_sys::elog::PgLogLevel::ERROR);
    }
}
