//! Heap pages, read row by row, whatever their visibility.
//!
//! A page is copied under its lock, and its rows are hashed from the copy: index expressions may do anything. Rows that are
//! dead for everybody are indexed all the same if their values are on the page, since a query on a standby may still see
//! them. If they are elsewhere they may be gone, and expressions over deleted rows may fail: those rows are left out.

use std::ptr;

use pgrx_pg_sys as pg_sys;

use crate::hashing::{Hasher, Integer};
use crate::layout::{Found, Layout};
use crate::meta::NULL;
use crate::owner::AsOwner;
use crate::page::PAGE;
use crate::storage::Index;

/// Rows that a page can have.
pub(crate) const MOST_ROWS: usize = PAGE / (pg_sys::SIZEOF_VOID_P as usize * 3 + 4) + 1;

/// Without the guard of every single call: a page is one guarded call.
mod raw {
    use super::pg_sys;
    unsafe extern "C-unwind" {
        pub(super) fn HeapTupleSatisfiesVacuum(
            tuple: pg_sys::HeapTuple,
            oldest: pg_sys::TransactionId,
            buffer: pg_sys::Buffer,
        ) -> pg_sys::HTSV_Result::Type;
        pub(super) fn HeapTupleSatisfiesVisibility(
            tuple: pg_sys::HeapTuple,
            snapshot: pg_sys::Snapshot,
            buffer: pg_sys::Buffer,
        ) -> bool;
        pub(super) fn ExecStoreHeapTuple(
            tuple: pg_sys::HeapTuple,
            slot: *mut pg_sys::TupleTableSlot,
            should_free: bool,
        ) -> *mut pg_sys::TupleTableSlot;
        pub(super) fn slot_getsomeattrs_int(slot: *mut pg_sys::TupleTableSlot, attribute: i32);
        pub(super) fn FormIndexDatum(
            info: *mut pg_sys::IndexInfo,
            slot: *mut pg_sys::TupleTableSlot,
            state: *mut pg_sys::EState,
            values: *mut pg_sys::Datum,
            nulls: *mut bool,
        );
    }
}

/// The rows of a page that the index has, as hashes.
pub(crate) struct Rows {
    len: usize,
    /// Column by column, each with room for all rows that a page can have.
    hashes: Vec<u32>,
    offsets: [u16; MOST_ROWS],
    /// Rows of the page that are not dead.
    pub(crate) live: u64,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The hashes of a column.
    pub(crate) fn column(&self, column: usize) -> &[u32] {
        &self.hashes[column * MOST_ROWS..][..self.len]
    }

    /// Numbers of the rows on the page.
    pub(crate) fn offsets(&self) -> &[u16] {
        &self.offsets[..self.len]
    }
}

/// Reads the pages of a table for one of its indexes. As long as there is one, this process is the table's owner: index
/// expressions are evaluated, and prepared, as such.
pub(crate) struct HeapReader {
    heap: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
    hashers: Vec<Hasher>,
    /// Where the columns are in the table, unless there are expressions or a predicate.
    attributes: Option<Vec<i16>>,
    /// If all columns have a fixed place, rows are not unpacked.
    layout: Option<Layout>,
    /// If all of them are integers, where they are in rows that have no nulls.
    integers: Option<Integers>,
    last_attribute: i32,
    slot: *mut pg_sys::TupleTableSlot,
    state: *mut pg_sys::EState,
    expressions: *mut pg_sys::ExprContext,
    predicate: *mut pg_sys::ExprState,
    context: pg_sys::MemoryContext,
    strategy: pg_sys::BufferAccessStrategy,
    /// If there is one, only rows that it sees.
    snapshot: pg_sys::Snapshot,
    oldest: pg_sys::TransactionId,
    /// The transaction that reads, if it has written: most rows that are sealed by an insert are its own.
    own: pg_sys::TransactionId,
    page: Box<Page>,
    keep: [bool; MOST_ROWS],
    rows: Rows,
    /// Dropped last.
    _owner: AsOwner,
}

#[repr(C, align(8))]
struct Page([u8; PAGE]);

/// Columns that are all integers, at fixed places.
struct Integers {
    /// From where the values of a row begin.
    columns: Vec<(usize, Integer)>,
    /// Where the last of them ends.
    end: usize,
}

