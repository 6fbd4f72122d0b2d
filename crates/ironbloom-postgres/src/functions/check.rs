//! `ironbloom_check`: every page of the index is sound, and every cell of the table is named.
//!
//! The table's cells are sorted as for a build, and compared with the index in the order of both. Only rows that the
//! statement's snapshot sees are compared: what is known of them was written before their transactions committed, so others may
//! go on writing. `deep.rs` asks the index as queries do.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::ErrorReport;

use super::arguments::{For, argument, with_index};
use crate::cells::Cells;
use crate::heap::HeapReader;
use crate::maintain::{Maintained, Turn};
use crate::meta::{Meta, Segment};
use crate::page::Kind;
use crate::segment::find::Pages;
use crate::segment::merge::{Merged, extent};
use crate::segment::{TakeEntries, key, posting};
use crate::storage::{Index, Moved};
use crate::{pending, shape, sql_function};

/// On a standby pages are taken away whoever reads them.
const ATTEMPTS: usize = 50;

sql_function!(pg_finfo_ironbloom_check);

#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_check(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL: a regclass, and strict.
    let oid = unsafe { argument(call, 0) }.map_or(0, |datum| datum.value() as u32);
    // SAFETY: the second argument, if there is one, is a boolean.
    let deep = unsafe {
        (*call).nargs > 1 && argument(call, 1).is_some_and(|datum| datum.value() as u8 != 0)
    };
    pg_sys::Datum::from(check_index(oid.into(), deep) as i64)
}

/// Returns the cells compared; ends the statement if something is wrong.
pub(super) fn check_index(oid: pg_sys::Oid, deep: bool) -> u64 {
    with_index(oid, For::Granted, pg_sys::AccessShareLock, |heap, index| {
        shape::require_unchanged(index);
        let cells = check_pages(heap, index);
        if deep {
            // SAFETY: both are open.
            unsafe { super::deep::check(heap, index) };
        }
        cells
    })
}

fn check_pages(heap: pg_sys::Relation, index: Index) -> u64 {
    // SAFETY: a flag in shared memory.
    let standby = unsafe { pg_sys::RecoveryInProgress() };
    for attempt in 1.. {
        match check(heap, index, standby) {
            Ok(cells) => return cells,
            Err(Failure::Moved) if standby && attempt < ATTEMPTS => pause(),
            Err(Failure::Moved) => index.damaged(0, "pages of its segments belong to others"),
            Err(Failure::Missing { column, block }) => missing(index, column, block),
        }
    }
    unreachable!("the last attempt returns")
}

fn pause() {
    crate::check_interrupts();
    std::thread::sleep(std::time::Duration::from_millis(20));
}

fn missing(index: Index, column: usize, block: u32) -> ! {
    let name = index.name();
    let message = format!(
        "index \"{name}\" does not name heap page {block} for a value of its column {}",
        column + 1
    );
    ErrorReport::new(PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED, message, "ironbloom")
        .set_hint("Please REINDEX it.")
        .report(pg_sys::elog::PgLogLevel::ERROR);
    unreachable!("an error does not return")
}

enum Failure {
    Moved,
    Missing { column: usize, block: u32 },
}

impl From<Moved> for Failure {
    fn from(_: Moved) -> Self {
        Self::Moved
    }
}

/// Returns how many cells were found, each once a page.
fn check(heap: pg_sys::Relation, index: Index, standby: bool) -> Result<u64, Failure> {
    // SAFETY: both are open.
    let end = unsafe { Maintained::new(heap, index) }.heap_pages();
    let sealed = index.meta().sealed.min(end);
    let mut cells = Cells::new(index.columns(), 0, sealed, false);
    // SAFETY: both are open.
    let mut reader = unsafe { HeapReader::of_snapshot(heap, index, pg_sys::GetActiveSnapshot()) };
    for block in 0..sealed {
        crate::check_interrupts();
        cells.push_page(block, reader.read(block));
    }
    drop(reader);
    // As long as it lasts no page is taken away; inserts leave sealing to later.
    let _turn = (!standby).then(|| Turn::wait(index));
    let meta = index.meta();
    let segments = segments(index, &meta)?;
    if segments.is_empty() && meta.pending.owner == 0 && meta.flushing.owner == 0 {
        return if cells.is_empty() {
            Ok(0)
        } else {
            Err(Failure::Missing { column: 0, block: 0 })
        };
    }
    let (_, span) = extent(&segments);
    let mut pending = vec![Vec::new(); meta.columns.len()];
    let most = u64::from(u32::MAX);
    for list in pending::lists(&meta) {
        pending::each_row(index, list, meta.columns.len(), |block, hashes| {
            for ((numbers, column), &hash) in pending.iter_mut().zip(&meta.columns).zip(hashes) {
                numbers.push(u64::from(column.bucket(hash)) * most + u64::from(block));
            }
        })?;
    }
    pending.iter_mut().for_each(|numbers| numbers.sort_unstable());
    let end = extent(&segments).0 + span;
    let mut comparison = Comparison {
        index,
        segments: &segments,
        pending,
        span: u64::from(end.max(sealed)),
        column: 0,
        merged: None,
        window: Vec::new(),
        found: 0,
        failure: None,
        last: None,
    };
    cells.write(&meta.columns, &mut comparison);
    match comparison.failure {
        Some(failure) => Err(failure),
        None => Ok(comparison.found),
    }
}

