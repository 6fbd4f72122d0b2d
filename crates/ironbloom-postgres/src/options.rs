//! `with (selectivity = 10)`, and `column operator_class (selectivity = 14)` for one that deserves more.

use std::sync::atomic::{AtomicU32, Ordering};

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::sql_function;
use crate::storage::Index;

/// A page without a value is named once in 2^10.
const DEFAULT: i32 = 10;
const LEAST: i32 = 1;
const MOST: i32 = 20;
/// Of a column: as the index has it.
const UNSET: i32 = 0;
const DESCRIPTION: &std::ffi::CStr = c"A page without the value is named once in two to this power; a cell takes about two bits more";
const NAME: &std::ffi::CStr = c"selectivity";

/// The kind of our options, which the server numbers.
static KIND: AtomicU32 = AtomicU32::new(0);

/// As the server keeps them.
#[repr(C)]
struct Options {
    length: i32,
    selectivity: i32,
}

pub(crate) fn register() {
    // SAFETY: once in each process, while the library is loaded.
    unsafe {
        let kind = pg_sys::add_reloption_kind();
        KIND.store(kind, Ordering::Relaxed);
        let lock = pg_sys::AccessExclusiveLock as i32;
        pg_sys::add_int_reloption(
            kind,
            NAME.as_ptr(),
            DESCRIPTION.as_ptr(),
            DEFAULT,
            LEAST,
            MOST,
            lock,
        );
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn options(
    options: pg_sys::Datum,
    validate: bool,
) -> *mut pg_sys::bytea {
    #[allow(clippy::needless_update, reason = "some versions have a field more")]
    let element = pg_sys::relopt_parse_elt {
        optname: NAME.as_ptr(),
        opttype: pg_sys::relopt_type::RELOPT_TYPE_INT,
        offset: std::mem::offset_of!(Options, selectivity) as i32,
        ..Default::default()
    };
    // SAFETY: the element describes a field of the structure of that size.
    unsafe {
        let kind = KIND.load(Ordering::Relaxed);
        pg_sys::build_reloptions(options, validate, kind, size_of::<Options>(), &element, 1).cast()
    }
}

sql_function!(pg_finfo_ironbloom_options);

/// `ironbloom_options(internal)`: what operator classes accept.
#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_options(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the server passes the options to be filled in.
    unsafe {
        let options: *mut pg_sys::local_relopts = (*call).args.as_ptr().read().value.cast_mut_ptr();
        pg_sys::init_local_reloptions(options, size_of::<Options>());
        let offset = std::mem::offset_of!(Options, selectivity) as i32;
        pg_sys::add_local_int_reloption(
            options,
            NAME.as_ptr(),
            DESCRIPTION.as_ptr(),
            UNSET,
            LEAST,
            MOST,
            offset,
        );
    }
    pg_sys::Datum::null()
}

/// The selectivity of a column: its own, or that of the index.
pub(crate) fn selectivity(index: Index, column: usize) -> u32 {
    let relation = index.relation();
    // SAFETY: the index is open; its options are the structures that the server has made for them.
    unsafe {
        let read = |options: *mut pg_sys::bytea| {
            options.cast::<Options>().as_ref().map(|options| options.selectivity)
        };
        let of_columns = pg_sys::RelationGetIndexAttOptions(relation, false);
        let own = if of_columns.is_null() { None } else { read(*of_columns.add(column)) };
        let own = own.filter(|&selectivity| selectivity != UNSET);
        own.or_else(|| read((*relation).rd_options)).unwrap_or(DEFAULT) as u32
    }
}
