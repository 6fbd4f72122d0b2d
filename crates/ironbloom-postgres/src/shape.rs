//! The row types within a column: which attributes they have, compared with those that they had when the index was built.
//!
//! `alter type … add attribute` and `drop attribute`, and the same of a table whose rows are values elsewhere, change how the server
//! hashes rows that are stored, and tell no index. So the meta page has a number for each column that follows from the attributes of
//! all row types inside of it: those of arrays, ranges, domains and other rows, too. As long as it differs from that of today, the index knows nothing
//! about the column: conditions on it rule out no page, and its values are not hashed, which the server might not even be able to.
//!
//! ```text
//! alter type   commits, tells all processes ─► others hash by the new attributes, and change the pages of the index
//! scan         reads the meta page ─► hears what it was told ─► compares ─► hashes ─► compares ─► reads the pages that were named
//! ```
//!
//! So whoever reads a page with new hashes, of rows that it can see, has heard of the new attributes before. If the meta page is read
//! again, everything else is, too. A change that is rolled back leaves what the same transaction has sealed: so whoever seals rows with
//! such a column notes in the meta page that the column is lost.

use std::ffi::CStr;

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::ErrorReport;
use xxhash_rust::xxh3::xxh3_64;

use crate::folding::{attribute, column_type};
use crate::hashing::HASH_PROC;
use crate::meta::Meta;
use crate::storage::Index;

/// Of a column without rows inside: no type can get any later.
pub(crate) const NO_ROWS: u64 = 0;

/// Of a column with row types that had changed when rows were sealed, until the index is built again. The change may be rolled back,
/// what was written stays.
pub(crate) const LOST: u64 = u64::MAX;

/// Describes the row types inside of a type.
///
/// Numbers of types and attributes are the same after an upgrade of the server, those of collations are not: their names are taken.
fn describe(kind: pg_sys::Oid, to: &mut Vec<u8>) {
    // SAFETY: looks into the catalogue; the description of a row type is a copy.
    unsafe {
        pg_sys::check_stack_depth();
        let kind = pg_sys::getBaseType(kind);
        let element = pg_sys::get_element_type(kind);
        if element != pg_sys::InvalidOid {
            return describe(element, to);
        }
        match pg_sys::get_typtype(kind) as u8 {
            pg_sys::TYPTYPE_RANGE => describe(pg_sys::get_range_subtype(kind), to),
            #[cfg(not(feature = "pg13"))]
            pg_sys::TYPTYPE_MULTIRANGE => describe(pg_sys::get_multirange_range(kind), to),
            pg_sys::TYPTYPE_COMPOSITE => {
                let row = pg_sys::lookup_rowtype_tupdesc_copy(kind, -1);
                to.push(b'(');
                for i in 0..(*row).natts as usize {
                    let column = attribute(row, i);
                    if !column.attisdropped {
                        to.extend_from_slice(&column.attnum.to_le_bytes());
                        to.extend_from_slice(&u32::from(column.atttypid).to_le_bytes());
                        let collation = pg_sys::get_collation_name(column.attcollation);
                        if !collation.is_null() {
                            to.extend_from_slice(CStr::from_ptr(collation).to_bytes_with_nul());
                        }
                        describe(column.atttypid, to);
                    }
                }
                to.push(b')');
                pg_sys::FreeTupleDesc(row);
            }
            _ => {}
        }
    }
}

/// Whether reading rows to seal them may run code of users: index expressions, a predicate, or a hash function that is not
/// written in C. Such code is kept out of places where the server expects none: the end of a transaction, where its own work
/// for cursors and foreign servers is done already, and VACUUM beside parallel workers, where an error cannot be caught.
pub(crate) fn runs_code_of_users(index: Index) -> bool {
    let hashes = |column: usize| {
        // SAFETY: the index is open and has that column.
        let function =
            unsafe { pg_sys::index_getprocid(index.relation(), column as i16 + 1, HASH_PROC) };
        is_code_of_users(function) || is_hashed_by_users(column_type(index, column))
    };
    index.has_expressions() || (0..index.columns()).any(hashes)
}

/// Whether a function is written in another language than C, which only superusers can use.
fn is_code_of_users(function: pg_sys::Oid) -> bool {
    const PROC: i32 = pg_sys::SysCacheIdentifier::PROCOID as i32;
    const LANGUAGE: i16 = pg_sys::Anum_pg_proc_prolang as i16;
    /// The server's languages `internal` and `c`.
    const IN_C: [usize; 2] = [12, 13];
    if u32::from(function) < pg_sys::FirstNormalObjectId {
        return false;
    }
    // SAFETY: looks into the catalogue, and keeps nothing of the row.
    unsafe {
        let row = pg_sys::SearchSysCache1(PROC, function.into());
        if row.is_null() {
            return true;
        }
        let mut null = false;
        let language = pg_sys::SysCacheGetAttr(PROC, row, LANGUAGE, &mut null).value();
        pg_sys::ReleaseSysCache(row);
        !IN_C.contains(&language)
    }
}

