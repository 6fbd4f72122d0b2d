//! The pages of an index in the server's buffers: read, changed and logged.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::{CaughtError, ErrorReport};

use crate::folding;
use crate::meta::{FOLDED_HASHES, META_BLOCK, Marks, Meta, PendingList};
use crate::page::{self, Kind, Label, PAGE};

/// An open relation that is an index of ours.
#[derive(Clone, Copy)]
pub(crate) struct Index {
    relation: pg_sys::Relation,
}

/// A pinned and locked buffer. When an error unwinds, the server releases it; releasing it here as well would confuse its counters.
pub(crate) struct Locked(pg_sys::Buffer);

impl Drop for Locked {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the buffer is pinned and locked by us.
            unsafe { pg_sys::UnlockReleaseBuffer(self.0) };
        }
    }
}

impl Locked {
    /// The bytes of the page. Changes are for who holds the lock exclusively.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a pinned buffer has a page of this size, and the lock keeps others from changing it.
        unsafe { std::slice::from_raw_parts(pg_sys::BufferGetPage(self.0).cast(), PAGE) }
    }
}

/// The page's owner is not who the caller expected: it was freed, and perhaps used again.
pub(crate) struct Moved;

impl Index {
    /// # Safety
    ///
    /// The relation is open, an index of ours, and stays open as long as this value is used.
    pub(crate) unsafe fn new(relation: pg_sys::Relation) -> Self {
        Self { relation }
    }

    pub(crate) fn relation(self) -> pg_sys::Relation {
        self.relation
    }

    /// The index, and the file that it has now.
    pub(crate) fn id(self) -> (pg_sys::Oid, u32) {
        // SAFETY: the relation is open.
        unsafe {
            let relation = &*self.relation;
            #[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
            let file = relation.rd_node.relNode;
            #[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
            let file = relation.rd_locator.relNumber;
            (relation.rd_id, file.into())
        }
    }

    pub(crate) fn name(self) -> String {
        // SAFETY: an open relation has a row of pg_class.
        unsafe { pg_sys::name_data_to_str(&(*(*self.relation).rd_rel).relname).to_owned() }
    }

    /// Whether it has expressions or a predicate: code of users.
    pub(crate) fn has_expressions(self) -> bool {
        const EXPRESSIONS: i32 = pg_sys::Anum_pg_index_indexprs as i32;
        const PREDICATE: i32 = pg_sys::Anum_pg_index_indpred as i32;
        // SAFETY: an open index has a row of pg_index.
        unsafe {
            let row = (*self.relation).rd_indextuple;
            let has = |column| !pg_sys::heap_attisnull(row, column, ptr::null_mut());
            has(EXPRESSIONS) || has(PREDICATE)
        }
    }

    /// Columns of the index.
    pub(crate) fn columns(self) -> usize {
        // SAFETY: an open relation has a descriptor.
        unsafe { (*(*self.relation).rd_att).natts as usize }
    }

    pub(crate) fn pages(self) -> u32 {
        // SAFETY: the relation is open.
        unsafe {
            pg_sys::RelationGetNumberOfBlocksInFork(self.relation, pg_sys::ForkNumber::MAIN_FORKNUM)
        }
    }

    /// Ends the statement: a page is damaged.
    pub(crate) fn damaged(self, block: u32, what: &str) -> ! {
        self.report_damage(block, what, pg_sys::elog::PgLogLevel::ERROR);
        unreachable!("an error does not return")
    }

