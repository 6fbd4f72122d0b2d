//! Code of users, such as index expressions, runs as the table's owner wherever we evaluate it.
//!
//! Whoever commits, vacuums or checks may have more rights than the owner, and whoever inserts chooses the search path: both
//! could be abused. So expressions are evaluated as the server does in CREATE INDEX: as the owner, within a
//! security-restricted operation, with a search path that no user can place functions in.

use std::ffi::CStr;

use pgrx_pg_sys as pg_sys;

/// As the server's `GUC_SAFE_SEARCH_PATH`, which older versions lack.
const SAFE: &CStr = c"pg_catalog, pg_temp";

/// As long as this value lives, this process is the owner of a table. After an error the server itself returns to who it
/// was before, with the transaction or subtransaction.
pub(crate) struct AsOwner {
    user: pg_sys::Oid,
    context: i32,
    settings: i32,
}

impl AsOwner {
    /// # Safety
    ///
    /// The table is open.
    pub(crate) unsafe fn of(heap: pg_sys::Relation) -> Self {
        // SAFETY: the caller's promise.
        Self::become_user(|_| unsafe { (*(*heap).rd_rel).relowner })
    }

    /// The same user, with the same restrictions: for queries of our own, in which the search path of the user must not count.
    pub(crate) fn nobody_else() -> Self {
        Self::become_user(|user| user)
    }

    fn become_user(owner: impl FnOnce(pg_sys::Oid) -> pg_sys::Oid) -> Self {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: who it was is put back when this value is dropped. Settings that are made from here on end with the level.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            pg_sys::SetUserIdAndSecContext(
                owner(user),
                context | pg_sys::SECURITY_RESTRICTED_OPERATION as i32,
            );
            let owner = Self { user, context, settings: pg_sys::NewGUCNestLevel() };
            owner.set(c"search_path", SAFE);
            owner
        }
    }

    /// Lets the owner read all rows, whatever policies the table forces upon it, until this value is dropped.
    pub(crate) fn ignore_policies(&self) {
        let (mut user, mut context) = (pg_sys::InvalidOid, 0);
        // SAFETY: the same user. What this adds is what the server's own checks of foreign keys have.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
            context |= pg_sys::SECURITY_NOFORCE_RLS as i32;
            pg_sys::SetUserIdAndSecContext(user, context);
        }
    }

    /// Changes a setting until this value is dropped.
    pub(crate) fn set(&self, name: &CStr, value: &CStr) {
        // SAFETY: both are texts that end with a zero.
        unsafe {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: as it was before.
            unsafe {
                pg_sys::AtEOXact_GUC(false, self.settings);
                pg_sys::SetUserIdAndSecContext(self.user, self.context);
            }
        }
    }
}
