//! What the server asks of an access method.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::{build, cost, functions, insert, options, progress, scan, sql_function, vacuum};

/// Equality is the only question.
const STRATEGIES: u16 = 1;
/// The hash function, and the options of a column.
const SUPPORT: u16 = 2;

sql_function!(pg_finfo_ironbloom_handler);

/// `ironbloom_handler(internal)`: our functions.
#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_handler(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: memory of the server, zeroed: what is not named here is false or absent.
    let routine: &mut pg_sys::IndexAmRoutine =
        unsafe { &mut *pg_sys::palloc0(size_of::<pg_sys::IndexAmRoutine>()).cast() };
    routine.type_ = pg_sys::NodeTag::T_IndexAmRoutine;
    routine.amstrategies = STRATEGIES;
    routine.amsupport = SUPPORT;
    routine.amoptsprocnum = SUPPORT;
    routine.amcanmulticol = true;
    // Any columns: the first need not be among them.
    routine.amoptionalkey = true;
    routine.amsearcharray = true;
    routine.amsearchnulls = true;
    routine.amparallelvacuumoptions = pg_sys::VACUUM_OPTION_NO_PARALLEL as u8;
    // Entries name pages, which updates within a page do not leave.
    #[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
    {
        routine.amsummarizing = true;
    }
    routine.ambuild = Some(build::build);
    routine.ambuildempty = Some(build::build_empty);
    routine.ambuildphasename = Some(progress::phase_name);
    routine.aminsert = Some(insert::am_insert);
    routine.ambulkdelete = Some(vacuum::bulk_delete);
    routine.amvacuumcleanup = Some(vacuum::vacuum_cleanup);
    routine.amcostestimate = Some(cost::estimate);
    routine.amoptions = Some(options::options);
    routine.amvalidate = Some(functions::validate);
    routine.ambeginscan = Some(scan::begin_scan);
    routine.amrescan = Some(scan::rescan);
    routine.amgetbitmap = Some(scan::get_bitmap);
    routine.amendscan = Some(scan::end_scan);
    pg_sys::Datum::from(std::ptr::from_mut(routine))
}
