//! Standard output with a shell's manners: a closed pipe is success, anything else an error. And standard error.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context as _, Result};

/// Writes all bytes to standard output at once.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // The reader has seen enough (`| head`). Ends here, since input threads may wait for a terminal.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(error).context("standard output"),
    }
}

/// Says something to the person, on standard error. If nobody can hear it, the work is done all the same.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    write(text.as_bytes())
}

/// Asks for a pipe of 1 MiB behind standard output, for commands that stream much. With the usual 64 KiB the program
/// and its reader take turns: `dedup` of ten million lines into `wc` took twice as long (docs/benchmarks/dedup.md).
#[cfg(target_os = "linux")]
pub(crate) fn widen_pipe() {
    const BYTES: usize = 1 << 20; // the most that Linux grants without privilege
    // Not a pipe, or refused: it is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), BYTES);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn widen_pipe() {}
