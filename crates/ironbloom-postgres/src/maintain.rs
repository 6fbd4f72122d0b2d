//! What keeps an index short: the tail is sealed, the pending list flushed, segments are merged. One process at a time.
//!
//! Each step writes new pages that nobody knows, and then changes the meta page in one record of the log. A crash in
//! between leaves pages without an owner, which VACUUM finds.

use std::cell::RefCell;

use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use crate::attempt::{self, attempt};
use crate::cells::Cells;
use crate::heap::HeapReader;
use crate::meta::{BUCKET_STEP, META_BLOCK, Meta, PendingList, Segment};
use crate::pending;
use crate::progress::{Phase, Progress};
use crate::segment::find::Pages;
use crate::segment::merge;
use crate::segment::write::SegmentWriter;
use crate::shape;
use crate::storage::{Index, Moved};

/// An insert seals the tail when it has this number of pages.
pub(crate) const LONG_TAIL: u32 = 4096;
/// A commit does so already when it has these: every query reads them.
pub(crate) const SHORT_TAIL: u32 = 32;
/// Pages of the pending list before an insert flushes it: every query reads these, too.
pub(crate) const LONG_PENDING: u32 = 64;
/// Segments of about the same size before an insert merges them.
const SIBLINGS: usize = 12;
/// Inserts leave merges with more cells to VACUUM: they take a second for 60 million.
const QUICK_MERGE: u64 = 1 << 24;
/// From this number of segments on, inserts merge whatever it takes.
const MANY_SEGMENTS: usize = 96;
/// VACUUM leaves segments alone that are this many times as large as all smaller ones together.
const GROWTH: u64 = 4;
/// Numbers stay below 2^62.
const MOST_BUCKETS: f64 = (1u64 << 29) as f64;

thread_local! {
    /// Indexes that this process is maintaining: index expressions may insert into their own table, and the server grants a
    /// process the locks that it has.
    static TURNS: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// Holds the lock of who maintains an index. After an error the server releases it.
pub(crate) struct Turn(Index);

impl Turn {
    /// Whether this process has it already.
    fn is_taken(index: Index) -> bool {
        TURNS.with_borrow(|turns| turns.contains(&index.id().0))
    }

    fn begin(index: Index) -> Self {
        TURNS.with_borrow_mut(|turns| turns.push(index.id().0));
        Self(index)
    }

    pub(crate) fn wait(index: Index) -> Self {
        if Self::is_taken(index) {
            pg_sys::ereport!(
                ERROR,
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                format!("index \"{}\" is being sealed by this session", index.name())
            );
        }
        // SAFETY: the index is open. Nobody else locks pages of an index of ours.
        unsafe { pg_sys::LockPage(index.relation(), META_BLOCK, pg_sys::ExclusiveLock as i32) };
        Self::begin(index)
    }

    fn now(index: Index) -> Option<Self> {
        if Self::is_taken(index) {
            return None;
        }
        // SAFETY: the same.
        let got = unsafe {
            pg_sys::ConditionalLockPage(index.relation(), META_BLOCK, pg_sys::ExclusiveLock as i32)
        };
        got.then(|| Self::begin(index))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.with_borrow_mut(|turns| turns.retain(|&oid| oid != self.0.id().0));
        if !std::thread::panicking() {
            // SAFETY: we hold it.
            unsafe {
                pg_sys::UnlockPage(self.0.relation(), META_BLOCK, pg_sys::ExclusiveLock as i32)
            };
        }
    }
}

/// What sealing has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Rows that the index has now.
    pub(crate) rows: u64,
    /// Rows of the table that are not dead.
    pub(crate) live: u64,
}

/// A table and one of its indexes, both open.
#[derive(Clone, Copy)]
pub(crate) struct Maintained {
    heap: pg_sys::Relation,
    index: Index,
}

impl Maintained {
    /// # Safety
    ///
    /// Both are open, and stay open as long as this value is used.
    pub(crate) unsafe fn new(heap: pg_sys::Relation, index: Index) -> Self {
        Self { heap, index }
    }

    pub(crate) fn heap_pages(self) -> u32 {
        // SAFETY: the heap is open.
        unsafe {
            pg_sys::RelationGetNumberOfBlocksInFork(self.heap, pg_sys::ForkNumber::MAIN_FORKNUM)
        }
    }

