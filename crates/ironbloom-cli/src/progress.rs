//! A progress bar on standard error, for a person who waits: only on a terminal, only after a second.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

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
        let bar = self.bar.get_or_insert_with(|| new_bar(self.total));
        bar.set_position(bytes);
        bar.set_message(format!("{} keys", HumanCount(keys)));
    }

    /// Bytes sent or received so far, of something else than keys.
    pub(crate) fn update_bytes(&mut self, bytes: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| new_bar(self.total));
        bar.set_position(bytes);
    }

    /// Rows of tables read so far: how many bytes those were is not known.
    pub(crate) fn update_rows(&mut self, rows: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            ProgressBar::no_length().with_style(styled("{spinner} {msg}, {elapsed}"))
        });
        bar.set_message(format!("{} rows", HumanCount(rows)));
        bar.tick();
    }

    /// Takes the bar off the screen, so that what is printed next stands alone. So does dropping it.
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
        Some(total) => (
            ProgressBar::new(total),
            "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {msg}, {eta} left",
        ),
        None => (ProgressBar::no_length(), "{spinner} {bytes}, {bytes_per_sec}, {msg}"),
    };
    bar.with_style(styled(template))
}

fn styled(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
