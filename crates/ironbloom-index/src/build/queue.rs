//! What the threads of a build do next: encode what has been read, or else read on, if there is memory for it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use ironbloom_blocks::bounds::{BlockSpans, Bounds};
use ironbloom_blocks::{
    CELL_PARTS, Cells, EncodedPart, Postings, Remainder, RowRange, SealedCells,
};

use super::turn::{Stopped, Turn};
use super::{BATCH_ROWS, Gathered, Meter, Rows, gather};
use crate::builder::pack_bounds;
use crate::indexed_error::IndexedError;
use crate::resources::{Resources, cell_bytes, joining_bytes};
use crate::segment::SegmentColumn;
use crate::segment_bounds::SegmentBounds;
use crate::table::TableError;
use crate::workspace::Workspace;

/// Cells of the columns that are read together, unless one column has more: a few columns at a time, so that the memory of the
/// first is used again for the next.
const PASS_CELLS: u64 = 1 << 24;
/// Cells that a thread gathers before it waits for its turn.
const GATHERED_CELLS: usize = 1 << 20;

/// A segment that is being read.
pub(super) struct SegmentBuild<'a> {
    rows: &'a Rows<'a>,
    threads: usize,
    memory: u64,
    workspace: &'a Workspace,
    meter: &'a Meter,
    blocks: u32,
    parts: Vec<Range<u64>>,
    passes: Vec<Pass>,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Of each column. Spans of parts are joined in any order.
    spans: Vec<Mutex<BlockSpans>>,
    done: Mutex<Vec<Option<(SegmentColumn, Bounds)>>>,
}

/// Columns that are read together.
struct Pass {
    columns: Range<usize>,
    turn: Turn,
}

/// What is to be done.
#[derive(Default)]
struct Queue {
    /// The pass and part that are read next.
    next: (usize, usize),
    /// Shares of columns to be encoded.
    shares: Vec<(Arc<Column>, usize)>,
    /// Columns that are not done.
    left: usize,
    /// Bytes for which room was made.
    reserved: u64,
    /// The error of the first pass and part that has one.
    failed: Option<(usize, usize, IndexedError)>,
    is_stopped: bool,
}

/// A column whose cells are being encoded.
struct Column {
    number: usize,
    cells: RwLock<Option<SealedCells>>,
    encoded: Mutex<Vec<Option<EncodedPart>>>,
    /// Shares that are not encoded.
    left: AtomicUsize,
}

