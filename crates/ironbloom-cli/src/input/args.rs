//! The options that say where keys come from.

use std::path::PathBuf;

use clap::Args;

use super::table::TableArgs;

/// Where keys come from, and how they are separated.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InputArgs {
    /// Files of keys, one per line; `-` or none reads standard input. gzip and zstd are recognised by content
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Keys end with a NUL byte instead of a newline (find -print0), and every other byte is kept
    #[arg(short = '0', long = "null")]
    pub(crate) null: bool,

    /// Keep every byte of a line. Otherwise a carriage return at its end, and a byte-order mark at the beginning of an
    /// input, are not part of a key
    #[arg(long)]
    pub(crate) exact_bytes: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Keys are rows: these columns of CSV, one field after the other (see [`fields`])
    #[arg(skip)]
    pub(crate) row_columns: Option<Vec<String>>,

    /// Keep the rows of CSV that keys are from
    #[arg(skip)]
    pub(crate) whole_rows: bool,
}

impl InputArgs {
    /// The byte that ends a key, in input and output.
    pub(crate) fn delimiter(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// True if line ends and byte-order marks are those of text.
    pub(super) fn is_text(&self) -> bool {
        !self.null && !self.exact_bytes
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        if self.inputs.is_empty() { vec![PathBuf::from("-")] } else { self.inputs.clone() }
    }

    /// Returns true if standard input is read.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.paths().iter().any(|path| path.as_os_str() == "-")
    }

    /// Bytes in all files together, or `None` if some input has no known length.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        self.paths()
            .iter()
            .map(|path| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len()))
            .sum()
    }
}
