//! A progress bar on standard error, for a person who waits: only on a terminal, only after a second.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::number::{self, plural};

/// Jobs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress through the bytes of the input.
pub(crate) struct Progress {
    started: Instant,
    total: Option<u64>,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `total` bytes, if the input is made of files.
    pub(crate) fn new(total: Option<u64>) -> Self {
        let wanted = std::io::stderr().is_terminal();
        Self { started: Instant::now(), total, wanted, bar: None }
    }

    /// Bytes read and keys seen so far.
    pub(crate) fn update(&mut self, bytes: u64, keys: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        self.show(bytes, &format!(", {}", plural(keys, "key")));
    }

    /// Bytes sent or received so far, of something other than keys.
    pub(crate) fn update_bytes(&mut self, bytes: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        self.show(bytes, "");
    }

    fn show(&mut self, bytes: u64, what: &str) {
        let elapsed = self.started.elapsed();
        let bar = self.bar.get_or_insert_with(|| new_bar(self.total));
        bar.set_position(bytes);
        let left = self.total.and_then(|total| time_left(bytes, total, elapsed));
        let left = left.map_or(String::new(), |left| format!(", {} left", short(left)));
        bar.set_message(format!("{}/s{what}{left}", number::bytes(speed(bytes, elapsed))));
    }

    /// Rows of tables read so far: their number of bytes is unknown.
    pub(crate) fn update_rows(&mut self, rows: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            ProgressBar::no_length().with_style(styled("{spinner} {msg}, {elapsed}"))
        });
        bar.set_message(plural(rows, "row"));
        bar.tick();
    }

    /// Rows of tables, and the bytes of the tables that they stand for.
    pub(crate) fn update_tables(&mut self, rows: u64, bytes: u64, total_bytes: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        self.total = Some(total_bytes).filter(|&total| total > 0);
        self.show(bytes, &format!(", {}", plural(rows, "row")));
    }

    /// Removes the bar from the screen, so that later output stands alone. So does dropping it.
    pub(crate) fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{bar:30} {bytes}/{total_bytes}, {msg}"),
        None => (ProgressBar::no_length(), "{spinner} {bytes}, {msg}"),
    };
    bar.with_style(styled(template))
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// `45 s`, `12 min`, `3.5 h`: precise enough for waiting.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

/// Bytes per second since the work began. The bar's own estimate starts when the bar is created, a second later, and would
/// count everything read until then as instantaneous.
fn speed(bytes: u64, elapsed: Duration) -> u64 {
    (bytes as f64 / elapsed.as_secs_f64().max(1e-3)) as u64
}

/// Whole seconds until everything is read, at the speed so far. `None` before the first byte.
fn time_left(bytes: u64, total: u64, elapsed: Duration) -> Option<Duration> {
    let left = total.checked_sub(bytes).filter(|_| bytes > 0)?;
    let seconds = elapsed.as_secs_f64() * (left as f64 / bytes as f64);
    Some(Duration::from_secs(seconds.ceil().min(1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_counts_from_the_beginning_of_the_work() {
        assert_eq!(speed(3 << 30, Duration::from_secs(6)), 1 << 29);
        assert_eq!(speed(0, Duration::from_secs(1)), 0);
        // The clock may not have moved: no infinity.
        assert_eq!(speed(1000, Duration::ZERO), 1_000_000);
    }

    #[test]
    fn time_left_is_the_rest_at_the_speed_so_far() {
        let after_2s = |bytes, total| time_left(bytes, total, Duration::from_secs(2));
        assert_eq!(after_2s(100, 400), Some(Duration::from_secs(6)));
        assert_eq!(after_2s(400, 400), Some(Duration::ZERO));
        assert_eq!([after_2s(0, 400), after_2s(500, 400)], [None; 2]); // nothing read; a file that grows
        assert!(after_2s(1, u64::MAX).is_some());
    }
}