impl Integers {
    fn new(layout: &Layout, attributes: &[i16], hashers: &[Hasher]) -> Option<Self> {
        let columns = attributes.iter().zip(hashers).map(|(&number, hasher)| {
            let (at, len) = layout.place(number)?;
            hasher.integer().filter(|integer| integer.bytes() == len).map(|integer| (at, integer))
        });
        let columns: Vec<_> = columns.collect::<Option<_>>()?;
        let end = columns.iter().map(|(at, integer)| at + integer.bytes()).max()?;
        Some(Self { columns, end })
    }
}

impl HeapReader {
    /// # Safety
    ///
    /// The heap is open, the index is one of its indexes, and both stay open.
    pub(crate) unsafe fn new(heap: pg_sys::Relation, index: Index) -> Self {
        let columns = index.columns();
        // SAFETY: relations are open; what is made here is freed when the reader is dropped, or by the server after an error.
        unsafe {
            let owner = AsOwner::of(heap);
            let info = pg_sys::BuildIndexInfo(index.relation());
            let plain = (*info).ii_Expressions.is_null() && (*info).ii_Predicate.is_null();
            let numbers = (*info).ii_IndexAttrNumbers;
            let attributes = numbers[..columns].to_vec();
            let state = pg_sys::CreateExecutorState();
            let expressions = pg_sys::MakePerTupleExprContext(state);
            let slot = pg_sys::MakeSingleTupleTableSlot(
                (*heap).rd_att,
                &raw const pg_sys::TTSOpsHeapTuple,
            );
            (*expressions).ecxt_scantuple = slot;
            let predicate = if (*info).ii_Predicate.is_null() {
                ptr::null_mut()
            } else {
                pg_sys::ExecPrepareQual((*info).ii_Predicate, state)
            };
            let hashers = Hasher::of_columns(index);
            let layout = Some(Layout::new(heap))
                .filter(|layout| plain && attributes.iter().all(|&number| layout.has(number)));
            let integers =
                layout.as_ref().and_then(|layout| Integers::new(layout, &attributes, &hashers));
            Self {
                heap,
                info,
                hashers,
                last_attribute: attributes.iter().copied().max().unwrap_or(0).into(),
                layout,
                integers,
                attributes: plain.then_some(attributes),
                slot,
                state,
                expressions,
                predicate,
                context: pg_sys::AllocSetContextCreateExtended(
                    pg_sys::CurrentMemoryContext,
                    c"ironbloom page".as_ptr(),
                    0,
                    8 * 1024,
                    8 * 1024 * 1024,
                ),
                strategy: pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD),
                snapshot: ptr::null_mut(),
                oldest: oldest_running(heap),
                own: pg_sys::GetTopTransactionIdIfAny(),
                page: Box::new(Page([0; PAGE])),
                keep: [false; MOST_ROWS],
                rows: Rows {
                    len: 0,
                    hashes: vec![0; MOST_ROWS * columns],
                    offsets: [0; MOST_ROWS],
                    live: 0,
                },
                _owner: owner,
            }
        }
    }

    /// For the rows that a snapshot sees.
    ///
    /// # Safety
    ///
    /// As above, and the snapshot is active.
    pub(crate) unsafe fn of_snapshot(
        heap: pg_sys::Relation,
        index: Index,
        snapshot: pg_sys::Snapshot,
    ) -> Self {
        // SAFETY: the caller's promise.
        let mut reader = unsafe { Self::new(heap, index) };
        reader.snapshot = snapshot;
        reader
    }

    /// Reads a page that exists.
    pub(crate) fn read(&mut self, block: u32) -> &Rows {
        // SAFETY: the heap is open and has this page.
        unsafe {
            let buffer = pg_sys::ReadBufferExtended(
                self.heap,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                block,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                self.strategy,
            );
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as _);
            let reader: *mut Self = self;
            pg_sys::ffi::pg_guard_ffi_boundary(|| (*reader).look(buffer, block));
            pg_sys::UnlockReleaseBuffer(buffer);
            let before = pg_sys::MemoryContextSwitchTo(self.context);
            pg_sys::ffi::pg_guard_ffi_boundary(|| (*reader).hash_rows(block));
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextReset(self.context);
            pg_sys::MemoryContextReset((*self.expressions).ecxt_per_tuple_memory);
        }
        &self.rows
    }

    /// The page's rows by their numbers, as the first of each chain of updates. For the page that was read last.
    pub(crate) fn roots(&mut self) -> [u16; MOST_ROWS] {
        let mut roots = [0; MOST_ROWS];
        // SAFETY: the page is a copy of a valid one, and there is room for all its rows.
        unsafe {
            pg_sys::heap_get_root_tuples(self.page.0.as_mut_ptr().cast(), roots.as_mut_ptr())
        };
        roots
    }

    /// Copies the page and notes which rows to keep.
    ///
    /// # Safety
    ///
    /// The buffer is pinned and locked. Nothing here may be dropped or panic: errors jump.
    unsafe fn look(&mut self, buffer: pg_sys::Buffer, block: u32) {
        // SAFETY: the buffer holds a page of the heap, so its items are within it.
        unsafe {
            let page: *mut u8 = pg_sys::BufferGetPage(buffer).cast();
            self.rows.live = 0;
            for offset in 1..=row_count(page) {
                let mut tuple = tuple_at(page, block, offset, self.heap);
                *self.keep.as_mut_ptr().add(offset as usize) = match tuple.t_data.is_null() {
                    true => false,
                    false => self.is_wanted(&mut tuple, buffer),
                };
            }
            ptr::copy_nonoverlapping(page, self.page.0.as_mut_ptr(), PAGE);
        }
    }

    /// # Safety
    ///
    /// As above, and the tuple is on that page.
    unsafe fn is_wanted(
        &mut self,
        tuple: &mut pg_sys::HeapTupleData,
        buffer: pg_sys::Buffer,
    ) -> bool {
        use pg_sys::HTSV_Result as Is;
        // SAFETY: the caller's promise.
        unsafe {
            if !self.snapshot.is_null() {
                return raw::HeapTupleSatisfiesVisibility(tuple, self.snapshot, buffer);
            }
            let mask = u32::from((*tuple.t_data).t_infomask);
            let certain = pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMAX_INVALID;
            if mask & certain == certain {
                self.rows.live += 1;
                return true;
            }
            // Its rows need no further look, unless a part of it has deleted them.
            if (*tuple.t_data).t_choice.t_heap.t_xmin == self.own
                && mask & (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMIN_INVALID)
                    == pg_sys::HEAP_XMAX_INVALID
                && self.own != pg_sys::InvalidTransactionId
            {
                self.rows.live += 1;
                return true;
            }
            let is = raw::HeapTupleSatisfiesVacuum(tuple, self.oldest, buffer);
            if is != Is::HEAPTUPLE_DEAD {
                self.rows.live +=
                    u64::from(is == Is::HEAPTUPLE_LIVE || is == Is::HEAPTUPLE_INSERT_IN_PROGRESS);
                return true;
            }
            let mask = u32::from((*tuple.t_data).t_infomask);
            let invalid =
                mask & pg_sys::HEAP_XMIN_INVALID != 0 && mask & pg_sys::HEAP_XMIN_COMMITTED == 0;
            self.attributes.is_some() && !invalid && mask & pg_sys::HEAP_HASEXTERNAL == 0
        }
    }

    /// Hashes the rows of the copy.
    ///
    /// # Safety
    ///
    /// Nothing here may be dropped or panic: errors jump.
    unsafe fn hash_rows(&mut self, block: u32) {
        self.rows.len = 0;
        let mut values = [pg_sys::Datum::null(); pg_sys::INDEX_MAX_KEYS as usize];
        let mut nulls = [false; pg_sys::INDEX_MAX_KEYS as usize];
        // SAFETY: the copy is a page of the heap; the slot is for its rows; there is room for the hashes of all rows.
        unsafe {
            let page = self.page.0.as_mut_ptr();
            let columns = self.hashers.len();
            let mut integers = [ptr::null::<u8>(); MOST_ROWS];
            for offset in 1..=row_count(page) {
                if !*self.keep.as_ptr().add(offset as usize) {
                    continue;
                }
                let mut tuple = tuple_at(page, block, offset, self.heap);
                let out = self.rows.hashes.as_mut_ptr().add(self.rows.len);
                let start = self.integers_of(&tuple);
                *integers.as_mut_ptr().add(self.rows.len) = start;
                if !start.is_null() || self.hash_in_place(&tuple, out) {
                    *self.rows.offsets.as_mut_ptr().add(self.rows.len) = offset;
                    self.rows.len += 1;
                    continue;
                }
                let slot = self.slot;
                raw::ExecStoreHeapTuple(&mut tuple, slot, false);
                if let Some(attributes) = &self.attributes {
                    raw::slot_getsomeattrs_int(slot, self.last_attribute);
                    for column in 0..columns {
                        let at = *attributes.as_ptr().add(column) as usize - 1;
                        let null = *(*slot).tts_isnull.add(at);
                        *out.add(column * MOST_ROWS) =
                            self.hash(column, *(*slot).tts_values.add(at), null);
                    }
                } else {
                    if !self.is_indexed() {
                        continue;
                    }
                    raw::FormIndexDatum(
                        self.info,
                        slot,
                        self.state,
                        values.as_mut_ptr(),
                        nulls.as_mut_ptr(),
                    );
                    for column in 0..columns {
                        let null = *nulls.as_ptr().add(column);
                        *out.add(column * MOST_ROWS) =
                            self.hash(column, *values.as_ptr().add(column), null);
                    }
                }
                *self.rows.offsets.as_mut_ptr().add(self.rows.len) = offset;
                self.rows.len += 1;
            }
            self.hash_integers(integers.as_ptr());
        }
    }

    /// Where the values of a row begin, if all columns are integers and this row has them at their places; otherwise null.
    ///
    /// # Safety
    ///
    /// The row is one of the table. Nothing here may be dropped or panic.
    #[inline]
    unsafe fn integers_of(&self, row: &pg_sys::HeapTupleData) -> *const u8 {
        let Some(integers) = &self.integers else { return ptr::null() };
        // SAFETY: the caller's promise; the row is as long as it says.
        unsafe {
            let header = row.t_data;
            let start = usize::from((*header).t_hoff);
            let known = u32::from((*header).t_infomask2) & pg_sys::HEAP_NATTS_MASK;
            let plain = u32::from((*header).t_infomask) & pg_sys::HEAP_HASNULL == 0
                && known as i32 >= self.last_attribute
                && start + integers.end <= row.t_len as usize;
            if plain { header.cast::<u8>().add(start) } else { ptr::null() }
        }
    }

    /// Hashes the integers of these rows, column by column. Those of null have been hashed.
    ///
    /// # Safety
    ///
    /// There are as many as rows, each from [`HeapReader::integers_of`]. Nothing here may be dropped or panic.
    unsafe fn hash_integers(&mut self, rows: *const *const u8) {
        let Some(integers) = &self.integers else { return };
        let mut out = self.rows.hashes.as_mut_ptr();
        // SAFETY: the caller's promise; there is room for the hashes of all rows.
        unsafe {
            for &(at, integer) in &integers.columns {
                let (len, to) = (self.rows.len, out);
                match integer {
                    Integer::Two => hash_each::<i16>(rows, len, at, to),
                    Integer::Four => hash_each::<i32>(rows, len, at, to),
                    Integer::Eight => hash_each::<i64>(rows, len, at, to),
                }
                out = out.add(MOST_ROWS);
            }
        }
    }

    /// Hashes a row without unpacking it, if all its values are where they should be.
    ///
    /// # Safety
    ///
    /// The row is one of the table, and there is room for the hashes of all columns. Nothing here may be dropped or panic.
    #[inline]
    unsafe fn hash_in_place(&self, row: &pg_sys::HeapTupleData, out: *mut u32) -> bool {
        let (Some(layout), Some(attributes)) = (&self.layout, &self.attributes) else {
            return false;
        };
        // SAFETY: the caller's promise; the layout has all columns of the index.
        unsafe {
            for column in 0..self.hashers.len() {
                *out.add(column * MOST_ROWS) =
                    match layout.value(row, *attributes.as_ptr().add(column)) {
                        Found::Value(value) => self.hash(column, value, false),
                        Found::Null => NULL,
                        Found::Unknown => return false,
                    };
            }
        }
        true
    }

    /// # Safety
    ///
    /// The datum is of that column.
    #[inline]
    unsafe fn hash(&self, column: usize, datum: pg_sys::Datum, null: bool) -> u32 {
        // SAFETY: the caller's promise; there is a hasher for each column.
        if null { NULL } else { unsafe { (*self.hashers.as_ptr().add(column)).hash(datum) } }
    }

    /// Whether the row in the slot satisfies the predicate of a partial index.
    ///
    /// # Safety
    ///
    /// The slot holds a row.
    unsafe fn is_indexed(&self) -> bool {
        // SAFETY: the predicate was prepared for the slot; it is evaluated in the context that is reset with each page.
        unsafe {
            let Some(predicate) = self.predicate.as_mut() else { return true };
            let before = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = (*self.expressions).ecxt_per_tuple_memory;
            let mut null = false;
            let holds = match predicate.evalfunc {
                Some(evaluate) => evaluate(predicate, self.expressions, &mut null),
                None => pg_sys::Datum::from(true),
            };
            pg_sys::CurrentMemoryContext = before;
            !null && holds.value() as u8 != 0
        }
    }
}

