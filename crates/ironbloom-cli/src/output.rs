//! Standard output as shells expect it: a closed pipe is success, anything else an error. And standard error.

use std::io::{self, ErrorKind, Write};

use anyhow::{Context as _, Result};

/// Writes all bytes to standard output at once.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    to_stdout(bytes).context("standard output")
}

fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    end_if_closed(out.write_all(bytes).and_then(|()| out.flush()))
}

/// Ends the program if the reader has seen enough (`| head`): input threads may wait for a terminal.
pub(crate) fn end_if_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => written,
    }
}

/// Writes the bytes of a file to standard output. Unlike lines, of which a reader may want only the first, half a file is
/// useless: a closed pipe is an error.
pub(crate) fn write_file(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).context("standard output")
}

/// Lines on their way to standard output: short ones are collected, long ones are written without a copy.
#[derive(Default)]
pub(crate) struct Lines {
    short: Vec<u8>,
}

/// Bytes that are worth a system call.
const LONG: usize = 64 * 1024;

impl Lines {
    /// Prints what `select` chooses.
    pub(crate) fn print(&mut self, select: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<()> {
        select(self).and_then(|()| self.flush()).context("standard output")
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() < LONG {
            self.short.extend_from_slice(bytes);
        } else {
            self.flush()?;
            to_stdout(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = to_stdout(&self.short);
        self.short.clear();
        written
    }
}

/// Prints a message to standard error, without passwords and queries of URLs. If that fails, the work continues all the same.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", without_secrets(text));
}

#[cfg(feature = "index")]
pub(crate) use ironbloom_index::without_secrets;

/// Without the index, no command takes the URL of an object.
#[cfg(not(feature = "index"))]
pub(crate) fn without_secrets(text: &str) -> std::borrow::Cow<'_, str> {
    text.into()
}

/// Writes text to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    write(text.as_bytes())
}

/// Asks for a pipe of 1 MiB at standard output, for commands that stream a lot. With the usual 64 KiB the program
/// and its reader take turns: `dedup` of ten million lines into `wc` took twice as long (docs/benchmarks/dedup.md).
#[cfg(target_os = "linux")]
pub(crate) fn widen_pipe() {
    const BYTES: usize = 1 << 20; // the most that Linux grants without privilege
    // Not a pipe, or refused: it is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(io::stdout(), BYTES);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn widen_pipe() {}
