//! How far a build, a seal or a merge is, in `pg_stat_progress_create_index`.
//!
//! Where the server reports such a command, this adds what it does. Where it reports none, as during an insert, a commit or
//! `ironbloom_seal`, this begins one, which has no name in the view's column `command`. Another command's numbers, as
//! those of COPY or VACUUM, are left alone.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::storage::Index;

/// What is being done. The server's own first phase has number 1.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Scanning = 2,
    Writing = 3,
    Merging = 4,
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn phase_name(phase: i64) -> *mut std::ffi::c_char {
    let name = match phase {
        1 => c"initializing",
        2 => c"scanning table",
        3 => c"sorting and writing",
        4 => c"merging segments",
        _ => return std::ptr::null_mut(),
    };
    name.as_ptr().cast_mut()
}

/// Reports until it is dropped.
pub(crate) struct Progress {
    reports: bool,
    /// Whether the row in the view is ours to end. After an error the server ends it.
    begun: bool,
}

/// Blocks between two reports.
const EVERY: u32 = 64;

impl Progress {
    /// `building` if the server builds or checks an index: then the row in the view is for that.
    pub(crate) fn new(index: Index, building: bool) -> Self {
        let (none, same) = current_command();
        if none && !building {
            begin(index);
        }
        Self { reports: building || none || same, begun: none && !building }
    }

    fn set(&self, what: u32, value: u64) {
        if self.reports {
            // SAFETY: a number in shared memory of this process.
            unsafe { pg_sys::pgstat_progress_update_param(what as i32, value as i64) };
        }
    }

    pub(crate) fn phase(&self, phase: Phase) {
        self.set(pg_sys::PROGRESS_CREATEIDX_SUBPHASE, phase as u64);
    }

    pub(crate) fn blocks(&self, total: u32) {
        self.set(pg_sys::PROGRESS_SCAN_BLOCKS_TOTAL, total.into());
        self.set(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, 0);
    }

    pub(crate) fn blocks_done(&self, done: u32, total: u32) {
        if done.is_multiple_of(EVERY) || done == total {
            self.set(pg_sys::PROGRESS_SCAN_BLOCKS_DONE, done.into());
        }
    }

    /// Entries, where there are no blocks to count.
    pub(crate) fn entries(&self, total: u64) {
        self.set(pg_sys::PROGRESS_CREATEIDX_TUPLES_TOTAL, total);
        self.set(pg_sys::PROGRESS_CREATEIDX_TUPLES_DONE, 0);
    }

    pub(crate) fn entries_done(&self, done: u64) {
        self.set(pg_sys::PROGRESS_CREATEIDX_TUPLES_DONE, done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.begun && !std::thread::panicking() {
            // SAFETY: ends what was begun.
            unsafe { pg_sys::pgstat_progress_end_command() };
        }
    }
}

/// Whether this process reports no command, or one that makes an index.
#[cfg(not(feature = "pg13"))]
fn current_command() -> (bool, bool) {
    use pg_sys::ProgressCommandType as Command;
    // SAFETY: this process's own entry, if it has one.
    let Some(entry) = (unsafe { pg_sys::MyBEEntry.as_ref() }) else { return (false, false) };
    let command = entry.st_progress_command;
    (
        command == Command::PROGRESS_COMMAND_INVALID,
        command == Command::PROGRESS_COMMAND_CREATE_INDEX,
    )
}

/// That server does not let extensions know.
#[cfg(feature = "pg13")]
fn current_command() -> (bool, bool) {
    (false, false)
}

fn begin(index: Index) {
    // SAFETY: the index is open, so are its rows of the catalogue; numbers in shared memory of this process.
    unsafe {
        let relation = index.relation();
        pg_sys::pgstat_progress_start_command(
            pg_sys::ProgressCommandType::PROGRESS_COMMAND_CREATE_INDEX,
            (*(*relation).rd_index).indrelid,
        );
        let set = |what: i32, value: i64| pg_sys::pgstat_progress_update_param(what, value);
        let oid = |oid: pg_sys::Oid| i64::from(u32::from(oid));
        set(u32::from(pg_sys::PROGRESS_CREATEIDX_INDEX_OID) as i32, oid((*relation).rd_id));
        set(
            u32::from(pg_sys::PROGRESS_CREATEIDX_ACCESS_METHOD_OID) as i32,
            oid((*(*relation).rd_rel).relam),
        );
        set(pg_sys::PROGRESS_CREATEIDX_PHASE as i32, pg_sys::PROGRESS_CREATEIDX_PHASE_BUILD.into());
    }
}