enum Task {
    Read { pass: usize, part: usize },
    Encode { column: Arc<Column>, share: usize },
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the other threads end if this one panics: they would wait for it.
struct StopOnPanic<'r, 'a>(&'r SegmentBuild<'a>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl<'a> SegmentBuild<'a> {
    pub(super) fn new(
        rows: &'a Rows<'a>,
        resources: Resources,
        workspace: &'a Workspace,
        meter: &'a Meter,
    ) -> Self {
        let Range { start: first_row, end } = rows.rows;
        let range = RowRange { first_row, rows: end - first_row };
        let columns = rows.columns.len();
        let at_once = match rows.table.has_separate_columns() {
            true => (PASS_CELLS / (end - first_row).max(1)).clamp(1, columns as u64) as usize,
            false => columns,
        };
        let pass = |start| Pass { columns: start..columns.min(start + at_once), turn: Turn::new() };
        Self {
            rows,
            threads: resources.threads(),
            memory: resources.for_cells(),
            workspace,
            meter,
            blocks: range.blocks(rows.params.block_rows()) as u32,
            parts: rows.table.parts(rows.rows.clone()),
            passes: (0..columns).step_by(at_once).map(pass).collect(),
            queue: Mutex::new(Queue { left: columns, ..Queue::default() }),
            changed: Condvar::new(),
            spans: std::iter::repeat_with(|| Mutex::new(BlockSpans::new(rows.params.block_rows())))
                .take(columns)
                .collect(),
            done: Mutex::new(std::iter::repeat_with(|| None).take(columns).collect()),
        }
    }

    /// Reads and encodes everything.
    pub(super) fn columns(self) -> Result<(Vec<SegmentColumn>, SegmentBounds), IndexedError> {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| self.work());
            }
            self.work();
        });
        let queue = self.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, error)) = queue.failed {
            return Err(error);
        }
        if self.meter.is_stopped() {
            return Err(IndexedError::Stopped);
        }
        let done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = done.into_iter().map(|column| column.expect("all were encoded"));
        let (columns, bounds) = done.unzip();
        Ok((columns, SegmentBounds::Sealed(bounds)))
    }

    /// What every thread does.
    fn work(&self) {
        let _stop = StopOnPanic(self);
        while let Some(task) = self.next_task() {
            match task {
                Task::Read { pass, part } => match self.read(pass, part) {
                    Ok(()) | Err(Failure::Stopped) => {}
                    Err(Failure::Error(error)) => self.fail(pass, part, (*error).into()),
                },
                Task::Encode { column, share } => {
                    if let Err(error) = self.encode(&column, share) {
                        self.fail(0, 0, error);
                    }
                }
            }
        }
    }

    /// What to do next; `None` when there is nothing left for this thread.
    fn next_task(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if self.meter.is_stopped() {
                drop(queue);
                self.stop(); // others may wait for what will not come
                return None;
            }
            if queue.is_stopped || queue.left == 0 {
                return None;
            }
            if let Some((column, share)) = queue.shares.pop() {
                return Some(Task::Encode { column, share });
            }
            let (pass, part) = queue.next;
            if pass < self.passes.len() && (part > 0 || self.has_room(&queue, pass)) {
                if part == 0 {
                    queue.reserved += self.pass_bytes(pass) + self.sealing_bytes(pass);
                }
                let is_last = part + 1 == self.parts.len();
                queue.next = if is_last { (pass + 1, 0) } else { (pass, part + 1) };
                if part == 0 {
                    self.start(pass);
                }
                return Some(Task::Read { pass, part });
            }
            // A share to encode may come, or memory.
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Bytes of the cells of a pass.
    fn pass_bytes(&self, pass: usize) -> u64 {
        cell_bytes(self.row_count(), self.passes[pass].columns.len())
    }

    /// Bytes that its columns will need when all of it has been read.
    fn sealing_bytes(&self, pass: usize) -> u64 {
        joining_bytes(self.row_count()) * self.passes[pass].columns.len() as u64
    }

    fn row_count(&self) -> u64 {
        self.rows.rows.end - self.rows.rows.start
    }

    /// Whether the cells of another pass have room beside what those before will need. If nothing else is in memory, they must.
    fn has_room(&self, queue: &Queue, pass: usize) -> bool {
        queue.reserved == 0 || queue.reserved + self.pass_bytes(pass) <= self.memory
    }

    fn start(&self, pass: usize) {
        let columns = self.passes[pass].columns.len();
        let cells = (0..columns).map(|column| {
            let memory = self.workspace.take_memory(columns - column);
            self.workspace.hold(memory.bytes());
            Cells::with_memory(self.rows.params, memory)
        });
        self.passes[pass].turn.start(cells.collect());
    }

    /// Reads a part, and hands it over in its turn.
    fn read(&self, pass: usize, part: usize) -> Result<(), Failure> {
        let Pass { columns, turn } = &self.passes[pass];
        let first = self.parts[part].start - self.rows.rows.start;
        let gathered = || Gathered::new(self.rows.params.block_rows(), first);
        let mut gathered: Vec<Gathered> =
            std::iter::repeat_with(gathered).take(columns.len()).collect();
        let read = self.read_batches(pass, part, &mut gathered);
        // Errors wait for their turn as well, so that the first one in the order of the rows is reported.
        turn.wait(part)?;
        read?;
        self.hand_over(&self.passes[pass], &mut gathered);
        if let Some(cells) = turn.end(self.parts.len()) {
            self.seal(columns.clone(), cells);
        }
        Ok(())
    }

    fn read_batches(
        &self,
        pass: usize,
        part: usize,
        gathered: &mut [Gathered],
    ) -> Result<(), Failure> {
        let Pass { columns, turn } = &self.passes[pass];
        let numbers = &self.rows.columns[columns.clone()];
        let rows = self.parts[part].clone();
        let mut held = 0;
        for batch in self.rows.table.scan_part(rows, numbers, BATCH_ROWS)? {
            let batch = batch?;
            if self.meter.is_stopped() {
                self.stop();
                return Err(Failure::Stopped);
            }
            gather(gathered, &batch);
            held += batch.num_rows() * columns.len();
            if held >= GATHERED_CELLS {
                turn.wait(part)?;
            }
            if turn.is_of(part) {
                self.hand_over(&self.passes[pass], gathered);
                held = 0;
            }
        }
        Ok(())
    }

    /// Moves what was gathered to the cells, in the turn of its part.
    fn hand_over(&self, Pass { columns, turn }: &Pass, gathered: &mut [Gathered]) {
        for (spans, gathered) in self.spans[columns.clone()].iter().zip(gathered.iter_mut()) {
            lock(spans).take_from(&mut gathered.spans);
        }
        turn.fill(|cells| {
            for (cells, gathered) in cells.iter_mut().zip(gathered) {
                let before = cells.held_bytes();
                cells.push(&gathered.prints);
                self.workspace.hold(cells.held_bytes() - before);
                self.meter.add_cells(gathered.prints.len() as u64);
                gathered.prints.clear();
            }
        });
    }

    /// Divides columns into shares for all threads.
    fn seal(&self, numbers: Range<usize>, cells: Vec<Cells>) {
        let columns = numbers.zip(cells).map(|(number, cells)| {
            let before = cells.held_bytes();
            let cells = cells.seal();
            self.workspace.hold(cells.held_bytes());
            self.workspace.release(before);
            Arc::new(Column {
                number,
                cells: RwLock::new(Some(cells)),
                encoded: Mutex::new(std::iter::repeat_with(|| None).take(CELL_PARTS).collect()),
                left: AtomicUsize::new(CELL_PARTS),
            })
        });
        let shares: Vec<_> = columns
            .flat_map(|column| (0..CELL_PARTS).map(move |share| (Arc::clone(&column), share)))
            .collect();
        let mut queue = lock(&self.queue);
        // Taken from the end: the first column is encoded first.
        queue.shares.extend(shares.into_iter().rev());
        self.changed.notify_all();
    }

    fn encode(&self, column: &Column, share: usize) -> Result<(), IndexedError> {
        let cells = column.cells.read().unwrap_or_else(PoisonError::into_inner);
        let sealed = cells.as_ref().expect("until all shares are encoded");
        let memory = self.workspace.take_part_memory();
        let encoded = EncodedPart::new(sealed, share, self.blocks, self.rows.bucket_bits, memory);
        self.workspace.hold(encoded.held_bytes());
        drop(cells);
        lock(&column.encoded)[share] = Some(encoded);
        if column.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.join(column)?;
        }
        let (rows, shares) = (self.row_count(), CELL_PARTS as u64);
        self.meter.add_cells(if share == 0 {
            rows - rows / shares * (shares - 1)
        } else {
            rows / shares
        });
        Ok(())
    }

    /// Joins the shares of a column when all are encoded.
    fn join(&self, column: &Column) -> Result<(), IndexedError> {
        let cells = column.cells.write().unwrap_or_else(PoisonError::into_inner).take();
        let cells = cells.expect("taken once");
        let rest = Remainder::new(&cells);
        self.workspace.release(cells.held_bytes());
        self.workspace.give_memory(cells.into_memory());
        // From now on there is room for the cells of the next pass.
        self.unreserve(cell_bytes(self.row_count(), 1));
        let encoded = std::mem::take(&mut *lock(&column.encoded));
        let encoded: Vec<EncodedPart> = encoded.into_iter().flatten().collect();
        let encoded_bytes = encoded.iter().map(EncodedPart::held_bytes).sum();
        let (postings, memory) = Postings::join(encoded, &rest, self.rows.bucket_bits);
        let bytes = size_of_val(postings.words()) as u64;
        self.workspace.hold(bytes);
        self.workspace.release(encoded_bytes);
        self.workspace.give_part_memory(memory);
        let bounds = pack_bounds(lock(&self.spans[column.number]).spans(), &postings);
        let sealed = self.workspace.put(postings, self.blocks);
        self.workspace.release(bytes);
        lock(&self.done)[column.number] = Some((sealed?, bounds));
        lock(&self.queue).left -= 1;
        self.unreserve(joining_bytes(self.row_count()));
        Ok(())
    }

    fn unreserve(&self, bytes: u64) {
        lock(&self.queue).reserved -= bytes;
        self.changed.notify_all();
    }

    fn fail(&self, pass: usize, part: usize, error: IndexedError) {
        let mut queue = lock(&self.queue);
        if queue.failed.as_ref().is_none_or(|(p, q, _)| (pass, part) < (*p, *q)) {
            queue.failed = Some((pass, part, error));
        }
        drop(queue);
        self.stop();
    }

    fn stop(&self) {
        lock(&self.queue).is_stopped = true;
        self.changed.notify_all();
        self.passes.iter().for_each(|pass| pass.turn.stop());
    }
}

/// Why a part was not read.
enum Failure {
    Error(Box<TableError>),
    Stopped,
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        Self::Error(Box::new(error))
    }
}

impl From<Stopped> for Failure {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}