    fn report_damage(self, block: u32, what: &str, level: pg_sys::elog::PgLogLevel) {
        let message = format!("page {block} of index \"{}\" is damaged: {what}", self.name());
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED, message, "ironbloom")
            .set_hint("Please REINDEX it. No row of the table is affected.")
            .report(level);
    }

    /// The meta page, for the planner: if it is damaged, queries can do without the index.
    pub(crate) fn meta_or_warning(self) -> Option<Meta> {
        let read = self.meta_unless_damaged().and_then(|meta| self.with_known_hashes(meta));
        if let Err(what) = &read {
            self.report_damage(META_BLOCK, what, pg_sys::elog::PgLogLevel::WARNING);
        }
        read.ok()
    }

    fn meta_unless_damaged(self) -> Result<Meta, String> {
        if self.pages() == 0 {
            return Err("it is missing".into());
        }
        // A page that the server finds damaged is all zeros then, in memory only: not valid for us either.
        let mode = pg_sys::ReadBufferMode::RBM_ZERO_ON_ERROR;
        let locked = self.lock_in_mode(META_BLOCK, pg_sys::BUFFER_LOCK_SHARE, mode);
        let (_, content) = page::open(locked.bytes(), META_BLOCK)?;
        Meta::read(content)
    }

    fn lock(self, block: u32, lock: u32) -> Locked {
        self.lock_in_mode(block, lock, pg_sys::ReadBufferMode::RBM_NORMAL)
    }

    fn lock_in_mode(self, block: u32, lock: u32, mode: pg_sys::ReadBufferMode::Type) -> Locked {
        // SAFETY: the relation is open; the buffer is pinned from here until it is dropped.
        unsafe {
            let buffer = self.or_damaged(block, || {
                pg_sys::ReadBufferExtended(
                    self.relation,
                    pg_sys::ForkNumber::MAIN_FORKNUM,
                    block,
                    mode,
                    ptr::null_mut(),
                )
            });
            pg_sys::LockBuffer(buffer, lock as _);
            Locked(buffer)
        }
    }

    /// Reads a page. If the server itself finds it damaged, or does not find it, it only knows a file's name: ours is said.
    pub(crate) fn or_damaged<T>(self, block: u32, read: impl FnOnce() -> T) -> T {
        use PgSqlErrorCode::{
            ERRCODE_DATA_CORRUPTED, ERRCODE_INDEX_CORRUPTED, ERRCODE_IO_ERROR,
            ERRCODE_UNDEFINED_FILE,
        };
        let payload = match catch_unwind(AssertUnwindSafe(read)) {
            Ok(value) => return value,
            Err(payload) => payload,
        };
        if let Some(CaughtError::PostgresError(report)) = payload.downcast_ref::<CaughtError>()
            && block != P_NEW
            && matches!(
                report.sql_error_code(),
                ERRCODE_DATA_CORRUPTED
                    | ERRCODE_INDEX_CORRUPTED
                    | ERRCODE_IO_ERROR
                    | ERRCODE_UNDEFINED_FILE
            )
        {
            self.damaged(block, report.message());
        }
        resume_unwind(payload)
    }

    /// Calls with what a page holds. Its checksum was right, and it is of this kind and owner.
    pub(crate) fn read<T>(
        self,
        block: u32,
        kind: Kind,
        owner: u32,
        call: impl FnOnce(Label, &[u8]) -> T,
    ) -> Result<T, Moved> {
        let locked = self.lock(block, pg_sys::BUFFER_LOCK_SHARE);
        match page::open(locked.bytes(), block) {
            Ok((label, content)) if label.kind == kind && label.owner == owner => {
                Ok(call(label, content))
            }
            Ok(_) => Err(Moved),
            Err(what) => {
                drop(locked);
                self.damaged(block, what)
            }
        }
    }

    fn with_meta<T>(self, call: impl FnOnce(&[u8]) -> Result<T, String>) -> T {
        let read = self.read(META_BLOCK, Kind::Meta, 0, |_, content| call(content));
        match read {
            Ok(Ok(value)) => value,
            Ok(Err(what)) => self.damaged(META_BLOCK, &what),
            Err(Moved) => self.damaged(META_BLOCK, "it is no meta page"),
        }
    }

    /// The meta page, unless a value that is asked for might have got another hash when it was inserted.
    fn with_known_hashes(self, meta: Meta) -> Result<Meta, String> {
        if meta.hashes < FOLDED_HASHES && folding::has_changed(self) {
            return Err("its hashes are those of an older version of the extension".into());
        }
        Ok(meta)
    }

    pub(crate) fn meta(self) -> Meta {
        let meta = match self.with_known_hashes(self.with_meta(Meta::read)) {
            Ok(meta) => meta,
            Err(what) => self.damaged(META_BLOCK, &what),
        };
        if meta.columns.len() != self.columns() {
            self.damaged(META_BLOCK, "it is for another number of columns");
        }
        meta
    }

    /// Where sealing has come to, and how the meta page begins that says so. Its checksum was right. Also the buffer that it is in.
    pub(crate) fn read_marks(self) -> (Marks, [u8; page::START], pg_sys::Buffer) {
        let locked = self.lock(META_BLOCK, pg_sys::BUFFER_LOCK_SHARE);
        let start = page::start(locked.bytes());
        let read = page::open(locked.bytes(), META_BLOCK)
            .map_err(str::to_owned)
            .and_then(|(_, content)| Meta::marks(content));
        match read {
            Ok((marks, _)) => (marks, start, locked.0),
            Err(what) => {
                drop(locked);
                self.damaged(META_BLOCK, &what)
            }
        }
    }

    /// Changes the meta page, in one record of the log. What `change` returns, `None` leaves everything as it was.
    pub(crate) fn change_meta<T>(self, change: impl FnOnce(&mut Meta) -> Option<T>) -> Option<T> {
        let locked = self.lock(META_BLOCK, pg_sys::BUFFER_LOCK_EXCLUSIVE);
        let read = page::open(locked.bytes(), META_BLOCK)
            .map_err(str::to_owned)
            .and_then(|(_, content)| Meta::read(content));
        let mut meta = match read {
            Ok(meta) => meta,
            Err(what) => {
                drop(locked);
                self.damaged(META_BLOCK, &what)
            }
        };
        let result = change(&mut meta)?;
        self.log_change(&locked, META_BLOCK, |content| meta.write(content));
        Some(result)
    }

    /// Changes a page that is locked exclusively, and logs what has changed.
    fn log_change(self, locked: &Locked, block: u32, change: impl FnOnce(&mut [u8]) -> usize) {
        // SAFETY: the buffer is pinned and locked exclusively; the page that is returned is a copy of it, which the server
        // writes back when the change is finished.
        unsafe {
            let state = pg_sys::GenericXLogStart(self.relation);
            let copy = pg_sys::GenericXLogRegisterBuffer(state, locked.0, 0);
            let bytes = std::slice::from_raw_parts_mut(copy.cast::<u8>(), PAGE);
            page::rewrite(bytes, block, change);
            pg_sys::GenericXLogFinish(state);
        }
    }

    /// A new page at the end, locked.
    fn extend(self) -> (u32, Locked) {
        const EXTENSION: i32 = pg_sys::ExclusiveLock as i32;
        // SAFETY: the relation is open. Whoever extends it holds this lock meanwhile, except for relations that nobody else
        // can see.
        unsafe {
            let shared =
                (*(*self.relation).rd_rel).relpersistence != pg_sys::RELPERSISTENCE_TEMP as _;
            if shared {
                pg_sys::LockRelationForExtension(self.relation, EXTENSION);
            }
            let locked = self.lock(P_NEW, pg_sys::BUFFER_LOCK_EXCLUSIVE);
            if shared {
                pg_sys::UnlockRelationForExtension(self.relation, EXTENSION);
            }
            (pg_sys::BufferGetBlockNumber(locked.0), locked)
        }
    }

    /// A page that belongs to nobody: a freed one, or a new one. `in_use` are the owners whose pages are not free, whatever
    /// the map of free space says: it is not logged.
    fn free_page(self, in_use: &[u32]) -> (u32, Locked) {
        loop {
            // SAFETY: the relation is open.
            let block = unsafe { pg_sys::GetFreeIndexPage(self.relation) };
            if block == u32::MAX {
                return self.extend();
            }
            if block == META_BLOCK || block >= self.pages() {
                continue;
            }
            let locked = self.lock(block, pg_sys::BUFFER_LOCK_EXCLUSIVE);
            let taken = page::owner(locked.bytes()).is_some_and(|owner| in_use.contains(&owner));
            if !taken {
                return (block, locked);
            }
        }
    }

    /// Writes a new page, and logs it whole. Only whoever maintains the index may reuse pages: it alone knows all that are in use.
    pub(crate) fn write_page(
        self,
        in_use: &[u32],
        label: Label,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> u32 {
        let (block, locked) = self.free_page(in_use);
        self.fill_page(&locked, block, label, fill);
        block
    }

    /// The same, always at the end of the index.
    pub(crate) fn append_page(self, label: Label, fill: impl FnOnce(&mut [u8]) -> usize) -> u32 {
        let (block, locked) = self.extend();
        self.fill_page(&locked, block, label, fill);
        block
    }

    fn fill_page(
        self,
        locked: &Locked,
        block: u32,
        label: Label,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let mut bytes = Aligned([0; PAGE]);
        // SAFETY: the copy is a page of this size and alignment, and so is the buffer, which is pinned and locked
        // exclusively. Nothing in the critical section can fail but the log itself, and then the server must stop.
        unsafe {
            pg_sys::PageInit(bytes.0.as_mut_ptr().cast(), PAGE, 0);
            page::write(&mut bytes.0, block, label, fill);
            pg_sys::CritSectionCount += 1;
            let to: *mut u8 = pg_sys::BufferGetPage(locked.0).cast();
            ptr::copy_nonoverlapping(bytes.0.as_ptr(), to, PAGE);
            pg_sys::MarkBufferDirty(locked.0);
            if self.needs_log() {
                pg_sys::log_newpage_buffer(locked.0, true);
            }
            pg_sys::CritSectionCount -= 1;
        }
    }

    /// As the server's macro `RelationNeedsWAL`.
    fn needs_log(self) -> bool {
        // SAFETY: the relation is open.
        unsafe {
            let relation = &*self.relation;
            #[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
            let first = relation.rd_firstRelfilenodeSubid;
            #[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
            let first = relation.rd_firstRelfilelocatorSubid;
            let permanent =
                (*relation.rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as _;
            permanent
                && (pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32
                    || (relation.rd_createSubid == 0 && first == 0))
        }
    }

    /// Writes the first page of a new index.
    pub(crate) fn create(self, meta: &Meta) {
        assert_eq!(self.pages(), 0, "a new index");
        self.append_page(META_LABEL, |content| meta.write(content));
    }

    /// Writes the first page of the fork that an unlogged index starts from after a crash.
    pub(crate) fn create_initial(self, meta: &Meta) {
        // SAFETY: the relation is open and new; its initial fork is empty. Changes of that fork are always logged.
        unsafe {
            let buffer = pg_sys::ReadBufferExtended(
                self.relation,
                pg_sys::ForkNumber::INIT_FORKNUM,
                u32::MAX,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                ptr::null_mut(),
            );
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as _);
            let locked = Locked(buffer);
            let mut bytes = Aligned([0; PAGE]);
            pg_sys::PageInit(bytes.0.as_mut_ptr().cast(), PAGE, 0);
            page::write(&mut bytes.0, META_BLOCK, META_LABEL, |content| meta.write(content));
            pg_sys::CritSectionCount += 1;
            ptr::copy_nonoverlapping(bytes.0.as_ptr(), pg_sys::BufferGetPage(buffer).cast(), PAGE);
            pg_sys::MarkBufferDirty(buffer);
            pg_sys::log_newpage_buffer(buffer, true);
            pg_sys::CritSectionCount -= 1;
            drop(locked);
        }
    }

    /// Lets these pages be used again. Scans that still have their addresses notice by their owners.
    pub(crate) fn free_pages(self, blocks: &[u32]) {
        for &block in blocks {
            // SAFETY: the relation is open.
            unsafe { pg_sys::RecordFreeIndexPage(self.relation, block) };
        }
        if !blocks.is_empty() {
            // SAFETY: the relation is open.
            unsafe { pg_sys::IndexFreeSpaceMapVacuum(self.relation) };
        }
    }

    /// Appends to the last page of the pending list, as long as `noted` pages are more than `block` and `fits` has room there.
    /// Says what happened.
    pub(crate) fn append_pending(
        self,
        heap_block: u32,
        append: impl FnOnce(&mut [u8]) -> usize,
        fits: impl FnOnce(&[u8]) -> bool,
    ) -> Appended {
        // Held until the row is there: who detaches the list must change this page first.
        let meta = self.lock(META_BLOCK, pg_sys::BUFFER_LOCK_SHARE);
        let (marks, pending) = match page::open(meta.bytes(), META_BLOCK)
            .map_err(str::to_owned)
            .and_then(|(_, content)| Meta::marks(content))
        {
            Ok(both) => both,
            Err(what) => {
                drop(meta);
                self.damaged(META_BLOCK, &what)
            }
        };
        if heap_block >= marks.noted {
            return Appended::NotNeeded(marks);
        }
        if pending.owner == 0 {
            return Appended::Full(pending);
        }
        let last = self.lock(pending.last, pg_sys::BUFFER_LOCK_EXCLUSIVE);
        match page::open(last.bytes(), pending.last) {
            Ok((label, content)) if label.kind == Kind::Pending && label.owner == pending.owner => {
                if !fits(content) {
                    return Appended::Full(pending);
                }
            }
            Ok(_) => {
                drop((meta, last));
                self.damaged(pending.last, "it should be a pending list")
            }
            Err(what) => {
                drop((meta, last));
                self.damaged(pending.last, what)
            }
        }
        self.log_change(&last, pending.last, append);
        Appended::Done(pending)
    }

    /// Changes a page of a pending list.
    pub(crate) fn change_pending(self, block: u32, change: impl FnOnce(&mut [u8]) -> usize) {
        let locked = self.lock(block, pg_sys::BUFFER_LOCK_EXCLUSIVE);
        self.log_change(&locked, block, change);
    }
}

/// What came of an attempt to append a row to the pending list.
pub(crate) enum Appended {
    Done(PendingList),
    /// The page is not sealed.
    NotNeeded(Marks),
    /// There is no list, or no room in its last page.
    Full(PendingList),
}

/// The server's number for a page that is to be added.
const P_NEW: u32 = u32::MAX;
const META_LABEL: Label = Label { kind: Kind::Meta, column: 0, owner: 0 };

/// A page in memory, aligned as in a buffer.
#[repr(C, align(4096))]
struct Aligned([u8; PAGE]);
