//! Types whose equal values the server itself does not always hash equally.
//!
//! Under a collation that is nondeterministic, texts that differ in case or accents may be equal. The server's hash function of
//! `text` respects that. Those of `char(n)` and `name` do not: the one hashes the padding as well, the other all bytes. For
//! columns of these two, and for values that are compared with them, `hashing.rs` makes a text of the value first. Within
//! arrays, ranges and rows it is the server that calls those functions: there such an index is refused.

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

/// # Safety
///
/// The descriptor has that attribute.
unsafe fn attribute<'a>(
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

/// The type and the collation of a column of an index.
fn column(index: Index, column: usize) -> (pg_sys::Oid, pg_sys::Oid) {
    let relation = index.relation();
    // SAFETY: the index is open and has that column.
    unsafe {
        let kind = attribute((*relation).rd_att, column).atttypid;
        (kind, *(*relation).rd_indcollation.add(column))
    }
}

/// Whether a column's hashes are others since they respect its collation.
pub(crate) fn has_changed(index: Index) -> bool {
    (0..index.columns()).map(|i| column(index, i)).any(|(kind, by)| is_hashed_wrongly(kind, by))
}

/// Ends the statement if equal values of a column might have different hashes.
pub(crate) fn require_sound(index: Index) {
    for i in 0..index.columns() {
        let (kind, collation) = column(index, i);
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
