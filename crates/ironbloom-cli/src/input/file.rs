//! A file or standard input: its name, and its bytes, counted.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::decompress::decompress;
use crate::failure::Advice;
use crate::output;

/// For people who give a key where a file of keys is expected.
const NOT_A_KEY: &str = "inputs are files of keys, one per line; a single key goes to standard input: echo KEY | ironbloom …";

/// The name of an input in messages.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Counts the bytes that were read from a file, before any decompression.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.read.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// The bytes of an input, decompressed. `read` counts those that were read.
pub(super) fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Box<dyn Read>> {
    let raw: Box<dyn Read> = if path == Path::new("-") {
        if io::stdin().is_terminal() {
            output::note("reading keys from the terminal, one per line; Ctrl-D ends");
        }
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Advice::error(error.to_string(), NOT_A_KEY),
            _ => error.into(),
        })?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        Box::new(file)
    };
    decompress(Counted { input: raw, read: Arc::clone(read) })
}