    /// An index that is being built concurrently is sealed as a whole at the end: the server must learn which rows it has.
    fn is_valid(self) -> bool {
        // SAFETY: an open index has a row of pg_index.
        unsafe { (*(*self.index.relation()).rd_index).indisvalid }
    }

    /// For an insert into this heap page: what keeps the index short, unless someone else is at it.
    pub(crate) fn after_insert(self, block: u32) {
        if !self.is_valid() || attempt::is_pausing(self.index) {
            return;
        }
        let Some(_turn) = Turn::now(self.index) else { return };
        self.if_possible(|| self.shorten(block, LONG_TAIL));
    }

    /// For a commit: the same up to the last page of the table as it is now, so that a load leaves a short tail.
    pub(crate) fn at_commit(self) {
        if !self.is_valid() || attempt::is_pausing(self.index) {
            return;
        }
        let Some(_turn) = Turn::now(self.index) else { return };
        self.if_possible(|| self.shorten(self.heap_pages().saturating_sub(1), SHORT_TAIL));
    }

    /// What fails becomes a warning, unless the user has cancelled it.
    fn if_possible(self, work: impl FnOnce()) {
        let done = attempt(work).map_err(attempt::unless_cancelled);
        attempt::remember(self.index, done.is_ok());
        if let Err(error) = done {
            attempt::warn(&self.index.name(), &error);
        }
    }

    /// Seals the tail before this heap page if it is long. The caller has the turn.
    fn shorten(self, block: u32, long_tail: u32) {
        let meta = self.index.meta();
        if meta.pending.pages >= LONG_PENDING {
            self.lower_marks();
            self.flush();
        }
        if block.saturating_sub(meta.sealed) >= long_tail {
            self.seal(block, &mut |_, _| {}, false);
        }
        self.merge(siblings);
    }

    /// For VACUUM, which has more to do than this. Beside parallel workers an error cannot be caught: nothing that may raise one
    /// for a row is run there.
    pub(crate) fn tidy_if_possible(self) {
        // SAFETY: a flag of this process.
        let beside_workers = unsafe { pg_sys::IsInParallelMode() };
        let seals = !(beside_workers && shape::runs_code_of_users(self.index));
        self.if_possible(|| self.tidy_with(seals));
    }

    /// Everything, but no segment that is large already.
    pub(crate) fn tidy(self) {
        self.tidy_with(true);
    }

    fn tidy_with(self, seals: bool) {
        if !self.is_valid() {
            return;
        }
        let _turn = Turn::wait(self.index);
        self.lower_marks();
        // Rows may still come to the last page.
        let end = self.heap_pages().saturating_sub(1);
        if seals {
            self.seal(end, &mut |_, _| {}, false);
        } else if end.saturating_sub(self.index.meta().sealed) >= SHORT_TAIL {
            attempt::warn_of_workers(&self.index.name());
        }
        self.flush();
        // Before the merge: one that fails each time would leave more lost pages each time.
        self.free_lost_pages();
        self.merge(all_small);
    }

    /// Seals all pages that the heap has, and reports each row that the index knows then.
    pub(crate) fn seal_all(self, row: &mut dyn FnMut(u32, u16)) -> Seen {
        let _turn = Turn::wait(self.index);
        self.seal(self.heap_pages(), row, true)
    }

    /// The heap may have become shorter. What comes to its end then is a tail again.
    fn lower_marks(self) {
        let end = self.heap_pages();
        if self.index.marks().noted > end {
            self.index.change_meta(|meta| {
                meta.sealed = meta.sealed.min(end);
                meta.noted = meta.noted.min(end);
                Some(())
            });
        }
    }

