//! `ironbloom index`: rows of big tables by any of their columns. One file per command, except that `change.rs` has
//! append, compact and drop.

mod build;
mod cell;
mod change;
mod csv;
mod find;
mod info;
mod names;
mod one_schema;
mod paths;
mod show;
mod verify;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use ironbloom_index::{Error, Index, IndexLock};

use crate::{Outcome, interrupt, output};

/// Find rows of Parquet and CSV tables by any of their columns
///
/// An index of about twelve bits per cell knows which blocks of rows may hold a value. Only these blocks are read and
/// compared, so the answers are exact.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  ironbloom index build events.parquet -o events.ibx
  ironbloom index find events.ibx 'user_id = 306047' \"country = 'SE'\" --select time,url
  ironbloom index find events.ibx 'user_id in (1, 2, 3)' --count --explain
  ironbloom index append events.ibx events-2.parquet"
)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::BuildArgs),
    Find(find::FindArgs),
    Append(change::AppendArgs),
    Compact(change::CompactArgs),
    Drop(change::DropArgs),
    Info(info::InfoArgs),
    Verify(verify::VerifyArgs),
}

pub(crate) fn run(args: &IndexArgs) -> Result<Outcome> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Find(args) => find::run(args),
        Command::Append(args) => change::append(args),
        Command::Compact(args) => change::compact(args),
        Command::Drop(args) => change::drop(args),
        Command::Info(args) => info::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// The right to change an index. If Ctrl-C is pressed meanwhile, its lock file is removed.
struct Turn(IndexLock);

impl Turn {
    fn new(lock: IndexLock) -> Self {
        interrupt::set_locked(Some(lock.lock_file()));
        Self(lock)
    }

    /// The index as other writers have left it.
    fn open(&self) -> Result<Index, Error> {
        self.0.open()
    }

    /// Saves an index; if Ctrl-C is pressed meanwhile, the temporary file is removed.
    fn save(&self, index: &mut Index) -> Result<(), Error> {
        interrupt::while_writing(self.0.path(), || self.0.save(index))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        interrupt::set_locked(None);
    }
}

/// Waits until no other process changes the index, and says so if that takes long.
fn lock(file: &Path) -> Result<IndexLock, Error> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(20);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(lock) = IndexLock::try_acquire(file)? {
            return Ok(lock);
        }
        std::thread::sleep(PAUSE);
    }
    output::note(&format!("{}: waiting for another process that is changing it", file.display()));
    IndexLock::acquire(file)
}
