//! Progress: on a terminal one line that is overwritten, in a log an occasional line.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Pause between two lines in a log.
const PAUSE: Duration = Duration::from_secs(30);

/// Tells the user which step is running.
pub(crate) struct Progress {
    last_line: Option<Instant>,
}

impl Progress {
    /// Starts without output.
    pub(crate) fn new() -> Self {
        Self { last_line: None }
    }

    /// Announces a step.
    pub(crate) fn show(&mut self, step: &str) {
        let mut out = std::io::stderr();
        // The measurement does not depend on this output, so errors are ignored.
        if out.is_terminal() {
            let _ = write!(out, "\r\x1b[K{step}").and_then(|()| out.flush());
        } else if self.last_line.is_none_or(|last| last.elapsed() > PAUSE) {
            self.last_line = Some(Instant::now());
            let _ = writeln!(out, "{step}");
        }
    }
}

impl Drop for Progress {
    /// Clears the terminal line.
    fn drop(&mut self) {
        if std::io::stderr().is_terminal() {
            self.show("");
        }
    }
}