/// All segments with their pages, each of which is sound by itself and in its place.
fn segments(index: Index, meta: &Meta) -> Result<Vec<(Segment, Pages)>, Moved> {
    let mut all = Vec::new();
    for segment in &meta.segments {
        let pages = segment.pages(index)?;
        let mut cells = 0;
        let mut last = None;
        for &(wanted, block) in &pages.postings {
            crate::check_interrupts();
            let column = (wanted >> 32) as usize;
            let sound = index.read(block, Kind::Posting, segment.owner, |label, content| {
                let (head, run) = posting(content)?;
                let span = u64::from(segment.span);
                let end = u64::from(meta.columns.get(column)?.buckets + 1) * span;
                let in_place = key(column, (head.first / span) as u32) == wanted
                    && usize::from(label.column) == column
                    && head.last < end
                    && last.is_none_or(|last| last < (column, head.first));
                last = Some((column, head.last));
                cells += head.len;
                (in_place && run.is_sound()).then_some(())
            })?;
            if sound.is_none() {
                index.damaged(block, "its postings are not in order");
            }
        }
        if cells != segment.cells || pages.all().len() != segment.pages as usize {
            index.damaged(segment.root, "its segment has another number of entries or pages");
        }
        all.push((*segment, pages));
    }
    Ok(all)
}

/// Takes the table's entries, and looks for each of them in the index.
struct Comparison<'a> {
    index: Index,
    segments: &'a [(Segment, Pages)],
    /// Of each column: bucket times 2^32 - 1, and heap page.
    pending: Vec<Vec<u64>>,
    span: u64,
    column: usize,
    merged: Option<Merged<'a>>,
    /// Entries of the index around where the table's are.
    window: Vec<u64>,
    found: u64,
    failure: Option<Failure>,
    last: Option<u64>,
}

impl Comparison<'_> {
    fn compare(&mut self, numbers: &[u64]) -> Result<(), Failure> {
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else { return Ok(()) };
        let merged = self.merged.get_or_insert_with(|| {
            Merged::new(self.index, self.segments, self.column, (0, self.span as u32))
        });
        let from = self.window.partition_point(|&number| number < first);
        self.window.drain(..from);
        merged.read_below(last / self.span + 1, &mut self.window)?;
        let mut rest = &self.window[..];
        for &number in numbers {
            rest = &rest[rest.partition_point(|&other| other < number)..];
            if rest.first() != Some(&number) {
                let (bucket, block) = (number / self.span, number % self.span);
                let pending = bucket * u64::from(u32::MAX) + block;
                if self.pending[self.column].binary_search(&pending).is_err() {
                    return Err(Failure::Missing { column: self.column, block: block as u32 });
                }
            }
        }
        Ok(())
    }
}

impl TakeEntries for Comparison<'_> {
    fn number(&self, bucket: u32, block: u32) -> u64 {
        u64::from(bucket) * self.span + u64::from(block)
    }

    fn extend(&mut self, numbers: impl IntoIterator<Item = u64>) {
        let mut last = self.last;
        let numbers: Vec<u64> =
            numbers.into_iter().filter(|&number| last.replace(number) != Some(number)).collect();
        self.last = last;
        if self.failure.is_none() {
            crate::check_interrupts();
            self.found += numbers.len() as u64;
            self.failure = self.compare(&numbers).err();
        }
    }

    fn end_column(&mut self) {
        self.column += 1;
        self.merged = None;
        self.window.clear();
        self.last = None;
    }
}
