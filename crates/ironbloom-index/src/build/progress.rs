//! How far a build is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How far a build is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildProgress {
    /// Rows done so far. A row of which some columns are done counts in part, and so does one that is read, but not encoded.
    pub rows: u64,
    /// The same in bytes of the tables.
    pub bytes: u64,
    /// Bytes of all tables.
    pub total_bytes: u64,
}

/// Counts what the threads of a build have done.
#[derive(Default)]
pub(crate) struct Meter {
    total_bytes: u64,
    /// Rows and bytes of the tables that are done.
    rows: AtomicU64,
    bytes: AtomicU64,
    /// Of the table that is being read: rows, bytes, steps, and steps that are done. A step is to read or to encode a cell.
    table_rows: AtomicU64,
    table_bytes: AtomicU64,
    table_steps: AtomicU64,
    steps: AtomicU64,
    stopped: AtomicBool,
}

/// Tells the work to stop if who waits for it panics.
struct StopOnPanic<'m>(&'m Meter);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stopped.store(true, Ordering::Relaxed);
        }
    }
}

impl Meter {
    pub(crate) fn new(total_bytes: u64) -> Self {
        Self { total_bytes, ..Self::default() }
    }

    /// A table of which these rows will be read, in this number of columns.
    pub(crate) fn start_table(&self, rows: u64, bytes: u64, columns: usize) {
        self.steps.store(0, Ordering::Relaxed);
        self.table_rows.store(rows, Ordering::Relaxed);
        self.table_bytes.store(bytes, Ordering::Relaxed);
        self.table_steps.store(2 * rows * columns as u64, Ordering::Relaxed);
    }

    /// Cells that were read or encoded.
    pub(crate) fn add_cells(&self, cells: u64) {
        self.steps.fetch_add(cells, Ordering::Relaxed);
    }

    /// The table that was started is done, or others that were not.
    pub(crate) fn end_table(&self, rows: u64, bytes: u64) {
        self.start_table(0, 0, 0);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self) -> BuildProgress {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let all = read(&self.table_steps);
        let steps = read(&self.steps).min(all);
        let share = |of: u64| (u128::from(of) * u128::from(steps) / u128::from(all.max(1))) as u64;
        BuildProgress {
            rows: read(&self.rows) + share(read(&self.table_rows)),
            bytes: (read(&self.bytes) + share(read(&self.table_bytes))).min(self.total_bytes),
            total_bytes: self.total_bytes,
        }
    }

    /// Whether the work is no longer wanted.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Does some work in another thread, and reports the progress from this one. If `report` panics, the work is told to stop.
    pub(crate) fn watch<T: Send>(
        &self,
        report: &mut dyn FnMut(BuildProgress),
        work: impl FnOnce() -> T + Send,
    ) -> T {
        const PAUSE: Duration = Duration::from_millis(100);
        let this = std::thread::current();
        std::thread::scope(|scope| {
            let _stop = StopOnPanic(self);
            let worker = scope.spawn(|| {
                let result = work();
                this.unpark();
                result
            });
            while !worker.is_finished() {
                std::thread::park_timeout(PAUSE);
                report(self.progress());
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            report(self.progress());
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_half_done_when_it_is_read_and_not_encoded() {
        let meter = Meter::new(1000);
        meter.end_table(50, 100);
        meter.start_table(90, 900, 2);
        meter.add_cells(180);
        let wanted = BuildProgress { rows: 95, bytes: 550, total_bytes: 1000 };
        assert_eq!(meter.progress(), wanted);
        meter.end_table(90, 900);
        let wanted = BuildProgress { rows: 140, bytes: 1000, total_bytes: 1000 };
        assert_eq!(meter.progress(), wanted);
    }

    #[test]
    #[should_panic(expected = "as it was")]
    fn a_panic_of_the_work_goes_on() {
        Meter::new(0).watch(&mut |_| (), || panic!("as it was"));
    }

    #[test]
    fn work_is_told_to_stop_if_whoever_watches_it_panics() {
        let meter = Meter::new(1);
        let work = || {
            let mut steps = 0;
            while !meter.is_stopped() && steps < 10_000 {
                std::thread::sleep(Duration::from_millis(1));
                steps += 1;
            }
        };
        let mut enough = |_| std::panic::resume_unwind(Box::new("enough"));
        let watched = std::panic::AssertUnwindSafe(|| meter.watch(&mut enough, work));
        let panic = std::panic::catch_unwind(watched).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"enough"));
        assert!(meter.is_stopped());
    }
}
