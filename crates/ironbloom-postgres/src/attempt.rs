//! Maintenance that may fail without failing the statement that it is a part of.
//!
//! An index expression may raise an error for a row that another user inserted, a page may be damaged, the disk may be full. None of
//! that is a reason to refuse an insert, a commit or a VACUUM: the tail is only longer than it should be. So maintenance runs
//! in a subtransaction, and what it failed with becomes a warning.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::{CaughtError, ErrorReport, ErrorReportWithLevel};

use crate::storage::Index;

/// After a failure, this number of occasions to maintain the index pass, then twice as many, and so on.
const FIRST_PAUSE: u32 = 1 << 10;
const LONGEST_PAUSE: u32 = 1 << 20;

/// Runs in a subtransaction. After an error, nothing of it is left: no lock, no pinned buffer, no other user.
pub(crate) fn attempt<T>(work: impl FnOnce() -> T) -> Result<T, Box<CaughtError>> {
    // SAFETY: inside a transaction, from which this returns to where it was. The order is that of every procedural language.
    unsafe {
        // There are no subtransactions beside parallel workers, as VACUUM may have.
        if pg_sys::IsInParallelMode() {
            return Ok(work());
        }
        let (memory, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(memory);
        let result = pg_sys::PgTryBuilder::new(AssertUnwindSafe(|| Ok(work())))
            .catch_others(|error| Err(Box::new(error)))
            .execute();
        match result {
            Ok(_) => pg_sys::ReleaseCurrentSubTransaction(),
            Err(_) => pg_sys::RollbackAndReleaseCurrentSubTransaction(),
        }
        pg_sys::MemoryContextSwitchTo(memory);
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}

fn report(error: &CaughtError) -> &ErrorReportWithLevel {
    match error {
        CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic { ereport: report, .. } => report,
    }
}

/// Passes on that the user has had enough.
pub(crate) fn unless_cancelled(error: Box<CaughtError>) -> Box<CaughtError> {
    if report(&error).sql_error_code() == PgSqlErrorCode::ERRCODE_QUERY_CANCELED {
        error.rethrow()
    }
    error
}

/// An error's message with its hint, as one text.
pub(crate) fn message(error: &CaughtError) -> String {
    let report = report(error);
    match report.hint() {
        Some(hint) => format!("{}. {hint}", report.message()),
        None => report.message().to_owned(),
    }
}

/// Tells the user that an index was left as it was.
pub(crate) fn warn(name: &str, error: &CaughtError) {
    let report = report(error);
    let message = format!("index \"{name}\" was not tidied: {}", report.message());
    let hint = report.hint().unwrap_or("No query misses a row because of it. VACUUM tries again.");
    ErrorReport::new(report.sql_error_code(), message, "ironbloom")
        .set_hint(hint)
        .report(pg_sys::elog::PgLogLevel::WARNING);
}

/// Tells the user that a tail was left as it was.
pub(crate) fn warn_of_workers(name: &str) {
    let message = format!(
        "index \"{name}\" was not sealed: its functions cannot be run beside parallel workers"
    );
    ErrorReport::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message, "ironbloom")
        .set_hint("No query misses a row because of it. VACUUM (PARALLEL 0) seals it.")
        .report(pg_sys::elog::PgLogLevel::WARNING);
}

struct Failed {
    /// The index and its file: a rebuilt index deserves another attempt.
    index: (pg_sys::Oid, u32),
    pause: u32,
    left: u32,
}

thread_local! {
    /// Indexes whose maintenance has failed in this process: trying again with every row would read the tail with every row.
    static FAILED: RefCell<Vec<Failed>> = const { RefCell::new(Vec::new()) };
}

/// Whether maintenance has failed so recently that this occasion passes.
pub(crate) fn is_pausing(index: Index) -> bool {
    let id = index.id();
    FAILED.with_borrow_mut(|failed| {
        let Some(known) = failed.iter_mut().find(|known| known.index == id) else { return false };
        let pausing = known.left > 0;
        known.left = known.left.saturating_sub(1);
        pausing
    })
}

/// Remembers how an attempt has ended.
pub(crate) fn remember(index: Index, succeeded: bool) {
    let id = index.id();
    FAILED.with_borrow_mut(|failed| {
        let known = failed.iter().position(|known| known.index == id);
        if succeeded {
            if let Some(at) = known {
                failed.swap_remove(at);
            }
            return;
        }
        let at = known.unwrap_or_else(|| {
            failed.retain(|known| known.index.0 != id.0);
            failed.push(Failed { index: id, pause: FIRST_PAUSE / 2, left: 0 });
            failed.len() - 1
        });
        let known = &mut failed[at];
        known.pause = (known.pause * 2).min(LONGEST_PAUSE);
        known.left = known.pause;
    });
}