    /// Seals the pages up to `end`; `building` if that is a part of a command that makes the index.
    fn seal(self, end: u32, row: &mut dyn FnMut(u32, u16), building: bool) -> Seen {
        let mut seen = Seen::default();
        // From here on, rows that come to these pages are noted; those that came before are on the pages.
        let begun = self.index.change_meta(|meta| {
            let first = meta.sealed;
            (first < end).then(|| {
                meta.noted = meta.noted.max(end);
                (first, meta.take_owner(), !meta.has_buckets())
            })
        });
        let Some((first, owner, samples)) = begun else { return seen };
        let progress = Progress::new(self.index, building);
        progress.blocks(end - first);
        progress.phase(Phase::Scanning);
        let mut cells = Cells::new(self.index.columns(), first, end - first, samples);
        let reports = !self.is_valid();
        // SAFETY: both are open.
        let mut heap = unsafe { HeapReader::new(self.heap, self.index) };
        for block in first..end {
            crate::check_interrupts();
            progress.blocks_done(block - first, end - first);
            let rows = heap.read(block);
            cells.push_page(block, rows);
            seen.rows += rows.len() as u64;
            seen.live += rows.live;
            if reports && rows.len() > 0 {
                let offsets = rows.offsets().to_vec();
                let roots = heap.roots();
                for offset in offsets {
                    row(block, offset);
                    // Readers of the index know a chain of updates by its first row.
                    let root = roots[usize::from(offset) - 1];
                    if root != 0 && root != offset {
                        row(block, root);
                    }
                }
            }
        }
        drop(heap);
        progress.blocks_done(end - first, end - first);
        progress.phase(Phase::Writing);
        let segment = self.write(cells, owner, first, end - first);
        let lost = shape::changed_columns(self.index, &self.index.meta());
        self.index.change_meta(|meta| {
            meta.sealed = end;
            for column in lost {
                // Indexes of earlier versions have no shapes: nothing is believed of their rows anyway.
                if let Some(shape) = meta.shapes.get_mut(column) {
                    *shape = shape::LOST;
                }
            }
            meta.segments.extend(segment);
            Some(())
        });
        seen
    }

    /// Writes cells as a segment. The first ones decide how many buckets there are.
    fn write(self, cells: Cells, owner: u32, first: u32, span: u32) -> Option<Segment> {
        if cells.is_empty() {
            // Pages of a load that was rolled back say nothing about those to come.
            return None;
        }
        let meta = self.with_buckets(&cells);
        let mut in_use = meta.owners();
        in_use.push(owner);
        let mut writer = SegmentWriter::new(self.index, in_use, owner, first, span);
        cells.write(&meta.columns, &mut writer);
        writer.finish()
    }

    fn with_buckets(self, cells: &Cells) -> Meta {
        let meta = self.index.meta();
        if meta.has_buckets() {
            return meta;
        }
        self.index.change_meta(|meta| {
            for (number, column) in meta.columns.iter_mut().enumerate() {
                column.buckets = buckets(column.selectivity, cells.distinct(number));
            }
            Some(())
        });
        self.index.meta()
    }

    /// Makes a segment of the pending list.
    fn flush(self) {
        let flushing = self.index.change_meta(|meta| {
            // Whole pages decide about buckets, when the first sealing was interrupted, too.
            if !meta.has_buckets() {
                return None;
            }
            // One that was left by an interrupted flush comes first.
            if meta.flushing.owner == 0 {
                meta.flushing = std::mem::take(&mut meta.pending);
            }
            (meta.flushing.owner != 0).then(|| (meta.flushing, meta.take_owner()))
        });
        let Some((list, owner)) = flushing else { return };
        let columns = self.index.columns();
        // Heap page and place of the hashes of each row, and these.
        let (mut rows, mut all): (Vec<(u32, usize)>, Vec<u32>) = (Vec::new(), Vec::new());
        let Ok(pages) = pending::each_row(self.index, list, columns, |block, hashes| {
            rows.push((block, all.len()));
            all.extend_from_slice(hashes);
        }) else {
            self.index.damaged(list.first, "it should be a pending list")
        };
        rows.sort_unstable();
        let segment = match (rows.first(), rows.last()) {
            (Some(&(first, _)), Some(&(last, _))) => {
                let mut cells = Cells::new(columns, first, 0, false);
                for &(block, at) in &rows {
                    cells.push_row(block, &all[at..at + columns]);
                }
                self.write(cells, owner, first, last - first + 1)
            }
            _ => None,
        };
        self.index.change_meta(|meta| {
            meta.flushing = PendingList::default();
            meta.segments.extend(segment);
            Some(())
        });
        self.index.free_pages(&pages);
    }