impl Drop for HeapReader {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: all of these were made by the reader, and nothing uses them any more.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.slot);
            pg_sys::FreeExecutorState(self.state);
            pg_sys::MemoryContextDelete(self.context);
            pg_sys::FreeAccessStrategy(self.strategy);
        }
    }
}

/// Hashes an integer of each row that is not null.
///
/// # Safety
///
/// There are as many rows, with such an integer at this place, and there is room for as many hashes. Nothing here panics.
#[inline]
unsafe fn hash_each<T: Into<i64>>(rows: *const *const u8, len: usize, at: usize, out: *mut u32) {
    for i in 0..len {
        // SAFETY: the caller's promise.
        unsafe {
            let row = *rows.add(i);
            if !row.is_null() {
                let number = row.add(at).cast::<T>().read_unaligned().into();
                *out.add(i) = Hasher::hash_integer(number);
            }
        }
    }
}

/// Rows, and places of rows, on a heap page.
///
/// # Safety
///
/// It is a heap page.
pub(crate) unsafe fn row_count(page: *const u8) -> u16 {
    // SAFETY: every page has a header.
    let lower = unsafe { (*page.cast::<pg_sys::PageHeaderData>()).pd_lower };
    // A page that was never written has none.
    let rows = lower.saturating_sub(24) / 4;
    if rows as usize >= MOST_ROWS { MOST_ROWS as u16 - 1 } else { rows }
}

