//! What is going on: on a terminal one line that is overwritten, in a log a line now and then.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines in a log.
const PAUSE: Duration = Duration::from_secs(30);

/// Tells the user which step is running.
pub(crate) struct Progress {
    last_line: Option<Instant>,
}

impl Progress {
    /// Nothing told yet.
    pub(crate) fn new() -> Self {
        Self { last_line: None }
    }

    /// A step begins.
    pub(crate) fn show(&mut self, step: &str) {
        let mut out = std::io::stderr();
        // Whether the words arrive does not matter to the measurement.
        if out.is_terminal() {
            let _ = write!(out, "\r\x1b[K{step}").and_then(|()| out.flush());
        } else if self.last_line.is_none_or(|last| last.elapsed() > PAUSE) {
            self.last_line = Some(Instant::now());
            let _ = writeln!(out, "{step}");
        }
    }
}

impl Drop for Progress {
    /// Leaves the line of the terminal empty.
    fn drop(&mut self) {
        if std::io::stderr().is_terminal() {
            self.show("");
        }
    }
}