    /// Merges the segments that `choose` names, by their places.
    fn merge(self, choose: fn(&[Segment]) -> Vec<usize>) {
        let meta = self.index.meta();
        let mut chosen = choose(&meta.segments);
        if chosen.len() < 2 {
            return;
        }
        chosen.sort_unstable();
        let Some(owner) = self.index.change_meta(|meta| Some(meta.take_owner())) else { return };
        let pages_of =
            |&i: &usize| meta.segments[i].pages(self.index).map(|pages| (meta.segments[i], pages));
        let read: Result<Vec<(Segment, Pages)>, Moved> = chosen.iter().map(pages_of).collect();
        // Only who holds the turn takes pages away.
        let Ok((segments, merged)) = read.and_then(|segments| {
            let progress = Progress::new(self.index, false);
            progress.phase(Phase::Merging);
            let merged = merge::merge(self.index, &meta, &segments, owner, &progress)?;
            Ok((segments, merged))
        }) else {
            self.index.damaged(META_BLOCK, "pages of a segment are not its own")
        };
        self.index.change_meta(|meta| {
            meta.segments
                .retain(|segment| !segments.iter().any(|(old, _)| old.owner == segment.owner));
            meta.segments.extend(merged);
            Some(())
        });
        for (_, pages) in &segments {
            self.index.free_pages(&pages.all());
        }
    }

    /// Frees pages that belong to nobody: a crash or an error has interrupted who wrote them.
    fn free_lost_pages(self) {
        // In this order: the meta page knows whose all pages are that were there before.
        let mut used = vec![false; self.index.pages() as usize];
        let meta = self.index.meta();
        used[META_BLOCK as usize] = true;
        let mut mark = |block: u32| {
            // Pages that were added meanwhile are pending.
            if let Some(used) = used.get_mut(block as usize) {
                *used = true;
            }
        };
        for segment in &meta.segments {
            let Ok(pages) = segment.pages(self.index) else {
                self.index.damaged(segment.root, "it should be the root of a segment")
            };
            pages.all().into_iter().for_each(&mut mark);
        }
        // The list may grow while this looks at it: all pages that its owner has appended stay.
        let lists = pending::lists(&meta);
        for list in lists {
            let Ok(pages) = pending::each_row(self.index, list, meta.columns.len(), |_, _| {})
            else {
                self.index.damaged(list.first, "it should be a pending list")
            };
            pages.into_iter().for_each(&mut mark);
        }
        let lost = |block: &u32| {
            // SAFETY: the index is open.
            !used[*block as usize]
                && unsafe { pg_sys::GetRecordedFreeSpace(self.index.relation(), *block) } == 0
        };
        let lost: Vec<u32> = (0..used.len() as u32).filter(lost).collect();
        self.index.free_pages(&lost);
    }
}

/// Buckets of a column with this number of different values on a page: an absent value is named for one page in 2^s.
fn buckets(selectivity: u32, distinct: f64) -> u32 {
    let wanted = (distinct.max(1.0) * f64::from(1u32 << selectivity)).min(MOST_BUCKETS);
    (wanted as u32).next_multiple_of(BUCKET_STEP)
}

/// Segments of about the same size, when there are enough, and all smaller ones.
fn siblings(segments: &[Segment]) -> Vec<usize> {
    let tier = |segment: &Segment| segment.cells.max(1).ilog2() / 3;
    let full = (0..22).rev().find(|&wanted| {
        segments.iter().filter(|segment| tier(segment) == wanted).count() >= SIBLINGS
    });
    let Some(full) = full else { return Vec::new() };
    let chosen: Vec<usize> = (0..segments.len()).filter(|&i| tier(&segments[i]) <= full).collect();
    let cells: u64 = chosen.iter().map(|&i| segments[i].cells).sum();
    if cells > QUICK_MERGE && segments.len() < MANY_SEGMENTS {
        return Vec::new();
    }
    chosen
}

/// All segments but those that are much larger than the smaller ones together.
fn all_small(segments: &[Segment]) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..segments.len()).collect();
    by_size.sort_unstable_by_key(|&i| segments[i].cells);
    let (mut sum, mut chosen) = (0, 0);
    for (place, &i) in by_size.iter().enumerate() {
        sum += segments[i].cells;
        // What comes next is taken if it is not much larger.
        if by_size.get(place + 1).is_none_or(|&next| segments[next].cells <= GROWTH * sum) {
            chosen = (place + 2).min(by_size.len());
        }
    }
    by_size.truncate(chosen);
    by_size
}
