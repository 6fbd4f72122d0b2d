//! An index access method for PostgreSQL: `create index … using ironbloom (any, columns)`.
//!
//! ```text
//! handler.rs    what the server asks of an access method           sql/       the objects in SQL, written by hand
//! build.rs      CREATE INDEX       insert.rs    a row              vacuum.rs  VACUUM, and the check of concurrent builds
//! scan.rs       a query's pages    cost.rs      what that costs    options.rs selectivity
//! narrow.rs     of these pages, the rows that may be wanted      sift.rs   a first look at columns of integers
//!     │
//! maintain.rs   seal the tail, flush the pending list, merge segments: one process at a time
//! attempt.rs    maintenance that may fail without failing a statement               owner.rs     as whom users' code runs
//! heap.rs       heap page -> hashes of its rows, whatever their visibility            hashing.rs   datum -> hash
//! folding.rs    types that the server does not hash as it compares them               shape.rs     row types that have changed since
//! layout.rs     where values are in a row that need no unpacking
//! cells.rs      hashes -> sorted entries of each column, on disk if they are too many              memory.rs    memory for that, in large pages
//! segment/      entries in pages under a directory: write.rs, find.rs, merge.rs       pending.rs   rows on sealed pages
//! meta.rs       what the index consists of         marks.rs  what an insert needs of it          page.rs   a page that can be judged by itself
//! storage.rs    pages in buffers, and the log      progress.rs  how far it is, for others to see
//! functions/    ironbloom_info, ironbloom_check, ironbloom_seal; filters in SQL
//! ```
//!
//! An entry says "this bucket of this column occurs on this heap page". Queries get pages, and the server rechecks their
//! rows: nothing is ever wrong, and dead rows need no deleting.

extern crate self as pgrx;

/// The server's functions and types, as the macro for guarded functions expects them.
#[doc(hidden)]
pub use pgrx_pg_sys as pg_sys;

mod attempt;
mod build;
mod cells;
mod cost;
mod folding;
mod functions;
mod handler;
mod hashing;
mod heap;
mod insert;
mod layout;
mod maintain;
mod marks;
mod memory;
mod meta;
mod narrow;
mod options;
mod owner;
mod page;
mod pending;
mod progress;
mod scan;
mod segment;
mod shape;
mod sift;
mod storage;
mod vacuum;

/// Which server this library is for.
///
/// # Safety
///
/// Called by the server, when it loads the library.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn Pg_magic_func() -> *const MagicBytes {
    &raw const MAGIC.0
}

/// As `Pg_magic_struct` of this version of the server.
#[doc(hidden)]
pub type MagicBytes = pg_sys::Pg_magic_struct;

struct Magic(MagicBytes);

// SAFETY: it is constant; a pointer in it is to constants.
unsafe impl Sync for Magic {}

#[cfg(not(any(feature = "pg13", feature = "pg14")))]
const fn abi_extra() -> [std::ffi::c_char; 32] {
    let (name, mut extra, mut i) = (b"PostgreSQL", [0; 32], 0);
    while i < name.len() {
        extra[i] = name[i] as std::ffi::c_char;
        i += 1;
    }
    extra
}

#[cfg(not(feature = "pg18"))]
static MAGIC: Magic = Magic(pg_sys::Pg_magic_struct {
    len: size_of::<pg_sys::Pg_magic_struct>() as i32,
    version: pg_sys::PG_VERSION_NUM as i32 / 100,
    funcmaxargs: pg_sys::FUNC_MAX_ARGS as i32,
    indexmaxkeys: pg_sys::INDEX_MAX_KEYS as i32,
    namedatalen: pg_sys::NAMEDATALEN as i32,
    float8byval: cfg!(target_pointer_width = "64") as i32,
    #[cfg(not(any(feature = "pg13", feature = "pg14")))]
    abi_extra: abi_extra(),
});

#[cfg(feature = "pg18")]
static MAGIC: Magic = Magic(pg_sys::Pg_magic_struct {
    len: size_of::<pg_sys::Pg_magic_struct>() as i32,
    abi_fields: pg_sys::Pg_abi_values {
        version: pg_sys::PG_VERSION_NUM as i32 / 100,
        funcmaxargs: pg_sys::FUNC_MAX_ARGS as i32,
        indexmaxkeys: pg_sys::INDEX_MAX_KEYS as i32,
        namedatalen: pg_sys::NAMEDATALEN as i32,
        float8byval: cfg!(target_pointer_width = "64") as i32,
        abi_extra: abi_extra(),
    },
    name: c"ironbloom".as_ptr(),
    version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
});

/// What happens once in each process of the server.
///
/// # Safety
///
/// Called by the server, when it has loaded the library.
#[pgrx_macros::pg_guard]
pub unsafe extern "C-unwind" fn _PG_init() {
    pg_sys::panic::register_pg_guard_panic_hook();
    options::register();
    insert::register();
    functions::deep::register();
}

/// Declares that a function can be called from SQL.
macro_rules! sql_function {
    ($info:ident) => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        extern "C-unwind" fn $info() -> *const $crate::pg_sys::Pg_finfo_record {
            const V1: $crate::pg_sys::Pg_finfo_record =
                $crate::pg_sys::Pg_finfo_record { api_version: 1 };
            &V1
        }
    };
}
pub(crate) use sql_function;

/// Lets the user interrupt a long loop.
pub(crate) fn check_interrupts() {
    pg_sys::check_for_interrupts!();
}