/// Whether hashing values of a type calls code of users: the server hashes arrays, ranges and rows by the hash functions of
/// the values inside.
fn is_hashed_by_users(kind: pg_sys::Oid) -> bool {
    const WANTED: i32 = pg_sys::TYPECACHE_HASH_EXTENDED_PROC as i32;
    // SAFETY: looks into the catalogue; entries of the type cache stay, and the description of a row type is a copy.
    unsafe {
        pg_sys::check_stack_depth();
        let kind = pg_sys::getBaseType(kind);
        let function = (*pg_sys::lookup_type_cache(kind, WANTED)).hash_extended_proc;
        if function != pg_sys::InvalidOid && is_code_of_users(function) {
            return true;
        }
        let element = pg_sys::get_element_type(kind);
        if element != pg_sys::InvalidOid {
            return is_hashed_by_users(element);
        }
        match pg_sys::get_typtype(kind) as u8 {
            pg_sys::TYPTYPE_RANGE => is_hashed_by_users(pg_sys::get_range_subtype(kind)),
            #[cfg(not(feature = "pg13"))]
            pg_sys::TYPTYPE_MULTIRANGE => is_hashed_by_users(pg_sys::get_multirange_range(kind)),
            pg_sys::TYPTYPE_COMPOSITE => {
                let row = pg_sys::lookup_rowtype_tupdesc_copy(kind, -1);
                let by_users = (0..(*row).natts as usize)
                    .map(|i| attribute(row, i))
                    .any(|column| !column.attisdropped && is_hashed_by_users(column.atttypid));
                pg_sys::FreeTupleDesc(row);
                by_users
            }
            _ => false,
        }
    }
}

/// The number of a column as its types are now.
pub(crate) fn now(index: Index, column: usize) -> u64 {
    let mut described = Vec::new();
    describe(column_type(index, column), &mut described);
    match described.is_empty() {
        true => NO_ROWS,
        false => xxh3_64(&described).clamp(NO_ROWS + 1, LOST - 1),
    }
}

/// Whether row types inside of a column are others than when the index was built, or may be.
pub(crate) fn has_changed(index: Index, meta: &Meta, column: usize) -> bool {
    match meta.shapes.get(column) {
        Some(&NO_ROWS) => false,
        Some(&before) => before != now(index, column),
        // Built by an earlier version, which did not note it.
        None => now(index, column) != NO_ROWS,
    }
}

/// The columns that the index knows nothing about any more, from 0.
pub(crate) fn changed_columns(index: Index, meta: &Meta) -> Vec<usize> {
    (0..index.columns()).filter(|&column| has_changed(index, meta, column)).collect()
}

/// Hashes values of a column by the attributes that its types had when the index was built; `None` if they have others now.
/// The meta page has been read before, and pages are read afterwards.
pub(crate) fn unless_changed<T>(
    index: Index,
    meta: &Meta,
    column: usize,
    hash: impl FnOnce() -> T,
) -> Option<T> {
    if meta.shapes.get(column) == Some(&NO_ROWS) {
        return Some(hash());
    }
    // SAFETY: inside a transaction, as whenever a relation is opened.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    if has_changed(index, meta, column) {
        return None;
    }
    // Hashing may look into the catalogue, and hear of something then.
    let hashes = hash();
    (!has_changed(index, meta, column)).then_some(hashes)
}

/// What is wrong, and what to do about it.
fn report(index: Index, column: usize) -> ErrorReport {
    let message = format!(
        "a row type in column {} of index \"{}\" was changed after the index was built",
        column + 1,
        index.name()
    );
    ErrorReport::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message, "ironbloom")
        .set_hint(
            "Queries find everything, but without the index for this column. Please REINDEX it.",
        )
}

/// Tells the user why queries are slow.
pub(crate) fn warn(index: Index, column: usize) {
    report(index, column).report(pg_sys::elog::PgLogLevel::WARNING);
}

/// Ends the statement if the index cannot be used for all its columns.
pub(crate) fn require_unchanged(index: Index) {
    if let Some(&column) = changed_columns(index, &index.meta()).first() {
        report(index, column).report(pg_sys::elog::PgLogLevel::ERROR);
    }
}