/// A row of a heap page; without data if there is none at that place.
///
/// # Safety
///
/// It is a heap page that has that place.
pub(crate) unsafe fn tuple_at(
    page: *mut u8,
    block: u32,
    offset: u16,
    heap: pg_sys::Relation,
) -> pg_sys::HeapTupleData {
    // SAFETY: the caller's promise; places follow the header.
    unsafe {
        let item = page.add(24 + 4 * (offset as usize - 1)).cast::<u32>().read();
        // 15 bits where, 2 bits what, 15 bits how long; 1 is a row.
        let (at, what, len) = (item & 0x7fff, item >> 15 & 3, item >> 17);
        let within = what == 1 && at as usize + len as usize <= PAGE && len >= 23;
        pg_sys::HeapTupleData {
            t_len: len,
            t_self: pg_sys::ItemPointerData {
                ip_blkid: pg_sys::BlockIdData { bi_hi: (block >> 16) as u16, bi_lo: block as u16 },
                ip_posid: offset,
            },
            t_tableOid: (*heap).rd_id,
            t_data: if within { page.add(at as usize).cast() } else { ptr::null_mut() },
        }
    }
}

/// Rows deleted before this are dead for everybody.
#[cfg(not(feature = "pg13"))]
fn oldest_running(heap: pg_sys::Relation) -> pg_sys::TransactionId {
    // SAFETY: the heap is open.
    unsafe { pg_sys::GetOldestNonRemovableTransactionId(heap) }
}

#[cfg(feature = "pg13")]
fn oldest_running(heap: pg_sys::Relation) -> pg_sys::TransactionId {
    // SAFETY: the heap is open.
    unsafe { pg_sys::GetOldestXmin(heap, pg_sys::PROCARRAY_FLAGS_VACUUM as i32) }
}
